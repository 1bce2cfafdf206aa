// SPDX-License-Identifier: BSD-3-Clause
// What the paper's protocols promise beyond MPI: an early receiver's data arrives while the
// receiver computes, and the sender of a medium message leaves before anybody receives it.
#include "check.h"

#include <algorithm>

namespace {

// The receiver posts, computes without MPI, and finds the data there before it waits.
void early_receiver_needs_no_second_call() {
  if (!check::is_macadam()) return;
  for (int bytes : {300000, 400000, 1 << 20}) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      check::token_recv(1);
      check::sleep_ms(20); // the announcement is here
      const auto data = check::message(n, 3);
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<unsigned char> data(n, 0);
      MPI_Request request;
      OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
      check::token_send(0);
      check::sleep_ms(300);
      HOLDS(data.data(), bytes, 3); // no MPI call since the token
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  }
}

// The sender of a large message to an early receiver does not wait for the receiver's next call.
void sender_to_an_early_receiver_leaves() {
  if (!check::is_macadam()) return;
  const int bytes = 1 << 20;
  std::vector<unsigned char> data(bytes);
  if (check::rank == 0) {
    check::token_recv(1);
    check::sleep_ms(20);
    const double start = MPI_Wtime();
    OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    CHECK(MPI_Wtime() - start < 0.15);
  } else if (check::rank == 1) {
    MPI_Request request;
    OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
    check::token_send(0);
    check::sleep_ms(400);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
}

// A medium message: its sender copies it and goes on; the receiver comes much later.
void hybrid_sender_leaves_at_once() {
  if (!check::is_macadam()) return;
  for (int bytes : {8, 4096, 16384, 32768}) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      auto data = check::message(n, 4);
      const double start = MPI_Wtime();
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
      CHECK(MPI_Wtime() - start < 0.1);
      std::fill(data.begin(), data.end(), 0); // and the buffer is the user's again
      check::token_recv(1);
    } else if (check::rank == 1) {
      std::vector<unsigned char> data(n);
      check::sleep_ms(250);
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      HOLDS(data.data(), bytes, 4);
      check::token_send(0);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"early_receiver_needs_no_second_call", early_receiver_needs_no_second_call},
                     {"sender_to_an_early_receiver_leaves", sender_to_an_early_receiver_leaves},
                     {"hybrid_sender_leaves_at_once", hybrid_sender_leaves_at_once}});
}
