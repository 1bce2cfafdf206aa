// SPDX-License-Identifier: BSD-3-Clause
// Tasks, batches and the order of tags, apart from any real collective.
#include "base/error.h"
#include "coll/batch.h"
#include "world.h"

#include <gtest/gtest.h>

#include <array>

namespace macadam::test {
namespace {

using coll::Arguments;
using coll::Batch;
using coll::Collective;
using coll::Comm;
using coll::Task;

int& number(Collective& self) {
  return *static_cast<int*>(self.arguments.extra);
}

// Passes a number to the right and adds the one from the left.
Task shift(Comm& comm, int give, int& sum) {
  int taken = 0;
  Batch batch(comm);
  batch.send((comm.rank() + 1) % comm.size(), comm.bytes(&give, sizeof give));
  batch.receive((comm.rank() + comm.size() - 1) % comm.size(), comm.bytes(&taken, sizeof taken));
  co_await batch;
  sum += taken;
}

Task shift_twice(Collective& self) {
  co_await shift(self, 1 + self.rank(), number(self));
  co_await shift(self, 100, number(self));
}

TEST(Task, NestedTasksRunToTheirEnd) {
  World world(3, rough(1));
  std::array<int, 3> sums{};
  const auto errors = world.run(&shift_twice, [&](int rank) {
    Arguments arguments;
    arguments.extra = &sums[static_cast<std::size_t>(rank)];
    return arguments;
  });
  EXPECT_EQ(errors, std::vector<std::string>(3));
  EXPECT_EQ(sums, (std::array<int, 3>{103, 101, 102}));
  EXPECT_TRUE(world.at_rest());
}

Task nothing_to_wait_for(Comm& comm) {
  Batch batch(comm);
  co_await batch;
}
Task at_once(Collective& self) {
  co_await nothing_to_wait_for(self);
  number(self) = 7;
}

TEST(Task, WithNothingToWaitForEndsInsideBegin) {
  World world(1, calm());
  int value = 0;
  Arguments arguments;
  arguments.extra = &value;
  Collective operation(world.resources(0), world.team(0), &at_once, arguments);
  int ends = 0;
  operation.argument = &ends;
  operation.continuation = [](Collective&, void* count) noexcept { ++*static_cast<int*>(count); };
  operation.begin();
  EXPECT_TRUE(operation.complete());
  EXPECT_EQ(value, 7);
  operation.begin(); // persistent: once more
  EXPECT_EQ(ends, 2);
}

Task fails_late(Comm& comm) {
  co_await nothing_to_wait_for(comm);
  int sum = 0;
  co_await shift(comm, 1, sum);
  base::fail(MPI_ERR_OTHER, "as wanted");
}
Task fails_below(Collective& self) {
  co_await fails_late(self);
  number(self) = 1; // not reached
}

TEST(Task, AnErrorGoesUpToTheOperation) {
  World world(2, rough(3));
  int reached = 0;
  const auto errors = world.run(&fails_below, [&](int) {
    Arguments arguments;
    arguments.extra = &reached;
    return arguments;
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, "as wanted"));
  EXPECT_EQ(reached, 0);
  EXPECT_TRUE(world.at_rest());
}

Task fails_at_once(Collective&) {
  base::fail(MPI_ERR_OTHER, "before any coroutine");
}

TEST(Task, AnErrorBeforeTheFirstMessageIsTheOperationsToo) {
  World world(2, calm());
  EXPECT_EQ(world.run(&fails_at_once, [](int) { return Arguments(); }),
            std::vector<std::string>(2, "before any coroutine"));
}

// Rank 0 sends 8 bytes, rank 1 wants `extra` more (or fewer).
Task mismatched(Collective& self) {
  std::array<std::byte, 256> data{};
  const auto bytes = static_cast<std::size_t>(self.rank() == 0 ? 100 : 100 + number(self));
  Batch batch(self);
  if (self.rank() == 0)
    batch.send(1, self.bytes(data.data(), bytes));
  else
    batch.receive(0, self.bytes(data.data(), bytes));
  co_await batch;
}

TEST(Batch, AMessageOfAnotherLengthIsAnError) {
  for (int difference : {-60, -1, 1, 60}) {
    World world(2, calm());
    const auto errors = world.run(&mismatched, [&](int) {
      Arguments arguments;
      arguments.extra = &difference;
      return arguments;
    });
    EXPECT_EQ(errors[0], "");
    EXPECT_EQ(
        errors[1],
        "rank 0 sent 100 bytes, rank 1 needed " + std::to_string(100 + difference) +
            ": all ranks must give counts and types that describe the same data, and call the same "
            "collectives (MACADAM_CHECK=1 names calls that differ)");
    EXPECT_TRUE(world.at_rest());
  }
}

// Rank 0 waits for all others, in one batch or in two that are in flight together.
Task waits_for_all(Collective& self) {
  std::array<int, 3> taken{};
  std::array<Batch, 2> batches{Batch(self), Batch(self)};
  for (std::size_t rank = 1; rank < 4; ++rank)
    batches[number(self) == 1 ? 0 : rank % 2].receive(
        static_cast<int>(rank), self.bytes(&taken[rank - 1], sizeof taken[rank - 1]));
  co_await coll::finish(self, batches);
}

TEST(Batch, OthersAreNotWaitedForOnceARankIsGone) {
  for (int batches : {1, 2}) {
    for (const int gone : {1, 2}) {
      for (const bool before : {false, true}) {
        World world(4, calm());
        Arguments arguments;
        arguments.extra = &batches;
        if (before) {
          world.engine(0).peer(static_cast<engine::Rank>(gone));
          world.network().kill(gone);
          world.run_until([] { return false; });
        }
        Operation operation(world.resources(0), world.team(0), &waits_for_all, arguments);
        world.sequence(0).start_blocking(operation);
        if (!before) {
          EXPECT_FALSE(operation.complete());
          world.network().kill(gone);
        }
        ASSERT_TRUE(world.run_until([&] { return operation.complete(); }));
        EXPECT_EQ(what(operation.error()),
                  "a message to or from rank " + std::to_string(gone) +
                      " of the communicator cannot finish: the other process has ended");
        const auto any = [](const engine::ReceiveRequest&) { return true; };
        EXPECT_EQ(world.engine(0).matcher().next_posted(0, any), nullptr);
        EXPECT_TRUE(world.engine(0).quiet());
      }
    }
  }
}

// Every collective waits until rank 0 has sent it its number.
Task numbered(Collective& self) {
  int& value = number(self);
  Batch batch(self);
  if (self.rank() == 0)
    batch.send(1, self.bytes(&value, sizeof value));
  else
    batch.receive(0, self.bytes(&value, sizeof value));
  co_await batch;
}

TEST(Sequence, ManyOutstandingOperationsReuseTagsInOrder) {
  World world(2, rough(5));
  constexpr std::size_t many = 50;
  std::array<int, many> sent{};
  std::array<int, many> received{};
  std::vector<std::unique_ptr<Operation>> operations;
  const auto start = [&](int rank, int& value) {
    Arguments arguments;
    arguments.extra = &value;
    operations.push_back(
        std::make_unique<Operation>(world.resources(rank), world.team(rank), &numbered, arguments));
    world.sequence(rank).start_nonblocking(*operations.back());
  };
  for (int& value : received)
    start(1, value);
  EXPECT_FALSE(operations.back()->complete());
  for (std::size_t i = 0; i < many; ++i) {
    sent[i] = static_cast<int>(i) + 1;
    start(0, sent[i]);
  }
  EXPECT_TRUE(world.run_until([&] {
    for (auto& operation : operations) {
      if (!operation->complete()) return false;
    }
    return true;
  }));
  EXPECT_EQ(received, sent);
  EXPECT_TRUE(world.at_rest());
}

TEST(FramePool, AFrameIsUsedAgain) {
  coll::FramePool pool;
  void* first = pool.take(200);
  coll::FramePool::give(first);
  EXPECT_EQ(pool.take(210), first);
  void* large = pool.take(1 << 20);
  coll::FramePool::give(large);
  coll::FramePool::give(first);
}

} // namespace
} // namespace macadam::test
