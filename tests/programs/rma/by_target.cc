// SPDX-License-Identifier: BSD-3-Clause
// Accumulates in epochs that the target ends too, to memory that not all map: of any length and
// layout, from all ranks at once and the target itself, in each origin's order, against what each
// rank computes for itself.
#include "counter.h"
#include "rma/window.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

namespace {

using Word = std::int64_t;
using Words = std::vector<Word>;

MPI_Group all_ranks() {
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  return world;
}

// An epoch in which all may access all: two fences, or all post and start.
void in_each_epoch(MPI_Win win, const std::function<void()>& prepare,
                   const std::function<void()>& access, const std::function<void()>& check) {
  const auto meet = [] { OK(MPI_Barrier(MPI_COMM_WORLD)); };
  prepare();
  OK(MPI_Win_fence(0, win));
  access();
  OK(MPI_Win_fence(0, win));
  check();
  OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win));
  meet();
  prepare();
  MPI_Group world = all_ranks();
  OK(MPI_Win_post(world, 0, win));
  OK(MPI_Win_start(world, 0, win));
  access();
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  OK(MPI_Group_free(&world));
  check();
  meet();
}

// Every rank adds to a place of every other, and of itself, `count` elements `stride` apart there
// and `ours` apart here.
void sums(int count, int stride, int ours) {
  const auto span = static_cast<std::size_t>(count) * static_cast<std::size_t>(stride);
  rma::Window<Word> win(rma::Kind::created, span + 1);
  const auto here = static_cast<std::size_t>(ours);
  Words data(static_cast<std::size_t>(count) * here, -1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
    data[i * here] = static_cast<Word>(i) + check::rank;
  MPI_Datatype there, from;
  OK(MPI_Type_vector(count, 1, stride, MPI_INT64_T, &there));
  OK(MPI_Type_vector(count, 1, ours, MPI_INT64_T, &from));
  OK(MPI_Type_commit(&there));
  OK(MPI_Type_commit(&from));
  const Word ranks = check::size;
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 7); },
      [&] {
        for (int to = 0; to < check::size; ++to)
          OK(MPI_Accumulate(data.data(), 1, from, to, 1, 1, there, MPI_SUM, win));
      },
      [&] {
        CHECK_EQUAL(win[0], 7);
        for (std::size_t i = 0; i < span; ++i) {
          const std::size_t which = i / static_cast<std::size_t>(stride);
          const bool hit = i % static_cast<std::size_t>(stride) == 0;
          const Word added = ranks * static_cast<Word>(which) + ranks * (ranks - 1) / 2;
          CHECK_EQUAL(win[1 + i], hit ? 7 + added : 7);
        }
      });
  OK(MPI_Type_free(&there));
  OK(MPI_Type_free(&from));
}

void lengths_and_layouts() {
  for (const int count : {1, 3, 100, 490, 498, 499, 2000, 8191, 8192, 8193, 40000})
    sums(count, 1, 1);
  for (const int count : {2, 97, 1000, 20000}) {
    sums(count, 3, 1);
    sums(count, 1, 2);
    sums(count, 5, 3);
  }
}

// Displacements that follow no rule, so that each is a run of its own.
void scattered() {
  constexpr int count = 1000;
  constexpr int span = 4 * count;
  rma::Window<Word> win(rma::Kind::created, span);
  std::vector<int> at(count);
  for (int i = 0; i < count; ++i)
    at[static_cast<std::size_t>(i)] = 4 * ((i * 617) % count) + i * i % 4;
  MPI_Datatype type;
  OK(MPI_Type_create_indexed_block(count, 1, at.data(), MPI_INT64_T, &type));
  OK(MPI_Type_commit(&type));
  Words data(count), old(count), expected(span);
  std::iota(data.begin(), data.end(), Word{1});
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 0); },
      [&] {
        OK(MPI_Get_accumulate(data.data(), count, MPI_INT64_T, old.data(), count, MPI_INT64_T,
                              rma::right(), 0, 1, type, MPI_SUM, win));
        OK(MPI_Accumulate(data.data(), count, MPI_INT64_T, rma::right(), 0, 1, type, MPI_PROD,
                          win));
      },
      [&] {
        std::fill(expected.begin(), expected.end(), Word{0});
        for (std::size_t i = 0; i < count; ++i)
          expected[static_cast<std::size_t>(at[i])] = data[i] * data[i];
        CHECK(std::equal(expected.begin(), expected.end(), win.data()));
        CHECK(std::ranges::all_of(old, [](Word each) { return each == 0; }));
      });
  OK(MPI_Type_free(&type));
}

