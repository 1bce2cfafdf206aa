// SPDX-License-Identifier: BSD-3-Clause
// Accumulates: what they compute, for every type and operation that the standard pairs, and that
// each element is changed in one step whoever else changes it.
#include "counter.h"
#include "rma/window.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <limits>

namespace {

using rma::Kind;

// The operation as this program understands it.
template <class T>
T combined(MPI_Op op, T ours, T theirs) {
  if (op == MPI_REPLACE) return ours;
  if (op == MPI_NO_OP) return theirs;
  if (op == MPI_SUM) return static_cast<T>(ours + theirs);
  if (op == MPI_PROD) return static_cast<T>(ours * theirs);
  if constexpr (!std::is_same_v<T, std::complex<float>> &&
                !std::is_same_v<T, std::complex<double>>) {
    if (op == MPI_MAX) return std::max(ours, theirs);
    if (op == MPI_MIN) return std::min(ours, theirs);
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == MPI_LAND) return static_cast<T>(ours && theirs);
    if (op == MPI_LOR) return static_cast<T>(ours || theirs);
    if (op == MPI_LXOR) return static_cast<T>(!ours != !theirs);
    if (op == MPI_BAND) return static_cast<T>(ours & theirs);
    if (op == MPI_BOR) return static_cast<T>(ours | theirs);
    if (op == MPI_BXOR) return static_cast<T>(ours ^ theirs);
  }
  check::fail(__FILE__, __LINE__, "no such operation");
}

template <class T>
void one_type(Kind kind, MPI_Datatype type, const std::vector<MPI_Op>& ops) {
  constexpr std::size_t count = 37;
  rma::Window<T> win(kind, count);
  for (const MPI_Op op : ops) {
    std::vector<T> ours(count), before(count), old(count);
    for (std::size_t i = 0; i < count; ++i) {
      win[i] = static_cast<T>(static_cast<float>(i % 7 + 1));
      before[i] = win[i];
      ours[i] = static_cast<T>(static_cast<float>((i + static_cast<unsigned>(check::rank)) % 5));
    }
    const auto n = static_cast<int>(count);
    OK(MPI_Win_fence(0, win));
    if (op != MPI_NO_OP)
      OK(MPI_Accumulate(ours.data(), n, type, rma::right(), 0, n, type, op, win));
    OK(MPI_Win_fence(0, win));
    for (std::size_t i = 0; i < count; ++i) {
      const auto theirs =
          static_cast<T>(static_cast<float>((i + static_cast<unsigned>(rma::left())) % 5));
      CHECK(win[i] == combined(op, theirs, before[i]));
      win[i] = before[i];
    }
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(ours.data(), n, type, old.data(), n, type, rma::right(), 0, n, type, op,
                          win));
    OK(MPI_Win_fence(0, win));
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(old[i] == before[i]);
      win[i] = before[i];
    }
    OK(MPI_Win_fence(0, win));
    T found{};
    OK(MPI_Fetch_and_op(&ours[3], &found, type, rma::right(), 5, op, win));
    OK(MPI_Win_fence(0, win));
    CHECK(found == before[5]);
    const auto theirs =
        static_cast<T>(static_cast<float>((3 + static_cast<unsigned>(rma::left())) % 5));
    CHECK(win[5] == combined(op, theirs, before[5]));
    OK(MPI_Win_fence(0, win));
  }
}

