// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/errhandler.h"

#include <gtest/gtest.h>

#include <functional>

namespace macadam::mpi {
namespace {

int class_thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.error_class;
  }
  return MPI_SUCCESS;
}

TEST(ErrorCodes, ClassesOfTheStandardAreTheirOwnCodes) {
  ErrorCodes codes;
  for (int value = MPI_SUCCESS; value <= MPI_ERR_ABI; ++value) {
    ASSERT_NE(find_error_class(value), nullptr) << value;
    EXPECT_EQ(codes.class_of(value), value);
    EXPECT_NE(codes.text(value).find(find_error_class(value)->name), std::string::npos);
  }
  EXPECT_EQ(class_thrown([&] { codes.class_of(5000); }), MPI_ERR_ARG);
  EXPECT_EQ(class_thrown([&] { codes.class_of(MPI_ERR_LASTCODE + 1); }), MPI_ERR_ARG);
}

TEST(ErrorCodes, TheLastMessageBelongsToItsClassOnly) {
  ErrorCodes codes;
  codes.remember(MPI_ERR_RANK, "MPI_Send: dest is 7");
  EXPECT_NE(codes.text(MPI_ERR_RANK).find("MPI_Send: dest is 7"), std::string::npos);
  EXPECT_EQ(codes.text(MPI_ERR_TAG).find("dest is 7"), std::string::npos);
  codes.remember(MPI_ERR_RANK, std::string(2000, 'x'));
  EXPECT_LT(codes.text(MPI_ERR_RANK).size(), std::size_t{MPI_MAX_ERROR_STRING});
}

TEST(ErrorCodes, AddedOnes) {
  ErrorCodes codes;
  EXPECT_EQ(codes.last_used(), MPI_ERR_LASTCODE);
  const int error_class = codes.add_class();
  const int code = codes.add_code(error_class);
  const int other = codes.add_code(MPI_ERR_OTHER);
  EXPECT_EQ(codes.last_used(), other);
  EXPECT_EQ(codes.class_of(error_class), error_class);
  EXPECT_EQ(codes.class_of(code), error_class);
  EXPECT_EQ(codes.class_of(other), MPI_ERR_OTHER);
  EXPECT_EQ(codes.text(code), "");
  codes.set_string(code, "out of luck");
  EXPECT_EQ(codes.text(code), "out of luck");
  codes.remove_string(code);
  EXPECT_EQ(codes.text(code), "");
}

TEST(ErrorCodes, Refusals) {
  ErrorCodes codes;
  const int error_class = codes.add_class();
  const int code = codes.add_code(error_class);
  EXPECT_EQ(class_thrown([&] { codes.add_code(code); }), MPI_ERR_ARG); // no class
  EXPECT_EQ(class_thrown([&] { codes.set_string(MPI_ERR_TAG, "mine"); }), MPI_ERR_ARG);
  EXPECT_EQ(class_thrown([&] { codes.remove_class(error_class); }), MPI_ERR_ARG); // has a code
  EXPECT_EQ(class_thrown([&] { codes.remove_class(code); }), MPI_ERR_ARG);
  EXPECT_EQ(class_thrown([&] { codes.remove_code(error_class); }), MPI_ERR_ARG);
  codes.set_string(code, "still here");
  EXPECT_EQ(class_thrown([&] { codes.remove_code(code); }), MPI_ERR_ARG);
  codes.remove_string(code);
  codes.remove_code(code);
  codes.remove_class(error_class);
  EXPECT_FALSE(codes.known(code));
  EXPECT_EQ(class_thrown([&] { codes.remove_class(error_class); }), MPI_ERR_ARG); // gone
  EXPECT_EQ(codes.last_used(), code); // of all that ever were
}

TEST(ErrorCodes, RemovedOnesAreUsedAgain) {
  ErrorCodes codes;
  const int error_class = codes.add_class();
  const int code = codes.add_code(error_class);
  codes.set_string(code, "the first");
  codes.remove_string(code);
  codes.remove_code(code);
  const int other = codes.add_code(MPI_SUCCESS);
  EXPECT_EQ(other, code);
  EXPECT_EQ(codes.class_of(other), MPI_SUCCESS);
  EXPECT_EQ(codes.text(other), "");
  codes.remove_class(error_class); // the code is not its own any more
  codes.remove_code(other);
  EXPECT_EQ(codes.last_used(), code);
}

} // namespace
} // namespace macadam::mpi
