// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "io/access.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

namespace macadam::io {

// An access that a thread of the library's makes while the program computes.
struct Job {
  Access access{};
  // Once it is done:
  std::size_t moved = 0;
  std::optional<base::Error> failure;

  void run() noexcept;
};

// That thread: one in a process, from its first job on. Jobs are done in their order.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Does the jobs that are left, which must still be there, then ends the thread.
  ~Worker();

  // The job and what it names stay until collect() gives it back. Without a thread, which the
  // system may refuse, it is done here and now.
  void begin(Job& job);
  // A job that is done, the oldest first; null: none.
  [[nodiscard]] Job* collect();
  // Jobs that were begun and not collected. For the one who collects.
  [[nodiscard]] std::size_t under_way() const { return under_way_; }

 private:
  void work();

  std::mutex mutex_; // of the next three
  std::deque<Job*> waiting_;
  std::deque<Job*> done_;
  bool ends_ = false;
  std::condition_variable wake_;
  std::atomic<bool> has_done_ = false;
  std::size_t under_way_ = 0;
  std::thread thread_;
};

} // namespace macadam::io
