// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace macadam::boot {

// What a program takes of what the system limits; 0: it does not know.
struct Needs {
  std::uint64_t descriptors = 0; // at most at one time
  std::uint64_t processes = 0;   // that it starts
};
// For the sentences of explain_failure(); called before there are threads.
void set_needs(const Needs& needs);

// What a system call that failed with `error` lacked: which limit of the system it met, how high
// that is, what is needed, and the command that raises it. `doing` begins the sentence: "making a
// pipe".
std::string explain_failure(const char* doing, int error);

} // namespace macadam::boot
