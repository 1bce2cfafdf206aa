// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"

#include <mpi.h>

#include <cstdint>

namespace macadam::datatype {

// The portable representation "external32": big-endian, fixed sizes, no padding.

// Bytes that `count` elements take; MPI_ERR_TYPE if more than 2^63 - 1.
[[nodiscard]] MPI_Count external_size(const Type& type, MPI_Count count);

// Converts `count` elements at `buffer` into `out`, which has room for external_size() bytes.
// MPI_ERR_CONVERSION if a value (of MPI_LONG, 4 bytes there) does not fit.
void pack_external(const Type& type, const void* buffer, MPI_Count count, void* out);

// Converts the other way, of `count` elements the basic ones that are whole in the first `bytes`
// bytes of `in`. Returns how many bytes they have in memory.
MPI_Count unpack_external(const Type& type, const void* in, void* buffer, MPI_Count count,
                          MPI_Count bytes = INT64_MAX);

} // namespace macadam::datatype
