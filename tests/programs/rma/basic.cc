// SPDX-License-Identifier: BSD-3-Clause
// Put and get of every size under every kind of epoch that this rank alone or all ranks begin.
#include "counter.h"
#include "rma/window.h"

#include <algorithm>
#include <sys/resource.h>

namespace {

using rma::Kind;

constexpr int most = 1 << 20;

void fence_put_and_get() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<unsigned char> win(kind, most);
    std::uint64_t seed = 100;
    for (const int bytes : check::message_sizes()) {
      if (bytes > most) continue;
      const auto out = check::message(static_cast<std::size_t>(bytes), seed + check::rank);
      OK(MPI_Win_fence(0, win));
      OK(MPI_Put(out.data(), bytes, MPI_BYTE, rma::right(), 0, bytes, MPI_BYTE, win));
      OK(MPI_Win_fence(0, win));
      HOLDS(win.data(), bytes, seed + rma::left());
      std::vector<unsigned char> in(static_cast<std::size_t>(bytes));
      OK(MPI_Get(in.data(), bytes, MPI_BYTE, rma::right(), 0, bytes, MPI_BYTE, win));
      OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
      HOLDS(in.data(), bytes, seed + check::rank);
      seed += check::size;
    }
  });
}

void lock_put_flush_get() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 1024);
    for (int target = 0; target < check::size; ++target) {
      const std::uint64_t mine = 1000u * static_cast<unsigned>(check::rank) + 7;
      std::uint64_t found = 0;
      const MPI_Aint place = check::rank;
      OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
      OK(MPI_Put(&mine, 1, MPI_UINT64_T, target, place, 1, MPI_UINT64_T, win));
      OK(MPI_Win_flush(target, win));
      OK(MPI_Get(&found, 1, MPI_UINT64_T, target, place, 1, MPI_UINT64_T, win));
      OK(MPI_Win_flush_local(target, win));
      CHECK_EQUAL(found, mine);
      OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int rank = 0; rank < check::size; ++rank)
      CHECK_EQUAL(win[static_cast<std::size_t>(rank)], 1000u * static_cast<unsigned>(rank) + 7);
  });
}

// Read, add, write: lost updates would show that two held the lock.
void exclusive_lock_excludes() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 2);
    const int rounds = check::times(300, 10);
    for (int i = 0; i < rounds; ++i) {
      const int target = i % check::size;
      std::uint64_t pair[2] = {};
      OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
      OK(MPI_Get(pair, 2, MPI_UINT64_T, target, 0, 2, MPI_UINT64_T, win));
      OK(MPI_Win_flush(target, win));
      CHECK_EQUAL(pair[0] * 3, pair[1]);
      pair[0] += 1;
      pair[1] += 3;
      OK(MPI_Put(pair, 2, MPI_UINT64_T, target, 0, 2, MPI_UINT64_T, win));
      OK(MPI_Win_unlock(target, win));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    std::uint64_t sum = 0;
    for (int target = 0; target < check::size; ++target) {
      std::uint64_t value = 0;
      OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
      OK(MPI_Get(&value, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win));
      OK(MPI_Win_unlock(target, win));
      sum += value;
    }
    CHECK_EQUAL(sum, static_cast<std::uint64_t>(rounds) * static_cast<unsigned>(check::size));
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
}

// Writers see an even number, readers two equal ones.
void readers_and_writers() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 2);
    for (int i = 0; i < check::times(300, 10); ++i) {
      const bool writes = (i + check::rank) % 3 == 0;
      std::uint64_t pair[2] = {};
      OK(MPI_Win_lock(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win));
      OK(MPI_Get(pair, 2, MPI_UINT64_T, 0, 0, 2, MPI_UINT64_T, win));
      OK(MPI_Win_flush(0, win));
      CHECK_EQUAL(pair[0], pair[1]);
      if (writes) {
        ++pair[0];
        OK(MPI_Put(&pair[0], 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win));
        OK(MPI_Win_flush(0, win));
        ++pair[1];
        OK(MPI_Put(&pair[1], 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win));
      }
      OK(MPI_Win_unlock(0, win));
    }
  });
}

