// SPDX-License-Identifier: BSD-3-Clause
// Partitioned sends and receives, round after round: numbers of partitions that differ, every
// order, noncontiguous types, several between the same ranks, nobody on the other side.
#include "partitioned/ring.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace {

// A ring: each rank sends to the next and receives from the one before.
struct Ring {
  std::vector<unsigned char> out, in;
  MPI_Request send = MPI_REQUEST_NULL, receive = MPI_REQUEST_NULL;

  Ring(int bytes, int partitions, int receive_partitions, int tag = 3) {
    out.resize(static_cast<std::size_t>(bytes));
    in.resize(static_cast<std::size_t>(bytes));
    OK(MPI_Psend_init(out.data(), partitions, bytes / partitions, MPI_BYTE, next(), tag,
                      MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in.data(), receive_partitions, bytes / receive_partitions, MPI_BYTE,
                      previous(), tag, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    CHECK(send == MPI_REQUEST_NULL && receive == MPI_REQUEST_NULL);
  }
  void fill(int round, int of = check::rank) {
    check::fill(out.data(), out.size(), static_cast<std::uint64_t>(round * 100 + of));
  }
  void check_data(int round) { HOLDS(in.data(), in.size(), round * 100 + previous()); }
};

void every_shape() {
  const std::array<std::array<int, 2>, 6> shapes = {
      {{1, 1}, {4, 4}, {8, 2}, {2, 8}, {6, 4}, {3, 12}}};
  for (const int unit : {1, 8, 100, 700, 5000, 40000}) {
    for (const auto& [sent, received] : shapes) {
      const int bytes = 24 * unit;
      Ring ring(bytes, sent, received);
      for (int round = 0; round < check::times(6, 2); ++round) {
        ring.fill(round);
        std::fill(ring.in.begin(), ring.in.end(), 0xee);
        std::array<MPI_Request*, 2> order = {&ring.send, &ring.receive};
        if (round % 2 == 1) std::swap(order[0], order[1]);
        OK(MPI_Start(order[0]));
        OK(MPI_Start(order[1]));
        // First to last, last to first, odd ones first.
        std::vector<int> ready(static_cast<std::size_t>(sent));
        std::iota(ready.begin(), ready.end(), 0);
        if (round % 3 == 1) std::reverse(ready.begin(), ready.end());
        if (round % 3 == 2)
          std::stable_partition(ready.begin(), ready.end(), [](int i) { return i % 2 == 1; });
        for (const int i : ready)
          OK(MPI_Pready(i, ring.send));
        MPI_Status status;
        OK(MPI_Wait(&ring.receive, &status));
        OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
        int count = 0;
        OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_EQUAL(count, bytes);
        CHECK_EQUAL(status.MPI_SOURCE, previous());
        CHECK_EQUAL(status.MPI_TAG, 3);
        ring.check_data(round);
      }
    }
  }
}

void by_range_and_list() {
  Ring ring(130 * 64, 130, 10);
  for (int round = 0; round < 4; ++round) {
    ring.fill(round);
    OK(MPI_Start(&ring.receive));
    OK(MPI_Start(&ring.send));
    OK(MPI_Pready_range(60, 70, ring.send));
    OK(MPI_Pready_range(129, 129, ring.send));
    std::vector<int> list(60);
    std::iota(list.begin(), list.end(), 0);
    std::reverse(list.begin(), list.end());
    OK(MPI_Pready_list(60, list.data(), ring.send));
    OK(MPI_Pready_list(0, nullptr, ring.send));
    OK(MPI_Pready_range(71, 128, ring.send));
    MPI_Request both[] = {ring.send, ring.receive};
    OK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    ring.check_data(round);
  }
}

// A partition of the receiver is there once all of the sender's that touch it are, and not before:
// whatever became of the others.
void parts_arrive() {
  if (!check::is_macadam()) return; // MPICH 5.0 sends nothing before all partitions are ready
  const int parts = 6, bytes = 6 * 4096;
  Ring ring(bytes, parts, 3);
  for (int round = 0; round < 5; ++round) {
    ring.fill(round);
    OK(MPI_Start(&ring.receive));
    OK(MPI_Start(&ring.send));
    int flag = 1;
    if (check::size > 1) OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 3; ++i) {
      OK(MPI_Parrived(ring.receive, i, &flag));
      CHECK_EQUAL(flag, 0);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (const int i : {5, 4, 2}) // the last one of three whole, the middle one half
      OK(MPI_Pready(i, ring.send));
    for (flag = 0; flag == 0;)
      OK(MPI_Parrived(ring.receive, 2, &flag));
    std::vector<unsigned char> expected(static_cast<std::size_t>(bytes));
    check::fill(expected.data(), expected.size(),
                static_cast<std::uint64_t>(round * 100 + previous()));
    CHECK(std::equal(expected.begin() + bytes / 3 * 2, expected.end(),
                     ring.in.begin() + bytes / 3 * 2));
    for (const int i : {0, 1}) {
      OK(MPI_Parrived(ring.receive, i, &flag));
      CHECK_EQUAL(flag, 0);
    }
    int done = 1;
    OK(MPI_Test(&ring.receive, &done, MPI_STATUS_IGNORE));
    CHECK_EQUAL(done, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (const int i : {3, 0, 1})
      OK(MPI_Pready(i, ring.send));
    OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&ring.receive, MPI_STATUS_IGNORE));
    ring.check_data(round);
  }
}

// The sender may be a round ahead: what it marks waits until the receiver has begun its own.
void sender_is_ahead() {
  Ring ring(4 * 20000, 4, 4);
  std::vector<unsigned char> kept;
  for (int round = 0; round < 10; ++round) {
    OK(MPI_Start(&ring.receive));
    ring.fill(round);
    OK(MPI_Start(&ring.send));
    OK(MPI_Pready_range(0, 3, ring.send));
    OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
    ring.fill(round + 1);
    OK(MPI_Start(&ring.send));
    OK(MPI_Pready_range(0, 3, ring.send)); // for a round that nobody has begun to receive
    OK(MPI_Wait(&ring.receive, MPI_STATUS_IGNORE));
    ring.check_data(round);
    check::sleep_ms(round == 0 ? 5 : 0);
    ring.check_data(round); // nothing is written outside of a round
    OK(MPI_Start(&ring.receive));
    OK(MPI_Wait(&ring.receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&ring.send, MPI_STATUS_IGNORE));
    ring.check_data(round + 1);
  }
}

// Matched in the order in which they are made, whichever is started first; made, and never started.
void several_of_one_tag() {
  constexpr int many = 4;
  std::array<std::array<int, 2>, many> out, in = {};
  std::array<MPI_Request, many> sends, receives;
  for (int i = 0; i < many; ++i) {
    const auto k = static_cast<std::size_t>(i);
    OK(MPI_Psend_init(out[k].data(), 2, 1, MPI_INT, next(), 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &sends[k]));
    OK(MPI_Precv_init(in[k].data(), 1, 2, MPI_INT, previous(), 9, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &receives[k]));
  }
  for (const std::size_t k : {2U, 3U, 0U}) { // the second one never
    out[k] = {static_cast<int>(k) * 10 + check::rank * 1000, static_cast<int>(k) * 10 + 1};
    OK(MPI_Start(&receives[k]));
    OK(MPI_Start(&sends[k]));
    OK(MPI_Pready_range(0, 1, sends[k]));
  }
  // Ordinary messages of the same tag are not theirs.
  int ordinary = -1;
  OK(MPI_Sendrecv(&check::rank, 1, MPI_INT, next(), 9, &ordinary, 1, MPI_INT, previous(), 9,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_EQUAL(ordinary, previous());
  for (const std::size_t k : {0U, 2U, 3U}) {
    OK(MPI_Wait(&receives[k], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&sends[k], MPI_STATUS_IGNORE));
    CHECK_EQUAL(in[k][0], static_cast<int>(k) * 10 + previous() * 1000);
    CHECK_EQUAL(in[k][1], static_cast<int>(k) * 10 + 1);
  }
  CHECK_EQUAL(in[1][0], 0);
  for (std::size_t k = 0; k < many; ++k) {
    OK(MPI_Request_free(&sends[k]));
    OK(MPI_Request_free(&receives[k]));
  }
}

// A column of a matrix into a row, and back.
void gaps() {
  constexpr int n = 48, parts = 6;
  MPI_Datatype column;
  OK(MPI_Type_vector(n / parts, 1, n, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  std::vector<int> matrix(n * n), row(n);
  MPI_Request send, receive, back, into;
  // The elements of a partition follow each other by the type's extent: (n / parts - 1) rows and
  // one.
  MPI_Datatype strip;
  OK(MPI_Type_create_resized(column, 0, n / parts * n * static_cast<MPI_Aint>(sizeof(int)),
                             &strip));
  OK(MPI_Type_commit(&strip));
  std::vector<int> other(n * n, -1);
  OK(MPI_Psend_init(matrix.data(), parts, 1, strip, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &send));
  OK(MPI_Precv_init(row.data(), 4, n / 4, MPI_INT, previous(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  OK(MPI_Psend_init(row.data(), n, 1, MPI_INT, next(), 2, MPI_COMM_WORLD, MPI_INFO_NULL, &back));
  OK(MPI_Precv_init(other.data(), parts, 1, strip, previous(), 2, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &into));
  OK(MPI_Type_free(&strip)); // in use, so it lives on
  OK(MPI_Type_free(&column));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < n * n; ++i)
      matrix[static_cast<std::size_t>(i)] = check::rank * 100000 + round * 10000 + i;
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
    for (const int i : {3, 0, 5, 1, 2, 4})
      OK(MPI_Pready(i, send));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    for (int i = 0; i < n; ++i)
      CHECK_EQUAL(row[static_cast<std::size_t>(i)], previous() * 100000 + round * 10000 + i * n);
    OK(MPI_Start(&into));
    OK(MPI_Start(&back));
    OK(MPI_Pready_range(0, n - 1, back));
    OK(MPI_Wait(&back, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&into, MPI_STATUS_IGNORE));
    const int two_before = (previous() + check::size - 1) % check::size;
    for (int i = 0; i < n * n; ++i)
      CHECK_EQUAL(other[static_cast<std::size_t>(i)],
                  i % n == 0 ? two_before * 100000 + round * 10000 + i : -1);
  }
  for (MPI_Request* request : {&send, &receive, &back, &into})
    OK(MPI_Request_free(request));
}

void nothing_to_send() {
  if (!check::is_macadam()) return; // MPICH 5.0 crashes
  int flag = 0;
  MPI_Request send, receive;
  char byte = 'a';
  OK(MPI_Psend_init(&byte, 3, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(&byte, 3, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Start(&send));
    OK(MPI_Start(&receive));
    OK(MPI_Pready_range(0, 2, send));
    OK(MPI_Parrived(receive, 1, &flag));
    CHECK_EQUAL(flag, 1);
    MPI_Status status;
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, &status));
    CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  // No partitions: no buffer either, whatever the count.
  OK(MPI_Psend_init(nullptr, 0, 5, MPI_INT, next(), 4, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(nullptr, 0, 5, MPI_INT, previous(), 4, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
  // Partitions without data still have to be ready before the receiver goes on.
  OK(MPI_Psend_init(nullptr, 2, 0, MPI_INT, next(), 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
  OK(MPI_Precv_init(nullptr, 3, 0, MPI_INT, previous(), 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Start(&receive));
    OK(MPI_Start(&send));
    OK(MPI_Parrived(receive, 2, &flag));
    CHECK_EQUAL(flag, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Pready(1, send));
    for (flag = 0; flag == 0;)
      OK(MPI_Parrived(receive, 2, &flag)); // the last third of the data, where the second half is
    for (int i = 0; i < 2; ++i) {
      OK(MPI_Parrived(receive, i, &flag));
      CHECK_EQUAL(flag, 0);
    }
    OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
    CHECK_EQUAL(flag, 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Pready(0, send));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  }
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

// Requests that are not active: complete at once, with an empty status.
void inactive() {
  Ring ring(64, 2, 2);
  MPI_Status status;
  int flag = 0;
  OK(MPI_Wait(&ring.send, &status));
  CHECK_EQUAL(status.MPI_SOURCE, MPI_ANY_SOURCE);
  OK(MPI_Test(&ring.receive, &flag, &status));
  CHECK_EQUAL(flag, 1);
  MPI_Request both[] = {ring.send, ring.receive};
  int index = 0;
  OK(MPI_Waitany(2, both, &index, &status));
  CHECK_EQUAL(index, MPI_UNDEFINED);
}

void of_doubles() {
  std::vector<double> out(1000), in(1000);
  MPI_Request send, receive;
  OK(MPI_Psend_init(out.data(), 10, 100, MPI_DOUBLE, next(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &send));
  OK(MPI_Precv_init(in.data(), 4, 250, MPI_DOUBLE, previous(), 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                    &receive));
  std::iota(out.begin(), out.end(), check::rank);
  OK(MPI_Start(&receive));
  OK(MPI_Start(&send));
  OK(MPI_Pready_range(0, 9, send));
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
  for (int i = 0; i < 1000; ++i)
    CHECK_EQUAL(in[static_cast<std::size_t>(i)], i + previous());
  OK(MPI_Request_free(&send));
  OK(MPI_Request_free(&receive));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"every_shape", every_shape},
                     {"by_range_and_list", by_range_and_list},
                     {"parts_arrive", parts_arrive},
                     {"sender_is_ahead", sender_is_ahead},
                     {"several_of_one_tag", several_of_one_tag},
                     {"gaps", gaps},
                     {"nothing_to_send", nothing_to_send},
                     {"inactive", inactive},
                     {"of_doubles", of_doubles}});
}
