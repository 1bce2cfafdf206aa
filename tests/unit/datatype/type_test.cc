// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/type.h"

#include "datatype/constructors.h"
#include "expect_error.h"
#include "oracle.h"

#include <gtest/gtest.h>

#include <complex>
#include <set>

namespace macadam::datatype {
namespace {

using oracle::List;
using oracle::predefined;

TEST(PredefinedTypes, EveryConstantLeadsToItsTypeAndBack) {
  EXPECT_EQ(basics().size(), 70U);
  std::set<int> codes;
  for (const Basic& basic : basics()) {
    codes.insert(basic.code);
    const Type* type = predefined().find(basic.handle());
    ASSERT_NE(type, nullptr) << basic.name;
    EXPECT_EQ(type->handle(), basic.handle());
    EXPECT_EQ(type->name, basic.name);
    EXPECT_EQ(type->combiner(), MPI_COMBINER_NAMED);
    EXPECT_EQ(type->elementary(), type);
    EXPECT_TRUE(type->predefined());
    EXPECT_TRUE(type->committed());
    EXPECT_EQ(type->lb(), 0);
    EXPECT_EQ(type->extent(), basic.extent) << basic.name;
    EXPECT_EQ(type->alignment(), basic.alignment) << basic.name;
    EXPECT_EQ(type->contiguous(), type->size() == type->extent()) << basic.name;
  }
  EXPECT_EQ(codes.size(), basics().size());
}

TEST(PredefinedTypes, OtherHandlesAreNotFound) {
  EXPECT_EQ(predefined().find(MPI_DATATYPE_NULL), nullptr);
  EXPECT_EQ(predefined().find(nullptr), nullptr);
  EXPECT_EQ(predefined().find(reinterpret_cast<MPI_Datatype>(0x2ff)), nullptr);
  EXPECT_EQ(predefined().find(reinterpret_cast<MPI_Datatype>(0x300)), nullptr);
  int object = 0;
  EXPECT_EQ(predefined().find(reinterpret_cast<MPI_Datatype>(&object)), nullptr);
}

TEST(PredefinedTypes, SizesAreThoseOfTheLanguages) {
  const auto size = [](MPI_Datatype handle) { return predefined()[handle].size(); };
  EXPECT_EQ(size(MPI_CHAR), 1);
  EXPECT_EQ(size(MPI_WCHAR), static_cast<MPI_Count>(sizeof(wchar_t)));
  EXPECT_EQ(size(MPI_LONG), static_cast<MPI_Count>(sizeof(long)));
  EXPECT_EQ(size(MPI_LONG_DOUBLE), static_cast<MPI_Count>(sizeof(long double)));
  EXPECT_EQ(size(MPI_AINT), static_cast<MPI_Count>(sizeof(MPI_Aint)));
  EXPECT_EQ(size(MPI_C_DOUBLE_COMPLEX), 16);
  EXPECT_EQ(size(MPI_INTEGER), 4);
  EXPECT_EQ(size(MPI_LOGICAL), 4);
  EXPECT_EQ(size(MPI_DOUBLE_PRECISION), 8);
  EXPECT_EQ(size(MPI_REAL2), 2);
  EXPECT_EQ(size(MPI_INTEGER16), 16);
  EXPECT_EQ(size(MPI_COMPLEX32), 32);
  EXPECT_EQ(size(MPI_LOGICAL8), 8);
}

TEST(PredefinedTypes, PairsAreTheStructsThatUsersDeclare) {
  struct DoubleInt {
    double value;
    int index;
  };
  const Type& double_int = predefined()[MPI_DOUBLE_INT];
  EXPECT_EQ(double_int.size(), 12);
  EXPECT_EQ(double_int.extent(), static_cast<MPI_Count>(sizeof(DoubleInt)));
  EXPECT_EQ(double_int.true_extent(), 12);
  EXPECT_EQ(double_int.elements(), 2);
  EXPECT_FALSE(double_int.contiguous());

  const Type& short_int = predefined()[MPI_SHORT_INT];
  EXPECT_EQ(short_int.size(), 6);
  EXPECT_EQ(short_int.extent(), 8);
  EXPECT_EQ(short_int.true_extent(), 8);

  EXPECT_EQ(predefined()[MPI_LONG_DOUBLE_INT].extent(), 32);
  EXPECT_TRUE(predefined()[MPI_2INT].contiguous());
  EXPECT_TRUE(predefined()[MPI_2DOUBLE_PRECISION].contiguous());
}

TEST(PredefinedTypes, PairsAreFoundByTheirParts) {
  EXPECT_EQ(pair_of(MPI_FLOAT, MPI_INT)->handle(), MPI_FLOAT_INT);
  EXPECT_EQ(pair_of(MPI_INT, MPI_INT)->handle(), MPI_2INT);
  EXPECT_EQ(pair_of(MPI_REAL, MPI_REAL)->handle(), MPI_2REAL);
  EXPECT_EQ(pair_of(MPI_INT, MPI_FLOAT), nullptr);
  EXPECT_EQ(pair_of(MPI_DATATYPE_NULL, MPI_DATATYPE_NULL), nullptr);
  const TypeRef derived = contiguous(1, predefined()[MPI_INT]);
  EXPECT_EQ(pair_of(derived->handle(), derived->handle()), nullptr);
}

TEST(PredefinedTypes, FortranTypesAreFoundBySize) {
  EXPECT_EQ(fortran_type(BasicClass::floating, 8)->handle(), MPI_REAL8);
  EXPECT_EQ(fortran_type(BasicClass::fortran_integer, 4)->handle(), MPI_INTEGER4);
  EXPECT_EQ(fortran_type(BasicClass::complex, 16)->handle(), MPI_COMPLEX16);
  EXPECT_EQ(fortran_type(BasicClass::floating, 10), nullptr);
  EXPECT_EQ(fortran_type(BasicClass::pair, 8), nullptr);
}

TEST(Type, LivesAsLongAsSomethingRefersToIt) {
  TypeRef inner = contiguous(3, predefined()[MPI_INT]);
  Type* const raw = inner.get();
  TypeRef outer = vector(2, 1, 2, *inner);
  EXPECT_EQ(raw->references, 3U); // ours, the part's, the contents'
  {
    const TypeRef pending(*outer);
    EXPECT_EQ(outer->references, 2U);
  }
  inner = TypeRef();
  EXPECT_EQ(raw->references, 2U);
  EXPECT_EQ(outer->contents().types.at(0)->size(), 12);

  Type* released = outer.release();
  EXPECT_EQ(released->references, 1U);
  EXPECT_EQ(reinterpret_cast<Type*>(released->handle()), released);
  const TypeRef last = TypeRef::adopt(*released);
}

TEST(Type, MayBeNestedDeeperThanTheStack) {
  TypeRef type = contiguous(2, predefined()[MPI_INT]);
  for (int level = 0; level < 300'000; ++level)
    type = level % 2 == 0 ? contiguous(1, *type) : dup(*type);
  type->commit();
  EXPECT_TRUE(type->contiguous());
  EXPECT_EQ(type->size(), 8);
  EXPECT_EQ(elements_in(*type, 12), 3);
  EXPECT_EQ(bytes_of_first(*type, 3), 12);
  EXPECT_EQ(signature_of_first(*type, 2, 3), 3 * predefined()[MPI_INT].signature());
  type = TypeRef();
}

TEST(Type, ContiguousMeansOneBlockAtTheBuffer) {
  const Type& int_type = predefined()[MPI_INT];
  const auto is_contiguous = [](TypeRef type) {
    EXPECT_FALSE(type->contiguous()); // not known yet
    type->commit();
    return type->contiguous();
  };
  EXPECT_TRUE(is_contiguous(contiguous(5, int_type)));
  EXPECT_TRUE(is_contiguous(contiguous(0, int_type)));
  EXPECT_TRUE(is_contiguous(vector(3, 2, 2, int_type)));
  EXPECT_FALSE(is_contiguous(vector(3, 2, 3, int_type)));
  EXPECT_TRUE(is_contiguous(vector(1, 2, 3, int_type)));
  // Dense, but not at the buffer's address; in another order; with a gap behind it.
  EXPECT_FALSE(is_contiguous(hindexed(List{2}, List{8}, int_type)));
  EXPECT_FALSE(is_contiguous(hindexed(List{1, 1}, List{4, 0}, int_type)));
  EXPECT_FALSE(is_contiguous(resized(int_type, 0, 8)));
  EXPECT_TRUE(is_contiguous(resized(int_type, 0, 4)));
  EXPECT_TRUE(is_contiguous(hindexed(List{1, 2}, List{0, 4}, int_type)));
}

TEST(Type, ElementaryIsTheOneBasicTypeInside) {
  const Type& int_type = predefined()[MPI_INT];
  const Type& double_type = predefined()[MPI_DOUBLE];
  const Type& double_int = predefined()[MPI_DOUBLE_INT];
  EXPECT_EQ(vector(2, 1, 2, *contiguous(2, int_type))->elementary(), &int_type);
  EXPECT_EQ(contiguous(2, double_int)->elementary(), &double_int);
  EXPECT_EQ(contiguous(0, int_type)->elementary(), nullptr);
  const Type* mixed[] = {&int_type, &double_type};
  EXPECT_EQ(struct_(List{1, 1}, List{0, 8}, mixed)->elementary(), nullptr);
  EXPECT_EQ(struct_(List{0, 1}, List{0, 8}, mixed)->elementary(), &double_type);
  const TypeRef both = struct_(List{1, 1}, List{0, 8}, mixed);
  const Type* nested[] = {both.get(), &double_type};
  EXPECT_EQ(struct_(List{1, 1}, List{0, 16}, nested)->elementary(), nullptr);
}

TEST(Signature, IsTheSequenceOfBasicTypesWhateverTheLayout) {
  const Type& int_type = predefined()[MPI_INT];
  const Type& double_type = predefined()[MPI_DOUBLE];
  const Type* int_double[] = {&int_type, &double_type};
  const Type* double_int[] = {&double_type, &int_type};
  const TypeRef a = struct_(List{2, 1}, List{0, 8}, int_double);
  const TypeRef b = struct_(List{1, 2}, List{0, 8}, double_int);
  const Type* spelled[] = {&int_type, &int_type, &double_type, &int_type, &int_type, &double_type};
  const TypeRef twice = struct_(List{1, 1, 1, 1, 1, 1}, List{0, 50, 8, 20, 90, 70}, spelled);
  EXPECT_FALSE(a->signature() == b->signature());
  EXPECT_EQ(2 * a->signature(), twice->signature());
  EXPECT_EQ(vector(2, 1, 7, *a)->signature(), twice->signature());
  EXPECT_EQ(12 * int_type.signature(), contiguous(3, *vector(2, 2, 4, int_type))->signature());
  EXPECT_FALSE(11 * int_type.signature() == 12 * int_type.signature());
  EXPECT_EQ(int_type.signature(), predefined()[MPI_INTEGER].signature());
  EXPECT_FALSE(int_type.signature() == predefined()[MPI_FLOAT].signature());
}

TEST(Signature, OfTheFirstElementsIsThatOfATypeOfSoMany) {
  const Type& int_type = predefined()[MPI_INT];
  const Type& double_type = predefined()[MPI_DOUBLE];
  const Type* int_double[] = {&int_type, &double_type};
  // 2 ints and a double, three times: with holes, and all of it twice.
  const TypeRef inner = struct_(List{2, 1}, List{0, 8}, int_double);
  const TypeRef whole = vector(3, 1, 2, *inner);
  Signature first;
  for (MPI_Count elements = 0; elements <= 18; ++elements) {
    EXPECT_EQ(signature_of_first(*whole, 2, elements), first) << elements;
    first = first + (elements % 3 == 2 ? double_type : int_type).signature();
  }
  // A pair is cut between value and index.
  EXPECT_EQ(signature_of_first(predefined()[MPI_DOUBLE_INT], 3, 3),
            double_type.signature() + int_type.signature() + double_type.signature());
}

// Basic elements up to a byte, counted one by one.
MPI_Count literal_elements(const oracle::TypeMap& map, MPI_Count bytes) {
  MPI_Count elements = 0;
  while (bytes > 0) {
    for (const oracle::Entry& entry : map.entries) {
      if (bytes == 0) break;
      if (bytes < entry.size) return MPI_UNDEFINED;
      bytes -= entry.size;
      ++elements;
    }
  }
  return elements;
}

TEST(ElementsIn, CountsBasicElementsUpToEveryByte) {
  std::mt19937 random(7);
  int checked = 0;
  for (int i = 0; i < 200; ++i) {
    const oracle::Sample sample = oracle::random_sample(random, i % 5);
    EXPECT_EQ(elements_in(*sample.type, 0), 0);
    if (sample.map.size() == 0) {
      EXPECT_EQ(elements_in(*sample.type, 4), MPI_UNDEFINED);
      continue;
    }
    EXPECT_EQ(sample.type->elements(), static_cast<MPI_Count>(sample.map.entries.size()));
    for (MPI_Count bytes = 1; bytes < std::min<MPI_Count>(3 * sample.map.size(), 500); ++bytes) {
      ASSERT_EQ(elements_in(*sample.type, bytes), literal_elements(sample.map, bytes)) << bytes;
      ++checked;
    }
  }
  EXPECT_GT(checked, 10000);
}

TEST(BytesOfFirst, AreThoseThatHoldSoManyElements) {
  std::mt19937 random(8);
  for (int i = 0; i < 200; ++i) {
    const oracle::Sample sample = oracle::random_sample(random, i % 5);
    EXPECT_EQ(bytes_of_first(*sample.type, 0), 0);
    if (sample.map.size() == 0) {
      EXPECT_EQ(bytes_of_first(*sample.type, 4), 0);
      continue;
    }
    MPI_Count bytes = 0;
    MPI_Count elements = 0;
    while (bytes < std::min<MPI_Count>(3 * sample.map.size(), 500)) {
      const auto entry = static_cast<std::size_t>(elements) % sample.map.entries.size();
      bytes += sample.map.entries[entry].size;
      ASSERT_EQ(bytes_of_first(*sample.type, ++elements), bytes) << elements;
    }
  }
  expect_error(MPI_ERR_COUNT, "MPI_DOUBLE",
               [&] { (void)bytes_of_first(predefined()[MPI_DOUBLE], MPI_Count{1} << 62); });
}

// As fast of many elements as of few.
TEST(BytesOfFirst, AreNotSearched) {
  const TypeRef row = contiguous(MPI_Count{1} << 60, predefined()[MPI_INT]);
  EXPECT_EQ(bytes_of_first(*row, (MPI_Count{1} << 59) + 5), 4 * ((MPI_Count{1} << 59) + 5));
  const TypeRef longer = contiguous(3 * (MPI_Count{1} << 60), predefined()[MPI_INT16_T]);
  expect_error(MPI_ERR_COUNT, "basic elements",
               [&] { (void)bytes_of_first(*longer, 5 * (MPI_Count{1} << 60) + 5); });
}

TEST(PackedSize, RefusesWhatDoesNotFit) {
  const Type& double_type = predefined()[MPI_DOUBLE];
  EXPECT_EQ(packed_size(double_type, INT64_MAX / 8), INT64_MAX / 8 * 8);
  expect_error(MPI_ERR_COUNT, "MPI_DOUBLE", [&] { (void)packed_size(double_type, INT64_MAX / 4); });
}

TEST(Describe, NamesTheTypeOrItsConstructor) {
  EXPECT_EQ(describe(predefined()[MPI_INT]), "MPI_INT");
  const TypeRef type = vector(2, 1, 2, predefined()[MPI_INT]);
  EXPECT_EQ(describe(*type), "a type made by MPI_Type_vector");
  type->name = "halo";
  EXPECT_EQ(describe(*type), "halo");
}

} // namespace
} // namespace macadam::datatype
