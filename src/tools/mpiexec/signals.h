// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"

#include <csignal>
#include <optional>
#include <poll.h>

namespace macadam::tools {

// What mpiexec is told by signals: from here on they are read, from a descriptor, and interrupt
// nothing. One that mpiexec was told to ignore (nohup) it ignores still.
class Signals {
 public:
  // Throws std::runtime_error if there is no descriptor for them.
  Signals();

  [[nodiscard]] pollfd polled() const { return {descriptor_.get(), POLLIN, 0}; }
  // The next one that has come, if any.
  [[nodiscard]] std::optional<int> next() const;
  // As it was before: for the processes that mpiexec starts.
  [[nodiscard]] const sigset_t& original_mask() const { return original_mask_; }

 private:
  sigset_t original_mask_{};
  base::Descriptor descriptor_;
};

// One of those that users end programs with.
inline bool ends_programs(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}
// ... and that says, where one came before, that they will not wait. A terminal that is closed
// sends SIGHUP more than once.
inline bool is_urgent(int number) {
  return ends_programs(number) && number != SIGHUP;
}

} // namespace macadam::tools
