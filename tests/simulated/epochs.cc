// SPDX-License-Identifier: BSD-3-Clause
// What the end of an epoch tells must not come before the data: looked at the moment it is told,
// many times, as a late write is seen late only sometimes.
#include "rma/window.h"

namespace {

constexpr std::size_t words = 40;
constexpr int rounds = 60;

// Rank 0 exposes, the others write and complete.
void completion() {
  rma::Window<std::int64_t> win(rma::Kind::allocated,
                                words * static_cast<std::size_t>(check::size));
  MPI_Group world, group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
  const int zero = 0;
  OK(check::rank == 0 ? MPI_Group_excl(world, 1, &zero, &group)
                      : MPI_Group_incl(world, 1, &zero, &group));
  for (std::int64_t round = 1; round <= rounds; ++round) {
    if (check::rank == 0) {
      OK(MPI_Win_post(group, 0, win));
      OK(MPI_Win_wait(win));
      for (std::size_t i = words; i < win.size(); ++i)
        CHECK_EQUAL(win[i], round);
    } else {
      const std::vector<std::int64_t> ours(words, round);
      OK(MPI_Win_start(group, 0, win));
      OK(MPI_Put(ours.data(), words, MPI_INT64_T, 0, check::rank * static_cast<MPI_Aint>(words),
                 words, MPI_INT64_T, win));
      OK(MPI_Win_complete(win));
    }
  }
  OK(MPI_Group_free(&group));
  OK(MPI_Group_free(&world));
}

// Who holds the lock alone adds one to all words of rank 0; those who share it find them equal.
void locks() {
  rma::Window<std::int64_t> win(rma::Kind::allocated, words);
  std::vector<std::int64_t> found(words);
  const auto look = [&](int kind) {
    OK(MPI_Win_lock(kind, 0, 0, win));
    OK(MPI_Get(found.data(), words, MPI_INT64_T, 0, 0, words, MPI_INT64_T, win));
    OK(MPI_Win_flush(0, win));
    for (const std::int64_t each : found)
      CHECK_EQUAL(each, found[0]);
  };
  const bool writes = check::rank == 1;
  for (int round = 0; round < rounds; ++round) {
    look(writes ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED);
    if (writes) {
      for (std::int64_t& each : found)
        ++each;
      for (std::size_t half : {words / 2, std::size_t{0}}) // two writes
        OK(MPI_Put(&found[half], words / 2, MPI_INT64_T, 0, static_cast<MPI_Aint>(half), words / 2,
                   MPI_INT64_T, win));
    }
    OK(MPI_Win_unlock(0, win));
  }
  OK(MPI_Barrier(MPI_COMM_WORLD));
  look(MPI_LOCK_SHARED);
  CHECK_EQUAL(found[0], rounds);
  OK(MPI_Win_unlock(0, win));
}

// Each writes to its neighbour, who looks behind the fence.
void fences() {
  rma::Window<std::int64_t> win(rma::Kind::allocated, words);
  OK(MPI_Win_fence(0, win));
  for (std::int64_t round = 1; round <= rounds; ++round) {
    const std::vector<std::int64_t> ours(words, round);
    OK(MPI_Put(ours.data(), words, MPI_INT64_T, rma::right(), 0, words, MPI_INT64_T, win));
    OK(MPI_Win_fence(0, win));
    for (std::size_t i = 0; i < words; ++i)
      CHECK_EQUAL(win[i], round);
    OK(MPI_Win_fence(0, win));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"completion", completion}, {"locks", locks}, {"fences", fences}});
}
