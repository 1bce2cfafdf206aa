// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace macadam::tools {

// Options of other launchers that people type out of habit. Some change nothing here; those that
// ask for what mpiexec cannot do are refused, and the message says what to do instead.
void add_foreign_options(CLI::App& app);

// To be called once the command line is read. `verbose`: says on the standard error why an option
// that was given changes nothing. `typed`: how options were written, by their first names. Throws
// CLI::ValidationError for one that is refused.
void check_foreign_options(const CLI::App& app, bool verbose,
                           const std::map<std::string, std::string>& typed);

} // namespace macadam::tools
