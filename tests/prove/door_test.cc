// SPDX-License-Identifier: BSD-3-Clause
// How processes meet at a door (boot/door.h), in every order of their atomic steps: those that
// accept, connect, lose patience and die at any moment. Memory is sequentially consistent, as the
// code asks for.
#include "prove/machine.h"
#include "prove/stepped_atomic.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// The header must see the stand-in; nothing else of the standard library is included after this.
#define atomic stepped_atomic
#include "boot/door.h"
#undef atomic

namespace macadam::prove {
namespace {

using boot::Accepting;
using boot::Asking;
using boot::AtDoor;
using boot::Door;
using boot::Knocking;
using boot::PortMark;
using boot::Visitor;

// Processes, by number: each has a door, a port and a job of its own. Who has met whom, by meeting.
struct World {
  static constexpr std::size_t most = 3, rounds = 3;
  Door doors[most];
  bool dead[most] = {};
  bool over = false; // nobody comes any more
  int running = 0;   // tasks that have not come to their end
  // Meetings are numbered 100 * round + who connects; 0: went elsewhere.
  std::uint32_t accepted[most][rounds] = {};
  std::uint32_t connected[most][rounds] = {};
};

PortMark port_of(std::size_t process) {
  const auto number = static_cast<std::uint32_t>(process);
  return {7 + number, 9 + number};
}

constexpr int for_ever = -1;

// The end of a wait at the door: `patience` looks in vain at most.
template <class Look, class Leave>
AtDoor wait_for(const World& world, int patience, Look&& look, Leave&& leave) {
  AtDoor at = AtDoor::waits;
  if (patience == for_ever) {
    Machine::now->look_until([&] {
      at = look();
      return at != AtDoor::waits || world.over;
    });
  }
  for (; at == AtDoor::waits && patience > 0; --patience)
    at = look();
  return at == AtDoor::waits ? leave() : at;
}

void accept(World& world, std::size_t self, std::size_t round, int patience) {
  const auto door_of = [&world](Visitor visitor) -> Door* {
    return visitor.job < World::most && !world.dead[visitor.job] ? &world.doors[visitor.job]
                                                                 : nullptr;
  };
  Accepting accepting(world.doors[self], port_of(self));
  const AtDoor at = wait_for(
      world, patience, [&] { return accepting.look(door_of); },
      [&] { return accepting.leave(door_of); });
  if (at == AtDoor::met) {
    if (accepting.visitor().job != accepting.meeting() % 100)
      Machine::now->fail("it was met by another one than has asked");
    world.accepted[self][round] = accepting.meeting();
  }
}

void connect(World& world, std::size_t self, std::size_t other, std::size_t round, int patience) {
  const auto number = static_cast<std::uint32_t>(self);
  const auto meeting = static_cast<std::uint32_t>(100 * (round + 1)) + number;
  Knocking knocking(world.doors[self], world.doors[other], port_of(other), {number, 0}, meeting);
  const AtDoor at = wait_for(
      world, patience, [&] { return knocking.look(); }, [&] { return knocking.leave(); });
  if (at == AtDoor::met) world.connected[self][round] = meeting;
}

class DoorTest : public testing::Test {
 protected:
  // Runs what `bodies` makes for a world in every order; `check` says what is wrong at the end. An
  // order that comes to a state that was seen before goes no further.
  void explore(const std::function<std::vector<std::function<void()>>(World&)>& bodies,
               const std::function<std::string(const World&)>& check) {
    do {
      World world;
      auto tasks = bodies(world);
      world.running = static_cast<int>(tasks.size());
      for (auto& task : tasks)
        task = [&world, body = std::move(task)] {
          body();
          --world.running;
        };
      machine_.run(std::move(tasks), {{&world, sizeof world}});
      if (machine_.failure.empty() && world.running == 0) {
        machine_.fail(check(world));
        ++ends_;
      }
      ASSERT_EQ(machine_.failure, "") << "in run " << machine_.runs;
    } while (machine_.next());
    EXPECT_GT(machine_.runs, 1u);
    EXPECT_GT(ends_, 0u);
  }