void types_and_operations() {
  const std::vector<MPI_Op> both = {MPI_REPLACE, MPI_NO_OP};
  std::vector<MPI_Op> field = {MPI_SUM, MPI_PROD, MPI_REPLACE, MPI_NO_OP};
  std::vector<MPI_Op> ordered = field;
  ordered.insert(ordered.end(), {MPI_MAX, MPI_MIN});
  std::vector<MPI_Op> integer = ordered;
  integer.insert(integer.end(), {MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR});
  if (check::light()) { // of each width and each set of operations one
    one_type<std::uint16_t>(Kind::created, MPI_UINT16_T, ordered);
    one_type<int>(Kind::allocated, MPI_INT, integer);
    one_type<std::int64_t>(Kind::created, MPI_INT64_T, integer);
    one_type<long double>(Kind::allocated, MPI_LONG_DOUBLE, both);
    one_type<std::complex<float>>(Kind::created, MPI_C_FLOAT_COMPLEX, field);
    return one_type<char>(Kind::allocated, MPI_CHAR, integer);
  }
  rma::for_each_kind([&](Kind kind) {
    one_type<std::int8_t>(kind, MPI_INT8_T, integer);
    one_type<std::uint16_t>(kind, MPI_UINT16_T, integer);
    one_type<int>(kind, MPI_INT, integer);
    one_type<std::int64_t>(kind, MPI_INT64_T, integer);
    one_type<unsigned long>(kind, MPI_UNSIGNED_LONG, integer);
    one_type<float>(kind, MPI_FLOAT, ordered);
    one_type<double>(kind, MPI_DOUBLE, ordered);
    one_type<long double>(kind, MPI_LONG_DOUBLE, ordered);
    one_type<std::complex<float>>(kind, MPI_C_FLOAT_COMPLEX, field);
    one_type<std::complex<double>>(kind, MPI_C_DOUBLE_COMPLEX, field);
    one_type<char>(kind, MPI_CHAR, integer);
    one_type<MPI_Aint>(kind, MPI_AINT, integer);
    one_type<char>(kind, MPI_CHARACTER, both);
  });
}

template <class Value>
struct Pair {
  Value value;
  int index;
};

template <class Value>
void pairs_of(MPI_Datatype type) {
  rma::for_each_kind([&](Kind kind) {
    rma::Window<Pair<Value>> win(kind, 3);
    for (std::size_t i = 0; i < 3; ++i)
      win[i] = {static_cast<Value>(10 + i), 100};
    OK(MPI_Win_fence(0, win));
    const Pair<Value> ours[3] = {{static_cast<Value>(50 + check::rank), check::rank},
                                 {static_cast<Value>(2), check::rank},
                                 {static_cast<Value>(12), check::rank}};
    OK(MPI_Accumulate(ours, 3, type, 0, 0, 3, type, MPI_MAXLOC, win));
    OK(MPI_Win_fence(0, win));
    if (check::rank == 0) {
      CHECK_EQUAL(win[0].value, static_cast<Value>(50 + check::size - 1));
      CHECK_EQUAL(win[0].index, check::size - 1);
      CHECK_EQUAL(win[1].value, static_cast<Value>(11));
      CHECK_EQUAL(win[1].index, 100);
      CHECK_EQUAL(win[2].index, 0); // of equal values the lowest index
    }
    OK(MPI_Win_fence(0, win));
  });
}

void value_and_index() {
  pairs_of<int>(MPI_2INT);
  pairs_of<short>(MPI_SHORT_INT);
  pairs_of<float>(MPI_FLOAT_INT);
  pairs_of<double>(MPI_DOUBLE_INT);
  pairs_of<long>(MPI_LONG_INT);
  pairs_of<long double>(MPI_LONG_DOUBLE_INT);
}

