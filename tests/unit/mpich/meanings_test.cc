// SPDX-License-Identifier: BSD-3-Clause
#include "mpich/meanings.h"

#include <gtest/gtest.h>

namespace macadam::mpich {
namespace {

constexpr int last = MPI_ERR_LASTCODE;
constexpr int last_of_mpich = ErrorCode::last;

// What a callback returns, and what the program then gets, is the same number, and no other is.
TEST(ErrorCode, EachNumberComesBack) {
  for (const int around : {0, last, 1 << 30, last_of_mpich, INT_MAX - 20'000}) {
    for (int code = around - 20'000; code < around + 20'000; ++code) {
      ASSERT_EQ(ErrorCode::out(ErrorCode::in(code)), code);
      ASSERT_EQ(ErrorCode::in(ErrorCode::out(code)), code);
    }
  }
  for (const int code : {INT_MIN, INT_MAX}) {
    EXPECT_EQ(ErrorCode::out(ErrorCode::in(code)), code);
    EXPECT_EQ(ErrorCode::in(ErrorCode::out(code)), code);
  }
}

TEST(ErrorCode, ClassesAndCodesOfTheProgramAreThose) {
  for (const Pair& pair : constants::error_classes) {
    EXPECT_EQ(ErrorCode::in(pair.mpich), pair.standard);
    EXPECT_EQ(ErrorCode::out(pair.standard), pair.mpich);
  }
  EXPECT_EQ(ErrorCode::in(last_of_mpich + 1), last + 1);
  EXPECT_EQ(ErrorCode::out(last + 1000), last_of_mpich + 1000);
}

TEST(ErrorCode, ANumberThatIsNoClassStaysNone) {
  for (int code = 82; code < last_of_mpich; code += code < 20'000 ? 1 : 9973) {
    const int standard = ErrorCode::in(code);
    ASSERT_TRUE(standard < last || standard > ErrorCode::in(INT_MAX)) << code;
    for (const Pair& pair : constants::error_classes)
      ASSERT_NE(standard, pair.standard) << code;
  }
}

} // namespace
} // namespace macadam::mpich
