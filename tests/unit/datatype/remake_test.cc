// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/remake.h"

#include "datatype/cursor.h"
#include "oracle.h"

#include <gtest/gtest.h>

namespace {

using namespace macadam::datatype;

// Where the bytes of one element are, in packing order.
std::vector<std::int64_t> places(const Type& type) {
  std::vector<std::int64_t> all;
  // Far from 0, as displacements may be negative.
  constexpr std::intptr_t base = std::intptr_t{1} << 40;
  PackCursor cursor(type, reinterpret_cast<const void*>(base), 1);
  for (Segment piece = cursor.next_segment(); piece.bytes != 0; piece = cursor.next_segment()) {
    for (MPI_Count i = 0; i < piece.bytes; ++i)
      all.push_back(reinterpret_cast<std::intptr_t>(piece.data) - base + i);
  }
  return all;
}

// With the same basic types inside, the calls make the same type again.
TEST(Remake, RepeatsEveryConstructor) {
  std::mt19937 random(7);
  for (int i = 0; i < 2000; ++i) {
    const oracle::Sample sample = oracle::random_sample(random, i % 6);
    const TypeRef again = remake(*sample.type, [](const Type& basic) { return TypeRef(basic); });
    ASSERT_EQ(again->lb(), sample.type->lb()) << i;
    ASSERT_EQ(again->extent(), sample.type->extent()) << i;
    ASSERT_EQ(places(*again), sample.map.bytes(1)) << i;
  }
}

// Counts of elements follow the new extents, bytes stay as they are.
TEST(Remake, ScalesWhatIsNotInBytes) {
  const PredefinedTypes types;
  const auto halved = [&](const Type& basic) {
    return contiguous(basic.size() / 2, types[MPI_BYTE]);
  };
  const Type& number = types[MPI_DOUBLE];
  EXPECT_EQ(remake(*vector(3, 1, 4, number), halved)->extent(), 4 * 9);
  EXPECT_EQ(remake(*hvector(3, 1, 40, number), halved)->extent(), 84);
  EXPECT_EQ(remake(*resized(number, 0, 100), halved)->extent(), 100);
  const MPI_Count two_five[] = {2, 5};
  EXPECT_EQ(places(*remake(*indexed_block(1, two_five, number), halved)),
            (std::vector<std::int64_t>{8, 9, 10, 11, 20, 21, 22, 23}));
  const MPI_Count size[] = {4, 6}, part[] = {2, 2}, start[] = {1, 3};
  const TypeRef array = remake(*subarray(size, part, start, MPI_ORDER_C, number), halved);
  EXPECT_EQ(array->extent(), 4 * 6 * 4);
  EXPECT_EQ(places(*array).front(), (6 + 3) * 4);
}

TEST(Remake, OfTypesNestedDeeperThanTheStack) {
  const auto same = [](const Type& basic) { return TypeRef(basic); };
  TypeRef type(oracle::predefined()[MPI_INT]);
  for (int level = 0; level < 300'000; ++level)
    type = level % 2 == 0 ? contiguous(1, *type) : resized(*type, 0, 8);
  const TypeRef again = remake(*type, same);
  EXPECT_EQ(again->extent(), 8);
  EXPECT_EQ(places(*again), places(oracle::predefined()[MPI_INT]));
}

// As fast as they were made, though there are 2^40 ways to the innermost type.
TEST(Remake, OfTypesThatShareTheirParts) {
  TypeRef type = contiguous(0, oracle::predefined()[MPI_INT]);
  for (int level = 0; level < 40; ++level) {
    const Type* const twice[] = {type.get(), type.get()};
    type = struct_(oracle::List{1, 1}, oracle::List{0, 0}, twice);
  }
  int asked = 0;
  const TypeRef again = remake(*type, [&](const Type& basic) {
    ++asked;
    return TypeRef(basic);
  });
  EXPECT_EQ(again->size(), 0);
  EXPECT_EQ(asked, 1);
}

} // namespace
