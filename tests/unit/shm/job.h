// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/directory.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace macadam::net::shm::test {

// A job whose ranks are threads of this process or its forked children. One memory file holds every
// segment; which rank has published stands in memory that all share.
class Job {
 public:
  explicit Job(Rank size, unsigned cores = 0, std::uint64_t capacity = std::uint64_t{1} << 28)
      : size_(size), cores_(cores == 0 ? size : cores), capacity_(capacity),
        fd_(memfd_create("shm-test", MFD_CLOEXEC)) {
    if (fd_ < 0 || ftruncate(fd_, static_cast<off_t>(capacity * size)) != 0) {
      throw std::runtime_error("memfd_create");
    }
    void* memory = mmap(nullptr, sizeof(Row) * size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    rows_ = static_cast<Row*>(memory);
    for (Rank rank = 0; rank < size; ++rank)
      new (&rows_[rank]) Row;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() {
    munmap(rows_, sizeof(Row) * size_);
    close(fd_);
  }

  [[nodiscard]] Rank size() const { return size_; }

  // Says that the process of a rank has ended before its time.
  void fail(Rank rank) {
    rows_[rank].failed.store(true, std::memory_order_release);
    ++failures_;
  }

  // What one rank sees.
  class View final : public Directory {
   public:
    View(Job& job, Rank rank) : job_(job), rank_(rank) {}
    [[nodiscard]] Rank rank() const override { return rank_; }
    [[nodiscard]] Rank size() const override { return job_.size_; }
    [[nodiscard]] unsigned local_size() const override { return job_.size_; }
    [[nodiscard]] unsigned cores() const override { return job_.cores_; }
    SharedMemory own_segment() override { return segment(rank_); }
    void publish() override { job_.rows_[rank_].pid.store(getpid(), std::memory_order_release); }
    SharedMemory open_segment(Rank peer) override {
      while (pid(peer) == 0)
        std::this_thread::yield();
      return segment(peer);
    }
    [[nodiscard]] pid_t pid(Rank peer) const override {
      return job_.rows_[peer].pid.load(std::memory_order_acquire);
    }
    [[nodiscard]] Life life(Rank peer) const override {
      return job_.rows_[peer].failed.load(std::memory_order_acquire) ? Life::failed : Life::running;
    }
    [[nodiscard]] unsigned failures() const override { return job_.failures_; }

   private:
    SharedMemory segment(Rank rank) { return {job_.fd_, job_.capacity_ * rank, job_.capacity_}; }
    Job& job_;
    Rank rank_;
  };

 private:
  struct Row {
    std::atomic<pid_t> pid = 0;
    std::atomic<bool> failed = false;
  };
  Rank size_;
  unsigned cores_;
  std::uint64_t capacity_;
  int fd_;
  Row* rows_ = nullptr;
  std::atomic<unsigned> failures_ = 0;
};

} // namespace macadam::net::shm::test
