// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::boot {

// If this process was started as one of several by a launcher whose job it cannot join: the
// sentence that refuses to run as so many jobs of one, with what is missing and what to do. Empty
// if not.
std::string refuse_foreign_launcher();

} // namespace macadam::boot
