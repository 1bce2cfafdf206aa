// SPDX-License-Identifier: BSD-3-Clause
// Many threads mark partitions and look for them at once, some while another waits, sends or makes
// progress: none is lost, and none has to wait for the library's lock.
#include "threads.h"
#include "partitioned/ring.h"

#include <atomic>

namespace {

using check::in_threads;
using check::threads;

struct Ring {
  std::vector<unsigned char> out, in;
  MPI_Request send, receive;

  Ring(int each, int partitions, int receive_partitions, int tag, MPI_Comm comm) {
    const int bytes = each * partitions;
    out.resize(static_cast<std::size_t>(bytes));
    in.resize(static_cast<std::size_t>(bytes));
    OK(MPI_Psend_init(out.data(), partitions, each, MPI_BYTE, next(), tag, comm, MPI_INFO_NULL,
                      &send));
    OK(MPI_Precv_init(in.data(), receive_partitions, bytes / receive_partitions, MPI_BYTE,
                      previous(), tag, comm, MPI_INFO_NULL, &receive));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
  }
  void start(int round) {
    check::fill(out.data(), out.size(), static_cast<std::uint64_t>(round * 100 + check::rank));
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
  }
  void check_data(int round) const { HOLDS(in.data(), in.size(), round * 100 + previous()); }
};

// Each thread marks its own partitions; the first one then waits for all.
void all_mark() {
  for (const int each : {16, 1000, 30000}) {
    Ring ring(each, threads * 4, 8, 1, MPI_COMM_WORLD);
    for (int round = 0; round < check::times(20, 5); ++round) {
      ring.start(round);
      in_threads([&](int t) {
        for (int i = 0; i < 4; ++i)
          OK(MPI_Pready(i * threads + t, ring.send));
      });
      MPI_Request both[] = {ring.send, ring.receive};
      OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
      ring.check_data(round);
    }
  }
}

// One thread waits from the start, while the others mark and look.
void one_waits() {
  Ring ring(5000, 12, 12, 1, MPI_COMM_WORLD);
  for (int round = 0; round < check::times(50, 5); ++round) {
    ring.start(round);
    std::atomic<int> arrived = 0;
    in_threads([&](int t) {
      if (t == 0) {
        OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
      } else {
        for (int i = t - 1; i < 12; i += threads - 1)
          OK(MPI_Pready(i, ring.send));
        for (int i = t - 1; i < 12; i += threads - 1) {
          for (int flag = 0; flag == 0;)
            OK(MPI_Parrived(ring.receive, i, &flag));
          ++arrived;
        }
      }
    });
    CHECK_EQUAL(arrived.load(), 12);
    OK(MPI_Wait(&ring.receive, MPI_STATUS_IGNORE));
    ring.check_data(round);
  }
}

// One thread completes the receive by MPI_Test while the others still look: for them an inactive
// request has all partitions.
void one_tests() {
  Ring ring(3000, 12, 8, 1, MPI_COMM_WORLD);
  const MPI_Request receive = ring.receive;
  for (int round = 0; round < check::times(100, 20); ++round) {
    ring.start(round);
    in_threads([&](int t) {
      if (t == 0) {
        OK(MPI_Pready_range(0, 11, ring.send));
        for (int flag = 0; flag == 0;)
          OK(MPI_Test(&ring.receive, &flag, MPI_STATUS_IGNORE));
      } else {
        for (int i = 0; i < 8; ++i) {
          for (int flag = 0; flag == 0;)
            OK(MPI_Parrived(receive, i, &flag));
        }
      }
    });
    OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
    ring.check_data(round);
  }
}

// The same program at an edge, where MPI_PROC_NULL is the neighbour: the wait is over at once, and
// the others still mark.
void one_waits_for_nobody() {
  if (!check::is_macadam()) return; // MPICH 5.0 crashes
  MPI_Request request;
  OK(MPI_Psend_init(nullptr, 12, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &request));
  const MPI_Request send = request;
  for (int round = 0; round < check::times(20, 5); ++round) {
    OK(MPI_Start(&request));
    in_threads([&](int t) {
      if (t == 0) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      for (int i = t; i < 12; i += threads)
        OK(MPI_Pready(i, send));
    });
  }
  OK(MPI_Request_free(&request));
}

// Beside them others send, receive and reduce on communicators of their own.
void beside_messages() {
  MPI_Comm comms[threads];
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  in_threads([&](int t) {
    const MPI_Comm comm = comms[t];
    if (t % 2 == 0) {
      Ring ring(700, 16, 4, t, comm);
      for (int round = 0; round < check::times(40, 5); ++round) {
        ring.start(round);
        OK(MPI_Pready_range(8, 15, ring.send));
        for (int i = 0; i < 8; ++i)
          OK(MPI_Pready(i, ring.send));
        OK(MPI_Wait(&ring.receive, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
        ring.check_data(round);
      }
    } else {
      for (int round = 0; round < check::times(40, 5); ++round) {
        int got = -1, sum = 0;
        OK(MPI_Sendrecv(&round, 1, MPI_INT, next(), t, &got, 1, MPI_INT, previous(), t, comm,
                        MPI_STATUS_IGNORE));
        CHECK_EQUAL(got, round);
        OK(MPI_Allreduce(&round, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK_EQUAL(sum, round * check::size);
      }
    }
  });
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// What threads mark leaves although none of them calls the library afterwards: a receiver gets it
// while the sender's process only sleeps.
void leaves_by_itself() {
  if (check::rank > 1) return;
  std::vector<unsigned char> data(static_cast<std::size_t>(threads) * 64);
  MPI_Request request;
  const int rounds = check::times(30, 5), go = 30, done = 31;
  int early = 0;
  if (check::rank == 0) {
    OK(MPI_Psend_init(data.data(), threads, 64, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &request));
    for (int round = 0; round < rounds; ++round) {
      check::fill(data.data(), data.size(), static_cast<std::uint64_t>(round));
      OK(MPI_Start(&request));
      OK(MPI_Pready(0, request));
      OK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, go, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      in_threads([&](int t) {
        if (t != 0) OK(MPI_Pready(t, request));
      });
      check::sleep_ms(30);
      int flag = 0; // one look: the receiver's answer must be there, or was delayed by the machine
      OK(MPI_Iprobe(1, done, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
      early += flag;
      OK(MPI_Recv(nullptr, 0, MPI_BYTE, 1, done, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK(early > 0 || !check::is_macadam());
  } else {
    OK(MPI_Precv_init(data.data(), 1, threads * 64, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &request));
    for (int round = 0; round < rounds; ++round) {
      OK(MPI_Start(&request));
      OK(MPI_Send(nullptr, 0, MPI_BYTE, 0, go, MPI_COMM_WORLD));
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      HOLDS(data.data(), data.size(), round);
      OK(MPI_Send(nullptr, 0, MPI_BYTE, 0, done, MPI_COMM_WORLD));
    }
  }
  OK(MPI_Request_free(&request));
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(argc, argv,
                          {{"all_mark", all_mark},
                           {"one_waits", one_waits},
                           {"one_tests", one_tests},
                           {"one_waits_for_nobody", one_waits_for_nobody},
                           {"beside_messages", beside_messages},
                           {"leaves_by_itself", leaves_by_itself}});
}
