// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/op.h"

#include "datatype/constructors.h"
#include "datatype/op_kernels.h"
#include "expect_error.h"
#include "oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace macadam::datatype {
namespace {

using oracle::predefined;

const PredefinedOps& ops() {
  static const PredefinedOps table;
  return table;
}

const std::vector<MPI_Op>& all_ops() {
  static const std::vector<MPI_Op> list{MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD, MPI_LAND,
                                        MPI_LOR,    MPI_LXOR,   MPI_BAND,    MPI_BOR,  MPI_BXOR,
                                        MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  return list;
}

TEST(PredefinedOps, EveryConstantLeadsToItsOperationAndBack) {
  for (const MPI_Op handle : all_ops()) {
    const Op* op = ops().find(handle);
    ASSERT_NE(op, nullptr);
    EXPECT_EQ(op->handle(), handle);
    EXPECT_TRUE(op->predefined());
    EXPECT_EQ(op->accumulate_only(), handle == MPI_REPLACE || handle == MPI_NO_OP);
    EXPECT_EQ(op->commutative(), !op->accumulate_only());
  }
  EXPECT_EQ(ops()[MPI_SUM].name(), "MPI_SUM");
  EXPECT_EQ(ops().find(MPI_OP_NULL), nullptr);
  EXPECT_EQ(ops().find(nullptr), nullptr);
  EXPECT_EQ(ops().find(reinterpret_cast<MPI_Op>(0x40)), nullptr);
}

// Which types each operation takes, spelled out by name: the standard's table, MPI_CHAR among the C
// integers, and logic on addresses.
bool allowed(MPI_Op op, const std::string& type) {
  const auto among = [&type](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), type) != names.end();
  };
  const bool c_integer =
      among({"MPI_INT", "MPI_LONG", "MPI_SHORT", "MPI_UNSIGNED_SHORT", "MPI_UNSIGNED",
             "MPI_UNSIGNED_LONG", "MPI_LONG_LONG_INT", "MPI_UNSIGNED_LONG_LONG", "MPI_SIGNED_CHAR",
             "MPI_UNSIGNED_CHAR", "MPI_CHAR", "MPI_INT8_T", "MPI_INT16_T", "MPI_INT32_T",
             "MPI_INT64_T", "MPI_UINT8_T", "MPI_UINT16_T", "MPI_UINT32_T", "MPI_UINT64_T"});
  const bool fortran_integer = among({"MPI_INTEGER", "MPI_INTEGER1", "MPI_INTEGER2", "MPI_INTEGER4",
                                      "MPI_INTEGER8", "MPI_INTEGER16"});
  const bool floating =
      among({"MPI_FLOAT", "MPI_DOUBLE", "MPI_REAL", "MPI_DOUBLE_PRECISION", "MPI_LONG_DOUBLE",
             "MPI_REAL2", "MPI_REAL4", "MPI_REAL8", "MPI_REAL16"});
  const bool complex = among(
      {"MPI_COMPLEX", "MPI_C_COMPLEX", "MPI_C_DOUBLE_COMPLEX", "MPI_C_LONG_DOUBLE_COMPLEX",
       "MPI_CXX_FLOAT_COMPLEX", "MPI_CXX_DOUBLE_COMPLEX", "MPI_CXX_LONG_DOUBLE_COMPLEX",
       "MPI_DOUBLE_COMPLEX", "MPI_COMPLEX4", "MPI_COMPLEX8", "MPI_COMPLEX16", "MPI_COMPLEX32"});
  const bool logical = among({"MPI_LOGICAL", "MPI_C_BOOL", "MPI_CXX_BOOL", "MPI_LOGICAL1",
                              "MPI_LOGICAL2", "MPI_LOGICAL4", "MPI_LOGICAL8", "MPI_LOGICAL16"});
  const bool multi_language = among({"MPI_AINT", "MPI_OFFSET", "MPI_COUNT"});
  const bool pair =
      among({"MPI_FLOAT_INT", "MPI_DOUBLE_INT", "MPI_LONG_INT", "MPI_2INT", "MPI_SHORT_INT",
             "MPI_LONG_DOUBLE_INT", "MPI_2REAL", "MPI_2DOUBLE_PRECISION", "MPI_2INTEGER"});
  if (op == MPI_MAX || op == MPI_MIN) {
    return c_integer || fortran_integer || floating || multi_language;
  }
  if (op == MPI_SUM || op == MPI_PROD) {
    return c_integer || fortran_integer || floating || complex || multi_language;
  }
  if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
    return c_integer || logical || multi_language;
  if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) {
    return c_integer || fortran_integer || type == "MPI_BYTE" || multi_language;
  }
  if (op == MPI_MINLOC || op == MPI_MAXLOC) return pair;
  return true; // replace, no_op
}

