// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace macadam::engine {

#ifdef MACADAM_MUTANT
// Called after each look at a word and each change, with what was learnt; by the proof, which goes
// on with another process then (tests/prove/boards_test.cc).
inline void (*word_step)(std::uint64_t learnt, bool changed) = nullptr;
inline void after_step(std::uint64_t learnt, bool changed) {
  if (word_step != nullptr) word_step(learnt, changed);
}
#else
constexpr void after_step(std::uint64_t, bool) {}
#endif

// A word of memory that several processes map: a count that only goes up, and never comes to its
// end. What a process wrote before it stored a value is there for those who have seen the value.
class Word {
 public:
  [[nodiscard]] std::uint64_t load() const {
    const std::uint64_t value = value_.load(std::memory_order_acquire);
    after_step(value, false);
    return value;
  }
  void store(std::uint64_t value) {
    value_.store(value, std::memory_order_release);
    after_step(0, true);
  }
  void add_one() {
    value_.fetch_add(1, std::memory_order_acq_rel);
    after_step(0, true);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

} // namespace macadam::engine
