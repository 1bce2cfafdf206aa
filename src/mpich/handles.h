// SPDX-License-Identifier: BSD-3-Clause
// Handles in MPICH's ABI: ints, with a bit for predefined ones, and pointers for files. A handle
// that a program makes has the number that the standard ABI gives it (MPI_Xxx_toint), which is none
// of MPICH's predefined ones.
#pragma once

#include "mpich/constants.h"
#include "mpich/known.h"
#include "mpich/standard.h"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace macadam::mpich {

// Filled when the library is loaded, before any of its functions is called.
extern const Standard standard;

// --- Predefined handles: those of MPICH differ in their last six bits and the first, those of the
// standard ABI in their last eight, if they are of one type and not null.

constexpr std::size_t place_of(int mpich) {
  return (static_cast<unsigned>(mpich) & 0x7f) | (mpich < 0 ? 0x80u : 0u);
}

struct Predefined {
  Pair null{};
  std::array<Pair, 256> by_mpich{};
  std::array<Pair, 256> by_standard{};
};

// Null is the first of its section.
template <std::size_t n>
consteval Predefined predefined_of(const Pair (&pairs)[n]) {
  Predefined found;
  found.null = pairs[0];
  for (std::size_t i = 1; i < n; ++i) {
    Pair& by_mpich = found.by_mpich[place_of(pairs[i].mpich)];
    Pair& by_standard = found.by_standard[static_cast<std::size_t>(pairs[i].standard) & 0xff];
    if (by_mpich.mpich != 0 || by_standard.standard != 0) throw "two handles have one place";
    by_mpich = by_standard = pairs[i];
  }
  return found;
}

// The 16-bit floating-point numbers of C are a type of MPICH's own. They share that of Fortran
// here, and where the standard ABI speaks of it, C's is told: far more programs know it.
consteval Predefined datatypes_of_mpich() {
  constexpr Pair c_float16{0x4c000246, 0x2ca}; // MPIX_C_FLOAT16, MPI_REAL2
  Predefined found = predefined_of(constants::datatypes);
  found.by_mpich[place_of(c_float16.mpich)] = c_float16;
  found.by_standard[c_float16.standard & 0xff] = c_float16;
  return found;
}

template <class Handle>
struct Of;
#define MPICH_HANDLE(Type, Functions, table)                                                       \
  template <>                                                                                      \
  struct Of<Type> {                                                                                \
    using Mpich = int;                                                                             \
    static constexpr Predefined predefined = table;                                                \
    static Type from(int number) { return standard.Functions##_fromint(number); }                  \
    static int to(Type handle) { return standard.Functions##_toint(handle); }                      \
  };
MPICH_HANDLE(MPI_Comm, Comm, predefined_of(constants::communicators))
MPICH_HANDLE(MPI_Datatype, Type, datatypes_of_mpich())
MPICH_HANDLE(MPI_Errhandler, Errhandler, predefined_of(constants::error_handlers))
MPICH_HANDLE(MPI_Group, Group, predefined_of(constants::groups))
MPICH_HANDLE(MPI_Info, Info, predefined_of(constants::info_objects))
MPICH_HANDLE(MPI_Message, Message, predefined_of(constants::matched_messages))
MPICH_HANDLE(MPI_Op, Op, predefined_of(constants::reduction_operations))
MPICH_HANDLE(MPI_Request, Request, predefined_of(constants::requests))
MPICH_HANDLE(MPI_Session, Session, predefined_of(constants::sessions))
MPICH_HANDLE(MPI_Win, Win, predefined_of(constants::windows))
#undef MPICH_HANDLE
template <>
struct Of<MPI_File> {
  using Mpich = MPI_File;
};

// Numbers of handles that programs make: from the first above the standard ABI's predefined handles
// to the first of MPICH's.
constexpr unsigned first_made = 0x1000, end_made = 0x04000000;
constexpr bool is_made(int mpich) {
  return static_cast<unsigned>(mpich) - first_made < end_made - first_made;
}

template <class Handle>
Handle made_handle(unsigned number) {
  if (Handle known = Known<Handle>::handle_of(number); known != nullptr) [[likely]]
    return known;
  const Handle found = Of<Handle>::from(static_cast<int>(number));
  if (found != nullptr) Known<Handle>::add(number, found);
  return found;
}

// `notes`: also for later calls.
template <class Handle>
unsigned made_number(Handle handle, bool notes = true) {
  if (const unsigned known = Known<Handle>::number_of(handle); known != 0) [[likely]]
    return known;
  const auto number = static_cast<unsigned>(Of<Handle>::to(handle));
  if (notes) Known<Handle>::add(number, handle);
  return number;
}

// An int that is no handle becomes a null pointer, which every function refuses.
template <class Handle>
Handle handle(typename Of<Handle>::Mpich mpich) {
  if constexpr (std::is_same_v<Handle, MPI_File>) {
    return mpich == nullptr ? MPI_FILE_NULL : mpich;
  } else {
    if (is_made(mpich)) [[unlikely]]
      return made_handle<Handle>(static_cast<unsigned>(mpich));
    const Predefined& predefined = Of<Handle>::predefined;
    const Pair& pair =
        mpich == predefined.null.mpich ? predefined.null : predefined.by_mpich[place_of(mpich)];
    const int value = pair.mpich == mpich ? pair.standard : 0;
    return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(value));
  }
}

template <class Handle>
auto of_mpich(Handle handle, bool notes = true) {
  if constexpr (std::is_same_v<Handle, MPI_File>) {
    return handle == MPI_FILE_NULL ? nullptr : handle;
  } else {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    if (value >= first_made) return static_cast<int>(made_number(handle, notes));
    const Predefined& predefined = Of<Handle>::predefined;
    if (static_cast<int>(value) == predefined.null.standard) return predefined.null.mpich;
    return predefined.by_standard[value & 0xff].mpich;
  }
}

// For callbacks: another thread may be about to free the object of the handle.
template <class Handle>
auto of_mpich_for_now(Handle handle) {
  return of_mpich(handle, false);
}

} // namespace macadam::mpich
