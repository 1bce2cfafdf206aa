// SPDX-License-Identifier: BSD-3-Clause
// Collectives between the two groups of an intercommunicator. What must be combined or spread
// inside of a group goes through its rank 0; everything else goes straight to the remote ranks.
#include "coll/inter.h"

#include "coll/algorithms.h"
#include "coll/batch.h"

namespace macadam::coll {
namespace {

// The local group among itself.
Comm inside(const Collective& self) {
  return Comm(*self.shared, *self.arguments.inside, self.tag);
}
int remote_size(const Collective& self) {
  return self.team->peers->size();
}

} // namespace

Task inter_barrier(Collective& self) {
  Comm local = inside(self);
  co_await barrier_recursive_doubling(local);
  if (self.rank() == 0) {
    Batch batch(self);
    batch.send(0, self.bytes(nullptr, 0));
    batch.receive(0, self.bytes(nullptr, 0));
    co_await batch;
  }
  co_await barrier_recursive_doubling(local);
}

Task inter_bcast(Collective& self) {
  const Data data = self.arguments.receive[0];
  const int root = self.arguments.root;
  if (root == MPI_PROC_NULL || data.bytes() == 0) co_return;
  Batch batch(self);
  if (root == MPI_ROOT) {
    batch.send(0, data);
    co_await batch;
    co_return;
  }
  if (self.rank() == 0) batch.receive(root, data);
  co_await batch;
  Comm local = inside(self);
  co_await bcast_binomial(local, data, 0);
}

Task inter_reduce(Collective& self) {
  const Arguments& a = self.arguments;
  if (a.root == MPI_PROC_NULL) co_return;
  Batch batch(self);
  if (a.root == MPI_ROOT) {
    const Data result = a.receive[0];
    if (result.bytes() > 0) batch.receive(0, result);
    co_await batch;
    co_return;
  }
  const Data mine = a.send[0];
  Comm local = inside(self);
  Scratch sum(self, *mine.type, self.rank() == 0 ? mine.count : 0);
  co_await reduce_binomial(local, mine, sum.data(), *a.op, 0);
  if (self.rank() == 0 && mine.bytes() > 0) batch.send(a.root, sum.data());
  co_await batch;
}

Task inter_allreduce(Collective& self) {
  const Arguments& a = self.arguments;
  const Data mine = a.send[0];
  const Data result = a.receive[0];
  if (mine.bytes() == 0) co_return;
  Comm local = inside(self);
  Scratch sum(self, *mine.type, self.rank() == 0 ? mine.count : 0);
  co_await reduce_binomial(local, mine, sum.data(), *a.op, 0);
  if (self.rank() == 0) {
    Batch batch(self);
    batch.send(0, sum.data());
    batch.receive(0, result);
    co_await batch;
  }
  co_await bcast_binomial(local, result, 0);
}

// Each group gets the sum of the other, cut by its own counts.
Task inter_reduce_scatter(Collective& self) {
  const Arguments& a = self.arguments;
  const int n = self.size();
  const auto count = [&](int rank) {
    return a.send.regular() ? a.send.count : a.send.counts[rank];
  };
  MPI_Count total = 0;
  for (int i = 0; i < n; ++i)
    total += count(i);
  const Data mine{a.send.address, total, a.send.type};
  if (mine.bytes() == 0) co_return;
  const bool leads = self.rank() == 0;
  Comm local = inside(self);
  Scratch ours(self, *mine.type, leads ? total : 0);
  co_await reduce_binomial(local, mine, ours.data(), *a.op, 0);
  const Data result{a.receive.address, count(self.rank()), a.send.type};
  if (!leads) {
    Batch batch(local);
    if (result.bytes() > 0) batch.receive(0, result);
    co_await batch;
    co_return;
  }
  Scratch theirs(self, *mine.type, total);
  Batch between(self);
  between.send(0, ours.data());
  between.receive(0, theirs.data());
  co_await between;
  Batch batch(local);
  copy(slice(theirs.data(), 0, result.count), result);
  MPI_Count begin = result.count;
  for (int i = 1; i < n; ++i) {
    const Data block = slice(theirs.data(), begin, count(i));
    if (block.bytes() > 0) batch.send(i, block);
    begin += block.count;
  }
  co_await batch;
}

Task inter_gather(Collective& self) {
  const Arguments& a = self.arguments;
  Batch batch(self);
  if (a.root == MPI_ROOT) {
    for (int i = 0; i < remote_size(self); ++i) {
      const Data block = a.receive[i];
      if (block.bytes() > 0) batch.receive(i, block);
    }
  } else if (a.root != MPI_PROC_NULL) {
    const Data mine = a.send[0];
    if (mine.bytes() > 0) batch.send(a.root, mine);
  }
  co_await batch;
}

Task inter_scatter(Collective& self) {
  const Arguments& a = self.arguments;
  Batch batch(self);
  if (a.root == MPI_ROOT) {
    for (int i = 0; i < remote_size(self); ++i) {
      const Data block = a.send[i];
      if (block.bytes() > 0) batch.send(i, block);
    }
  } else if (a.root != MPI_PROC_NULL) {
    const Data mine = a.receive[0];
    if (mine.bytes() > 0) batch.receive(a.root, mine);
  }
  co_await batch;
}

Task inter_allgather(Collective& self) {
  const Arguments& a = self.arguments;
  const Data mine = a.send[0];
  Batch batch(self);
  for (int i = 0; i < remote_size(self); ++i) {
    const Data block = a.receive[i];
    if (block.bytes() > 0) batch.receive(i, block);
    if (mine.bytes() > 0) batch.send(i, mine);
  }
  co_await batch;
}

Task inter_alltoall(Collective& self) {
  const Arguments& a = self.arguments;
  Batch batch(self);
  for (int i = 0; i < remote_size(self); ++i) {
    const Data in = a.receive[i];
    const Data out = a.send[i];
    if (in.bytes() > 0) batch.receive(i, in);
    if (out.bytes() > 0) batch.send(i, out);
  }
  co_await batch;
}

} // namespace macadam::coll
