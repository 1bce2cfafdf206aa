// SPDX-License-Identifier: BSD-3-Clause
// Put and get by every path, between processes.
#include "endpoint.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstddef>
#include <numeric>

namespace macadam::net::shm::test {
namespace {

constexpr std::size_t most = std::size_t{5} << 20;
constexpr std::size_t sizes[] = {0, 1, 7, 64, 1000, 4096, 8191, 8192, 8193, 65536, 300001, most};

std::byte pattern(std::size_t index, unsigned round) {
  return static_cast<std::byte>(index * 31 + (index >> 8) * 7 + round);
}
void fill_pattern(std::byte* memory, std::size_t bytes, unsigned round) {
  for (std::size_t i = 0; i < bytes; ++i)
    memory[i] = pattern(i, round);
}
// Index of the first wrong byte; `bytes` if all are right.
std::size_t first_wrong(const std::byte* memory, std::size_t bytes, unsigned round) {
  std::size_t i = 0;
  while (i < bytes && memory[i] == pattern(i, round))
    ++i;
  return i;
}

// What an owner of memory tells the other.
struct Note {
  RemoteMemory memory;
};

void send_note(Endpoint& self, Rank peer, void* memory, std::size_t bytes) {
  const Note note{self.transport().register_cached(memory, bytes)};
  self.send(peer, &note, sizeof note);
}

RemoteMemory receive_note(Endpoint& self) {
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

void forbid_attach() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
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

// How rank 1, which moves the data, may be hindered.
enum class Hindrance { none, forbidden, wrong_pids };

// A core for each rank, as who shares one with the process that it waits for is not streamed to.
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

// Rank 0 owns memory, rank 1 puts and gets.
void run_pair(const base::Settings& settings, Hindrance hindrance,
              const std::function<void(Endpoint&)>& owner,
              const std::function<void(Endpoint&)>& mover) {
  const Cores cores;
  Job job(2, 2);
  run_processes(job, [&](Rank rank) {
    cores.take(rank);
    if (rank == 1 && hindrance == Hindrance::forbidden) forbid_attach();
    WrongPids seen(job, rank, rank == 1 && hindrance == Hindrance::wrong_pids);
    Endpoint self(seen, settings);
    (rank == 0 ? owner : mover)(self);
    // Neither leaves before the other is done.
    self.send_text(1 - rank, "end");
    EXPECT_EQ(self.receive(), "end");
  });
}

std::size_t total_bytes() {
  return std::accumulate(std::begin(sizes), std::end(sizes), std::size_t{0});
}

void own_all_sizes(Endpoint& self, bool mapped) {
  std::vector<std::byte> vector(most + 1);
  std::byte* memory = vector.data();
  if (mapped) memory = static_cast<std::byte*>(self.transport().allocate(most + 1));
  ASSERT_NE(memory, nullptr);
  unsigned round = 0;
  for (const std::size_t bytes : sizes) {
    std::memset(memory, 0, bytes + 1);
    send_note(self, 1, memory, bytes);
    EXPECT_EQ(self.receive(), "put");
    EXPECT_EQ(first_wrong(memory, bytes, ++round), bytes);
    EXPECT_EQ(memory[bytes], std::byte{0}) << "written behind the end";
    fill_pattern(memory, bytes, ++round);
    self.send_text(1, "get");
    EXPECT_EQ(self.receive(), "got");
  }
  if (mapped) self.transport().free(memory);
}

void move_all_sizes(Endpoint& self) {
  std::vector<std::byte> buffer(most + 1);
  unsigned round = 0;
  std::uint64_t cookie = 0;
  engine::Link& link = self.link(0);
  for (const std::size_t bytes : sizes) {
    const RemoteMemory memory = receive_note(self);
    fill_pattern(buffer.data(), bytes, ++round);
    ++cookie;
    EXPECT_TRUE(
        self.finished(self.transport().put(link, buffer.data(), memory, bytes, cookie), cookie));
    std::memset(buffer.data(), 0, buffer.size());
    self.send_text(0, "put");
    EXPECT_EQ(self.receive(), "get");
    ++cookie;
    EXPECT_TRUE(
        self.finished(self.transport().get(link, buffer.data(), memory, bytes, cookie), cookie));
    EXPECT_EQ(first_wrong(buffer.data(), bytes, ++round), bytes);
    EXPECT_EQ(buffer[bytes], std::byte{0}) << "written behind the end";
    self.send_text(0, "got");
  }
}

base::Settings with(base::CopyPath path) {
  base::Settings settings;
  settings.shm_copy = path;
  return settings;
}

TEST(Copies, MappedMemory) {
  run_pair(
      {}, Hindrance::none, [](Endpoint& self) { own_all_sizes(self, true); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_mapped"), 2 * total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied") + self.counter("bytes_streamed"), 0u);
      });
}

TEST(Copies, CrossMemoryAttach) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::none,
      [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_TRUE(self.transport().fallbacks().empty());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 2 * total_bytes());
        EXPECT_EQ(self.counter("bytes_streamed"), 0u);
      });
}

