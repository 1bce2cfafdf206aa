// SPDX-License-Identifier: BSD-3-Clause
// Collectives of intercommunicators: groups of many sizes, from both sides.
#include "base/error.h"
#include "world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace macadam::test {
namespace {

using coll::Arguments;
using coll::Blocks;
using coll::Collective;

using Numbers = std::vector<int>;

// Two groups of `first` and `second` ranks. Ranks are numbered through: the second group's follow
// the first's. Each rank has what it sends and what it receives.
class Groups {
 public:
  Groups(int first, int second, std::uint64_t seed)
      : world(first, rough(seed), second), sizes_{first, second},
        out(static_cast<std::size_t>(world.size())), in(static_cast<std::size_t>(world.size())) {}

  [[nodiscard]] bool in_second(int rank) const { return rank >= sizes_[0]; }
  [[nodiscard]] int local(int rank) const { return in_second(rank) ? rank - sizes_[0] : rank; }
  [[nodiscard]] int local_size(int rank) const { return sizes_[in_second(rank) ? 1 : 0]; }
  [[nodiscard]] int remote_size(int rank) const { return sizes_[in_second(rank) ? 0 : 1]; }
  // The i-th rank of the other group, numbered through.
  [[nodiscard]] int remote(int rank, int i) const { return in_second(rank) ? i : sizes_[0] + i; }

  // What a rank gives as root if `root`, numbered through, is the root.
  [[nodiscard]] int root_for(int rank, int root) const {
    if (rank == root) return MPI_ROOT;
    return in_second(rank) == in_second(root) ? MPI_PROC_NULL : local(root);
  }
  [[nodiscard]] bool is_leaf(int rank, int root) const {
    return in_second(rank) != in_second(root);
  }

  // Blocks of `count` numbers.
  [[nodiscard]] Arguments arguments(int rank, int sent, int received) {
    Arguments a;
    a.send = {out_of(rank).data(), sent, &types()[MPI_INT], {}, {}, nullptr};
    a.receive = {in_of(rank).data(), received, &types()[MPI_INT], {}, {}, nullptr};
    return a;
  }
  Numbers& out_of(int rank) { return out[static_cast<std::size_t>(rank)]; }
  Numbers& in_of(int rank) { return in[static_cast<std::size_t>(rank)]; }

  void run(Collective::Run what_to_run, const std::function<Arguments(int)>& of) {
    const auto errors = world.run(what_to_run, of);
    EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
    EXPECT_TRUE(world.at_rest());
  }

  World world;

 private:
  std::array<int, 2> sizes_;

 public:
  std::vector<Numbers> out;
  std::vector<Numbers> in;
};

// `test(groups, count)` for many sizes of groups and messages.
template <class Test>
void for_groups(Test&& test) {
  std::uint64_t seed = 0;
  for (const int first : {1, 2, 3, 5}) {
    for (const int second : {1, 2, 4, 7}) {
      for (const int count : {0, 1, 30, 500}) {
        SCOPED_TRACE(
            fmt::format("groups of {} and {}, count {}, seed {}", first, second, count, ++seed));
        Groups groups(first, second, seed);
        test(groups, count);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

int number(int from, int to, int i) {
  return from * 1000000 + to * 10000 + i;
}
Numbers numbers(int from, int to, int count) {
  Numbers all;
  for (int i = 0; i < count; ++i)
    all.push_back(number(from, to, i));
  return all;
}
void append(Numbers& to, const Numbers& more) {
  to.insert(to.end(), more.begin(), more.end());
}

const datatype::Op& sum() {
  static datatype::PredefinedOps all;
  return all[MPI_SUM];
}

TEST(Inter, Barrier) {
  for_groups(
      [](Groups& groups, int) { groups.run(&coll::barrier, [](int) { return Arguments(); }); });
}

TEST(Inter, BcastFromEveryRank) {
  for_groups([](Groups& groups, int count) {
    for (int root = 0; root < groups.world.size(); ++root) {
      const Numbers data = numbers(root, 0, count);
      for (int rank = 0; rank < groups.world.size(); ++rank) {
        groups.in_of(rank) = rank == root ? data : Numbers(data.size(), -1);
      }
      groups.run(&coll::bcast, [&](int rank) {
        Arguments a = groups.arguments(rank, 0, count);
        a.root = groups.root_for(rank, root);
        return a;
      });
      for (int rank = 0; rank < groups.world.size(); ++rank) {
        const bool gets = rank == root || groups.is_leaf(rank, root);
        EXPECT_EQ(groups.in_of(rank), gets ? data : Numbers(data.size(), -1));
      }
    }
  });
}

TEST(Inter, GatherAndScatter) {
  for_groups([](Groups& groups, int count) {
    const int root =
        static_cast<int>(groups.world.random() % static_cast<unsigned>(groups.world.size()));
    const auto blocks = static_cast<std::size_t>(groups.remote_size(root) * count);
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      groups.out_of(rank) = numbers(rank, root, count);
      groups.in_of(rank) = Numbers(blocks, -1);
    }
    const auto with_root = [&](int rank) {
      Arguments a = groups.arguments(rank, count, count);
      a.root = groups.root_for(rank, root);
      return a;
    };
    groups.run(&coll::gather, with_root);
    Numbers expected;
    for (int i = 0; i < groups.remote_size(root); ++i) {
      append(expected, numbers(groups.remote(root, i), root, count));
    }
    EXPECT_EQ(groups.in_of(root), expected);

    groups.out_of(root).clear();
    for (int i = 0; i < groups.remote_size(root); ++i) {
      append(groups.out_of(root), numbers(root, groups.remote(root, i), count));
    }
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      groups.in_of(rank) = Numbers(static_cast<std::size_t>(count), -1);
    }
    groups.run(&coll::scatter, with_root);
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      if (groups.is_leaf(rank, root)) {
        EXPECT_EQ(groups.in_of(rank), numbers(root, rank, count));
      }
    }
  });
}

TEST(Inter, AllgatherAndAlltoall) {
  for_groups([](Groups& groups, int count) {
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      groups.out_of(rank) = numbers(rank, 0, count);
      groups.in_of(rank) = Numbers(static_cast<std::size_t>(groups.remote_size(rank) * count), -1);
    }
    groups.run(&coll::allgather, [&](int rank) { return groups.arguments(rank, count, count); });
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      Numbers expected;
      groups.out_of(rank).clear();
      for (int i = 0; i < groups.remote_size(rank); ++i) {
        append(expected, numbers(groups.remote(rank, i), 0, count));
        append(groups.out_of(rank), numbers(rank, groups.remote(rank, i), count));
      }
      EXPECT_EQ(groups.in_of(rank), expected);
    }
    groups.run(&coll::alltoall, [&](int rank) { return groups.arguments(rank, count, count); });
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      Numbers expected;
      for (int i = 0; i < groups.remote_size(rank); ++i) {
        append(expected, numbers(groups.remote(rank, i), rank, count));
      }
      EXPECT_EQ(groups.in_of(rank), expected);
    }
  });
}

