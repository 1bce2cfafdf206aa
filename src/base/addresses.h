// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::base {

// Why no more memory can be mapped, for errors: the limit on virtual memory, if there is one.
std::string limit_on_addresses();

} // namespace macadam::base
