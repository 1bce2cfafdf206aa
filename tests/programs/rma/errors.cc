// SPDX-License-Identifier: BSD-3-Clause
// Wrong use of windows: the standard's error class, and nothing is lost.
#include "rma/window.h"

#include <climits>

namespace {

using rma::Kind;

void no_epoch() {
  rma::Window<int> win(Kind::allocated, 8);
  int value = 1;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush_local_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_complete(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_wait(win));
  int flag = 0;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_test(win, &flag));
  MPI_Request request = MPI_REQUEST_NULL;
  FAILS(MPI_ERR_RMA_SYNC, MPI_Rput(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win, &request));
}

void no_memory() {
  MPI_Win win;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_BUFFER, MPI_Win_create(nullptr, 64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_BUFFER, MPI_Win_attach(win, nullptr, 64));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

void wrong_epoch() {
  rma::Window<int> win(Kind::allocated, 8);
  const int me = check::rank;
  int value = 1;
  MPI_Group world;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_start(world, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock_all(win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win.handle()));
  if (check::size > 1) {
    FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, rma::right(), 0, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_flush(rma::right(), win));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(rma::right(), win));
  }
  OK(MPI_Put(&value, 1, MPI_INT, me, 0, 1, MPI_INT, win));
  OK(MPI_Win_unlock(me, win));
  CHECK_EQUAL(win[0], 1);
  OK(MPI_Win_lock_all(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(me, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win.handle()));
  OK(MPI_Win_unlock_all(win));
  // A fence with accesses after it is an epoch of its own.
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, me, 1, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win));
  OK(MPI_Win_fence(0, win));
  OK(MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win)); // without one it is not
  OK(MPI_Win_unlock(me, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, me, 0, 1, MPI_INT, win));
  OK(MPI_Group_free(&world));
}

void start_reaches_its_group_only() {
  if (check::size < 2) return;
  rma::Window<int> win(Kind::allocated, 8);
  MPI_Group world, self;
  const int me = check::rank;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_incl(world, 1, &me, &self));
  int value = 9;
  OK(MPI_Win_post(self, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_post(self, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_fence(0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win.handle()));
  OK(MPI_Win_start(self, 0, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Put(&value, 1, MPI_INT, rma::right(), 0, 1, MPI_INT, win));
  OK(MPI_Put(&value, 1, MPI_INT, me, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_free(&win.handle()));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  CHECK_EQUAL(win[0], 9);
  OK(MPI_Group_free(&self));
  OK(MPI_Group_free(&world));
}

void outside_the_memory() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<int> win(kind, 8);
    const int target = rma::right();
    std::vector<int> values(16, 3);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(values.data(), 9, MPI_INT, target, 0, 9, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(values.data(), 1, MPI_INT, target, 8, 1, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Get(values.data(), 2, MPI_INT, target, 7, 2, MPI_INT, win));
    FAILS(MPI_ERR_RMA_RANGE,
          MPI_Get(values.data(), 1, MPI_INT, target, LONG_MAX / 4, 1, MPI_INT, win));
    FAILS(MPI_ERR_DISP, MPI_Put(values.data(), 1, MPI_INT, target, -1, 1, MPI_INT, win));
    MPI_Datatype wide;
    OK(MPI_Type_vector(2, 1, 8, MPI_INT, &wide));
    OK(MPI_Type_commit(&wide));
    FAILS(MPI_ERR_RMA_RANGE, MPI_Put(values.data(), 2, MPI_INT, target, 0, 1, wide, win));
    OK(MPI_Type_free(&wide));
    OK(MPI_Put(values.data(), 0, MPI_INT, target, 8, 0, MPI_INT, win));
    OK(MPI_Put(values.data(), 8, MPI_INT, target, 0, 8, MPI_INT, win));
    OK(MPI_Win_unlock(target, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (std::size_t i = 0; i < 8; ++i)
      CHECK_EQUAL(win[i], 3);
  });
  // The message says where and how much.
  rma::Window<int> win(Kind::allocated, 8);
  int value = 0;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  const int code = MPI_Get(&value, 1, MPI_INT, 0, 8, 1, MPI_INT, win);
  OK(MPI_Win_unlock(0, win));
  if (check::is_macadam()) {
    const std::string text = check::error_text(code);
    CHECK(text.find("MPI_Get") != std::string::npos);
    CHECK(text.find("bytes 32 to 35") != std::string::npos);
    CHECK(text.find("has 32") != std::string::npos);
  }
}

void types_that_do_not_fit() {
  rma::Window<int> win(Kind::allocated, 8);
  int value = 0;
  OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_INT, 0, 0, 2, MPI_INT, win));
  FAILS(MPI_ERR_TYPE, MPI_Get(&value, 1, MPI_INT, 0, 0, 1, MPI_DOUBLE, win));
  FAILS(MPI_ERR_TYPE, MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_COUNT, MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_INT, check::size, 0, 1, MPI_INT, win));
  FAILS(MPI_ERR_RANK, MPI_Put(&value, 1, MPI_INT, -7, 0, 1, MPI_INT, win));
  if (check::is_macadam()) {
    int* const none = nullptr;
    FAILS(MPI_ERR_BUFFER, MPI_Compare_and_swap(none, &value, &value, MPI_INT, 0, 0, win));
    FAILS(MPI_ERR_BUFFER, MPI_Compare_and_swap(&value, none, &value, MPI_INT, 0, 0, win));
    FAILS(MPI_ERR_BUFFER, MPI_Compare_and_swap(&value, &value, none, MPI_INT, 0, 0, win));
    FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(none, &value, MPI_INT, 0, 0, MPI_SUM, win));
    FAILS(MPI_ERR_BUFFER, MPI_Fetch_and_op(&value, none, MPI_INT, 0, 0, MPI_SUM, win));
    OK(MPI_Fetch_and_op(none, &value, MPI_INT, 0, 0, MPI_NO_OP, win));
    const MPI_Count longest = INT64_MAX;
    FAILS(MPI_ERR_COUNT, MPI_Put_c(&value, longest, MPI_INT, 0, 0, longest, MPI_INT, win));
    // As many bytes as at the origin, modulo 2^64.
    const MPI_Count wraps = (MPI_Count{1} << 61) + 2;
    double two[2] = {};
    FAILS(MPI_ERR_COUNT, MPI_Put_c(two, 16, MPI_BYTE, 0, 0, wraps, MPI_DOUBLE, win));
    FAILS(MPI_ERR_COUNT, MPI_Get_c(two, 16, MPI_BYTE, 0, 0, wraps, MPI_DOUBLE, win));
    // To nobody nothing is described.
    const MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Put(&value, 1, type, MPI_PROC_NULL, 0, 1, type, win));
  }
  OK(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
  OK(MPI_Get(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win));
  OK(MPI_Win_unlock(0, win));
}

