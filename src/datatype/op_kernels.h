// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/op.h"

#include <bit>
#include <cstdint>
#include <type_traits>

// The loops behind the predefined operations: one for every operation and way of storage for which
// it makes sense. What the standard allows of these is decided elsewhere, by class.

namespace macadam::datatype {

// std::complex multiplies with recovery of infinities, in a function call; and it is not specified
// for parts beyond the standard types. Complex numbers are computed as their two parts.
template <class Part>
struct Complex {
  Part re, im;
};

// A real of 16 bits (IEEE binary16). Not every compiler has it, and those that do may convert it by
// calls. Calculated as float, whose sums and products round to the right ones.
class Half {
 public:
  Half(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = word & 0x7fff'ffff;
    std::uint32_t bits = 0;
    if (magnitude > 0x7f80'0000) { // no number
      bits = 0x7e00;
    } else if (magnitude >= 0x4780'0000) { // from 2^16 on
      bits = 0x7c00;
    } else if (magnitude < 0x3880'0000) { // below 2^-14: the sum's last bit is worth 2^-24
      bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
             std::bit_cast<std::uint32_t>(0.5F);
    } else { // to nearest, or even; what carries into the exponent may make it infinite
      bits = (magnitude - 0x3800'0000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
    }
    bits_ = static_cast<std::uint16_t>(bits | (word >> 16 & 0x8000));
  }

  operator float() const {
    const std::uint32_t exponent = bits_ >> 10 & 0x1f;
    const std::uint32_t fraction = bits_ & 0x3ff;
    const std::uint32_t sign = std::uint32_t{bits_} >> 15 << 31;
    const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
    const std::uint32_t normal = (exponent == 31 ? 255 : exponent + 112) << 23 | fraction << 13;
    return std::bit_cast<float>((exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : normal) |
                                sign);
  }

 private:
  std::uint16_t bits_;
};

template <class T>
concept Integer =
    std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, UnsignedInt128>;
template <class T>
concept Real = Integer<T> || std::is_floating_point_v<T> || std::is_same_v<T, Float128> ||
    std::is_same_v<T, Half>;

// Signed sums and products wrap around: overflow is the user's error, but not undefined behaviour
// in our loops. The narrow types go through `unsigned`, for they would be promoted to a signed int.
template <Integer T>
using Wrapping = std::conditional_t<
    sizeof(T) <= sizeof(unsigned), unsigned,
    std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, UnsignedInt128>>;

struct Max {
  template <Real T>
  static T combine(T a, T b) {
    return a > b ? a : b;
  }
};

struct Min {
  template <Real T>
  static T combine(T a, T b) {
    return a < b ? a : b;
  }
};

struct Sum {
  template <Real T>
  static T combine(T a, T b) {
    return a + b;
  }
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
  template <class Part>
  static Complex<Part> combine(Complex<Part> a, Complex<Part> b) {
    return {a.re + b.re, a.im + b.im};
  }
};

struct Product {
  template <Real T>
  static T combine(T a, T b) {
    return a * b;
  }
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
  template <class Part>
  static Complex<Part> combine(Complex<Part> a, Complex<Part> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};

struct LogicalAnd {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) & (b != 0));
  }
};

struct LogicalOr {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) | (b != 0));
  }
};

struct LogicalXor {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>((a != 0) ^ (b != 0));
  }
};

