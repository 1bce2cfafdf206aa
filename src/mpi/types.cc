// SPDX-License-Identifier: BSD-3-Clause
// Datatypes: made, committed, freed. The rules of the constructors are in datatype/constructors.h.
#include "mpi/types.h"
#include "datatype/constructors.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <algorithm>
#include <cfloat>
#include <iterator>
#include <vector>

namespace macadam::mpi {
namespace {

using datatype::Counts;
using datatype::Type;
using datatype::TypeRef;

// The user's array in the width that the constructors take: itself if it is that, else a copy.
class WideCounts {
 public:
  WideCounts(CountArray array, MPI_Count length) {
    const auto n = static_cast<std::size_t>(length);
    if (array.large) {
      view_ = {static_cast<const MPI_Count*>(array.data), n};
      return;
    }
    copy_.reserve(n);
    for (std::size_t i = 0; i < n; ++i)
      copy_.push_back(array[i]);
    view_ = copy_;
  }
  WideCounts(const WideCounts&) = delete;
  WideCounts& operator=(const WideCounts&) = delete;
  operator Counts() const { return view_; }

 private:
  std::vector<MPI_Count> copy_;
  Counts view_;
};

MPI_Datatype hand_out(TypeRef type) {
  return type.release()->handle();
}

Type& type_of(const Library& self, MPI_Datatype handle) {
  return *self.find<Type>(handle, base::ObjectKind::datatype);
}

} // namespace

bool permanent(const Type& type) {
  const int combiner = type.combiner();
  return type.predefined() || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_COMPLEX || combiner == MPI_COMBINER_F90_INTEGER;
}

void type_contiguous(Library&, MPI_Count count, const Type& old, MPI_Datatype* newtype,
                     bool large) {
  *newtype = hand_out(datatype::contiguous(count, old, large));
}

void type_vector(Library&, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                 const Type& old, MPI_Datatype* newtype, bool large) {
  *newtype = hand_out(datatype::vector(count, blocklength, stride, old, large));
}

void type_create_hvector(Library&, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                         const Type& old, MPI_Datatype* newtype, bool large) {
  *newtype = hand_out(datatype::hvector(count, blocklength, stride, old, large));
}

void type_indexed(Library&, MPI_Count count, CountArray blocklengths, CountArray displacements,
                  const Type& old, MPI_Datatype* newtype, bool large) {
  const WideCounts lengths(blocklengths, count), places(displacements, count);
  *newtype = hand_out(datatype::indexed(lengths, places, old, large));
}

void type_create_hindexed(Library&, MPI_Count count, CountArray blocklengths,
                          CountArray displacements, const Type& old, MPI_Datatype* newtype,
                          bool large) {
  const WideCounts lengths(blocklengths, count), places(displacements, count);
  *newtype = hand_out(datatype::hindexed(lengths, places, old, large));
}

void type_create_indexed_block(Library&, MPI_Count count, MPI_Count blocklength,
                               CountArray displacements, const Type& old, MPI_Datatype* newtype,
                               bool large) {
  const WideCounts places(displacements, count);
  *newtype = hand_out(datatype::indexed_block(blocklength, places, old, large));
}

void type_create_hindexed_block(Library&, MPI_Count count, MPI_Count blocklength,
                                CountArray displacements, const Type& old, MPI_Datatype* newtype,
                                bool large) {
  const WideCounts places(displacements, count);
  *newtype = hand_out(datatype::hindexed_block(blocklength, places, old, large));
}

void type_create_struct(Library& self, MPI_Count count, CountArray blocklengths,
                        CountArray displacements, const MPI_Datatype types[], MPI_Datatype* newtype,
                        bool large) {
  const WideCounts lengths(blocklengths, count), places(displacements, count);
  std::vector<const Type*> members;
  for (MPI_Count i = 0; i < count; ++i) {
    const Type* type = self.find<Type>(types[i], base::ObjectKind::datatype);
    if (type == nullptr) {
      base::fail(MPI_ERR_TYPE, "array_of_types[{}] is no datatype, or one that was freed", i);
    }
    members.push_back(type);
  }
  *newtype = hand_out(datatype::struct_(lengths, places, members, large));
}

void type_create_resized(Library&, const Type& old, MPI_Count lb, MPI_Count extent,
                         MPI_Datatype* newtype, bool large) {
  *newtype = hand_out(datatype::resized(old, lb, extent, large));
}

void type_create_subarray(Library&, int ndims, CountArray sizes, CountArray subsizes,
                          CountArray starts, int order, const Type& old, MPI_Datatype* newtype,
                          bool large) {
  const WideCounts all(sizes, ndims), part(subsizes, ndims), first(starts, ndims);
  *newtype = hand_out(datatype::subarray(all, part, first, order, old, large));
}

void type_create_darray(Library&, int size, int rank, int ndims, CountArray gsizes,
                        const int distribs[], const int dargs[], const int psizes[], int order,
                        const Type& old, MPI_Datatype* newtype, bool large) {
  const auto n = static_cast<std::size_t>(ndims);
  const WideCounts global(gsizes, ndims);
  const datatype::Distribution distribution{size,       rank,        global, {distribs, n},
                                            {dargs, n}, {psizes, n}, order};
  *newtype = hand_out(datatype::darray(distribution, old, large));
}

void type_dup(Library&, const Type& old, MPI_Datatype* newtype) {
  TypeRef copy = datatype::dup(old);
  copy_attributes(old, *copy);
  *newtype = hand_out(std::move(copy));
}

void type_commit(Library& self, MPI_Datatype* datatype) {
  type_of(self, *datatype).commit();
}

void type_free(Library& self, MPI_Datatype* datatype) {
  Type& type = type_of(self, *datatype);
  if (permanent(type)) {
    base::fail(MPI_ERR_TYPE, "{} is predefined; it must not be freed", describe(type));
  }
  if (type.handles == 0) { // it lives on in others
    base::fail(MPI_ERR_TYPE, "{} was freed before; set the handle to MPI_DATATYPE_NULL then",
               describe(type));
  }
  if (type.handles == 1) {
    drop_attributes(type);
    self.handles.forget(*datatype);
  }
  --type.handles; // after the callbacks, which may refuse
  // Operations in flight and types made from this one hold references of their own.
  const TypeRef last = TypeRef::adopt(type);
  *datatype = MPI_DATATYPE_NULL;
}

// --- Predefined types by their properties
// ----------------------------------------------------------

namespace {

// Decimal digits and exponents that the Fortran kinds hold.
struct RealKind {
  int digits, exponent;
  MPI_Datatype real, complex;
};
const RealKind real_kinds[] = {
    {6, 37, MPI_REAL4, MPI_COMPLEX8},
    {15, 307, MPI_REAL8, MPI_COMPLEX16},
#if LDBL_MANT_DIG == 64 // kind 10 of compilers that have the processor's own
    {18, 4931, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
#endif
    {33, 4931, MPI_REAL16, MPI_COMPLEX32},
};
struct IntegerKind {
  int digits;
  MPI_Datatype type;
};
const IntegerKind integer_kinds[] = {{2, MPI_INTEGER1},
                                     {4, MPI_INTEGER2},
                                     {9, MPI_INTEGER4},
                                     {18, MPI_INTEGER8},
                                     {38, MPI_INTEGER16}};

// An unnamed predefined type: `base` under another combiner. Equal arguments give the same handle.
MPI_Datatype f90_type(Library& self, int combiner, std::vector<int> arguments, MPI_Datatype base) {
  TypeRef& known = self.f90_types[{combiner, arguments}];
  if (!known) {
    datatype::Shape shape;
    shape.parts.push_back({0, 1, TypeRef(self.types[base])});
    known = Type::make(combiner, {std::move(arguments), {}, {}, {}}, std::move(shape));
    known->commit();
  }
  return known->handle();
}

const RealKind& real_kind(const Library& self, int p, int r) {
  if (p == MPI_UNDEFINED && r == MPI_UNDEFINED) {
    base::fail(MPI_ERR_ARG, "p and r are both MPI_UNDEFINED; one must be given");
  }
  for (const RealKind& kind : real_kinds) {
    const bool fits =
        (p == MPI_UNDEFINED || p <= kind.digits) && (r == MPI_UNDEFINED || r <= kind.exponent);
    if (fits && self.types.find(kind.real) != nullptr) return kind;
  }
  base::fail(MPI_ERR_ARG,
             "no real type has {} digits and an exponent range of {}; the largest has {} and {}", p,
             r, std::rbegin(real_kinds)->digits, std::rbegin(real_kinds)->exponent);
}

} // namespace

void type_create_f90_real(Library& self, int p, int r, MPI_Datatype* newtype) {
  *newtype = f90_type(self, MPI_COMBINER_F90_REAL, {p, r}, real_kind(self, p, r).real);
}

void type_create_f90_complex(Library& self, int p, int r, MPI_Datatype* newtype) {
  *newtype = f90_type(self, MPI_COMBINER_F90_COMPLEX, {p, r}, real_kind(self, p, r).complex);
}

void type_create_f90_integer(Library& self, int r, MPI_Datatype* newtype) {
  for (const IntegerKind& kind : integer_kinds) {
    if (r <= kind.digits && self.types.find(kind.type) != nullptr) {
      *newtype = f90_type(self, MPI_COMBINER_F90_INTEGER, {r}, kind.type);
      return;
    }
  }
  base::fail(MPI_ERR_ARG, "no integer type has {} decimal digits; the largest has 38", r);
}

void type_match_size(Library& self, int typeclass, int size, MPI_Datatype* datatype) {
  static const MPI_Datatype integers[] = {MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
                                          MPI_INTEGER16};
  static const MPI_Datatype reals[] = {MPI_REAL2, MPI_REAL4, MPI_REAL8, MPI_REAL16};
  static const MPI_Datatype complexes[] = {MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16,
                                           MPI_COMPLEX32};
  std::span<const MPI_Datatype> candidates;
  switch (typeclass) {
  case MPI_TYPECLASS_INTEGER:
    candidates = integers;
    break;
  case MPI_TYPECLASS_REAL:
    candidates = reals;
    break;
  case MPI_TYPECLASS_COMPLEX:
    candidates = complexes;
    break;
  default:
    base::fail(MPI_ERR_ARG,
               "typeclass is {}, which is none of MPI_TYPECLASS_INTEGER ({}), REAL ({}), "
               "COMPLEX ({})",
               typeclass, MPI_TYPECLASS_INTEGER, MPI_TYPECLASS_REAL, MPI_TYPECLASS_COMPLEX);
  }
  for (const MPI_Datatype candidate : candidates) {
    const Type* type = self.types.find(candidate);
    if (type != nullptr && type->size() == size) {
      *datatype = candidate;
      return;
    }
  }
  base::fail(MPI_ERR_ARG, "no type of this class has {} bytes", size);
}

void type_get_value_index(Library&, const Type& value_type, const Type& index_type,
                          MPI_Datatype* pair_type) {
  *pair_type = MPI_DATATYPE_NULL;
  if (!value_type.predefined() || !index_type.predefined()) return;
  for (const datatype::Basic& basic : datatype::basics()) {
    if (basic.type_class == datatype::BasicClass::pair &&
        basic.value_code == value_type.basic()->code &&
        basic.index_code == index_type.basic()->code) {
      *pair_type = basic.handle();
    }
  }
}

} // namespace macadam::mpi
