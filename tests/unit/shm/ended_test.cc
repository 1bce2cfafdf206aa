// SPDX-License-Identifier: BSD-3-Clause
// Processes that end before their time: what they have sent is delivered, those who wait for them
// hear of it, and nobody else is held up.
#include "endpoint.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <thread>

namespace macadam::net::shm::test {
namespace {

// More polls that find nothing than there are between two looks for those that have ended.
void poll_in_vain(Endpoint& self) {
  for (int polls = 0; polls < 40'000; ++polls)
    self.transport().poll(self);
}

base::Settings queue_only() {
  base::Settings settings;
  settings.shm_rings = 0;
  return settings;
}

// Writes into the queue of rank 0 as rank 1 does, step by step.
class SlowSender {
 public:
  explicit SlowSender(const boot::Job& self)
      : front_(map_front(self, 0)),
        buffer_(front_.at(front_.header().queue_offset), front_.header().queue_lines),
        seat_(take_seat(front_.base(), {self.number(), static_cast<Rank>(self.rank())}).value()),
        writer_(front_.header(), buffer_, seats_in(front_.base(), front_.header().seats)[seat_]) {}

  void take(std::uint32_t lines) {
    std::uint64_t gap = 0;
    ASSERT_TRUE(writer_.take(lines, position_, gap));
    ASSERT_EQ(gap, 0u);
    // Data that would pass for the first line of a message in the next lap.
    std::vector<std::uint32_t> stamps(lines * line_bytes / 4 - 4, buffer_.stamp(position_) + 1);
    fill(buffer_.at(position_), Kind::message, {seat_},
         {stamps.data(), 4 * stamps.size(), nullptr, 0});
  }
  void publish() { buffer_.publish(position_); }
  [[nodiscard]] std::byte* front() { return front_.base(); }

 private:
  Mapping front_;
  CircularBuffer buffer_;
  std::uint32_t seat_;
  SharedQueueWriter writer_;
  std::uint64_t position_ = 0;
};

TEST(Ended, ASenderThatTookLinesAndNeverPublishedHoldsNobodyUp) {
  Job job(3);
  Job::View views[] = {{job, 0}, {job, 1}, {job, 2}};
  base::Settings settings = queue_only();
  settings.shm_queue = 0; // the smallest: it goes round soon
  Endpoint self(views[0], settings), dead(views[1], settings), other(views[2], settings);
  dead.send_text(0, "first");
  SlowSender sender(views[1]);
  sender.take(9);
  other.send_text(0, "behind");
  EXPECT_EQ(self.receive(), "first");
  poll_in_vain(self);
  EXPECT_TRUE(self.inbox.empty()) << "its sender may yet publish";
  EXPECT_TRUE(self.states.empty());
  job.fail(1);
  EXPECT_EQ(self.receive(), "behind");
  self.wait([&] { return !self.states.empty(); });
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  EXPECT_EQ(self.states.size(), 1u);
  for (int i = 0; i < 3000; ++i) {
    other.send_text(0, std::to_string(i));
    ASSERT_EQ(self.receive(), std::to_string(i));
  }
}

TEST(Ended, LinesOfASenderThatRunsAreLeftToIt) {
  Job job(3);
  Job::View views[] = {{job, 0}, {job, 1}, {job, 2}};
  Endpoint self(views[0], queue_only()), runs(views[1], queue_only());
  SlowSender sender(views[1]);
  // One that was killed when it wanted the same lines and another was faster.
  const std::uint32_t seat = take_seat(sender.front(), {views[2].number(), 2}).value();
  seats_in(sender.front(), seat + 1)[seat].state({0, 1});
  sender.take(3);
  job.fail(2);
  poll_in_vain(self);
  EXPECT_EQ(self.messages, 0u);
  sender.publish();
  self.wait_messages(1);
}

TEST(Ended, APeerThatWritesToItsRingAlone) {
  Job job(2);
  Job::View views[] = {{job, 0}, {job, 1}};
  base::Settings settings;
  settings.shm_ring_after = 1;
  Endpoint self(views[0], settings), dead(views[1], settings);
  for (int i = 0; i < 20; ++i) {
    dead.send_text(0, "question");
    EXPECT_EQ(self.receive(), "question");
    self.send_text(1, "answer");
    EXPECT_EQ(dead.receive(), "answer");
  }
  EXPECT_GT(self.counter("sent_by_ring") + self.counter("sent_by_mailbox"), 0u);
  dead.send_text(0, "last");
  job.fail(1);
  self.wait([&] { return !self.states.empty(); });
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  EXPECT_EQ(self.receive(), "last");
}

TEST(Ended, APeerThatNeverSentAnything) {
  Job job(2);
  Job::View view(job, 0);
  Endpoint self(view, {});
  job.fail(1);
  self.wait([&] { return !self.states.empty(); });
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
}

TEST(Ended, APutThatWaitsForRoomFails) {
  Job job(2);
  Job::View views[] = {{job, 0}, {job, 1}};
  base::Settings settings;
  settings.shm_copy = base::CopyPath::pipeline;
  Endpoint self(views[0], settings), dead(views[1], settings);
  std::vector<std::byte> from(std::size_t{4} << 20), to(from.size());
  const RemoteMemory target = dead.transport().register_cached(to.data(), to.size());
  ASSERT_EQ(self.transport().put(self.link(1), from.data(), target, from.size(), 7),
            Posted::pending);
  job.fail(1);
  EXPECT_FALSE(self.finished(Posted::pending, 7));
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
}

// The kernel has moved its data, and the target has no room for the notification.
TEST(Ended, APutWhoseTargetIsNotToldFails) {
  Job job(2);
  Job::View views[] = {{job, 0}, {job, 1}};
  base::Settings settings = queue_only();
  settings.shm_queue = 0;
  settings.shm_copy = base::CopyPath::cma;
  Endpoint self(views[0], settings), dead(views[1], settings);
  std::vector<std::byte> from(20'000), to(from.size());
  const RemoteMemory target = dead.transport().register_cached(to.data(), to.size());
  while (self.try_send(1, "x", 1) == Posted::done)
    continue;
  ASSERT_EQ(self.transport().put_notified(self.link(1), from.data(), target, from.size(), 7, 5),
            Posted::pending);
  job.fail(1);
  EXPECT_FALSE(self.finished(Posted::pending, 7));
}

// As by a program that polls seldom.
TEST(Ended, AnExtraLookFindsAtOnceWhoHasEnded) {
  Job job(2);
  Job::View view(job, 0);
  Endpoint self(view, {});
  job.fail(1);
  self.transport().look_after_peers();
  self.transport().poll(self);
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
}

// Who hears of a failure gives away the memory that the peer wrote to: all that is on the way has
// to be there before.
TEST(Ended, WhatItHadSentComesBeforeTheNewsOfItsEnd) {
  constexpr std::uint64_t messages = 100; // more than one poll reads
  Job job(2);
  std::vector<std::byte> memory(20'000);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Job::View view(job, 1);
    base::Settings settings = queue_only();
    settings.shm_copy = base::CopyPath::pipeline;
    Endpoint self(view, settings);
    for (std::uint64_t i = 0; i < messages; ++i)
      self.send_text(0, "message");
    const std::vector<std::byte> data(memory.size(), std::byte{7});
    const RemoteMemory target{reinterpret_cast<std::uint64_t>(memory.data()), private_key};
    self.transport().put_notified(self.link(0), data.data(), target, data.size(), 1, 5);
    write(ready[1], "x", 1);
    for (;;)
      pause();
  }
  Job::View view(job, 0);
  base::Settings settings = queue_only();
  settings.shm_copy = base::CopyPath::cma;
  Endpoint self(view, settings);
  engine::Link& link = self.link(1);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  std::uint64_t before_put = 0;
  self.on_put_do = [&](Rank, std::uint32_t, std::size_t) { before_put = self.messages; };
  // The system says that there is nobody.
  const RemoteMemory nobody{reinterpret_cast<std::uint64_t>(memory.data()), private_key};
  EXPECT_EQ(self.transport().write(link, memory.data(), nobody, 100, 2), Posted::pending);
  while (self.states.empty())
    self.transport().poll(self);
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  EXPECT_EQ(self.messages, messages);
  EXPECT_EQ(before_put, messages) << "the put is not there";
  EXPECT_EQ(memory, std::vector<std::byte>(memory.size(), std::byte{7}));
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

// As one does that has found shared memory damaged, while its program goes on.
TEST(Ended, AProcessThatGivesUpHasFailedForItsNeighboursOnceTheyHaveReadWhatItSent) {
  Job job(3);
  Job::View views[] = {{job, 0}, {job, 1}, {job, 2}};
  Endpoint self(views[0], {}), broken(views[1], {}), other(views[2], {});
  broken.send_text(0, "last");
  broken.transport().abandon(broken);
  self.wait([&] { return self.states.contains(1); });
  EXPECT_EQ(self.states.at(1), engine::PeerState::failed);
  EXPECT_EQ(self.receive(), "last");
  EXPECT_FALSE(self.states.contains(2));
  other.send_text(0, "goes on");
  EXPECT_EQ(self.receive(), "goes on");
}

// ---- Memory that is the program's again.

// A process whose memory a peer, rank 1, fills again and again by the kernel, as long as it may.
class Target {
 public:
  Target() {
    peer_ = fork();
    if (peer_ == 0) write_for_ever();
    std::atomic_ref first(memory_.front());
    self_.wait([&] { return first.load() == peers; });
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() {
    kill(peer_, SIGKILL);
    waitpid(peer_, nullptr, 0);
  }

  [[nodiscard]] Job& job() { return job_; }
  [[nodiscard]] Endpoint& self() { return self_; }
  [[nodiscard]] pid_t peer() const { return peer_; }
  void wait_for_the_end_of_the_peer() {
    self_.wait([&] { return self_.states.contains(1); });
    EXPECT_EQ(self_.states.at(1), engine::PeerState::failed);
  }
  // The program uses its memory, and finds in it what it has written.
  void expect_memory_to_stay() {
    std::memset(memory_.data(), own, memory_.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_TRUE(memory_ == std::vector<char>(memory_.size(), own));
  }

 private:
  static constexpr char own = 1, peers = 7;

  static base::Settings by_the_kernel() {
    base::Settings settings;
    settings.shm_copy = base::CopyPath::cma;
    return settings;
  }
  [[noreturn]] void write_for_ever() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Job::View view(job_, 1);
    Endpoint peer(view, by_the_kernel());
    const std::vector<char> data(memory_.size(), peers);
    const RemoteMemory target{reinterpret_cast<std::uint64_t>(memory_.data()), private_key};
    peer.send_text(0, "here");
    for (;;)
      (void)peer.transport().write(peer.link(0), data.data(), target, data.size(), 1);
  }

  Job job_{2};
  std::vector<char> memory_ = std::vector<char>(std::size_t{16} << 20, 0);
  Job::View view_{job_, 0};
  Endpoint self_{view_, by_the_kernel()};
  pid_t peer_ = -1;
};

// At a random moment of a write, which takes some milliseconds.
void expect_memory_to_stay_after(const std::function<void(Target&)>& end) {
  std::minstd_rand random(1);
  for (int round = 0; round < 12; ++round) {
    Target target;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 4000));
    end(target);
    target.expect_memory_to_stay();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Ended, APeerWritesNoMoreOnceThisProcessHasGivenUp) {
  expect_memory_to_stay_after(
      [](Target& target) { target.self().transport().abandon(target.self()); });
}

TEST(Ended, APeerThatWasKilledWritesNoMoreOnceItHasFailed) {
  expect_memory_to_stay_after([](Target& target) {
    engine::Link& link = target.self().link(1);
    kill(target.peer(), SIGKILL);
    while (!target.self().states.contains(1)) {
      char byte = 0; // the system says at last that there is nobody
      (void)target.self().transport().read(link, &byte, {0, private_key}, 1, 2);
      target.self().transport().poll(target.self());
    }
    target.wait_for_the_end_of_the_peer();
  });
}

// As of a process whose launcher has ended, or a wrapper that the launcher took for it.
TEST(Ended, APeerThatWasOnlySaidToHaveEndedWritesNoMore) {
  expect_memory_to_stay_after([](Target& target) {
    target.job().fail(1);
    target.wait_for_the_end_of_the_peer();
  });
}

} // namespace
} // namespace macadam::net::shm::test