TEST(Op, TakesTheTypesThatOtherLibrariesTakeAndNoOthers) {
  for (const MPI_Op handle : all_ops()) {
    const Op& op = ops()[handle];
    for (const Basic& basic : basics()) {
      const Type& type = predefined()[basic.handle()];
      EXPECT_EQ(op.accepts(type), allowed(handle, type.name)) << op.name() << ' ' << type.name;
      if (op.accepts(type)) {
        EXPECT_NO_THROW(op.check(type));
        continue;
      }
      const auto refused = [&] {
        alignas(16) char a[32] = {};
        alignas(16) char b[32] = {};
        op.apply(a, b, 1, type);
      };
      expect_error(MPI_ERR_OP, std::string(op.name()), refused);
      expect_error(MPI_ERR_OP, type.name, refused);
    }
  }
}

// What one element must become, computed the plain way; false if the operation is none for T.
template <class T>
bool scalar(MPI_Op op, const T& a, const T& b, T& result) {
  if (op == MPI_SUM) return result = a + b, true;
  if (op == MPI_PROD) return result = a * b, true;
  if constexpr (requires { a < b; }) {
    if (op == MPI_MAX) return result = b < a ? a : b, true;
    if (op == MPI_MIN) return result = a < b ? a : b, true;
  }
  if constexpr (requires { a& b; }) {
    if (op == MPI_BAND) return result = static_cast<T>(a & b), true;
    if (op == MPI_BOR) return result = static_cast<T>(a | b), true;
    if (op == MPI_BXOR) return result = static_cast<T>(a ^ b), true;
    if (op == MPI_LAND) return result = static_cast<T>(a && b ? 1 : 0), true;
    if (op == MPI_LOR) return result = static_cast<T>(a || b ? 1 : 0), true;
    if (op == MPI_LXOR) return result = static_cast<T>(!a != !b ? 1 : 0), true;
  }
  return false;
}

template <class T>
T random_value(std::mt19937& random) {
  // Small whole numbers: sums and products are exact in every type and overflow in none.
  if constexpr (requires { T(1.0F, 1.0F); }) {
    using Part = typename T::value_type;
    return {static_cast<Part>(static_cast<int>(random() % 9) - 4),
            static_cast<Part>(static_cast<int>(random() % 9) - 4)};
  } else if constexpr (static_cast<T>(-1) < T{}) {
    return static_cast<T>(static_cast<int>(random() % 19) - 9);
  } else {
    return static_cast<T>(random() % 12);
  }
}

template <class T>
void check_values(MPI_Datatype handle) {
  const Type& type = predefined()[handle];
  ASSERT_EQ(type.size(), static_cast<MPI_Count>(sizeof(T))) << type.name;
  std::mt19937 random(11);
  int checked = 0;
  for (const MPI_Op op : all_ops()) {
    if (!ops()[op].accepts(type) || ops()[op].accumulate_only()) continue;
    for (const std::size_t count : {0U, 1U, 7U, 64U, 129U}) {
      std::vector<T> in(count);
      std::vector<T> inout(count);
      std::vector<T> expected(count);
      for (std::size_t i = 0; i < count; ++i) {
        in[i] = random_value<T>(random);
        inout[i] = random_value<T>(random);
        ASSERT_TRUE(scalar(op, in[i], inout[i], expected[i])) << ops()[op].name() << type.name;
      }
      ops()[op].apply(in.data(), inout.data(), static_cast<MPI_Count>(count), type);
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(inout[i] == expected[i]) << ops()[op].name() << ' ' << type.name << ' ' << i;
      }
      ++checked;
    }
  }
  EXPECT_GE(checked, 10) << type.name;
}

