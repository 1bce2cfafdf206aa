// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"

#include <functional>

namespace macadam::datatype {

// The type that the calls which made `type` make of other basic types: `replaced` says what stands
// for each. What was given in bytes stays as it is, all else follows the new extents (MPI 5.0,
// section 14.5.1, on filetypes). Committed. Throws as the constructors do.
[[nodiscard]] TypeRef remake(const Type& type,
                             const std::function<TypeRef(const Type& basic)>& replaced);

} // namespace macadam::datatype
