// SPDX-License-Identifier: BSD-3-Clause
// Dynamic windows: memory attached and detached while others access it.
#include "rma/window.h"

#include <memory>

namespace {

struct Dynamic {
  Dynamic() {
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  }
  ~Dynamic() { OK(MPI_Win_free(&win)); }
  Dynamic(const Dynamic&) = delete;
  Dynamic& operator=(const Dynamic&) = delete;
  MPI_Win win = MPI_WIN_NULL;
};

// The addresses of all ranks' memory.
std::vector<MPI_Aint> exchange(const void* memory) {
  MPI_Aint own = 0;
  OK(MPI_Get_address(memory, &own));
  std::vector<MPI_Aint> all(static_cast<std::size_t>(check::size));
  OK(MPI_Allgather(&own, 1, MPI_AINT, all.data(), 1, MPI_AINT, MPI_COMM_WORLD));
  return all;
}

void put_and_get() {
  Dynamic dynamic;
  std::vector<int> memory(100, -1);
  OK(MPI_Win_attach(dynamic.win, memory.data(), 400));
  const auto where = exchange(memory.data());
  const MPI_Aint there = where[static_cast<std::size_t>(rma::right())];
  const int value = 7 + check::rank;
  int found = 0;
  OK(MPI_Win_lock_all(0, dynamic.win));
  OK(MPI_Put(&value, 1, MPI_INT, rma::right(), MPI_Aint_add(there, 40), 1, MPI_INT, dynamic.win));
  OK(MPI_Win_flush(rma::right(), dynamic.win));
  OK(MPI_Get(&found, 1, MPI_INT, rma::right(), MPI_Aint_add(there, 40), 1, MPI_INT, dynamic.win));
  OK(MPI_Win_flush(rma::right(), dynamic.win));
  CHECK_EQUAL(found, value);
  const int one = 1;
  for (int target = 0; target < check::size; ++target) {
    OK(MPI_Accumulate(&one, 1, MPI_INT, target,
                      MPI_Aint_add(where[static_cast<std::size_t>(target)], 80), 1, MPI_INT,
                      MPI_SUM, dynamic.win));
  }
  OK(MPI_Win_unlock_all(dynamic.win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(memory[10], 7 + rma::left());
  CHECK_EQUAL(memory[20], check::size - 1);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_detach(dynamic.win, memory.data()));
}

// More regions than a list has room for at first, attached and detached again and again: at the
// same address, so that only the list tells that the key is another one.
void many_regions() {
  Dynamic dynamic;
  constexpr std::size_t regions = 50;
  std::vector<std::unique_ptr<int[]>> memory(regions);
  for (auto& each : memory)
    each = std::make_unique<int[]>(16);
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < regions; ++i)
      OK(MPI_Win_attach(dynamic.win, memory[i].get(), 64));
    for (std::size_t i = 0; i < regions; i += 7) {
      const auto where = exchange(memory[i].get());
      const int value = 1000 * round + static_cast<int>(i) + check::rank;
      OK(MPI_Win_fence(0, dynamic.win));
      OK(MPI_Put(&value, 1, MPI_INT, rma::right(), where[static_cast<std::size_t>(rma::right())], 1,
                 MPI_INT, dynamic.win));
      OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic.win));
      CHECK_EQUAL(memory[i][0], 1000 * round + static_cast<int>(i) + rma::left());
    }
    for (std::size_t i = regions; i-- > 0;)
      OK(MPI_Win_detach(dynamic.win, memory[i].get()));
  }
}

