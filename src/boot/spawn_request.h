// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/packet.h"
#include "boot/universe.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace macadam::boot {

// Processes that mpiexec runs at a time on one machine.
inline constexpr int most_ranks = 4096;

// A command of MPI_Comm_spawn_multiple as mpiexec is asked for it: its info object read.
struct SpawnProgram {
  std::vector<std::string> command; // the program and its arguments
  std::vector<int> counts;          // that are acceptable, ascending
  std::string folder;               // to run in, absolute
  std::vector<std::string> path;    // folders to look for the program in, before those of PATH
  std::vector<std::string> hosts;   // on any of which it may run; empty: on any
};

// In place of the key `file` of an info object what is in that file; what the object itself says
// goes before that. Throws MPI_ERR_INFO_VALUE.
void add_file(std::vector<std::pair<std::string, std::string>>& info);

// Reads the info keys host, wdir, path and file; other keys are passed over. Throws MPI_ERR_SPAWN,
// MPI_ERR_INFO_VALUE or MPI_ERR_ARG. `host` is this one's name, which localhost stands for.
std::vector<SpawnProgram> read_commands(std::vector<SpawnCommand> commands, std::string_view host);

// The host that all commands may run on, of these; empty if none names any. Throws MPI_ERR_SPAWN.
std::string choose_host(const std::vector<SpawnProgram>& programs,
                        const std::vector<std::string>& hosts);

void write_commands(PacketWriter& packet, const std::vector<SpawnProgram>& programs);
std::vector<SpawnProgram> read_programs(PacketReader& packet);

void write_spawned(PacketWriter& packet, const Spawned& spawned);
Spawned read_spawned(PacketReader& packet);

} // namespace macadam::boot