struct BitAnd {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct BitOr {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct BitXor {
  template <Integer T>
  static T combine(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// Of equal values the lower index wins.
struct MinLocation {
  template <class Value, class Index>
  static Pair<Value, Index> combine(Pair<Value, Index> a, Pair<Value, Index> b) {
    if (a.value == b.value) return {a.value, a.index < b.index ? a.index : b.index};
    return a.value < b.value ? a : b;
  }
};

struct MaxLocation {
  template <class Value, class Index>
  static Pair<Value, Index> combine(Pair<Value, Index> a, Pair<Value, Index> b) {
    if (a.value == b.value) return {a.value, a.index < b.index ? a.index : b.index};
    return a.value > b.value ? a : b;
  }
};

template <class Operation, class T>
[[gnu::always_inline]] inline void combine_each(const void* left, const void* right, void* out,
                                                std::size_t count) {
  const auto* const lefts = static_cast<const T*>(left);
  const auto* const rights = static_cast<const T*>(right);
  auto* const results = static_cast<T*>(out);
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i)
    results[i] = Operation::combine(lefts[i], rights[i]);
}

// For any processor of the architecture.
struct Portable {
  template <class Operation, class T>
  static void combine_all(const void* left, const void* right, void* out, std::size_t count) {
    combine_each<Operation, T>(left, right, out, count);
  }
};

// For those whose vectors have 32 bytes: twice as fast from the nearest cache, a fifth from others.
// No multiplication is joined with an addition, so results are the same.
struct Wide {
  template <class T>
  static constexpr bool gains = std::is_arithmetic_v<T> && sizeof(T) <= sizeof(double);

#if defined(__x86_64__)
  [[nodiscard]] static bool runs_here() {
    return __builtin_cpu_supports("avx2") != 0;
  }
  template <class Operation, class T>
  [[gnu::target("avx2")]] static void combine_all(const void* left, const void* right, void* out,
                                                  std::size_t count) {
    combine_each<Operation, T>(left, right, out, count);
  }
#else
  [[nodiscard]] static bool runs_here() {
    return false;
  }
  template <class Operation, class T>
  static void combine_all(const void* left, const void* right, void* out, std::size_t count) {
    combine_each<Operation, T>(left, right, out, count);
  }
#endif
};
template <class Part>
inline constexpr bool Wide::gains<Complex<Part>> = gains<Part>;

// The loop for one C++ type, or null if the operation makes no sense of it.
template <class Operation, class T, class Processor>
constexpr Kernel kernel() {
  if constexpr (!requires(T value) { Operation::combine(value, value); }) {
    return nullptr;
  } else if constexpr (Wide::gains<T>) {
    return Processor::template combine_all<Operation, T>;
  } else {
    return Portable::combine_all<Operation, T>;
  }
}

template <class Operation, class Processor>
constexpr KernelTable make_kernels() {
  KernelTable table{};
  const auto set = [&table](Storage storage, Kernel kernel) {
    table[static_cast<std::size_t>(storage)] = kernel;
  };
  set(Storage::int8, kernel<Operation, std::int8_t, Processor>());
  set(Storage::int16, kernel<Operation, std::int16_t, Processor>());
  set(Storage::int32, kernel<Operation, std::int32_t, Processor>());
  set(Storage::int64, kernel<Operation, std::int64_t, Processor>());
  set(Storage::int128, kernel<Operation, Int128, Processor>());
  set(Storage::uint8, kernel<Operation, std::uint8_t, Processor>());
  set(Storage::uint16, kernel<Operation, std::uint16_t, Processor>());
  set(Storage::uint32, kernel<Operation, std::uint32_t, Processor>());
  set(Storage::uint64, kernel<Operation, std::uint64_t, Processor>());
  set(Storage::float16, kernel<Operation, Half, Processor>());
  set(Storage::float32, kernel<Operation, float, Processor>());
  set(Storage::float64, kernel<Operation, double, Processor>());
  set(Storage::float_long, kernel<Operation, long double, Processor>());
  set(Storage::float128, kernel<Operation, Float128, Processor>());
  set(Storage::complex16, kernel<Operation, Complex<Half>, Processor>());
  set(Storage::complex32, kernel<Operation, Complex<float>, Processor>());
  set(Storage::complex64, kernel<Operation, Complex<double>, Processor>());
  set(Storage::complex_long, kernel<Operation, Complex<long double>, Processor>());
  set(Storage::complex128, kernel<Operation, Complex<Float128>, Processor>());
  // A bool that holds neither 0 nor 1, which foreign memory may, is undefined to read as a bool.
  set(Storage::boolean, kernel<Operation, std::uint8_t, Processor>());
  set(Storage::float_int32, kernel<Operation, Pair<float, int>, Processor>());
  set(Storage::double_int32, kernel<Operation, Pair<double, int>, Processor>());
  set(Storage::long_int32, kernel<Operation, Pair<long, int>, Processor>());
  set(Storage::int32_int32, kernel<Operation, Pair<int, int>, Processor>());
  set(Storage::short_int32, kernel<Operation, Pair<short, int>, Processor>());
  set(Storage::long_double_int32, kernel<Operation, Pair<long double, int>, Processor>());
  set(Storage::float_float, kernel<Operation, Pair<float, float>, Processor>());
  set(Storage::double_double, kernel<Operation, Pair<double, double>, Processor>());
  return table;
}

// The two tables of an operation.
struct Kernels {
  KernelTable portable;
  KernelTable wide;

  [[nodiscard]] const KernelTable* for_this_processor() const {
    return Wide::runs_here() ? &wide : &portable;
  }
};
template <class Operation>
inline constexpr Kernels kernels_of{make_kernels<Operation, Portable>(),
                                    make_kernels<Operation, Wide>()};

} // namespace macadam::datatype
