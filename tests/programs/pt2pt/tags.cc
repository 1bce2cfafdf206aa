// SPDX-License-Identifier: BSD-3-Clause
// Many tags, far beyond any bound on what is remembered per tag: never a wrong match.
#include "check.h"

namespace {

void every_tag_once() {
  const int n = check::times(30000, 2000);
  std::vector<int> received(n, -1), values(n);
  std::vector<MPI_Request> requests(n);
  if (check::rank > 1) return;
  const int peer = 1 - check::rank;
  for (int i = 0; i < n; ++i)
    OK(MPI_Irecv(&received[static_cast<std::size_t>(i)], 1, MPI_INT, peer, i * 71, MPI_COMM_WORLD,
                 &requests[static_cast<std::size_t>(i)]));
  for (int i = n - 1; i >= 0; --i) {
    int value = i + 1000000 * check::rank;
    OK(MPI_Send(&value, 1, MPI_INT, peer, i * 71, MPI_COMM_WORLD));
  }
  OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
  for (int i = 0; i < n; ++i)
    CHECK_EQUAL(received[static_cast<std::size_t>(i)], i + 1000000 * peer);
}

// Large messages: announced receives on thousands of tags, then again on the same tags.
void large_messages_on_many_tags() {
  if (check::rank > 1) return;
  const int bytes = 80000, window = 16, tags = check::times(4096, 320);
  std::vector<std::vector<unsigned char>> data(window, std::vector<unsigned char>(bytes));
  for (int round = 0; round < 2; ++round)
    for (int first = 0; first < tags; first += window) {
      MPI_Request requests[window];
      for (int i = 0; i < window; ++i) {
        const int tag = first + i;
        auto& buffer = data[static_cast<std::size_t>(i)];
        if (check::rank == 0) {
          check::fill(buffer.data(), 64, static_cast<std::uint64_t>(tag));
          OK(MPI_Isend(buffer.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[i]));
        } else {
          OK(MPI_Irecv(buffer.data(), bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[i]));
        }
      }
      OK(MPI_Waitall(window, requests, MPI_STATUSES_IGNORE));
      if (check::rank == 1)
        for (int i = 0; i < window; ++i)
          HOLDS(data[static_cast<std::size_t>(i)].data(), 64,
                static_cast<std::uint64_t>(first + i));
    }
}

void largest_tag() {
  int* upper = nullptr;
  int flag = 0;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &flag));
  CHECK(flag);
  CHECK(*upper >= 32767);
  for (int bytes : {4, 30000, 500000}) {
    const auto n = static_cast<std::size_t>(bytes);
    std::vector<unsigned char> data = check::message(n, 1);
    MPI_Status status;
    if (check::rank == 0) OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, *upper, MPI_COMM_WORLD));
    if (check::rank == 1) {
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      CHECK_EQUAL(status.MPI_TAG, *upper);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"every_tag_once", every_tag_once},
                     {"large_messages_on_many_tags", large_messages_on_many_tags},
                     {"largest_tag", largest_tag}});
}
