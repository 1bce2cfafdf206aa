// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace macadam::mpi {

// Raises a flag after a while, for code that is to look at a flag and not at a clock. A thread of
// its own sleeps meanwhile; there is none before the first set().
class Alarm {
 public:
  // Raises `also` as well.
  explicit Alarm(std::atomic<bool>& also) : also_(also) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  ~Alarm();

  // Lowers the flag; one that is set raises it all the same.
  void lower() noexcept { rang_.store(false, std::memory_order_relaxed); }
  // Raises the flag `seconds` from now. False if there can be no thread.
  bool set(double seconds) noexcept;
  [[nodiscard]] bool rang() const noexcept { return rang_.load(std::memory_order_relaxed); }

 private:
  void run();

  std::atomic<bool>& also_;
  std::atomic<bool> rang_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  double seconds_ = 0; // to sleep for; 0: nothing to do, below: the end
  std::thread thread_;
};

} // namespace macadam::mpi
