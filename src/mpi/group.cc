// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/request.h"

#include <algorithm>

namespace macadam::mpi {
namespace {

using engine::Places;
using engine::Rank;
using engine::RankMap;

void check_rank(const Group& group, int rank, const char* what, int index) {
  if (rank < 0 || rank >= group.ranks.size()) {
    base::fail(MPI_ERR_RANK, "{}[{}] is {}; the group has {} ranks, numbered from 0", what, index,
               rank, group.ranks.size());
  }
}

// A new group of ranks of `old`.
MPI_Group group_of(Library& self, const Group& old, std::vector<Rank> ranks) {
  return make_group(self, RankMap(std::move(ranks)), old.session).handle();
}

// The ranks that `ranges`, triplets of first, last and stride, stand for, in order.
std::vector<int> expand(const Group& group, int n, int ranges[][3]) {
  std::vector<int> ranks;
  std::vector<bool> seen(static_cast<std::size_t>(group.ranks.size()));
  for (int i = 0; i < n; ++i) {
    const int first = ranges[i][0], last = ranges[i][1], stride = ranges[i][2];
    if (stride == 0)
      base::fail(MPI_ERR_ARG, "ranges[{}] has stride 0; it may be negative or positive", i);
    const auto past = [&](std::int64_t rank) { return stride > 0 ? rank > last : rank < last; };
    for (std::int64_t next = first; !past(next); next += stride) {
      const auto rank = static_cast<int>(next);
      check_rank(group, rank, "a rank of ranges", i);
      if (seen[static_cast<std::size_t>(rank)]) {
        base::fail(MPI_ERR_RANK, "ranges[{}] names rank {} again; each may be named once", i, rank);
      }
      seen[static_cast<std::size_t>(rank)] = true;
      ranks.push_back(rank);
    }
  }
  return ranks;
}

// Checks that a list names ranks of the group, each once.
std::vector<int> listed(const Group& group, int n, const int ranks[]) {
  std::vector<bool> seen(static_cast<std::size_t>(group.ranks.size()));
  for (int i = 0; i < n; ++i) {
    check_rank(group, ranks[i], "ranks", i);
    if (seen[static_cast<std::size_t>(ranks[i])]) {
      base::fail(MPI_ERR_RANK, "ranks[{}] is {} again; each rank may be named once", i, ranks[i]);
    }
    seen[static_cast<std::size_t>(ranks[i])] = true;
  }
  return {ranks, ranks + n};
}

MPI_Group including(Library& self, const Group& group, const std::vector<int>& ranks) {
  std::vector<Rank> members;
  members.reserve(ranks.size());
  for (const int rank : ranks)
    members.push_back(group.ranks[rank]);
  return group_of(self, group, std::move(members));
}

MPI_Group excluding(Library& self, const Group& group, const std::vector<int>& ranks) {
  std::vector<bool> out(static_cast<std::size_t>(group.ranks.size()));
  for (const int rank : ranks)
    out[static_cast<std::size_t>(rank)] = true;
  std::vector<Rank> members;
  for (int i = 0; i < group.ranks.size(); ++i) {
    if (!out[static_cast<std::size_t>(i)]) members.push_back(group.ranks[i]);
  }
  return group_of(self, group, std::move(members));
}

} // namespace

Group& make_group(Library& self, RankMap ranks, Session* session) {
  if (ranks.size() == 0) return self.empty_group;
  Group& group = *self.groups.make();
  group.ranks = std::move(ranks);
  group.session = session;
  const int place = group.ranks.find(static_cast<Rank>(self.job->rank()));
  if (place >= 0) group.rank = place;
  self.jobs.hold(group.ranks);
  return group;
}

Group& share(Group& group) {
  ++group.references;
  return group;
}

void drop(Library& self, Group* group) {
  if (group == nullptr || group->constant != nullptr || --group->references != 0) return;
  self.handles.forget(group->handle());
  self.jobs.release(group->ranks);
  give_back(self.groups, *group);
}

namespace {

int compare(const Group& one, const Group& two) {
  const int size = one.ranks.size();
  if (size != two.ranks.size()) return MPI_UNEQUAL;
  bool same_order = true;
  for (int i = 0; i < size && same_order; ++i)
    same_order = one.ranks[i] == two.ranks[i];
  if (same_order) return MPI_IDENT;
  const Places places(two.ranks);
  for (int i = 0; i < size; ++i) {
    if (places(one.ranks[i]) < 0) return MPI_UNEQUAL;
  }
  return MPI_SIMILAR;
}

} // namespace

// The MPI functions.

void group_size(Library&, Group& group, int* size) {
  *size = group.ranks.size();
}

void group_rank(Library&, Group& group, int* rank) {
  *rank = group.rank;
}

void group_compare(Library&, Group& group1, Group& group2, int* result) {
  *result = compare(group1, group2);
}

void group_translate_ranks(Library&, Group& group1, int n, const int ranks1[], Group& group2,
                           int ranks2[]) {
  const Places places(group2.ranks);
  for (int i = 0; i < n; ++i) {
    if (ranks1[i] == MPI_PROC_NULL) {
      ranks2[i] = MPI_PROC_NULL;
      continue;
    }
    check_rank(group1, ranks1[i], "ranks1", i);
    const int place = places(group1.ranks[ranks1[i]]);
    ranks2[i] = place < 0 ? MPI_UNDEFINED : place;
  }
}

void group_union(Library& self, Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<Rank> members;
  for (int i = 0; i < group1.ranks.size(); ++i)
    members.push_back(group1.ranks[i]);
  const Places first(group1.ranks);
  for (int i = 0; i < group2.ranks.size(); ++i) {
    if (first(group2.ranks[i]) < 0) members.push_back(group2.ranks[i]);
  }
  // MPI_GROUP_EMPTY is of no session.
  *newgroup = group_of(self, group1.ranks.size() != 0 ? group1 : group2, std::move(members));
}

void group_intersection(Library& self, Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<Rank> members;
  const Places second(group2.ranks);
  for (int i = 0; i < group1.ranks.size(); ++i) {
    if (second(group1.ranks[i]) >= 0) members.push_back(group1.ranks[i]);
  }
  *newgroup = group_of(self, group1, std::move(members));
}

void group_difference(Library& self, Group& group1, Group& group2, MPI_Group* newgroup) {
  std::vector<Rank> members;
  const Places second(group2.ranks);
  for (int i = 0; i < group1.ranks.size(); ++i) {
    if (second(group1.ranks[i]) < 0) members.push_back(group1.ranks[i]);
  }
  *newgroup = group_of(self, group1, std::move(members));
}

void group_incl(Library& self, Group& group, int n, const int ranks[], MPI_Group* newgroup) {
  *newgroup = including(self, group, listed(group, n, ranks));
}

void group_excl(Library& self, Group& group, int n, const int ranks[], MPI_Group* newgroup) {
  *newgroup = excluding(self, group, listed(group, n, ranks));
}

void group_range_incl(Library& self, Group& group, int n, int ranges[][3], MPI_Group* newgroup) {
  *newgroup = including(self, group, expand(group, n, ranges));
}

void group_range_excl(Library& self, Group& group, int n, int ranges[][3], MPI_Group* newgroup) {
  *newgroup = excluding(self, group, expand(group, n, ranges));
}

void group_free(Library& self, MPI_Group* group) {
  // MPI_GROUP_EMPTY too, since functions return it as their result.
  drop(self, self.find<Group>(*group, base::ObjectKind::group));
  *group = MPI_GROUP_NULL;
}

} // namespace macadam::mpi
