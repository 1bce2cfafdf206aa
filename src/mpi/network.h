// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

namespace macadam::mpi {

class Runtime;

// Those of a real process: the job that mpiexec has started (boot::LocalJob), and the network that
// the settings ask for.
std::unique_ptr<Runtime> real_runtime();

} // namespace macadam::mpi
