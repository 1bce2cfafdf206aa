// SPDX-License-Identifier: BSD-3-Clause
// Probe, Iprobe, Mprobe, Improbe, Mrecv and Imrecv, for all sizes.
#include "check.h"

namespace {

void expect_status(const MPI_Status& status, int source, int tag, int bytes) {
  int count = -1;
  OK(MPI_Get_count(&status, MPI_BYTE, &count));
  CHECK_EQUAL(count, bytes);
  CHECK_EQUAL(status.MPI_SOURCE, source);
  CHECK_EQUAL(status.MPI_TAG, tag);
}

void sender(int ways) {
  std::uint64_t seed = 0;
  for (int bytes : check::message_sizes())
    for (int way = 0; way < ways; ++way, ++seed) {
      const auto data = check::message(static_cast<std::size_t>(bytes), seed);
      OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, way, MPI_COMM_WORLD));
    }
}

void probe_then_receive() {
  if (check::rank == 0) sender(2);
  if (check::rank != 1) return;
  std::uint64_t seed = 0;
  for (int bytes : check::message_sizes())
    for (int way = 0; way < 2; ++way, ++seed) {
      MPI_Status status;
      if (way == 0) {
        OK(MPI_Probe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
      } else {
        int flag = 0;
        while (!flag)
          OK(MPI_Iprobe(MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &flag, &status));
      }
      expect_status(status, 0, way, bytes);
      std::vector<unsigned char> data(static_cast<std::size_t>(bytes));
      OK(MPI_Recv(data.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
      HOLDS(data.data(), bytes, seed);
    }
}

void matched_probe() {
  if (check::rank == 0) sender(4);
  if (check::rank != 1) return;
  std::uint64_t seed = 0;
  for (int bytes : check::message_sizes())
    for (int way = 0; way < 4; ++way, ++seed) {
      MPI_Message message = MPI_MESSAGE_NULL;
      MPI_Status status;
      if (way < 2) {
        OK(MPI_Mprobe(way ? 0 : MPI_ANY_SOURCE, way, MPI_COMM_WORLD, &message, &status));
      } else {
        int flag = 0;
        while (!flag)
          OK(MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
      }
      expect_status(status, 0, way, bytes);
      std::vector<unsigned char> data(static_cast<std::size_t>(bytes));
      if (way % 2) {
        OK(MPI_Mrecv(data.data(), bytes, MPI_BYTE, &message, &status));
      } else {
        MPI_Request request;
        OK(MPI_Imrecv(data.data(), bytes, MPI_BYTE, &message, &request));
        OK(MPI_Wait(&request, &status));
      }
      CHECK(message == MPI_MESSAGE_NULL);
      expect_status(status, 0, way, bytes);
      HOLDS(data.data(), bytes, seed);
    }
}

// A matched message is out of reach of other receives and may be received last.
void matched_message_is_isolated() {
  for (int bytes : {8, 30000, 500000}) {
    const auto n = static_cast<std::size_t>(bytes);
    if (check::rank == 0) {
      const auto first = check::message(n, 1), second = check::message(n, 2);
      MPI_Request requests[2];
      OK(MPI_Isend(first.data(), bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[0]));
      OK(MPI_Isend(second.data(), bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[1]));
      OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    } else if (check::rank == 1) {
      std::vector<unsigned char> first(n), second(n);
      MPI_Message message;
      OK(MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      OK(MPI_Recv(second.data(), bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      int flag = 1;
      OK(MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
      CHECK(!flag);
      OK(MPI_Mrecv(first.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
      HOLDS(first.data(), bytes, 1);
      HOLDS(second.data(), bytes, 2);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD)); // the next message must not be probed
  }
}

// Receives of the same tag after a matched probe: ordinals behind it stay true.
void large_receives_after_a_matched_probe() {
  const int bytes = 300000;
  for (int round = 0; round < 10; ++round) {
    if (check::rank == 0) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        const auto data = check::message(bytes, i);
        OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD));
      }
    } else if (check::rank == 1) {
      std::vector<std::vector<unsigned char>> data(4, std::vector<unsigned char>(bytes));
      MPI_Message message;
      OK(MPI_Mprobe(0, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
      MPI_Request requests[3];
      for (std::size_t i = 1; i < 4; ++i)
        OK(MPI_Irecv(data[i].data(), bytes, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &requests[i - 1]));
      OK(MPI_Mrecv(data[0].data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
      OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
      for (std::size_t i = 0; i < 4; ++i)
        HOLDS(data[i].data(), bytes, i);
    }
  }
}

void no_process() {
  MPI_Status status;
  OK(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
  expect_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  int flag = 0;
  OK(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status));
  CHECK(flag);
  expect_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  MPI_Message message = MPI_MESSAGE_NULL;
  OK(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
  CHECK(message == MPI_MESSAGE_NO_PROC);
  OK(MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, &status));
  CHECK(message == MPI_MESSAGE_NULL);
  expect_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
  message = MPI_MESSAGE_NO_PROC;
  MPI_Request request;
  OK(MPI_Imrecv(nullptr, 0, MPI_BYTE, &message, &request));
  OK(MPI_Wait(&request, &status));
  expect_status(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"probe_then_receive", probe_then_receive},
                     {"matched_probe", matched_probe},
                     {"matched_message_is_isolated", matched_message_is_isolated},
                     {"large_receives_after_a_matched_probe", large_receives_after_a_matched_probe},
                     {"no_process", no_process}});
}
