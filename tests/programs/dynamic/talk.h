// SPDX-License-Identifier: BSD-3-Clause
// What the programs on spawned and connected jobs have in common.
#pragma once

#include "check.h"

#include <numeric>
#include <string>
#include <vector>

namespace dynamic {

inline int size_of(MPI_Comm comm) {
  int size = 0;
  OK(MPI_Comm_size(comm, &size));
  return size;
}
inline int rank_of(MPI_Comm comm) {
  int rank = 0;
  OK(MPI_Comm_rank(comm, &rank));
  return rank;
}
inline int remote_size_of(MPI_Comm comm) {
  int size = 0;
  OK(MPI_Comm_remote_size(comm, &size));
  return size;
}

// Messages of all protocols between all of both groups, both ways at once, and collectives.
inline void talk(MPI_Comm inter) {
  const int remote = remote_size_of(inter), mine = rank_of(inter);
  const auto seed = [](int from, int to) { return static_cast<std::uint64_t>(1000 * from + to); };
  for (const int bytes : {0, 8, 3000, 20'000, 300'000}) {
    const auto length = static_cast<std::size_t>(bytes);
    std::vector<std::vector<char>> in, out;
    std::vector<MPI_Request> requests;
    for (int other = 0; other < remote; ++other) {
      OK(MPI_Irecv(in.emplace_back(length + 1).data(), bytes, MPI_BYTE, other, 3, inter,
                   &requests.emplace_back()));
      check::fill(out.emplace_back(length + 1).data(), length, seed(mine, other));
      OK(MPI_Isend(out.back().data(), bytes, MPI_BYTE, other, 3, inter, &requests.emplace_back()));
    }
    OK(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE));
    for (int other = 0; other < remote; ++other)
      HOLDS(in[static_cast<std::size_t>(other)].data(), bytes, seed(other, mine));
  }
  int one = 1, sum = 0;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter));
  CHECK_EQUAL(sum, remote);
}

// The same in one communicator of several jobs, and what is made of it.
inline void talk_inside(MPI_Comm intra, int expected_size) {
  const int size = size_of(intra), rank = rank_of(intra);
  CHECK_EQUAL(size, expected_size);
  std::vector<int> all(static_cast<std::size_t>(size), -1), expected(all);
  std::iota(expected.begin(), expected.end(), 0);
  OK(MPI_Allgather(&rank, 1, MPI_INT, all.data(), 1, MPI_INT, intra));
  CHECK(all == expected);
  MPI_Comm twin, half;
  OK(MPI_Comm_dup(intra, &twin));
  OK(MPI_Comm_split(twin, rank % 2, -rank, &half));
  CHECK_EQUAL(size_of(half), (size + 1 - rank % 2) / 2);
  OK(MPI_Barrier(half));
  OK(MPI_Comm_free(&half));
  OK(MPI_Comm_free(&twin));
}

// A put into the memory of each other rank.
inline void put_inside(MPI_Comm intra) {
  const int size = size_of(intra), rank = rank_of(intra);
  std::vector<int> memory(static_cast<std::size_t>(size), -1);
  MPI_Win win;
  OK(MPI_Win_create(memory.data(), static_cast<MPI_Aint>(memory.size() * sizeof(int)), sizeof(int),
                    MPI_INFO_NULL, intra, &win));
  OK(MPI_Win_fence(0, win));
  for (int other = 0; other < size; ++other)
    OK(MPI_Put(&rank, 1, MPI_INT, other, rank, 1, MPI_INT, win));
  OK(MPI_Win_fence(0, win));
  for (int other = 0; other < size; ++other)
    CHECK_EQUAL(memory[static_cast<std::size_t>(other)], other);
  OK(MPI_Win_free(&win));
}

} // namespace dynamic
