// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/library.h"

#include "base/error.h"
#include "base/signals.h"

#include <dlfcn.h>

namespace macadam::net::ofi {
namespace {

constexpr const char* file = "libfabric.so.1";

// By version: later ones have other structures than the headers that this was compiled with.
template <class Function>
void find(void* library, const char* name, const char* version, Function& function) {
  function = reinterpret_cast<Function>(dlvsym(library, name, version));
  if (function == nullptr) {
    base::fail(MPI_ERR_OTHER, "libfabric: {} has no {} of {}; install libfabric 1.17 or later",
               file, name, version);
  }
}

} // namespace

Library load_library() {
  // Debian's comes with libraries of Intel's adapters, whose handlers would end the program with
  // status 1, or not at all if libfabric is at work.
  const base::SignalHandlersKept guard;
  void* const loaded = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (loaded == nullptr) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: {} cannot be loaded ({}); install libfabric (Debian: libfabric1)", file,
               dlerror());
  }
  Library library;
  find(loaded, "fi_getinfo", "FABRIC_1.3", library.getinfo);
  find(loaded, "fi_freeinfo", "FABRIC_1.3", library.freeinfo);
  find(loaded, "fi_dupinfo", "FABRIC_1.3", library.dupinfo);
  find(loaded, "fi_fabric", "FABRIC_1.1", library.fabric);
  find(loaded, "fi_strerror", "FABRIC_1.0", library.strerror);
  decltype(&::fi_version) version = nullptr;
  find(loaded, "fi_version", "FABRIC_1.0", version);
  library.version = FI_MAJOR(version());
  return library;
}

} // namespace macadam::net::ofi
