// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::test {

// A sanitizer watches the steps of this program, which then take five to fifty times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

} // namespace macadam::test
