// SPDX-License-Identifier: BSD-3-Clause
#include "boot/futex.h"

#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace macadam::boot {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, int longest_ms) {
  const timespec longest{longest_ms / 1000, (longest_ms % 1000) * 1'000'000L};
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, &longest, nullptr, 0);
}

void futex_wake_all(const std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

} // namespace macadam::boot
