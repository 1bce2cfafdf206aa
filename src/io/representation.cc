// SPDX-License-Identifier: BSD-3-Clause
#include "io/representation.h"

#include "datatype/constructors.h"
#include "datatype/external.h"
#include "datatype/remake.h"

namespace macadam::io {

using datatype::Type;
using datatype::TypeRef;

TypeRef Representation::type_in_file(const Type& type, const Type& byte) const {
  if (!converts()) return TypeRef(type);
  return datatype::remake(
      type, [&](const Type& basic) { return datatype::contiguous(extent_of(basic), byte); });
}

MPI_Count NativeRepresentation::extent_of(const Type& basic) const {
  return basic.extent();
}

MPI_Count External32::extent_of(const Type& basic) const {
  return datatype::external_size(basic, 1);
}

void External32::to_file(const Type& type, const void* buffer, MPI_Count count, void* data) const {
  datatype::pack_external(type, buffer, count, data);
}

MPI_Count External32::from_file(const Type& type, const void* data, MPI_Count bytes,
                                MPI_Count count, void* buffer) const {
  return datatype::unpack_external(type, data, buffer, count, bytes);
}

} // namespace macadam::io
