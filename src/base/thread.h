// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <thread>

namespace macadam::base {

// A thread of the library's own in the program's process: the program's signals go to other
// threads, and no huge page of 2 MiB is spent on a stack of which some KiB are used. `name` is what
// debuggers and /proc show, 15 characters at most. Throws std::system_error if the process may have
// no more threads.
std::thread start_thread(const char* name, std::function<void()> work);

} // namespace macadam::base