// Everybody changes the same elements in every way at once. Sums tell lost updates.
void mixed_on_one_place() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::int64_t> win(kind, 8);
    const int rounds = check::times(400, 12);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < rounds; ++i) {
      const std::int64_t one = 1;
      std::int64_t old = 0;
      switch ((i + check::rank) % 4) {
      case 0:
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win));
        break;
      case 1:
        OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win));
        break;
      case 2:
        OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T,
                              MPI_SUM, win));
        break;
      default: { // the same by compare-and-swap
        std::int64_t expected = 0;
        OK(MPI_Fetch_and_op(nullptr, &expected, MPI_INT64_T, 0, 0, MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
        for (;;) {
          const std::int64_t wanted = expected + 1;
          OK(MPI_Compare_and_swap(&wanted, &expected, &old, MPI_INT64_T, 0, 0, win));
          OK(MPI_Win_flush(0, win));
          if (old == expected) break;
          expected = old;
        }
      }
      }
      OK(MPI_Win_flush(0, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) CHECK_EQUAL(win[0], std::int64_t{rounds} * check::size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Wide elements are never seen in halves, and long accumulates lose nothing.
void wide_and_long() {
  rma::for_each_kind([](Kind kind) {
    using Complex = std::complex<double>;
    constexpr int count = 5000;
    const int rounds = check::times(10, 2);
    rma::Window<Complex> win(kind, count);
    const std::vector<Complex> ours(count, Complex(1, 2));
    std::vector<Complex> old(count);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < rounds; ++i) {
      OK(MPI_Accumulate(ours.data(), count, MPI_C_DOUBLE_COMPLEX, 0, 0, count, MPI_C_DOUBLE_COMPLEX,
                        MPI_SUM, win));
      OK(MPI_Get_accumulate(nullptr, 0, MPI_DATATYPE_NULL, old.data(), count, MPI_C_DOUBLE_COMPLEX,
                            0, 0, count, MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, win));
      OK(MPI_Win_flush(0, win));
      for (const Complex& each : old)
        CHECK_EQUAL(each.imag(), 2 * each.real());
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) {
      for (std::size_t i = 0; i < count; ++i)
        CHECK_EQUAL(win[i].real(), rounds * check::size);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Adds 1 to some of the elements of rank 0 in one of several ways, and to the same of `added`.
void add_ones(MPI_Win win, std::vector<std::int64_t>& added, int way, int at,
              MPI_Datatype strided) {
  static const std::vector<std::int64_t> ones(added.size(), 1);
  static std::vector<std::int64_t> old(added.size());
  const auto all = static_cast<int>(added.size());
  const auto add = [&](int first, int count, int stride) {
    for (int i = 0; i < count; ++i)
      ++added[static_cast<std::size_t>(first + i * stride)];
  };
  switch (way) {
  case 0:
    OK(MPI_Accumulate(ones.data(), all, MPI_INT64_T, 0, 0, all, MPI_INT64_T, MPI_SUM, win));
    return add(0, all, 1);
  case 1:
    OK(MPI_Accumulate(ones.data(), 3, MPI_INT64_T, 0, at, 3, MPI_INT64_T, MPI_SUM, win));
    return add(at, 3, 1);
  case 2:
    OK(MPI_Fetch_and_op(ones.data(), old.data(), MPI_INT64_T, 0, at, MPI_SUM, win));
    return add(at, 1, 1);
  case 3: {
    std::int64_t expected = 0, found = 0;
    for (;;) {
      const std::int64_t wanted = expected + 1;
      OK(MPI_Compare_and_swap(&wanted, &expected, &found, MPI_INT64_T, 0, at, win));
      OK(MPI_Win_flush(0, win));
      if (found == expected) return add(at, 1, 1);
      expected = found;
    }
  }
  case 4:
    OK(MPI_Get_accumulate(ones.data(), 100, MPI_INT64_T, old.data(), 100, MPI_INT64_T, 0, at, 100,
                          MPI_INT64_T, MPI_SUM, win));
    return add(at, 100, 1);
  default: // 50, each apart from the next
    OK(MPI_Accumulate(ones.data(), 50, MPI_INT64_T, 0, at, 1, strided, MPI_SUM, win));
    return add(at, 50, 2);
  }
}

// Whether others' memory is mapped: else each access takes the kernel or messages.
bool is_mapped(Kind kind) {
  return kind != Kind::created && std::getenv("MACADAM_PROTOCOLS") == nullptr;
}

// Long accumulates, short ones and swaps by all ranks on the same elements at the same time, under
// shared locks and exclusive ones: nothing is lost.
void long_and_short_at_once() {
  MPI_Datatype strided;
  OK(MPI_Type_vector(50, 1, 2, MPI_INT64_T, &strided));
  OK(MPI_Type_commit(&strided));
  rma::for_each_kind([&](Kind kind) {
    constexpr std::size_t count = 600;
    rma::Window<std::int64_t> win(kind, count);
    std::vector<std::int64_t> added(count);
    // Ranks that share cores wait long for each other's locks.
    const int epochs = check::times(!is_mapped(kind) ? 8 : check::size > 2 ? 40 : 300, 3);
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const bool alone = (epoch + check::rank) % 4 == 0;
      OK(MPI_Win_lock(alone ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
      for (int i = 0; i < 20; ++i)
        add_ones(win, added, (i * 5 + epoch + check::rank) % 6, i % 8, strided);
      OK(MPI_Win_unlock(0, win));
    }
    OK(MPI_Allreduce(MPI_IN_PLACE, added.data(), count, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    for (std::size_t i = 0; check::rank == 0 && i < count; ++i)
      CHECK_EQUAL(win[i], added[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
  OK(MPI_Type_free(&strided));
}

// Half of the ranks do nothing but long ones, the others nothing but short ones: so many that one
// which fell between the loads and stores of another would show.
void long_against_short() {
  rma::for_each_kind([](Kind kind) {
    constexpr int count = 1000;
    rma::Window<std::int64_t> win(kind, count);
    const int rounds = check::times(!is_mapped(kind) ? 20 : check::size > 2 ? 2000 : 40000, 3);
    const std::vector<std::int64_t> ones(count, 1);
    std::int64_t sum = 0, old = 0;
    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < rounds; ++i) {
      if (check::rank % 2 == 0) {
        OK(MPI_Accumulate(ones.data(), count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, MPI_SUM, win));
        sum += count;
        continue;
      }
      for (int k = 0; k < 20; ++k) {
        OK(MPI_Fetch_and_op(ones.data(), &old, MPI_INT64_T, 0, (i * 7 + k * 53) % count, MPI_SUM,
                            win));
        ++sum;
      }
      OK(MPI_Accumulate(ones.data(), 3, MPI_INT64_T, 0, i % (count - 3), 3, MPI_INT64_T, MPI_SUM,
                        win));
      sum += 3;
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD));
    std::int64_t found = 0;
    for (std::size_t i = 0; i < count; ++i)
      found += win[i];
    if (check::rank == 0) CHECK_EQUAL(found, sum);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Those of one origin to one element take effect in their order, long and short ones, while other
// origins are at their elements of the same target.
void order_is_kept() {
  rma::for_each_kind([](Kind kind) {
    constexpr int count = 300;
    rma::Window<int> win(kind, static_cast<std::size_t>(count * check::size));
    const MPI_Aint first = MPI_Aint{count} * check::rank;
    const std::vector<int> twos(count, 2);
    std::vector<int> values(count), found(count);
    OK(MPI_Win_lock_all(0, win));
    for (int round = 0; round < check::times(is_mapped(kind) ? 400 : 20, 3); ++round) {
      std::fill(values.begin(), values.end(), 10 * round);
      const int at = round % (count - 1), one = 1, seven = 7;
      int single = 0;
      OK(MPI_Accumulate(values.data(), count, MPI_INT, 0, first, count, MPI_INT, MPI_REPLACE, win));
      OK(MPI_Accumulate(&one, 1, MPI_INT, 0, first + at, 1, MPI_INT, MPI_SUM, win));
      OK(MPI_Accumulate(&seven, 1, MPI_INT, 0, first + at + 1, 1, MPI_INT, MPI_REPLACE, win));
      OK(MPI_Accumulate(twos.data(), count, MPI_INT, 0, first, count, MPI_INT, MPI_SUM, win));
      OK(MPI_Fetch_and_op(nullptr, &single, MPI_INT, 0, first + at, MPI_NO_OP, win));
      OK(MPI_Get_accumulate(nullptr, 0, MPI_INT, found.data(), count, MPI_INT, 0, first, count,
                            MPI_INT, MPI_NO_OP, win));
      OK(MPI_Win_flush(0, win));
      CHECK_EQUAL(single, 10 * round + 3);
      for (int i = 0; i < count; ++i) {
        const int expected = i == at ? 10 * round + 3 : i == at + 1 ? 9 : 10 * round + 2;
        CHECK_EQUAL(found[static_cast<std::size_t>(i)], expected);
      }
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// A long accumulate takes one way for all its elements, not an atomic for each: told by a counter.
void long_ones_by_loops() {
  if (!check::is_macadam() || !rma::one_node()) return;
  rma::Window<double> win(Kind::allocated, 1000);
  const std::vector<double> ours(1000, 1.5);
  const check::Counter atomics("rma_atomics"), under_lock("rma_under_lock");
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, win));
  OK(MPI_Accumulate(ours.data(), 1000, MPI_DOUBLE, rma::right(), 0, 1000, MPI_DOUBLE, MPI_SUM,
                    win));
  OK(MPI_Win_unlock(rma::right(), win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(atomics.since(), 0u);
  CHECK_EQUAL(under_lock.since(), 1u);
  for (std::size_t i = 0; i < 1000; ++i)
    CHECK_EQUAL(win[i], 1.5);
}

// A few integers of 8 bytes go by atomics, whichever network connects the ranks; over one that is
// not shared memory until some are accumulated in bulk. What they compute stays the same. Told by
// counters.
void words_by_atomics() {
  if (!check::is_macadam() || check::size < 2 || std::getenv("MACADAM_PROTOCOLS") != nullptr)
    return;
  rma::Window<std::int64_t> win(Kind::allocated, 100);
  const check::Counter mapped("rma_mapped"), atomics("rma_atomics"), under_lock("rma_under_lock");
  const std::int64_t ours[4] = {5, 6, 7, 8};
  std::int64_t old = 0, found[4] = {};
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, win));
  const auto fetch = [&](const std::int64_t& value, MPI_Op op) {
    OK(MPI_Fetch_and_op(&value, &old, MPI_INT64_T, rma::right(), 1, op, win));
    return old;
  };
  CHECK_EQUAL(fetch(3, MPI_SUM), 0);
  CHECK_EQUAL(fetch(9, MPI_REPLACE), 3);
  CHECK_EQUAL(fetch(6, MPI_BXOR), 9);
  CHECK_EQUAL(fetch(-4, MPI_MIN), 15);
  CHECK_EQUAL(fetch(-1, MPI_PROD), -4);
  const std::int64_t four = 4, eight = 8;
  OK(MPI_Compare_and_swap(&eight, &four, &old, MPI_INT64_T, rma::right(), 1, win));
  CHECK_EQUAL(old, 4);
  CHECK_EQUAL(fetch(0, MPI_NO_OP), 8);
  OK(MPI_Get_accumulate(ours, 4, MPI_INT64_T, found, 4, MPI_INT64_T, rma::right(), 1, 4,
                        MPI_INT64_T, MPI_SUM, win));
  CHECK_EQUAL(found[0], 8);
  CHECK_EQUAL(found[3], 0);
  CHECK_EQUAL(mapped.since() + atomics.since(), 8u);
  CHECK_EQUAL(under_lock.since(), 0u);
  const std::vector<std::int64_t> ones(100, 1);
  OK(MPI_Accumulate(ones.data(), 100, MPI_INT64_T, rma::right(), 0, 100, MPI_INT64_T, MPI_SUM,
                    win));
  CHECK_EQUAL(fetch(1, MPI_SUM), 14);
  OK(MPI_Win_unlock(rma::right(), win));
  CHECK_EQUAL(under_lock.since(), rma::one_node() ? 1u : 2u);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(win[1], 15);
  CHECK_EQUAL(win[4], 9);
}

// What one operation gave to a word and found there.
struct Step {
  std::uint64_t ours, old;
};

// There is an order in which each finds what the one before has left.
void follow_each_other(MPI_Op op, std::vector<Step> steps, std::uint64_t first,
                       std::uint64_t last) {
  std::uint64_t value = first;
  while (!steps.empty()) {
    const auto finds_it = [&](const Step& step) { return step.old == value; };
    const auto keeps_it = [&](const Step& step) {
      return finds_it(step) && combined(op, step.ours, value) == value;
    };
    auto next = std::find_if(steps.begin(), steps.end(), keeps_it);
    if (next == steps.end()) next = std::find_if(steps.begin(), steps.end(), finds_it);
    CHECK(next != steps.end());
    value = combined(op, next->ours, value);
    steps.erase(next);
  }
  CHECK_EQUAL(value, last);
}

// All ranks change the same few integers of 8 bytes, two to four at a time, by operations that a
// network does not compute: each integer as if it were alone, whichever of them has to be tried
// again.
void several_words() {
  constexpr std::size_t words = 4;
  const auto rounds = static_cast<std::size_t>(check::times(30, 5));
  const std::uint64_t at_first[words] = {0, ~std::uint64_t{0}, 1, 0x123456789abcdef};
  const auto words_of = [](std::size_t round, int rank) {
    return 2 + (round + static_cast<std::size_t>(rank)) % (words - 1);
  };
  for (const MPI_Op op :
       {MPI_MAX, MPI_MIN, MPI_PROD, MPI_SUM, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE, MPI_NO_OP}) {
    rma::Window<std::uint64_t> win(Kind::allocated, words);
    std::copy_n(at_first, words, win.data());
    OK(MPI_Barrier(MPI_COMM_WORLD));
    std::vector<Step> mine(rounds * words);
    OK(MPI_Win_lock_all(0, win));
    for (std::size_t round = 0; round < rounds; ++round) {
      std::uint64_t ours[words], old[words] = {};
      for (std::size_t i = 0; i < words; ++i) // odd: a product of them is never 0
        ours[i] =
            check::pattern_word(static_cast<std::uint64_t>(check::rank), round * words + i) | 1;
      const auto n = static_cast<int>(words_of(round, check::rank));
      OK(MPI_Get_accumulate(ours, n, MPI_UINT64_T, old, n, MPI_UINT64_T, 0, 0, n, MPI_UINT64_T, op,
                            win));
      OK(MPI_Win_flush(0, win));
      for (std::size_t i = 0; i < words; ++i)
        mine[round * words + i] = {ours[i], old[i]};
    }
    OK(MPI_Win_unlock_all(win));
    std::vector<Step> all(mine.size() * static_cast<std::size_t>(check::size));
    const auto bytes = static_cast<int>(mine.size() * sizeof(Step));
    OK(MPI_Allgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, MPI_COMM_WORLD));
    for (std::size_t i = 0; check::rank == 0 && i < words; ++i) {
      std::vector<Step> steps;
      for (std::size_t at = 0; at < all.size(); at += words) {
        const std::size_t round = at / words % rounds;
        const auto rank = static_cast<int>(at / mine.size());
        if (i < words_of(round, rank)) steps.push_back(all[at + i]);
      }
      follow_each_other(op, std::move(steps), at_first[i], win[i]);
    }
  }
}

void tickets_are_unique() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<int> win(kind, 1);
    const int each = check::times(500, 15);
    std::vector<int> mine(static_cast<std::size_t>(each));
    const int one = 1;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    for (int& ticket : mine) {
      OK(MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 0, MPI_SUM, win));
      OK(MPI_Win_flush_local(0, win));
    }
    OK(MPI_Win_unlock(0, win));
    std::vector<int> all(static_cast<std::size_t>(each * check::size));
    OK(MPI_Allgather(mine.data(), each, MPI_INT, all.data(), each, MPI_INT, MPI_COMM_WORLD));
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i)
      CHECK_EQUAL(all[i], static_cast<int>(i));
  });
}

void derived_types() {
  rma::for_each_kind([](Kind kind) {
    constexpr int rows = 8, columns = 5;
    rma::Window<int> win(kind, rows * columns);
    MPI_Datatype column;
    OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    std::vector<int> ours(rows), spread(rows * columns, -1);
    for (int i = 0; i < rows; ++i)
      ours[static_cast<std::size_t>(i)] = i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(ours.data(), rows, MPI_INT, 0, 2, 1, column, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Get_accumulate(nullptr, -1, MPI_DATATYPE_NULL, spread.data(), 1, column, 0, 2, 1, column,
                          MPI_NO_OP, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < rows; ++i) {
      CHECK_EQUAL(spread[static_cast<std::size_t>(i * columns)], i * check::size);
      CHECK_EQUAL(spread[static_cast<std::size_t>(i * columns + 1)], -1);
      if (check::rank == 0) {
        CHECK_EQUAL(win[static_cast<std::size_t>(i * columns + 2)], i * check::size);
        CHECK_EQUAL(win[static_cast<std::size_t>(i * columns + 3)], 0);
      }
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Win_fence(0, win));
  });
}

// Nothing is accumulated: the calls succeed, whatever the types are made of, and no place is
// touched.
void of_nothing() {
  MPI_Datatype empty, mixed;
  OK(MPI_Type_contiguous(0, MPI_INT, &empty));
  OK(MPI_Type_commit(&empty));
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 8};
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
  OK(MPI_Type_create_struct(2, lengths, places, types, &mixed));
  OK(MPI_Type_commit(&mixed));
  rma::for_each_kind([&](Kind kind) {
    rma::Window<int> win(kind, 4);
    int ours[4] = {5, 6, 7, 8}, old[4] = {-1, -1, -1, -1};
    OK(MPI_Win_fence(0, win));
    for (const auto& [count, type] :
         {std::pair(3, empty), std::pair(0, mixed), std::pair(0, empty), std::pair(0, MPI_INT)}) {
      for (const MPI_Op op : {MPI_SUM, MPI_REPLACE, MPI_NO_OP}) {
        if (op != MPI_NO_OP) OK(MPI_Accumulate(ours, count, type, 0, 0, count, type, op, win));
        OK(MPI_Get_accumulate(ours, count, type, old, count, type, 0, 0, count, type, op, win));
      }
    }
    OK(MPI_Accumulate(ours, 0, MPI_INT, 0, 0, 2, empty, MPI_SUM, win));
    FAILS(MPI_ERR_TYPE, MPI_Accumulate(ours, 1, MPI_INT, 0, 0, 2, empty, MPI_SUM, win));
    FAILS(MPI_ERR_TYPE, MPI_Accumulate(ours, 2, empty, 0, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK_EQUAL(old[i], -1);
      CHECK_EQUAL(win[i], 0);
    }
  });
  OK(MPI_Type_free(&empty));
  OK(MPI_Type_free(&mixed));
}

void requests() {
  rma::Window<double> win(Kind::allocated, 4);
  const double ours[2] = {1.5, 2.5};
  double old[2] = {-1, -1};
  OK(MPI_Win_lock_all(0, win));
  MPI_Request request = MPI_REQUEST_NULL;
  OK(MPI_Raccumulate(ours, 2, MPI_DOUBLE, 0, 1, 2, MPI_DOUBLE, MPI_SUM, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Win_flush_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Rget_accumulate(nullptr, 0, MPI_DATATYPE_NULL, old, 2, MPI_DOUBLE, 0, 1, 2, MPI_DOUBLE,
                         MPI_NO_OP, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQUAL(old[0], 1.5 * check::size);
  CHECK_EQUAL(old[1], 2.5 * check::size);
  OK(MPI_Win_unlock_all(win));
}

void compare_and_swap_of_widths() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 4);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rma::right(), 0, win));
    const auto swap = [&](auto expected, auto wanted, MPI_Datatype type, MPI_Aint at) {
      decltype(expected) old{};
      OK(MPI_Compare_and_swap(&wanted, &expected, &old, type, rma::right(), at, win));
      OK(MPI_Win_flush(rma::right(), win));
      return old;
    };
    CHECK_EQUAL(swap(std::uint8_t{1}, std::uint8_t{9}, MPI_UINT8_T, 0), 0);
    CHECK_EQUAL(swap(std::uint8_t{0}, std::uint8_t{9}, MPI_UINT8_T, 0), 0);
    CHECK_EQUAL(swap(std::uint8_t{9}, std::uint8_t{5}, MPI_UINT8_T, 0), 9);
    CHECK_EQUAL(swap('\5', '\6', MPI_CHAR, 0), '\5');
    CHECK_EQUAL(swap('\6', '\5', MPI_CHAR, 0), '\6');
    CHECK_EQUAL(swap(std::int16_t{0}, std::int16_t{-7}, MPI_INT16_T, 1), 0);
    CHECK_EQUAL(swap(std::int16_t{-7}, std::int16_t{1}, MPI_INT16_T, 1), -7);
    CHECK_EQUAL(swap(0, 70000, MPI_INT, 2), 0);
    CHECK_EQUAL(swap(0, 1, MPI_INT, 2), 70000);
    CHECK_EQUAL(swap(std::int64_t{0}, std::int64_t{1} << 40, MPI_INT64_T, 3), 0);
    CHECK_EQUAL(swap(std::int64_t{1}, std::int64_t{2}, MPI_INT64_T, 3), std::int64_t{1} << 40);
    if (check::is_macadam()) { // integers of so many digits, predefined without a name
      MPI_Datatype nine, eighteen;
      OK(MPI_Type_create_f90_integer(9, &nine));
      OK(MPI_Type_create_f90_integer(18, &eighteen));
      CHECK_EQUAL(swap(70000, 7, nine, 2), 70000);
      CHECK_EQUAL(swap(7, 70000, nine, 2), 7);
      CHECK_EQUAL(swap(std::int64_t{1} << 40, std::int64_t{5}, eighteen, 3), std::int64_t{1} << 40);
      CHECK_EQUAL(swap(std::int64_t{5}, std::int64_t{1} << 40, eighteen, 3), 5);
    }
    OK(MPI_Win_unlock(rma::right(), win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    CHECK_EQUAL(win[0], 5u);
    CHECK_EQUAL(win[1], 1u);
    CHECK_EQUAL(win[2], 70000u);
    CHECK_EQUAL(win[3], std::uint64_t{1} << 40);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

void wrong_use() {
  rma::Window<int> win(Kind::allocated, 4);
  int ours = 1, old = 0;
  double real = 0;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Accumulate(&ours, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Fetch_and_op(&ours, &old, MPI_INT, 0, 0, MPI_SUM, win));
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Accumulate(&ours, 1, MPI_INT, 0, 4, 1, MPI_INT, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Fetch_and_op(&ours, &old, MPI_INT, 0, 4, MPI_SUM, win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Compare_and_swap(&ours, &ours, &old, MPI_INT, 0, 4, win));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&real, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BAND, win));
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(&ours, 1, MPI_INT, 0, 0, 1, MPI_FLOAT, MPI_SUM, win));
  FAILS(MPI_ERR_TYPE, MPI_Compare_and_swap(&real, &real, &real, MPI_DOUBLE, 0, 0, win));
  if (check::is_macadam()) {
    MPI_Request request = MPI_REQUEST_NULL;
    FAILS(MPI_ERR_OP, MPI_Accumulate(&ours, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win));
    FAILS(MPI_ERR_OP,
          MPI_Raccumulate(&ours, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, win, &request));
  }
  MPI_Op own;
  OK(MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own));
  FAILS(MPI_ERR_OP, MPI_Accumulate(&ours, 1, MPI_INT, 0, 0, 1, MPI_INT, own, win));
  OK(MPI_Op_free(&own));
  MPI_Datatype mixed;
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  OK(MPI_Type_create_struct(2, lengths, places, types, &mixed));
  OK(MPI_Type_commit(&mixed));
  double room[2] = {};
  FAILS(MPI_ERR_TYPE, MPI_Accumulate(room, 1, mixed, 0, 0, 1, mixed, MPI_REPLACE, win));
  OK(MPI_Type_free(&mixed));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (std::size_t i = 0; i < 4; ++i)
    CHECK_EQUAL(win[i], 0);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"types_and_operations", types_and_operations},
                     {"value_and_index", value_and_index},
                     {"mixed_on_one_place", mixed_on_one_place},
                     {"wide_and_long", wide_and_long},
                     {"long_and_short_at_once", long_and_short_at_once},
                     {"long_against_short", long_against_short},
                     {"order_is_kept", order_is_kept},
                     {"long_ones_by_loops", long_ones_by_loops},
                     {"words_by_atomics", words_by_atomics},
                     {"several_words", several_words},
                     {"tickets_are_unique", tickets_are_unique},
                     {"derived_types", derived_types},
                     {"of_nothing", of_nothing},
                     {"requests", requests},
                     {"compare_and_swap_of_widths", compare_and_swap_of_widths},
                     {"wrong_use", wrong_use}});
}
