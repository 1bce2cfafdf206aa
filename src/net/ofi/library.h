// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <rdma/fabric.h>

#include <string>

namespace macadam::net::ofi {

// The functions of libfabric.so.1, found when the program runs: one binary serves machines with and
// without it. All else is inline in the library's headers, and calls the provider directly.
struct Library {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
  unsigned version = 0; // of the library found, its first number

  // What libfabric calls an error: the negative value that a function returned.
  [[nodiscard]] std::string text_of(long error) const {
    return strerror(static_cast<int>(error < 0 ? -error : error));
  }
};

// Loads the library, which stays loaded: its providers have threads and hooks of their own. Throws
// base::Error (MPI_ERR_OTHER) with the system's words if it is not there or lacks a function.
Library load_library();

} // namespace macadam::net::ofi
