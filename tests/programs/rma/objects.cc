// SPDX-License-Identifier: BSD-3-Clause
// What a window is beside its memory: attributes, name, info, group, error handlers, shared memory.
#include "rma/window.h"

namespace {

using rma::Kind;

void predefined_attributes() {
  rma::for_each_kind([](Kind kind) {
    rma::Window<double> win(kind, 10);
    void* value = nullptr;
    int found = 0;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &found));
    CHECK(found != 0 && value == win.data());
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &found));
    CHECK(found != 0);
    CHECK_EQUAL(*static_cast<MPI_Aint*>(value), 80);
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &found));
    CHECK_EQUAL(*static_cast<int*>(value), 8);
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &found));
    CHECK_EQUAL(*static_cast<int*>(value), kind == Kind::created     ? MPI_WIN_FLAVOR_CREATE
                                           : kind == Kind::allocated ? MPI_WIN_FLAVOR_ALLOCATE
                                                                     : MPI_WIN_FLAVOR_SHARED);
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &found));
    CHECK_EQUAL(*static_cast<int*>(value), MPI_WIN_UNIFIED);
  });
}

int deleted = 0;

int count_deletion(MPI_Win, int, void* value, void* extra) {
  deleted += *static_cast<int*>(value) + *static_cast<int*>(extra);
  return MPI_SUCCESS;
}

void own_attributes() {
  int key = MPI_KEYVAL_INVALID, state = 5;
  OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, count_deletion, &key, &state));
  int one = 1, two = 2;
  {
    rma::Window<int> win(Kind::allocated, 1);
    void* value = nullptr;
    int found = 1;
    OK(MPI_Win_get_attr(win, key, &value, &found));
    CHECK_EQUAL(found, 0);
    OK(MPI_Win_set_attr(win, key, &one));
    OK(MPI_Win_get_attr(win, key, &value, &found));
    CHECK(found != 0 && value == &one);
    OK(MPI_Win_set_attr(win, key, &two));
    CHECK_EQUAL(deleted, 6);
    OK(MPI_Win_delete_attr(win, key));
    CHECK_EQUAL(deleted, 13);
    OK(MPI_Win_set_attr(win, key, &two));
  } // freed with it
  CHECK_EQUAL(deleted, 20);
  OK(MPI_Win_free_keyval(&key));
  CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
}

void names() {
  char name[MPI_MAX_OBJECT_NAME] = "x";
  int length = -1;
  rma::Window<int> win(Kind::created, 1);
  OK(MPI_Win_get_name(win, name, &length));
  CHECK_EQUAL(length, 0);
  OK(MPI_Win_set_name(win, "halo"));
  OK(MPI_Win_get_name(win, name, &length));
  CHECK_EQUAL(std::string(name), "halo");
  OK(MPI_Win_get_name(MPI_WIN_NULL, name, &length));
  CHECK_EQUAL(std::string(name), "MPI_WIN_NULL");
}

std::string hint(MPI_Win win, const char* key) {
  MPI_Info info;
  char value[64] = "";
  int length = sizeof value, found = 0;
  OK(MPI_Win_get_info(win, &info));
  OK(MPI_Info_get_string(info, key, &length, value, &found));
  OK(MPI_Info_free(&info));
  return found != 0 ? value : "not there";
}