void pipeline(const base::Settings& settings) {
  run_pair(
      settings, Hindrance::none,
      [](Endpoint& self) {
        own_all_sizes(self, false);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes()); // the answers to gets
      },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
      });
}

TEST(Copies, PipelineThroughRings) {
  pipeline(with(base::CopyPath::pipeline));
}

TEST(Copies, PipelineThroughTheQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_rings = 0;
  pipeline(settings);
}

TEST(Copies, PipelineThroughTheSmallestQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_eager = 0;
  settings.shm_queue = settings.shm_ring = 0;
  pipeline(settings);
}

TEST(Copies, Automatic) {
  run_pair(
      {}, Hindrance::none, [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) { move_all_sizes(self); });
}

TEST(Copies, WhereAttachIsForbiddenAllIsStreamedAndTheReasonTold) {
  run_pair(
      {}, Hindrance::forbidden, [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_streamed"), total_bytes());
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
        const auto fallbacks = self.transport().fallbacks();
        ASSERT_EQ(fallbacks.size(), 1u);
        EXPECT_NE(fallbacks[0].find("forbids"), std::string::npos) << fallbacks[0];
      });
}

TEST(Copies, AProcessIdOfAnotherNamespaceIsNotTrusted) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::wrong_pids,
      [](Endpoint& self) { own_all_sizes(self, false); },
      [](Endpoint& self) {
        move_all_sizes(self);
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
        const auto fallbacks = self.transport().fallbacks();
        ASSERT_EQ(fallbacks.size(), 1u);
        EXPECT_NE(fallbacks[0].find("not the peer"), std::string::npos) << fallbacks[0];
      });
}

// An early receiver's data arrive although it computes.
TEST(Copies, APutReachesATargetThatDoesNotPoll) {
  run_pair(
      {}, Hindrance::none,
      [](Endpoint& self) {
        std::vector<std::byte> memory(100000);
        const std::atomic_ref last(memory.back());
        send_note(self, 1, memory.data(), memory.size());
        const double limit = seconds() + 20;
        while (last.load(std::memory_order_acquire) != std::byte{9} && seconds() < limit) {
        }
        EXPECT_EQ(last.load(), std::byte{9});
      },
      [](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        const std::vector<std::byte> data(100000, std::byte{9});
        EXPECT_EQ(self.transport().put(self.link(0), data.data(), memory, data.size(), 1),
                  Posted::done);
        EXPECT_EQ(self.counter("bytes_cross_copied"), data.size());
      });
}

TEST(Copies, APipelinedPutIsPendingUntilTheTargetPolls) {
  Steps steps;
  run_pair(
      with(base::CopyPath::pipeline), Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(most);
        send_note(self, 1, memory.data(), memory.size());
        steps.await(1);
        EXPECT_EQ(self.receive(), "put");
        EXPECT_EQ(first_wrong(memory.data(), most, 1), most);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(most);
        fill_pattern(data.data(), most, 1);
        const Posted posted = self.transport().put(self.link(0), data.data(), memory, most, 5);
        EXPECT_EQ(posted, Posted::pending);
        steps.reach(1);
        EXPECT_TRUE(self.finished(posted, 5));
        self.send_text(0, "put");
      });
}

