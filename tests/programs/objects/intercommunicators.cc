// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_split of an intercommunicator whose groups are of unequal size: those of one color on
// both sides are the two groups of a new one, each ordered by key.
#include "check.h"

#include <algorithm>

namespace {

using Choice = std::function<int(int rank)>; // by rank of MPI_COMM_WORLD

// The ranks of MPI_COMM_WORLD before this one are the first group.
int border() {
  return std::max(1, check::size / 3);
}

bool is_first(int rank) {
  return rank < border();
}

MPI_Comm make() {
  MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL;
  OK(MPI_Comm_split(MPI_COMM_WORLD, is_first(check::rank) ? 0 : 1, 0, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, is_first(check::rank) ? border() : 0, 1,
                          &inter));
  OK(MPI_Comm_free(&half));
  return inter;
}

// Who is in a group of the new communicator, and in which order.
std::vector<int> expected(bool first, int color, const Choice& color_of, const Choice& key_of) {
  std::vector<int> ranks;
  for (int rank = 0; rank < check::size; ++rank)
    if (is_first(rank) == first && color != MPI_UNDEFINED && color_of(rank) == color)
      ranks.push_back(rank);
  std::ranges::stable_sort(ranks, {}, key_of);
  return ranks;
}

void split(const Choice& color_of, const Choice& key_of) {
  MPI_Comm inter = make(), part = MPI_COMM_WORLD;
  const int color = color_of(check::rank);
  OK(MPI_Comm_split(inter, color, key_of(check::rank), &part));
  const std::vector<int> local = expected(is_first(check::rank), color, color_of, key_of);
  const std::vector<int> remote = expected(!is_first(check::rank), color, color_of, key_of);
  if (local.empty() || remote.empty()) {
    CHECK(part == MPI_COMM_NULL); // nobody to talk to
  } else {
    int is_inter = 0, rank = -1, size = 0, remote_size = 0;
    OK(MPI_Comm_test_inter(part, &is_inter));
    OK(MPI_Comm_rank(part, &rank));
    OK(MPI_Comm_size(part, &size));
    OK(MPI_Comm_remote_size(part, &remote_size));
    CHECK(is_inter != 0);
    CHECK_EQUAL(size, static_cast<int>(local.size()));
    CHECK_EQUAL(remote_size, static_cast<int>(remote.size()));
    CHECK_EQUAL(local[static_cast<std::size_t>(rank)], check::rank);
    // A collective and messages to every one of the other group.
    std::vector<int> told(remote.size(), -1);
    OK(MPI_Allgather(&check::rank, 1, MPI_INT, told.data(), 1, MPI_INT, part));
    CHECK(told == remote);
    std::vector<MPI_Request> sent(remote.size());
    for (int to = 0; to < remote_size; ++to)
      OK(MPI_Isend(&check::rank, 1, MPI_INT, to, 2, part, &sent[static_cast<std::size_t>(to)]));
    for (int from = 0; from < remote_size; ++from) {
      int got = -1;
      OK(MPI_Recv(&got, 1, MPI_INT, from, 2, part, MPI_STATUS_IGNORE));
      CHECK_EQUAL(got, remote[static_cast<std::size_t>(from)]);
    }
    OK(MPI_Waitall(remote_size, sent.data(), MPI_STATUSES_IGNORE));
    OK(MPI_Comm_free(&part));
  }
  OK(MPI_Barrier(inter)); // which goes on as before
  OK(MPI_Comm_free(&inter));
}

const Choice same_key = [](int) { return 0; };
const Choice backwards = [](int rank) { return -rank; };

void whole() {
  split([](int) { return 3; }, same_key);
  split([](int) { return 3; }, backwards);
}

void by_color() {
  for (const int colors : {2, 3})
    split([=](int rank) { return rank % colors; }, backwards);
  // No color is on both sides.
  split([](int rank) { return is_first(rank) ? 1 : 2; }, same_key);
}

void undefined() {
  for (const bool first : {true, false})
    split([=](int rank) { return is_first(rank) == first ? MPI_UNDEFINED : 0; }, same_key);
  // Only one rank has none; and only one of each side has one.
  split([](int rank) { return rank == check::size - 1 ? MPI_UNDEFINED : 0; }, backwards);
  split([](int rank) { return rank == 0 || rank == check::size - 1 ? 7 : MPI_UNDEFINED; },
        same_key);
  split([](int) { return MPI_UNDEFINED; }, same_key);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"whole", whole}, {"by_color", by_color}, {"undefined", undefined}});
}