void hints() {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "accumulate_ops", "same_op"));
  OK(MPI_Info_set(info, "same_size", "true"));
  OK(MPI_Info_set(info, "no_locks", "maybe"));
  OK(MPI_Info_set(info, "accumulate_ordering", "rar,now"));
  OK(MPI_Info_set(info, "mpi_accumulate_granularity", "8 bytes"));
  OK(MPI_Info_set(info, "colour", "green"));
  {
    rma::Window<int> win(Kind::allocated, 1, info);
    CHECK_EQUAL(hint(win, "accumulate_ops"), "same_op");
    CHECK_EQUAL(hint(win, "same_size"), "true");
    CHECK_EQUAL(hint(win, "no_locks"), "false");
    CHECK_EQUAL(hint(win, "accumulate_ordering"), "rar,raw,war,waw");
    CHECK_EQUAL(hint(win, "colour"), "not there");
    CHECK_EQUAL(hint(win, "mpi_accumulate_granularity"), "0");
    OK(MPI_Info_set(info, "same_disp_unit", "true"));
    OK(MPI_Info_set(info, "accumulate_ordering", "war,rar"));
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "64"));
    OK(MPI_Win_set_info(win, info));
    CHECK_EQUAL(hint(win, "same_disp_unit"), "true");
    CHECK_EQUAL(hint(win, "accumulate_ordering"), "war,rar");
    CHECK_EQUAL(hint(win, "mpi_accumulate_granularity"), "64");
    CHECK_EQUAL(hint(win, "accumulate_ops"), "same_op");
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Win_set_info(win, info));
    CHECK_EQUAL(hint(win, "accumulate_ordering"), "none");
    for (const char* settled : {"no_locks", "alloc_shared_noncontig"}) { // when it was made
      OK(MPI_Info_set(info, settled, "true"));
      OK(MPI_Win_set_info(win, info));
      if (check::is_macadam()) CHECK_EQUAL(hint(win, settled), "false");
    }
  }
  OK(MPI_Info_free(&info));
}

void group() {
  rma::Window<int> win(Kind::allocated, 1);
  MPI_Group of_window, world;
  int result = MPI_UNEQUAL;
  OK(MPI_Win_get_group(win, &of_window));
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  OK(MPI_Group_compare(of_window, world, &result));
  CHECK_EQUAL(result, MPI_IDENT);
  OK(MPI_Group_free(&of_window));
  OK(MPI_Group_free(&world));
}

MPI_Win seen = MPI_WIN_NULL;
int seen_code = MPI_SUCCESS;

void note_error(MPI_Win* win, int* code, ...) {
  seen = *win;
  seen_code = *code;
}

void error_handlers() {
  MPI_Errhandler own, found;
  OK(MPI_Win_create_errhandler(note_error, &own));
  rma::Window<int> win(Kind::allocated, 1);
  OK(MPI_Win_set_errhandler(win, own));
  OK(MPI_Win_get_errhandler(win, &found));
  CHECK(found == own);
  OK(MPI_Errhandler_free(&found));
  FAILS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(0, win));
  CHECK(seen == static_cast<MPI_Win>(win));
  CHECK_EQUAL(check::error_class(seen_code), MPI_ERR_RMA_SYNC);
  OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
  CHECK_EQUAL(seen_code, MPI_ERR_OTHER);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_ERRHANDLER, MPI_Comm_set_errhandler(MPI_COMM_SELF, own));
  OK(MPI_Errhandler_free(&own));
  OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

void handles_as_integers() {
  rma::Window<int> win(Kind::allocated, 1);
  const int number = MPI_Win_toint(win);
  CHECK(MPI_Win_fromint(number) == static_cast<MPI_Win>(win));
}

