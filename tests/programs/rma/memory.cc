// SPDX-License-Identifier: BSD-3-Clause
// Memory of windows: large ones, unlike ones, one after the other, and more than there is.
#include "rma/window.h"

#include <cstdio>

namespace {

constexpr MPI_Aint mib = 1 << 20;

// Of a line of /proc/meminfo; 0 if there is none.
MPI_Aint machine_bytes(const char* key) {
  MPI_Aint kib = 0;
  char line[256];
  FILE* const file = std::fopen("/proc/meminfo", "r");
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    long value = 0;
    if (std::strncmp(line, key, std::strlen(key)) == 0 &&
        std::sscanf(line + std::strlen(key), ": %ld", &value) == 1)
      kib = value;
  }
  if (file != nullptr) std::fclose(file);
  MPI_Aint least = 0;
  OK(MPI_Allreduce(&kib, &least, 1, MPI_AINT, MPI_MIN, MPI_COMM_WORLD));
  return least << 10;
}

// The neighbour's memory at both ends and in the middle.
void use(MPI_Win win, char* own, MPI_Aint bytes, int turn) {
  const MPI_Aint places[] = {0, bytes / 2, bytes - 1};
  const int to = (check::rank + 1) % check::size;
  OK(MPI_Win_fence(0, win));
  for (const MPI_Aint place : places) {
    const char value = static_cast<char>(turn + to + (place > 0));
    OK(MPI_Put(&value, 1, MPI_CHAR, to, place, 1, MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
  }
  for (const MPI_Aint place : places)
    CHECK_EQUAL(own[place], static_cast<char>(turn + check::rank + (place > 0)));
}

// Each takes the place of the one before, or of a part of it.
void growing() {
  const MPI_Aint most =
      rma::one_node() ? machine_bytes("MemAvailable") / 2 / check::size : 16 * mib;
  int turn = 0;
  for (MPI_Aint bytes = mib / 4; bytes < most; bytes += bytes / 4 + 4711) {
    char* own = nullptr;
    MPI_Win win;
    OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
    use(win, own, bytes, ++turn);
    OK(MPI_Win_free(&win));
  }
}

void several_at_a_time() {
  constexpr int count = 12;
  std::vector<MPI_Win> windows(count, MPI_WIN_NULL);
  for (int turn = 0; turn < check::times(300, 30); ++turn) {
    MPI_Win& win = windows[static_cast<std::size_t>(turn * 7 % count)];
    if (win != MPI_WIN_NULL) OK(MPI_Win_free(&win));
    const MPI_Aint bytes = (turn * 37 % 50 + 1) * mib / 8 + turn;
    char* own = nullptr;
    OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
    use(win, own, bytes, turn);
  }
  for (MPI_Win& win : windows)
    if (win != MPI_WIN_NULL) OK(MPI_Win_free(&win));
}

// Rank 0 gives what is there: no rank has a share of its own.
void one_rank_has_it_all() {
  if (!rma::one_node()) return;
  const MPI_Aint free = machine_bytes("MemAvailable");
  const MPI_Aint bytes = check::rank == 0 ? free / 8 * 5 : 0;
  char* own = nullptr;
  MPI_Win win;
  OK(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
  MPI_Aint all = 0;
  int unit = 0;
  char* table = nullptr;
  OK(MPI_Win_shared_query(win, 0, &all, &unit, &table));
  CHECK(all > 0);
  OK(MPI_Win_fence(0, win));
  table[all - 1 - check::rank] = static_cast<char>(check::rank + 1);
  OK(MPI_Win_fence(0, win));
  for (int rank = 0; rank < check::size; ++rank)
    CHECK_EQUAL(table[all - 1 - rank], static_cast<char>(rank + 1));
  OK(MPI_Win_free(&win));
}

// What one was promised and has not touched yet the next does not get.
void more_than_there_is() {
  if (!rma::one_node()) return; // what is registered is taken at once
  const MPI_Aint most = machine_bytes("MemAvailable") / 16 * 11 / check::size;
  const MPI_Aint total = machine_bytes("MemTotal");
  char* own = nullptr;
  MPI_Win win;
  MPI_Win second;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(4 * total, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
  OK(MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
  if (check::size > 1 && check::is_macadam())
    FAILS(MPI_ERR_NO_MEM, MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &second));
  OK(MPI_Win_free(&win));
  OK(MPI_Win_allocate(most, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
  use(win, own, most, 1);
  OK(MPI_Win_free(&win));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"growing", growing},
                     {"several_at_a_time", several_at_a_time},
                     {"one_rank_has_it_all", one_rank_has_it_all},
                     {"more_than_there_is", more_than_there_is}});
}
