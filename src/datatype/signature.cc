// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/signature.h"

namespace macadam::datatype {
namespace {

// A Mersenne prime, so that sums and products of residues fit in 64 and 128 bits.
constexpr std::uint64_t modulus = (std::uint64_t{1} << 61) - 1;
constexpr std::uint64_t base = 0x0f3a'9d5c'71e2'b487;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(UnsignedInt128{a} * b % modulus);
}

} // namespace

Signature Signature::of(Storage storage) {
  if (storage == Storage::int8) storage = Storage::uint8;
  // Any fixed spreading of the few values over the residues will do.
  const std::uint64_t digit =
      multiply(static_cast<std::uint64_t>(storage) + 1, 0x1c64'e6d5'9b3f'2a71);
  return {.elements = 1, .hash = digit, .power = base};
}

Signature operator+(const Signature& first, const Signature& second) {
  return {.elements = first.elements + second.elements,
          .hash = (multiply(first.hash, second.power) + second.hash) % modulus,
          .power = multiply(first.power, second.power)};
}

Signature operator*(MPI_Count count, const Signature& signature) {
  Signature result;
  Signature doubled = signature; // signature repeated 2^i times
  for (; count > 0; count /= 2) {
    if (count % 2 != 0) result = result + doubled;
    if (count > 1) doubled = doubled + doubled;
  }
  return result;
}

} // namespace macadam::datatype
