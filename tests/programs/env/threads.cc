// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE over everything at once: each thread does another kind of communication than
// the others at the same moment, on a communicator of its own or all on one, and all kinds in turn.
#include "threads.h"

#include <algorithm>

namespace {

using check::in_threads;
using check::threads;

constexpr int count = 700; // ints of a block: more than goes by EAGER where all are taken together

int left() {
  return (check::rank + check::size - 1) % check::size;
}
int right() {
  return (check::rank + 1) % check::size;
}

using Block = std::vector<int>;

Block block(int rank, int thread, int round) {
  Block made(count);
  for (int i = 0; i < count; ++i)
    made[static_cast<std::size_t>(i)] = rank * 1'000'000 + thread * 100'000 + round * 1000 + i;
  return made;
}

// Sent around the ring without waiting, and tested for.
void nonblocking(MPI_Comm comm, int tag, int thread, int round) {
  Block in(count), out = block(check::rank, thread, round);
  MPI_Request requests[2];
  OK(MPI_Irecv(in.data(), count, MPI_INT, left(), tag, comm, &requests[0]));
  OK(MPI_Isend(out.data(), count, MPI_INT, right(), tag, comm, &requests[1]));
  for (int done = 0; done == 0;)
    OK(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE));
  CHECK(in == block(left(), thread, round));
}

// The same with requests that are started twice, one by a synchronous send.
void persistent(MPI_Comm comm, int tag, int thread, int round) {
  Block in(count), out(count);
  MPI_Request requests[2];
  OK(MPI_Recv_init(in.data(), count, MPI_INT, left(), tag, comm, &requests[0]));
  OK(MPI_Ssend_init(out.data(), count, MPI_INT, right(), tag, comm, &requests[1]));
  for (int i = 0; i < 2; ++i) {
    std::ranges::copy(block(check::rank, thread, round + i), out.begin());
    OK(MPI_Startall(2, requests));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK(in == block(left(), thread, round + i));
  }
  for (MPI_Request& request : requests)
    OK(MPI_Request_free(&request));
}

// A receive that is cancelled, and a message found by a matched probe.
void probed(MPI_Comm comm, int tag, int thread, int round) {
  Block never(count), in(count), out = block(check::rank, thread, round);
  MPI_Request receive, send;
  MPI_Message message;
  MPI_Status status;
  int cancelled = 0;
  OK(MPI_Irecv(never.data(), count, MPI_INT, left(), tag + 1000, comm, &receive));
  OK(MPI_Isend(out.data(), count, MPI_INT, right(), tag, comm, &send));
  OK(MPI_Cancel(&receive));
  OK(MPI_Mprobe(MPI_ANY_SOURCE, tag, comm, &message, &status));
  CHECK_EQUAL(status.MPI_SOURCE, left());
  OK(MPI_Mrecv(in.data(), count, MPI_INT, &message, MPI_STATUS_IGNORE));
  CHECK(in == block(left(), thread, round));
  OK(MPI_Wait(&receive, &status));
  OK(MPI_Test_cancelled(&status, &cancelled));
  CHECK(cancelled);
  OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

// Blocking, nonblocking and persistent collectives, two under way at a time.
void collectives(MPI_Comm comm, int, int thread, int round) {
  const int mine = check::rank + thread + round;
  const int all = check::size * (check::size - 1) / 2 + check::size * (thread + round);
  int sum = 0, later = 0;
  MPI_Request requests[2];
  Block blocks(static_cast<std::size_t>(count * check::size)),
      out = block(check::rank, thread, round);
  OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm, &requests[0]));
  OK(MPI_Iallgather(out.data(), count, MPI_INT, blocks.data(), count, MPI_INT, comm, &requests[1]));
  OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
  CHECK_EQUAL(sum, all);
  for (int rank = 0; rank < check::size; ++rank) {
    const Block theirs = block(rank, thread, round);
    CHECK(std::equal(theirs.begin(), theirs.end(), blocks.begin() + rank * count));
  }
  OK(MPI_Scan(&mine, &later, 1, MPI_INT, MPI_MAX, comm));
  CHECK_EQUAL(later, mine);
  MPI_Request start;
  OK(MPI_Allreduce_init(&mine, &later, 1, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &start));
  OK(MPI_Start(&start));
  OK(MPI_Wait(&start, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&start));
  CHECK_EQUAL(later, all);
  OK(MPI_Barrier(comm));
}

