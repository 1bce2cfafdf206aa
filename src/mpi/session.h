// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/object.h"
#include "engine/team.h"

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

namespace macadam::mpi {

class BufferedSends;
class Library;
struct Errhandler;

// One user of MPI beside the world. Opens nothing by itself: a group makes the process look who it
// is, and a communicator starts the instance.
struct Session : base::Object {
  explicit Session(Errhandler& handler); // whose reference it takes over
  ~Session();

  [[nodiscard]] MPI_Session handle() const {
    return reinterpret_cast<MPI_Session>(const_cast<Session*>(this));
  }

  Errhandler* errhandler;
  std::unique_ptr<BufferedSends> buffered; // of MPI_Session_attach_buffer
};

// A process set, by the one name that it has.
struct NamedSet {
  std::string name;
  engine::RankMap ranks;
};
std::optional<NamedSet> find_set(Library& self, const std::string& name);

} // namespace macadam::mpi