TEST(Op, CombinesIntegersAsC) {
  check_values<char>(MPI_CHAR);
  check_values<signed char>(MPI_SIGNED_CHAR);
  check_values<unsigned char>(MPI_UNSIGNED_CHAR);
  check_values<short>(MPI_SHORT);
  check_values<unsigned short>(MPI_UNSIGNED_SHORT);
  check_values<int>(MPI_INT);
  check_values<unsigned>(MPI_UNSIGNED);
  check_values<long>(MPI_LONG);
  check_values<unsigned long>(MPI_UNSIGNED_LONG);
  check_values<long long>(MPI_LONG_LONG);
  check_values<unsigned long long>(MPI_UNSIGNED_LONG_LONG);
  check_values<std::int8_t>(MPI_INT8_T);
  check_values<std::uint8_t>(MPI_UINT8_T);
  check_values<std::int16_t>(MPI_INT16_T);
  check_values<std::uint16_t>(MPI_UINT16_T);
  check_values<std::int32_t>(MPI_INT32_T);
  check_values<std::uint32_t>(MPI_UINT32_T);
  check_values<std::int64_t>(MPI_INT64_T);
  check_values<std::uint64_t>(MPI_UINT64_T);
  check_values<MPI_Aint>(MPI_AINT);
  check_values<MPI_Count>(MPI_COUNT);
  check_values<MPI_Offset>(MPI_OFFSET);
  check_values<std::int32_t>(MPI_INTEGER);
  check_values<std::int8_t>(MPI_INTEGER1);
  check_values<std::int16_t>(MPI_INTEGER2);
  check_values<std::int32_t>(MPI_INTEGER4);
  check_values<std::int64_t>(MPI_INTEGER8);
  check_values<Int128>(MPI_INTEGER16);
  check_values<unsigned char>(MPI_BYTE);
}

TEST(Op, CombinesLogicals) {
  check_values<std::int32_t>(MPI_LOGICAL);
  check_values<std::int8_t>(MPI_LOGICAL1);
  check_values<std::int16_t>(MPI_LOGICAL2);
  check_values<std::int32_t>(MPI_LOGICAL4);
  check_values<std::int64_t>(MPI_LOGICAL8);
  check_values<Int128>(MPI_LOGICAL16);
  check_values<unsigned char>(MPI_C_BOOL);
  check_values<unsigned char>(MPI_CXX_BOOL);
}

TEST(Op, CombinesFloatingPoint) {
  check_values<float>(MPI_FLOAT);
  check_values<float>(MPI_REAL);
  check_values<float>(MPI_REAL4);
  check_values<double>(MPI_DOUBLE);
  check_values<double>(MPI_DOUBLE_PRECISION);
  check_values<double>(MPI_REAL8);
  check_values<long double>(MPI_LONG_DOUBLE);
  check_values<Float128>(MPI_REAL16);
}

TEST(Op, CombinesComplexNumbers) {
  check_values<std::complex<float>>(MPI_C_FLOAT_COMPLEX);
  check_values<std::complex<double>>(MPI_C_DOUBLE_COMPLEX);
  check_values<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX);
  check_values<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX);
  check_values<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX);
  check_values<std::complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX);
  check_values<std::complex<float>>(MPI_COMPLEX);
  check_values<std::complex<double>>(MPI_DOUBLE_COMPLEX);
  check_values<std::complex<float>>(MPI_COMPLEX8);
  check_values<std::complex<double>>(MPI_COMPLEX16);
  // (1 + 2i)(3 - i) = 5 + 5i and (1 + 2i) + (3 - i) = 4 + i, in 128 bit parts.
  const QuadComplex a{1, 2};
  QuadComplex product{3, -1};
  QuadComplex sum = product;
  ops()[MPI_PROD].apply(&a, &product, 1, predefined()[MPI_COMPLEX32]);
  ops()[MPI_SUM].apply(&a, &sum, 1, predefined()[MPI_COMPLEX32]);
  EXPECT_TRUE(product.re == 5 && product.im == 5);
  EXPECT_TRUE(sum.re == 4 && sum.im == 1);
}

// What two numbers of 16 bits become.
std::uint16_t half(MPI_Op op, std::uint16_t a, std::uint16_t b) {
  ops()[op].apply(&a, &b, 1, predefined()[MPI_REAL2]);
  return b;
}

