// SPDX-License-Identifier: BSD-3-Clause
// Neighbourhood collectives on all topologies: every element says who sent it over which edge.
#include "check.h"
#include "coll/forms.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace {

const std::vector<int> counts = check::sizes({0, 1, 5, 100, 3000, 70000});

// A communicator with what is known of its edges: who is at the other end, and which of that rank's
// blocks comes over the edge (MPI 5.0, section 8.6).
struct Edge {
  int rank;
  int block;
};
struct Topology {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<Edge> sources, destinations; // `block` of a destination means nothing
  int in() const { return static_cast<int>(sources.size()); }
  int out() const { return static_cast<int>(destinations.size()); }
};

int wrapped(int rank) {
  return (rank + check::size) % check::size;
}

Topology grid(std::vector<int> dims, int periodic) {
  Topology made;
  const std::vector<int> periods(dims.size(), periodic);
  const auto ndims = static_cast<int>(dims.size());
  OK(MPI_Cart_create(MPI_COMM_WORLD, ndims, dims.data(), periods.data(), 0, &made.comm));
  if (made.comm == MPI_COMM_NULL) return made;
  for (int i = 0; i < ndims; ++i) {
    int before = -1, after = -1;
    OK(MPI_Cart_shift(made.comm, i, 1, &before, &after));
    // What comes from the neighbour before is what that one has for its neighbour after.
    for (const Edge& edge : {Edge{before, 2 * i + 1}, Edge{after, 2 * i}}) {
      made.sources.push_back(edge);
      made.destinations.push_back(edge);
    }
  }
  return made;
}

// Every rank's list of neighbours, as sources and destinations.
Topology whole_graph(const std::function<std::vector<int>(int rank)>& neighbors_of) {
  Topology made;
  std::vector<int> index, edges;
  for (int rank = 0; rank < check::size; ++rank) {
    for (const int neighbor : neighbors_of(rank))
      edges.push_back(neighbor);
    index.push_back(static_cast<int>(edges.size()));
  }
  OK(MPI_Graph_create(MPI_COMM_WORLD, check::size, index.data(), edges.data(), 0, &made.comm));
  std::map<int, int> seen; // edges from the same rank, in the order of its list
  for (const int rank : neighbors_of(check::rank)) {
    const std::vector<int> theirs = neighbors_of(rank);
    int skip = seen[rank]++, block = 0;
    while (theirs[static_cast<std::size_t>(block)] != check::rank || skip-- > 0)
      ++block;
    made.sources.push_back({rank, block});
    made.destinations.push_back({rank, -1});
  }
  return made;
}

// Rank r sends to r + 1 twice, to itself and to r + 2.
Topology distributed() {
  Topology made;
  const int me = check::rank;
  const std::vector<int> out = {wrapped(me + 1), me, wrapped(me + 1), wrapped(me + 2)};
  for (const int rank : out)
    made.destinations.push_back({rank, -1});
  // Edges of one rank in its order; where several blocks come from the same rank, in a small job,
  // they must be listed in the order of the blocks.
  for (int rank = 0; rank < check::size; ++rank) {
    const std::vector<int> theirs = {wrapped(rank + 1), rank, wrapped(rank + 1), wrapped(rank + 2)};
    for (int block = 0; block < 4; ++block)
      if (theirs[static_cast<std::size_t>(block)] == me) made.sources.push_back({rank, block});
  }
  std::vector<int> in;
  for (const Edge& edge : made.sources)
    in.push_back(edge.rank);
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, made.in(), in.data(), MPI_UNWEIGHTED,
                                    made.out(), out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                    &made.comm));
  return made;
}

