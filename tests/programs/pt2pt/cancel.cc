// SPDX-License-Identifier: BSD-3-Clause
// Cancelled receives: the buffer is never written once the user has it back, and the receives
// behind a cancelled one still get the right messages. Cancelled sends.
#include "check.h"

#include <unistd.h>

#include <array>
#include <cstdlib>

namespace {

const std::vector<int> sizes = {0, 8, 4096, 20000, 33000, 70000, 1 << 20};

void cancel_before_the_message() {
  for (int round = 0; round < 5; ++round)
    for (int bytes : sizes) {
      const auto n = static_cast<std::size_t>(bytes);
      const auto seed = static_cast<std::uint64_t>(bytes + round);
      if (check::rank == 0) {
        check::token_recv(1);
        const auto data = check::message(n, seed);
        OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
      } else if (check::rank == 1) {
        std::vector<unsigned char> cancelled(n, 0xEE), kept(n);
        MPI_Request first, second;
        OK(MPI_Irecv(cancelled.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &first));
        OK(MPI_Irecv(kept.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &second));
        if (round % 2) check::compute_ms(0.5); // an announcement may be on its way
        OK(MPI_Cancel(&first));
        MPI_Status status;
        OK(MPI_Wait(&first, &status));
        int flag = 0;
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(flag);
        check::token_send(0);
        OK(MPI_Wait(&second, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        CHECK(!flag);
        HOLDS(kept.data(), bytes, seed);
        UNTOUCHED(cancelled.data(), bytes, 0xEE);
      }
    }
}

// The message is on its way while the receive is cancelled: exactly one of both happens.
void cancel_in_a_race() {
  for (int round = 0; round < check::times(300, 60); ++round) {
    const int bytes = sizes[static_cast<std::size_t>(round) % sizes.size()];
    const auto n = static_cast<std::size_t>(bytes);
    const auto seed = static_cast<std::uint64_t>(round);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (check::rank == 0) {
      check::compute_ms(0.002 * (round % 13));
      const auto data = check::message(n, seed);
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<unsigned char> raced(n, 0xEE), second(n, 0xEE);
      MPI_Request request;
      OK(MPI_Irecv(raced.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
      check::compute_ms(0.002 * (round % 17));
      OK(MPI_Cancel(&request));
      MPI_Status status;
      OK(MPI_Wait(&request, &status));
      int cancelled = 0;
      OK(MPI_Test_cancelled(&status, &cancelled));
      if (cancelled) {
        OK(MPI_Recv(second.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &status));
        HOLDS(second.data(), bytes, seed);
        UNTOUCHED(raced.data(), bytes, 0xEE);
      } else {
        HOLDS(raced.data(), bytes, seed);
      }
    }
  }
}

// A rank that waits outside of MPI until the other one has said something there.
class Bell {
 public:
  Bell() {
    if (check::rank == 0) close(mkstemp(path_.data()));
    OK(MPI_Bcast(path_.data(), static_cast<int>(path_.size()), MPI_CHAR, 0, MPI_COMM_WORLD));
  }
  void ring() { CHECK(unlink(path_.data()) == 0); }
  void wait() {
    while (access(path_.data(), F_OK) == 0)
      usleep(1000);
  }

 private:
  std::array<char, 32> path_ = {"/tmp/macadam-bell-XXXXXX"};
};

// The sender is not in MPI before the cancelled receive has ended.
void cancel_needs_nobody() {
  for (int bytes : sizes) {
    const auto n = static_cast<std::size_t>(bytes);
    Bell bell;
    if (check::rank == 0) {
      const auto data = check::message(n, 5);
      check::token_recv(1); // the announcement may be known here
      bell.wait();
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<unsigned char> cancelled(n, 0xEE), kept(n);
      MPI_Request request, second;
      OK(MPI_Irecv(cancelled.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
      OK(MPI_Irecv(kept.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &second));
      check::token_send(0);
      check::compute_ms(1);
      OK(MPI_Cancel(&request));
      MPI_Status status;
      OK(MPI_Wait(&request, &status));
      int flag = 0;
      OK(MPI_Test_cancelled(&status, &flag));
      CHECK(flag);
      bell.ring();
      OK(MPI_Wait(&second, MPI_STATUS_IGNORE));
      HOLDS(kept.data(), bytes, 5);
      UNTOUCHED(cancelled.data(), bytes, 0xEE);
    }
  }
}

// A send that no receive has matched is cancelled; one that is matched completes.
void cancel_a_send() {
  for (int bytes : sizes) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      const auto lost = check::message(n, 1), kept = check::message(n, 2);
      MPI_Request request;
      MPI_Status status;
      int flag = 0;
      OK(MPI_Issend(lost.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
      OK(MPI_Cancel(&request));
      OK(MPI_Wait(&request, &status));
      OK(MPI_Test_cancelled(&status, &flag));
      CHECK(flag);
      OK(MPI_Ssend_init(lost.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
      OK(MPI_Start(&request));
      OK(MPI_Cancel(&request));
      OK(MPI_Wait(&request, &status));
      OK(MPI_Test_cancelled(&status, &flag));
      CHECK(flag);
      OK(MPI_Request_free(&request));
      OK(MPI_Barrier(MPI_COMM_WORLD));
      OK(MPI_Issend(kept.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &request));
      check::token_recv(1); // it is matched
      OK(MPI_Cancel(&request));
      OK(MPI_Wait(&request, &status));
      OK(MPI_Test_cancelled(&status, &flag));
      CHECK(!flag);
    } else {
      OK(MPI_Barrier(MPI_COMM_WORLD));
      if (check::rank > 1) continue;
      std::vector<unsigned char> data(n);
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      HOLDS(data.data(), bytes, 2);
      check::token_send(0);
    }
  }
}

void cancel_a_persistent_receive() {
  const int bytes = 100000;
  if (check::rank == 0) {
    check::token_recv(1);
    const auto data = check::message(bytes, 7);
    OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
  } else if (check::rank == 1) {
    std::vector<unsigned char> buffer(bytes, 0xEE);
    MPI_Request request;
    OK(MPI_Recv_init(buffer.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
    for (int i = 0; i < 20; ++i) {
      OK(MPI_Start(&request));
      OK(MPI_Cancel(&request));
      MPI_Status status;
      OK(MPI_Wait(&request, &status));
      int flag = 0;
      OK(MPI_Test_cancelled(&status, &flag));
      CHECK(flag);
    }
    UNTOUCHED(buffer.data(), bytes, 0xEE);
    OK(MPI_Start(&request));
    check::token_send(0);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    HOLDS(buffer.data(), bytes, 7);
    OK(MPI_Request_free(&request));
  }
}

// A freed active receive still takes its message.
void free_an_active_receive() {
  for (int bytes : sizes) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      check::token_recv(1);
      const auto data = check::message(n, 11), next = check::message(n, 12);
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
      OK(MPI_Send(next.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<unsigned char> freed(n), kept(n);
      MPI_Request request;
      OK(MPI_Irecv(freed.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request));
      OK(MPI_Request_free(&request));
      CHECK(request == MPI_REQUEST_NULL);
      check::token_send(0);
      OK(MPI_Recv(kept.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      HOLDS(kept.data(), bytes, 12);
      // The first message was matched before; wait for its last byte as the standard allows none
      // of our calls to: another exchange in the same order.
      OK(MPI_Recv(nullptr, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      HOLDS(freed.data(), bytes, 11);
    }
    if (check::rank == 0) OK(MPI_Ssend(nullptr, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"cancel_before_the_message", cancel_before_the_message},
                     {"cancel_in_a_race", cancel_in_a_race},
                     {"cancel_needs_nobody", cancel_needs_nobody},
                     {"cancel_a_send", cancel_a_send},
                     {"cancel_a_persistent_receive", cancel_a_persistent_receive},
                     {"free_an_active_receive", free_an_active_receive}});
}
