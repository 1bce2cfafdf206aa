// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Checks of arguments by kind, called from the generated entry points. Each is a few compares; what
// is wrong is told out of line, as a base::Error of the class that the standard names.

#include "datatype/op.h"
#include "datatype/type.h"
#include "mpi/communicator.h"
#include "mpi/count_array.h"
#include "mpi/errhandler.h"
#include "mpi/file.h"
#include "mpi/info.h"
#include "mpi/process.h"
#include "mpi/topology.h"
#include "mpi/window.h"

#include <cstdint>
#include <limits>

namespace macadam::api::check {

using base::ObjectKind;
using mpi::Communicator;
using mpi::CountArray;
using mpi::Library;

// Reports of bad arguments. `name` is the parameter's name in the standard.
namespace bad {
[[noreturn, gnu::cold]] void handle(const void* handle, ObjectKind kind, const char* name);
[[noreturn, gnu::cold]] void uncommitted(const datatype::Type& type, const char* name);
[[noreturn, gnu::cold]] void rank(const Communicator& comm, int found, const char* name,
                                  const char* also);
[[noreturn, gnu::cold]] void root(const Communicator& comm, int found);
[[noreturn, gnu::cold]] void tag(int found, const char* name, const char* also);
[[noreturn, gnu::cold]] void negative(int error_class, MPI_Count found, const char* name);
[[noreturn, gnu::cold]] void negative_element(std::size_t index, MPI_Count found, const char* name);
[[noreturn, gnu::cold]] void disp_unit(MPI_Aint found, const char* name);
[[noreturn, gnu::cold]] void null(int error_class, const char* name);
[[noreturn, gnu::cold]] void in_place(const char* name);
[[noreturn, gnu::cold]] void null_buffer(MPI_Count count, const datatype::Type& type,
                                         const char* name);
// Return if there is nothing to be moved, or MPI_BOTTOM is meant.
[[gnu::cold]] void null_blocks(CountArray counts, int length, const datatype::Type& type,
                               const char* name);
[[gnu::cold]] void null_blocks(const Library& self, CountArray counts, CountArray displs,
                               const MPI_Datatype* types, int length, const char* name);
[[noreturn, gnu::cold]] void too_long(MPI_Count count, const datatype::Type& type,
                                      const char* name);
[[noreturn, gnu::cold]] void too_many(MPI_Count length, const char* name);
[[noreturn, gnu::cold]] void special_address(const void* found, const char* name);
} // namespace bad

// --- Handles -------------------------------------------------------------------------------------

// The object of class T and kind `kind` behind a handle; refuses null handles and those of freed
// objects or of another kind. T's class must be complete where this is called.
template <class T>
[[gnu::always_inline]] inline T& object(const Library& self, const void* handle, ObjectKind kind,
                                        const char* name) {
  T* found = self.find<T>(handle, kind);
  if (found == nullptr) [[unlikely]]
    bad::handle(handle, kind, name);
  return *found;
}

inline Communicator& comm(const Library& self, MPI_Comm handle, const char* name) {
  return object<Communicator>(self, handle, ObjectKind::communicator, name);
}
inline mpi::Group& group(const Library& self, MPI_Group handle, const char* name) {
  return object<mpi::Group>(self, handle, ObjectKind::group, name);
}
inline const datatype::Op& op(const Library& self, MPI_Op handle, const char* name) {
  return object<datatype::Op>(self, handle, ObjectKind::op, name);
}
inline mpi::Info& info(const Library& self, MPI_Info handle, const char* name) {
  return object<mpi::Info>(self, handle, ObjectKind::info, name);
}
inline mpi::Info* info_or_null(const Library& self, MPI_Info handle, const char* name) {
  return handle == MPI_INFO_NULL ? nullptr : &info(self, handle, name);
}
inline mpi::Errhandler& errhandler(const Library& self, MPI_Errhandler handle, const char* name) {
  return object<mpi::Errhandler>(self, handle, ObjectKind::errhandler, name);
}

inline mpi::Session& session(const Library& self, MPI_Session handle, const char* name) {
  return object<mpi::Session>(self, handle, ObjectKind::session, name);
}

inline mpi::Window& win(const Library& self, MPI_Win handle, const char* name) {
  return object<mpi::Window>(self, handle, ObjectKind::window, name);
}

inline mpi::File& file(const Library& self, MPI_File handle, const char* name) {
  return object<mpi::File>(self, handle, ObjectKind::file, name);
}
inline mpi::File* file_or_null(const Library& self, MPI_File handle, const char* name) {
  return handle == MPI_FILE_NULL ? nullptr : &file(self, handle, name);
}

// Any datatype, as for constructors and queries.
inline const datatype::Type& any_datatype(const Library& self, MPI_Datatype handle,
                                          const char* name) {
  return object<datatype::Type>(self, handle, ObjectKind::datatype, name);
}
// What stands for a datatype that is not significant.
inline const datatype::Type& nothing(const Library& self) {
  return any_datatype(self, MPI_BYTE, "datatype");
}
// And for an operation: one that goes with it.
inline const datatype::Op& any_op(const Library& self) {
  return op(self, MPI_BAND, "op");
}
// One that can describe data to be moved. MPI_DATATYPE_NULL can where `nobody` is at the other end.
inline const datatype::Type& datatype(const Library& self, MPI_Datatype handle, const char* name,
                                      bool nobody = false) {
  const auto* const type = self.find<datatype::Type>(handle, ObjectKind::datatype);
  if (type == nullptr) [[unlikely]] {
    if (nobody && handle == MPI_DATATYPE_NULL) return nothing(self);
    bad::handle(handle, ObjectKind::datatype, name);
  }
  if (!type->committed()) [[unlikely]]
    bad::uncommitted(*type, name);
  return *type;
}
// Arrays of datatypes. Those with count 0 are not looked at.
void datatypes(const Library& self, const MPI_Datatype* handles, CountArray counts, int length,
               const char* name);
void any_datatypes(const Library& self, const MPI_Datatype* handles, MPI_Count length,
                   const char* name);

// Requests and messages may be null handles, but not addresses of something else.
inline void request(const Library& self, const MPI_Request* handle, const char* name) {
  if (handle == nullptr) [[unlikely]]
    bad::null(MPI_ERR_REQUEST, name);
  if (*handle != MPI_REQUEST_NULL) object<base::Object>(self, *handle, ObjectKind::request, name);
}
inline void requests(const Library& self, const MPI_Request* handles, int length,
                     const char* name) {
  if (handles == nullptr && length > 0) [[unlikely]]
    bad::null(MPI_ERR_REQUEST, name);
  for (int i = 0; i < length; ++i)
    request(self, handles + i, name);
}
inline void message(const Library& self, const MPI_Message* handle, const char* name) {
  if (handle == nullptr) [[unlikely]]
    bad::null(MPI_ERR_ARG, name);
  if (*handle != MPI_MESSAGE_NO_PROC)
    object<base::Object>(self, *handle, ObjectKind::message, name);
}

// --- Ranks and tags ------------------------------------------------------------------------------

inline bool within(int rank, int size) {
  return static_cast<unsigned>(rank) < static_cast<unsigned>(size);
}
inline void dest(const Communicator& comm, int rank, const char* name) {
  if (!within(rank, comm.peers()) && rank != MPI_PROC_NULL) [[unlikely]] {
    bad::rank(comm, rank, name, " (or MPI_PROC_NULL)");
  }
}
inline void source(const Communicator& comm, int rank, const char* name) {
  if (!within(rank, comm.peers()) && rank != MPI_ANY_SOURCE && rank != MPI_PROC_NULL) [[unlikely]] {
    bad::rank(comm, rank, name, " (or MPI_ANY_SOURCE, MPI_PROC_NULL)");
  }
}
inline void rank(const Communicator& comm, int rank, const char* name) {
  if (!within(rank, comm.peers())) [[unlikely]]
    bad::rank(comm, rank, name, "");
}

// Ranks of a window.
inline void dest(const mpi::Window& win, int rank, const char* name) {
  if (!within(rank, win.ranks)) [[unlikely]]
    dest(*win.comm, rank, name);
}
inline void rank(const mpi::Window& win, int rank, const char* name) {
  if (!within(rank, win.ranks)) [[unlikely]]
    check::rank(*win.comm, rank, name);
}

// MPI_TAG_UB is the largest int, so a tag is wrong only if it is negative.
inline void tag(int tag, const char* name) {
  if (tag < 0) [[unlikely]]
    bad::tag(tag, name, "");
}
inline void any_tag(int tag, const char* name) {
  if (tag < 0 && tag != MPI_ANY_TAG) [[unlikely]]
    bad::tag(tag, name, " (or MPI_ANY_TAG)");
}

// Which arguments of a rooted collective are significant here: the root's, a leaf's (both at the
// root of an intracommunicator, which also contributes), or none (MPI_PROC_NULL).
struct Sides {
  bool root;
  bool leaf;
};
inline Sides sides(const Communicator& comm, int root) {
  if (!comm.inter()) {
    if (!within(root, comm.size())) [[unlikely]]
      bad::root(comm, root);
    return {root == comm.rank(), true};
  }
  if (root == MPI_ROOT) return {true, false};
  if (root == MPI_PROC_NULL) return {false, false};
  if (!within(root, comm.peers())) [[unlikely]]
    bad::root(comm, root);
  return {false, true};
}

// --- Numbers and addresses -----------------------------------------------------------------------

inline void count(MPI_Count count, const char* name) {
  if (count < 0) [[unlikely]]
    bad::negative(MPI_ERR_COUNT, count, name);
}
inline void not_negative(MPI_Count value, const char* name) {
  if (value < 0) [[unlikely]]
    bad::negative(MPI_ERR_ARG, value, name);
}
inline void memory_size(MPI_Aint bytes, const char* name) {
  if (bytes < 0) [[unlikely]]
    bad::negative(MPI_ERR_SIZE, bytes, name);
}
inline void disp_unit(MPI_Aint bytes, const char* name) {
  if (bytes <= 0) [[unlikely]]
    bad::disp_unit(bytes, name);
}
inline void output(const void* address, const char* name) {
  if (address == nullptr) [[unlikely]]
    bad::null(MPI_ERR_ARG, name);
}
inline void string(const char* text, const char* name) {
  output(text, name);
}
// A string with room for so many characters.
inline void string_or_null(const char* text, int room, const char* name) {
  if (room > 0) output(text, name);
}
template <class Function>
void callback(Function* function, const char* name) {
  if (function == nullptr) [[unlikely]]
    bad::null(MPI_ERR_ARG, name);
}

inline void array(const void* data, MPI_Count length, const char* name) {
  if (data == nullptr && length > 0) [[unlikely]]
    bad::null(MPI_ERR_ARG, name);
  if (length > std::numeric_limits<MPI_Count>::max() / MPI_Count{sizeof(MPI_Count)}) [[unlikely]]
    bad::too_many(length, name);
}
inline void array(CountArray data, MPI_Count length, const char* name) {
  array(data.data, length, name);
}
inline void counts(CountArray counts, MPI_Count length, const char* name) {
  array(counts.data, length, name);
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    if (counts[i] < 0) [[unlikely]]
      bad::negative_element(i, counts[i], name);
  }
}