void on_topologies(const std::function<void(const Topology&)>& test) {
  const int n = check::size;
  std::vector<Topology> all;
  for (const int periodic : {0, 1}) {
    all.push_back(grid({n}, periodic));
    all.push_back(grid({1, n}, periodic));
    all.push_back(grid({n, 1, 1}, periodic));
    if (n % 2 == 0) all.push_back(grid({2, n / 2}, periodic));
    if (n % 4 == 0) all.push_back(grid({2, 2, n / 4}, periodic));
    if (n >= 2) all.push_back(grid({2, 1}, periodic)); // of two ranks
    all.push_back(grid({1}, periodic));                // of one
  }
  all.push_back(grid({}, 0));
  all.push_back(whole_graph([](int rank) {
    return std::vector<int>{wrapped(rank - 1), rank, wrapped(rank + 1)};
  }));
  all.push_back(whole_graph([n](int rank) { // rank 0 with everybody, itself included, and twice
    std::vector<int> list(static_cast<std::size_t>(rank == 0 ? n : 1));
    if (rank == 0) std::iota(list.begin(), list.end(), 0);
    list.insert(list.end(), list.begin(), list.end());
    return list;
  }));
  all.push_back(distributed());
  for (Topology& topology : all) {
    if (topology.comm == MPI_COMM_NULL) continue;
    test(topology);
    OK(MPI_Comm_free(&topology.comm));
  }
}

int element(int rank, int block, int i) {
  return rank * 1'000'003 + block * 1009 + i;
}

// As much memory as `blocks` blocks of `count` elements need, filled with `value`.
std::vector<int> memory(int blocks, int count, int value = -1) {
  return std::vector<int>(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(count) + 1,
                          value);
}

void fill_blocks(std::vector<int>& data, int blocks, int count, int from_block) {
  for (int block = 0; block < blocks; ++block)
    for (int i = 0; i < count; ++i)
      data[static_cast<std::size_t>(block * count + i)] =
          element(check::rank, from_block < 0 ? block : from_block, i);
}

// `same`: all neighbours get block 0.
void verify(const Topology& t, const std::vector<int>& got, int count, bool same) {
  for (int source = 0; source < t.in(); ++source) {
    const auto [rank, block] = t.sources[static_cast<std::size_t>(source)];
    for (int i = 0; i < count; ++i) {
      const int expected = rank == MPI_PROC_NULL ? -1 : element(rank, same ? 0 : block, i);
      CHECK_EQUAL(got[static_cast<std::size_t>(source * count + i)], expected);
    }
  }
  CHECK_EQUAL(got[static_cast<std::size_t>(t.in() * count)], -1);
}

void allgather() {
  on_topologies([](const Topology& t) {
    for (const Form form : forms) {
      for (const int count : counts) {
        std::vector<int> out = memory(1, count), in = memory(t.in(), count);
        fill_blocks(out, 1, count, 0);
        COLLECTIVE(form, Neighbor_allgather, neighbor_allgather, out.data(), count, MPI_INT,
                   in.data(), count, MPI_INT, t.comm);
        verify(t, in, count, true);
      }
    }
  });
}

void alltoall() {
  on_topologies([](const Topology& t) {
    for (const Form form : forms) {
      for (const int count : counts) {
        std::vector<int> out = memory(t.out(), count), in = memory(t.in(), count);
        fill_blocks(out, t.out(), count, -1);
        COLLECTIVE(form, Neighbor_alltoall, neighbor_alltoall, out.data(), count, MPI_INT,
                   in.data(), count, MPI_INT, t.comm);
        verify(t, in, count, false);
      }
    }
  });
}

