// SPDX-License-Identifier: BSD-3-Clause
// Two processes that wait for each other on one core part, where there are cores enough.
#include "net/shm/wait.h"

#include "fake_system.h"

#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <thread>
#include <vector>

namespace macadam::net::shm::test {
namespace {

// A machine on which a process is where the test puts it.
class Machine final : public FakeSystem {
 public:
  unsigned here = 0, running = 0;
  struct Move {
    unsigned from;
    std::vector<unsigned> taken;
    bool operator==(const Move&) const = default;
  };
  std::vector<Move> moves;

  [[nodiscard]] unsigned core() noexcept override { return here; }
  [[nodiscard]] unsigned running_threads() noexcept override { return running; }
  bool leave(unsigned core, std::span<const unsigned> taken) noexcept override {
    moves.push_back({core, {taken.begin(), taken.end()}});
    return true;
  }
};

class Cores : public testing::Test {
 protected:
  // A process of this machine, on the core.
  SegmentHeader& neighbour(unsigned core, bool waits = true) {
    SegmentHeader& made = *others.emplace_back(std::make_unique<SegmentHeader>());
    made.waiting = waits ? 1 + core : 0;
    return made;
  }
  SegmentHeader& sleeper(unsigned core) {
    SegmentHeader& made = neighbour(core);
    made.asleep = 1;
    return made;
  }
  // A wait that so many yields end, and the beginning of the next.
  void wait(Waiter& waiter, unsigned yields) {
    unsigned fruitless = 0;
    while (waiter.counts().yields < all_yields + yields)
      waiter.idle(++fruitless, 0);
    all_yields += yields;
    waiter.idle(1, 0);
  }
  Waiter make(SharedCores shared = {}) { return Waiter(machine, own, shared, 0); }

  Machine machine;
  SegmentHeader own;
  std::vector<std::unique_ptr<SegmentHeader>> others;
  std::uint64_t all_yields = 0;
};

TEST_F(Cores, TheHigherRankLeavesTheCoreThatTwoWaitOn) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(3), false);
  wait(waiter, 1);
  EXPECT_EQ(machine.moves, (std::vector<Machine::Move>{{0, {0, 3}}}));
  EXPECT_EQ(waiter.counts().cores_left, 1u);
}

TEST_F(Cores, TheLowerRankStays) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), false);
  wait(waiter, 1);
  EXPECT_TRUE(machine.moves.empty());
}

TEST_F(Cores, NobodyLeavesAPeerThatComputesOrIsElsewhere) {
  Waiter waiter = make();
  waiter.meet(neighbour(0, false), true);
  waiter.meet(neighbour(1), true);
  wait(waiter, 2);
  EXPECT_TRUE(machine.moves.empty());
}

TEST_F(Cores, AWaitThatYieldsDidNotEndSaysNothing) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.idle(1, 0);
  wait(waiter, 5);
  EXPECT_TRUE(machine.moves.empty());
}

// A machine of two cores for four processes.
class FewCores : public Cores {
 protected:
  // The moves of a process that waits for some time.
  std::vector<Machine::Move> moves_of(Waiter& waiter) {
    for (unsigned i = 0; i < 40; ++i) {
      for (unsigned fruitless = 1; fruitless < 20; ++fruitless)
        waiter.idle(fruitless, 0);
      waiter.resume();
      machine.time += 1e-3;
    }
    return machine.moves;
  }
  Waiter make() { return Cores::make({2, 4}); }
};

TEST_F(FewCores, TheThirdOfACoreLeaves) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(1), false);
  const std::vector<Machine::Move> moves = moves_of(waiter); // the machine leaves it where it is
  ASSERT_FALSE(moves.empty());
  EXPECT_EQ(moves[0], (Machine::Move{0, {0, 0}}));
}

TEST_F(FewCores, OthersStay) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(0), false);
  waiter.meet(sleeper(0), true);
  EXPECT_TRUE(moves_of(waiter).empty());
}

TEST_F(FewCores, NobodyLeavesWhereAnotherProgramWantsACore) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(0), true);
  machine.running = 5;
  EXPECT_TRUE(moves_of(waiter).empty());
  machine.running = 4; // it, the two, and one that it has not met
  EXPECT_FALSE(moves_of(waiter).empty());
}

TEST_F(FewCores, ThoseOfTheJobThatSleepWantNone) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  waiter.meet(neighbour(0), true);
  waiter.meet(sleeper(1), false);
  machine.running = 4;
  EXPECT_TRUE(moves_of(waiter).empty());
}

TEST_F(Cores, TheSchedulerHasTimeToBringItBack) {
  Waiter waiter = make();
  waiter.meet(neighbour(0), true);
  wait(waiter, 1);
  wait(waiter, 1);
  EXPECT_EQ(machine.moves.size(), 1u);
  machine.time += 1;
  wait(waiter, 1);
  EXPECT_EQ(machine.moves.size(), 2u);
}

// The system's own: a thread is elsewhere at once, and may run where it could.
TEST(RealCores, AMoveLeavesNoBinding) {
  System& system = real_system();
  std::thread([&] {
    cpu_set_t before, after;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "needs two cores";
    // The scheduler may move it back between the two looks.
    bool moved = false;
    for (int i = 0; i < 100 && !moved; ++i) {
      const unsigned here = system.core();
      system.leave(here, {&here, 1});
      moved = system.core() != here;
    }
    EXPECT_TRUE(moved);
    ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT_TRUE(CPU_EQUAL(&before, &after));

    cpu_set_t one;
    CPU_ZERO(&one);
    const unsigned here = system.core();
    CPU_SET(here, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    system.leave(here, {}); // bound by the user: stays
    EXPECT_EQ(system.core(), here);
  }).join();
}

} // namespace
} // namespace macadam::net::shm::test
