// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What the tests of put and get between two processes have in common.
#include "endpoint.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>

namespace macadam::net::shm::test {

inline constexpr std::size_t most = std::size_t{5} << 20; // bytes of an operation

inline std::byte pattern(std::size_t index, unsigned round) {
  return static_cast<std::byte>(index * 31 + (index >> 8) * 7 + round);
}
inline void fill_pattern(std::byte* memory, std::size_t bytes, unsigned round) {
  for (std::size_t i = 0; i < bytes; ++i)
    memory[i] = pattern(i, round);
}
// Index of the first wrong byte; `bytes` if all are right.
inline std::size_t first_wrong(const std::byte* memory, std::size_t bytes, unsigned round) {
  std::size_t i = 0;
  while (i < bytes && memory[i] == pattern(i, round))
    ++i;
  return i;
}

// What an owner of memory tells the other.
struct Note {
  RemoteMemory memory;
};

inline void send_note(Endpoint& self, Rank peer, void* memory, std::size_t bytes) {
  const Note note{self.transport().register_cached(memory, bytes)};
  self.send(peer, &note, sizeof note);
}

inline RemoteMemory receive_note(Endpoint& self) {
  const std::string message = self.receive();
  Note note;
  EXPECT_EQ(message.size(), sizeof note);
  std::memcpy(&note, message.data(), sizeof note);
  return note.memory;
}

// The job of a process that lives in another pid namespace than it believes.
class WrongPids final : public boot::Job {
 public:
  WrongPids(test::Job& job, Rank rank, bool wrong) : view_(job, rank), wrong_(wrong) {}
  [[nodiscard]] int rank() const override { return view_.rank(); }
  [[nodiscard]] int size() const override { return view_.size(); }
  [[nodiscard]] boot::Secret secret() const override { return view_.secret(); }
  [[nodiscard]] int cores() const override { return view_.cores(); }
  [[nodiscard]] SharedMemory own_memory() override { return view_.own_memory(); }
  [[nodiscard]] SharedMemory memory_of(int peer) const override { return view_.memory_of(peer); }
  void publish(std::span<const std::byte> address) override { view_.publish(address); }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
    return view_.fetch(peer);
  }
  [[nodiscard]] pid_t pid(int peer) const override { return wrong_ ? getpid() : view_.pid(peer); }

 private:
  test::Job::View view_;
  bool wrong_;
};

inline void forbid_attach(int error = EPERM) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

// Steps that the two processes go through together, without messages.
class Steps {
 public:
  Steps()
      : step_(new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                  std::atomic<int>(0)) {}
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  ~Steps() { munmap(step_, 4096); }
  void reach(int step) { *step_ = step; }
  void await(int step) const {
    while (*step_ < step)
      usleep(100);
  }

 private:
  std::atomic<int>* step_;
};

// Rank 0, of whose memory rank 1 writes all with pattern 1 while rank 0 does not poll.
inline void take_put(Endpoint& self, const Steps& steps) {
  std::vector<std::byte> memory(most);
  send_note(self, 1, memory.data(), memory.size());
  steps.await(1);
  EXPECT_EQ(self.receive(), "put");
  EXPECT_EQ(first_wrong(memory.data(), most, 1), most);
}

// How rank 1, which moves the data, may be hindered.
enum class Hindrance { none, forbidden, wrong_pids };

// A core for each rank, as a process that shares one with the process that it waits for is not
// streamed to, unless all do.
class Cores {
 public:
  Cores() { sched_getaffinity(0, sizeof all_, &all_); }
  Cores(const Cores&) = delete;
  Cores& operator=(const Cores&) = delete;
  ~Cores() { sched_setaffinity(0, sizeof all_, &all_); }

  void take(Rank rank) const {
    cpu_set_t own;
    CPU_ZERO(&own);
    for (unsigned core = 0, seen = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &all_) && seen++ == rank) CPU_SET(core, &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof own, &own), 0) << "two processes need two cores";
  }

 private:
  cpu_set_t all_;
};

// Rank 0 owns memory, rank 1 puts and gets; on one core or on two.
inline void run_pair(const base::Settings& settings, Hindrance hindrance,
                     const std::function<void(Endpoint&)>& owner,
                     const std::function<void(Endpoint&)>& mover, unsigned count = 2) {
  const Cores cores;
  Job job(2, count);
  run_processes(job, [&](Rank rank) {
    cores.take(rank % count);
    if (rank == 1 && hindrance == Hindrance::forbidden) forbid_attach();
    WrongPids seen(job, rank, rank == 1 && hindrance == Hindrance::wrong_pids);
    Endpoint self(seen, settings);
    (rank == 0 ? owner : mover)(self);
    // Neither leaves before the other is done.
    self.send_text(1 - rank, "end");
    EXPECT_EQ(self.receive(), "end");
  });
}

inline base::Settings with(base::CopyPath path) {
  base::Settings settings;
  settings.shm_copy = path;
  return settings;
}

} // namespace macadam::net::shm::test
