// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/constructors.h"

#include "datatype/cursor.h"
#include "expect_error.h"
#include "oracle.h"

#include <gtest/gtest.h>

#include <climits>

namespace macadam::datatype {
namespace {

using oracle::List;
using oracle::predefined;
using oracle::Sample;

const Type& int_type() {
  return predefined()[MPI_INT];
}
const Type& double_type() {
  return predefined()[MPI_DOUBLE];
}

TEST(Bounds, AgreeWithTheDefinitionForRandomTypes) {
  std::mt19937 random(20);
  for (int i = 0; i < 5000; ++i) {
    const Sample sample = oracle::random_sample(random, i % 6);
    const Type& type = *sample.type;
    ASSERT_EQ(type.size(), sample.map.size()) << i;
    ASSERT_EQ(type.lb(), sample.map.lb()) << i;
    ASSERT_EQ(type.ub(), sample.map.ub()) << i;
    ASSERT_EQ(type.extent(), sample.map.extent()) << i;
    ASSERT_EQ(type.true_lb(), sample.map.true_lb()) << i;
    ASSERT_EQ(type.true_ub(), sample.map.true_ub()) << i;
  }
}

TEST(Bounds, OfAStructureAreRoundedUpToTheStrictestAlignment) {
  const Type* types[] = {&double_type(), &predefined()[MPI_CHAR]};
  const TypeRef type = struct_(List{1, 1}, List{0, 8}, types);
  EXPECT_EQ(type->extent(), 16);
  EXPECT_EQ(type->true_extent(), 9);
  EXPECT_EQ(type->alignment(), 8);
}

// So that what nests them is a whole number of their extents.
TEST(Bounds, OfOtherTypesAreNotRoundedUp) {
  const TypeRef misaligned = hvector(2, 1, 50, int_type());
  EXPECT_EQ(misaligned->extent(), 54);
  EXPECT_EQ(contiguous(3, *misaligned)->extent(), 3 * 54);
  EXPECT_EQ(vector(2, 1, 3, *misaligned)->extent(), 4 * 54);
  EXPECT_EQ(hvector(3, 1, 54, *misaligned)->extent(), 3 * 54);
  EXPECT_EQ(hindexed(List{1, 1}, List{1, 50}, int_type())->extent(), 53);
  EXPECT_EQ(dup(*misaligned)->extent(), 54);
  EXPECT_EQ(contiguous(2, *resized(*misaligned, 0, 55))->extent(), 110);
}

TEST(Bounds, ContainThePaddingOfStructuresInside) {
  const Type* types[] = {&double_type(), &predefined()[MPI_CHAR]};
  const TypeRef inner = struct_(List{1, 1}, List{0, 8}, types);
  EXPECT_EQ(contiguous(2, *inner)->extent(), 32);
  EXPECT_EQ(hvector(2, 1, 54, *inner)->extent(), 54 + 16);
  EXPECT_EQ(hvector(2, 1, 54, *inner)->true_extent(), 54 + 9);
  EXPECT_EQ(hindexed(List{1, 1}, List{54, 0}, *inner)->extent(), 54 + 16);
  const Type* outer[] = {&predefined()[MPI_CHAR], inner.get()};
  EXPECT_EQ(struct_(List{1, 1}, List{0, 1}, outer)->extent(), 24);
  const TypeRef misaligned = hvector(2, 1, 50, int_type());
  const Type* mixed[] = {misaligned.get(), &predefined()[MPI_CHAR]};
  EXPECT_EQ(struct_(List{1, 1}, List{0, 60}, mixed)->extent(), 64);
}

TEST(Bounds, OfAResizedPartReplaceThoseOfTheOthers) {
  const TypeRef narrow = resized(int_type(), 0, 1);
  const Type* types[] = {narrow.get(), &double_type()};
  const TypeRef type = struct_(List{1, 1}, List{4, 8}, types);
  EXPECT_EQ(type->lb(), 4);
  EXPECT_EQ(type->ub(), 5);
  EXPECT_EQ(type->true_lb(), 4);
  EXPECT_EQ(type->true_ub(), 16);
}

TEST(Bounds, OfEmptyTypesAreZero) {
  for (const TypeRef& type :
       {contiguous(0, int_type()), vector(5, 0, 2, int_type()), struct_({}, {}, {}),
        hindexed(List{0, 0}, List{100, 200}, int_type())}) {
    EXPECT_EQ(type->size(), 0);
    EXPECT_EQ(type->lb(), 0);
    EXPECT_EQ(type->extent(), 0);
    EXPECT_EQ(type->true_lb(), 0);
    EXPECT_EQ(type->true_extent(), 0);
    EXPECT_EQ(type->elements(), 0);
  }
}

TEST(Bounds, BeyondTheLargestCountAreRefused) {
  const MPI_Count huge = INT64_MAX / 8;
  EXPECT_EQ(contiguous(huge, double_type())->size(), huge * 8);
  expect_error(MPI_ERR_TYPE, "size", [&] { (void)contiguous(huge + 1, double_type()); });
  expect_error(MPI_ERR_TYPE, "size", [&] { (void)vector(huge, huge, 1, double_type()); });
  expect_error(MPI_ERR_TYPE, "upper bound",
               [&] { (void)hvector(2, 1, INT64_MAX - 3, int_type()); });
  expect_error(MPI_ERR_TYPE, "true extent", [&] {
    (void)hindexed(List{1, 1}, List{INT64_MIN, 0}, int_type());
  });
  expect_error(MPI_ERR_TYPE, "stride", [&] { (void)vector(2, 1, INT64_MAX, int_type()); });
  expect_error(MPI_ERR_TYPE, "displacement",
               [&] { (void)indexed(List{1}, List{INT64_MAX}, int_type()); });
  expect_error(MPI_ERR_TYPE, "upper bound", [&] { (void)resized(int_type(), 1, INT64_MAX); });
  expect_error(MPI_ERR_TYPE, "size", [&] {
    const TypeRef half = contiguous(INT64_MAX / 2 + 1, *resized(predefined()[MPI_BYTE], 0, 0));
    const Type* types[] = {half.get(), half.get()};
    (void)struct_(List{1, 1}, List{0, 0}, types);
  });
}

TEST(Bounds, DoNotDependOnWhereNothingLies) {
  const MPI_Count far = MPI_Count{1} << 62; // beyond 2^63 bytes
  EXPECT_EQ(vector(0, 1, far, double_type())->extent(), 0);
  EXPECT_EQ(vector(2, 0, far, double_type())->extent(), 0);
  EXPECT_EQ(vector(1, 3, far, double_type())->extent(), 24);
  EXPECT_EQ(indexed(List{0, 1}, List{far, 1}, double_type())->lb(), 8);
  EXPECT_EQ(indexed_block(0, List{far, -far}, double_type())->extent(), 0);
}

TEST(Dup, KeepsValueAndState) {
  const TypeRef old = resized(*vector(3, 1, 2, int_type()), -4, 40);
  EXPECT_FALSE(dup(*old)->committed());
  old->commit();
  const TypeRef copy = dup(*old);
  EXPECT_TRUE(copy->committed());
  EXPECT_EQ(copy->lb(), -4);
  EXPECT_EQ(copy->extent(), 40);
  EXPECT_EQ(copy->size(), 12);
  EXPECT_NE(copy->handle(), old->handle());
}

// What MPI_Type_get_contents must give back, in the order of the standard's tables.
struct Expected {
  int combiner;
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts;
};

void expect_contents(const TypeRef& type, const Expected& expected) {
  EXPECT_EQ(type->combiner(), expected.combiner);
  EXPECT_EQ(type->contents().integers, expected.integers) << describe(*type);
  EXPECT_EQ(type->contents().addresses, expected.addresses) << describe(*type);
  EXPECT_EQ(type->contents().counts, expected.counts) << describe(*type);
  ASSERT_GE(type->contents().types.size(), 1U);
  EXPECT_EQ(type->contents().types[0]->handle(), MPI_INT);
}

TypeRef distributed(bool large) {
  const MPI_Count sizes[] = {10, 12};
  const int kinds[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const int arguments[] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  const int grid[] = {2, 3};
  return darray({6, 4, sizes, kinds, arguments, grid, MPI_ORDER_C}, int_type(), large);
}

TEST(Contents, OfTheSmallForms) {
  const MPI_Count places[] = {3, 9};
  const MPI_Count block[] = {1, 2};
  const Type* types[] = {&int_type(), &double_type()};
  expect_contents(dup(int_type()), {MPI_COMBINER_DUP, {}, {}, {}});
  expect_contents(contiguous(3, int_type()), {MPI_COMBINER_CONTIGUOUS, {3}, {}, {}});
  expect_contents(vector(3, 2, 5, int_type()), {MPI_COMBINER_VECTOR, {3, 2, 5}, {}, {}});
  expect_contents(hvector(3, 2, 50, int_type()), {MPI_COMBINER_HVECTOR, {3, 2}, {50}, {}});
  expect_contents(indexed(block, places, int_type()),
                  {MPI_COMBINER_INDEXED, {2, 1, 2, 3, 9}, {}, {}});
  expect_contents(hindexed(block, places, int_type()),
                  {MPI_COMBINER_HINDEXED, {2, 1, 2}, {3, 9}, {}});
  expect_contents(indexed_block(4, places, int_type()),
                  {MPI_COMBINER_INDEXED_BLOCK, {2, 4, 3, 9}, {}, {}});
  expect_contents(hindexed_block(4, places, int_type()),
                  {MPI_COMBINER_HINDEXED_BLOCK, {2, 4}, {3, 9}, {}});
  expect_contents(struct_(block, places, types), {MPI_COMBINER_STRUCT, {2, 1, 2}, {3, 9}, {}});
  expect_contents(resized(int_type(), -4, 12), {MPI_COMBINER_RESIZED, {}, {-4, 12}, {}});
  const MPI_Count sizes[] = {6, 7};
  const MPI_Count subsizes[] = {2, 3};
  const MPI_Count starts[] = {1, 4};
  expect_contents(subarray(sizes, subsizes, starts, MPI_ORDER_FORTRAN, int_type()),
                  {MPI_COMBINER_SUBARRAY, {2, 6, 7, 2, 3, 1, 4, MPI_ORDER_FORTRAN}, {}, {}});
  expect_contents(distributed(false),
                  {MPI_COMBINER_DARRAY,
                   {6, 4, 2, 10, 12, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                    MPI_DISTRIBUTE_DFLT_DARG, 2, 2, 3, MPI_ORDER_C},
                   {},
                   {}});
}

TEST(Contents, OfTheLargeFormsAreCounts) {
  const MPI_Count places[] = {3, 9};
  const MPI_Count block[] = {1, 2};
  const Type* types[] = {&int_type(), &double_type()};
  expect_contents(contiguous(3, int_type(), true), {MPI_COMBINER_CONTIGUOUS, {}, {}, {3}});
  expect_contents(vector(3, 2, 5, int_type(), true), {MPI_COMBINER_VECTOR, {}, {}, {3, 2, 5}});
  expect_contents(hvector(3, 2, 50, int_type(), true), {MPI_COMBINER_HVECTOR, {}, {}, {3, 2, 50}});
  expect_contents(indexed(block, places, int_type(), true),
                  {MPI_COMBINER_INDEXED, {}, {}, {2, 1, 2, 3, 9}});
  expect_contents(hindexed(block, places, int_type(), true),
                  {MPI_COMBINER_HINDEXED, {}, {}, {2, 1, 2, 3, 9}});
  expect_contents(indexed_block(4, places, int_type(), true),
                  {MPI_COMBINER_INDEXED_BLOCK, {}, {}, {2, 4, 3, 9}});
  expect_contents(struct_(block, places, types, true),
                  {MPI_COMBINER_STRUCT, {}, {}, {2, 1, 2, 3, 9}});
  expect_contents(resized(int_type(), -4, 12, true), {MPI_COMBINER_RESIZED, {}, {}, {-4, 12}});
  const MPI_Count sizes[] = {6, 7};
  const MPI_Count subsizes[] = {2, 3};
  const MPI_Count starts[] = {1, 4};
  expect_contents(subarray(sizes, subsizes, starts, MPI_ORDER_C, int_type(), true),
                  {MPI_COMBINER_SUBARRAY, {2, MPI_ORDER_C}, {}, {6, 7, 2, 3, 1, 4}});
  expect_contents(distributed(true), {MPI_COMBINER_DARRAY,
                                      {6, 4, 2, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                       MPI_DISTRIBUTE_DFLT_DARG, 2, 2, 3, MPI_ORDER_C},
                                      {},
                                      {10, 12}});
  // A count that does not fit an int can only come from a large form.
  const MPI_Count big = MPI_Count{INT_MAX} + 1;
  expect_contents(contiguous(big, int_type()), {MPI_COMBINER_CONTIGUOUS, {}, {}, {big}});
}

// darray against its meaning: element (i, j, ...) of the global array belongs to the process whose
// blocks it falls into; each process's type lists its elements in the order of the array.
class DistributedArrays : public testing::TestWithParam<int> {};

// Number of the process in one dimension that owns element `i`.
int owner(int kind, int argument, MPI_Count size, int processes, MPI_Count i) {
  const bool by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  if (kind == MPI_DISTRIBUTE_NONE) return 0;
  MPI_Count block = by_default ? 1 : argument;
  if (kind == MPI_DISTRIBUTE_BLOCK && by_default) block = (size + processes - 1) / processes;
  return static_cast<int>(i / block % processes);
}

TEST_P(DistributedArrays, DealOutEveryElementOnce) {
  const int order = GetParam();
  std::mt19937 random(3);
  const auto number = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  for (int round = 0; round < 300; ++round) {
    const auto dimensions = static_cast<std::size_t>(number(1, 3));
    std::vector<MPI_Count> sizes;
    std::vector<int> kinds;
    std::vector<int> arguments;
    std::vector<int> grid;
    int processes = 1;
    MPI_Count elements = 1;
    for (std::size_t d = 0; d < dimensions; ++d) {
      sizes.push_back(number(1, 9));
      const int kind[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
      kinds.push_back(kind[number(0, 2)]);
      grid.push_back(kinds[d] == MPI_DISTRIBUTE_NONE ? 1 : number(1, 3));
      int argument = number(0, 1) == 0 ? MPI_DISTRIBUTE_DFLT_DARG : number(1, 4);
      if (kinds[d] == MPI_DISTRIBUTE_BLOCK && argument != MPI_DISTRIBUTE_DFLT_DARG) {
        argument = static_cast<int>((sizes[d] + grid[d] - 1) / grid[d]) + number(0, 1);
      }
      arguments.push_back(argument);
      processes *= grid[d];
      elements *= sizes[d];
    }
    std::vector<std::vector<std::int64_t>> expected(static_cast<std::size_t>(processes));
    for (MPI_Count e = 0; e < elements; ++e) {
      std::vector<MPI_Count> index(dimensions);
      MPI_Count rest = e;
      for (std::size_t i = 0; i < dimensions; ++i) { // fastest first
        const std::size_t d = order == MPI_ORDER_C ? dimensions - 1 - i : i;
        index[d] = rest % sizes[d];
        rest /= sizes[d];
      }
      int rank = 0;
      for (std::size_t d = 0; d < dimensions; ++d) {
        rank = rank * grid[d] + owner(kinds[d], arguments[d], sizes[d], grid[d], index[d]);
      }
      expected[static_cast<std::size_t>(rank)].push_back(e * 4);
    }
    for (int rank = 0; rank < processes; ++rank) {
      const TypeRef type =
          darray({processes, rank, sizes, kinds, arguments, grid, order}, int_type());
      type->commit();
      ASSERT_EQ(type->lb(), 0);
      ASSERT_EQ(type->extent(), elements * 4);
      std::vector<std::int64_t> found;
      PackCursor cursor(*type, nullptr, 1);
      while (!cursor.done()) {
        const Segment segment = cursor.next_segment(4);
        found.push_back(reinterpret_cast<std::int64_t>(segment.data));
      }
      ASSERT_EQ(found, expected[static_cast<std::size_t>(rank)]) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, DistributedArrays,
                         testing::Values(int{MPI_ORDER_C}, int{MPI_ORDER_FORTRAN}));

TEST(BadArguments, NegativeCountsAndBlocklengths) {
  const MPI_Count lengths[] = {1, -2};
  const MPI_Count places[] = {0, 8};
  const Type* types[] = {&int_type(), &int_type()};
  expect_error(MPI_ERR_COUNT, "count is -1", [&] { (void)contiguous(-1, int_type()); });
  expect_error(MPI_ERR_COUNT, "count is -1", [&] { (void)vector(-1, 1, 1, int_type()); });
  expect_error(MPI_ERR_ARG, "blocklength is -3", [&] { (void)vector(1, -3, 1, int_type()); });
  expect_error(MPI_ERR_COUNT, "count is -1", [&] { (void)hvector(-1, 1, 1, int_type()); });
  expect_error(MPI_ERR_ARG, "blocklength is -3", [&] { (void)hvector(1, -3, 1, int_type()); });
  expect_error(MPI_ERR_ARG, "blocklength 1 of 2",
               [&] { (void)indexed(lengths, places, int_type()); });
  expect_error(MPI_ERR_ARG, "blocklength 1 of 2",
               [&] { (void)hindexed(lengths, places, int_type()); });
  expect_error(MPI_ERR_ARG, "is -2", [&] { (void)struct_(lengths, places, types); });
  expect_error(MPI_ERR_ARG, "is -2", [&] { (void)indexed_block(-2, places, int_type()); });
  expect_error(MPI_ERR_ARG, "is -2", [&] { (void)hindexed_block(-2, places, int_type()); });
}

TEST(BadArguments, OfSubarrays) {
  const auto make = [](MPI_Count size, MPI_Count subsize, MPI_Count start,
                       int order = MPI_ORDER_C) {
    const MPI_Count sizes[] = {5, size};
    const MPI_Count subsizes[] = {5, subsize};
    const MPI_Count starts[] = {0, start};
    (void)subarray(sizes, subsizes, starts, order, int_type());
  };
  EXPECT_NO_THROW(make(4, 3, 1));
  expect_error(MPI_ERR_ARG, "size of dimension 1 is 0", [&] { make(0, 1, 0); });
  expect_error(MPI_ERR_ARG, "subsize of dimension 1 is 0", [&] { make(4, 0, 0); });
  expect_error(MPI_ERR_ARG, "subsize of dimension 1 is 5", [&] { make(4, 5, 0); });
  expect_error(MPI_ERR_ARG, "start of dimension 1 is -1", [&] { make(4, 3, -1); });
  expect_error(MPI_ERR_ARG, "start of dimension 1 is 2", [&] { make(4, 3, 2); });
  expect_error(MPI_ERR_ARG, "order is 99", [&] { make(4, 3, 1, 99); });
  expect_error(MPI_ERR_ARG, "ndims is 0",
               [&] { (void)subarray({}, {}, {}, MPI_ORDER_C, int_type()); });
}

TEST(BadArguments, OfDistributedArrays) {
  struct Arguments {
    int size = 4, rank = 0;
    MPI_Count global = 10;
    int kind = MPI_DISTRIBUTE_BLOCK, argument = MPI_DISTRIBUTE_DFLT_DARG, grid = 4;
    int order = MPI_ORDER_C;
  };
  const auto make = [](const Arguments& a) {
    (void)darray(
        {a.size, a.rank, {&a.global, 1}, {&a.kind, 1}, {&a.argument, 1}, {&a.grid, 1}, a.order},
        int_type());
  };
  EXPECT_NO_THROW(make({}));
  expect_error(MPI_ERR_ARG, "size is 0", [&] { make({.size = 0}); });
  expect_error(MPI_ERR_ARG, "rank is 4", [&] { make({.rank = 4}); });
  expect_error(MPI_ERR_ARG, "rank is -1", [&] { make({.rank = -1}); });
  expect_error(MPI_ERR_ARG, "global size of dimension 0 is 0", [&] { make({.global = 0}); });
  expect_error(MPI_ERR_ARG, "distribution of dimension 0 is 7", [&] { make({.kind = 7}); });
  expect_error(MPI_ERR_ARG, "argument of dimension 0 is 0", [&] { make({.argument = 0}); });
  expect_error(MPI_ERR_ARG, "block size of at least 3", [&] { make({.argument = 2}); });
  expect_error(MPI_ERR_ARG, "not distributed", [&] { make({.kind = MPI_DISTRIBUTE_NONE}); });
  expect_error(MPI_ERR_ARG, "does not have 4 processes", [&] { make({.grid = 3}); });
  expect_error(MPI_ERR_ARG, "grid of dimension 0 is 0", [&] { make({.grid = 0}); });
  expect_error(MPI_ERR_ARG, "order is 0", [&] { make({.order = 0}); });
}

} // namespace
} // namespace macadam::datatype