// The forms with large counts; blocks are of three elements.
void large_forms() {
  on_topologies([](const Topology& t) {
    const std::vector<MPI_Count> out_counts(t.destinations.size(), 3),
        in_counts(t.sources.size(), 3);
    const std::vector<MPI_Datatype> out_types(t.destinations.size(), MPI_INT),
        in_types(t.sources.size(), MPI_INT);
    std::vector<MPI_Aint> out_at, in_at, out_bytes, in_bytes;
    for (int i = 0; i < t.out(); ++i) {
      out_at.push_back(3 * i);
      out_bytes.push_back(3 * i * static_cast<MPI_Aint>(sizeof(int)));
    }
    for (int i = 0; i < t.in(); ++i) {
      in_at.push_back(3 * i);
      in_bytes.push_back(3 * i * static_cast<MPI_Aint>(sizeof(int)));
    }
    std::vector<int> out = memory(std::max(t.out(), 1), 3), in;
    fill_blocks(out, std::max(t.out(), 1), 3, -1);
    for (const Form form : forms) {
      in = memory(t.in(), 3);
      LARGE(form, Neighbor_allgather, neighbor_allgather, out.data(), 3, MPI_INT, in.data(), 3,
            MPI_INT, t.comm);
      verify(t, in, 3, true);
      in = memory(t.in(), 3);
      LARGE(form, Neighbor_allgatherv, neighbor_allgatherv, out.data(), 3, MPI_INT, in.data(),
            in_counts.data(), in_at.data(), MPI_INT, t.comm);
      verify(t, in, 3, true);
      in = memory(t.in(), 3);
      LARGE(form, Neighbor_alltoall, neighbor_alltoall, out.data(), 3, MPI_INT, in.data(), 3,
            MPI_INT, t.comm);
      verify(t, in, 3, false);
      in = memory(t.in(), 3);
      LARGE(form, Neighbor_alltoallv, neighbor_alltoallv, out.data(), out_counts.data(),
            out_at.data(), MPI_INT, in.data(), in_counts.data(), in_at.data(), MPI_INT, t.comm);
      verify(t, in, 3, false);
      in = memory(t.in(), 3);
      LARGE(form, Neighbor_alltoallw, neighbor_alltoallw, out.data(), out_counts.data(),
            out_bytes.data(), out_types.data(), in.data(), in_counts.data(), in_bytes.data(),
            in_types.data(), t.comm);
      verify(t, in, 3, false);
    }
  });
}

// Blocks whose length tells the sender and the edge, in reverse order in memory.
struct Vectors {
  std::vector<int> lengths, places;
  int total = 0;

  Vectors(const std::vector<Edge>& edges, bool mine, bool same) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const int rank = mine ? check::rank : edges[i].rank;
      const int block = mine ? static_cast<int>(i) : edges[i].block;
      lengths.push_back(length(rank, same ? 0 : block));
    }
    places.resize(edges.size());
    for (std::size_t i = edges.size(); i-- > 0;) {
      places[i] = total;
      total += lengths[i] + 1;
    }
  }
  static int length(int rank, int block) { return (rank + 2 * block + 70) % 7 * 300; }
};

void verify(const Topology& t, const Vectors& blocks, const std::vector<int>& got, bool same) {
  for (std::size_t source = 0; source < t.sources.size(); ++source) {
    const auto [rank, block] = t.sources[source];
    const auto start = static_cast<std::size_t>(blocks.places[source]);
    for (int i = 0; i < blocks.lengths[source]; ++i) {
      const int expected = rank == MPI_PROC_NULL ? -1 : element(rank, same ? 0 : block, i);
      CHECK_EQUAL(got[start + static_cast<std::size_t>(i)], expected);
    }
    CHECK_EQUAL(got[start + static_cast<std::size_t>(blocks.lengths[source])], -1);
  }
}

std::vector<int> filled(const Vectors& blocks) {
  std::vector<int> data = memory(1, blocks.total);
  for (std::size_t block = 0; block < blocks.lengths.size(); ++block)
    for (int i = 0; i < blocks.lengths[block]; ++i)
      data[static_cast<std::size_t>(blocks.places[block] + i)] =
          element(check::rank, static_cast<int>(block), i);
  return data;
}

void allgatherv() {
  on_topologies([](const Topology& t) {
    for (const Form form : forms) {
      const Vectors in(t.sources, false, true);
      const int mine = Vectors::length(check::rank, 0);
      std::vector<int> data = memory(1, mine), got = memory(1, in.total);
      fill_blocks(data, 1, mine, 0);
      COLLECTIVE(form, Neighbor_allgatherv, neighbor_allgatherv, data.data(), mine, MPI_INT,
                 got.data(), in.lengths.data(), in.places.data(), MPI_INT, t.comm);
      verify(t, in, got, true);
    }
  });
}