// In memory of every kind, behind puts that are fragments in the ring, copied by the kernel or
// stored.
void notifications_follow_puts(const base::Settings& settings, bool mapped) {
  constexpr unsigned rounds = 50;
  constexpr std::size_t bytes = 200'000;
  run_pair(
      settings, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> vector(bytes + longest_notified_put);
        auto* const memory = mapped
                                 ? static_cast<std::byte*>(self.transport().allocate(bytes + 256))
                                 : vector.data();
        unsigned seen = 0;
        self.on_put_do = [&](Rank source, std::uint32_t notification, std::size_t notified) {
          EXPECT_EQ(source, 1u);
          EXPECT_EQ(notification, ++seen);
          EXPECT_EQ(notified, notification % 2 == 0 ? longest_notified_put : 1u);
          EXPECT_EQ(first_wrong(memory, bytes, notification), bytes);
          EXPECT_EQ(first_wrong(memory + bytes, notified, notification), notified);
          self.send_text(1, "seen");
        };
        send_note(self, 1, memory, bytes + longest_notified_put);
        self.wait([&] { return seen == rounds; });
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        const RemoteMemory behind{memory.address + bytes, memory.key};
        std::vector<std::byte> data(bytes);
        for (unsigned round = 1; round <= rounds; ++round) {
          fill_pattern(data.data(), bytes, round);
          const Posted posted =
              self.transport().put(self.link(0), data.data(), memory, bytes, round);
          const std::size_t notified = round % 2 == 0 ? longest_notified_put : 1;
          self.wait([&] {
            return self.transport().put_notified(self.link(0), data.data(), behind, notified, 0,
                                                 round) == Posted::done;
          });
          EXPECT_TRUE(self.finished(posted, round));
          EXPECT_EQ(self.receive(), "seen");
        }
      });
}

TEST(Copies, NotificationsFollowPutsByTheKernel) {
  notifications_follow_puts(with(base::CopyPath::cma), false);
}

TEST(Copies, NotificationsFollowStreamsThroughRings) {
  notifications_follow_puts(with(base::CopyPath::pipeline), false);
}

TEST(Copies, NotificationsFollowStreamsThroughTheQueue) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_rings = 0;
  notifications_follow_puts(settings, false);
}

TEST(Copies, NotificationsFollowPutsToMappedMemory) {
  notifications_follow_puts({}, true);
}

// The target says that it waits, but has lost its core.
TEST(Copies, AStreamThatStallsIsFinishedByTheKernel) {
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(most);
        self.transport().idle(1, 0);
        send_note(self, 1, memory.data(), memory.size());
        steps.await(1);
        EXPECT_EQ(self.receive(), "put");
        EXPECT_EQ(first_wrong(memory.data(), most, 1), most);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(most);
        fill_pattern(data.data(), most, 1);
        EXPECT_EQ(self.transport().put(self.link(0), data.data(), memory, most, 5), Posted::done);
        steps.reach(1);
        EXPECT_EQ(self.counter("streams_cut"), 1u);
        EXPECT_GT(self.counter("bytes_streamed"), 0u);
        EXPECT_EQ(self.counter("bytes_streamed") + self.counter("bytes_cross_copied"), most);
        self.send_text(0, "put");
      });
}

TEST(Copies, ThePipelineThatIsSetIsKeptTo) {
  constexpr std::size_t bytes = 200'000;
  constexpr unsigned rounds = 100;
  run_pair(
      with(base::CopyPath::pipeline), Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(bytes);
        unsigned seen = 0;
        self.on_put_do = [&](Rank, std::uint32_t notification, std::size_t notified) {
          EXPECT_EQ(notification, ++seen);
          EXPECT_EQ(notified, bytes);
          EXPECT_EQ(first_wrong(memory.data(), bytes, notification), bytes);
          self.send_text(1, "seen");
        };
        send_note(self, 1, memory.data(), bytes);
        self.wait([&] { return seen == rounds; });
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(bytes);
        for (unsigned round = 1; round <= rounds; ++round) {
          fill_pattern(data.data(), bytes, round);
          const Posted posted =
              self.transport().put_notified(self.link(0), data.data(), memory, bytes, round, round);
          EXPECT_TRUE(posted == Posted::done || posted == Posted::pending);
          if (posted == Posted::pending)
            self.wait([&] { return self.completions.contains(round); });
          EXPECT_EQ(self.receive(), "seen");
        }
        EXPECT_EQ(self.counter("bytes_cross_copied"), 0u);
        EXPECT_EQ(self.counter("bytes_streamed"), rounds * bytes);
      });
}

