// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::boot {

// What a system call that failed with `error` lacked: which limit of the system it met, how high
// that is, and the command that raises it. `doing` begins the sentence: "making a pipe".
std::string explain_failure(const char* doing, int error);

} // namespace macadam::boot
