// SPDX-License-Identifier: BSD-3-Clause
// MPI_Pack, MPI_Unpack and their external32 forms.
#include "datatype/cursor.h"
#include "datatype/external.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <cstring>

namespace macadam::mpi {
namespace {

using datatype::Type;

// `needed` bytes from `position` on lie within the buffer of `size` bytes.
void check_room(const char* buffer, MPI_Count size, MPI_Count position, MPI_Count needed) {
  if (position < 0 || position > size) {
    base::fail(MPI_ERR_ARG, "position is {}, which is outside {} ({} bytes)", position, buffer,
               size);
  }
  if (needed > size - position) {
    base::fail(MPI_ERR_ARG, "{} bytes from position {} on are needed, but {} has only {} bytes",
               needed, position, buffer, size);
  }
}

void check_representation(const char* datarep) {
  if (std::strcmp(datarep, "external32") != 0) {
    base::fail(MPI_ERR_ARG, "datarep is '{}'; the only representation is 'external32'", datarep);
  }
}

std::byte* at(void* buffer, MPI_Count position) {
  return static_cast<std::byte*>(buffer) + position;
}
const std::byte* at(const void* buffer, MPI_Count position) {
  return static_cast<const std::byte*>(buffer) + position;
}

} // namespace

void pack(Process&, const void* inbuf, MPI_Count incount, const Type& type, void* outbuf,
          MPI_Count outsize, MPI_Count* position, Communicator&) {
  const MPI_Count bytes = datatype::packed_size(type, incount);
  check_room("outbuf", outsize, *position, bytes);
  datatype::PackCursor cursor(type, inbuf, incount);
  cursor.pack(at(outbuf, *position), static_cast<std::size_t>(bytes));
  *position += bytes;
}

void unpack(Process&, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
            MPI_Count outcount, const Type& type, Communicator&) {
  const MPI_Count bytes = datatype::packed_size(type, outcount);
  check_room("inbuf", insize, *position, bytes);
  datatype::PackCursor cursor(type, outbuf, outcount);
  cursor.unpack(at(inbuf, *position), static_cast<std::size_t>(bytes));
  *position += bytes;
}

void pack_size(Process&, MPI_Count incount, const Type& type, Communicator&, MPI_Count* size) {
  *size = datatype::packed_size(type, incount);
}

void pack_external(Library&, const char* datarep, const void* inbuf, MPI_Count incount,
                   const Type& type, void* outbuf, MPI_Count outsize, MPI_Count* position) {
  check_representation(datarep);
  const MPI_Count bytes = datatype::external_size(type, incount);
  check_room("outbuf", outsize, *position, bytes);
  datatype::pack_external(type, inbuf, incount, at(outbuf, *position));
  *position += bytes;
}

void unpack_external(Library&, const char* datarep, const void* inbuf, MPI_Count insize,
                     MPI_Count* position, void* outbuf, MPI_Count outcount, const Type& type) {
  check_representation(datarep);
  const MPI_Count bytes = datatype::external_size(type, outcount);
  check_room("inbuf", insize, *position, bytes);
  datatype::unpack_external(type, at(inbuf, *position), outbuf, outcount);
  *position += bytes;
}

void pack_external_size(Library&, const char* datarep, MPI_Count incount, const Type& type,
                        MPI_Count* size) {
  check_representation(datarep);
  *size = datatype::external_size(type, incount);
}

} // namespace macadam::mpi
