// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

// `macadam hang`: whose job is meant.
struct HangQuestion {
  int process = 0; // a rank's; 0: every job of this user's that has ranks on this machine
};

// What the ranks on this machine wait for, asked in the memory that they share, whoever has started
// them; a page for each job (boot/hang/hang_report.h). Throws std::runtime_error if there is none.
std::string hang(const HangQuestion& question);

} // namespace macadam::tools
