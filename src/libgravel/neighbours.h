// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "libgravel/exchange.h"
#include "net/shm/directory.h"

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace macadam::libgravel {

// A file descriptor, closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// This machine, in this process's view.
Machine this_machine();

// The processes on this machine and their memory. They are not children of one launcher of ours, so
// no descriptor was inherited: each makes a segment of its own (a memfd: it has no name, and
// nothing is left behind) and opens those of the others through /proc/PID/fd, which the kernel
// allows to the same user. All are opened at the start, while all are known to be there.
class Neighbours final : public net::shm::Directory {
 public:
  Neighbours();

  // What peers must know to open this process's segment.
  void describe(Greeting& own) const;
  // Opens the segments of all on this machine. Throws gravel::Error naming who and why not.
  void meet(std::uint32_t rank, const std::vector<Greeting>& all);

  // Whether the process of a rank on this machine has ended.
  [[nodiscard]] bool has_ended(net::shm::Rank peer) const;

  // net::shm::Directory
  [[nodiscard]] net::shm::Rank rank() const override { return rank_; }
  [[nodiscard]] net::shm::Rank size() const override {
    return static_cast<net::shm::Rank>(rows_.size());
  }
  [[nodiscard]] unsigned local_size() const override {
    return static_cast<unsigned>(neighbours_.size());
  }
  [[nodiscard]] bool is_local(net::shm::Rank peer) const override { return rows_[peer].local; }
  [[nodiscard]] unsigned local_index() const override { return local_index_; }
  [[nodiscard]] net::shm::Rank neighbour(unsigned index) const override {
    return neighbours_[index];
  }
  [[nodiscard]] unsigned cores() const override;
  net::shm::SharedMemory own_segment() override { return {own_.get(), 0, capacity}; }
  void publish() override {}
  net::shm::SharedMemory open_segment(net::shm::Rank peer) override {
    return {rows_[peer].segment.get(), 0, capacity};
  }
  [[nodiscard]] pid_t pid(net::shm::Rank peer) const override { return rows_[peer].process; }
  [[nodiscard]] net::shm::Life life(net::shm::Rank peer) const override {
    return has_ended(peer) ? net::shm::Life::over : net::shm::Life::running;
  }

 private:
  // Of the sparse file, neither memory nor address space.
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 32;

  struct Row {
    bool local = false;
    pid_t process = 0;
    Descriptor segment;
    Descriptor life; // readable once the process has ended; none if the kernel has no pidfd_open()
  };
  static Row open_row(net::shm::Rank rank, const Greeting& peer);

  Descriptor own_;
  net::shm::Rank rank_ = 0;
  unsigned local_index_ = 0;
  std::vector<net::shm::Rank> neighbours_; // and this process
  std::vector<Row> rows_;
};

} // namespace macadam::libgravel
