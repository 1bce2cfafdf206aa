// SPDX-License-Identifier: BSD-3-Clause
// Groups: set operations against plain vectors, translation, comparison.
#include "check.h"

#include <algorithm>
#include <random>

namespace {

using Members = std::vector<int>; // world ranks in the group's order

MPI_Group world() {
  MPI_Group group;
  OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
  return group;
}

Members members_of(MPI_Group group) {
  int size = -1;
  OK(MPI_Group_size(group, &size));
  Members ranks(static_cast<std::size_t>(size)), result(ranks.size());
  for (int i = 0; i < size; ++i)
    ranks[static_cast<std::size_t>(i)] = i;
  MPI_Group all = world();
  OK(MPI_Group_translate_ranks(group, size, ranks.data(), all, result.data()));
  OK(MPI_Group_free(&all));
  return result;
}

MPI_Group make(const Members& members) {
  MPI_Group all = world(), group;
  OK(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group));
  OK(MPI_Group_free(&all));
  return group;
}

Members some_members(std::mt19937& random) {
  Members all;
  for (int r = 0; r < check::size; ++r)
    if (random() % 2) all.push_back(r);
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

bool holds(const Members& members, int rank) {
  return std::find(members.begin(), members.end(), rank) != members.end();
}

void expect(MPI_Group& group, const Members& members) {
  CHECK(members_of(group) == members);
  int rank = -1;
  OK(MPI_Group_rank(group, &rank));
  const auto place = std::find(members.begin(), members.end(), check::rank);
  CHECK_EQUAL(rank,
              place == members.end() ? MPI_UNDEFINED : static_cast<int>(place - members.begin()));
  OK(MPI_Group_free(&group));
  CHECK(group == MPI_GROUP_NULL);
}

void set_operations() {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const Members a = some_members(random), b = some_members(random);
    Members both = a, common, only_a;
    for (int r : b)
      if (!holds(a, r)) both.push_back(r);
    for (int r : a)
      (holds(b, r) ? common : only_a).push_back(r);
    MPI_Group ga = make(a), gb = make(b), result;
    OK(MPI_Group_union(ga, gb, &result));
    expect(result, both);
    OK(MPI_Group_intersection(ga, gb, &result));
    expect(result, common);
    OK(MPI_Group_difference(ga, gb, &result));
    expect(result, only_a);
    int relation = -1;
    OK(MPI_Group_compare(ga, gb, &relation));
    Members sorted_a = a, sorted_b = b;
    std::sort(sorted_a.begin(), sorted_a.end());
    std::sort(sorted_b.begin(), sorted_b.end());
    CHECK_EQUAL(relation, a == b ? MPI_IDENT : sorted_a == sorted_b ? MPI_SIMILAR : MPI_UNEQUAL);
    std::vector<int> ranks, translated(a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      ranks.push_back(static_cast<int>(i));
    OK(MPI_Group_translate_ranks(ga, static_cast<int>(a.size()), ranks.data(), gb,
                                 translated.data()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto place = std::find(b.begin(), b.end(), a[i]);
      CHECK_EQUAL(translated[i],
                  place == b.end() ? MPI_UNDEFINED : static_cast<int>(place - b.begin()));
    }
    for (MPI_Group* group : {&ga, &gb})
      if (*group != MPI_GROUP_EMPTY) OK(MPI_Group_free(group));
  }
}

void ranges() {
  MPI_Group all = world(), result;
  int every_second[1][3] = {{0, check::size - 1, 2}};
  Members even, odd;
  for (int r = 0; r < check::size; ++r)
    (r % 2 ? odd : even).push_back(r);
  OK(MPI_Group_range_incl(all, 1, every_second, &result));
  expect(result, even);
  OK(MPI_Group_range_excl(all, 1, every_second, &result));
  expect(result, odd);
  int backwards[1][3] = {{check::size - 1, 0, -1}};
  Members reversed;
  for (int r = check::size - 1; r >= 0; --r)
    reversed.push_back(r);
  OK(MPI_Group_range_incl(all, 1, backwards, &result));
  expect(result, reversed);
  OK(MPI_Group_excl(all, static_cast<int>(even.size()), even.data(), &result));
  expect(result, odd);
  OK(MPI_Group_free(&all));
}

void empty_and_null_ranks() {
  int size = -1, rank = 0;
  OK(MPI_Group_size(MPI_GROUP_EMPTY, &size));
  OK(MPI_Group_rank(MPI_GROUP_EMPTY, &rank));
  CHECK_EQUAL(size, 0);
  CHECK_EQUAL(rank, MPI_UNDEFINED);
  MPI_Group all = world();
  const int in[1] = {MPI_PROC_NULL};
  int out[1] = {0};
  OK(MPI_Group_translate_ranks(all, 1, in, all, out));
  CHECK_EQUAL(out[0], MPI_PROC_NULL);
  OK(MPI_Group_free(&all));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"set_operations", set_operations},
                     {"ranges", ranges},
                     {"empty_and_null_ranks", empty_and_null_ranks}});
}