// Exchanges with the neighbours of a topology, in the three forms.
void exchange(MPI_Comm comm, const std::vector<int>& sources, int thread, int round) {
  const auto degree = sources.size();
  const Block out = block(check::rank, thread, round);
  Block in(count * degree);
  const auto verify = [&] {
    for (std::size_t i = 0; i < degree; ++i) {
      const Block theirs = block(sources[i], thread, round);
      CHECK(std::equal(theirs.begin(), theirs.end(),
                       in.begin() + static_cast<std::ptrdiff_t>(i * count)));
    }
    std::fill(in.begin(), in.end(), -1);
  };
  MPI_Request request;
  OK(MPI_Neighbor_allgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm));
  verify();
  OK(MPI_Ineighbor_allgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm,
                             &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  verify();
  Block blocks;
  for (std::size_t i = 0; i < degree; ++i)
    blocks.insert(blocks.end(), out.begin(), out.end());
  OK(MPI_Neighbor_alltoall_init(blocks.data(), count, MPI_INT, in.data(), count, MPI_INT, comm,
                                MPI_INFO_NULL, &request));
  for (int i = 0; i < 2; ++i) {
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    verify();
  }
  OK(MPI_Request_free(&request));
}

// A topology of every kind is made, used and freed.
void topologies(MPI_Comm comm, int, int thread, int round) {
  const int periodic = 1, in = left(), out = right();
  MPI_Comm grid, graph, distributed;
  OK(MPI_Cart_create(comm, 1, &check::size, &periodic, 0, &grid));
  exchange(grid, {left(), right()}, thread, round);
  OK(MPI_Dist_graph_create_adjacent(comm, 1, &in, MPI_UNWEIGHTED, 1, &out, MPI_UNWEIGHTED,
                                    MPI_INFO_NULL, round % 2, &distributed));
  exchange(distributed, {left()}, thread, round);
  std::vector<int> index, edges;
  for (int rank = 0; rank < check::size; ++rank) {
    index.push_back(rank + 1);
    edges.push_back(rank); // itself
  }
  OK(MPI_Graph_create(comm, check::size, index.data(), edges.data(), 0, &graph));
  exchange(graph, {check::rank}, thread, round);
  for (MPI_Comm* each : {&grid, &graph, &distributed})
    OK(MPI_Comm_free(each));
}

// A window is made, and passes through epochs of every kind.
void windows(MPI_Comm comm, int, int thread, int round) {
  int* memory = nullptr;
  MPI_Win win;
  MPI_Group all, from, to;
  const int before = left(), after = right(), value = 1000 * round + thread, one = 1;
  OK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win));
  memory[0] = memory[1] = 0;
  OK(MPI_Win_fence(0, win));
  OK(MPI_Put(&value, 1, MPI_INT, after, 0, 1, MPI_INT, win));
  OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
  CHECK_EQUAL(memory[0], value);
  OK(MPI_Comm_group(comm, &all));
  OK(MPI_Group_incl(all, 1, &before, &from));
  OK(MPI_Group_incl(all, 1, &after, &to));
  OK(MPI_Win_post(from, 0, win));
  OK(MPI_Win_start(to, 0, win));
  OK(MPI_Accumulate(&one, 1, MPI_INT, after, 0, 1, MPI_INT, MPI_SUM, win));
  OK(MPI_Win_complete(win));
  OK(MPI_Win_wait(win));
  CHECK_EQUAL(memory[0], value + 1);
  for (MPI_Group* each : {&all, &from, &to})
    OK(MPI_Group_free(each));
  OK(MPI_Barrier(comm));
  int old = -1;
  MPI_Request request;
  OK(MPI_Win_lock_all(0, win));
  OK(MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 1, MPI_SUM, win));
  OK(MPI_Win_flush(0, win));
  CHECK(old >= 0 && old < check::size);
  OK(MPI_Rget(&old, 1, MPI_INT, after, 0, 1, MPI_INT, win, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQUAL(old, value + 1);
  OK(MPI_Win_unlock_all(win));
  OK(MPI_Win_free(&win));
}

using Kind = void (*)(MPI_Comm, int tag, int thread, int round);
const std::vector<Kind> kinds = {nonblocking, collectives, persistent, topologies, probed, windows};

// In each round a thread does another kind than its neighbours: all kinds meet all others.
void a_communicator_each() {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  in_threads([&](int t) {
    for (int round = 0; round < check::times(24, 6); ++round)
      kinds[static_cast<std::size_t>(round + t) % kinds.size()](comms[static_cast<std::size_t>(t)],
                                                                0, t, round);
  });
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// All threads on MPI_COMM_WORLD, told apart by their tags; the first one alone does what is
// collective there.
void one_communicator() {
  const std::vector<Kind> with_tags = {nonblocking, persistent, probed};
  in_threads([&](int t) {
    const std::vector<Kind>& mine = t == 0 ? kinds : with_tags;
    for (int round = 0; round < check::times(24, 6); ++round)
      mine[static_cast<std::size_t>(round + t) % mine.size()](MPI_COMM_WORLD, 10 + t, t, round);
  });
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(
      argc, argv,
      {{"a_communicator_each", a_communicator_each}, {"one_communicator", one_communicator}});
}
