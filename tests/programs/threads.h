// SPDX-License-Identifier: BSD-3-Clause
// For programs whose ranks call MPI from several threads at once.
#pragma once

#include "check.h"

namespace check {

constexpr int threads = 4; // of in_threads()

// Runs body(0), body(1), ..., each in a thread of its own, to the end of all.
inline void in_threads(const std::function<void(int)>& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back(body, t);
  for (std::thread& thread : all)
    thread.join();
}

// Initializes MPI for them; run_parts() comes next.
inline void start_with_threads(int& argc, char**& argv) {
  int provided = 0;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
}

} // namespace check
