// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <thread>

namespace macadam::base {

// A thread of the library's own in the program's process: the program's signals go to other
// threads, and `work`, which uses some KiB of its stack, begins with one of small pages. `name` is
// what debuggers and /proc show, 15 characters at most.
// Throws Error (MPI_ERR_OTHER) if the process may have no more threads.
std::thread start_thread(const char* name, std::function<void()> work);

} // namespace macadam::base
