// SPDX-License-Identifier: BSD-3-Clause
// MPI_Finalize ends the world, and leaves to a session what is its own: another thread goes on with
// its communicators while MPI_Finalize waits for the other ranks, and frees some; buffers that are
// attached to them stay, and sends end later.
#include "sessions/meeting.h"

#include <algorithm>
#include <array>

namespace {

constexpr int bytes = 1 << 20; // more than leaves at once

std::vector<unsigned char> room() {
  return std::vector<unsigned char>(bytes + MPI_BSEND_OVERHEAD);
}

void attach(MPI_Comm comm, std::vector<unsigned char>& buffer) {
  OK(MPI_Comm_attach_buffer(comm, buffer.data(), static_cast<int>(buffer.size())));
}

// What a communicator still has that MPI_Finalize must not have taken from it.
void use_own_buffer(MPI_Comm comm, const std::vector<unsigned char>& buffer) {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  int value = check::rank, got = -1;
  OK(MPI_Bsend(&value, 1, MPI_INT, to, 3, comm));
  OK(MPI_Recv(&got, 1, MPI_INT, from, 3, comm, MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, from);
  void* back = nullptr;
  int size = 0;
  OK(MPI_Comm_detach_buffer(comm, static_cast<void*>(&back), &size));
  CHECK(back == buffer.data() && size == static_cast<int>(buffer.size()));
}

// In rank 0 beside MPI_Finalize. The others call that after they have heard from here.
void beside_finalize(MPI_Comm comm, std::array<MPI_Comm, 4>& freed) {
  check::sleep_ms(100);
  int finalized = 1;
  OK(MPI_Finalized(&finalized));
  CHECK(finalized == 0 || check::size == 1);
  for (int to = 1; to < check::size; ++to) {
    int value = to;
    OK(MPI_Send(&value, 1, MPI_INT, to, 1, comm));
    OK(MPI_Recv(&value, 1, MPI_INT, to, 2, comm, MPI_STATUS_IGNORE));
    CHECK_EQUAL(value, to + 1);
  }
  for (MPI_Comm& each : freed)
    OK(MPI_Comm_free(&each));
}

void before_finalize(MPI_Comm comm, std::array<MPI_Comm, 4>& freed) {
  int value = -1;
  OK(MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE));
  CHECK_EQUAL(value, check::rank);
  ++value;
  OK(MPI_Send(&value, 1, MPI_INT, 0, 2, comm));
  for (MPI_Comm& each : freed) {
    if (check::rank == 1) {
      check::sleep_ms(10); // rank 0 waits for each to leave its buffer
      std::vector<unsigned char> data(bytes);
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 4, each, MPI_STATUS_IGNORE));
      HOLDS(data.data(), bytes, 4);
    }
    OK(MPI_Comm_free(&each));
  }
}

} // namespace

int main(int argc, char** argv) {
  int provided = -1;
  OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
  CHECK_EQUAL(provided, MPI_THREAD_MULTIPLE);
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &check::rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &check::size));
  MPI_Session session = sessions::begin("MPI_THREAD_MULTIPLE");
  MPI_Comm comm = sessions::comm_of_session(session, "finalize");
  std::vector<unsigned char> buffer = room();
  attach(comm, buffer);
  std::array<MPI_Comm, 4> freed;
  std::array<std::vector<unsigned char>, 4> buffers;
  for (std::size_t i = 0; i < freed.size(); ++i) {
    OK(MPI_Comm_dup(comm, &freed[i]));
    buffers[i] = room();
    attach(freed[i], buffers[i]);
    if (check::rank != 0 || check::size == 1) continue;
    const auto data = check::message(bytes, 4);
    OK(MPI_Bsend(data.data(), bytes, MPI_BYTE, 1, 4, freed[i]));
  }

  auto data = check::message(bytes, 5);
  MPI_Request later = MPI_REQUEST_NULL;
  if (check::rank == 0 && check::size > 1)
    OK(MPI_Issend(data.data(), bytes, MPI_BYTE, 1, 5, comm, &later));

  check::part = "beside MPI_Finalize";
  if (check::rank == 0) {
    std::thread other([&] { beside_finalize(comm, freed); });
    OK(MPI_Finalize());
    other.join();
  } else {
    before_finalize(comm, freed);
    OK(MPI_Finalize());
  }
  check::part = "after MPI_Finalize";
  if (check::rank == 1) {
    std::ranges::fill(data, static_cast<unsigned char>(0));
    OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 5, comm, MPI_STATUS_IGNORE));
    HOLDS(data.data(), bytes, 5);
  }
  OK(MPI_Wait(&later, MPI_STATUS_IGNORE));
  use_own_buffer(comm, buffer);
  OK(MPI_Comm_free(&comm));
  sessions::end(session);
  if (check::rank == 0) std::printf("%s: passed on %d ranks\n", argv[0], check::size);
  return 0;
}