void alltoallv() {
  on_topologies([](const Topology& t) {
    for (const Form form : forms) {
      const Vectors in(t.sources, false, false), out(t.destinations, true, false);
      std::vector<int> data = filled(out), got = memory(1, in.total);
      COLLECTIVE(form, Neighbor_alltoallv, neighbor_alltoallv, data.data(), out.lengths.data(),
                 out.places.data(), MPI_INT, got.data(), in.lengths.data(), in.places.data(),
                 MPI_INT, t.comm);
      verify(t, in, got, false);
    }
  });
}

std::vector<MPI_Aint> in_bytes(const std::vector<int>& places) {
  std::vector<MPI_Aint> bytes;
  for (const int place : places)
    bytes.push_back(place * static_cast<MPI_Aint>(sizeof(int)));
  return bytes;
}

// Every second block travels as bytes, and empty ones have no type at all.
std::vector<MPI_Datatype> types_of(std::vector<int>& lengths) {
  std::vector<MPI_Datatype> types;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    types.push_back(lengths[i] == 0 ? MPI_DATATYPE_NULL : MPI_INT);
  }
  return types;
}

void alltoallw() {
  on_topologies([](const Topology& t) {
    for (const Form form : forms) {
      Vectors in(t.sources, false, false), out(t.destinations, true, false);
      std::vector<int> data = filled(out), got = memory(1, in.total);
      const std::vector<MPI_Aint> from = in_bytes(out.places), to = in_bytes(in.places);
      const std::vector<MPI_Datatype> out_types = types_of(out.lengths),
                                      in_types = types_of(in.lengths);
      COLLECTIVE(form, Neighbor_alltoallw, neighbor_alltoallw, data.data(), out.lengths.data(),
                 from.data(), out_types.data(), got.data(), in.lengths.data(), to.data(),
                 in_types.data(), t.comm);
      verify(t, in, got, false);
    }
  });
}

// Every second element of a block; the others stay as they are.
void strided() {
  on_topologies([](const Topology& t) {
    for (const int count : {7, 500}) {
      MPI_Datatype spread;
      OK(MPI_Type_vector(count, 1, 2, MPI_INT, &spread));
      OK(MPI_Type_commit(&spread));
      const int extent = 2 * count - 1;
      for (const Form form : forms) {
        std::vector<int> out = memory(t.out(), extent), in = memory(t.in(), extent);
        fill_blocks(out, t.out(), extent, -1);
        COLLECTIVE(form, Neighbor_alltoall, neighbor_alltoall, out.data(), 1, spread, in.data(), 1,
                   spread, t.comm);
        for (int source = 0; source < t.in(); ++source) {
          const auto [rank, block] = t.sources[static_cast<std::size_t>(source)];
          for (int i = 0; i < extent; ++i) {
            const bool comes = rank != MPI_PROC_NULL && i % 2 == 0;
            CHECK_EQUAL(in[static_cast<std::size_t>(source * extent + i)],
                        comes ? element(rank, block, i) : -1);
          }
        }
      }
      OK(MPI_Type_free(&spread));
    }
  });
}

// Along a line of edges 0 -> 1 -> ...: who has no neighbour on one side has no buffer there, though
// the count is the same on all ranks.
void ends_without_buffers() {
  if (!check::is_macadam()) return; // MPICH 5.0 wants an address all the same
  Topology t;
  const int before = check::rank - 1, after = check::rank + 1;
  if (before >= 0) t.sources.push_back({before, 0});
  if (after < check::size) t.destinations.push_back({after, -1});
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, t.in(), &before, MPI_UNWEIGHTED, t.out(),
                                    &after, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &t.comm));
  for (const Form form : forms) {
    int mine = element(check::rank, 0, 0), got = -1;
    int* const out = t.out() > 0 ? &mine : nullptr;
    int* const in = t.in() > 0 ? &got : nullptr;
    const int one = 1, at = 0;
    const auto came = [&] {
      CHECK_EQUAL(got, t.in() > 0 ? element(before, 0, 0) : -1);
      got = -1;
    };
    COLLECTIVE(form, Neighbor_allgather, neighbor_allgather, out, 1, MPI_INT, in, 1, MPI_INT,
               t.comm);
    came();
    COLLECTIVE(form, Neighbor_allgatherv, neighbor_allgatherv, out, 1, MPI_INT, in, &one, &at,
               MPI_INT, t.comm);
    came();
    COLLECTIVE(form, Neighbor_alltoall, neighbor_alltoall, out, 1, MPI_INT, in, 1, MPI_INT, t.comm);
    came();
    COLLECTIVE(form, Neighbor_alltoallv, neighbor_alltoallv, out, &one, &at, MPI_INT, in, &one, &at,
               MPI_INT, t.comm);
    came();
  }
  OK(MPI_Comm_free(&t.comm));
}

