// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <thread>

namespace macadam::mpi {

// The lock around the library under MPI_THREAD_MULTIPLE. A thread may take it again: the function
// of a reduction calls MPI functions while it is held.
class Lock {
 public:
  void lock() {
    const auto me = std::this_thread::get_id();
    if (owner_.load(std::memory_order_relaxed) != me) {
      waiting_.fetch_add(1, std::memory_order_relaxed);
      mutex_.lock();
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      owner_.store(me, std::memory_order_relaxed);
    }
    ++depth_;
  }

  // Takes the lock if that is possible without waiting.
  bool try_lock() {
    const auto me = std::this_thread::get_id();
    if (owner_.load(std::memory_order_relaxed) != me) {
      if (!mutex_.try_lock()) return false;
      owner_.store(me, std::memory_order_relaxed);
    }
    ++depth_;
    return true;
  }

  void unlock() {
    if (--depth_ != 0) return;
    owner_.store(std::thread::id(), std::memory_order_relaxed);
    mutex_.unlock();
  }

  // In a process that a fork has made: threads that held it are not there.
  void forget_other_threads() {
    if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id()) new (this) Lock;
  }

  [[nodiscard]] bool is_mine() const {
    return owner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // Another thread wants the lock.
  [[nodiscard]] bool contended() const { return waiting_.load(std::memory_order_relaxed) != 0; }

  // Lets the lock go however often this thread has taken it; retake() restores that.
  [[nodiscard]] unsigned release() {
    const unsigned depth = depth_;
    depth_ = 1;
    unlock();
    return depth;
  }
  void retake(unsigned depth) {
    lock();
    depth_ = depth;
  }

 private:
  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;
  std::atomic<unsigned> waiting_ = 0;
  unsigned depth_ = 0; // of the owner
};

} // namespace macadam::mpi
