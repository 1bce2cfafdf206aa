// SPDX-License-Identifier: BSD-3-Clause
// Several nonblocking and persistent collectives under way at once, on one communicator and on
// several, mixed with messages, completed in other orders than started.
#include "coll/forms.h"

#include <numeric>

namespace {

void many_on_one_communicator() {
  constexpr int n = 30;
  for (int length : {1, 3000, 60000}) {
    const auto elements = static_cast<std::size_t>(length);
    std::vector<std::vector<int>> in, out;
    std::vector<MPI_Request> requests(n);
    for (int k = 0; k < n; ++k) {
      in.emplace_back(elements, check::rank + k);
      out.emplace_back(elements, -1);
    }
    for (int k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(k);
      switch (k % 3) {
      case 0:
        OK(MPI_Iallreduce(in[i].data(), out[i].data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                          &requests[i]));
        break;
      case 1:
        OK(MPI_Ibcast(in[i].data(), length, MPI_INT, k % check::size, MPI_COMM_WORLD,
                      &requests[i]));
        break;
      case 2:
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]));
        break;
      }
    }
    for (int k = n - 1; k >= 0; --k)
      OK(MPI_Wait(&requests[static_cast<std::size_t>((k * 7) % n)], MPI_STATUS_IGNORE));
    for (int k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(k);
      if (k % 3 == 0)
        for (int x : out[i])
          CHECK_EQUAL(x, check::size * (check::size - 1) / 2 + check::size * k);
      if (k % 3 == 1)
        for (int x : in[i])
          CHECK_EQUAL(x, k % check::size + k);
    }
  }
}

