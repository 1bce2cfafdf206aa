// SPDX-License-Identifier: BSD-3-Clause
// Messages shorter and longer than the receive: a longer one is an error of the receiver alone,
// writes nothing past the buffer, and the messages behind it are right.
#include "check.h"

namespace {

struct Case {
  int sent, room;
};

// Sender and receiver see different protocols in most of these.
const std::vector<Case> cases = {
    {8, 100000}, {100000, 8},        {30000, 4000000}, {4000000, 30000},
    {1, 0},      {4096, 4095},       {65537, 65536},   {300000, 299999},
    {20000, 10}, {1 << 20, 1 << 20}, {4194304, 1},     {16, 30000},
    {30000, 16}, {200000, 30000},    {30000, 200000},  {5, 5}};

constexpr int follower_bytes = 50000;

void one_case(const Case& c, bool sender_early, std::uint64_t seed) {
  const auto follower = check::message(follower_bytes, seed + 1);
  if (check::rank == 0) {
    if (!sender_early) check::token_recv(1);
    const auto data = check::message(static_cast<std::size_t>(c.sent), seed);
    MPI_Request request;
    OK(MPI_Isend(data.data(), c.sent, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    if (sender_early) check::token_send(1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Send(follower.data(), follower_bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
  } else if (check::rank == 1) {
    if (sender_early) check::token_recv(0);
    std::vector<unsigned char> buffer(static_cast<std::size_t>(c.room) + 4096, 0xEE);
    std::vector<unsigned char> second(follower_bytes);
    MPI_Request request, next;
    OK(MPI_Irecv(buffer.data(), c.room, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
    OK(MPI_Irecv(second.data(), follower_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &next));
    if (!sender_early) check::token_send(0);
    MPI_Status status;
    const int code = MPI_Wait(&request, &status);
    UNTOUCHED(buffer.data() + c.room, 4096, 0xEE);
    if (c.sent > c.room) {
      FAILS(MPI_ERR_TRUNCATE, code);
    } else {
      OK(code);
      int count = -1;
      OK(MPI_Get_count(&status, MPI_BYTE, &count));
      CHECK_EQUAL(count, c.sent);
      HOLDS(buffer.data(), c.sent, seed);
      UNTOUCHED(buffer.data() + c.sent, c.room - c.sent, 0xEE);
    }
    OK(MPI_Wait(&next, MPI_STATUS_IGNORE));
    HOLDS(second.data(), follower_bytes, seed + 1);
  }
}

void mismatched_sizes() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  std::uint64_t seed = 0;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (bool sender_early : {true, false})
      for (const Case& c : cases)
        one_case(c, sender_early, seed += 2);
}

// A message that ends inside an element of the receive's type. Other libraries end the program, or
// tell nothing.
void part_of_an_element() {
  if (!check::is_macadam()) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  MPI_Datatype gaps, mixed;
  OK(MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &gaps));
  OK(MPI_Type_commit(&gaps));
  const int lengths[2] = {1, 3};
  const MPI_Aint places[2] = {0, 4};
  const MPI_Datatype types[2] = {MPI_INT, MPI_CHAR};
  OK(MPI_Type_create_struct(2, lengths, places, types, &mixed));
  OK(MPI_Type_commit(&mixed));
  struct Trial {
    int sent, count;
    MPI_Datatype type;
    int error;
  };
  const Trial trials[] = {{3, 1, MPI_INT, MPI_ERR_TRUNCATE},
                          {3, 5, MPI_INT, MPI_ERR_TRUNCATE},
                          {4, 5, MPI_INT, MPI_SUCCESS},
                          {20, 7, MPI_DOUBLE, MPI_ERR_TRUNCATE},
                          {24, 7, MPI_DOUBLE, MPI_SUCCESS},
                          {30, 7, gaps, MPI_ERR_TRUNCATE},
                          {24, 7, gaps, MPI_SUCCESS},
                          {5, 7, mixed, MPI_SUCCESS},
                          {4, 7, MPI_2INT, MPI_SUCCESS},
                          {200001, 150000, MPI_SHORT, MPI_ERR_TRUNCATE},
                          {3000002, 1000000, MPI_INT, MPI_ERR_TRUNCATE}};
  for (bool posted : {false, true})
    for (const Trial& trial : trials) {
      if (check::rank == 0) {
        if (posted) check::token_recv(1);
        const auto data = check::message(static_cast<std::size_t>(trial.sent), 3);
        MPI_Request request;
        OK(MPI_Isend(data.data(), trial.sent, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request));
        if (!posted) check::token_send(1);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else if (check::rank == 1) {
        if (!posted) check::token_recv(0);
        std::vector<unsigned char> buffer(4100000);
        MPI_Request request;
        OK(MPI_Irecv(buffer.data(), trial.count, trial.type, 0, 0, MPI_COMM_WORLD, &request));
        if (posted) check::token_send(0);
        MPI_Status status;
        FAILS(trial.error, MPI_Wait(&request, &status));
        int bytes = 0;
        OK(MPI_Get_count(&status, MPI_BYTE, &bytes));
        CHECK_EQUAL(bytes, trial.sent);
      }
    }
  OK(MPI_Type_free(&gaps));
  OK(MPI_Type_free(&mixed));
}

// Waitall reports the bad one among good ones by MPI_ERR_IN_STATUS and its status.
void waitall_names_the_bad_one() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  for (int bytes : {100, 30000, 400000}) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      check::token_recv(1);
      const auto data = check::message(n, 0);
      for (int tag = 0; tag < 3; ++tag)
        OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD));
    } else if (check::rank == 1) {
      std::vector<std::vector<unsigned char>> buffers(3, std::vector<unsigned char>(n));
      MPI_Request requests[3];
      for (int tag = 0; tag < 3; ++tag)
        OK(MPI_Irecv(buffers[static_cast<std::size_t>(tag)].data(), tag == 1 ? bytes / 2 : bytes,
                     MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[tag]));
      check::token_send(0);
      MPI_Status statuses[3];
      FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(3, requests, statuses));
      FAILS(MPI_ERR_TRUNCATE, statuses[1].MPI_ERROR);
      for (int i : {0, 2}) {
        if (requests[i] != MPI_REQUEST_NULL) { // allowed to be still pending
          CHECK_EQUAL(statuses[i].MPI_ERROR, MPI_ERR_PENDING);
          OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        } else {
          CHECK_EQUAL(statuses[i].MPI_ERROR, MPI_SUCCESS);
        }
        HOLDS(buffers[static_cast<std::size_t>(i)].data(), bytes, 0);
      }
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"mismatched_sizes", mismatched_sizes},
                     {"part_of_an_element", part_of_an_element},
                     {"waitall_names_the_bad_one", waitall_names_the_bad_one}});
}