// Several short blocks between two ranks. Who has no source has no arrays either, where the call
// has any.
void parallel_edges_without_arrays() {
  if (check::size < 2) return;
  const bool gets = check::rank == 0, gives = check::rank == 1;
  const int zeros[] = {0, 0}, ones[] = {1, 1};
  MPI_Comm comm = MPI_COMM_NULL;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, gets ? 2 : 0, ones, MPI_UNWEIGHTED,
                                    gives ? 2 : 0, zeros, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm));
  std::vector<int> out(16), in(16, -1);
  std::iota(out.begin(), out.end(), 0);
  const int lengths[] = {3, 5}, alike[] = {3, 3}, places[] = {0, 8};
  const MPI_Aint bytes[] = {0, 8 * sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  const auto came = [&](std::vector<int> expected) {
    expected.resize(16, -1);
    if (gets) CHECK(in == expected);
    in.assign(16, -1);
  };
  const std::vector<int> unlike = {0, 1, 2, -1, -1, -1, -1, -1, 8, 9, 10, 11, 12};
  for (const Form form : forms) {
    COLLECTIVE(form, Neighbor_alltoallv, neighbor_alltoallv, out.data(), lengths, places, MPI_INT,
               in.data(), gets ? lengths : nullptr, gets ? places : nullptr, MPI_INT, comm);
    came(unlike);
    COLLECTIVE(form, Neighbor_alltoallw, neighbor_alltoallw, out.data(), lengths, bytes, types,
               in.data(), gets ? lengths : nullptr, gets ? bytes : nullptr, gets ? types : nullptr,
               comm);
    came(unlike);
    COLLECTIVE(form, Neighbor_allgatherv, neighbor_allgatherv, out.data(), 3, MPI_INT, in.data(),
               gets ? alike : nullptr, gets ? places : nullptr, MPI_INT, comm);
    came({0, 1, 2, -1, -1, -1, -1, -1, 0, 1, 2});
  }
  OK(MPI_Comm_free(&comm));
}

// A persistent halo exchange, started again and again with new data; several at a time.
void started_again() {
  Topology t = grid({check::size}, 1);
  const int rounds = 50, count = 500;
  std::vector<int> out = memory(2, count), in = memory(2, count), out2 = out, in2 = in;
  MPI_Request requests[2];
  OK(MPI_Neighbor_alltoall_init(out.data(), count, MPI_INT, in.data(), count, MPI_INT, t.comm,
                                MPI_INFO_NULL, &requests[0]));
  OK(MPI_Neighbor_alltoall_init(out2.data(), count, MPI_INT, in2.data(), count, MPI_INT, t.comm,
                                MPI_INFO_NULL, &requests[1]));
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 2 * count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      out[at] = element(check::rank, i / count, i % count) + round;
      out2[at] = -out[at];
    }
    OK(MPI_Startall(2, requests));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2 * count; ++i) {
      const auto [rank, block] = t.sources[static_cast<std::size_t>(i / count)];
      CHECK_EQUAL(in[static_cast<std::size_t>(i)], element(rank, block, i % count) + round);
      CHECK_EQUAL(in2[static_cast<std::size_t>(i)], -in[static_cast<std::size_t>(i)]);
    }
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  OK(MPI_Comm_free(&t.comm));
}

