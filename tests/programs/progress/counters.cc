// SPDX-License-Identifier: BSD-3-Clause
// Table 1 of Small & Yuan, as the library's own counters show it: which protocol a message took, by
// its size and by who was early. Run with the default settings: by these HYBRID ends at 256 KiB in
// shared memory, and between 64 and 512 KiB over an adapter.
#include "check.h"
#include "counter.h"

#include <algorithm>

namespace {

using check::Counter;
enum class Early { sender, receiver };
constexpr int messages = 20;
constexpr int medium = 200000; // bytes
constexpr int large = 1 << 20; // too long for HYBRID on any network

// All messages of one row of the table; the counter of the sender must count each of them.
void row(int bytes, Early early, const char* counter_name) {
  if (!check::is_macadam() || check::rank > 1) return;
  const auto n = static_cast<std::size_t>(bytes);
  Counter counter(counter_name);
  for (std::uint64_t i = 0; i < messages; ++i) {
    std::vector<unsigned char> data(n);
    MPI_Request request;
    if (check::rank == 0) {
      check::fill(data.data(), n, i);
      if (early == Early::receiver) check::token_recv(1);
      OK(MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
      if (early == Early::sender) check::token_send(1);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
      if (early == Early::sender) check::token_recv(0);
      OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request));
      if (early == Early::receiver) check::token_send(0);
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      HOLDS(data.data(), bytes, i);
    }
  }
  if (check::rank != 0) return;
  const bool with_tokens = std::strcmp(counter_name, "eager_sent") == 0;
  const auto expected = with_tokens && early == Early::sender ? 2u * messages : messages;
  CHECK_EQUAL(counter.since(), expected);
}

// The receiver comes when the sender has left. `send` sends to it, and returns then.
template <class Send>
void left_behind(int count, Send send) {
  if (!check::is_macadam() || check::rank > 1) return;
  Counter counter("hybrid_sent");
  std::vector<std::vector<unsigned char>> data(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i].resize(medium);
    if (check::rank == 0) check::fill(data[i].data(), medium, i);
  }
  if (check::rank == 0) {
    send(data);
    for (auto& sent : data)
      std::fill(sent.begin(), sent.end(), 0); // the buffers are the user's again
    check::token_send(1);
    check::token_recv(1);
    CHECK_EQUAL(counter.since(), static_cast<std::uint64_t>(count));
  } else {
    // The first is matched before its sender leaves, and received after.
    MPI_Message first;
    OK(MPI_Mprobe(0, 1, MPI_COMM_WORLD, &first, MPI_STATUS_IGNORE));
    check::token_recv(0);
    OK(MPI_Mrecv(data[0].data(), medium, MPI_BYTE, &first, MPI_STATUS_IGNORE));
    for (std::size_t i = 1; i < data.size(); ++i)
      OK(MPI_Recv(data[i].data(), medium, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE));
    for (std::size_t i = 0; i < data.size(); ++i)
      HOLDS(data[i].data(), medium, i);
    check::token_send(0);
  }
}

void medium_sender_early() {
  for (int i = 0; i < messages; ++i) {
    left_behind(1, [](auto& data) {
      OK(MPI_Send(data[0].data(), medium, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    });
  }
}

void medium_senders_wait() {
  for (int i = 0; i < messages; ++i) {
    left_behind(4, [](auto& data) {
      MPI_Request requests[4];
      for (int k = 0; k < 4; ++k)
        OK(MPI_Isend(data[static_cast<std::size_t>(k)].data(), medium, MPI_BYTE, 1, 1,
                     MPI_COMM_WORLD, &requests[k]));
      OK(MPI_Wait(&requests[3], MPI_STATUS_IGNORE));
      OK(MPI_Waitall(4, requests, MPI_STATUSES_IGNORE));
    });
  }
}

// The sender leaves a copy, of what began as another protocol.
void no_counter_falls() {
  if (!check::is_macadam() || check::rank > 1) return;
  Counter read("send_rndv_read"), early("sender_early");
  left_behind(1, [&](auto& data) {
    MPI_Request request;
    OK(MPI_Isend(data[0].data(), medium, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request));
    const auto read_then = read.since(), early_then = early.since();
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(read.since() >= read_then);
    CHECK(early.since() >= early_then);
  });
}

// Programs that test, and persistent sends.
void medium_senders_test() {
  left_behind(3, [](auto& data) {
    MPI_Request requests[3];
    for (int k = 0; k < 3; ++k) {
      OK(MPI_Send_init(data[static_cast<std::size_t>(k)].data(), medium, MPI_BYTE, 1, 1,
                       MPI_COMM_WORLD, &requests[k]));
    }
    OK(MPI_Startall(3, requests));
    for (int done = 0; done == 0;)
      OK(MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE));
    int index = MPI_UNDEFINED;
    OK(MPI_Waitany(2, &requests[1], &index, MPI_STATUS_IGNORE));
    for (int done = 0; done == 0;)
      OK(MPI_Testall(3, requests, &done, MPI_STATUSES_IGNORE));
    for (MPI_Request& request : requests)
      OK(MPI_Request_free(&request));
  });
}

// A wildcard receive never announces itself: an early one gets its message sender-initiated.
void wildcards_do_not_announce() {
  if (!check::is_macadam() || check::rank > 1) return;
  Counter announced("announced"), write("recv_rndv");
  const int bytes = large;
  std::vector<unsigned char> data(bytes);
  if (check::rank == 0) {
    check::token_recv(1);
    OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    CHECK_EQUAL(write.since(), 0);
  } else {
    MPI_Request request;
    OK(MPI_Irecv(data.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &request));
    check::token_send(0);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQUAL(announced.since(), 0);
  }
}

// Each has a tag of its own, of which nothing is kept: more of them one after the other than there
// may be tags leave room for others.
void persistent_one_after_the_other() {
  if (!check::is_macadam()) return;
  Counter counter("uncounted");
  for (int round = 0; round < 300; ++round) {
    int mine = check::rank, sum = -1;
    MPI_Request request;
    OK(MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    CHECK_EQUAL(sum, check::size * (check::size - 1) / 2);
  }
  CHECK_EQUAL(counter.since(), 0u);
}

} // namespace

int main(int argc, char** argv) {
  int provided = 0;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  OK(MPI_Init(&argc, &argv));
  const int code = check::run_parts(
      argc, argv,
      {{"small_sender_early", [] { row(4000, Early::sender, "eager_sent"); }},
       {"small_receiver_early", [] { row(4000, Early::receiver, "eager_sent"); }},
       {"medium_sender_early", medium_sender_early},
       {"medium_senders_wait", medium_senders_wait},
       {"medium_senders_test", medium_senders_test},
       {"no_counter_falls", no_counter_falls},
       {"medium_receiver_early", [] { row(medium, Early::receiver, "recv_rndv"); }},
       {"large_sender_early", [] { row(large, Early::sender, "send_rndv_read"); }},
       {"large_receiver_early", [] { row(large, Early::receiver, "recv_rndv"); }},
       {"wildcards_do_not_announce", wildcards_do_not_announce},
       {"persistent_one_after_the_other", persistent_one_after_the_other}});
  MPI_T_finalize();
  return code;
}
