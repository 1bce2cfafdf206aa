// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"

#include <string>

namespace macadam::tools {

// Where this program's installation (or build tree) is, with what lies in it.
struct Installation {
  std::string library;   // libmpi_abi.so.1
  std::string functions; // api.json, which functions of MPI are written
};

// From the place of the running program, so that the tree may be moved.
Installation find_installation();

// The settings that the environment gives; a line for each variable that was refused or is misspelt
// is added to `warnings`.
base::Settings environment_settings(std::string& warnings);

// `macadam info`: version, transports, settings, which protocol serves which size.
std::string info_page(const Installation& installation);

// `macadam info --api`: the functions of MPI by chapter, written or not, and their numbers. Throws
// std::runtime_error if the list is missing or damaged.
std::string api_page(const Installation& installation);

} // namespace macadam::tools