// Only neighbours are waited for: the ends of a line go on while the rank in the middle of nothing
// to do with them sleeps.
void no_barrier() {
  if (check::size < 4) return;
  Topology t = grid({check::size}, 0);
  int out[2] = {1, 2}, in[2] = {0, 0};
  if (check::rank == check::size - 1) {
    // Rank 0 says that it has finished before this one, no neighbour of it, has begun.
    check::token_recv(0);
  }
  OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, t.comm));
  if (check::rank == 0) check::token_send(check::size - 1);
  OK(MPI_Comm_free(&t.comm));
}

void refused() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  int out[8] = {}, in[8] = {};
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD));
  const int zeros[8] = {};
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoallv(out, zeros, zeros, MPI_INT, in, zeros, zeros,
                                                 MPI_INT, MPI_COMM_WORLD));
  Topology t = grid({check::size}, 1);
  OK(MPI_Comm_set_errhandler(t.comm, MPI_ERRORS_RETURN));
  const int minus[2] = {0, -1};
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, t.comm));
  FAILS(MPI_ERR_COUNT,
        MPI_Neighbor_alltoallv(out, minus, zeros, MPI_INT, in, zeros, zeros, MPI_INT, t.comm));
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_allgatherv(out, 0, MPI_INT, in, minus, zeros, MPI_INT, t.comm));
  FAILS(MPI_ERR_TYPE, MPI_Neighbor_alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, MPI_INT, t.comm));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, t.comm));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(nullptr, 1, MPI_INT, in, 1, MPI_INT, t.comm));
  FAILS(MPI_ERR_BUFFER, MPI_Neighbor_alltoall(out, 1, MPI_INT, nullptr, 1, MPI_INT, t.comm));
  FAILS(MPI_ERR_TYPE, MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_DATATYPE_NULL, t.comm));
  FAILS(MPI_ERR_COMM, MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_NULL));
  FAILS(MPI_ERR_ARG,
        MPI_Neighbor_alltoallv(out, nullptr, zeros, MPI_INT, in, zeros, zeros, MPI_INT, t.comm));
  const MPI_Aint starts[2] = {};
  const int ones[2] = {1, 1};
  const MPI_Datatype ints[2] = {MPI_INT, MPI_INT}, one_null[2] = {MPI_INT, MPI_DATATYPE_NULL};
  FAILS(MPI_ERR_TYPE,
        MPI_Neighbor_alltoallw(out, ones, starts, one_null, in, ones, starts, ints, t.comm));
  MPI_Request request = MPI_REQUEST_NULL;
  FAILS(MPI_ERR_COUNT, MPI_Ineighbor_alltoall(out, -1, MPI_INT, in, 1, MPI_INT, t.comm, &request));
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_alltoall_init(out, 1, MPI_INT, in, -1, MPI_INT, t.comm,
                                                  MPI_INFO_NULL, &request));
  FAILS(MPI_ERR_COUNT, MPI_Neighbor_alltoall_c(out, -1, MPI_INT, in, 1, MPI_INT, t.comm));
  OK(MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, t.comm));
  OK(MPI_Comm_free(&t.comm));

  // An edge from the rank itself that is no edge to it.
  MPI_Comm one_sided = MPI_COMM_NULL;
  OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &check::rank, MPI_UNWEIGHTED, 0, nullptr,
                                    MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &one_sided));
  OK(MPI_Comm_set_errhandler(one_sided, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_TOPOLOGY, MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, one_sided));
  OK(MPI_Comm_free(&one_sided));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"allgather", allgather},
                     {"alltoall", alltoall},
                     {"large_forms", large_forms},
                     {"allgatherv", allgatherv},
                     {"alltoallv", alltoallv},
                     {"alltoallw", alltoallw},
                     {"strided", strided},
                     {"ends_without_buffers", ends_without_buffers},
                     {"parallel_edges_without_arrays", parallel_edges_without_arrays},
                     {"started_again", started_again},
                     {"no_barrier", no_barrier},
                     {"refused", refused}});
}