// Operations across regions that were attached one by one, not in order, but touch. An element may
// be in two of them.
void regions_that_touch() {
  Dynamic dynamic;
  constexpr int count = 3000;
  std::vector<int> memory(count, 0);
  auto* const bytes = reinterpret_cast<char*>(memory.data());
  OK(MPI_Win_attach(dynamic.win, bytes + 4002, 5998));
  OK(MPI_Win_attach(dynamic.win, bytes, 4002));
  OK(MPI_Win_attach(dynamic.win, bytes + 10000, 1000));
  OK(MPI_Win_attach(dynamic.win, bytes + 11001, 900)); // a byte is missing
  const auto where = exchange(memory.data());
  const int target = rma::right();
  const MPI_Aint there = where[static_cast<std::size_t>(target)];
  std::vector<int> ours(count), found(count, -1);
  for (int i = 0; i < count; ++i)
    ours[static_cast<std::size_t>(i)] = i + check::rank;
  OK(MPI_Win_lock_all(0, dynamic.win));
  OK(MPI_Put(ours.data(), 2750, MPI_INT, target, there, 2750, MPI_INT, dynamic.win));
  OK(MPI_Win_flush(target, dynamic.win));
  OK(MPI_Accumulate(ours.data(), 2750, MPI_INT, target, there, 2750, MPI_INT, MPI_SUM,
                    dynamic.win));
  OK(MPI_Get(found.data(), 1000, MPI_INT, target, there + 3000, 1000, MPI_INT, dynamic.win));
  OK(MPI_Win_flush(target, dynamic.win));
  for (int i = 0; i < 1000; ++i)
    CHECK_EQUAL(found[static_cast<std::size_t>(i)], 2 * (i + 750 + check::rank));
  int expected = 2 * (1000 + check::rank), wanted = -5, old = 0; // its bytes 4000 to 4003
  OK(MPI_Compare_and_swap(&wanted, &expected, &old, MPI_INT, target, there + 4000, dynamic.win));
  OK(MPI_Win_flush(target, dynamic.win));
  CHECK_EQUAL(old, expected);
  MPI_Datatype column; // of which an element is in two regions, and others in each of three
  OK(MPI_Type_vector(50, 1, 55, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  OK(MPI_Put(ours.data(), 50, MPI_INT, target, there + 40, 1, column, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE,
        MPI_Put(ours.data(), 1, MPI_INT, target, there + 10998, 1, MPI_INT, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE,
        MPI_Get(found.data(), 2800, MPI_INT, target, there, 2800, MPI_INT, dynamic.win));
  OK(MPI_Win_unlock_all(dynamic.win));
  OK(MPI_Type_free(&column));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  for (int i = 0; i < 2750; ++i) {
    const bool in_column = i >= 10 && (i - 10) % 55 == 0 && (i - 10) / 55 < 50;
    const int value = in_column   ? (i - 10) / 55 + rma::left()
                      : i == 1000 ? -5
                                  : 2 * (i + rma::left());
    CHECK_EQUAL(memory[static_cast<std::size_t>(i)], value);
  }
  for (const int at : {0, 4002, 10000, 11001})
    OK(MPI_Win_detach(dynamic.win, bytes + at));
}

// A type of addresses at displacement 0, where MPI_BOTTOM is: of all ranks, this one too.
void from_the_bottom() {
  Dynamic dynamic;
  constexpr std::size_t each = 8; // elements for an origin
  std::vector<int> memory(each * static_cast<std::size_t>(check::size), 0);
  OK(MPI_Win_attach(dynamic.win, memory.data(),
                    static_cast<MPI_Aint>(memory.size() * sizeof(int))));
  const auto where = exchange(memory.data());
  const int ours[5] = {1, 2, 3, 4, 5};
  OK(MPI_Win_lock_all(0, dynamic.win));
  for (int target = 0; target < check::size; ++target) {
    const auto before = static_cast<MPI_Aint>(each * sizeof(int)) * check::rank;
    const MPI_Aint first = MPI_Aint_add(where[static_cast<std::size_t>(target)], before);
    const int lengths[2] = {2, 3};
    const MPI_Aint places[2] = {first, MPI_Aint_add(first, 16)};
    int found[5] = {};
    MPI_Datatype type;
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Put(ours, 5, MPI_INT, target, 0, 1, type, dynamic.win));
    OK(MPI_Win_flush(target, dynamic.win));
    OK(MPI_Accumulate(ours, 5, MPI_INT, target, 0, 1, type, MPI_SUM, dynamic.win));
    OK(MPI_Win_flush(target, dynamic.win));
    OK(MPI_Get(found, 5, MPI_INT, target, 0, 1, type, dynamic.win));
    OK(MPI_Win_flush(target, dynamic.win));
    for (std::size_t i = 0; i < 5; ++i)
      CHECK_EQUAL(found[i], 2 * ours[i]);
    OK(MPI_Type_free(&type));
  }
  OK(MPI_Win_unlock_all(dynamic.win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  const int expected[each] = {2, 4, 0, 0, 6, 8, 10, 0};
  for (std::size_t i = 0; i < memory.size(); ++i)
    CHECK_EQUAL(memory[i], expected[i % each]);
  OK(MPI_Win_detach(dynamic.win, memory.data()));
}

// A region of no bytes is detached as any other, also from where one with bytes begins.
void regions_of_nothing() {
  Dynamic dynamic;
  int memory[4] = {};
  OK(MPI_Win_attach(dynamic.win, memory, 0));
  OK(MPI_Win_attach(dynamic.win, memory, 16));
  OK(MPI_Win_attach(dynamic.win, memory + 2, 0));
  OK(MPI_Win_detach(dynamic.win, memory + 2));
  OK(MPI_Win_detach(dynamic.win, memory));
  OK(MPI_Win_detach(dynamic.win, memory));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic.win, memory));
}

void wrong_use() {
  Dynamic dynamic;
  int memory[8] = {};
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic.win, memory));
  OK(MPI_Win_attach(dynamic.win, memory, 32));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(dynamic.win, memory + 7, 8));
  FAILS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(dynamic.win, memory + 1));
  const auto where = exchange(memory);
  const MPI_Aint there = where[static_cast<std::size_t>(rma::right())];
  int value = 1;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE,
        MPI_Put(&value, 1, MPI_INT, rma::right(), there - 4, 1, MPI_INT, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE,
        MPI_Put(&value, 1, MPI_INT, rma::right(), there + 30, 1, MPI_INT, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE, MPI_Get(&value, 1, MPI_INT, rma::right(), 0, 1, MPI_INT, dynamic.win));
  OK(MPI_Put(&value, 1, MPI_INT, rma::right(), there + 28, 1, MPI_INT, dynamic.win));
  OK(MPI_Win_unlock(rma::right(), dynamic.win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  CHECK_EQUAL(memory[7], 1);
  OK(MPI_Win_detach(dynamic.win, memory));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, rma::right(), 0, dynamic.win));
  FAILS(MPI_ERR_RMA_RANGE,
        MPI_Put(&value, 1, MPI_INT, rma::right(), there, 1, MPI_INT, dynamic.win));
  OK(MPI_Win_unlock(rma::right(), dynamic.win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  rma::Window<int> other(rma::Kind::allocated, 4);
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(other, memory, 4));
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(other, memory));
  MPI_Aint size = 0;
  int unit = 0;
  void* base = nullptr;
  FAILS(MPI_ERR_RMA_FLAVOR, MPI_Win_shared_query(dynamic.win, 0, &size, &unit, &base));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"put_and_get", put_and_get},
                     {"many_regions", many_regions},
                     {"regions_that_touch", regions_that_touch},
                     {"from_the_bottom", from_the_bottom},
                     {"regions_of_nothing", regions_of_nothing},
                     {"wrong_use", wrong_use}});
}
