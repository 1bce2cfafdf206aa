// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

namespace macadam::datatype {

// Types beyond strict ISO C++ that optional Fortran datatypes need.
__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UnsignedInt128;
__extension__ typedef __float128 Float128;

// Complex numbers of 2 and 16 byte parts; std::complex is specified for the standard types only.
struct HalfComplex {
  std::uint16_t re, im;
};
struct QuadComplex {
  Float128 re, im;
};

// The value and index of MPI_MINLOC and MPI_MAXLOC, laid out as the C struct that users declare.
template <class Value, class Index>
struct Pair {
  Value value;
  Index index;
};

// What the standard's table of allowed operators distinguishes (section "Predefined Reduction
// Operations"). `character` and `packed` take part in no reduction; MPI_CHAR, which the standard
// counts among the former, is an integer here, as other libraries have it.
enum class BasicClass : std::uint8_t {
  c_integer,
  fortran_integer,
  floating,
  complex,
  logical,
  byte,
  multi_language,
  pair,
  character,
  packed,
};

// How a basic type is stored; kernels and byte swapping are chosen by this.
enum class Storage : std::uint8_t {
  int8,
  int16,
  int32,
  int64,
  int128,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  float_long, // long double: 80 bits in 16 bytes on x86-64
  float128,
  complex16,
  complex32,
  complex64,
  complex_long,
  complex128,
  boolean, // C and C++ bool
  float_int32,
  double_int32,
  long_int32,
  int32_int32,
  short_int32,
  long_double_int32,
  float_float,
  double_double,
  count_,
};

// One predefined datatype of the ABI.
struct Basic {
  std::uint16_t code; // value of the handle constant
  const char* name;   // "MPI_INT"
  BasicClass type_class;
  Storage storage;
  std::uint8_t extent;           // bytes from one element to the next in an array
  std::uint8_t alignment;        // bytes
  std::uint8_t external_size;    // bytes in the "external32" representation
  std::uint8_t index_offset = 0; // pairs: bytes from value to index
  std::uint16_t value_code = 0;  // pairs: handle constants of the two parts
  std::uint16_t index_code = 0;

  [[nodiscard]] MPI_Datatype handle() const {
    return reinterpret_cast<MPI_Datatype>(static_cast<std::uintptr_t>(code));
  }
};

// Every predefined datatype, parts of pairs before the pairs.
[[nodiscard]] std::span<const Basic> basics();

// All predefined datatype handles lie in [first_basic_code, first_basic_code + basic_codes).
inline constexpr std::uintptr_t first_basic_code = 0x200;
inline constexpr std::size_t basic_codes = 0x100;

// The pair type of these two parts, such as MPI_FLOAT_INT; null if there is none
// (MPI_Type_get_value_index).
[[nodiscard]] const Basic* pair_of(MPI_Datatype value, MPI_Datatype index);

// The Fortran type of this class (integer, floating or complex) with `size` bytes, such as
// MPI_REAL8; null if there is none (MPI_Type_match_size).
[[nodiscard]] const Basic* fortran_type(BasicClass type_class, MPI_Count size);

// "C integer", "complex number", ... for messages.
[[nodiscard]] const char* class_name(BasicClass type_class);

} // namespace macadam::datatype