// One origin's accumulates to a place are done in its order, long data and short in turn.
void in_order() {
  constexpr std::size_t most = 30000;
  rma::Window<Word> win(rma::Kind::created, most);
  const std::vector<std::size_t> lengths{most, 1, 9000, 400, 20000, 2, most, 700, 5};
  std::vector<Words> data, old(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    data.emplace_back(lengths[i], static_cast<Word>(10 + i));
    old[i].assign(lengths[i], -1);
  }
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 0); },
      [&] {
        for (std::size_t i = 0; i < lengths.size(); ++i) {
          const auto n = static_cast<int>(lengths[i]);
          OK(MPI_Get_accumulate(data[i].data(), n, MPI_INT64_T, old[i].data(), n, MPI_INT64_T,
                                rma::right(), 0, n, MPI_INT64_T, MPI_REPLACE, win));
        }
      },
      [&] {
        Words model(most, 0);
        for (std::size_t i = 0; i < lengths.size(); ++i) {
          CHECK(std::equal(old[i].begin(), old[i].end(), model.begin()));
          std::copy(data[i].begin(), data[i].end(), model.begin());
        }
        CHECK(std::equal(model.begin(), model.end(), win.data()));
      });
}

// Every rank draws tickets of rank 0: by fetch-and-op, and by get-accumulate of a longer vector; so
// of one place none is drawn twice.
void tickets() {
  constexpr std::size_t each = 300;
  constexpr int wide = 1000;
  rma::Window<Word> win(rma::Kind::created, 1 + wide);
  const Words ones(wide, 1);
  Words drawn(each), vector(each * wide);
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 0); },
      [&] {
        for (std::size_t i = 0; i < each; ++i) {
          OK(MPI_Fetch_and_op(ones.data(), &drawn[i], MPI_INT64_T, 0, 0, MPI_SUM, win));
          OK(MPI_Get_accumulate(ones.data(), wide, MPI_INT64_T, &vector[i * wide], wide,
                                MPI_INT64_T, 0, 1, wide, MPI_INT64_T, MPI_SUM, win));
        }
      },
      [&] {
        const auto check_all = [&](Words mine) {
          CHECK(std::ranges::is_sorted(mine)); // of one origin
          Words all(each * static_cast<std::size_t>(check::size));
          OK(MPI_Allgather(mine.data(), each, MPI_INT64_T, all.data(), each, MPI_INT64_T,
                           MPI_COMM_WORLD));
          std::ranges::sort(all);
          for (std::size_t i = 0; i < all.size(); ++i)
            CHECK_EQUAL(all[i], static_cast<Word>(i));
        };
        check_all(drawn);
        for (const std::size_t at :
             {std::size_t{0}, std::size_t{wide / 2}, std::size_t{wide - 1}}) {
          Words column;
          for (std::size_t i = 0; i < each; ++i)
            column.push_back(vector[i * wide + at]);
          check_all(column);
        }
      });
}

