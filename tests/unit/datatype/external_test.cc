// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/external.h"

#include "datatype/constructors.h"
#include "expect_error.h"
#include "oracle.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace macadam::datatype {
namespace {

using oracle::List;
using oracle::predefined;
using Bytes = std::vector<unsigned char>;

template <class T>
Bytes packed(MPI_Datatype handle, const std::vector<T>& values) {
  const auto count = static_cast<MPI_Count>(values.size());
  Bytes out(static_cast<std::size_t>(external_size(predefined()[handle], count)));
  pack_external(predefined()[handle], values.data(), count, out.data());
  return out;
}

TEST(External, ValuesAreBigEndian) {
  EXPECT_EQ(packed<int>(MPI_INT, {0x01020304, -2}), (Bytes{1, 2, 3, 4, 0xff, 0xff, 0xff, 0xfe}));
  EXPECT_EQ(packed<short>(MPI_SHORT, {0x0102}), (Bytes{1, 2}));
  EXPECT_EQ(packed<long>(MPI_LONG, {0x01020304, -1}), (Bytes{1, 2, 3, 4, 255, 255, 255, 255}));
  EXPECT_EQ(packed<unsigned long>(MPI_UNSIGNED_LONG, {0xfffffffe}), (Bytes{255, 255, 255, 254}));
  EXPECT_EQ(packed<MPI_Aint>(MPI_AINT, {1}), (Bytes{0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(packed<double>(MPI_DOUBLE, {-1.5}), (Bytes{0xbf, 0xf8, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(packed<float>(MPI_FLOAT, {1.0F}), (Bytes{0x3f, 0x80, 0, 0}));
  EXPECT_EQ(packed<std::complex<float>>(MPI_C_FLOAT_COMPLEX, {{1.0F, -1.0F}}),
            (Bytes{0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0}));
  EXPECT_EQ(packed<wchar_t>(MPI_WCHAR, {L'A', wchar_t{0xfffe}}), (Bytes{0, 'A', 0xff, 0xfe}));
  EXPECT_EQ(packed<unsigned char>(MPI_C_BOOL, {1, 0}), (Bytes{1, 0}));
}

TEST(External, LongDoubleIsBinary128) {
  // Sign and 15 bits of exponent, then the fraction without its leading one.
  EXPECT_EQ(packed<long double>(MPI_LONG_DOUBLE, {-1.5L}),
            (Bytes{0xbf, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(packed<long double>(MPI_LONG_DOUBLE, {4.0L}),
            (Bytes{0x40, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(External, SizesAreThoseOfTheStandard) {
  const std::map<MPI_Datatype, MPI_Count> sizes{
      {MPI_PACKED, 1},
      {MPI_BYTE, 1},
      {MPI_CHAR, 1},
      {MPI_WCHAR, 2},
      {MPI_SHORT, 2},
      {MPI_INT, 4},
      {MPI_LONG, 4},
      {MPI_UNSIGNED_LONG, 4},
      {MPI_LONG_LONG, 8},
      {MPI_FLOAT, 4},
      {MPI_DOUBLE, 8},
      {MPI_LONG_DOUBLE, 16},
      {MPI_C_BOOL, 1},
      {MPI_INT64_T, 8},
      {MPI_AINT, 8},
      {MPI_COUNT, 8},
      {MPI_OFFSET, 8},
      {MPI_C_LONG_DOUBLE_COMPLEX, 32},
      {MPI_CHARACTER, 1},
      {MPI_LOGICAL, 4},
      {MPI_INTEGER, 4},
      {MPI_REAL, 4},
      {MPI_DOUBLE_PRECISION, 8},
      {MPI_DOUBLE_COMPLEX, 16},
      {MPI_INTEGER16, 16},
      {MPI_REAL2, 2},
      {MPI_COMPLEX32, 32},
      {MPI_DOUBLE_INT, 12},
      {MPI_LONG_INT, 8},
      {MPI_LONG_DOUBLE_INT, 20},
      {MPI_2REAL, 8},
  };
  for (const auto& [handle, size] : sizes) {
    EXPECT_EQ(external_size(predefined()[handle], 1), size) << predefined()[handle].name;
    EXPECT_EQ(external_size(predefined()[handle], 1000), 1000 * size);
  }
}

TEST(External, EveryPredefinedTypeComesBack) {
  std::mt19937 random(5);
  for (const Basic& basic : basics()) {
    const Type& type = predefined()[basic.handle()];
    constexpr MPI_Count count = 50;
    // Small values: they fit wherever the external form is shorter, and are valid as anything.
    Bytes buffer(static_cast<std::size_t>(type.extent() * count));
    for (auto& byte : buffer)
      byte = 0;
    const bool wide_fraction = basic.storage == Storage::float_long ||
                               basic.storage == Storage::complex_long ||
                               basic.storage == Storage::long_double_int32;
    for (MPI_Count i = 0; i < count; ++i) {
      auto* element = buffer.data() + i * type.extent();
      if (wide_fraction) {
        const long double value = std::ldexp(static_cast<long double>(random()) / 3, 50);
        std::memcpy(element, &value, 10);
      } else if (basic.external_size == basic.extent && basic.type_class != BasicClass::logical) {
        for (MPI_Count b = 0; b < type.size(); ++b) {
          element[b] = static_cast<unsigned char>(random());
        }
      } else {
        element[0] = static_cast<unsigned char>(random() % 2);
      }
    }
    Bytes out(static_cast<std::size_t>(external_size(type, count)));
    pack_external(type, buffer.data(), count, out.data());
    Bytes back(buffer.size());
    unpack_external(type, out.data(), back.data(), count);
    EXPECT_EQ(back, buffer) << type.name;
  }
}

TEST(External, NegativeLongsComeBack) {
  const std::array<long, 3> values{-5, INT32_MIN, INT32_MAX};
  const Bytes out = packed<long>(MPI_LONG, {values.begin(), values.end()});
  std::array<long, 3> back{};
  unpack_external(predefined()[MPI_LONG], out.data(), back.data(), 3);
  EXPECT_EQ(back, values);
}

TEST(External, ValuesThatDoNotFitAreRefused) {
  expect_error(MPI_ERR_CONVERSION, "MPI_LONG",
               [] { (void)packed<long>(MPI_LONG, {1L + INT32_MAX}); });
  expect_error(MPI_ERR_CONVERSION, "MPI_LONG",
               [] { (void)packed<long>(MPI_LONG, {-1L + INT32_MIN}); });
  expect_error(MPI_ERR_CONVERSION, "MPI_UNSIGNED_LONG",
               [] { (void)packed<unsigned long>(MPI_UNSIGNED_LONG, {1UL << 32}); });
  expect_error(MPI_ERR_CONVERSION, "MPI_WCHAR",
               [] { (void)packed<wchar_t>(MPI_WCHAR, {wchar_t{0x1F600}}); });
}

TEST(External, DerivedTypesFollowTheirEntries) {
  struct Record {
    double weight;
    int index[2];
    char tag;
  };
  const Type* types[] = {&predefined()[MPI_CHAR], &predefined()[MPI_INT],
                         &predefined()[MPI_DOUBLE]};
  const TypeRef entries = struct_(
      List{1, 2, 1}, List{offsetof(Record, tag), offsetof(Record, index), offsetof(Record, weight)},
      types);
  const TypeRef type = vector(2, 1, 2, *resized(*entries, 0, sizeof(Record)));
  EXPECT_EQ(external_size(*type, 1), 2 * (1 + 8 + 8));
  const Record records[3] = {{1.0, {1, 2}, 'a'}, {9.0, {9, 9}, 'x'}, {-1.0, {3, 4}, 'b'}};
  Bytes out(34);
  pack_external(*type, records, 1, out.data());
  EXPECT_EQ(out, (Bytes{'a', 0, 0, 0, 1, 0, 0, 0, 2, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0,
                        'b', 0, 0, 0, 3, 0, 0, 0, 4, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0}));
  Record back[3] = {};
  unpack_external(*type, out.data(), back, 1);
  EXPECT_EQ(back[0].tag, 'a');
  EXPECT_EQ(back[2].index[1], 4);
  EXPECT_EQ(back[2].weight, -1.0);
  EXPECT_EQ(back[1].weight, 0.0);
}

// The data end somewhere: elements come back up to the one that is cut, and none behind it.
TEST(External, WhatIsThereInPartComesBack) {
  struct Record {
    char tag;
    long index[2];
    double weight;
    char last;
  };
  const Type* types[] = {&predefined()[MPI_CHAR], &predefined()[MPI_LONG],
                         &predefined()[MPI_DOUBLE], &predefined()[MPI_CHAR]};
  const TypeRef entries = struct_(List{1, 2, 1, 1},
                                  List{offsetof(Record, tag), offsetof(Record, index),
                                       offsetof(Record, weight), offsetof(Record, last)},
                                  types);
  const TypeRef type = resized(*entries, 0, sizeof(Record));
  const Record records[2] = {{'a', {1, 2}, 1.0, 'z'}, {'b', {3, 4}, -1.0, 'y'}};
  constexpr MPI_Count packed_bytes = 1 + 2 * 4 + 8 + 1, native_bytes = 1 + 2 * 8 + 8 + 1;
  Bytes out(2 * packed_bytes);
  pack_external(*type, records, 2, out.data());
  for (MPI_Count bytes = 0; bytes < 2 * packed_bytes; ++bytes) {
    Record back[2] = {};
    const Bytes there(out.begin(), out.begin() + bytes);
    const MPI_Count first = bytes / packed_bytes, rest = bytes % packed_bytes;
    const MPI_Count inside = rest >= 17 ? 25 : rest >= 9 ? 17 : rest >= 5 ? 9 : rest >= 1 ? 1 : 0;
    EXPECT_EQ(unpack_external(*type, there.data(), back, 2, bytes), first * native_bytes + inside);
    const Record &cut = back[first], &whole = records[first];
    EXPECT_EQ(cut.tag, inside >= 1 ? whole.tag : 0);
    EXPECT_EQ(cut.index[0], inside >= 9 ? whole.index[0] : 0);
    EXPECT_EQ(cut.index[1], inside >= 17 ? whole.index[1] : 0);
    EXPECT_EQ(cut.weight, inside >= 25 ? whole.weight : 0.0);
    EXPECT_EQ(cut.last, 0);
  }
}

// However many there are of them: else this would not end.
TEST(External, TypesWithoutDataTakeNoTime) {
  constexpr MPI_Count many = MPI_Count{1} << 60;
  const TypeRef nothing = contiguous(0, predefined()[MPI_INT]);
  const TypeRef nothings = contiguous(many, *nothing);
  const Type* types[] = {nothings.get(), &predefined()[MPI_INT]};
  const TypeRef one = struct_(List{many, 1}, List{0, 0}, types);
  const int value = 0x01020304;
  int back = 0;
  Bytes out(4);
  pack_external(*nothing, nullptr, many, nullptr);
  unpack_external(*nothings, nullptr, nullptr, many);
  pack_external(*one, &value, 1, out.data());
  EXPECT_EQ(out, (Bytes{1, 2, 3, 4}));
  EXPECT_EQ(unpack_external(*one, out.data(), &back, 1), 4);
  EXPECT_EQ(back, value);
}

TEST(External, TypesMayBeNestedDeeperThanTheStack) {
  TypeRef type = contiguous(2, predefined()[MPI_INT]);
  const Type* parts[] = {nullptr, &predefined()[MPI_CHAR]};
  for (int level = 0; level < 300'000; ++level) {
    parts[0] = type.get();
    type = struct_(List{1, level < 2 ? 1 : 0}, List{0, 8 + level}, parts);
  }
  ASSERT_EQ(external_size(*type, 1), 10);
  const Bytes values{4, 3, 2, 1, 8, 7, 6, 5, 'a', 'b'};
  Bytes out(10), back(10);
  pack_external(*type, values.data(), 1, out.data());
  EXPECT_EQ(out, (Bytes{1, 2, 3, 4, 5, 6, 7, 8, 'a', 'b'}));
  EXPECT_EQ(unpack_external(*type, out.data(), back.data(), 1), 10);
  EXPECT_EQ(back, values);
}

// As fast as they were made, though there are 2^60 ways to the innermost type.
TEST(External, TypesWithoutDataMayBeShared) {
  TypeRef type = contiguous(0, predefined()[MPI_INT]);
  const Type* parts[2];
  for (int level = 0; level < 60; ++level) {
    parts[0] = parts[1] = type.get();
    type = struct_(List{1, 1}, List{0, 0}, parts);
  }
  EXPECT_EQ(external_size(*type, 1), 0);
  parts[0] = type.get();
  parts[1] = &predefined()[MPI_LONG];
  EXPECT_EQ(external_size(*struct_(List{1, 2}, List{0, 0}, parts), 3), 3 * 2 * 4);
}

// So that no type whose size fits has an external one that does not.
TEST(External, SizesAreNoLargerThanInMemory) {
  for (const Basic& basic : basics())
    EXPECT_LE(predefined()[basic.handle()].external_size(), predefined()[basic.handle()].size())
        << basic.name;
}

TEST(External, SizesBeyondTheLargestCountAreRefused) {
  expect_error(MPI_ERR_TYPE, "external32 size",
               [] { (void)external_size(predefined()[MPI_DOUBLE], INT64_MAX / 4); });
}

} // namespace
} // namespace macadam::datatype
