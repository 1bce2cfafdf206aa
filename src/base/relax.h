// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::base {

// A breath in a loop that polls memory. A processor that runs ahead through the next turns has to
// throw them away when the memory changes, which takes longer than the breath.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace macadam::base
