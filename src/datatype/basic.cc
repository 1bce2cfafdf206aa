// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/basic.h"

#include <type_traits>

namespace macadam::datatype {
namespace {

using enum BasicClass;

// Of the C integer types, whose names say less than their sizes.
template <class T>
constexpr Storage integer_storage() {
  static_assert(std::is_integral_v<T>);
  constexpr bool is_signed = std::is_signed_v<T>;
  switch (sizeof(T)) {
  case 1:
    return is_signed ? Storage::int8 : Storage::uint8;
  case 2:
    return is_signed ? Storage::int16 : Storage::uint16;
  case 4:
    return is_signed ? Storage::int32 : Storage::uint32;
  default:
    return is_signed ? Storage::int64 : Storage::uint64;
  }
}

// Handles of derived types, which are addresses, have no code: 0.
std::uint16_t code_of(MPI_Datatype handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  return value <= UINT16_MAX ? static_cast<std::uint16_t>(value) : std::uint16_t{0};
}

template <class T>
Basic row(MPI_Datatype handle, const char* name, BasicClass type_class, Storage storage,
          std::uint8_t external_size = sizeof(T)) {
  return {.code = code_of(handle),
          .name = name,
          .type_class = type_class,
          .storage = storage,
          .extent = sizeof(T),
          .alignment = alignof(T),
          .external_size = external_size};
}

template <class T>
Basic integer(MPI_Datatype handle, const char* name, BasicClass type_class,
              std::uint8_t external_size = sizeof(T)) {
  return row<T>(handle, name, type_class, integer_storage<T>(), external_size);
}

template <class Value, class Index>
Basic value_and_index(MPI_Datatype handle, const char* name, Storage storage, MPI_Datatype value,
                      MPI_Datatype index) {
  using Struct = Pair<Value, Index>;
  Basic basic = row<Struct>(handle, name, pair, storage, 0);
  basic.index_offset = offsetof(Struct, index);
  basic.value_code = code_of(value);
  basic.index_code = code_of(index);
  return basic;
}

// Fortran kinds are those of a compiler whose default INTEGER, REAL and LOGICAL have 4 bytes.
// No compiler here has the reals of MPI_REAL2 and MPI_COMPLEX4: op_kernels.h calculates for them.
// External sizes are named where they are not the native ones.
const Basic table[] = {
    row<char>(MPI_PACKED, "MPI_PACKED", packed, Storage::uint8),
    row<char>(MPI_BYTE, "MPI_BYTE", byte, Storage::uint8),
    row<wchar_t>(MPI_WCHAR, "MPI_WCHAR", character, integer_storage<wchar_t>(), 2),
    row<char>(MPI_CHARACTER, "MPI_CHARACTER", character, Storage::uint8),

    integer<MPI_Aint>(MPI_AINT, "MPI_AINT", multi_language, 8),
    integer<MPI_Count>(MPI_COUNT, "MPI_COUNT", multi_language),
    integer<MPI_Offset>(MPI_OFFSET, "MPI_OFFSET", multi_language),

    integer<char>(MPI_CHAR, "MPI_CHAR", c_integer),
    integer<signed char>(MPI_SIGNED_CHAR, "MPI_SIGNED_CHAR", c_integer),
    integer<unsigned char>(MPI_UNSIGNED_CHAR, "MPI_UNSIGNED_CHAR", c_integer),
    integer<short>(MPI_SHORT, "MPI_SHORT", c_integer),
    integer<unsigned short>(MPI_UNSIGNED_SHORT, "MPI_UNSIGNED_SHORT", c_integer),
    integer<int>(MPI_INT, "MPI_INT", c_integer),
    integer<unsigned>(MPI_UNSIGNED, "MPI_UNSIGNED", c_integer),
    integer<long>(MPI_LONG, "MPI_LONG", c_integer, 4),
    integer<unsigned long>(MPI_UNSIGNED_LONG, "MPI_UNSIGNED_LONG", c_integer, 4),
    integer<long long>(MPI_LONG_LONG, "MPI_LONG_LONG_INT", c_integer),
    integer<unsigned long long>(MPI_UNSIGNED_LONG_LONG, "MPI_UNSIGNED_LONG_LONG", c_integer),
    integer<std::int8_t>(MPI_INT8_T, "MPI_INT8_T", c_integer),
    integer<std::uint8_t>(MPI_UINT8_T, "MPI_UINT8_T", c_integer),
    integer<std::int16_t>(MPI_INT16_T, "MPI_INT16_T", c_integer),
    integer<std::uint16_t>(MPI_UINT16_T, "MPI_UINT16_T", c_integer),
    integer<std::int32_t>(MPI_INT32_T, "MPI_INT32_T", c_integer),
    integer<std::uint32_t>(MPI_UINT32_T, "MPI_UINT32_T", c_integer),
    integer<std::int64_t>(MPI_INT64_T, "MPI_INT64_T", c_integer),
    integer<std::uint64_t>(MPI_UINT64_T, "MPI_UINT64_T", c_integer),

    integer<std::int32_t>(MPI_INTEGER, "MPI_INTEGER", fortran_integer),
    integer<std::int8_t>(MPI_INTEGER1, "MPI_INTEGER1", fortran_integer),
    integer<std::int16_t>(MPI_INTEGER2, "MPI_INTEGER2", fortran_integer),
    integer<std::int32_t>(MPI_INTEGER4, "MPI_INTEGER4", fortran_integer),
    integer<std::int64_t>(MPI_INTEGER8, "MPI_INTEGER8", fortran_integer),
    row<Int128>(MPI_INTEGER16, "MPI_INTEGER16", fortran_integer, Storage::int128),

    row<float>(MPI_FLOAT, "MPI_FLOAT", floating, Storage::float32),
    row<double>(MPI_DOUBLE, "MPI_DOUBLE", floating, Storage::float64),
    row<long double>(MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", floating, Storage::float_long, 16),
    row<float>(MPI_REAL, "MPI_REAL", floating, Storage::float32),
    row<double>(MPI_DOUBLE_PRECISION, "MPI_DOUBLE_PRECISION", floating, Storage::float64),
    row<std::uint16_t>(MPI_REAL2, "MPI_REAL2", floating, Storage::float16),
    row<float>(MPI_REAL4, "MPI_REAL4", floating, Storage::float32),
    row<double>(MPI_REAL8, "MPI_REAL8", floating, Storage::float64),
    row<Float128>(MPI_REAL16, "MPI_REAL16", floating, Storage::float128),

    row<std::complex<float>>(MPI_C_COMPLEX, "MPI_C_COMPLEX", complex, Storage::complex32),
    row<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, "MPI_C_DOUBLE_COMPLEX", complex,
                              Storage::complex64),
    row<std::complex<long double>>(MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", complex,
                                   Storage::complex_long, 32),
    row<std::complex<float>>(MPI_CXX_FLOAT_COMPLEX, "MPI_CXX_FLOAT_COMPLEX", complex,
                             Storage::complex32),
    row<std::complex<double>>(MPI_CXX_DOUBLE_COMPLEX, "MPI_CXX_DOUBLE_COMPLEX", complex,
                              Storage::complex64),
    row<std::complex<long double>>(MPI_CXX_LONG_DOUBLE_COMPLEX, "MPI_CXX_LONG_DOUBLE_COMPLEX",
                                   complex, Storage::complex_long, 32),
    row<std::complex<float>>(MPI_COMPLEX, "MPI_COMPLEX", complex, Storage::complex32),
    row<std::complex<double>>(MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", complex,
                              Storage::complex64),
    row<HalfComplex>(MPI_COMPLEX4, "MPI_COMPLEX4", complex, Storage::complex16),
    row<std::complex<float>>(MPI_COMPLEX8, "MPI_COMPLEX8", complex, Storage::complex32),
    row<std::complex<double>>(MPI_COMPLEX16, "MPI_COMPLEX16", complex, Storage::complex64),
    row<QuadComplex>(MPI_COMPLEX32, "MPI_COMPLEX32", complex, Storage::complex128),

    row<bool>(MPI_C_BOOL, "MPI_C_BOOL", logical, Storage::boolean),
    row<bool>(MPI_CXX_BOOL, "MPI_CXX_BOOL", logical, Storage::boolean),
    integer<std::int32_t>(MPI_LOGICAL, "MPI_LOGICAL", logical),
    integer<std::int8_t>(MPI_LOGICAL1, "MPI_LOGICAL1", logical),
    integer<std::int16_t>(MPI_LOGICAL2, "MPI_LOGICAL2", logical),
    integer<std::int32_t>(MPI_LOGICAL4, "MPI_LOGICAL4", logical),
    integer<std::int64_t>(MPI_LOGICAL8, "MPI_LOGICAL8", logical),
    row<Int128>(MPI_LOGICAL16, "MPI_LOGICAL16", logical, Storage::int128),

    value_and_index<float, int>(MPI_FLOAT_INT, "MPI_FLOAT_INT", Storage::float_int32, MPI_FLOAT,
                                MPI_INT),
    value_and_index<double, int>(MPI_DOUBLE_INT, "MPI_DOUBLE_INT", Storage::double_int32,
                                 MPI_DOUBLE, MPI_INT),
    value_and_index<long, int>(MPI_LONG_INT, "MPI_LONG_INT", Storage::long_int32, MPI_LONG,
                               MPI_INT),
    value_and_index<int, int>(MPI_2INT, "MPI_2INT", Storage::int32_int32, MPI_INT, MPI_INT),
    value_and_index<short, int>(MPI_SHORT_INT, "MPI_SHORT_INT", Storage::short_int32, MPI_SHORT,
                                MPI_INT),
    value_and_index<long double, int>(MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT",
                                      Storage::long_double_int32, MPI_LONG_DOUBLE, MPI_INT),
    value_and_index<float, float>(MPI_2REAL, "MPI_2REAL", Storage::float_float, MPI_REAL, MPI_REAL),
    value_and_index<double, double>(MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION",
                                    Storage::double_double, MPI_DOUBLE_PRECISION,
                                    MPI_DOUBLE_PRECISION),
    value_and_index<std::int32_t, std::int32_t>(MPI_2INTEGER, "MPI_2INTEGER", Storage::int32_int32,
                                                MPI_INTEGER, MPI_INTEGER),
};

} // namespace

std::span<const Basic> basics() {
  return table;
}

const Basic* pair_of(MPI_Datatype value, MPI_Datatype index) {
  for (const Basic& basic : table) {
    if (basic.type_class != pair) continue;
    if (basic.value_code == code_of(value) && basic.index_code == code_of(index)) return &basic;
  }
  return nullptr;
}

const Basic* fortran_type(BasicClass type_class, MPI_Count size) {
  static const MPI_Datatype sized[] = {MPI_INTEGER1,  MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
                                       MPI_INTEGER16, MPI_REAL2,    MPI_REAL4,    MPI_REAL8,
                                       MPI_REAL16,    MPI_COMPLEX4, MPI_COMPLEX8, MPI_COMPLEX16,
                                       MPI_COMPLEX32};
  for (const Basic& basic : table) {
    if (basic.type_class != type_class || basic.extent != size) continue;
    for (const MPI_Datatype handle : sized) {
      if (basic.handle() == handle) return &basic;
    }
  }
  return nullptr;
}

const char* class_name(BasicClass type_class) {
  switch (type_class) {
  case c_integer:
    return "C integer";
  case fortran_integer:
    return "Fortran integer";
  case floating:
    return "floating point";
  case complex:
    return "complex";
  case logical:
    return "logical";
  case byte:
    return "byte";
  case multi_language:
    return "address, count or offset";
  case pair:
    return "value and index";
  case character:
    return "character";
  case packed:
    return "packed data";
  }
  return "unknown";
}

} // namespace macadam::datatype