// IEEE binary16 by its definition.
double value_of_half(int bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

TEST(Op, KnowsEveryNumberOf16Bits) {
  constexpr std::uint16_t one = 0x3c00;
  constexpr std::uint16_t minus_zero = 0x8000;
  constexpr int infinity = 0x7c00;
  for (int bits = 0; bits <= UINT16_MAX; ++bits) {
    const auto number = static_cast<std::uint16_t>(bits);
    if ((bits & 0x7fff) > infinity) {
      EXPECT_GT(half(MPI_PROD, number, one) & 0x7fff, infinity); // no number stays none
      continue;
    }
    ASSERT_EQ(half(MPI_PROD, number, one), number);
    ASSERT_EQ(half(MPI_SUM, number, minus_zero), number);
  }
}

TEST(Op, RoundsNumbersOf16BitsOnce) {
  EXPECT_EQ(half(MPI_SUM, 0x3c00, 0x4000), 0x4200);  // 1 + 2
  EXPECT_EQ(half(MPI_PROD, 0xc200, 0x4400), 0xca00); // -3 * 4
  EXPECT_EQ(half(MPI_MIN, 0x4200, 0xc000), 0xc000);  // 3, -2
  EXPECT_EQ(half(MPI_MAX, 0x4200, 0xc000), 0x4200);
  EXPECT_EQ(half(MPI_SUM, 0x3c00, 0x1000), 0x3c00); // 1 + 2^-11: halfway, to the even 1
  EXPECT_EQ(half(MPI_SUM, 0x3c01, 0x1000), 0x3c02); // ... and above it
  EXPECT_EQ(half(MPI_SUM, 0x3c00, 0x1001), 0x3c01); // just more than halfway
  EXPECT_EQ(half(MPI_SUM, 0x7bff, 0x4bff), 0x7bff); // 65504 + 15.99
  EXPECT_EQ(half(MPI_SUM, 0x7bff, 0x4c00), 0x7c00); // 65504 + 16: infinite
  EXPECT_EQ(half(MPI_PROD, 0x7bff, 0xfbff), 0xfc00);
  EXPECT_EQ(half(MPI_PROD, 0x0001, 0x3800), 0x0000); // 2^-24 / 2
  EXPECT_EQ(half(MPI_PROD, 0x0003, 0xb800), 0x8002);
  EXPECT_EQ(half(MPI_PROD, 0x07ff, 0x3800), 0x0400); // up to the least normal number
  EXPECT_EQ(half(MPI_SUM, 0x7c00, 0xfc00) & 0x7e00, 0x7e00);
  // No neighbour of a result is nearer.
  std::mt19937 random(16);
  for (int i = 0; i < 100'000; ++i) {
    const auto a = static_cast<std::uint16_t>(random() & 0xbfff); // less than 2 in size
    const auto b = static_cast<std::uint16_t>(random() & 0xbfff);
    for (const MPI_Op op : {MPI_SUM, MPI_PROD}) {
      const double x = value_of_half(a);
      const double y = value_of_half(b);
      const double exact = op == MPI_SUM ? x + y : x * y; // a double holds both
      const int result = half(op, a, b);
      const double error = std::abs(value_of_half(result) - exact);
      ASSERT_LE(error, std::abs(value_of_half(result + 1) - exact)) << a << ' ' << b;
      if ((result & 0x7fff) == 0) continue;
      ASSERT_LE(error, std::abs(value_of_half(result - 1) - exact)) << a << ' ' << b;
    }
  }
}

TEST(Op, CombinesComplexNumbersOf16BitParts) {
  // (1 + 2i)(3 - i) = 5 + 5i and (1 + 2i) + (3 - i) = 4 + i
  const HalfComplex a{0x3c00, 0x4000};
  HalfComplex product{0x4200, 0xbc00};
  HalfComplex sum = product;
  ops()[MPI_PROD].apply(&a, &product, 1, predefined()[MPI_COMPLEX4]);
  ops()[MPI_SUM].apply(&a, &sum, 1, predefined()[MPI_COMPLEX4]);
  EXPECT_TRUE(product.re == 0x4500 && product.im == 0x4500);
  EXPECT_TRUE(sum.re == 0x4400 && sum.im == 0x3c00);
  // Each part of a product is rounded once: (1 + 3 * 2^-10)^2 - 1 is not 6 * 2^-10.
  const HalfComplex b{0x3c03, 0x3c00};
  HalfComplex square = b;
  ops()[MPI_PROD].apply(&b, &square, 1, predefined()[MPI_COMPLEX4]);
  EXPECT_EQ(square.re, 0x1e02);
  EXPECT_EQ(square.im, 0x4003);
}

template <class Value, class Index>
void check_locations(MPI_Datatype handle) {
  struct Located {
    Value value;
    Index index;
  };
  const Type& type = predefined()[handle];
  ASSERT_EQ(type.extent(), static_cast<MPI_Count>(sizeof(Located)));
  const std::vector<Located> in{{1, 5}, {7, 5}, {4, 5}, {4, 9}};
  const std::vector<Located> other{{2, 6}, {3, 6}, {4, 6}, {4, 2}};
  const std::vector<Located> least{{1, 5}, {3, 6}, {4, 5}, {4, 2}};
  const std::vector<Located> most{{2, 6}, {7, 5}, {4, 5}, {4, 2}};
  for (const auto& [op, expected] : {std::pair{MPI_MINLOC, least}, std::pair{MPI_MAXLOC, most}}) {
    std::vector<Located> inout = other;
    ops()[op].apply(in.data(), inout.data(), 4, type);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(inout[i].value, expected[i].value) << type.name << ' ' << i;
      EXPECT_EQ(inout[i].index, expected[i].index) << type.name << ' ' << i;
    }
  }
}

