// SPDX-License-Identifier: BSD-3-Clause
#include "boot/pmix/library.h"

#include "base/error.h"
#include "boot/machine.h"

#include <dlfcn.h>
#include <fstream>
#include <string>
#include <unistd.h>

namespace macadam::boot::pmix {
namespace {

constexpr const char* file = "libpmix.so.2";

template <class Function>
void find(void* loaded, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(loaded, name));
  if (function == nullptr)
    base::fail(MPI_ERR_OTHER, "{} has no {}; install PMIx 4 or later", file, name);
}

// The library that the launcher uses itself, if it is the user's own: then client and server are of
// one version. Empty if that cannot be seen.
std::string file_of_launcher() {
  for (pid_t pid = parent_of(getpid()); pid > 1; pid = parent_of(pid)) {
    std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
    for (std::string line; std::getline(maps, line);) {
      const std::size_t path = line.find('/');
      if (path != std::string::npos && line.find("/libpmix.so.2") != std::string::npos)
        return line.substr(path);
    }
  }
  return {};
}

void* open_library() {
  constexpr int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  const std::string of_launcher = file_of_launcher();
  void* const loaded = of_launcher.empty() ? nullptr : dlopen(of_launcher.c_str(), mode);
  return loaded != nullptr ? loaded : dlopen(file, mode);
}

Library load() {
  void* const loaded = open_library();
  if (loaded == nullptr)
    base::fail(MPI_ERR_OTHER,
               "a PMIx server (prterun, or srun --mpi=pmix) has started this program, and joining "
               "its job needs {}, which cannot be loaded ({}); install PMIx's library (Debian: "
               "libpmix2), put its folder into LD_LIBRARY_PATH, or start the program with "
               "Macadam's mpiexec",
               file, dlerror());
  Library library;
  find(loaded, "PMIx_Init", library.init);
  find(loaded, "PMIx_Finalize", library.finalize);
  find(loaded, "PMIx_Abort", library.abort);
  find(loaded, "PMIx_Put", library.put);
  find(loaded, "PMIx_Commit", library.commit);
  find(loaded, "PMIx_Get", library.get);
  find(loaded, "PMIx_Get_nb", library.get_nb);
  find(loaded, "PMIx_Fence_nb", library.fence_nb);
  find(loaded, "PMIx_Publish", library.publish);
  find(loaded, "PMIx_Lookup", library.lookup);
  find(loaded, "PMIx_Register_event_handler", library.register_event_handler);
  find(loaded, "PMIx_Query_info", library.query_info);
  find(loaded, "PMIx_Error_string", library.error_string);
  return library;
}

} // namespace

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

} // namespace macadam::boot::pmix
