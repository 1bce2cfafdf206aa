// SPDX-License-Identifier: BSD-3-Clause
// Messages that nobody waits for: kept, in order, and in bounded memory.
#include "check.h"

#include <fstream>

namespace {

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      long kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

// A flood of nonblocking sends that the receiver takes only after all were started.
void flood(int messages, int bytes) {
  const auto n = static_cast<std::size_t>(bytes);
  if (check::rank == 0) { // the receiver
    const long before = resident_kib();
    for (int sender = 1; sender < check::size; ++sender)
      check::token_recv(sender);
    check::sleep_ms(20);
    int flag = 0; // a call that makes progress, and receives nothing
    for (int i = 0; i < 1000; ++i)
      OK(MPI_Iprobe(1, 999, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    const long grown = resident_kib() - before;
    // Ours is bounded per process, whatever the number of messages: 64 MiB of data by default, and
    // what goes with them.
    if (check::is_macadam() && grown > 96 * 1024)
      check::fail(__FILE__, __LINE__, "memory has grown by " + std::to_string(grown) + " KiB");
    std::vector<unsigned char> data(n);
    for (int sender = check::size - 1; sender > 0; --sender)
      for (int i = 0; i < messages; ++i) {
        OK(MPI_Recv(data.data(), bytes, MPI_BYTE, sender, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        HOLDS(data.data(), std::min(bytes, 32), static_cast<std::uint64_t>(sender * messages + i));
      }
    return;
  }
  std::vector<unsigned char> data(n * static_cast<std::size_t>(messages));
  std::vector<MPI_Request> requests(static_cast<std::size_t>(messages));
  for (int i = 0; i < messages; ++i) {
    unsigned char* const place = data.data() + n * static_cast<std::size_t>(i);
    check::fill(place, static_cast<std::size_t>(std::min(bytes, 32)),
                static_cast<std::uint64_t>(check::rank * messages + i));
    OK(MPI_Isend(place, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
                 &requests[static_cast<std::size_t>(i)]));
  }
  MPI_Request token;
  OK(MPI_Isend(nullptr, 0, MPI_BYTE, 0, 32001, MPI_COMM_WORLD, &token));
  OK(MPI_Waitall(messages, requests.data(), MPI_STATUSES_IGNORE));
  OK(MPI_Wait(&token, MPI_STATUS_IGNORE));
}

// Blocking sends to a receiver that takes them in the opposite order of their tags.
void reverse_order() {
  const int n = check::times(500, 50);
  for (int bytes : {8, 2000, 9000}) {
    std::vector<unsigned char> data(static_cast<std::size_t>(bytes));
    std::vector<MPI_Request> requests(n);
    if (check::rank == 1) {
      std::vector<std::vector<unsigned char>> kept;
      for (int i = 0; i < n; ++i) {
        kept.push_back(check::message(data.size(), static_cast<std::uint64_t>(i)));
        OK(MPI_Isend(kept.back().data(), bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD,
                     &requests[static_cast<std::size_t>(i)]));
      }
      OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
    } else if (check::rank == 0) {
      for (int i = n - 1; i >= 0; --i) {
        OK(MPI_Recv(data.data(), bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        HOLDS(data.data(), bytes, static_cast<std::uint64_t>(i));
      }
    }
  }
}

// One rank waits for another while a third floods it: no message is lost, nobody starves.
void flood_while_waiting() {
  const int n = check::times(5000, 500);
  if (check::size < 3) return;
  if (check::rank == 0) {
    int value = 0;
    OK(MPI_Recv(&value, 1, MPI_INT, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK_EQUAL(value, 77);
    for (int i = 0; i < n; ++i) {
      OK(MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      CHECK_EQUAL(value, i);
    }
  } else if (check::rank == 1) {
    for (int i = 0; i < n; ++i)
      OK(MPI_Send(&i, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
  } else if (check::rank == 2) {
    check::sleep_ms(50);
    const int value = 77;
    OK(MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv,
      {{"tiny_flood", [] { flood(check::times(60000, 3000) / (check::size - 1), 8); }},
       {"small_flood", [] { flood(check::times(40000, 2000) / (check::size - 1), 2048); }},
       {"medium_flood", [] { flood(check::times(3000, 200), 30000); }},
       {"large_flood", [] { flood(check::times(300, 20), 300000); }},
       {"reverse_order", reverse_order},
       {"flood_while_waiting", flood_while_waiting}});
}
