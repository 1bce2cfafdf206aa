// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/external.h"

#include "base/copy.h"
#include "base/error.h"
#include "datatype/wide.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

namespace macadam::datatype {
namespace {

static_assert(std::endian::native == std::endian::little, "external32 is the native form here");

// What a basic type consists of for the conversion: `parts` values, each one integer or float.
struct Scalars {
  std::size_t parts;
  std::size_t native;   // bytes of a part here
  std::size_t external; // bytes of a part there
  enum { bits, signed_integer, unsigned_integer, extended } conversion;
};

Scalars scalars(const Basic& basic) {
  const std::size_t parts = basic.type_class == BasicClass::complex ? 2 : 1;
  Scalars result{parts, basic.extent / parts, basic.external_size / parts, Scalars::bits};
  switch (basic.storage) {
  case Storage::float_long:
  case Storage::complex_long:
    result.conversion = Scalars::extended;
    break;
  case Storage::int32:
  case Storage::int64:
    if (result.native == result.external) break;
    // A wide character is a number of Unicode, never negative.
    result.conversion = basic.type_class == BasicClass::character ? Scalars::unsigned_integer
                                                                  : Scalars::signed_integer;
    break;
  case Storage::uint32:
  case Storage::uint64:
    if (result.native == result.external) break;
    result.conversion = Scalars::unsigned_integer;
    break;
  default:
    break;
  }
  return result;
}

void copy_reversed(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::reverse_copy(from, from + bytes, to);
}

// A shorter integer on the other side: the low bytes, if they hold the value.
void shorten(std::byte* to, const std::byte* from, const Scalars& s, const Basic& basic) {
  const std::byte sign_bit = from[s.external - 1] & std::byte{0x80};
  const bool negative = s.conversion == Scalars::signed_integer && sign_bit != std::byte{0};
  const std::byte filler = negative ? std::byte{0xff} : std::byte{0};
  for (std::size_t i = s.external; i < s.native; ++i) {
    if (from[i] != filler) {
      base::fail(
          MPI_ERR_CONVERSION,
          "a value of {} does not fit the {} bytes that external32 has for it; use a type of "
          "fixed size, such as MPI_INT64_T",
          basic.name, s.external);
    }
  }
  copy_reversed(to, from, s.external);
}

void lengthen(std::byte* to, const std::byte* from, const Scalars& s) {
  const bool negative =
      s.conversion == Scalars::signed_integer && (from[0] & std::byte{0x80}) != std::byte{0};
  copy_reversed(to, from, s.external);
  std::fill(to + s.external, to + s.native, negative ? std::byte{0xff} : std::byte{0});
}

// long double is IEEE binary128 there; here it may be the 80 bit format, whose other bytes are
// padding.
constexpr std::size_t extended_bytes =
    std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);

void extended_out(std::byte* to, const std::byte* from) {
  long double native = 0;
  std::memcpy(&native, from, sizeof native);
  const Float128 value = native;
  std::byte bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  copy_reversed(to, bytes, sizeof value);
}

void extended_in(std::byte* to, const std::byte* from) {
  Float128 value = 0;
  std::byte bytes[sizeof value];
  copy_reversed(bytes, from, sizeof value);
  std::memcpy(&value, bytes, sizeof value);
  const auto native = static_cast<long double>(value);
  std::memset(to, 0, sizeof native);
  base::copy(to, &native, extended_bytes);
}

void to_external(const Basic& basic, const std::byte* from, MPI_Count count, std::byte* to) {
  const Scalars s = scalars(basic);
  for (MPI_Count left = count * static_cast<MPI_Count>(s.parts); left > 0; --left) {
    if (s.conversion == Scalars::bits) {
      copy_reversed(to, from, s.native);
    } else if (s.conversion == Scalars::extended) {
      extended_out(to, from);
    } else {
      shorten(to, from, s, basic);
    }
    from += s.native;
    to += s.external;
  }
}

void to_native(const Basic& basic, std::byte* to, MPI_Count count, const std::byte* from) {
  const Scalars s = scalars(basic);
  for (MPI_Count left = count * static_cast<MPI_Count>(s.parts); left > 0; --left) {
    if (s.conversion == Scalars::bits) {
      copy_reversed(to, from, s.native);
    } else if (s.conversion == Scalars::extended) {
      extended_in(to, from);
    } else {
      lengthen(to, from, s);
    }
    from += s.external;
    to += s.native;
  }
}

bool is_scalar(const Type& type) {
  return type.predefined() && type.basic()->type_class != BasicClass::pair;
}

// Calls visit(basic, address, n) for each array of n basic elements, in packing order. Without
// recursion, for nesting may be deeper than the stack.
template <class Visit>
void walk(const Type& type, std::uintptr_t address, MPI_Count count, const Visit& visit) {
  struct Level {
    const Type* type;
    std::uintptr_t element;    // address
    std::uintptr_t repetition; // address
    MPI_Count elements;        // left, with this one
    MPI_Count repetitions;     // left of this element, with this one
    std::size_t part;          // next
  };
  std::vector<Level> levels;
  const auto enter = [&](const Type& inner, std::uintptr_t at, MPI_Count n) {
    if (is_scalar(inner))
      visit(*inner.basic(), at, n);
    else if (inner.size() != 0 && n != 0) // without data: however many there are
      levels.push_back({&inner, at, at, n, inner.shape().repeat, 0});
  };
  enter(type, address, count);
  while (!levels.empty()) {
    Level& level = levels.back();
    const Shape& shape = level.type->shape();
    if (level.part < shape.parts.size()) {
      const Part& part = shape.parts[level.part++];
      enter(*part.type, level.repetition + static_cast<std::uintptr_t>(part.displacement),
            part.length);
    } else if (--level.repetitions != 0) {
      level.repetition += static_cast<std::uintptr_t>(shape.stride);
      level.part = 0;
    } else if (--level.elements != 0) {
      level.element += static_cast<std::uintptr_t>(level.type->extent());
      level.repetition = level.element;
      level.repetitions = shape.repeat;
      level.part = 0;
    } else {
      levels.pop_back();
    }
  }
}

} // namespace

MPI_Count external_size(const Type& type, MPI_Count count) {
  return narrow(Wide{count} * type.external_size(), "external32 size");
}

void pack_external(const Type& type, const void* buffer, MPI_Count count, void* out) {
  auto* to = static_cast<std::byte*>(out);
  walk(type, reinterpret_cast<std::uintptr_t>(buffer), count,
       [&to](const Basic& basic, std::uintptr_t from, MPI_Count n) {
         to_external(basic, reinterpret_cast<const std::byte*>(from), n, to);
         to += n * basic.external_size;
       });
}

MPI_Count unpack_external(const Type& type, const void* in, void* buffer, MPI_Count count,
                          MPI_Count bytes) {
  const auto* from = static_cast<const std::byte*>(in);
  MPI_Count native = 0;
  walk(type, reinterpret_cast<std::uintptr_t>(buffer), count,
       [&](const Basic& basic, std::uintptr_t to, MPI_Count n) {
         const MPI_Count whole = std::min<MPI_Count>(n, bytes / basic.external_size);
         to_native(basic, reinterpret_cast<std::byte*>(to), whole, from);
         from += whole * basic.external_size;
         native += whole * basic.extent;
         bytes -= whole * basic.external_size;
         if (whole < n) bytes = 0; // nothing behind one that is cut
       });
  return native;
}

} // namespace macadam::datatype
