// SPDX-License-Identifier: BSD-3-Clause
#include "io/worker.h"

#include "base/thread.h"

namespace macadam::io {

void Job::run() noexcept {
  try {
    moved = move(access);
  } catch (...) {
    failure = base::caught("to read or write a file");
  }
}

Worker::~Worker() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard held(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Worker::begin(Job& job) {
  if (!thread_.joinable()) {
    try {
      thread_ = base::start_thread("macadam-file", [this] { work(); });
    } catch (const base::Error&) {
      job.run();
    }
  }
  const std::lock_guard held(mutex_);
  (thread_.joinable() ? waiting_ : done_).push_back(&job);
  ++under_way_;
  if (thread_.joinable())
    wake_.notify_one();
  else
    has_done_.store(true, std::memory_order_release);
}

Job* Worker::collect() {
  if (!has_done_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard held(mutex_);
  Job* const job = done_.front();
  done_.pop_front();
  has_done_.store(!done_.empty(), std::memory_order_relaxed);
  --under_way_;
  return job;
}

void Worker::work() {
  std::unique_lock held(mutex_);
  for (;;) {
    wake_.wait(held, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Job* const job = waiting_.front();
    waiting_.pop_front();
    held.unlock();
    job->run();
    held.lock();
    done_.push_back(job);
    has_done_.store(true, std::memory_order_release);
  }
}

} // namespace macadam::io
