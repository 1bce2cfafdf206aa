// SPDX-License-Identifier: BSD-3-Clause
// Many collectives of all kinds outstanding at once, started by each rank at its own pace.
#include "base/error.h"
#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace macadam::test {
namespace {

using coll::Arguments;
using coll::Blocks;
using coll::Collective;

const datatype::Op& sum() {
  static datatype::PredefinedOps all;
  return all[MPI_SUM];
}

Blocks blocks(std::vector<int>& data, int count) {
  return {data.data(), count, &types()[MPI_INT], {}, {}, nullptr};
}

// Shared memory or none ...
LoopbackOptions any_network(std::uint64_t seed) {
  return seed % 3 == 0 ? rough(seed) : sharing(rough(seed));
}
// ... and half of the time ranks are on several machines.
void place(World& world, std::uint64_t seed) {
  if (seed % 2 == 0) world.place(any_placement(world.size(), world.random));
}

// One collective of the program: which, how long, from where. Each rank has memory of its own.
class Step {
 public:
  Step(World& world, int number)
      : kind_(world.random() % 7), n_(world.size()),
        count_(static_cast<int>(world.random() % 3 == 0 ? 400 : world.random() % 20)),
        root_(static_cast<int>(world.random() % static_cast<unsigned>(n_))), number_(number),
        out_(static_cast<std::size_t>(n_)), in_(static_cast<std::size_t>(n_)) {
    for (int rank = 0; rank < n_; ++rank) {
      const auto room = static_cast<std::size_t>(count_ * n_);
      in(rank).assign(room, -1);
      for (int i = 0; i < count_ * n_; ++i)
        out(rank).push_back(value(rank, i));
      if (kind_ == bcast_ && rank == root_) in(rank) = out(rank);
    }
  }

  std::unique_ptr<Operation> make(World& world, int rank) {
    static constexpr std::array<Collective::Run, 7> runs = {
        &coll::barrier, &coll::bcast,    &coll::allreduce, &coll::allgather,
        &coll::gather,  &coll::alltoall, &coll::scan};
    Arguments a;
    a.send = blocks(out(rank), count_);
    a.receive = blocks(in(rank), count_);
    a.op = &sum();
    a.root = root_;
    return std::make_unique<Operation>(world.resources(rank), world.team(rank), world.boards(rank),
                                       world.machines(rank), runs[kind_], a);
  }

  void check(int rank) {
    for (int i = 0; i < count_; ++i) {
      switch (kind_) {
      case bcast_:
        EXPECT_EQ(at(rank, i), value(root_, i));
        break;
      case allreduce_:
        EXPECT_EQ(at(rank, i), sum_of(n_, i));
        break;
      case scan_:
        EXPECT_EQ(at(rank, i), sum_of(rank + 1, i));
        break;
      case allgather_:
      case gather_:
        for (int from = 0; from < n_ && (kind_ == allgather_ || rank == root_); ++from)
          EXPECT_EQ(at(rank, from * count_ + i), value(from, i));
        break;
      case alltoall_:
        for (int from = 0; from < n_; ++from)
          EXPECT_EQ(at(rank, from * count_ + i), value(from, rank * count_ + i));
        break;
      default:
        break;
      }
    }
  }

 private:
  static constexpr std::uint64_t bcast_ = 1, allreduce_ = 2, allgather_ = 3, gather_ = 4,
                                 alltoall_ = 5, scan_ = 6;

  [[nodiscard]] int value(int rank, int i) const { return number_ * 100000 + rank * 5000 + i; }
  [[nodiscard]] int sum_of(int ranks, int i) const {
    int all = 0;
    for (int rank = 0; rank < ranks; ++rank)
      all += value(rank, i);
    return all;
  }
  std::vector<int>& out(int rank) { return out_[static_cast<std::size_t>(rank)]; }
  std::vector<int>& in(int rank) { return in_[static_cast<std::size_t>(rank)]; }
  int at(int rank, int i) { return in(rank)[static_cast<std::size_t>(i)]; }

