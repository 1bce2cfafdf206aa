// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/basic.h"

#include <mpi.h>

#include <cstdint>

namespace macadam::datatype {

// The sequence of basic types in a type, as its length and a polynomial hash: the hash of two
// sequences joined follows from the two hashes, so no sequence is ever written out. Equal sequences
// have equal signatures; unequal ones differ but for a 2^-60 chance. Types count as equal if they
// are stored alike: MPI_INT, MPI_INT32_T and MPI_INTEGER match, and so do bytes with and without a
// sign, as MPI_CHAR and MPI_CHARACTER.
struct Signature {
  MPI_Count elements = 0;
  std::uint64_t hash = 0;
  std::uint64_t power = 1; // base^elements

  [[nodiscard]] static Signature of(Storage storage);
  friend Signature operator+(const Signature& first, const Signature& second);
  // `count` copies in a row.
  friend Signature operator*(MPI_Count count, const Signature& signature);
  friend bool operator==(const Signature&, const Signature&) = default;
};

} // namespace macadam::datatype