// Collectives started in another order on each of several communicators, by different ranks.
void several_communicators() {
  constexpr int n = 4;
  std::vector<MPI_Comm> comms(n);
  for (int k = 0; k < n; ++k)
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, k % 2 ? -check::rank : check::rank,
                      &comms[static_cast<std::size_t>(k)]));
  for (int round = 0; round < 20; ++round) {
    std::vector<int> in(n), out(n, -1);
    std::vector<MPI_Request> requests(n);
    for (int step = 0; step < n; ++step) {
      const auto k = static_cast<std::size_t>((step + check::rank) % n);
      in[k] = check::rank + static_cast<int>(k) + round;
      OK(MPI_Iallreduce(&in[k], &out[k], 1, MPI_INT, MPI_SUM, comms[k], &requests[k]));
    }
    OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
    for (int k = 0; k < n; ++k)
      CHECK_EQUAL(out[static_cast<std::size_t>(k)],
                  check::size * (check::size - 1) / 2 + check::size * (k + round));
  }
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// A collective and messages on the same communicator; wildcards must not see the collective.
void among_messages() {
  for (int round = 0; round < 50; ++round) {
    const int to = (check::rank + 1) % check::size;
    int got = -1, sum = -1;
    const int mine = check::rank;
    MPI_Request requests[3];
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Isend(&mine, 1, MPI_INT, to, round, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK_EQUAL(got, (check::rank + check::size - 1) % check::size);
    CHECK_EQUAL(sum, check::size - 1);
    OK(MPI_Barrier(MPI_COMM_WORLD)); // the wildcard of the next round belongs to the next round
  }
}

// Progress by testing alone, with computation in between.
void tested_to_the_end() {
  for (int length : {1, 50000}) {
    std::vector<int> in(static_cast<std::size_t>(length), 1), out(in.size(), 0);
    MPI_Request request;
    OK(MPI_Iallreduce(in.data(), out.data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request));
    for (int flag = 0; !flag;) {
      check::compute_ms(0.01);
      OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    }
    for (int x : out)
      CHECK_EQUAL(x, check::size);
  }
}

// MPI asks for one order of all collectives. Programs exist in which blocking, nonblocking and
// persistent ones come in another order among each other; other libraries let them be.
void ordered_differently() {
  if (!check::is_macadam()) return;
  const bool odd = check::rank % 2 != 0;
  for (int length : {1, 50000}) {
    std::vector<int> in(static_cast<std::size_t>(length), check::rank), sum(in.size()), again(sum);
    MPI_Request requests[2];
    const auto nonblocking = [&] {
      OK(MPI_Iallreduce(in.data(), sum.data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                        &requests[0]));
    };
    const auto persistent = [&] {
      OK(MPI_Allreduce_init(in.data(), again.data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                            MPI_INFO_NULL, &requests[1]));
    };
    const auto blocking = [&] {
      int root = check::rank;
      OK(MPI_Barrier(MPI_COMM_WORLD));
      OK(MPI_Bcast(&root, 1, MPI_INT, 1, MPI_COMM_WORLD));
      CHECK_EQUAL(root, 1);
    };
    if (odd) {
      nonblocking();
      blocking();
      persistent();
    } else {
      persistent();
      blocking();
      nonblocking();
    }
    OK(MPI_Start(&requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (const auto* result : {&sum, &again})
      for (int x : *result)
        CHECK_EQUAL(x, check::size * (check::size - 1) / 2);
    OK(MPI_Request_free(&requests[1]));
  }
}

void persistent_restarted() {
  for (int length : {1, 2000, 100000}) {
    std::vector<int> in(static_cast<std::size_t>(length)), sum(in.size()), copy(in.size());
    MPI_Request requests[3];
    OK(MPI_Allreduce_init(in.data(), sum.data(), length, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                          MPI_INFO_NULL, &requests[0]));
    OK(MPI_Bcast_init(copy.data(), length, MPI_INT, check::size - 1, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &requests[1]));
    OK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[2]));
    for (int round = 0; round < check::times(20, 4); ++round) {
      std::fill(in.begin(), in.end(), check::rank * round);
      std::fill(copy.begin(), copy.end(), check::rank == check::size - 1 ? round : -1);
      if (round % 2) {
        OK(MPI_Startall(3, requests));
      } else { // started one by one, completed in the opposite order
        for (MPI_Request& request : requests)
          OK(MPI_Start(&request));
        OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
      }
      OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
      for (int x : sum)
        CHECK_EQUAL(x, round * check::size * (check::size - 1) / 2);
      for (int x : copy)
        CHECK_EQUAL(x, round);
    }
    for (MPI_Request& request : requests)
      OK(MPI_Request_free(&request));
  }
}

// Arrays of the caller's that mean something else once a persistent collective was made.
struct Reused {
  std::vector<int> counts, places;
  std::vector<MPI_Datatype> types;

  // Rank r's block has r + 1 elements, in a row.
  Reused() : types(static_cast<std::size_t>(check::size), MPI_INT) {
    int length = 0;
    for (int r = 0; r < check::size; ++r) {
      counts.push_back(r + 1);
      places.push_back(length);
      length += counts.back();
    }
  }
  ~Reused() {
    counts.assign(counts.size(), -1);
    places.assign(places.size(), 1 << 30);
    types.assign(types.size(), MPI_DATATYPE_NULL);
  }
  int length() const { return places.back() + counts.back(); }
  int mine() const { return counts[static_cast<std::size_t>(check::rank)]; }
};

void persistent_arrays_reused() {
  const MPI_Comm comm = MPI_COMM_WORLD;
  const int n = check::size, me = check::rank, last = n - 1;
  const auto each = static_cast<std::size_t>(n * (n + 1));
  enum { gather, scatter, allgather, alltoall, words, sum, kinds };
  std::vector<std::vector<int>> in(kinds, std::vector<int>(each)), out = in;
  std::vector<MPI_Request> requests(kinds);
  {
    Reused a;
    OK(MPI_Gatherv_init(in[gather].data(), a.mine(), MPI_INT, out[gather].data(), a.counts.data(),
                        a.places.data(), MPI_INT, last, comm, MPI_INFO_NULL, &requests[gather]));
    OK(MPI_Scatterv_init(in[scatter].data(), a.counts.data(), a.places.data(), MPI_INT,
                         out[scatter].data(), a.mine(), MPI_INT, 0, comm, MPI_INFO_NULL,
                         &requests[scatter]));
    OK(MPI_Allgatherv_init(in[allgather].data(), a.mine(), MPI_INT, out[allgather].data(),
                           a.counts.data(), a.places.data(), MPI_INT, comm, MPI_INFO_NULL,
                           &requests[allgather]));
    OK(MPI_Reduce_scatter_init(in[sum].data(), out[sum].data(), a.counts.data(), MPI_INT, MPI_SUM,
                               comm, MPI_INFO_NULL, &requests[sum]));
    Reused b, c; // every rank gets as much from each as it is numbered
    b.counts.assign(b.counts.size(), me + 1);
    for (int r = 0; r < n; ++r)
      b.places[static_cast<std::size_t>(r)] = r * (me + 1);
    OK(MPI_Alltoallv_init(in[alltoall].data(), a.counts.data(), a.places.data(), MPI_INT,
                          out[alltoall].data(), b.counts.data(), b.places.data(), MPI_INT, comm,
                          MPI_INFO_NULL, &requests[alltoall]));
    c = b;
    for (std::vector<int>* bytes : {&a.places, &c.places})
      for (int& place : *bytes)
        place *= static_cast<int>(sizeof(int));
    OK(MPI_Alltoallw_init(in[words].data(), a.counts.data(), a.places.data(), a.types.data(),
                          out[words].data(), c.counts.data(), c.places.data(), c.types.data(), comm,
                          MPI_INFO_NULL, &requests[words]));
  }
  for (int round = 1; round < 4; ++round) {
    for (auto& data : in)
      std::fill(data.begin(), data.end(), round * (me + 1));
    for (auto& data : out)
      std::fill(data.begin(), data.end(), -1);
    OK(MPI_Startall(kinds, requests.data()));
    OK(MPI_Waitall(kinds, requests.data(), MPI_STATUSES_IGNORE));
    std::vector<int> by_rank, alike;
    for (int r = 0; r < n; ++r) {
      by_rank.insert(by_rank.end(), static_cast<std::size_t>(r + 1), round * (r + 1));
      alike.insert(alike.end(), static_cast<std::size_t>(me + 1), round * (r + 1));
    }
    std::vector<int> scattered(static_cast<std::size_t>(me + 1), round);
    std::vector<int> sums(scattered.size(), round * n * (n + 1) / 2);
    by_rank.resize(each, -1);
    for (auto* expected : {&alike, &scattered, &sums})
      expected->resize(each, -1);
    if (me == last) CHECK(out[gather] == by_rank);
    CHECK(out[scatter] == scattered);
    CHECK(out[allgather] == by_rank);
    CHECK(out[alltoall] == alike);
    CHECK(out[words] == alike);
    CHECK(out[sum] == sums);
  }
  for (MPI_Request& request : requests)
    OK(MPI_Request_free(&request));
}

// MPI asks callers to keep the arrays until a nonblocking collective is complete. Some do not, and
// other libraries mostly let them.
void nonblocking_arrays_reused() {
  if (!check::is_macadam()) return;
  MPI_Comm comm; // a new one, of which nothing is made yet
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  const auto n = static_cast<std::size_t>(check::size);
  for (int round = 0; round < 20; ++round) {
    for (const std::size_t length : {std::size_t{1}, std::size_t{5000}}) {
      const std::vector<int> mine(length, check::rank + round);
      std::vector<int> all(length * n, -1), expected;
      MPI_Request request;
      {
        std::vector<int> counts(n, static_cast<int>(length)), places;
        for (std::size_t r = 0; r < n; ++r)
          places.push_back(static_cast<int>(r * length));
        OK(MPI_Iallgatherv(mine.data(), static_cast<int>(length), MPI_INT, all.data(),
                           counts.data(), places.data(), MPI_INT, comm, &request));
        counts.assign(n, -1);
        places.assign(n, 1 << 30);
      }
      OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      for (int r = 0; r < check::size; ++r)
        expected.insert(expected.end(), length, r + round);
      CHECK(all == expected);
    }
  }
  OK(MPI_Comm_free(&comm));
}

// The communicator may be freed while a collective on it is under way.
void communicator_freed() {
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  std::vector<int> in(20000, check::rank), out(in.size());
  MPI_Request request;
  OK(MPI_Iallreduce(in.data(), out.data(), 20000, MPI_INT, MPI_SUM, comm, &request));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  for (int x : out)
    CHECK_EQUAL(x, check::size * (check::size - 1) / 2);
}

void add(void* in, void* inout, int* length, MPI_Datatype* type) {
  int size = 0;
  OK(MPI_Type_size(*type, &size));
  CHECK_EQUAL(size, static_cast<int>(sizeof(int)));
  for (int i = 0; i < *length; ++i)
    static_cast<int*>(inout)[i] += static_cast<const int*>(in)[i];
}

// The function of a reduction runs in whatever call waits, and calls MPI there; MACADAM_CHECK must
// not take that for calls that differ.
void function_that_calls_mpi() {
  MPI_Op op;
  MPI_Comm comm;
  OK(MPI_Op_create(add, 1, &op));
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  for (int round = 0; round < check::times(100, 20); ++round) {
    int mine = check::rank, sum = -1;
    if (check::rank == 1) check::compute_ms(round % 10 * 0.03);
    MPI_Request request;
    OK(MPI_Iallreduce(&mine, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &request));
    MPI_Win win;
    int* memory = nullptr;
    OK(MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, comm, &memory, &win));
    OK(MPI_Win_free(&win));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_EQUAL(sum, check::size * (check::size - 1) / 2);
  }
  OK(MPI_Comm_free(&comm));
  OK(MPI_Op_free(&op));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"many_on_one_communicator", many_on_one_communicator},
                     {"several_communicators", several_communicators},
                     {"among_messages", among_messages},
                     {"tested_to_the_end", tested_to_the_end},
                     {"ordered_differently", ordered_differently},
                     {"persistent_restarted", persistent_restarted},
                     {"persistent_arrays_reused", persistent_arrays_reused},
                     {"nonblocking_arrays_reused", nonblocking_arrays_reused},
                     {"communicator_freed", communicator_freed},
                     {"function_that_calls_mpi", function_that_calls_mpi}});
}
