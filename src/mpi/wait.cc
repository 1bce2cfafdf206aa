// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/process.h"
#include "mpi/report.h"

#include <algorithm>
#include <thread>

namespace macadam::mpi {

void Process::idle(unsigned fruitless, unsigned longest_us) {
  // With threads, another one may finish what this one sleeps for: look again soon.
  constexpr unsigned threads_us = 1'000;
  if (job->report_wanted()) [[unlikely]]
    job->write_report(hang_report(*this));
  if (!thread_multiple) {
    engine->networks().idle(fruitless, longest_us);
    return;
  }
  const char* const waiting_in = function;
  const bool contended = lock.contended();
  const unsigned depth = lock.release();
  if (contended) {
    std::this_thread::yield();
  } else {
    engine->networks().idle(fruitless, std::min(longest_us, threads_us));
  }
  lock.retake(depth);
  function = waiting_in;
}

} // namespace macadam::mpi
