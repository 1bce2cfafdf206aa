// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/object.h"
#include "engine/engine.h"
#include "engine/team.h"

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

namespace macadam::mpi {

struct Attributes;
struct Errhandler;
struct Info;

// Whose ranks, in order. Immutable; communicators and MPI_Group handles share it by counting.
struct Group : base::Object {
  Group() : base::Object(base::ObjectKind::group) {}
  engine::RankMap ranks;
  int rank = MPI_UNDEFINED;  // of this process
};

// A communicator. Point-to-point uses `p2p`, collectives `collective` (context + 1), so that the two
// never match each other.
struct Communicator : base::Object {
  Communicator() : base::Object(base::ObjectKind::communicator) {}

  [[nodiscard]] int rank() const { return p2p.rank; }
  [[nodiscard]] int size() const { return p2p.local->size(); }
  // Ranks that a message can be sent to: the remote group of an intercommunicator.
  [[nodiscard]] int peers() const { return p2p.peers->size(); }
  [[nodiscard]] bool inter() const { return remote != nullptr; }
  [[nodiscard]] engine::Peer& peer(engine::Engine& engine, int to) const {
    return engine.peer((*p2p.peers)[to]);
  }
  // The constant of a predefined communicator, the address of another.
  [[nodiscard]] MPI_Comm handle() const {
    return constant != nullptr ? constant
                               : reinterpret_cast<MPI_Comm>(const_cast<Communicator*>(this));
  }

  engine::Team p2p;
  engine::Team collective;
  Group* local = nullptr;
  Group* remote = nullptr;            // intercommunicators
  std::uint32_t collectives = 0;      // collectives started: gives each its tag
  MPI_Comm constant = nullptr;        // MPI_COMM_WORLD, MPI_COMM_SELF
  Errhandler* errhandler = nullptr;
  Attributes* attributes = nullptr;
  Info* info = nullptr;
  std::string name;
};

}  // namespace macadam::mpi