// Both do nothing else.
TEST(Copies, InAnExchangeOfTwoThatWaitBothStream) {
  constexpr std::size_t bytes = 1'000'000;
  const auto exchange = [&](Endpoint& self, Rank me) {
    const Rank other = 1 - me;
    std::vector<std::byte> in(bytes), out(bytes);
    fill_pattern(out.data(), bytes, 1 + me);
    send_note(self, other, in.data(), bytes);
    const RemoteMemory target = receive_note(self);
    bool arrived = false;
    self.on_put_do = [&](Rank, std::uint32_t, std::size_t notified) {
      EXPECT_EQ(notified, bytes);
      arrived = true;
    };
    self.transport().begin_wait();
    self.send_text(other, "waits");
    while (self.inbox.empty())
      self.transport().poll(self);
    EXPECT_EQ(self.transport().put_notified(self.link(other), out.data(), target, bytes, 5, 7),
              Posted::pending);
    while (!arrived || !self.completions.contains(5))
      self.transport().poll(self);
    self.transport().resume();
    EXPECT_EQ(self.receive(), "waits");
    EXPECT_TRUE(self.completions.at(5));
    EXPECT_EQ(first_wrong(in.data(), bytes, 1 + other), bytes);
    EXPECT_GT(self.counter("bytes_streamed"), 0u);
    EXPECT_EQ(self.counter("bytes_streamed") + self.counter("bytes_cross_copied"), bytes);
  };
  run_pair(
      {}, Hindrance::none, [&](Endpoint& self) { exchange(self, 0); },
      [&](Endpoint& self) { exchange(self, 1); });
}

// A target that seems to wait, but takes nothing out: streams to it are cut, which is slow, so they
// are tried seldom.
TEST(Copies, StreamsThatAreCutAreTriedSeldom) {
  constexpr std::size_t bytes = 1 << 20;
  constexpr unsigned rounds = 128;
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(bytes);
        unsigned seen = 0;
        self.on_put_do = [&](Rank, std::uint32_t notification, std::size_t) {
          seen = notification;
        };
        send_note(self, 1, memory.data(), bytes);
        for (unsigned round = 1; round <= rounds; ++round) {
          self.transport().idle(1, 0);
          steps.reach(2 * static_cast<int>(round) - 1);
          steps.await(2 * static_cast<int>(round));
          self.wait([&] { return seen == round; });
          EXPECT_EQ(self.receive(), "put");
          self.send_text(1, "seen");
        }
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(bytes);
        for (unsigned round = 1; round <= rounds; ++round) {
          steps.await(2 * static_cast<int>(round) - 1);
          const Posted posted =
              self.transport().put_notified(self.link(0), data.data(), memory, bytes, round, round);
          steps.reach(2 * static_cast<int>(round));
          EXPECT_TRUE(self.finished(posted, round));
          self.send_text(0, "put");
          EXPECT_EQ(self.receive(), "seen");
        }
        EXPECT_GT(self.counter("streams_cut"), 0u);
        EXPECT_LT(self.counter("streams_cut"), rounds / 8);
      });
}

// The owner waited when it was asked, but goes to compute before it reads the request.
TEST(Copies, AGetIsTakenBackFromAnOwnerThatLeft) {
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(100000);
        fill_pattern(memory.data(), memory.size(), 3);
        send_note(self, 1, memory.data(), memory.size());
        self.transport().idle(1, 0);
        steps.reach(1);
        steps.await(2);
        self.transport().resume();
        steps.await(3);
        EXPECT_EQ(self.receive(), "got");
        EXPECT_EQ(self.counter("bytes_streamed"), 0u);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(100000);
        steps.await(1);
        self.transport().idle(1, 0);
        const Posted posted =
            self.transport().get(self.link(0), data.data(), memory, data.size(), 8);
        EXPECT_EQ(posted, Posted::pending);
        steps.reach(2);
        EXPECT_TRUE(self.finished(posted, 8));
        EXPECT_EQ(first_wrong(data.data(), data.size(), 3), data.size());
        steps.reach(3);
        EXPECT_EQ(self.counter("taken_back"), 1u);
        self.send_text(0, "got");
      });
}

