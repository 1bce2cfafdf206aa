// SPDX-License-Identifier: BSD-3-Clause
// What a procedure of MPI in Fortran needs to call the C function of the same name in MPICH's ABI.
// Most arguments are what C gets: handles are its ints, and statuses have its layout.
#pragma once

#include "fortran/callbacks.h"
#include "mpich/fortran/functions.h"
#include "mpich/fortran/sentinels.h"

#include <mpi.h>

#include <cstdint>
#include <type_traits>

namespace macadam::fortran {

template <>
inline Fint number(int handle) {
  return handle;
}

} // namespace macadam::fortran

namespace macadam::mpich::fortran {

using namespace macadam::fortran;

// --- Handles, named by their types in the standard ABI. Only files are others in C.

template <class Handle>
constexpr bool is_file = std::is_same_v<Handle, MPI_File>;

// As the functions of C have it.
template <class Handle>
using InC = std::conditional_t<is_file<Handle>, MPI_File, Fint>;

MPICH_FUNCTION(MPI_File, File_f2c, (Fint));
MPICH_FUNCTION(Fint, File_c2f, (MPI_File));

template <class Handle>
InC<Handle> handle(const Fint* number) {
  if constexpr (is_file<Handle>)
    return mpich_profiled_File_f2c(*number);
  else
    return *number;
}

// The address of a file's handle that the call may change.
class File {
 public:
  explicit File(Fint* fortran) : fortran_(fortran), c_(handle<MPI_File>(fortran)), before_(c_) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (c_ != before_) *fortran_ = mpich_profiled_File_c2f(c_);
  }
  operator MPI_File*() { return &c_; }

 private:
  Fint* fortran_;
  MPI_File c_;
  MPI_File before_;
};

// The address of a new one.
class NewFile : public File {
 public:
  explicit NewFile(Fint* fortran) : File(&(*fortran = 0)) {}
};

template <class Handle>
using Out = std::conditional_t<is_file<Handle>, NewFile, Fint*>;
template <class Handle>
using InOut = std::conditional_t<is_file<Handle>, File, Fint*>;
using Started = Fint*;
inline Fint Asked(const Fint* request) {
  return *request;
}
inline Fint* AddressOf(const Fint* request) {
  return const_cast<Fint*>(request); // nothing is written there
}

// Arrays of them, whose lengths nobody needs to know.
struct Unknown {};
inline Unknown peers(const Fint*) {
  return {};
}
inline Unknown in_neighbors(const Fint*) {
  return {};
}
inline Unknown out_neighbors(const Fint*) {
  return {};
}
template <class Length>
Unknown significant(const void*, Length) {
  return {};
}
template <class Handle, class Length>
const Fint* In(const Fint* handles, Length) {
  return handles;
}
template <class Handle, class Length>
Fint* OutHandles(Fint* handles, Length) {
  return handles;
}
template <class Handle, class Length>
Fint* InOutHandles(Fint* handles, Length) {
  return handles;
}
template <class Length>
const Fint* AllAsked(const Fint* requests, Length) {
  return requests;
}
template <class Length>
Fint* AllStarted(Fint* requests, Length) {
  return requests;
}

// Of logicals the length counts.
int dimensions(const Fint* comm); // of the Cartesian topology

// --- Statuses.

inline Status* c_status(Fint* fortran) {
  return fortran == fortran_status_ignore ? status_ignore : reinterpret_cast<Status*>(fortran);
}
inline const Status* c_status(const Fint* fortran) {
  return reinterpret_cast<const Status*>(fortran);
}
inline Status* c_statuses(Fint* fortran) {
  return fortran == fortran_statuses_ignore ? status_ignore : reinterpret_cast<Status*>(fortran);
}

// --- Addresses, of which some have a meaning of their own.

inline void* c_address(void* fortran) {
  if (fortran == fortran_bottom) return nullptr;
  if (fortran == fortran_in_place) return reinterpret_cast<void*>(std::intptr_t{-1});
  if (fortran == fortran_buffer_automatic) return reinterpret_cast<void*>(std::intptr_t{-2});
  return fortran;
}

// The library of C says which they are there.
extern "C" int* const mpich_unweighted __asm__("MPI_UNWEIGHTED");
extern "C" int* const mpich_weights_empty __asm__("MPI_WEIGHTS_EMPTY");

inline Fint* c_weights(const Fint* fortran) {
  if (fortran == fortran_unweighted) return mpich_unweighted;
  if (fortran == fortran_weights_empty) return mpich_weights_empty;
  return const_cast<Fint*>(fortran);
}

inline int* c_errcodes(Fint* fortran) {
  return fortran == fortran_errcodes_ignore ? nullptr : fortran;
}

} // namespace macadam::mpich::fortran