  std::uint64_t kind_;
  int n_;
  int count_;
  int root_;
  int number_;
  std::vector<std::vector<int>> out_;
  std::vector<std::vector<int>> in_;
};

TEST(Nonblocking, ManyOutstandingCollectives) {
  constexpr std::size_t steps = 30;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const int ranks = static_cast<int>(2 + seed % 6);
    SCOPED_TRACE(fmt::format("{} ranks, seed {}", ranks, seed));
    World world(ranks, any_network(seed));
    place(world, seed);
    std::vector<std::unique_ptr<Step>> program;
    for (std::size_t i = 0; i < steps; ++i)
      program.push_back(std::make_unique<Step>(world, static_cast<int>(i)));

    std::vector<std::vector<std::unique_ptr<Operation>>> started(static_cast<std::size_t>(ranks));
    const auto all_done = [&] {
      return std::all_of(started.begin(), started.end(), [](auto& operations) {
        return operations.size() == steps && std::all_of(operations.begin(), operations.end(),
                                                         [](auto& o) { return o->complete(); });
      });
    };
    // In turns: a rank starts its next collective, or somebody polls.
    const bool ended = world.run_until([&] {
      const auto rank = world.random() % started.size();
      if (started[rank].size() < steps && world.random() % 3 == 0) {
        const int r = static_cast<int>(rank);
        started[rank].push_back(program[started[rank].size()]->make(world, r));
        world.sequence(r).start_nonblocking(*started[rank].back());
      }
      return all_done();
    });
    ASSERT_TRUE(ended);
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < steps; ++i) {
        EXPECT_EQ(what(started[static_cast<std::size_t>(rank)][i]->error()), "");
        program[i]->check(rank);
      }
    }
    EXPECT_TRUE(world.at_rest());
    if (HasFailure()) return;
  }
}

// Each rank has an order of its own among blocking and nonblocking ones; those of a sort come in
// the same order on all.
TEST(Nonblocking, InAnyOrderAmongBlockingOnes) {
  constexpr std::size_t steps = 20;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const int ranks = static_cast<int>(2 + seed % 5);
    SCOPED_TRACE(fmt::format("{} ranks, seed {}", ranks, seed));
    World world(ranks, any_network(seed));
    place(world, seed);
    enum { blocking, nonblocking };
    std::array<std::vector<std::unique_ptr<Step>>, 2> program;
    for (auto& sort : program) {
      for (std::size_t i = 0; i < steps; ++i)
        sort.push_back(std::make_unique<Step>(world, static_cast<int>(i)));
    }
    std::vector<std::array<std::vector<std::unique_ptr<Operation>>, 2>> started(
        static_cast<std::size_t>(ranks));
    const auto next = [&](int rank) {
      auto& its = started[static_cast<std::size_t>(rank)];
      if (!its[blocking].empty() && !its[blocking].back()->complete()) return;
      const auto sort = world.random() % 2;
      if (its[sort].size() == steps) return;
      its[sort].push_back(program[sort][its[sort].size()]->make(world, rank));
      coll::Sequence& sequence = world.sequence(rank);
      Operation& operation = *its[sort].back();
      sort == blocking ? sequence.start_blocking(operation) : sequence.start_nonblocking(operation);
    };
    ASSERT_TRUE(world.run_until([&] {
      next(static_cast<int>(world.random() % started.size()));
      return std::all_of(started.begin(), started.end(), [](auto& its) {
        return std::all_of(its.begin(), its.end(), [](auto& operations) {
          return operations.size() == steps && std::all_of(operations.begin(), operations.end(),
                                                           [](auto& o) { return o->complete(); });
        });
      });
    }));
    for (int rank = 0; rank < ranks; ++rank) {
      for (const std::size_t sort : {blocking, nonblocking}) {
        for (std::size_t i = 0; i < steps; ++i) {
          EXPECT_EQ(what(started[static_cast<std::size_t>(rank)][sort][i]->error()), "");
          program[sort][i]->check(rank);
        }
      }
    }
    EXPECT_TRUE(world.at_rest());
    if (HasFailure()) return;
  }
}

// A persistent collective begins again and again, with a tag of its own, among others.
TEST(Nonblocking, PersistentCollectivesInDifferentOrders) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    World world(3, any_network(seed));
    place(world, seed);
    std::array<std::array<int, 2>, 3> value{};
    std::array<std::array<std::unique_ptr<Operation>, 2>, 3> operations;
    for (std::size_t rank = 0; rank < 3; ++rank) {
      for (std::size_t which = 0; which < 2; ++which) {
        const int r = static_cast<int>(rank);
        Arguments a;
        a.in_place = true;
        a.op = &sum();
        a.receive = {&value[rank][which], 1, &types()[MPI_INT], {}, {}, nullptr};
        operations[rank][which] =
            std::make_unique<Operation>(world.resources(r), world.team(r), world.boards(r),
                                        world.machines(r), &coll::allreduce, a);
        world.sequence(r).keep(*operations[rank][which]);
      }
    }
    for (int round = 1; round < 6; ++round) {
      for (std::size_t rank = 0; rank < 3; ++rank) {
        value[rank] = {round, 10 * round};
        const std::size_t first = world.random() % 2;
        operations[rank][first]->begin();
        operations[rank][1 - first]->begin();
      }
      ASSERT_TRUE(world.run_until([&] {
        return std::all_of(operations.begin(), operations.end(),
                           [](auto& two) { return two[0]->complete() && two[1]->complete(); });
      }));
      for (auto& two : value)
        EXPECT_EQ(two, (std::array<int, 2>{3 * round, 30 * round}));
    }
    EXPECT_TRUE(world.at_rest());
  }
}

} // namespace
} // namespace macadam::test
