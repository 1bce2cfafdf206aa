// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

namespace macadam::tools {

// mpiexec beside a program that was started alone, by itself (boot/lone_server.h): serves it until
// it has ended, and what it has spawned. `socket` is the number of the descriptor at which it waits
// to be told. Returns the exit status.
int serve_lone_program(std::string_view socket);

} // namespace macadam::tools