// The sum over the other group.
Numbers remote_sum(Groups& groups, int rank, int count) {
  Numbers sums(static_cast<std::size_t>(count));
  for (int i = 0; i < groups.remote_size(rank); ++i) {
    for (int k = 0; k < count; ++k) {
      sums[static_cast<std::size_t>(k)] += number(groups.remote(rank, i), 0, k);
    }
  }
  return sums;
}

TEST(Inter, ReduceAndAllreduce) {
  for_groups([](Groups& groups, int count) {
    const int root =
        static_cast<int>(groups.world.random() % static_cast<unsigned>(groups.world.size()));
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      groups.out_of(rank) = numbers(rank, 0, count);
      groups.in_of(rank) = Numbers(static_cast<std::size_t>(count), -1);
    }
    const auto with_op = [&](int rank) {
      Arguments a = groups.arguments(rank, count, count);
      a.root = groups.root_for(rank, root);
      a.op = &sum();
      return a;
    };
    groups.run(&coll::reduce, with_op);
    EXPECT_EQ(groups.in_of(root), remote_sum(groups, root, count));
    groups.run(&coll::allreduce, with_op);
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      EXPECT_EQ(groups.in_of(rank), remote_sum(groups, rank, count));
    }
  });
}

// Both groups cut a vector of the same length, each by its own counts.
TEST(Inter, ReduceScatter) {
  for_groups([](Groups& groups, int count) {
    const int total = 40 * count;
    std::vector<std::vector<int>> counts(2);
    for (const int rank : {0, groups.world.size() - 1}) {
      auto& own = counts[groups.in_second(rank) ? 1 : 0];
      own.assign(static_cast<std::size_t>(groups.local_size(rank)), total / 50);
      own.back() = total - std::accumulate(own.begin(), own.end() - 1, 0);
    }
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      groups.out_of(rank) = numbers(rank, 0, total);
      groups.in_of(rank) = Numbers(static_cast<std::size_t>(total), -1);
    }
    groups.run(&coll::reduce_scatter, [&](int rank) {
      Arguments a = groups.arguments(rank, 0, 0);
      a.send.counts = {counts[groups.in_second(rank) ? 1 : 0].data(), false};
      a.op = &sum();
      return a;
    });
    for (int rank = 0; rank < groups.world.size(); ++rank) {
      const auto& own = counts[groups.in_second(rank) ? 1 : 0];
      const int begin = std::accumulate(own.begin(), own.begin() + groups.local(rank), 0);
      const int mine = own[static_cast<std::size_t>(groups.local(rank))];
      const Numbers all = remote_sum(groups, rank, total);
      EXPECT_TRUE(
          std::equal(all.begin() + begin, all.begin() + begin + mine, groups.in_of(rank).begin()));
    }
  });
}

} // namespace
} // namespace macadam::test
