// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: many threads of each rank send, receive, wait and create at once.
#include "threads.h"

#include <atomic>

namespace {

using check::in_threads;
using check::threads;

// Each thread has its own tag; blocking calls of one must not stop the others.
void ping_pong_per_thread() {
  if (check::rank > 1) return;
  const int peer = 1 - check::rank;
  in_threads([peer](int t) {
    for (int bytes : {0, 8, 5000, 40000, 200000})
      for (int i = 0; i < check::times(50, 10); ++i) {
        const auto n = static_cast<std::size_t>(bytes);
        const auto seed = static_cast<std::uint64_t>(1000 * t + i);
        std::vector<unsigned char> data = check::message(n, seed);
        if (check::rank == 0) {
          OK(MPI_Send(data.data(), bytes, MPI_BYTE, peer, t, MPI_COMM_WORLD));
          std::memset(data.data(), 0, n);
          OK(MPI_Recv(data.data(), bytes, MPI_BYTE, peer, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
          std::memset(data.data(), 0, n);
          OK(MPI_Recv(data.data(), bytes, MPI_BYTE, peer, t, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
          HOLDS(data.data(), bytes, seed);
          OK(MPI_Send(data.data(), bytes, MPI_BYTE, peer, t, MPI_COMM_WORLD));
        }
        HOLDS(data.data(), bytes, seed);
      }
  });
}

// All threads send to one tag; any thread of the receiver takes any message: none lost or twice.
void one_tag_for_all() {
  if (check::rank > 1) return;
  const int each = check::times(1000, 200);
  std::vector<std::atomic<int>> seen(threads * each);
  in_threads([&](int t) {
    for (int i = 0; i < each; ++i) {
      int value = t * each + i;
      if (check::rank == 0) {
        OK(MPI_Send(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD));
      } else {
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        seen[static_cast<std::size_t>(value)]++;
      }
    }
  });
  if (check::rank == 1)
    for (auto& times : seen)
      CHECK_EQUAL(times.load(), 1);
}

// Messages whose size is only known by probing need the matched probe.
void matched_probe() {
  if (check::rank > 1) return;
  const int each = check::times(300, 60);
  in_threads([&](int t) {
    for (int i = 0; i < each; ++i) {
      const int bytes = (t * each + i) * 37 % 60000;
      if (check::rank == 0) {
        const auto data =
            check::message(static_cast<std::size_t>(bytes), static_cast<std::uint64_t>(bytes));
        OK(MPI_Send(data.data(), bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
      } else {
        MPI_Message message;
        MPI_Status status;
        OK(MPI_Mprobe(0, 5, MPI_COMM_WORLD, &message, &status));
        int count = -1;
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        std::vector<unsigned char> data(static_cast<std::size_t>(count));
        OK(MPI_Mrecv(data.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        HOLDS(data.data(), count, static_cast<std::uint64_t>(count));
      }
    }
  });
}

// Windows of nonblocking operations in every thread, between all ranks.
void nonblocking_windows() {
  in_threads([&](int t) {
    constexpr int bytes = 3000, window = 16;
    for (int round = 0; round < check::times(20, 4); ++round)
      for (int shift = 1; shift < check::size; ++shift) {
        const int to = (check::rank + shift) % check::size;
        const int from = (check::rank + check::size - shift) % check::size;
        std::vector<std::vector<unsigned char>> in(window, std::vector<unsigned char>(bytes));
        const auto out = check::message(bytes, static_cast<std::uint64_t>(check::rank * 10 + t));
        std::vector<MPI_Request> requests(2 * window);
        for (std::size_t i = 0; i < window; ++i) {
          OK(MPI_Irecv(in[i].data(), bytes, MPI_BYTE, from, t, MPI_COMM_WORLD, &requests[2 * i]));
          OK(MPI_Isend(out.data(), bytes, MPI_BYTE, to, t, MPI_COMM_WORLD, &requests[2 * i + 1]));
        }
        OK(MPI_Waitall(2 * window, requests.data(), MPI_STATUSES_IGNORE));
        for (const auto& data : in)
          HOLDS(data.data(), bytes, static_cast<std::uint64_t>(from * 10 + t));
      }
  });
}

// Each thread has its own communicator, on which it runs collectives.
void collectives_per_thread() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  in_threads([&comms](int t) {
    MPI_Comm comm = comms[static_cast<std::size_t>(t)];
    for (int i = 0; i < check::times(100, 20); ++i) {
      int mine = check::rank + t + i, sum = 0;
      OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
      CHECK_EQUAL(sum, check::size * (check::size - 1) / 2 + check::size * (t + i));
    }
    MPI_Comm copy;
    OK(MPI_Comm_dup(comm, &copy));
    OK(MPI_Barrier(copy));
    OK(MPI_Comm_free(&copy));
  });
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// One thread waits for a message that another thread of the same process sends.
void wake_another_thread() {
  for (int i = 0; i < check::times(50, 10); ++i) {
    int value = 0;
    std::thread waiting([&value] {
      OK(MPI_Recv(&value, 1, MPI_INT, check::rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    });
    if (i % 2) check::compute_ms(0.2);
    OK(MPI_Send(&i, 1, MPI_INT, check::rank, 8, MPI_COMM_WORLD));
    waiting.join();
    CHECK_EQUAL(value, i);
  }
}

// A buffer is given back when nobody's message is in it any more, also when another thread has sent
// after the detach had begun.
void detached_while_others_send() {
  constexpr int bytes = 1 << 20;
  if (check::rank == 0) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    std::vector<unsigned char> buffer(3 * bytes);
    const auto first = check::message(bytes, 1), second = check::message(bytes, 2);
    OK(MPI_Buffer_attach(buffer.data(), 3 * bytes));
    OK(MPI_Bsend(first.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
    std::thread other([&] {
      check::sleep_ms(100);
      // There may be no buffer any more.
      const int sent =
          MPI_Bsend(second.data(), bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD) == MPI_SUCCESS ? 1 : 0;
      OK(MPI_Send(&sent, 1, MPI_INT, 1, 3, MPI_COMM_WORLD));
    });
    void* address = nullptr;
    int size = 0;
    OK(MPI_Buffer_detach(static_cast<void*>(&address), &size));
    CHECK(address == buffer.data() && size == 3 * bytes);
    std::memset(buffer.data(), 99, buffer.size());
    other.join();
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  } else if (check::rank == 1) {
    std::vector<unsigned char> data(bytes);
    int sent = 0;
    OK(MPI_Recv(&sent, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    HOLDS(data.data(), bytes, 1);
    if (sent == 0) return;
    check::sleep_ms(100); // in which nothing may happen to what is in the buffer
    OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    HOLDS(data.data(), bytes, 2);
  }
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  int level = 0, is_main = 0;
  OK(MPI_Query_thread(&level));
  OK(MPI_Is_thread_main(&is_main));
  CHECK_EQUAL(level, MPI_THREAD_MULTIPLE);
  CHECK(is_main);
  return check::run_parts(argc, argv,
                          {{"ping_pong_per_thread", ping_pong_per_thread},
                           {"one_tag_for_all", one_tag_for_all},
                           {"matched_probe", matched_probe},
                           {"nonblocking_windows", nonblocking_windows},
                           {"collectives_per_thread", collectives_per_thread},
                           {"wake_another_thread", wake_another_thread},
                           {"detached_while_others_send", detached_while_others_send}});
}
