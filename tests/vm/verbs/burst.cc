// SPDX-License-Identifier: BSD-3-Clause
// Sur et al., section 4.1: rank 0 sends more messages than rank 1 has receives posted, while rank 1
// computes. With the low-watermark event the progress thread posts more meanwhile; without it the
// network holds the sender back (the receiver is not ready). Soft-RoCE counts that.
#include "check.h"
#include "counter.h"

#include <cstdio>
#include <fstream>

namespace {

constexpr int messages = 2000;
constexpr int bytes = 64;
constexpr double computes_ms = 3000;
constexpr int most_waits = 10;

// Times that the device's receivers said that they are not ready.
unsigned long long not_ready() {
  std::ifstream file("/sys/class/infiniband/rxe0/ports/1/hw_counters/send_rnr_err");
  unsigned long long value = 0;
  CHECK(file >> value);
  return value;
}

struct Seen {
  unsigned long long limit_events, refilled, not_ready;
};

Seen look() {
  return {counter("limit_events"), counter("refilled"), not_ready()};
}

// What the counters of the receiver grew by while it computed, calling nothing of MPI: for a while,
// and longer if the sender is slow and has not come to so many refills yet.
Seen burst(unsigned long long refills) {
  Seen seen{};
  if (check::rank == 0) {
    std::vector<std::vector<unsigned char>> data;
    check::token_recv(1);
    for (int i = 0; i < messages; ++i)
      data.push_back(check::message(bytes, static_cast<std::uint64_t>(i)));
    // One by one: nonblocking ones would travel together, and take few receives.
    for (int i = 0; i < messages; ++i)
      OK(MPI_Send(data[static_cast<std::size_t>(i)].data(), bytes, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
  } else {
    check::token_send(0);
    const Seen before = look();
    for (int i = 0; i < most_waits && (i == 0 || seen.refilled < refills); ++i) {
      check::compute_ms(computes_ms);
      const Seen after = look();
      seen = {after.limit_events - before.limit_events, after.refilled - before.refilled,
              after.not_ready - before.not_ready};
    }
    unsigned char data[bytes];
    for (int i = 0; i < messages; ++i) {
      OK(MPI_Recv(data, bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
      HOLDS(data, bytes, static_cast<std::uint64_t>(i));
    }
  }
  if (check::rank == 1)
    std::printf("burst: messages %d, limit events %llu, refilled %llu, receiver not ready %llu\n",
                messages, seen.limit_events, seen.refilled, seen.not_ready);
  return seen;
}

void with_watermark() {
  constexpr unsigned long long beyond = messages - 512; // that are posted at first
  const Seen seen = burst(beyond);
  if (check::rank != 1) return;
  CHECK(seen.limit_events > 0);
  CHECK(seen.refilled >= beyond);
}

void without_watermark() {
  const Seen seen = burst(0);
  if (check::rank != 1) return;
  CHECK_EQUAL(seen.limit_events, 0);
  CHECK_EQUAL(seen.refilled, 0);
  CHECK(seen.not_ready > 0);
}

} // namespace

int main(int argc, char** argv) {
  int provided = 0;
  OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
  const int status = check::run(
      argc, argv, {{"with_watermark", with_watermark}, {"without_watermark", without_watermark}});
  MPI_T_finalize();
  return status;
}
