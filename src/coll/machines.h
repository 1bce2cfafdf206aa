// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/board.h"
#include "coll/comm.h"
#include "engine/team.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace macadam::coll {

// A communicator by machines, for collectives on two levels: this rank's teams inside its machine
// and across all machines. Found at the first collective that asks. Machines are numbered by their
// first ranks, the ranks of one in the order of the communicator. Kept are this rank's two teams
// and, unless the ranks are dealt out evenly, a number for each machine.
class Machines {
 public:
  // Whether this communicator takes two levels for a collective of this kind: it spans several
  // machines, one of them has several ranks, and they are placed as the algorithms need it.
  // `ordered`: operands keep the order of ranks. The same on all ranks.
  [[nodiscard]] bool serve(const Resources& shared, const engine::Team& team, Kind kind,
                           bool ordered);

  // Whether no rank shares its machine with another, or all do; once asked for serve(). Unknown of
  // communicators that have no levels.
  [[nodiscard]] bool apart() const { return !two_levels_ && context != 0; }

  // This rank's, for one collective of the communicator. inside() may be called once in each.
  [[nodiscard]] Comm inside(const Comm& comm);
  [[nodiscard]] Comm across(const Comm& comm) const;

  [[nodiscard]] int count() const { return count_; } // of machines
  [[nodiscard]] int own() const { return own_; }     // this rank's machine
  [[nodiscard]] int index() const { return index_; } // of this rank in its machine
  // So many ranks of each machine have one with their index on each other: across() is theirs.
  [[nodiscard]] int slices() const { return slices_; }
  [[nodiscard]] bool leads() const { return index_ == 0; }
  // Where a rank of the communicator is; index_of() for ranks of this machine only.
  [[nodiscard]] int machine_of(const Comm& comm, int rank) const;
  [[nodiscard]] int index_of(const Comm& comm, int rank) const;
  // The rank with an index on a machine; of ranks dealt out evenly.
  [[nodiscard]] int rank_at(int machine, int index) const {
    return machine * machine_step_ + index * index_step_;
  }
  [[nodiscard]] bool in_order() const { return in_order_; }

  // Nothing comes with this tag any more, or at all.
  void leave(std::int32_t tag, Resources& shared) noexcept;
  void leave(Panels& panels) noexcept { boards_.leave(panels); }

  // Messages of the teams have this context, so that ranks may be numbered anew; 0: the
  // communicator has no levels.
  std::uint64_t context = 0;

 private:
  // A rank may have one number inside and another across.
  static std::int32_t inside_tag(std::int32_t tag) { return 2 * tag; }
  static std::int32_t across_tag(std::int32_t tag) { return 2 * tag + 1; }
  void find(const Resources& shared, const engine::Team& team);

  bool found_ = false;
  bool two_levels_ = false;
  bool in_order_ = false; // machine by machine
  bool even_ = false;     // rank_at() holds
  int count_ = 0;
  int own_ = 0;
  int index_ = 0;
  int slices_ = 0;
  int machine_step_ = 0;
  int index_step_ = 0;
  std::vector<std::pair<int, int>> numbers_; // of the machines, by their node; empty if even
  engine::RankMap inside_ranks_;
  engine::RankMap across_ranks_;
  engine::Team inside_;
  engine::Team across_;
  Boards boards_; // of inside_
};

} // namespace macadam::coll