// Each rank writes into the next one's memory through the pointer.
void shared_memory(bool apart) {
  if (!rma::one_node()) return;
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "alloc_shared_noncontig", apart ? "true" : "false"));
  MPI_Win win;
  unsigned char* own = nullptr;
  // Rank r has 3 r bytes, so rank 0 none.
  const MPI_Aint bytes = 3 * check::rank;
  OK(MPI_Win_allocate_shared(bytes, 1, info, MPI_COMM_WORLD, &own, &win));
  OK(MPI_Info_free(&info));
  std::vector<unsigned char*> bases;
  for (int rank = 0; rank < check::size; ++rank) {
    MPI_Aint size = -1;
    int unit = -1;
    unsigned char* base = nullptr;
    OK(MPI_Win_shared_query(win, rank, &size, &unit, &base));
    CHECK_EQUAL(size, 3 * rank);
    CHECK_EQUAL(unit, 1);
    bases.push_back(base);
  }
  if (!apart) {
    for (std::size_t rank = 1; rank < bases.size(); ++rank)
      CHECK(bases[rank] == bases[0] + 3 * (rank * (rank - 1) / 2));
  }
  if (check::size > 1) {
    MPI_Aint size = -1;
    int unit = -1;
    unsigned char* base = nullptr;
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &size, &unit, &base));
    CHECK(base == bases[1] && size == 3);
  }
  OK(MPI_Win_lock_all(0, win));
  for (int i = 0; i < 3 * rma::right(); ++i)
    bases[static_cast<std::size_t>(rma::right())][i] = static_cast<unsigned char>(check::rank + 1);
  OK(MPI_Win_sync(win));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  OK(MPI_Win_sync(win));
  for (int i = 0; i < 3 * check::rank; ++i)
    CHECK_EQUAL(static_cast<int>(own[i]), rma::left() + 1);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_free(&win));
}

void shared_together() {
  shared_memory(false);
}
void shared_apart() {
  shared_memory(true);
}

// The memory that a window is made with begins where the user wants it: that of each rank, or of
// the first, if the others' follows it.
void aligned_memory() {
  if (!check::is_macadam()) return;
  constexpr const char* key = "mpi_minimum_memory_alignment";
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, key, "4096"));
  const auto use = [&](Kind kind, bool each) {
    rma::Window<char> win(kind, 100, info);
    CHECK_EQUAL(hint(win, key), "4096");
    if (each || check::rank == 0)
      CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(win.data()) % 4096, 0u);
    const char value = static_cast<char>(check::rank + 1);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&value, 1, MPI_CHAR, rma::right(), 99, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQUAL(static_cast<int>(win[99]), rma::left() + 1);
  };
  use(Kind::allocated, true);
  if (rma::one_node()) {
    use(Kind::shared, false);
    OK(MPI_Info_set(info, "alloc_shared_noncontig", "true"));
    use(Kind::shared, true);
  }
  OK(MPI_Info_free(&info));
}

// Windows come and go, and take their memory with them.
void many_windows() {
  for (int i = 0; i < check::times(200, 8); ++i) {
    rma::Window<char> one(Kind::allocated, 1 << 20);
    rma::Window<char> two(Kind::created, 16);
    one[5] = 'x';
    OK(MPI_Win_fence(0, two));
    OK(MPI_Put(&one[5], 1, MPI_CHAR, rma::right(), 3, 1, MPI_CHAR, two));
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, two));
    CHECK_EQUAL(two[3], 'x');
  }
}

// A window of some of the ranks, in another order.
void part_of_the_ranks() {
  MPI_Comm comm;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, -check::rank, &comm));
  int rank = 0, size = 0, value = 0;
  OK(MPI_Comm_rank(comm, &rank));
  OK(MPI_Comm_size(comm, &size));
  int* base = nullptr;
  MPI_Win win;
  OK(MPI_Win_allocate(4, 4, MPI_INFO_NULL, comm, &base, &win));
  OK(MPI_Comm_free(&comm)); // the window keeps what it needs
  *base = check::rank;
  OK(MPI_Win_fence(0, win));
  const int next = (rank + 1) % size;
  OK(MPI_Get(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  CHECK_EQUAL(value % 2, check::rank % 2);
  CHECK_EQUAL(value, next > rank ? check::rank - 2 : check::rank + 2 * (size - 1));
  OK(MPI_Win_free(&win));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"predefined_attributes", predefined_attributes},
                     {"own_attributes", own_attributes},
                     {"names", names},
                     {"hints", hints},
                     {"group", group},
                     {"error_handlers", error_handlers},
                     {"handles_as_integers", handles_as_integers},
                     {"shared_together", shared_together},
                     {"shared_apart", shared_apart},
                     {"aligned_memory", aligned_memory},
                     {"many_windows", many_windows},
                     {"part_of_the_ranks", part_of_the_ranks}});
}