void lock_all_with_everybody() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<int> win(kind, static_cast<std::size_t>(check::size));
    OK(MPI_Win_lock_all(0, win));
    for (int target = 0; target < check::size; ++target) {
      const int value = 100 * check::rank + target;
      OK(MPI_Put(&value, 1, MPI_INT, target, check::rank, 1, MPI_INT, win));
      OK(MPI_Win_flush_local(target, win));
    }
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_sync(win));
    for (int from = 0; from < check::size; ++from)
      CHECK_EQUAL(win[static_cast<std::size_t>(from)], 100 * from + check::rank);
    OK(MPI_Win_flush_local_all(win));
    OK(MPI_Win_unlock_all(win));
  });
}

// A shared lock and an exclusive one wait for each other, under lock_all too.
void lock_all_against_exclusive() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 2);
    for (int i = 0; i < check::times(100, 10); ++i) {
      if (check::rank == 0) {
        std::uint64_t value = static_cast<std::uint64_t>(i);
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Put(&value, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Put(&value, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win));
        OK(MPI_Win_unlock(0, win));
      } else {
        std::uint64_t pair[2] = {};
        OK(MPI_Win_lock_all(0, win));
        OK(MPI_Get(pair, 2, MPI_UINT64_T, 0, 0, 2, MPI_UINT64_T, win));
        OK(MPI_Win_unlock_all(win));
        CHECK_EQUAL(pair[0], pair[1]);
      }
    }
  });
}

void nocheck_and_noncollective_locks() {
  rma::Window<int> win(Kind::allocated, 4);
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), MPI_MODE_NOCHECK, win));
  const int value = check::rank + 1;
  OK(MPI_Put(&value, 1, MPI_INT, rma::right(), 0, 1, MPI_INT, win));
  OK(MPI_Win_unlock(rma::right(), win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(win[0], rma::left() + 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win));
  OK(MPI_Put(&value, 1, MPI_INT, rma::right(), 1, 1, MPI_INT, win));
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(win[1], rma::left() + 1);
}

void requests() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<unsigned char> win(kind, most);
    OK(MPI_Win_lock_all(0, win));
    for (const int bytes : {0, 1, 8, 100, 4096, 70000, most}) {
      const auto out = check::message(static_cast<std::size_t>(bytes), 3);
      std::vector<unsigned char> in(static_cast<std::size_t>(bytes));
      MPI_Request request = MPI_REQUEST_NULL;
      // Everybody to the same place of the next rank, which nobody else writes.
      OK(MPI_Rput(out.data(), bytes, MPI_BYTE, rma::right(), 0, bytes, MPI_BYTE, win, &request));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      CHECK(request == MPI_REQUEST_NULL);
      OK(MPI_Win_flush(rma::right(), win));
      OK(MPI_Rget(in.data(), bytes, MPI_BYTE, rma::right(), 0, bytes, MPI_BYTE, win, &request));
      int done = 0;
      while (done == 0)
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
      HOLDS(in.data(), bytes, 3);
    }
    MPI_Request request = MPI_REQUEST_NULL;
    int nothing = 0;
    OK(MPI_Rput(&nothing, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Win_unlock_all(win));
  });
}

// Whether a setting makes the target serve accesses to windows of this kind.
bool takes_the_target(Kind kind) {
  const auto is = [](const char* name, const char* value) {
    const char* const found = std::getenv(name);
    return found != nullptr && std::strcmp(found, value) == 0;
  };
  return (kind != Kind::shared && is("MACADAM_PROTOCOLS", "sender")) ||
         (kind == Kind::created && is("MACADAM_SHM_COPY", "pipeline"));
}

