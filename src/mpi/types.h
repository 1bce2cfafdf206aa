// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"

namespace macadam::mpi {

// A type that the user cannot free: predefined, with a name or (MPI_Type_create_f90_*) without.
[[nodiscard]] bool permanent(const datatype::Type& type);

// attributes.cc. A type's attributes belong to this layer, behind its void pointer. Both throw what
// a callback refuses.
void copy_attributes(const datatype::Type& from, datatype::Type& to);
void drop_attributes(datatype::Type& type);

} // namespace macadam::mpi
