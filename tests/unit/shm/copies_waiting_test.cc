// SPDX-License-Identifier: BSD-3-Clause
// Put and get where a process waits, stalls, leaves or dies, or where many are under way.
#include "copies.h"

#include <algorithm>
#include <signal.h>

namespace macadam::net::shm::test {
namespace {

// Rank 1 writes all of a memory of rank 0, which does not poll, after each has done what is given
// for it. The source takes the target for a process that waits.
template <class Target, class Source>
void put_to_one_that_does_not_poll(Target target, Source source) {
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        target(self.transport());
        take_put(self, steps);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(most);
        fill_pattern(data.data(), most, 1);
        source(self.transport());
        EXPECT_EQ(self.transport().put(self.link(0), data.data(), memory, most, 5), Posted::done);
        steps.reach(1);
        EXPECT_EQ(self.counter("streams_cut"), 1u);
        EXPECT_GT(self.counter("bytes_streamed"), 0u);
        EXPECT_EQ(self.counter("bytes_streamed") + self.counter("bytes_cross_copied"), most);
        self.send_text(0, "put");
      });
}

void wait_and_pause(Transport& transport) {
  transport.idle(1, 0);
  transport.pause_wait();
}

// The target says that it waits, but has lost its core.
TEST(Copies, AStreamThatStallsIsFinishedByTheKernel) {
  put_to_one_that_does_not_poll([](Transport& target) { target.idle(1, 0); }, [](Transport&) {});
}

TEST(Copies, APutInAPauseIsNotLeftForTheNextWait) {
  put_to_one_that_does_not_poll(wait_and_pause, wait_and_pause);
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

// The other has its turn when this one yields. Another program may take the core for longer than
// the patience of one stream, but not of all.
TEST(Copies, OfTwoThatWaitOnOneCoreOneStreams) {
  constexpr std::size_t bytes = most;
  constexpr unsigned most_rounds = 100;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(bytes);
        unsigned last = 0;
        self.on_put_do = [&](Rank, std::uint32_t notification, std::size_t) {
          EXPECT_EQ(first_wrong(memory.data(), bytes, notification), bytes);
          last = notification;
        };
        send_note(self, 1, memory.data(), bytes);
        self.wait([&] { return !self.inbox.empty(); });
        EXPECT_EQ(std::to_string(last), self.receive());
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(bytes);
        unsigned round = 0;
        bool went_on = false;
        while (!went_on && ++round < most_rounds) {
          fill_pattern(data.data(), bytes, round);
          const std::uint64_t before = self.counter("bytes_streamed");
          self.transport().begin_wait();
          const Posted posted =
              self.transport().put_notified(self.link(0), data.data(), memory, bytes, round, round);
          EXPECT_TRUE(self.finished(posted, round));
          went_on = self.counter("bytes_streamed") - before > bytes / 2; // chunks hold much less
        }
        EXPECT_TRUE(went_on);
        self.send_text(0, std::to_string(round));
      },
      1);
}

TEST(Copies, ASenderThatSleepsForRoomIsWokenWhenThereIsSome) {
  base::Settings settings = with(base::CopyPath::pipeline);
  settings.shm_rings = 0; // so that nothing else wakes it
  run_pair(
      settings, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(most);
        send_note(self, 1, memory.data(), most);
        const std::uint64_t before = self.counter("wakes");
        while (self.inbox.empty()) {
          self.transport().poll(self);
          usleep(5000); // in which the other goes to sleep
        }
        EXPECT_GT(self.counter("wakes"), before);
        EXPECT_EQ(self.receive(), "put");
        EXPECT_EQ(first_wrong(memory.data(), most, 1), most);
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(most);
        fill_pattern(data.data(), most, 1);
        EXPECT_TRUE(
            self.finished(self.transport().put(self.link(0), data.data(), memory, most, 5), 5));
        self.send_text(0, "put");
      });
}

// A target that seems to wait, but takes nothing out: streams to it are cut, which is slow, so they
// are tried seldom.
TEST(Copies, StreamsThatAreCutAreTriedSeldom) {
  constexpr std::size_t bytes = 2 << 20; // more than all chunks hold
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
          EXPECT_TRUE(self.finished(posted, round));
          steps.reach(2 * static_cast<int>(round));
          self.send_text(0, "put");
          EXPECT_EQ(self.receive(), "seen");
        }
        EXPECT_GT(self.counter("streams_cut"), 0u);
        EXPECT_LT(self.counter("streams_cut"), rounds / 8);
      });
}

// The owner waited when it was asked, but goes to compute before it reads the request.
void take_a_get_back_after(void (Transport::*end_wait)()) {
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
        (self.transport().*end_wait)();
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

TEST(Copies, AGetIsTakenBackFromAnOwnerThatLeft) {
  take_a_get_back_after(&Transport::resume);
}

TEST(Copies, AGetIsTakenBackFromAnOwnerInAPause) {
  take_a_get_back_after(&Transport::pause_wait);
}

TEST(Copies, AnOwnerInAPauseIsNotAskedForData) {
  Steps steps;
  run_pair(
      {}, Hindrance::none,
      [&](Endpoint& self) {
        std::vector<std::byte> memory(100);
        fill_pattern(memory.data(), memory.size(), 3);
        send_note(self, 1, memory.data(), memory.size());
        wait_and_pause(self.transport());
        steps.reach(1);
        steps.await(2);
        EXPECT_EQ(self.receive(), "got");
      },
      [&](Endpoint& self) {
        const RemoteMemory memory = receive_note(self);
        std::vector<std::byte> data(100);
        steps.await(1);
        EXPECT_EQ(self.transport().get(self.link(0), data.data(), memory, data.size(), 8),
                  Posted::done);
        EXPECT_EQ(first_wrong(data.data(), data.size(), 3), data.size());
        steps.reach(2);
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

TEST(Copies, MemoryThatCannotBeMappedIsRefused) {
  run_pair(
      with(base::CopyPath::cma), Hindrance::none, [](Endpoint&) {},
      [](Endpoint& self) {
        std::vector<std::byte> data(10000);
        engine::Link& link = self.link(0);
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
