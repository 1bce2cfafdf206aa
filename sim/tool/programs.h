// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/spawn_request.h"
#include "sim/tool/module.h"
#include "sim/world.h"

#include <map>
#include <string>
#include <vector>

namespace macadam::sim {

// What a world's ranks run: the program of the command line, and those that they spawn.
class Programs {
 public:
  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;

  // The one of the command line, with its arguments. Throws base::Error (MPI_ERR_ARG).
  World::Program first(const std::vector<std::string>& command);
  // One that is to be spawned. Found as mpiexec finds it, but that one named without a folder may
  // also be beside the first, which need not be in PATH itself. Throws base::Error (MPI_ERR_SPAWN).
  World::Program find(const boot::SpawnProgram& asked);

 private:
  World::Program make(const std::string& path, const std::vector<std::string>& command,
                      const std::string& folder);

  std::map<std::string, Module> modules_; // by file
  std::string beside_;                    // the first one's folder
};

} // namespace macadam::sim
