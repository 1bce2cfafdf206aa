// SPDX-License-Identifier: BSD-3-Clause
// Buffered sends: attached to the process or a communicator, flushed, detached, automatic.
#include "check.h"

namespace {

constexpr int each = 1000;
constexpr int messages = 20;

void receive_all(MPI_Comm comm, int tag) {
  std::vector<unsigned char> data(each);
  for (int i = 0; i < messages; ++i) {
    OK(MPI_Recv(data.data(), each, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE));
    HOLDS(data.data(), each, static_cast<std::uint64_t>(i));
  }
}

void send_all(MPI_Comm comm, int tag) {
  std::vector<unsigned char> data(each);
  for (int i = 0; i < messages; ++i) {
    check::fill(data.data(), each, static_cast<std::uint64_t>(i));
    OK(MPI_Bsend(data.data(), each, MPI_BYTE, 1, tag, comm));
    std::memset(data.data(), 0, each); // the user's buffer is free again
  }
}

// The receiver comes only after all sends returned: buffered sends are local.
void exactly_enough_room() {
  std::vector<char> room(messages * (each + MPI_BSEND_OVERHEAD));
  if (check::rank == 0) {
    OK(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
    for (int round = 0; round < 3; ++round) {
      send_all(MPI_COMM_WORLD, 1);
      check::token_send(1);
      OK(MPI_Buffer_flush()); // all room is free again
    }
    void* address = nullptr;
    int bytes = 0;
    OK(MPI_Buffer_detach(&address, &bytes));
    CHECK_EQUAL(address, static_cast<void*>(room.data()));
    CHECK_EQUAL(bytes, static_cast<int>(room.size()));
  } else if (check::rank == 1) {
    for (int round = 0; round < 3; ++round) {
      check::token_recv(0);
      receive_all(MPI_COMM_WORLD, 1);
    }
  }
}

// Sends of a large message return at once even when nobody receives.
void large_is_local() {
  const int bytes = 3000000;
  if (check::rank == 0) {
    std::vector<char> room(bytes + MPI_BSEND_OVERHEAD);
    OK(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
    auto data = check::message(bytes, 3);
    OK(MPI_Bsend(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    check::fill(data.data(), data.size(), 4);
    check::token_send(1);
    void* address = nullptr;
    int size = 0;
    OK(MPI_Buffer_detach(&address, &size)); // waits for the message
  } else if (check::rank == 1) {
    check::token_recv(0);
    std::vector<unsigned char> data(bytes);
    OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    HOLDS(data.data(), bytes, 3);
  }
}

void too_little_room() {
  if (check::rank != 0) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); // for MPI_Buffer_attach
  std::vector<char> data(100000), room(50000);
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(data.data(), 100000, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
  OK(MPI_Buffer_attach(room.data(), 50000));
  FAILS(MPI_ERR_BUFFER, MPI_Bsend(data.data(), 100000, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
  CHECK(MPI_Buffer_attach(data.data(), 1000) != MPI_SUCCESS); // one buffer at a time
  void* address = nullptr;
  int bytes = 0;
  OK(MPI_Buffer_detach(&address, &bytes));
  CHECK_EQUAL(bytes, 50000);
}

// There is room whenever a circular buffer has it: behind the last message, then from the start. A
// number of units is sent; message -n, from 1 on, is received.
void circular() {
  if (!check::is_macadam()) return; // MPICH 5.0 takes the first gap
  constexpr int unit = 1000000;
  struct Trial {
    int units; // of the buffer
    std::vector<int> steps;
  };
  const Trial trials[] = {{5, {2, 2, -1, 1, 2, -2, -3, -4}}, {10, {2, 4, -2, 4, -1, 6, -3, -4}}};
  for (const Trial& trial : trials) {
    std::vector<char> room(static_cast<std::size_t>(trial.units * unit + 4 * MPI_BSEND_OVERHEAD));
    if (check::rank == 0) OK(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
    std::vector<int> sent; // bytes
    for (int step : trial.steps) {
      if (step > 0) sent.push_back(step * unit);
      const int number = step > 0 ? static_cast<int>(sent.size()) : -step;
      const int bytes = sent[static_cast<std::size_t>(number - 1)];
      auto data = check::message(static_cast<std::size_t>(bytes), step > 0 ? number : 0);
      if (check::rank == 0) {
        if (step > 0)
          OK(MPI_Bsend(data.data(), bytes, MPI_BYTE, 1, number, MPI_COMM_WORLD));
        else
          check::token_recv(1);
      } else if (check::rank == 1 && step < 0) {
        OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, number, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        HOLDS(data.data(), bytes, number);
        check::token_send(0);
      }
    }
    void* address = nullptr;
    int bytes = 0;
    if (check::rank == 0) OK(MPI_Buffer_detach(&address, &bytes));
  }
}

void nonblocking_flush() {
  std::vector<char> room(messages * (each + MPI_BSEND_OVERHEAD));
  if (check::rank == 0) {
    OK(MPI_Buffer_attach(room.data(), static_cast<int>(room.size())));
    send_all(MPI_COMM_WORLD, 2);
    MPI_Request request;
    OK(MPI_Buffer_iflush(&request));
    check::token_send(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    send_all(MPI_COMM_WORLD, 2);
    check::token_send(1);
    void* address = nullptr;
    int bytes = 0;
    OK(MPI_Buffer_detach(&address, &bytes));
  } else if (check::rank == 1) {
    for (int round = 0; round < 2; ++round) {
      check::token_recv(0);
      receive_all(MPI_COMM_WORLD, 2);
    }
  }
}

void automatic() {
  if (check::rank == 0) {
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    for (int round = 0; round < 5; ++round)
      send_all(MPI_COMM_WORLD, 3);
    check::token_send(1);
    void* address = nullptr;
    int bytes = -1;
    OK(MPI_Buffer_detach(&address, &bytes));
    CHECK_EQUAL(address, MPI_BUFFER_AUTOMATIC);
    CHECK_EQUAL(bytes, 0);
  } else if (check::rank == 1) {
    check::token_recv(0);
    for (int round = 0; round < 5; ++round)
      receive_all(MPI_COMM_WORLD, 3);
  }
}

// A communicator's own buffer is used instead of the process's.
void of_a_communicator() {
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  std::vector<char> room(messages * (each + MPI_BSEND_OVERHEAD));
  if (check::rank == 0) {
    OK(MPI_Comm_attach_buffer(comm, room.data(), static_cast<int>(room.size())));
    send_all(comm, 4);
    check::token_send(1);
    OK(MPI_Comm_flush_buffer(comm));
    send_all(comm, 4);
    MPI_Request request;
    OK(MPI_Comm_iflush_buffer(comm, &request));
    check::token_send(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    void* address = nullptr;
    int bytes = 0;
    OK(MPI_Comm_detach_buffer(comm, &address, &bytes));
    CHECK_EQUAL(address, static_cast<void*>(room.data()));
  } else if (check::rank == 1) {
    for (int round = 0; round < 2; ++round) {
      check::token_recv(0);
      receive_all(comm, 4);
    }
  }
  OK(MPI_Comm_free(&comm));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"exactly_enough_room", exactly_enough_room},
                     {"large_is_local", large_is_local},
                     {"too_little_room", too_little_room},
                     {"circular", circular},
                     {"nonblocking_flush", nonblocking_flush},
                     {"automatic", automatic},
                     {"of_a_communicator", of_a_communicator}});
}
