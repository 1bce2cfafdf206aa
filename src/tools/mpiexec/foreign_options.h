// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <string_view>

namespace macadam::tools {

// Options of other launchers that people type out of habit. Some change nothing here, as what they
// ask for is so in any case; those that ask for what mpiexec does otherwise, or not at all, have a
// remedy.

// Adds those that change nothing.
void add_foreign_options(CLI::App& app);

// Intel MPI's -tune may have a file or a folder behind it, or none: whether `next`, which follows
// the option, is none. (--tune of Open MPI always has one.)
bool is_program_behind_tune(const std::string& option, const std::string& next);

// What to do in place of an option, by its name with its dashes; empty: it has no remedy.
std::string_view remedy_for(std::string_view option);

// Says on the standard error why an option that was given changes nothing. `typed`: how options
// were written, by their first names.
void explain_foreign_options(const CLI::App& app, const std::map<std::string, std::string>& typed);

// A parameter of Open MPI (--mca) that a job would be missing here: what to use instead, by name;
// else empty.
std::string find_missed_parameter(const CLI::App& app);

// What of the kinds of memory that the option -memory-alloc-kinds of the MPI standard names is not
// there; else empty. No error: programs ask what they have got.
std::string find_missed_kinds(const CLI::App& app);

} // namespace macadam::tools
