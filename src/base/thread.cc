// SPDX-License-Identifier: BSD-3-Clause
#include "base/thread.h"

#include "base/error.h"
#include "base/signals.h"

#include <cstddef>
#include <future>
#include <pthread.h>
#include <sys/mman.h>
#include <system_error>
#include <utility>

namespace macadam::base {
namespace {

// One stack in some hundred has its top so little above a multiple of 2 MiB that use crosses it.
// Linux before 6.7 backs what lies below with a huge page then, if it gives them unasked. Called by
// another thread: what is allocated here would make the new one a heap of its own.
void use_small_pages(pthread_t thread) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(thread, &attributes) != 0) return;
  void* stack = nullptr;
  std::size_t bytes = 0;
  // Refused by a kernel that knows no huge pages: there are none then.
  if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0)
    madvise(stack, bytes, MADV_NOHUGEPAGE);
  pthread_attr_destroy(&attributes);
}

} // namespace

std::thread start_thread(const char* name, std::function<void()> work) {
  const AllSignalsBlocked guard;
  std::promise<void> ready;
  std::thread thread;
  try {
    thread = std::thread([work = std::move(work), ready = ready.get_future()] {
      ready.wait();
      work();
    });
  } catch (const std::system_error& error) {
    fail(MPI_ERR_OTHER, "no thread {}: {}; raise the limit of processes (ulimit -u)", name,
         error.code().message());
  }
  pthread_setname_np(thread.native_handle(), name);
  use_small_pages(thread.native_handle());
  ready.set_value();
  return thread;
}

} // namespace macadam::base
