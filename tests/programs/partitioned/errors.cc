// SPDX-License-Identifier: BSD-3-Clause
// Wrong calls of partitioned communication: each has its error class, and the round that it was
// made in goes on as if it had not been.
#include "partitioned/ring.h"

namespace {

constexpr int parts = 4, bytes = 4 * 512;
unsigned char out[bytes], in[bytes];

void return_errors() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

void names(int code, const char* word) {
  if (!check::is_macadam()) return;
  if (check::error_text(code).find(word) == std::string::npos)
    check::fail(__FILE__, __LINE__, check::error_text(code) + " does not name " + word);
}

void arguments() {
  return_errors();
  const MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request = MPI_REQUEST_NULL;
  const auto send = [&](int partitions, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm) {
    return MPI_Psend_init(out, partitions, count, type, dest, tag, comm, MPI_INFO_NULL, &request);
  };
  const auto receive = [&](int partitions, MPI_Count count, MPI_Datatype type, int source, int tag,
                           MPI_Comm comm) {
    return MPI_Precv_init(in, partitions, count, type, source, tag, comm, MPI_INFO_NULL, &request);
  };
  FAILS(MPI_ERR_COUNT, send(parts, -1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_TYPE, send(parts, 1, MPI_DATATYPE_NULL, 0, 0, world));
  FAILS(MPI_ERR_RANK, send(parts, 1, MPI_BYTE, check::size, 0, world));
  FAILS(MPI_ERR_TAG, send(parts, 1, MPI_BYTE, 0, -1, world));
  FAILS(MPI_ERR_COMM, send(parts, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
  FAILS(MPI_ERR_COUNT, receive(parts, -1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_TYPE, receive(parts, 1, MPI_DATATYPE_NULL, 0, 0, world));
  FAILS(MPI_ERR_RANK, receive(parts, 1, MPI_BYTE, check::size, 0, world));
  FAILS(MPI_ERR_COMM, receive(parts, 1, MPI_BYTE, 0, 0, MPI_COMM_NULL));
  if (!check::is_macadam()) return; // MPICH 5.0 accepts these, or crashes
  FAILS(MPI_ERR_ARG, send(-1, 1, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_COUNT, send(parts, INT64_MAX / 2, MPI_BYTE, 0, 0, world));
  FAILS(MPI_ERR_ARG, receive(-1, 1, MPI_BYTE, 0, 0, world));
  // Wildcards are not for partitioned receives.
  FAILS(MPI_ERR_RANK, receive(parts, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, world));
  FAILS(MPI_ERR_TAG, receive(parts, 1, MPI_BYTE, 0, MPI_ANY_TAG, world));
  FAILS(MPI_ERR_BUFFER,
        MPI_Psend_init(nullptr, 1, 1, MPI_BYTE, 0, 0, world, MPI_INFO_NULL, &request));
  CHECK(request == MPI_REQUEST_NULL);
}

void calls_out_of_place() {
  if (!check::is_macadam()) return;
  return_errors();
  MPI_Request send, receive, other;
  OK(MPI_Psend_init(out, parts, bytes / parts, MPI_BYTE, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &send));
  OK(MPI_Precv_init(in, parts, bytes / parts, MPI_BYTE, previous(), 1, MPI_COMM_WORLD,
                    MPI_INFO_NULL, &receive));
  int flag = 0;
  // Before the start.
  int code = MPI_Pready(0, send);
  FAILS(MPI_ERR_REQUEST, code);
  names(code, "MPI_Start");
  OK(MPI_Parrived(receive, 0, &flag));
  CHECK_EQUAL(flag, 1);
  OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
  CHECK_EQUAL(flag, 1);
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, MPI_REQUEST_NULL));
  for (int round = 0; round < 3; ++round) {
    check::fill(out, bytes, static_cast<std::uint64_t>(check::rank + round));
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    FAILS(MPI_ERR_REQUEST, MPI_Start(&send));
    code = MPI_Pready(parts, send);
    FAILS(MPI_ERR_ARG, code);
    names(code, "4 partitions");
    FAILS(MPI_ERR_ARG, MPI_Pready(-1, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(2, 1, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(2, parts, send));
    FAILS(MPI_ERR_ARG, MPI_Pready_range(-1, 2, send));
    const int list[] = {0, parts};
    FAILS(MPI_ERR_ARG, MPI_Pready_list(2, list, send)); // none is ready by it
    FAILS(MPI_ERR_ARG, MPI_Pready_list(-1, list, send));
    FAILS(MPI_ERR_REQUEST, MPI_Pready(0, receive));
    FAILS(MPI_ERR_REQUEST, MPI_Parrived(send, 0, &flag));
    FAILS(MPI_ERR_ARG, MPI_Parrived(receive, parts, &flag));
    FAILS(MPI_ERR_ARG, MPI_Parrived(receive, 0, nullptr));
    OK(MPI_Pready(0, send));
    code = MPI_Pready(0, send);
    FAILS(MPI_ERR_ARG, code);
    names(code, "ready already");
    FAILS(MPI_ERR_ARG, MPI_Pready_range(0, 1, send)); // 1 is ready by it
    FAILS(MPI_ERR_REQUEST, MPI_Cancel(&send));
    other = send;
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&other));
    other = receive;
    FAILS(MPI_ERR_REQUEST, MPI_Request_free(&other));
    OK(MPI_Pready_range(2, 3, send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    HOLDS(in, bytes, previous() + round);
    FAILS(MPI_ERR_REQUEST, MPI_Pready(1, send));
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  // Other requests.
  OK(MPI_Irecv(in, 1, MPI_BYTE, previous(), 7, MPI_COMM_WORLD, &other));
  FAILS(MPI_ERR_REQUEST, MPI_Pready(0, other));
  FAILS(MPI_ERR_REQUEST, MPI_Parrived(other, 0, &flag));
  OK(MPI_Send(out, 1, MPI_BYTE, next(), 7, MPI_COMM_WORLD));
  OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
}

// The two sides disagree about the amount of data: too much is an error on both, nothing is
// written; too little leaves the rest alone.
void other_amounts() {
  if (!check::is_macadam()) return;
  return_errors();
  for (const int sent : {bytes, bytes / 2}) {
    std::memset(in, 0xee, bytes);
    check::fill(out, bytes, 4);
    const int room = sent == bytes ? bytes / 4 * 3 : bytes / 4 * 3;
    MPI_Request send, receive;
    OK(MPI_Psend_init(out, 4, sent / 4, MPI_BYTE, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in, 3, room / 3, MPI_BYTE, previous(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &receive));
    for (int round = 0; round < 2; ++round) {
      OK(MPI_Start(&receive));
      OK(MPI_Start(&send));
      OK(MPI_Pready_range(0, 3, send));
      MPI_Status status;
      const int sender = MPI_Wait(&send, MPI_STATUS_IGNORE);
      const int receiver = MPI_Wait(&receive, &status);
      if (sent > room) {
        FAILS(MPI_ERR_TRUNCATE, sender);
        FAILS(MPI_ERR_TRUNCATE, receiver);
        names(receiver, "4 partitions of 512 bytes");
        UNTOUCHED(in, bytes, 0xee);
      } else {
        OK(sender);
        OK(receiver);
        int count = 0;
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_EQUAL(count, sent);
        HOLDS(in, sent, 4);
        UNTOUCHED(in + sent, bytes - sent, 0xee);
      }
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"arguments", arguments},
                     {"calls_out_of_place", calls_out_of_place},
                     {"other_amounts", other_amounts}});
}
