// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

namespace macadam::sim {

// Virtual time: picoseconds since the start, so that one byte on a fast link is still a number.
using Time = std::int64_t;
inline constexpr Time nanosecond = 1'000;
inline constexpr Time microsecond = 1'000'000;
inline constexpr Time never = std::numeric_limits<Time>::max();

constexpr double seconds(Time time) {
  return static_cast<double>(time) * 1e-12;
}
constexpr Time from_seconds(double s) {
  return static_cast<Time>(s * 1e12);
}

// What happens at a moment: a small lambda over plain values and pointers, kept without allocation.
class Action {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Action>)
      Action(F&& what) { // implicit, as std::function's
    using Callable = std::remove_cvref_t<F>;
    static_assert(sizeof(Callable) <= sizeof(storage_) && std::is_trivially_copyable_v<Callable>);
    new (storage_.data()) Callable(what);
    call_ = [](std::byte* storage) { (*std::launder(reinterpret_cast<Callable*>(storage)))(); };
  }
  void operator()() { call_(storage_.data()); }

 private:
  alignas(8) std::array<std::byte, 40> storage_;
  void (*call_)(std::byte*);
};

// The events of the simulated world in the order of their time. Those of the same moment happen in
// the order in which they were made, or, `shuffled`, in one that follows from the seed: nothing
// else decides, so the same seed gives the same run.
class Scheduler {
 public:
  enum class Ties : std::uint8_t { in_order, shuffled };
  explicit Scheduler(std::uint64_t seed = 0, Ties ties = Ties::in_order)
      : seed_(seed), ties_(ties) {}
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  [[nodiscard]] Time now() const { return now_; }
  // When the next event is; `never` if there is none.
  [[nodiscard]] Time next() const { return heap_.empty() ? never : heap_.front().time; }

  // At `time`, or now if that is past.
  void at(Time time, Action action);

  // Lets the next event happen; false if there is none.
  bool step();
  // Lets everything up to and including `time` happen; then it is `time`.
  void run_until(Time time);
  // Goes to a time before which nothing happens.
  void advance(Time time) {
    if (time > now_) now_ = time;
  }

  // Adds to the trace of this run, of which only a hash is kept.
  void trace(std::uint64_t what) {
    trace_ = (trace_ ^ what ^ static_cast<std::uint64_t>(now_)) * 0x9E3779B97F4A7C15u;
    trace_ ^= trace_ >> 32;
    touch();
  }
  [[nodiscard]] std::uint64_t trace_hash() const { return trace_; }
  // Something has happened that is no mere waiting; when that was last.
  void touch() { last_touch_ = now_; }
  [[nodiscard]] Time last_touch() const { return last_touch_; }
  [[nodiscard]] std::uint64_t events() const { return made_; }

 private:
  struct Entry {
    Time time;
    std::uint64_t order;
    std::uint32_t slot; // of the action
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  Time now_ = 0;
  Time last_touch_ = 0;
  std::vector<Entry> heap_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_;
  std::uint64_t made_ = 0;
  std::uint64_t seed_;
  std::uint64_t trace_ = 0x6d61636164616d;
  Ties ties_;
};

} // namespace macadam::sim
