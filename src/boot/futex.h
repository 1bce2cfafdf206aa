// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace macadam::boot {

// Sleeps while `word` is `expected`, for `longest_ms` at most. May return early without a reason,
// so callers look again. Works between processes that share the word's memory.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, int longest_ms);

// Wakes everybody who sleeps on `word`.
void futex_wake_all(const std::atomic<std::uint32_t>& word);

} // namespace macadam::boot