TEST(Op, FindsLocationsAndTakesTheLowerIndexOfEqualValues) {
  check_locations<float, int>(MPI_FLOAT_INT);
  check_locations<double, int>(MPI_DOUBLE_INT);
  check_locations<long, int>(MPI_LONG_INT);
  check_locations<int, int>(MPI_2INT);
  check_locations<short, int>(MPI_SHORT_INT);
  check_locations<long double, int>(MPI_LONG_DOUBLE_INT);
  check_locations<float, float>(MPI_2REAL);
  check_locations<double, double>(MPI_2DOUBLE_PRECISION);
  check_locations<int, int>(MPI_2INTEGER);
}

TEST(Op, ReplaceTakesTheOperandAndNoOpLeavesTheTarget) {
  for (const Basic& basic : basics()) {
    const Type& type = predefined()[basic.handle()];
    const auto bytes = static_cast<std::size_t>(3 * type.extent());
    const std::string in(bytes, 'i');
    std::string inout(bytes, 'o');
    ops()[MPI_NO_OP].apply(in.data(), inout.data(), 3, type);
    EXPECT_EQ(inout, std::string(bytes, 'o')) << type.name;
    ops()[MPI_REPLACE].apply(in.data(), inout.data(), 3, type);
    EXPECT_EQ(inout, in) << type.name;
  }
}

TEST(Op, SignedOverflowWrapsAround) {
  const int in = INT32_MAX;
  int sum = 1;
  ops()[MPI_SUM].apply(&in, &sum, 1, predefined()[MPI_INT]);
  EXPECT_EQ(sum, INT32_MIN);
  const unsigned short most = 65535;
  unsigned short product = 65535;
  ops()[MPI_PROD].apply(&most, &product, 1, predefined()[MPI_UNSIGNED_SHORT]);
  EXPECT_EQ(product, 1);
}

TEST(Op, DerivedTypesNeedAUserOperation) {
  const TypeRef type = contiguous(2, predefined()[MPI_INT]);
  type->name = "two_ints";
  int in[2] = {};
  int inout[2] = {};
  expect_error(MPI_ERR_OP, "MPI_Op_create", [&] { ops()[MPI_SUM].apply(in, inout, 1, *type); });
  expect_error(MPI_ERR_OP, "two_ints", [&] { ops()[MPI_SUM].check(*type); });
}

TEST(Op, TypesThatStandForABasicTypeAreTakenAsThat) {
  Shape shape{.parts = {{0, 1, TypeRef(predefined()[MPI_DOUBLE])}}};
  Contents contents;
  contents.integers = {15, 30};
  const TypeRef type = Type::make(MPI_COMBINER_F90_REAL, std::move(contents), std::move(shape));
  double in = 2;
  double inout = 3;
  ops()[MPI_SUM].apply(&in, &inout, 1, *type);
  EXPECT_EQ(inout, 5);
}

// Calls that a user's function received, since it has no argument for a context.
struct Call {
  const void* in;
  const void* inout;
  MPI_Count length;
  MPI_Datatype datatype;
};
std::vector<Call> calls;

void user_function(void* in, void* inout, int* length, MPI_Datatype* datatype) {
  calls.push_back({in, inout, *length, *datatype});
  if (*datatype == MPI_INT) {
    for (int i = 0; i < *length; ++i) {
      static_cast<int*>(inout)[i] = 10 * static_cast<int*>(in)[i] + static_cast<int*>(inout)[i];
    }
  }
}

