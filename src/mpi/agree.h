// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"

#include <cstdint>
#include <optional>

// What one rank cannot do, all hear of, as the others would wait for it. Collective over an
// intracommunicator, but for attempt().
namespace macadam::mpi {

class Process;
struct Communicator;

// Runs `act`: the error that it throws, if any.
template <class Act>
std::optional<base::Error> attempt(Act&& act) {
  try {
    act();
    return {};
  } catch (...) {
    return base::caught("for this operation");
  }
}

// All throw if one of them has an error: each its own, or that of the first.
void agree(Process& self, Communicator& comm, const std::optional<base::Error>& own);

// All throw the error of rank `root`, or none does.
void share_error(Process& self, Communicator& comm, int root,
                 const std::optional<base::Error>& error);

// The first rank that has an error, if any, and the class of that.
struct Failed {
  int rank;
  std::int32_t error_class;
};
[[nodiscard]] std::optional<Failed> find_failed(Process& self, Communicator& comm,
                                                const std::optional<base::Error>& own);

} // namespace macadam::mpi
