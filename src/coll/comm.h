// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/frame_pool.h"
#include "coll/level_rules.h"
#include "coll/panels.h"
#include "coll/selection.h"
#include "datatype/type.h"
#include "engine/engine.h"
#include "engine/team.h"
#include "mem/buffers.h"

#include <cstdint>
#include <functional>
#include <string>

namespace macadam::coll {

using engine::Data;

class Board;
class Boards;
class Machines;

// Bytes by which collectives go. The first four are of long ones on two levels, so that both work
// at once (levels.h); all but `exchange` are the same in all processes.
struct Segments {
  std::size_t slice = 128 << 10; // at least, of what each rank of a machine carries of a reduction
  std::size_t bcast = 64 << 10;  // of what a leader passes on
  std::size_t alltoall = 64 << 10; // of what a rank gets for all on its machine
  std::size_t allgather = 4 << 10; // longer blocks go machine by machine
  std::size_t exchange = 1 << 20;  // of what a rank and others exchange at a time (alltoall.cc)
  std::size_t combined = 64 << 10; // of what two ranks exchange while they combine (halving.h)
  std::size_t parallel_edges = 4 << 10; // of blocks that travel together (neighbor.cc)
};

// Wants to know for whom collectives wait.
class WaitObserver {
 public:
  // What `peer` writes to shared memory, and a collective has waited for, is there.
  virtual void on_word(engine::Rank peer) noexcept = 0;

 protected:
  ~WaitObserver() = default;
};

// What the collectives of one process share. `engine` and `byte` (MPI_BYTE) outlive it.
struct Resources {
  // `levels`: see RuleTable. Throws as that does.
  Resources(engine::Engine& e, const datatype::Type& byte_type, const std::string& levels = {})
      : engine(e), byte(byte_type), panels(e), table(levels, e.networks().messages_by()) {
    if (e.networks().messages_by() != engine::MessagesBy::adapter)
      segments.combined = std::size_t{512} << 10; // fewer messages
  }

  engine::Engine& engine;
  const datatype::Type& byte;
  mem::Buffers scratch;
  FramePool frames;
  Panels panels;
  const RuleTable table;
  Rules rules = table.rules(); // which algorithm is taken when
  Segments segments;
  bool reproducible = false;        // equal reductions on as many ranks give equal bits
  WaitObserver* observer = nullptr; // null: nobody
  // The machine of a rank of the job, by a number that no other has. Empty: all are on one.
  std::function<int(engine::Rank)> node_of;
};

// A communicator, as the algorithms see it: who takes part, and the tag that keeps this
// collective's messages apart from those of others. `team` outlives it.
struct Comm {
  Comm(Resources& r, const engine::Team& t, std::int32_t collective_tag)
      : shared(&r), team(&t), tag(collective_tag) {}

  [[nodiscard]] int rank() const { return team->rank; }
  [[nodiscard]] int size() const { return team->size(); }
  // By which algorithm; the same answer on all ranks. `may_share`: false for data that no board can
  // take. `even`: blocks, if any, are of one length.
  [[nodiscard]] Algorithm choose(Kind kind, std::uint64_t bytes, bool ordered = false,
                                 bool may_share = true, bool even = true) const; // board.h
  // `bytes` contiguous bytes at `address` (never written if they are only sent).
  [[nodiscard]] Data bytes(const void* address, std::size_t count) const {
    return {const_cast<void*>(address), static_cast<MPI_Count>(count), &shared->byte};
  }

  Resources* shared;
  const engine::Team* team;
  std::int32_t tag;
  // One of so many on its communicator that faster forms pay for their connections. The same on all
  // ranks.
  bool frequent = false;
  Boards* boards = nullptr; // of the communicator; null: it has none
  Board* board = nullptr;   // for this tag, null: messages only
  // The machines that the communicator spans; null: it has one level.
  Machines* machines = nullptr;

 private:
  // As select() wants to know it.
  [[nodiscard]] int on_levels(Kind kind, bool ordered) const;
};

} // namespace macadam::coll