// One rank of all finds what all compare with.
void compare_and_swap() {
  rma::Window<Word> win(rma::Kind::created, 2);
  Word found = -1;
  const Word mine = 100 + check::rank, zero = 0;
  in_each_epoch(
      win, [&] { win[0] = win[1] = 0; },
      [&] { OK(MPI_Compare_and_swap(&mine, &zero, &found, MPI_INT64_T, 0, 1, win)); },
      [&] {
        const int won = found == 0 ? 1 : 0;
        int winners = 0;
        OK(MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK_EQUAL(winners, 1);
        Word winner = won != 0 ? mine : 0, its = 0;
        OK(MPI_Allreduce(&winner, &its, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
        if (won == 0) CHECK_EQUAL(found, its);
        if (check::rank == 0) CHECK_EQUAL(win[1], its);
        CHECK_EQUAL(win[0], 0);
      });
}

struct DoubleInt {
  double value;
  int index;
  bool operator==(const DoubleInt& other) const {
    return value == other.value && index == other.index;
  }
};

// Elements with gaps, which stay as they are; more of them than a message has.
void with_gaps() {
  constexpr int count = 5000;
  rma::Window<DoubleInt> win(rma::Kind::created, count);
  std::vector<DoubleInt> data(count), old(count);
  for (int i = 0; i < count; ++i)
    data[static_cast<std::size_t>(i)] = {static_cast<double>((i * 7 + check::rank) % 11), i};
  const auto gap_of = [](const DoubleInt& each) {
    int gap = 0;
    std::memcpy(&gap, reinterpret_cast<const char*>(&each) + 12, sizeof gap);
    return gap;
  };
  in_each_epoch(
      win,
      [&] {
        std::memset(static_cast<void*>(win.data()), 0x5A, count * sizeof(DoubleInt));
        for (std::size_t i = 0; i < count; ++i)
          win[i].value = 5, win[i].index = -1;
      },
      [&] {
        OK(MPI_Get_accumulate(data.data(), count, MPI_DOUBLE_INT, old.data(), count, MPI_DOUBLE_INT,
                              rma::right(), 0, count, MPI_DOUBLE_INT, MPI_MAXLOC, win));
      },
      [&] {
        for (int i = 0; i < count; ++i) {
          const auto at = static_cast<std::size_t>(i);
          const auto theirs = static_cast<double>((i * 7 + rma::left()) % 11);
          const DoubleInt expected = theirs > 5   ? DoubleInt{theirs, i}
                                     : theirs < 5 ? DoubleInt{5, -1}
                                                  : DoubleInt{5, std::min(i, -1)};
          CHECK(win[at] == expected);
          CHECK_EQUAL(gap_of(win[at]), 0x5A5A5A5A);
          CHECK((old[at] == DoubleInt{5, -1}));
        }
      });
}

// Elements that no alignment fits, and results that are apart.
void unaligned() {
  constexpr int count = 700;
  constexpr std::size_t bytes = 3 + 9 * count;
  rma::Window<unsigned char> win(rma::Kind::created, bytes);
  const int ones[] = {1};
  const MPI_Aint zero[] = {0};
  MPI_Datatype packed, apart;
  const MPI_Datatype word[] = {MPI_INT64_T};
  OK(MPI_Type_create_struct(1, ones, zero, word, &packed));
  MPI_Datatype wide;
  OK(MPI_Type_create_resized(packed, 0, 9, &wide));
  OK(MPI_Type_vector(count, 1, 2, MPI_INT64_T, &apart));
  OK(MPI_Type_commit(&wide));
  OK(MPI_Type_commit(&apart));
  Words data(count), old(2 * count, -1);
  std::iota(data.begin(), data.end(), Word{1} << 40);
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 1); },
      [&] {
        OK(MPI_Get_accumulate(data.data(), count, MPI_INT64_T, old.data(), 1, apart, rma::right(),
                              3, count, wide, MPI_SUM, win));
      },
      [&] {
        Word before = 0;
        std::memset(&before, 1, sizeof before);
        for (std::size_t i = 0; i < count; ++i) {
          Word found = 0;
          std::memcpy(&found, win.data() + 3 + 9 * i, sizeof found);
          CHECK_EQUAL(found, before + data[i]);
          CHECK_EQUAL(win[3 + 9 * i + 8], 1);
          CHECK_EQUAL(old[2 * i], before);
          if (i + 1 < count) CHECK_EQUAL(old[2 * i + 1], -1);
        }
      });
  for (MPI_Datatype* const type : {&packed, &wide, &apart})
    OK(MPI_Type_free(type));
}

// No call waits for the target, however many there are: it comes once all have been made, told by
// another window, which it polls in calls that need nobody.
void without_the_target() {
  if (check::size < 2) return;
  constexpr int count = 20000, length = 2000;
  rma::Window<Word> win(rma::Kind::created, length), told(rma::Kind::allocated, 1);
  const Words data(length, 1);
  for (const int ends : {0, 1, 2}) { // how it polls
    std::fill_n(win.data(), win.size(), 0);
    told[0] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_fence(0, win));
    if (check::rank == 0) {
      Word old = 0;
      for (int i = 0; i < count; ++i)
        OK(MPI_Accumulate(data.data(), 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM, win));
      for (int i = 0; i < count / 100; ++i)
        OK(MPI_Accumulate(data.data(), length, MPI_INT64_T, 1, 0, length, MPI_INT64_T, MPI_SUM,
                          win));
      OK(MPI_Fetch_and_op(data.data(), &old, MPI_INT64_T, 1, 0, MPI_SUM, win));
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, told));
      OK(MPI_Put(data.data(), 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, told));
      OK(MPI_Win_unlock(1, told));
      OK(MPI_Win_fence(0, win));
      CHECK_EQUAL(old, count + count / 100);
    } else if (check::rank == 1) {
      Word come = 0;
      if (ends > 0) OK(MPI_Win_lock_all(0, told));
      while (come == 0) {
        if (ends == 0) OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, told));
        MPI_Request request = MPI_REQUEST_NULL;
        if (ends < 2)
          OK(MPI_Get(&come, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, told));
        else
          OK(MPI_Rget(&come, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, told, &request));
        if (ends == 0) OK(MPI_Win_unlock(1, told));
        if (ends == 1) OK(MPI_Win_flush_local_all(told));
        if (ends == 2) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      }
      if (ends > 0) OK(MPI_Win_unlock_all(told));
      OK(MPI_Win_fence(0, win));
      CHECK_EQUAL(win[0], 1 + count + count / 100);
      CHECK_EQUAL(win[length - 1], count / 100);
    } else {
      OK(MPI_Win_fence(0, win));
    }
  }
}

