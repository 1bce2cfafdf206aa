// SPDX-License-Identifier: BSD-3-Clause
#include "api/check.h"

#include "base/error.h"

#include <string>

namespace macadam::api::check {

using base::fail;

namespace {

// What a handle of this kind is called, and the class of the error when it is invalid.
struct KindFacts {
  int error_class;
  const char* type;
  const char* null_name;
  const void* null;
};

KindFacts facts(ObjectKind kind) {
  switch (kind) {
  case ObjectKind::communicator:
    return {MPI_ERR_COMM, "communicator", "MPI_COMM_NULL", MPI_COMM_NULL};
  case ObjectKind::group:
    return {MPI_ERR_GROUP, "group", "MPI_GROUP_NULL", MPI_GROUP_NULL};
  case ObjectKind::request:
    return {MPI_ERR_REQUEST, "request", "MPI_REQUEST_NULL", MPI_REQUEST_NULL};
  case ObjectKind::datatype:
    return {MPI_ERR_TYPE, "datatype", "MPI_DATATYPE_NULL", MPI_DATATYPE_NULL};
  case ObjectKind::op:
    return {MPI_ERR_OP, "reduction operation", "MPI_OP_NULL", MPI_OP_NULL};
  case ObjectKind::errhandler:
    return {MPI_ERR_ERRHANDLER, "error handler", "MPI_ERRHANDLER_NULL", MPI_ERRHANDLER_NULL};
  case ObjectKind::info:
    return {MPI_ERR_INFO, "info object", "MPI_INFO_NULL", MPI_INFO_NULL};
  case ObjectKind::message:
    return {MPI_ERR_REQUEST, "message", "MPI_MESSAGE_NULL", MPI_MESSAGE_NULL};
  case ObjectKind::session:
    return {MPI_ERR_SESSION, "session", "MPI_SESSION_NULL", MPI_SESSION_NULL};
  case ObjectKind::window:
    return {MPI_ERR_WIN, "window", "MPI_WIN_NULL", MPI_WIN_NULL};
  case ObjectKind::file:
    return {MPI_ERR_FILE, "file", "MPI_FILE_NULL", MPI_FILE_NULL};
  case ObjectKind::freed:
    break;
  }
  return {MPI_ERR_ARG, "object", "null", nullptr};
}

// The name of an element of an array.
std::string element(const char* name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

} // namespace

namespace bad {

void handle(const void* handle, ObjectKind kind, const char* name) {
  const KindFacts f = facts(kind);
  if (handle == f.null)
    fail(f.error_class, "invalid {0}: {1} is {2}; give a valid {0}", f.type, name, f.null_name);
  fail(f.error_class,
       "invalid {0}: {1} is {2}, which is no {0}, or one that was freed; give a valid one", f.type,
       name, handle);
}

void uncommitted(const datatype::Type& type, const char* name) {
  fail(MPI_ERR_TYPE, "invalid datatype: {}{}{} is not committed; call MPI_Type_commit first", name,
       type.name.empty() ? "" : ", ", type.name);
}

void rank(const Communicator& comm, int found, const char* name, const char* also) {
  fail(MPI_ERR_RANK, "invalid rank: {} is {}, {} has {}ranks 0 to {}{}", name, found,
       describe(comm), comm.inter() ? "remote " : "", comm.peers() - 1, also);
}

void root(const Communicator& comm, int found) {
  fail(MPI_ERR_ROOT, "invalid root: root is {}, {} has {}ranks 0 to {}{}", found, describe(comm),
       comm.inter() ? "remote " : "", comm.peers() - 1,
       comm.inter() ? " (or MPI_ROOT, MPI_PROC_NULL)" : "");
}

void tag(int found, const char* name, const char* also) {
  fail(MPI_ERR_TAG, "invalid tag: {} is {}, tags are 0 to 2147483647{}", name, found, also);
}

void negative(int error_class, MPI_Count found, const char* name) {
  fail(error_class, "invalid {0}: {0} is {1}, it must not be negative", name, found);
}

void negative_element(std::size_t index, MPI_Count found, const char* name) {
  fail(MPI_ERR_COUNT, "invalid count: {}[{}] is {}, it must not be negative", name, index, found);
}

void disp_unit(MPI_Aint found, const char* name) {
  fail(MPI_ERR_DISP, "invalid displacement unit: {} is {} bytes, it must be positive", name, found);
}

void null(int error_class, const char* name) {
  fail(error_class, "invalid argument: {} is a null pointer; give the address of memory for it",
       name);
}

void in_place(const char* name) {
  fail(MPI_ERR_BUFFER, "invalid buffer: {} is MPI_IN_PLACE, which only the root may pass", name);
}

void null_buffer(MPI_Count count, const datatype::Type& type, const char* name) {
  fail(MPI_ERR_BUFFER,
       "invalid buffer: {} is a null pointer, but {} elements of {} bytes are to be moved; "
       "give their address, or count 0",
       name, count, type.size());
}

void null_blocks(CountArray counts, int length, const datatype::Type& type, const char* name) {
  if (type.size() == 0 || type.true_lb() != 0) return;
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i)
    if (counts[i] > 0) null_buffer(counts[i], type, name);
}

// Displacements are in bytes here, and so may be addresses.
void null_blocks(const Library& self, CountArray counts, CountArray displs,
                 const MPI_Datatype* types, int length, const char* name) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    if (counts[i] <= 0 || displs[i] != 0) continue;
    const datatype::Type& type = datatype(self, types[i], name);
    if (type.size() > 0 && type.true_lb() == 0) null_buffer(counts[i], type, name);
  }
}

void too_long(MPI_Count count, const datatype::Type& type, const char* name) {
  fail(
      MPI_ERR_COUNT,
      "invalid count: {} is said to have {} elements of {} bytes (extent {}), more than 2^63 bytes "
      "together; give fewer",
      name, count, type.size(), type.extent());
}

void too_many(MPI_Count length, const char* name) {
  fail(MPI_ERR_COUNT,
       "invalid count: {} is said to have {} elements, more than memory can hold; give fewer", name,
       length);
}

void special_address(const void* found, const char* name) {
  fail(MPI_ERR_BUFFER,
       "invalid buffer: {} is {}, which has no meaning here; give the address of memory", name,
       found == MPI_IN_PLACE ? "MPI_IN_PLACE" : "MPI_BUFFER_AUTOMATIC");
}

} // namespace bad

void datatypes(const Library& self, const MPI_Datatype* handles, CountArray counts, int length,
               const char* name) {
  array(handles, length, name);
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    if (counts[i] <= 0) continue;
    const auto* const type = self.find<datatype::Type>(handles[i], ObjectKind::datatype);
    if (type == nullptr || !type->committed()) [[unlikely]]
      datatype(self, handles[i], element(name, i).c_str()); // tells what is wrong
  }
}

void any_datatypes(const Library& self, const MPI_Datatype* handles, MPI_Count length,
                   const char* name) {
  array(handles, length, name);
  for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
    if (self.find<datatype::Type>(handles[i], ObjectKind::datatype) == nullptr) [[unlikely]]
      any_datatype(self, handles[i], element(name, i).c_str());
  }
}

} // namespace macadam::api::check
