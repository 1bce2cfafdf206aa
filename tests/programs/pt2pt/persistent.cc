// SPDX-License-Identifier: BSD-3-Clause
// Persistent requests: restarted with new data, started together, freed while active.
#include "check.h"

namespace {

void restart_with_new_data() {
  if (check::rank > 1) return;
  for (int bytes : {0, 8, 5000, 30000, 70000, 400000}) {
    const auto n = static_cast<std::size_t>(bytes);
    std::vector<unsigned char> data(n);
    MPI_Request request;
    if (check::rank == 0)
      OK(MPI_Send_init(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    else
      OK(MPI_Recv_init(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
    for (std::uint64_t round = 0; round < 30; ++round) {
      if (check::rank == 0) {
        check::fill(data.data(), n, round);
        if (round % 3 == 1) check::compute_ms(0.1); // receiver early
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else {
        if (round % 3 == 2) check::compute_ms(0.1); // sender early
        OK(MPI_Start(&request));
        MPI_Status status;
        int flag = 0;
        while (!flag)
          OK(MPI_Test(&request, &flag, &status));
        CHECK_EQUAL(status.MPI_SOURCE, 0);
        HOLDS(data.data(), bytes, round);
      }
      CHECK(request != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
  }
}

// Every rank talks to every other one with persistent requests started at once.
void start_all() {
  const int bytes = 50000, ranks = check::size;
  std::vector<std::vector<unsigned char>> in, out;
  std::vector<MPI_Request> requests;
  for (int peer = 0; peer < ranks; ++peer) {
    in.emplace_back(bytes);
    out.emplace_back(bytes);
  }
  for (int peer = 0; peer < ranks; ++peer) {
    const auto p = static_cast<std::size_t>(peer);
    MPI_Request request;
    OK(MPI_Recv_init(in[p].data(), bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &request));
    requests.push_back(request);
    OK(MPI_Send_init(out[p].data(), bytes, MPI_BYTE, peer, 6, MPI_COMM_WORLD, &request));
    requests.push_back(request);
  }
  for (int round = 0; round < 5; ++round) {
    for (auto& data : out)
      check::fill(data.data(), data.size(), static_cast<std::uint64_t>(round * 100 + check::rank));
    OK(MPI_Startall(2 * ranks, requests.data()));
    OK(MPI_Waitall(2 * ranks, requests.data(), MPI_STATUSES_IGNORE));
    for (int peer = 0; peer < ranks; ++peer)
      HOLDS(in[static_cast<std::size_t>(peer)].data(), bytes,
            static_cast<std::uint64_t>(round * 100 + peer));
  }
  for (MPI_Request& request : requests)
    OK(MPI_Request_free(&request));
}

// A persistent receive meets ordinary sends, and the other way round.
void meets_ordinary_messages() {
  const int bytes = 100000;
  std::vector<unsigned char> data(bytes);
  MPI_Request request;
  if (check::rank == 0) {
    check::fill(data.data(), bytes, 1);
    OK(MPI_Send_init(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    for (int i = 0; i < 4; ++i) {
      if (i % 2) {
        OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
      } else {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      }
    }
    OK(MPI_Request_free(&request));
  } else if (check::rank == 1) {
    OK(MPI_Recv_init(data.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request));
    for (int i = 0; i < 4; ++i) {
      std::memset(data.data(), 0, bytes);
      if (i < 2) {
        OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      } else {
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      }
      HOLDS(data.data(), bytes, 1);
    }
    OK(MPI_Request_free(&request));
  }
}

void free_while_active() {
  const int bytes = 200000;
  std::vector<unsigned char> data(bytes);
  MPI_Request request;
  if (check::rank == 0) {
    check::fill(data.data(), bytes, 2);
    OK(MPI_Send_init(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    check::token_recv(1); // the receiver has it all: the buffer is ours again
  } else if (check::rank == 1) {
    OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    HOLDS(data.data(), bytes, 2);
    check::token_send(0);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"restart_with_new_data", restart_with_new_data},
                     {"start_all", start_all},
                     {"meets_ordinary_messages", meets_ordinary_messages},
                     {"free_while_active", free_while_active}});
}
