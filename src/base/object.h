// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace macadam::base {

// What a handle of the standard ABI points to. Every object starts with this word, so that a handle
// of another kind, or one that was freed, is refused instead of followed. Values are arbitrary but
// unlikely in other memory.
enum class ObjectKind : std::uint32_t {
  freed = 0x4d630000,
  communicator,
  group,
  request,
  datatype,
  op,
  errhandler,
  info,
  message,
  session,
  window,
  file,
};

// First base of every object behind an MPI handle. Counted under the library's lock.
struct Object {
  explicit Object(ObjectKind object_kind) : kind(object_kind) {}
  ObjectKind kind;
  std::uint32_t references = 1;
};

} // namespace macadam::base
