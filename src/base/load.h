// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace macadam::base {

// Threads that want to run on this machine now, with the one that asks; 0 if nobody knows. Takes
// some microseconds.
unsigned running_threads() noexcept;

// How many can at a time: at least 1.
unsigned online_cores() noexcept;

} // namespace macadam::base