// --- Buffers -------------------------------------------------------------------------------------

// The addresses of the ABI with a meaning of their own: MPI_BOTTOM (null), MPI_IN_PLACE and
// MPI_BUFFER_AUTOMATIC.
inline bool special(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) <= 2;
}

// A buffer whose size is not known here.
inline void address(const void* address, const char* name) {
  if (special(address) && address != nullptr) [[unlikely]]
    bad::special_address(address, name);
}
// Null is MPI_BOTTOM, good for types that hold addresses, whose data starts elsewhere.
inline void buffer(const void* buffer, MPI_Count count, const datatype::Type& type,
                   const char* name) {
  MPI_Count bytes;
  if (__builtin_mul_overflow(count, type.size(), &bytes) ||
      __builtin_mul_overflow(count, type.extent(), &bytes)) [[unlikely]]
    bad::too_long(count, type, name);
  if (!special(buffer)) [[likely]]
    return;
  address(buffer, name);
  if (count > 0 && type.size() > 0 && type.true_lb() == 0) bad::null_buffer(count, type, name);
}
// The same where there are several counts, and where there are several datatypes as well.
inline void buffer(const void* buffer, CountArray counts, int length, const datatype::Type& type,
                   const char* name) {
  if (!special(buffer)) [[likely]]
    return;
  address(buffer, name);
  bad::null_blocks(counts, length, type, name);
}
inline void buffer(const Library& self, const void* buffer, CountArray counts, CountArray displs,
                   const MPI_Datatype* types, int length, const char* name) {
  if (!special(buffer)) [[likely]]
    return;
  address(buffer, name);
  bad::null_blocks(self, counts, displs, types, length, name);
}
// In a rooted collective only the root may have something in place.
inline void in_place(const void* buffer, Sides sides, const char* name) {
  if (buffer == MPI_IN_PLACE && sides.leaf && !sides.root) [[unlikely]]
    bad::in_place(name);
}

} // namespace macadam::api::check
