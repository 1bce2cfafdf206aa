// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/alarm.h"

#include "base/thread.h"

#include <chrono>
#include <exception>
#include <utility>

namespace macadam::mpi {

Alarm::~Alarm() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    seconds_ = -1;
  }
  changed_.notify_one();
  thread_.join();
}

bool Alarm::set(double seconds) noexcept try {
  {
    const std::lock_guard guard(mutex_);
    seconds_ = seconds;
  }
  changed_.notify_one();
  if (thread_.joinable()) return true;
  thread_ = base::start_thread("macadam-alarm", [this] { run(); });
  return true;
} catch (const std::exception&) {
  return false;
}

void Alarm::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return seconds_ != 0; });
    if (seconds_ < 0) return;
    const std::chrono::duration<double> time(std::exchange(seconds_, 0));
    if (changed_.wait_for(lock, time, [this] { return seconds_ < 0; })) return;
    rang_.store(true, std::memory_order_relaxed);
    also_.store(true, std::memory_order_relaxed);
  }
}

} // namespace macadam::mpi
