// SPDX-License-Identifier: BSD-3-Clause
// Loaded before a peer's libraries: gives the processor away when a look at the network found
// nothing. They do not, or late, and two ranks on one processor would wait for the scheduler's
// clock.
#include <dlfcn.h>
#include <sched.h>

extern "C" unsigned ucp_worker_progress(void* worker) {
  using Progress = unsigned (*)(void*);
  static const auto progress = reinterpret_cast<Progress>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  const unsigned done = progress(worker);
  if (done == 0) sched_yield();
  return done;
}
