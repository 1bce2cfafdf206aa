// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "engine/transport.h"
#include "net/shm/system.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace macadam::net::shm::test {

using boot::Life;
using boot::SharedMemory;
using engine::Rank;

inline double seconds() {
  return real_system().now();
}

// A job whose ranks are threads of this process or its forked children. One memory file holds every
// segment; which rank has published stands in memory that all share.
class Job {
 public:
  explicit Job(Rank size, unsigned cores = 0, std::uint64_t capacity = std::uint64_t{1} << 28,
               boot::Secret secret = {1})
      : secret_(secret), size_(size), cores_(cores == 0 ? size : cores), capacity_(capacity),
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
  class View final : public boot::Job {
   public:
    View(test::Job& job, Rank rank) : job_(job), rank_(rank) {}
    [[nodiscard]] int rank() const override { return static_cast<int>(rank_); }
    [[nodiscard]] int size() const override { return static_cast<int>(job_.size_); }
    [[nodiscard]] boot::Secret secret() const override { return job_.secret_; }
    [[nodiscard]] int cores() const override { return static_cast<int>(job_.cores_); }
    [[nodiscard]] SharedMemory own_memory() override { return segment(rank_); }
    [[nodiscard]] SharedMemory memory_of(int peer) const override {
      return segment(static_cast<Rank>(peer));
    }
    void publish(std::span<const std::byte>) override {
      job_.rows_[rank_].pid.store(getpid(), std::memory_order_release);
    }
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
      if (pid(peer) == 0) return std::nullopt;
      return std::span<const std::byte>();
    }
    [[nodiscard]] pid_t pid(int peer) const override {
      return job_.rows_[peer].pid.load(std::memory_order_acquire);
    }
    [[nodiscard]] Life life(int peer) const override {
      return job_.rows_[peer].failed.load(std::memory_order_acquire) ? Life::failed : Life::running;
    }
    [[nodiscard]] unsigned failures() const override { return job_.failures_; }
    void give_up() override { job_.fail(rank_); }

   private:
    [[nodiscard]] SharedMemory segment(Rank rank) const {
      return {job_.fd_, job_.capacity_ * rank, job_.capacity_};
    }
    test::Job& job_;
    Rank rank_;
  };

 private:
  struct Row {
    std::atomic<pid_t> pid = 0;
    std::atomic<bool> failed = false;
  };
  boot::Secret secret_;
  Rank size_;
  unsigned cores_;
  std::uint64_t capacity_;
  int fd_;
  Row* rows_ = nullptr;
  std::atomic<unsigned> failures_ = 0;
};

} // namespace macadam::net::shm::test
