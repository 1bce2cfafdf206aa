// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace macadam::tools {

// Where this program's installation (or build tree) is, with what lies in it.
struct Installation {
  std::string library;   // libmpi_abi.so.1
  std::string functions; // api.json, the functions of MPI
  std::string report;    // report.html, the form of `macadam report`
};

// From the place of the running program, so that the tree may be moved.
Installation find_installation();

// `macadam info`: version, transports, settings, which protocol serves which size.
std::string info_page(const Installation& installation);

// `macadam info --api`: the functions of MPI by chapter, and their number. Throws
// std::runtime_error if the list is missing or damaged.
std::string api_page(const Installation& installation);

} // namespace macadam::tools
