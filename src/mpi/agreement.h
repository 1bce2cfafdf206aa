// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "boot/job.h"
#include "boot/processes.h"
#include "engine/transport.h"

namespace macadam::mpi {

// What this process needs of those that it talks to. Throws base::Error if its rules of collectives
// cannot be read.
[[nodiscard]] boot::Agreement agreement_of(const base::Settings& settings);

// At first contact with a process, over that network. Where they differ in what they would wait for
// each other for, or cannot read each other's messages: throws MPI_ERR_OTHER with the two and the
// remedy. Rules of collectives are compared in a job of several machines only: on one machine, and
// on communicators of several jobs, no rule is taken that a file may change.
void check_agreement(const boot::Processes& processes, engine::Rank peer,
                     const engine::Transport& network, const boot::Agreement& own);

} // namespace macadam::mpi
