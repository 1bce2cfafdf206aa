// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/team.h"

#include <atomic>
#include <cstdint>

namespace macadam::engine {

// A wait for a word of memory that a peer changes by itself (Transport::mapped()), instead of by a
// message. Words only go forward, modulo 2^32.
struct WordWait : base::ListNode<> {
  const std::atomic<std::uint32_t>* word = nullptr;
  std::uint32_t value = 0;        // what it waits for, or beyond
  const RankMap* group = nullptr; // the failure of any of these ends it, too
  // Called once, inside of progress; `ok`: the word is there. May free the wait.
  void (*call)(WordWait& wait, bool ok) noexcept = nullptr;

  [[nodiscard]] bool reached() const {
    return static_cast<std::int32_t>(word->load(std::memory_order_acquire) - value) >= 0;
  }
};

} // namespace macadam::engine