// The target computes for ever (here: until it is told to stop), outside MPI.
void target_computes() {
  if (check::size < 2) return;
  rma::for_each_kind([](Kind kind) {
    if (takes_the_target(kind)) return;
    rma::Window<std::uint64_t> win(kind, 4);
    if (check::rank == 0) {
      auto* const stop = reinterpret_cast<volatile std::uint64_t*>(win.data());
      const auto begin = std::chrono::steady_clock::now();
      while (*stop == 0) {
        if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(30))
          check::fail(__FILE__, __LINE__, "no origin came through without the target");
      }
    } else {
      for (int i = 0; i < 20; ++i) {
        std::uint64_t value = 0;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&value, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win));
        OK(MPI_Win_flush(0, win));
        ++value;
        OK(MPI_Put(&value, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win));
        OK(MPI_Win_unlock(0, win));
      }
      std::uint64_t all = 0;
      const auto wanted = 20u * static_cast<std::uint64_t>(check::size - 1);
      while (all < wanted) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
        OK(MPI_Get(&all, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win));
        OK(MPI_Win_unlock(0, win));
      }
      const std::uint64_t one = 1;
      OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
      OK(MPI_Put(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, win));
      OK(MPI_Win_unlock(0, win));
    }
  });
}

// What was done without the target's processor, and what took it, is told by counters.
void told_by_counters() {
  if (check::size < 2 || !check::is_macadam()) return;
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 4);
    using check::Counter;
    const Counter mapped("rma_mapped"), network("rma_network"), by_target("rma_by_target"),
        atomics("rma_atomics"), under_lock("rma_under_lock");
    std::uint64_t value = 1, found = 0;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, win));
    OK(MPI_Put(&value, 1, MPI_UINT64_T, rma::right(), 0, 1, MPI_UINT64_T, win));
    OK(MPI_Win_flush(rma::right(), win));
    OK(MPI_Get(&found, 1, MPI_UINT64_T, rma::right(), 0, 1, MPI_UINT64_T, win));
    OK(MPI_Win_unlock(rma::right(), win));
    CHECK_EQUAL(mapped.since() + network.since(), takes_the_target(kind) ? 0u : 2u);
    CHECK_EQUAL(by_target.since(), takes_the_target(kind) ? 2u : 0u);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, win));
    OK(MPI_Fetch_and_op(&value, &found, MPI_UINT64_T, rma::right(), 1, MPI_SUM, win));
    OK(MPI_Win_unlock(rma::right(), win));
    CHECK_EQUAL(mapped.since() + atomics.since() + under_lock.since() + network.since() +
                    by_target.since(),
                3u);
    CHECK_EQUAL(by_target.since(), takes_the_target(kind) ? 2u : 0u);
  });
}

void post_start_complete_wait() {
  MPI_Group world, origin, target;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int to = rma::right(), from = rma::left();
  OK(MPI_Group_incl(world, 1, &to, &target));
  OK(MPI_Group_incl(world, 1, &from, &origin));
  rma::for_each_kind([&](Kind kind) {
    rma::Window<int> win(kind, 64);
    for (int i = 1; i <= check::times(50, 10); ++i) {
      std::vector<int> values(64, 1000 * i + check::rank);
      OK(MPI_Win_post(origin, 0, win));
      OK(MPI_Win_start(target, 0, win));
      OK(MPI_Put(values.data(), 64, MPI_INT, to, 0, 64, MPI_INT, win));
      OK(MPI_Win_complete(win));
      if (i % 2 == 0) {
        OK(MPI_Win_wait(win));
      } else {
        int done = 0;
        while (done == 0)
          OK(MPI_Win_test(win, &done));
      }
      for (std::size_t k = 0; k < 64; ++k)
        CHECK_EQUAL(win[k], 1000 * i + from);
    }
  });
  OK(MPI_Group_free(&target));
  OK(MPI_Group_free(&origin));
  OK(MPI_Group_free(&world));
}

