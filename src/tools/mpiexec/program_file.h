// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/options.h"

#include <string>

namespace macadam::tools {

// The file of the program that a spawned command names: by its path from the command's folder, or
// in the folders of the info key path and then of `path`, a PATH. Throws MPI_ERR_SPAWN for what
// keeps it from being started, as far as files tell; the last word has exec.
std::string find_program(const Program& program, const std::string& path);

// What may help whose program could not be executed with this error, or nothing. A shell, too,
// finds a program of the folder by its path only.
std::string hint_for_path(const Program& program, int error);

} // namespace macadam::tools