  Machine machine_{};
  std::uint64_t ends_ = 0;
};

// Whoever runs to the end has met the other exactly if that has met it.
std::string both_or_none(const World& world, std::size_t accepts,
                         const std::vector<std::size_t>& connect) {
  std::vector<std::uint32_t> theirs, ours;
  for (const std::uint32_t meeting : world.accepted[accepts])
    if (meeting != 0) ours.push_back(meeting);
  for (const std::size_t each : connect)
    for (const std::uint32_t meeting : world.connected[each])
      if (meeting != 0) theirs.push_back(meeting);
  std::sort(ours.begin(), ours.end());
  std::sort(theirs.begin(), theirs.end());
  return ours == theirs ? "" : "one has met, the other has not";
}

TEST_F(DoorTest, brings_two_together_that_wait) {
  explore(
      [](World& world) -> std::vector<std::function<void()>> {
        return {[&] { accept(world, 0, 0, for_ever); }, [&] { connect(world, 1, 0, 0, for_ever); }};
      },
      [](const World& world) {
        return world.accepted[0][0] == 101 && world.connected[1][0] == 101 ? ""
                                                                           : "they have not met";
      });
}

TEST_F(DoorTest, tells_both_the_same_whoever_gives_up) {
  for (const int patience : {0, 1, 2})
    for (const int others : {1, 2, 3}) {
      machine_ = {};
      explore(
          [=](World& world) -> std::vector<std::function<void()>> {
            return {[&world, patience] { accept(world, 0, 0, patience); },
                    [&world, others] { connect(world, 1, 0, 0, others); },
                    [&world] { connect(world, 2, 0, 0, 2); }};
          },
          [](const World& world) {
            return both_or_none(world, 0, {1, 2});
          });
    }
}

TEST_F(DoorTest, is_for_two_that_connect_to_each_other_at_once) {
  explore(
      [](World& world) -> std::vector<std::function<void()>> {
        return {[&] { accept(world, 0, 0, for_ever); }, [&] { connect(world, 0, 1, 0, for_ever); },
                [&] { accept(world, 1, 0, for_ever); }, [&] { connect(world, 1, 0, 0, for_ever); }};
      },
      [](const World& world) {
        return world.accepted[0][0] == 101 && world.connected[1][0] == 101 &&
                       world.accepted[1][0] == 100 && world.connected[0][0] == 100
                   ? ""
                   : "they have not met both ways";
      });
}

// Each round is a meeting of its own, and none is taken for another.
TEST_F(DoorTest, is_used_again_in_the_next_round) {
  for (const int patience : {2, for_ever}) {
    machine_ = {};
    explore(
        [=](World& world) -> std::vector<std::function<void()>> {
          return {[&world] {
                    for (std::size_t round = 0; round < World::rounds; ++round)
                      accept(world, 0, round, for_ever);
                  },
                  [&world, patience] {
                    for (std::size_t round = 0; round < World::rounds; ++round)
                      connect(world, 1, 0, round, patience);
                    world.over = true;
                    Machine::now->changed();
                    Machine::now->step(0);
                  }};
        },
        [](const World& world) { return both_or_none(world, 0, {1}); });
  }
}

// One that dies in between holds up nobody.
TEST_F(DoorTest, is_left_by_those_whose_other_side_dies) {
  for (const std::size_t victim : {0, 1}) {
    machine_ = {};
    explore(
        [=](World& world) -> std::vector<std::function<void()>> {
          return {[&world, victim] { accept(world, 0, 0, victim == 0 ? for_ever : 2); },
                  [&world, victim] { connect(world, 1, 0, 0, victim == 1 ? for_ever : 2); },
                  [&world, victim] {
                    Machine::now->step(0);
                    world.dead[victim] = true;
                    Machine::now->kill(victim);
                    Machine::now->changed();
                  }};
        },
        [](const World&) { return std::string(); });
  }
}

// What processes and mpiexec tell each other by sockets at a port of process 0, when the others
// connect: each packet at once, in order.
struct Port {
  static constexpr std::size_t most = World::most;
  std::size_t queue[most] = {}, waiting = 0; // that connect, in the order in which they came
  std::uint32_t asked[most] = {};            // meeting, until its connection is closed
  std::uint32_t answer[most] = {};           // mpiexec's, for one that connects
  std::uint32_t introduced[most] = {};       // to the owner, in this order
  std::size_t introductions = 0, read = 0;
  bool accepts = false;       // the owner asks mpiexec
  std::uint32_t accepted = 0; // mpiexec's answer to that
  int by_mpiexec = 0;         // such answers
};

struct WithMpiexec {
  World world;
  Port port;
};

// `patience`: as for wait_for().
void connect_by_mpiexec(WithMpiexec& all, std::size_t self, int patience) {
  Port& port = all.port;
  const auto meeting = static_cast<std::uint32_t>(100 + self);
  Asking asking(all.world.doors[self], port_of(0), meeting);
  port.asked[self] = meeting;
  port.queue[port.waiting++] = self;
  if (port.waiting == 1) port.introduced[port.introductions++] = meeting;
  Machine::now->changed();
  Machine::now->step(0);
  const auto look = [&] { return asking.accepted() || port.answer[self] != 0; };
  if (patience == for_ever)
    Machine::now->look_until([&] { return look() || all.world.over; });
  else
    for (bool over = false; patience > 0 && !over; --patience)
      over = look();
  const bool by_owner = !asking.leave();
  port.asked[self] = 0; // no answer can be sent any more, and one that has come is still taken
  if (by_owner && port.answer[self] != 0) Machine::now->fail("both have answered");
  if (by_owner || port.answer[self] != 0) all.world.connected[self][0] = meeting;
  Machine::now->changed();
}

// The owner of the port.
void accept_by_introduction(WithMpiexec& all, std::size_t round) {
  Port& port = all.port;
  while (port.read < port.introductions) {
    const std::uint32_t meeting = port.introduced[port.read++];
    if (boot::door::answer(all.world.doors[meeting % 100], port_of(0), meeting,
                           boot::door::accepted)) {
      all.world.accepted[0][round] = meeting;
      return;
    }
  }
  port.accepts = true;
  Machine::now->changed();
  Machine::now->step(0);
  Machine::now->look_until([&] { return port.accepted != 0 || all.world.over; });
  port.accepts = false;
  all.world.accepted[0][round] = port.accepted;
  port.accepted = 0;
  if (all.world.accepted[0][round] != 0) ++port.by_mpiexec;
}

void be_mpiexec(WithMpiexec& all) {
  Port& port = all.port;
  while (!all.world.over) {
    Machine::now->look_until([&] { return (port.accepts && port.waiting > 0) || all.world.over; });
    if (!port.accepts || port.waiting == 0) continue;
    const std::size_t first = port.queue[0];
    std::copy(port.queue + 1, port.queue + port.waiting, port.queue);
    port.queue[--port.waiting] = 0;
    const auto meeting = static_cast<std::uint32_t>(100 + first);
    if (!boot::door::answer(all.world.doors[first], port_of(0), meeting, boot::door::answered))
      continue;
    if (port.asked[first] == 0) continue; // has gone
    port.answer[first] = meeting;
    port.accepted = meeting;
    port.accepts = false;
    Machine::now->changed();
    Machine::now->step(meeting);
  }
}

TEST_F(DoorTest, is_where_the_owner_finds_one_that_waits_with_mpiexec) {
  std::uint64_t by_owner = 0, by_mpiexec = 0;
  for (const int patience : {0, 1, 2, for_ever}) {
    machine_ = {};
    do {
      WithMpiexec all;
      World& world = all.world;
      world.running = 2; // that connect
      bool accepts = true;
      const auto connect = [&](std::size_t self, int looks) {
        return [&, self, looks] {
          connect_by_mpiexec(all, self, looks);
          if (--world.running == 0) world.over = true;
          Machine::now->changed();
        };
      };
      machine_.run({[&] {
                      accept_by_introduction(all, 0);
                      accept_by_introduction(all, 1);
                      accepts = false;
                      world.over = true;
                      Machine::now->changed();
                    },
                    connect(1, patience), connect(2, 2), [&] { be_mpiexec(all); }},
                   {{&all, sizeof all}});
      if (world.running == 0 && !accepts && machine_.failure.empty()) {
        machine_.fail(both_or_none(world, 0, {1, 2}));
        ++(all.port.by_mpiexec == 0 ? by_owner : by_mpiexec);
      }
      ASSERT_EQ(machine_.failure, "") << "in run " << machine_.runs;
    } while (machine_.next());
    EXPECT_GT(machine_.runs, 1u);
  }
  EXPECT_GT(by_owner, 0u);
  EXPECT_GT(by_mpiexec, 0u);
}

} // namespace
} // namespace macadam::prove