// Counters of a byte, by which ranks tell each other, begin again: no epoch ends too soon or never.
void more_epochs_than_a_byte_counts() {
  MPI_Group world, origin, target;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int to = rma::right(), from = rma::left(), epochs = check::times(300, 20);
  OK(MPI_Group_incl(world, 1, &to, &target));
  OK(MPI_Group_incl(world, 1, &from, &origin));
  rma::Window<int> win(Kind::allocated, 2);
  OK(MPI_Win_fence(0, win));
  for (int i = 1; i <= epochs; ++i) {
    OK(MPI_Put(&i, 1, MPI_INT, to, i % 2, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK_EQUAL(win[static_cast<std::size_t>(i % 2)], i);
  }
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  for (int i = 1; i <= epochs; ++i) {
    OK(MPI_Win_post(origin, 0, win));
    OK(MPI_Win_start(target, 0, win));
    OK(MPI_Put(&i, 1, MPI_INT, to, 0, 1, MPI_INT, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    CHECK_EQUAL(win[0], i);
  }
  for (MPI_Group* group : {&world, &origin, &target})
    OK(MPI_Group_free(group));
}

// One target, all others are origins, some of whom access nothing.
void many_origins() {
  MPI_Group world, others, first;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int zero = 0;
  OK(MPI_Group_incl(world, 1, &zero, &first));
  OK(MPI_Group_excl(world, 1, &zero, &others));
  rma::Window<int> win(Kind::allocated, static_cast<std::size_t>(check::size));
  for (int i = 1; i <= check::times(30, 10); ++i) {
    if (check::rank == 0) {
      OK(MPI_Win_post(others, 0, win));
      OK(MPI_Win_wait(win));
      for (int from = 1; from < check::size; ++from)
        CHECK_EQUAL(win[static_cast<std::size_t>(from)], from % 2 == 0 ? 0 : i);
    } else {
      OK(MPI_Win_start(first, 0, win));
      if (check::rank % 2 != 0) OK(MPI_Put(&i, 1, MPI_INT, 0, check::rank, 1, MPI_INT, win));
      OK(MPI_Win_complete(win));
    }
  }
  for (MPI_Group* group : {&world, &others, &first})
    OK(MPI_Group_free(group));
}

void derived_types_on_both_sides() {
  rma::for_each_kind([](Kind kind) {
    constexpr int rows = 12, columns = 16;
    rma::Window<int> win(kind, rows * columns);
    MPI_Datatype column, reversed;
    OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    std::vector<int> places(rows);
    for (int i = 0; i < rows; ++i)
      places[static_cast<std::size_t>(i)] = rows - 1 - i;
    OK(MPI_Type_create_indexed_block(rows, 1, places.data(), MPI_INT, &reversed));
    OK(MPI_Type_commit(&reversed));
    std::vector<int> out(rows), in(rows, -1);
    for (int i = 0; i < rows; ++i)
      out[static_cast<std::size_t>(i)] = 100 * check::rank + i;
    OK(MPI_Win_fence(0, win));
    // Reversed into column 3.
    OK(MPI_Put(out.data(), 1, reversed, rma::right(), 3, 1, column, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < rows; ++i) {
      CHECK_EQUAL(win[static_cast<std::size_t>(i * columns + 3)], 100 * rma::left() + rows - 1 - i);
      CHECK_EQUAL(win[static_cast<std::size_t>(i * columns + 4)], 0);
    }
    OK(MPI_Get(in.data(), rows, MPI_INT, rma::right(), 3, 1, column, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < rows; ++i)
      CHECK_EQUAL(in[static_cast<std::size_t>(i)], 100 * check::rank + rows - 1 - i);
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&reversed));
  });
}

// `count` integers in blocks, one stride apart.
class Strided {
 public:
  Strided(std::size_t count, std::size_t block, std::size_t stride)
      : count_(count), block_(block), stride_(stride) {
    OK(MPI_Type_vector(static_cast<int>(count / block), static_cast<int>(block),
                       static_cast<int>(stride), MPI_INT, &type));
    OK(MPI_Type_commit(&type));
  }
  Strided(const Strided&) = delete;
  Strided& operator=(const Strided&) = delete;
  ~Strided() { MPI_Type_free(&type); }

  [[nodiscard]] std::size_t room() const { return count_ / block_ * stride_; }
  // All are first + i * step in their order, and nothing is between them.
  void fill(int* memory, int first, int step) const {
    std::fill(memory, memory + room(), -1);
    for (std::size_t i = 0; i < count_; ++i)
      memory[place(i)] = first + static_cast<int>(i) * step;
  }
  void check(const int* memory, int first, int step) const {
    std::vector<int> expected(room());
    fill(expected.data(), first, step);
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK_EQUAL(memory[i], expected[i]);
  }

  MPI_Datatype type = MPI_DATATYPE_NULL;

 private:
  [[nodiscard]] std::size_t place(std::size_t i) const { return i / block_ * stride_ + i % block_; }
  std::size_t count_, block_, stride_;
};

// More segments than the kernel takes in a call, tiny ones and long ones, cut otherwise on either
// side: a call must take many.
void many_segments() {
  if (check::light()) return;
  struct Case {
    std::size_t count, our_block, our_stride, block, stride;
  };
  const Case cases[] = {
      {24000, 24000, 24000, 1, 2}, {24000, 1, 2, 24000, 24000},  {24000, 1, 3, 1, 2},
      {24000, 3, 4, 5, 9},         {3000, 1, 2, 1, 700},         {3000, 1000, 1001, 1, 700},
      {200000, 1000, 1001, 2, 3},  {200000, 400, 500, 800, 900}, {240000, 80000, 80001, 3, 8}};
  rma::for_each_kind([&](Kind kind) {
    for (const Case& each : cases) {
      const Strided ours(each.count, each.our_block, each.our_stride);
      const Strided theirs(each.count, each.block, each.stride);
      rma::Window<int> win(kind, theirs.room());
      std::vector<int> memory(ours.room());
      std::fill(win.data(), win.data() + win.size(), -1);
      ours.fill(memory.data(), check::rank, 1);
      OK(MPI_Barrier(MPI_COMM_WORLD));
      OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, win));
      const int to = rma::right();
      const auto access = [&](auto&& call) {
        const bool by_kernel = check::is_macadam() && rma::one_node() && check::size > 1 &&
                               kind == Kind::created && !takes_the_target(kind);
        if (!by_kernel) return call();
        const check::Counter copies("cross_copies");
        call();
        CHECK(copies.since() > 0 && copies.since() < 120);
      };
      access([&] { OK(MPI_Put(memory.data(), 1, ours.type, to, 0, 1, theirs.type, win)); });
      OK(MPI_Win_flush(to, win));
      std::fill(memory.begin(), memory.end(), -1);
      access([&] { OK(MPI_Get(memory.data(), 1, ours.type, to, 0, 1, theirs.type, win)); });
      OK(MPI_Win_flush(to, win));
      ours.check(memory.data(), check::rank, 1);
      OK(MPI_Accumulate(memory.data(), 1, ours.type, to, 0, 1, theirs.type, MPI_SUM, win));
      OK(MPI_Win_unlock(to, win));
      OK(MPI_Barrier(MPI_COMM_WORLD));
      theirs.check(win.data(), 2 * rma::left(), 2);
    }
  });
}

void different_units_and_sizes() {
  // Rank r has r pages and the unit r + 1.
  void* base = nullptr;
  MPI_Win win;
  const MPI_Aint bytes = 4096 * check::rank;
  OK(MPI_Win_allocate(bytes, check::rank + 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  if (bytes != 0) std::memset(base, 0, static_cast<std::size_t>(bytes));
  OK(MPI_Win_fence(0, win));
  const int last = check::size - 1;
  const unsigned char byte = 5;
  if (check::rank == 0 && last > 0) OK(MPI_Put(&byte, 1, MPI_BYTE, last, 10, 1, MPI_BYTE, win));
  if (check::rank == 0)
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(&byte, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win));
  OK(MPI_Win_fence(0, win));
  if (check::rank == last && last > 0)
    CHECK_EQUAL(static_cast<unsigned char*>(base)[10 * check::size], 5);
  OK(MPI_Win_free(&win));
}

void large_count_forms() {
  rma::Window<int> win(Kind::allocated, 16);
  const int value = 42 + check::rank;
  int found = 0;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put_c(&value, 1, MPI_INT, rma::right(), 2, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Get_c(&found, 1, MPI_INT, rma::right(), 2, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK_EQUAL(found, value);
  CHECK_EQUAL(win[2], 42 + rma::left());
  MPI_Win other;
  void* base = nullptr;
  OK(MPI_Win_allocate_c(64, MPI_Aint{8}, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &other));
  OK(MPI_Win_free(&other));
}

// However accesses go, they take no tags from the user: an early receive of a long message still
// announces itself to its sender.
void tags_are_left_to_the_user() {
  const char* const protocols = std::getenv("MACADAM_PROTOCOLS");
  if (!check::is_macadam() || !rma::one_node() || check::size < 2 || protocols != nullptr) return;
  rma::Window<std::uint64_t> win(Kind::created, 1024);
  std::vector<std::uint64_t> found(1024);
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 200; ++i) {
    OK(MPI_Get(found.data(), 8, MPI_UINT64_T, rma::right(), i, 8, MPI_UINT64_T, win));
    OK(MPI_Put(found.data(), 1, MPI_UINT64_T, rma::right(), i, 1, MPI_UINT64_T, win));
    OK(MPI_Put(found.data(), 700, MPI_UINT64_T, rma::right(), 300, 700, MPI_UINT64_T, win));
    if (i % 10 == 0) OK(MPI_Win_flush(rma::right(), win));
  }
  OK(MPI_Win_unlock_all(win));
  const check::Counter announced("recv_rndv"), uncounted("uncounted");
  std::vector<unsigned char> data(500000);
  const auto bytes = static_cast<int>(data.size());
  if (check::rank == 1) {
    MPI_Request request;
    OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request));
    check::token_send(0);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  } else if (check::rank == 0) {
    check::token_recv(1);
    OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
    CHECK_EQUAL(announced.since(), 1u);
  }
  CHECK_EQUAL(uncounted.since(), 0u);
}

std::int64_t most_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * std::int64_t{1024};
}

// What an epoch needs does not grow with its operations. (Sanitizers keep freed memory for a
// while.)
void a_million_operations() {
  const std::int64_t before = most_resident_bytes();
  rma::for_each_kind([](Kind kind) {
    rma::Window<std::uint64_t> win(kind, 1024);
    for (std::size_t i = 0; i < 1024; ++i)
      win[i] = i + 1;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int count = check::times(kind == Kind::created ? 100'000 : 1'000'000, 1'100);
    std::vector<std::uint64_t> found(1024);
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < count; ++i)
      OK(MPI_Get(&found[static_cast<std::size_t>(i % 1024)], 1, MPI_UINT64_T, rma::right(),
                 i % 1024, 1, MPI_UINT64_T, win));
    OK(MPI_Win_unlock_all(win));
    for (std::size_t i = 0; i < 1024; ++i)
      CHECK_EQUAL(found[i], i + 1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
  });
  CHECK(most_resident_bytes() - before < std::int64_t{400} << 20);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"fence_put_and_get", fence_put_and_get},
                     {"lock_put_flush_get", lock_put_flush_get},
                     {"exclusive_lock_excludes", exclusive_lock_excludes},
                     {"readers_and_writers", readers_and_writers},
                     {"lock_all_with_everybody", lock_all_with_everybody},
                     {"lock_all_against_exclusive", lock_all_against_exclusive},
                     {"nocheck_and_noncollective_locks", nocheck_and_noncollective_locks},
                     {"requests", requests},
                     {"target_computes", target_computes},
                     {"told_by_counters", told_by_counters},
                     {"post_start_complete_wait", post_start_complete_wait},
                     {"more_epochs_than_a_byte_counts", more_epochs_than_a_byte_counts},
                     {"many_origins", many_origins},
                     {"derived_types_on_both_sides", derived_types_on_both_sides},
                     {"many_segments", many_segments},
                     {"different_units_and_sizes", different_units_and_sizes},
                     {"large_count_forms", large_count_forms},
                     {"tags_are_left_to_the_user", tags_are_left_to_the_user},
                     {"a_million_operations", a_million_operations}});
}
