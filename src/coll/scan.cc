// SPDX-License-Identifier: BSD-3-Clause
#include "coll/algorithms.h"
#include "coll/batch.h"
#include "coll/board.h"
#include "coll/operations.h"
#include "coll/reduction.h"

namespace macadam::coll {
namespace {

Task choose(Collective& self, bool inclusive) {
  const Arguments& a = self.arguments;
  const Data result = a.receive[0];
  const Data mine = a.in_place ? result : a.send[0];
  switch (self.choose(Kind::scan, result.bytes())) {
  case Algorithm::direct:
    return scan_direct(self, mine, result, *a.op, inclusive);
  default:
    return scan_recursive_doubling(self, mine, result, *a.op, inclusive);
  }
}

} // namespace

Task scan(Collective& self) {
  return choose(self, true);
}
Task exscan(Collective& self) {
  return choose(self, false);
}

// Everybody sends to all ranks above: one step, n - 1 messages at the ends.
Task scan_direct(Comm& comm, Data mine, Data result, const datatype::Op& op, bool inclusive) {
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  Scratch parts(comm, *mine.type, (rank + 1) * mine.count);
  const auto part = [&](int i) { return slice(parts.data(), i * mine.count, mine.count); };
  Batch batch(comm);
  for (int to = rank + 1; to < comm.size(); ++to)
    batch.send(to, mine);
  for (int from = 0; from < rank; ++from)
    batch.receive(from, part(from));
  co_await batch;
  copy(mine, part(rank));
  const int last = inclusive ? rank : rank - 1;
  if (last < 0) co_return;
  const Data sum = part(last);
  for (int i = last - 1; i >= 0; --i) {
    op.apply(part(i).address, sum.address, sum.count, *sum.type);
  }
  copy(sum, result);
}

// Pairs at distance 1, 2, 4, ... exchange the sums of their groups; the upper one adds what it gets
// to its result: log2(n) steps of m.
Task scan_recursive_doubling(Comm& comm, Data mine, Data result, const datatype::Op& op,
                             bool inclusive) {
  const int n = comm.size();
  const int rank = comm.rank();
  if (mine.bytes() == 0) co_return;
  Scratch first(comm, *mine.type, mine.count);
  Scratch second(comm, *mine.type, mine.count);
  copy(mine, first.data());
  if (inclusive && mine.address != result.address) copy(mine, result);
  Partial group(op, first.data(), second.data());
  bool empty = !inclusive;
  Batch batch(comm);
  for (int bit = 1; bit < n; bit *= 2) {
    const int partner = rank ^ bit;
    if (partner >= n) continue;
    batch.send(partner, group.value());
    batch.receive(partner, group.spare());
    co_await batch;
    if (partner > rank) {
      group.add_above();
      continue;
    }
    if (empty)
      copy(group.spare(), result);
    else
      op.apply(group.spare().address, result.address, result.count, *result.type);
    empty = false;
    group.add_below();
  }
}

} // namespace macadam::coll
