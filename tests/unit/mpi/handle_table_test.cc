// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/handle_table.h"

#include <mpi.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace macadam::mpi {
namespace {

TEST(HandleTable, PredefinedHandlesAreTheirConstants) {
  HandleTable table;
  EXPECT_EQ(table.to_int(MPI_COMM_WORLD), 0x101);
  EXPECT_EQ(table.from_int(0x101), MPI_COMM_WORLD);
  EXPECT_EQ(table.from_int(0x100), MPI_COMM_NULL);
}

TEST(HandleTable, OthersKeepTheirNumberUntilForgotten) {
  HandleTable table;
  long objects[3] = {};
  const int first = table.to_int(&objects[0]), second = table.to_int(&objects[1]);
  EXPECT_NE(first, second);
  EXPECT_EQ(table.to_int(&objects[0]), first);
  EXPECT_EQ(table.from_int(first), &objects[0]);
  EXPECT_EQ(table.from_int(second), &objects[1]);
  table.forget(&objects[0]);
  EXPECT_EQ(table.from_int(first), nullptr);
  EXPECT_NE(table.to_int(&objects[0]), first); // another object at the same address
  table.forget(&objects[2]);                   // never converted
}

// A program that makes and frees objects for ever runs out of neither numbers nor memory.
TEST(HandleTable, NumbersAreGivenAgainAfterManyOthers) {
  HandleTable table;
  long object = 0;
  int largest = 0;
  for (int i = 0; i < 100'000; ++i) {
    largest = std::max(largest, table.to_int(&object));
    table.forget(&object);
  }
  EXPECT_LT(largest, 0x1000 + 10'000);
}

TEST(HandleTable, NumbersThatWereNeverGivenMeanNothing) {
  const HandleTable table;
  EXPECT_EQ(table.from_int(-1), nullptr);
  EXPECT_EQ(table.from_int(1 << 30), nullptr);
}

} // namespace
} // namespace macadam::mpi