// What calls them.
void run(void (*call)(void*), void* argument) {
  call(argument);
}

void user_function_c(void* in, void* inout, MPI_Count* length, MPI_Datatype* datatype) {
  calls.push_back({in, inout, *length, *datatype});
}

TEST(Op, CallsTheUsersFunction) {
  calls.clear();
  const Op op(user_function, false, run);
  EXPECT_FALSE(op.commutative());
  EXPECT_FALSE(op.predefined());
  EXPECT_EQ(op.handle(), reinterpret_cast<MPI_Op>(const_cast<Op*>(&op)));
  const int in[3] = {1, 2, 3};
  int inout[3] = {4, 5, 6};
  op.apply(in, inout, 3, predefined()[MPI_INT]);
  EXPECT_EQ(inout[0], 14);
  EXPECT_EQ(inout[2], 36);
  op.apply(in, inout, 0, predefined()[MPI_INT]);
  EXPECT_EQ(calls.size(), 1U); // not for nothing

  const TypeRef type = contiguous(3, predefined()[MPI_INT]);
  op.apply(in, inout, 1, *type);
  EXPECT_EQ(calls.back().datatype, type->handle());
}

TEST(Op, SplitsLargeCountsForTheSmallFunctionOnly) {
  // Elements without an extent: nothing of that size has to exist.
  const TypeRef type = resized(predefined()[MPI_BYTE], 0, 0);
  const TypeRef spaced = resized(predefined()[MPI_BYTE], 0, 1);
  char in = 0;
  char inout = 0;
  const MPI_Count count = 2 * MPI_Count{INT32_MAX} + 5;
  calls.clear();
  Op(user_function, true, run).apply(&in, &inout, count, *type);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls[0].length, INT32_MAX);
  EXPECT_EQ(calls[1].length, INT32_MAX);
  EXPECT_EQ(calls[2].length, 5);

  calls.clear();
  Op(user_function_c, true, run).apply(&in, &inout, count, *type);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].length, count);
}

// Bytes of which any number is finite, of either sign.
std::vector<std::byte> finite(std::mt19937& random, std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::byte& each : made)
    each = static_cast<std::byte>(random() & 0xbf);
  return made;
}

template <class Operation>
void expect_same_results() {
  constexpr const Kernels& kernels = kernels_of<Operation>;
  std::mt19937 random(1);
  int differ = 0;
  for (std::size_t storage = 0; storage < kernels.wide.size(); ++storage) {
    const Kernel portable = kernels.portable[storage];
    const Kernel wide = kernels.wide[storage];
    ASSERT_EQ(portable == nullptr, wide == nullptr) << storage;
    if (portable == wide) continue;
    ++differ;
    for (std::size_t count = 0; count < 70; ++count) {
      constexpr std::size_t widest = 16;
      const std::size_t bytes = (count + 2) * widest;
      const auto left = finite(random, bytes);
      const auto right = finite(random, bytes);
      std::vector<std::byte> expected(bytes), found(bytes);
      const std::size_t begin = count % 2 * widest; // vectors need not begin aligned
      portable(&left[begin], &right[begin], &expected[begin], count);
      wide(&left[begin], &right[begin], &found[begin], count);
      ASSERT_EQ(expected, found) << "storage " << storage << ", " << count << " elements";
      expected = found = right;
      portable(&left[begin], &expected[begin], &expected[begin], count);
      wide(&left[begin], &found[begin], &found[begin], count);
      ASSERT_EQ(expected, found) << "storage " << storage << ", in place";
    }
  }
  EXPECT_GT(differ, 0);
}

TEST(PredefinedOps, GiveTheSameOnProcessorsWithWiderVectors) {
  if (!Wide::runs_here()) GTEST_SKIP() << "this processor has none";
  expect_same_results<Max>();
  expect_same_results<Min>();
  expect_same_results<Sum>();
  expect_same_results<Product>();
  expect_same_results<LogicalAnd>();
  expect_same_results<LogicalOr>();
  expect_same_results<LogicalXor>();
  expect_same_results<BitAnd>();
  expect_same_results<BitOr>();
  expect_same_results<BitXor>();
}

} // namespace
} // namespace macadam::datatype