// As many at once, of all ranks, to a target that comes late.
void many() {
  constexpr int count = 20000;
  rma::Window<Word> win(rma::Kind::created, 4);
  const Word one = 1;
  in_each_epoch(
      win, [&] { std::fill_n(win.data(), win.size(), 0); },
      [&] {
        if (check::rank == 0) check::sleep_ms(20);
        for (int i = 0; i < count; ++i)
          OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, i % 4, 1, MPI_INT64_T, MPI_SUM, win));
      },
      [&] {
        for (std::size_t i = 0; i < 4; ++i)
          CHECK_EQUAL(win[i], check::rank == 0 ? count / 4 * check::size : 0);
      });
}

// Attached memory, some of which others may map.
void attached() {
  constexpr std::size_t count = 3000;
  MPI_Win win;
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  Words own(count);
  Word* mapped = nullptr;
  OK(MPI_Alloc_mem(count * sizeof(Word), MPI_INFO_NULL, &mapped));
  OK(MPI_Win_attach(win, own.data(), count * sizeof(Word)));
  OK(MPI_Win_attach(win, mapped, count * sizeof(Word)));
  MPI_Aint mine[2], all[2 * 64];
  OK(MPI_Get_address(own.data(), &mine[0]));
  OK(MPI_Get_address(mapped, &mine[1]));
  OK(MPI_Allgather(mine, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD));
  const Words data(count, 1 + check::rank);
  in_each_epoch(
      win,
      [&] {
        std::ranges::fill(own, 5);
        std::fill_n(mapped, count, 6);
      },
      [&] {
        for (int to = 0; to < check::size; ++to)
          for (int which = 0; which < 2; ++which)
            OK(MPI_Accumulate(data.data(), count, MPI_INT64_T, to, all[2 * to + which], count,
                              MPI_INT64_T, MPI_SUM, win));
      },
      [&] {
        const Word added = Word{check::size} * (check::size + 1) / 2;
        for (std::size_t i = 0; i < count; ++i) {
          CHECK_EQUAL(own[i], 5 + added);
          CHECK_EQUAL(mapped[i], 6 + added);
        }
      });
  OK(MPI_Win_detach(win, own.data()));
  OK(MPI_Win_detach(win, mapped));
  OK(MPI_Win_free(&win));
  OK(MPI_Free_mem(mapped));
}

// Nobody's lock was taken, nor a network's atomic.
void told_by_counters() {
  if (!check::is_macadam() || check::size < 2) return;
  rma::Window<Word> win(rma::Kind::created, 1000);
  const Words data(1000, 1);
  const check::Counter by_target("rma_by_target"), under_lock("rma_under_lock"),
      atomics("rma_atomics");
  OK(MPI_Win_fence(0, win));
  for (const int count : {1, 1000})
    OK(MPI_Accumulate(data.data(), count, MPI_INT64_T, rma::right(), 0, count, MPI_INT64_T, MPI_SUM,
                      win));
  OK(MPI_Win_fence(0, win));
  CHECK_EQUAL(by_target.since(), 2u);
  CHECK_EQUAL(under_lock.since() + atomics.since(), 0u);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"lengths_and_layouts", lengths_and_layouts},
                     {"scattered", scattered},
                     {"in_order", in_order},
                     {"tickets", tickets},
                     {"compare_and_swap", compare_and_swap},
                     {"with_gaps", with_gaps},
                     {"unaligned", unaligned},
                     {"without_the_target", without_the_target},
                     {"many", many},
                     {"attached", attached},
                     {"told_by_counters", told_by_counters}});
}