TEST(Copies, ManyAtATime) {
  for (const auto path :
       {base::CopyPath::automatic, base::CopyPath::cma, base::CopyPath::pipeline}) {
    constexpr std::size_t body = 40;
    constexpr std::size_t fragment = most / body;
    run_pair(
        with(path), Hindrance::none,
        [](Endpoint& self) {
          std::vector<std::byte> memory(most);
          send_note(self, 1, memory.data(), most);
          EXPECT_EQ(self.receive(), "put");
          EXPECT_EQ(first_wrong(memory.data(), most, 1), most);
          EXPECT_EQ(self.receive(), "got");
        },
        [](Endpoint& self) {
          const RemoteMemory memory = receive_note(self);
          std::vector<std::byte> out(most);
          std::vector<std::byte> in(most);
          fill_pattern(out.data(), most, 1);
          std::uint64_t pending = 0;
          for (std::size_t i = 0; i < body; ++i) {
            const RemoteMemory target{memory.address + i * fragment, memory.key};
            pending += self.transport().put(self.link(0), out.data() + i * fragment, target,
                                            fragment, i) == Posted::pending;
          }
          self.wait([&] { return self.completions.size() == pending; });
          self.send_text(0, "put");
          self.transport().idle(1, 0); // waits from here on, so owners may be asked
          for (std::size_t i = 0; i < body; ++i) {
            const RemoteMemory source{memory.address + i * fragment, memory.key};
            pending += self.transport().get(self.link(0), in.data() + i * fragment, source,
                                            fragment, 100 + i) == Posted::pending;
          }
          self.wait([&] { return self.completions.size() == pending; });
          EXPECT_EQ(first_wrong(in.data(), most, 1), most);
          for (const auto& [cookie, ok] : self.completions)
            EXPECT_TRUE(ok) << cookie;
          self.send_text(0, "got");
        });
  }
}

TEST(Copies, BothWaysAtOnce) {
  for (const auto path :
       {base::CopyPath::automatic, base::CopyPath::cma, base::CopyPath::pipeline}) {
    constexpr std::size_t bytes = 1 << 20;
    Job job(2, 2);
    const base::Settings settings = with(path);
    run_processes(job, [&](Rank rank) {
      Job::View view(job, rank);
      Endpoint self(view, settings);
      std::vector<std::byte> in(bytes);
      std::vector<std::byte> out(bytes);
      fill_pattern(out.data(), bytes, rank);
      send_note(self, 1 - rank, in.data(), bytes);
      const RemoteMemory target = receive_note(self);
      for (std::uint64_t i = 0; i < 20; ++i) {
        EXPECT_TRUE(self.finished(
            self.transport().put(self.link(1 - rank), out.data(), target, bytes, i), i));
        self.send_text(1 - rank, "put");
        EXPECT_EQ(self.receive(), "put");
        EXPECT_EQ(first_wrong(in.data(), bytes, 1 - rank), bytes);
        std::memset(in.data(), 0, bytes);
        self.send_text(1 - rank, "next");
        EXPECT_EQ(self.receive(), "next");
      }
    });
  }
}

TEST(Copies, MemoryThatIsNotThereFailsTheOperationOnly) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::none, [](Endpoint&) {},
      [](Endpoint& self) {
        std::vector<std::byte> data(10000);
        const RemoteMemory nowhere{4096, private_key};
        engine::Link& link = self.link(0);
        EXPECT_FALSE(self.finished(self.transport().put(link, data.data(), nowhere, 10000, 1), 1));
        EXPECT_FALSE(self.finished(self.transport().get(link, data.data(), nowhere, 10000, 2), 2));
        EXPECT_NE(self.states[0], engine::PeerState::failed);
        EXPECT_EQ(self.transport().put(link, data.data(), {0, Extent{0, Extent::grain}.key()},
                                       ~std::size_t{0}, 3),
                  Posted::refused);
        EXPECT_EQ(self.transport().get(link, data.data(), {0, 77}, 1, 4), Posted::refused);
      });
}

TEST(Copies, ADeadPeerFailsItsOperationsAndIsReported) {
  Job job(2, 2);
  const pid_t child = fork();
  if (child == 0) {
    Job::View view(job, 1);
    Endpoint self(view, with(base::CopyPath::cma));
    std::vector<std::byte> memory(10000);
    send_note(self, 0, memory.data(), memory.size());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
      pause();
  }
  Job::View view(job, 0);
  Endpoint self(view, with(base::CopyPath::cma));
  const RemoteMemory memory = receive_note(self);
  std::vector<std::byte> data(10000);
  engine::Link& link = self.link(1);
  EXPECT_TRUE(self.finished(self.transport().put(link, data.data(), memory, data.size(), 1), 1));
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_FALSE(self.finished(self.transport().put(link, data.data(), memory, data.size(), 2), 2));
  EXPECT_FALSE(self.finished(self.transport().get(link, data.data(), memory, data.size(), 3), 3));
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  EXPECT_EQ(self.states.size(), 1u);
  waitpid(child, nullptr, 0);
}

} // namespace
} // namespace macadam::net::shm::test
