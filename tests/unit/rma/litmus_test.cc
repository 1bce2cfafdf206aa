// SPDX-License-Identifier: BSD-3-Clause
// Small programs in every order in which a network can do what they ask for: locks exclude, wait
// for their turn and end, accumulates of every kind are atomic to each other, and what post, start,
// complete and wait promise is kept. Rank 0 is one of the origins in half of them, so that a rank's
// operations on its own memory are among those that are mixed.
#include "explored_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace macadam::rma::test {
namespace {

struct Litmus : testing::TestWithParam<bool> {
  datatype::PredefinedTypes types;
  datatype::PredefinedOps ops;
  std::uint64_t runs = 0;
  int neighbours = 0; // of explore()

  const datatype::Type& word() { return types[MPI_UINT64_T]; }
  Data data(std::uint64_t& value, MPI_Count count = 1) { return {&value, count, &word()}; }
  Place place(int rank, MPI_Aint at, MPI_Count count = 1) { return {rank, at, count, &word()}; }

  static constexpr MPI_Count bulk = 5; // elements: more than go by atomics

  // Every order; `check` after each. Returns the first failure.
  std::string explore(int ranks, const ExploredNetwork::Program& program,
                      const std::function<std::string(ExploredNetwork&)>& check, bool torn = false,
                      Window::Memory memory = Window::Memory::own) {
    Choices choices;
    do {
      const std::string wrong = run_once(ranks, program, check, choices, torn, memory);
      if (!wrong.empty()) return wrong;
    } while (choices.advance());
    RecordProperty("runs", std::to_string(runs));
    return {};
  }
  // So many orders, taken at random.
  std::string sample(int orders, int ranks, const ExploredNetwork::Program& program,
                     const std::function<std::string(ExploredNetwork&)>& check) {
    std::mt19937_64 random(1);
    Choices choices;
    choices.random = &random;
    std::string wrong;
    for (int i = 0; i < orders && wrong.empty(); ++i)
      wrong = run_once(ranks, program, check, choices, false, Window::Memory::own);
    return wrong;
  }
  std::string run_once(int ranks, const ExploredNetwork::Program& program,
                       const std::function<std::string(ExploredNetwork&)>& check, Choices& choices,
                       bool torn, Window::Memory memory) {
    ExploredNetwork explored(
        ranks, {.writes_copied = GetParam(), .torn_atomics = torn, .neighbours = neighbours},
        choices, types, ops, memory);
    const std::string wrong = explored.run(program);
    ++runs;
    return wrong.empty() ? check(explored) : wrong;
  }

  static std::string equal(const char* what, std::uint64_t found, std::uint64_t expected) {
    if (found == expected) return {};
    return fmt::format("{} is {}, expected {}", what, found, expected);
  }