void bad_arguments() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  MPI_Win win = MPI_WIN_NULL;
  void* base = nullptr;
  FAILS(MPI_ERR_SIZE, MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  FAILS(MPI_ERR_DISP, MPI_Win_allocate(8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  FAILS(MPI_ERR_COMM, MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win));
  // Of all ranks together too much: all are told.
  const MPI_Aint half = MPI_Aint{1} << 62;
  if (check::is_macadam() && check::size > 1 && rma::one_node())
    FAILS(MPI_ERR_SIZE,
          MPI_Win_allocate_shared(half, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
  FAILS(MPI_ERR_WIN, MPI_Win_free(&win));
  FAILS(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
  FAILS(MPI_ERR_WIN, MPI_Win_fence(0, reinterpret_cast<MPI_Win>(MPI_COMM_WORLD)));
  {
    rma::Window<int> made(Kind::allocated, 4);
    FAILS(MPI_ERR_LOCKTYPE, MPI_Win_lock(7, 0, 0, made));
    FAILS(MPI_ERR_ASSERT, MPI_Win_lock(MPI_LOCK_SHARED, 0, 1, made));
    FAILS(MPI_ERR_ASSERT, MPI_Win_fence(MPI_MODE_NOCHECK, made));
    FAILS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, check::size, 0, made));
    FAILS(MPI_ERR_KEYVAL, MPI_Win_set_attr(made, MPI_WIN_SIZE, nullptr));
    win = made;
  }
  FAILS(MPI_ERR_WIN, MPI_Win_fence(0, win)); // a stale handle
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "no_locks", "true"));
  {
    rma::Window<int> made(Kind::allocated, 4, info);
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, made));
    FAILS(MPI_ERR_RMA_SYNC, MPI_Win_lock_all(0, made));
  }
  OK(MPI_Info_free(&info));
}

void memory_that_is_not_there() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Win win = MPI_WIN_NULL;
  void* base = nullptr;
  // One rank asks for too much: all are told, and why.
  const MPI_Aint most = MPI_Aint{1} << 50;
  const MPI_Aint bytes = check::rank == check::size - 1 ? most : 64;
  const int code = MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  FAILS(MPI_ERR_NO_MEM, code);
  const std::string text = check::error_text(code);
  CHECK(!check::is_macadam() || text.find(std::to_string(most)) != std::string::npos);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"no_epoch", no_epoch},
                     {"no_memory", no_memory},
                     {"wrong_epoch", wrong_epoch},
                     {"start_reaches_its_group_only", start_reaches_its_group_only},
                     {"outside_the_memory", outside_the_memory},
                     {"types_that_do_not_fit", types_that_do_not_fit},
                     {"bad_arguments", bad_arguments},
                     {"memory_that_is_not_there", memory_that_is_not_there}});
}
