// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/control.h"
#include "tools/mpiexec/control_server.h"

#include <map>
#include <string>

namespace macadam::tools {

// Names that jobs of this mpiexec have published. Each is a socket with a name that all processes
// of the user compute alike, at which mpiexec answers: so the table of a user and machine is the
// kernel's table of abstract sockets. No mpiexec has to find another one or to take over from it, a
// name is given once, and it is gone with its publisher, however that ends.
class Names {
 public:
  // `server` outlives the object.
  explicit Names(ControlServer& server) : server_(server) {}

  // Throws MPI_ERR_SERVICE if it is published.
  void publish(const std::string& service, const std::string& port, const boot::Secret& job);
  // Throws MPI_ERR_SERVICE if this job has not published it, or for another port.
  void unpublish(const std::string& service, const std::string& port, const boot::Secret& job);
  void unpublish_all_of(const boot::Secret& job);
  // The port. Throws MPI_ERR_NAME.
  [[nodiscard]] const std::string& look_up(const std::string& service) const;

 private:
  struct Name {
    std::string port;
    boot::Secret job;
  };

  ControlServer& server_;
  std::map<std::string, Name> names_; // by service
};

} // namespace macadam::tools