  // One of the ways to add 1 to a word of a rank.
  void add_one(Window& window, int way, int rank) {
    std::uint64_t one = 1, old = 0;
    const Data result = data(old);
    switch (way) {
    case 0:
      return window.accumulate(data(one), nullptr, place(rank, 0), ops[MPI_SUM]);
    case 1:
      return window.accumulate(data(one), &result, place(rank, 0), ops[MPI_SUM]);
    default: {
      std::uint64_t expected = 0;
      for (;;) {
        std::uint64_t wanted = expected + 1;
        window.compare_and_swap(&wanted, &expected, &old, place(rank, 0));
        if (old == expected) return;
        expected = old;
      }
    }
    }
  }
  // An epoch in which nothing is accessed: rank 1 goes on once rank 0 has come, and the reverse.
  static void meet(Window& window, int rank) {
    if (rank == 0) {
      window.post({1}, false);
      window.wait();
    } else {
      window.start({0}, false);
      window.complete();
    }
  }
  // Reads, adds, writes: with both locks held nothing would be lost but by chance.
  void count_under_lock(Window& window) {
    std::uint64_t value = 0;
    window.lock(0, true, false);
    window.get(data(value), place(0, 1), nullptr);
    window.flush(0);
    ++value;
    window.put(data(value), place(0, 1), nullptr);
    window.unlock(0);
  }
};
INSTANTIATE_TEST_SUITE_P(Writes, Litmus, testing::Bool(),
                         [](const auto& mode) { return mode.param ? "copied" : "pending"; });

TEST_P(Litmus, accumulates_of_every_kind_are_atomic_to_each_other) {
  for (const int first : {0, 1}) { // the origins: the target and another, or two others
    for (int ways = 0; ways < 9; ++ways) {
      const auto wrong = explore(
          2 + first,
          [&](Window& window, int rank) {
            if (rank < first) return;
            window.lock_all(true);
            add_one(window, rank == first ? ways % 3 : ways / 3, 0);
            window.unlock_all();
          },
          [&](ExploredNetwork& explored) { return equal("the sum", explored.word(0, 0), 2); });
      EXPECT_EQ(wrong, "") << "origins from " << first << ", ways " << ways;
    }
  }
  EXPECT_GT(runs, 1000u);
}

// A few integers go by atomics of the network until the first ones come in bulk, and never again:
// at no moment both.
TEST_P(Litmus, integers_in_bulk_and_few_are_atomic_to_each_other) {
  for (const int near : {0, 2}) {    // ranks 0 and 1 share memory, or none do
    for (const int times : {1, 3}) { // the one with few knows the target already the second time
      for (const int few : {0, 1, 2}) {
        neighbours = near;
        const auto wrong = sample(
            1500, 3,
            [&](Window& window, int rank) {
              if (rank == 0) return;
              std::vector<std::uint64_t> ones(bulk, 1);
              window.lock_all(true);
              for (int i = 0; i < times && rank == 2; ++i) {
                add_one(window, few, 0);
                std::uint64_t value = 0; // something else that takes time
                window.get(data(value), place(1, 0), nullptr);
                window.flush(1);
              }
              if (rank == 1)
                window.accumulate(data(ones[0], bulk), nullptr, place(0, 0, bulk), ops[MPI_SUM]);
              window.unlock_all();
            },
            [&](ExploredNetwork& explored) {
              const auto first =
                  equal("the sum", explored.word(0, 0), static_cast<std::uint64_t>(times) + 1);
              return first.empty() ? equal("the last sum", explored.word(0, bulk - 1), 1) : first;
            });
        EXPECT_EQ(wrong, "") << near << " neighbours, " << times << " times way " << few;
      }
    }
  }
}

// Once they are barred, all take the lock, whoever comes; two may be the first in bulk.
TEST_P(Litmus, atomics_stay_barred) {
  const auto wrong = sample(
      3000, 3,
      [&](Window& window, int rank) {
        std::vector<std::uint64_t> ones(bulk, 1);
        window.lock_all(true);
        add_one(window, rank, 0);
        if (rank != 0)
          window.accumulate(data(ones[0], bulk), nullptr, place(0, 0, bulk), ops[MPI_SUM]);
        add_one(window, rank, 0);
        window.unlock_all();
      },
      [&](ExploredNetwork& explored) { return equal("the sum", explored.word(0, 0), 8); });
  EXPECT_EQ(wrong, "");
}

// What an operation of each kind takes: sums and swaps are one atomic and nothing else once the
// origin is known to the target.
TEST_P(Litmus, few_integers_take_one_atomic_each) {
  std::size_t operations = 0;
  const auto wrong = explore(
      2,
      [&](Window& window, int rank) {
        if (rank == 0) return;
        std::uint64_t one = 1, old = 0, compare = 2, three = 3;
        const Data result = data(old);
        window.lock_all(true);
        window.accumulate(data(one), &result, place(0, 0), ops[MPI_SUM]);
        const std::size_t before = ExploredNetwork::posted();
        window.accumulate(data(one), &result, place(0, 0), ops[MPI_SUM]);
        window.compare_and_swap(&three, &compare, &old, place(0, 0));
        window.accumulate(data(one), &result, place(0, 0), ops[MPI_NO_OP]);
        operations = ExploredNetwork::posted() - before;
        if (old != 3) base::fail(MPI_ERR_INTERN, "found {}", old);
        window.unlock_all();
      },
      [&](ExploredNetwork& explored) { return equal("the word", explored.word(0, 0), 3); });
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(operations, 3u);
}

// Of several integers each is changed once, however often another has to be tried again.
TEST_P(Litmus, integers_that_are_tried_again_are_changed_once) {
  const std::uint64_t given[3][2] = {{}, {3, 7}, {5, 4}}; // by rank
  std::uint64_t old[3][2] = {};
  const auto wrong = sample(
      1500, 3,
      [&](Window& window, int rank) {
        if (rank == 0) return;
        std::uint64_t ours[2] = {given[rank][0], given[rank][1]};
        const Data result = data(old[rank][0], 2);
        window.lock_all(true);
        window.accumulate(data(ours[0], 2), &result, place(0, 0, 2), ops[MPI_MAX]);
        window.unlock_all();
      },
      [&](ExploredNetwork& explored) -> std::string {
        for (std::size_t i = 0; i < 2; ++i) {
          const std::uint64_t largest = std::max(given[1][i], given[2][i]);
          if (explored.word(0, i) != largest) return equal("a word", explored.word(0, i), largest);
          const bool one_first = old[1][i] == 0 && old[2][i] == given[1][i];
          const bool two_first = old[2][i] == 0 && old[1][i] == given[2][i];
          if (!one_first && !two_first)
            return fmt::format("word {} was {} and {} before", i, old[1][i], old[2][i]);
        }
        return {};
      });
  EXPECT_EQ(wrong, "");
}

TEST_P(Litmus, an_adapter_without_atomicity_is_found_out) {
  const auto wrong = explore(
      2,
      [&](Window& window, int) {
        window.lock_all(true);
        add_one(window, 0, 0);
        window.unlock_all();
      },
      [&](ExploredNetwork& explored) { return equal("the sum", explored.word(0, 0), 2); }, true);
  EXPECT_NE(wrong, "");
}

TEST_P(Litmus, exclusive_locks_exclude) {
  for (const int first : {0, 1}) {
    const auto wrong = explore(
        2 + first,
        [&](Window& window, int rank) {
          if (rank < first) return;
          count_under_lock(window);
        },
        [&](ExploredNetwork& explored) { return equal("the count", explored.word(0, 1), 2); });
    EXPECT_EQ(wrong, "") << "origins from " << first;
  }
}

TEST_P(Litmus, a_reader_sees_all_of_a_writer_or_nothing) {
  for (const bool lazily : {false, true}) {
    std::uint64_t first = 0, second = 0;
    const auto wrong = explore(
        2,
        [&](Window& window, int rank) {
          std::uint64_t value = 7;
          if (rank == 0) {
            window.lock(0, true, false);
            window.put(data(value), place(0, 0), nullptr);
            window.flush(0);
            window.put(data(value), place(0, 1), nullptr);
            window.unlock(0);
          } else if (lazily) {
            window.lock_all(false);
            window.get(data(first), place(0, 0), nullptr);
            window.get(data(second), place(0, 1), nullptr);
            window.unlock_all();
          } else {
            window.lock(0, false, false);
            window.get(data(first), place(0, 0), nullptr);
            window.get(data(second), place(0, 1), nullptr);
            window.unlock(0);
          }
        },
        [&](ExploredNetwork&) { return equal("the second word", second, first); });
    EXPECT_EQ(wrong, "") << "lazily " << lazily;
  }
}

// --- Ranks 0 and 1 share memory, rank 2 is on another machine: still one domain. An atomic of the
// network is not one to the processors of its target. A get from rank 2 makes that rank 1 comes to
// its part at any moment of that of rank 2.

TEST_P(Litmus, neighbours_and_others_are_atomic_to_each_other) {
  neighbours = 2;
  for (const auto& [near, far] : {std::pair(0, 2), std::pair(2, 0), std::pair(1, 1)}) { // ways
    const auto wrong = explore(
        3,
        [&](Window& window, int rank) {
          std::uint64_t value = 0;
          if (rank == 0) return;
          window.lock_all(true);
          if (rank == 1) window.get(data(value), place(2, 0), nullptr);
          if (rank == 1) window.flush(2);
          add_one(window, rank == 1 ? near : far, 0);
          window.unlock_all();
        },
        [&](ExploredNetwork& explored) { return equal("the sum", explored.word(0, 0), 2); });
    EXPECT_EQ(wrong, "") << "ways " << near << " and " << far;
  }
}

TEST_P(Litmus, locks_exclude_neighbours_and_others) {
  neighbours = 2;
  const auto wrong = explore(
      3,
      [&](Window& window, int rank) {
        std::uint64_t value = 0;
        if (rank == 0) return;
        if (rank == 1) {
          window.lock(2, false, true);
          window.get(data(value), place(2, 0), nullptr);
          window.unlock(2);
        }
        count_under_lock(window);
      },
      [&](ExploredNetwork& explored) { return equal("the count", explored.word(0, 1), 2); });
  EXPECT_EQ(wrong, "");
}

TEST_P(Litmus, epochs_of_a_neighbour_and_of_another_end_after_their_data) {
  neighbours = 2;
  const auto wrong = explore(
      3,
      [&](Window& window, int rank) {
        if (rank == 0) {
          window.post({1, 2}, false);
          window.wait();
          const auto* const memory = reinterpret_cast<std::uint64_t*>(window.address_of(0));
          if (memory[1] != 11 || memory[2] != 12)
            base::fail(MPI_ERR_INTERN, "found {} and {} after the wait", memory[1], memory[2]);
        } else {
          std::uint64_t value = 10 + static_cast<std::uint64_t>(rank);
          window.start({0}, false);
          window.put(data(value), place(0, rank), nullptr);
          window.complete();
        }
      },
      [&](ExploredNetwork&) { return std::string(); });
  EXPECT_EQ(wrong, "");
}

TEST_P(Litmus, a_fence_ends_after_the_data_of_all) {
  for (const int near : {0, 2}) {
    neighbours = near;
    const int last = near == 0 ? 1 : 2; // the only rank that puts: it is on another machine
    const auto wrong = explore(
        last + 1,
        [&](Window& window, int rank) {
          std::uint64_t value = 5;
          window.fence(true, true); // all begin alike
          if (rank == last) window.put(data(value), place(0, 1), nullptr);
          window.fence(false, false);
          const auto* const memory = reinterpret_cast<std::uint64_t*>(window.address_of(0));
          if (rank == 0 && memory[1] != 5)
            base::fail(MPI_ERR_INTERN, "found {} after the fence", memory[1]);
        },
        [&](ExploredNetwork&) { return std::string(); });
    EXPECT_EQ(wrong, "") << near << " neighbours";
  }
}

// Two readers may be inside at once, and the writer waits for both.
TEST_P(Litmus, readers_share) {
  bool shared = false;
  int inside = 0;
  const auto wrong = explore(
      2,
      [&](Window& window, int) {
        std::uint64_t value = 0;
        window.lock(0, false, false);
        shared = ++inside == 2 || shared;
        window.get(data(value), place(0, 0), nullptr);
        window.flush(0);
        --inside;
        window.unlock(0);
      },
      [&](ExploredNetwork&) { return std::string(); });
  EXPECT_EQ(wrong, "");
  EXPECT_TRUE(shared);
}

TEST_P(Litmus, post_start_complete_wait_order_data) {
  const auto wrong = explore(
      2,
      [&](Window& window, int rank) {
        std::uint64_t value = 0;
        for (std::uint64_t round = 1; round <= 2; ++round) {
          if (rank == 0) {
            window.start({1}, false);
            value = 10 * round;
            window.put(data(value), place(1, 2), nullptr);
            window.complete();
          } else {
            window.post({0}, false);
            window.wait();
            const auto* const memory = reinterpret_cast<std::uint64_t*>(window.address_of(1));
            if (memory[2] != 10 * round)
              base::fail(MPI_ERR_INTERN, "round {}: found {} after the wait", round, memory[2]);
          }
        }
      },
      [&](ExploredNetwork&) { return std::string(); });
  EXPECT_EQ(wrong, "");
}

// An origin does not write before its target has posted: what the target does before is its own.
TEST_P(Litmus, nothing_comes_before_the_post) {
  bool posted = false;
  const auto wrong = explore(
      2,
      [&](Window& window, int rank) {
        std::uint64_t value = 5;
        if (rank == 0) {
          window.start({1}, false);
          window.put(data(value), place(1, 0), nullptr);
          if (!posted) base::fail(MPI_ERR_INTERN, "the put has passed the start before the post");
          window.complete();
        } else {
          posted = false;
          window.lock(0, false, false); // something that takes time
          window.unlock(0);
          posted = true;
          window.post({0}, false);
          window.wait();
        }
      },
      [&](ExploredNetwork& explored) { return equal("the word", explored.word(1, 0), 5); });
  EXPECT_EQ(wrong, "");
}

// The target attaches, tells, detaches and attaches again at the same address: a key that was
// revoked is never used.
TEST_P(Litmus, attached_memory_is_found_by_its_present_key) {
  std::vector<std::uint64_t> memory(4), other(4);
  const auto wrong = explore(
      2,
      [&](Window& window, int rank) {
        std::uint64_t value = 3;
        const auto address = reinterpret_cast<MPI_Aint>(memory.data());
        if (rank == 0) {
          memory[0] = 0;
          window.attach(memory.data(), 32);
          meet(window, rank);
          meet(window, rank);
          window.detach(memory.data());
          window.attach(other.data(), 32);
          window.attach(memory.data(), 32);
          meet(window, rank);
        } else {
          for (int round = 0; round < 2; ++round) {
            meet(window, rank);
            window.lock(0, false, false);
            window.accumulate(data(value), nullptr, place(0, address), ops[MPI_SUM]);
            window.unlock(0);
            if (round == 0) meet(window, rank);
          }
        }
      },
      [&](ExploredNetwork&) { return equal("the sum", memory[0], 6); }, false,
      Window::Memory::attached);
  EXPECT_EQ(wrong, "");
}

// Pieces that touch have keys of their own: what is in two of them is accessed by both.
TEST_P(Litmus, attached_regions_that_touch_are_accessed_together) {
  std::vector<std::uint64_t> memory(4);
  std::uint64_t values[4] = {1, 2, 3, 4}, found[4] = {};
  const auto wrong = explore(
      2,
      [&](Window& window, int rank) {
        const auto address = reinterpret_cast<MPI_Aint>(memory.data());
        if (rank == 0) {
          std::ranges::fill(memory, 10);
          auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
          window.attach(bytes + 20, 12);
          window.attach(bytes, 12);
          window.attach(bytes + 12, 8);
          meet(window, rank);
        } else {
          meet(window, rank);
          window.lock(0, false, false);
          window.accumulate(data(values[0], 4), nullptr, place(0, address, 4), ops[MPI_SUM]);
          window.get(data(found[0], 2), place(0, address + 8, 2), nullptr);
          window.unlock(0);
        }
      },
      [&](ExploredNetwork&) {
        std::string wrong_word;
        for (std::uint64_t i = 0; i < 4 && wrong_word.empty(); ++i)
          wrong_word = equal("a sum", memory[i], 11 + i);
        for (std::uint64_t i = 0; i < 2 && wrong_word.empty(); ++i)
          wrong_word = equal("what was got", found[i], 12 + i);
        return wrong_word;
      },
      false, Window::Memory::attached);
  EXPECT_EQ(wrong, "");
}

// In three rows, the last one short: what a rank does not know of another it reads from the keeper
// of that one's row, once, and then accesses the other itself.
TEST_P(Litmus, ranks_of_other_rows_are_found) {
  constexpr int ranks = 2 * Exposures::row_ranks + 5;
  const auto target_of = [](int rank, int shift) { return (rank + shift) % ranks; };
  for (const int neighbours_among_them : {0, ranks}) {
    neighbours = neighbours_among_them;
    for (const int shift : {1, 37, Exposures::row_ranks, Exposures::row_ranks + 3}) {
      const auto wrong = sample(
          2, ranks,
          [&](Window& window, int rank) {
            std::uint64_t number = static_cast<std::uint64_t>(rank) + 1;
            window.fence(false, true);
            window.put(data(number), place(target_of(rank, shift), 0), nullptr);
            window.fence(false, false);
          },
          [&](ExploredNetwork& explored) -> std::string {
            for (int rank = 0; rank < ranks; ++rank) {
              const auto wanted = static_cast<std::uint64_t>(rank) + 1;
              const auto found = explored.word(target_of(rank, shift), 0);
              if (found != wanted) return equal("a word", found, wanted);
            }
            return {};
          });
      EXPECT_EQ(wrong, "") << "shift " << shift;
    }
  }
}

} // namespace
} // namespace macadam::rma::test
