// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/team.h"
#include "engine/word.h"

#include <cstdint>

namespace macadam::engine {

// A wait for a word of memory that a peer changes by itself (Transport::mapped()), instead of by a
// message.
struct WordWait : base::ListNode<> {
  const Word* word = nullptr;
  std::uint64_t value = 0; // what it waits for, or beyond
  // It ends without its word if its writer has ended, or if any of `group` has ended before its
  // time; one that left in good order has stored all that it had to.
  Rank writer = 0;
  const RankMap* group = nullptr;
  // Called once, inside of progress; `ok`: the word is there. May free the wait.
  void (*call)(WordWait& wait, bool ok) noexcept = nullptr;

  [[nodiscard]] bool reached() const { return word->load() >= value; }
};

} // namespace macadam::engine
