// SPDX-License-Identifier: BSD-3-Clause
// Chunks: who holds one, in which order they are used again, and long data through them.
#include "endpoint.h"

#include <gtest/gtest.h>

namespace macadam::net::shm::test {
namespace {

constexpr ChunkPlan plan{4096, 1024, 8};
const Extent extent{0, 1 << 20};

TEST(Chunks, HaveOneHolderEach) {
  const Mapping memory(extent);
  const Chunks chunks(memory.base(), plan);
  EXPECT_TRUE(chunks.take(3, 0));
  EXPECT_EQ(chunks.holder(3), 0u);
  EXPECT_FALSE(chunks.take(3, 0));
  EXPECT_FALSE(chunks.take(3, 1));
  EXPECT_TRUE(chunks.take(4, 1));
  chunks.free(3);
  EXPECT_EQ(chunks.holder(3), std::nullopt);
  EXPECT_TRUE(chunks.take(3, 1));
}

TEST(Chunks, AreDisjointAndInTheirMemory) {
  const Mapping memory(extent);
  const Chunks chunks(memory.base(), plan);
  std::byte* end = memory.at(plan.offset + plan.count * line_bytes);
  for (std::uint32_t chunk = 0; chunk < plan.count; ++chunk) {
    EXPECT_EQ(chunks.data(chunk), end);
    end = chunks.data(chunk) + plan.bytes;
  }
  EXPECT_EQ(end, memory.at(plan.offset + Chunks::memory_bytes(plan)));
}

TEST(Chunks, ThreadsThatTakeThemNeverMeetInOne) {
  const Mapping memory(extent);
  const Chunks chunks(memory.base(), {4096, 1024, 2});
  std::vector<std::thread> threads;
  std::atomic<int> met = 0;
  for (Rank rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      for (std::uint32_t turn = 0; turn < 20000; ++turn) {
        const std::uint32_t chunk = turn % 2;
        if (!chunks.take(chunk, rank)) continue;
        std::memset(chunks.data(chunk), static_cast<int>(rank), 8);
        for (int i = 0; i < 8; ++i)
          met += chunks.data(chunk)[i] != static_cast<std::byte>(rank) ? 1 : 0;
        chunks.free(chunk);
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(met, 0);
}

// The chunk that a turn gives for a message that fills so many, or -1.
int take(ChunkTurn& turn, const Chunks& chunks, std::size_t needed = 1) {
  std::uint32_t chunk = 0;
  return turn.take(chunks, 0, needed, chunk) ? static_cast<int>(chunk) : -1;
}

TEST(ChunkTurn, GetsLongerOnlyIfTheNextIsNotFree) {
  const Mapping memory(extent);
  const Chunks chunks(memory.base(), plan);
  ChunkTurn turn(2, 5);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(take(turn, chunks), 2);
    chunks.free(2);
  }
  EXPECT_EQ(take(turn, chunks), 2);
  EXPECT_EQ(take(turn, chunks), 3);
  EXPECT_EQ(take(turn, chunks), 4);
  EXPECT_EQ(take(turn, chunks), -1); // the end
  chunks.free(3);
  EXPECT_EQ(take(turn, chunks), -1); // it is not the next
  chunks.free(2);
  EXPECT_EQ(take(turn, chunks), 2);
  EXPECT_EQ(take(turn, chunks), 3);
}

TEST(ChunkTurn, IsAsLongAsAMessage) {
  const Mapping memory(extent);
  const Chunks chunks(memory.base(), plan);
  ChunkTurn turn(0, 4);
  std::vector<int> taken;
  for (int i = 0; i < 8; ++i) {
    taken.push_back(take(turn, chunks, 9));
    ASSERT_GE(taken.back(), 0);
    chunks.free(static_cast<std::uint32_t>(taken.back()));
  }
  EXPECT_EQ(taken, (std::vector{1, 2, 3, 0, 1, 2, 3, 0}));
}

std::vector<int> take_all(WarmChunks& warm) {
  std::vector<int> order;
  ChunkName name;
  while (warm.take(name))
    order.push_back(name.chunk);
  return order;
}

void add(WarmChunks& warm, std::initializer_list<std::uint8_t> chunks) {
  for (const std::uint8_t chunk : chunks)
    warm.add({chunk, true});
}

TEST(WarmChunks, AreTakenInTheOrderOfTheirUse) {
  WarmChunks warm;
  add(warm, {1, 2, 3});
  EXPECT_EQ(take_all(warm), (std::vector{1, 2, 3}));
  EXPECT_EQ(take_all(warm), std::vector<int>{});
}

TEST(WarmChunks, OfWhatIsLeftOverTheLastComesFirst) {
  WarmChunks warm;
  add(warm, {1, 2, 3, 4});
  ChunkName name;
  ASSERT_TRUE(warm.take(name));
  ASSERT_TRUE(warm.take(name));
  EXPECT_EQ(name.chunk, 2);
  add(warm, {7});
  EXPECT_EQ(take_all(warm), (std::vector{3, 4, 7}));
  add(warm, {1, 2});
  ASSERT_TRUE(warm.take(name));
  ASSERT_TRUE(warm.take(name));
  EXPECT_EQ(name.chunk, 2);
}

TEST(WarmChunks, OnlyTheLastFewAreKept) {
  WarmChunks warm;
  for (std::uint8_t chunk = 0; chunk < 20; ++chunk)
    warm.add({chunk, true});
  EXPECT_EQ(take_all(warm), (std::vector{12, 13, 14, 15, 16, 17, 18, 19}));
}

constexpr std::size_t eager = 16 << 10;

std::string text(char letter) {
  return std::string(eager, letter);
}

// Until there is no chunk for more, however often it is tried: a try looks at few of them. How many
// were sent.
std::uint64_t fill_up(Endpoint& self, Rank peer) {
  std::uint64_t sent = 0;
  for (std::uint32_t in_vain = 0; in_vain < Chunks::most; ++in_vain)
    while (self.try_send(peer, text('f').data(), eager) == Posted::done)
      ++sent;
  return sent;
}

TEST(LongMessages, AreBusyWithoutAChunkUntilOneIsRead) {
  Job job(1);
  base::Settings settings;
  settings.shm_eager = eager;
  run_threads(job, settings, [](Endpoint& self, Rank) {
    const std::uint64_t sent = fill_up(self, 0);
    EXPECT_EQ(sent, 24u); // as many chunks, which the fragments of puts make longer than messages
    EXPECT_EQ(self.try_send(0, "short", 5), Posted::done);
    self.wait_messages(sent + 1);
    EXPECT_EQ(fill_up(self, 0), sent);
    self.wait_messages(2 * sent + 1);
  });
}

// Who only answers needs no memory for it.
TEST(LongMessages, AnswersGoThroughTheChunksOfTheQuestions) {
  Job job(2);
  base::Settings settings;
  settings.shm_rings = 0;
  run_threads(job, settings, [](Endpoint& self, Rank rank) {
    const std::size_t before = self.transport().memory_bytes();
    for (int i = 0; i < 200; ++i) {
      const std::string question = text(static_cast<char>('a' + i % 26));
      if (rank == 0) self.send_text(1, question);
      EXPECT_EQ(self.receive(), question);
      if (rank == 1) self.send_text(0, question);
    }
    const std::size_t grown = self.transport().memory_bytes() - before;
    if (rank == 0) { // one chunk, again and again
      EXPECT_GE(grown, std::size_t{128} << 10);
      EXPECT_LT(grown, std::size_t{256} << 10);
    } else {
      EXPECT_LE(grown, sizeof(Seat)); // of the other
    }
  });
}

// The chunks that are taken in turn are all with a rank that does not read yet.
TEST(LongPuts, GoPastARankThatDoesNotRead) {
  Job job(3);
  base::Settings settings;
  settings.shm_eager = eager;
  settings.shm_copy = base::CopyPath::pipeline;
  std::vector<std::byte> out(std::size_t{1} << 20, std::byte{7}), in(out.size());
  std::atomic<bool> arrived = false;
  run_threads(job, settings, [&](Endpoint& self, Rank rank) {
    if (rank == 0) {
      for (std::uint32_t i = 0; i < Chunks::in_turn; ++i)
        EXPECT_EQ(self.try_send(2, text('x').data(), eager), Posted::done);
      const std::string note = self.receive();
      RemoteMemory target;
      ASSERT_EQ(note.size(), sizeof target);
      std::memcpy(&target, note.data(), sizeof target);
      if (self.transport().put(self.link(1), out.data(), target, out.size(), 5) == Posted::pending)
        self.wait([&] { return self.completions.contains(5); });
      self.send_text(1, "put");
    } else if (rank == 1) {
      const RemoteMemory target = self.transport().register_cached(in.data(), in.size());
      self.send(0, &target, sizeof target);
      EXPECT_EQ(self.receive(), "put");
      EXPECT_EQ(in, out);
      arrived = true;
    } else {
      while (!arrived)
        std::this_thread::yield();
      self.wait_messages(Chunks::in_turn);
    }
  });
}

// A rank that does not read holds what was sent to it, and nothing else stands still for that once
// it reads or is gone.
TEST(LongMessages, ChunksOfADeadProcessAreTakenBack) {
  Job job(3, 3);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Job::View view(job, 1);
    Endpoint self(view, {});
    self.send_text(0, "here");
    for (;;)
      pause();
  }
  Job::View view(job, 0);
  base::Settings settings;
  settings.shm_copy = base::CopyPath::cma;
  Endpoint self(view, settings);
  EXPECT_EQ(self.receive(), "here");
  const std::uint64_t all = fill_up(self, 1);
  EXPECT_GT(all, 0u);
  EXPECT_EQ(self.try_send(0, text('x').data(), eager), Posted::busy);
  kill(child, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  std::byte data[100] = {};
  const RemoteMemory memory{reinterpret_cast<std::uint64_t>(data), private_key};
  EXPECT_FALSE(self.finished(self.transport().put(self.link(1), data, memory, 100, 1), 1));
  EXPECT_EQ(self.states[1], engine::PeerState::failed);
  EXPECT_EQ(fill_up(self, 0), all);
  self.wait_messages(all + 1);
  waitpid(child, nullptr, 0);
}

} // namespace
} // namespace macadam::net::shm::test
