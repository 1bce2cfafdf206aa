// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "coll/called.h"
#include "coll/comm.h"
#include "coll/panels.h"
#include "coll/sequence.h"
#include "coll/task.h"
#include "engine/word_wait.h"

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace macadam::coll {

using Position = std::uint64_t;

// What a rank has written for others to read, in its panel. Data stand behind it.
struct Slot {
  engine::Word written;     // the position of what is in it, + 1
  std::uint64_t called = 0; // the Called of its rank
};
static_assert(sizeof(Slot) == note_head);
struct ChunkSlot : Slot {
  engine::Word combined; // as `written`, of what the rank has put over its own piece
};
static_assert(sizeof(ChunkSlot) <= chunk_head);

// A ring of slots in each rank's panel. All ranks count its positions alike, whether they write
// there or not, so nobody is told where to look; what stands at a position is written by its rank,
// once all ranks have passed the position that was in the slot before.
struct SlotRing {
  std::size_t offset;  // in a panel
  std::size_t stride;  // bytes from slot to slot
  std::size_t head;    // bytes of a slot before its data
  std::size_t room;    // bytes of data
  std::uint32_t slots; // a power of two
  std::size_t passed;  // offset in a panel of the position that its rank is known to have passed
  std::size_t awaited; // ... and of the position, + 1, that its rank waits for all others to write
  std::uint32_t in_turn; // 0, or as many as slots: see Board::data()

  Position position = 0; // the next that this rank has not passed
  Position free_end = 0; // positions before this one may be written
};

// How data go in a collective: from some ranks to others, or from all to all.
enum class Ways : std::uint8_t { one, both };

// Waits until rank `from` has written a word; throws MPI_ERR_PROC_ABORTED if a rank of the team has
// failed before.
class [[nodiscard]] PeerWord : engine::WordWait {
 public:
  PeerWord(const Comm& comm, int from, const engine::Word& what, std::uint64_t until)
      : shared_(*comm.shared), from_(from) {
    word = &what;
    value = until;
    writer = (*comm.team->local)[from];
    group = comm.team->local;
  }
  bool await_ready() const noexcept { return reached(); }
  bool await_suspend(std::coroutine_handle<> waiting) noexcept;
  void await_resume() const {
    if (!ok_) [[unlikely]]
      throw_lost();
  }

 private:
  [[noreturn]] void throw_lost() const;
  const Resources& shared_;
  int from_;
  std::coroutine_handle<> waiting_;
  bool ok_ = true;
};

// Memory by which the ranks of a machine run one collective after the other: each has a panel in
// its own, which it writes and all others have mapped. A note is for short data, and goes ahead of
// long ones, which follow in chunks. Made at the first collective that can use it, for one tag of a
// communicator; those of another tag have a board of their own.
class Board {
 public:
  // `panels`, by rank, are cleared and mapped, and have the shape of this process's.
  Board(const Comm& comm, std::vector<std::byte*> panels);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  [[nodiscard]] Slot& slot(const SlotRing& ring, int rank, Position position) const {
    return *reinterpret_cast<Slot*>(panel(rank) + ring.offset +
                                    (position & (ring.slots - 1)) * ring.stride);
  }
  [[nodiscard]] static ChunkSlot& chunk(Slot& slot) { return static_cast<ChunkSlot&>(slot); }
  // What a rank has written at a position. Of two ranks each writes a chunk where it has read the
  // other's a lap before, by which it has these lines: to take back what the other has read takes
  // two to five times as long.
  [[nodiscard]] std::byte* data(const SlotRing& ring, int rank, Position position) const {
    const int home = rank ^ static_cast<int>((position & ring.in_turn) != 0);
    return reinterpret_cast<std::byte*>(&slot(ring, home, position)) + ring.head;
  }

  // Whether this rank may write at a position; if not, make_room() waits for it.
  [[nodiscard]] static bool has_room(const SlotRing& ring, Position position) {
    return position < ring.free_end;
  }
  static Task make_room(Comm& comm, SlotRing& ring, Position position);
  // Whether it may now, by what the others have passed meanwhile.
  [[nodiscard]] bool find_room(SlotRing& ring, Position position) const;

  // This rank goes on when all others have written at a position: if it sleeps, only the last of
  // them wakes it.
  void await_all(const SlotRing& ring, Position position) {
    if (peers_.size() > 2) word(rank_, ring.awaited).store(position + 1);
  }

  // What this rank has written at a position is there to be read, by all or by one.
  void publish(const SlotRing& ring, Position position, Called called);
  void publish_to(int reader, const SlotRing& ring, Position position, Called called);
  void publish_combined(const SlotRing& ring, Position position);
  void publish_combined_to(int reader, const SlotRing& ring, Position position);
  [[nodiscard]] PeerWord written(const Comm& comm, const SlotRing& ring, int from,
                                 Position position) const {
    return {comm, from, slot(ring, from, position).written, position + 1};
  }
  [[nodiscard]] PeerWord combined(const Comm& comm, const SlotRing& ring, int from,
                                  Position position) const {
    return {comm, from, chunk(slot(ring, from, position)).combined, position + 1};
  }

  // A rank that has not come so far; none: -1.
  [[nodiscard]] int not_written(const SlotRing& ring, Position position) const;
  [[nodiscard]] int not_combined(const SlotRing& ring, Position position) const;

  // This rank needs nothing any more that stands at the next `count` positions.
  void pass(SlotRing& ring, std::uint32_t count = 1);

  // Each rank can copy from and to the memory of every other by itself (Transport::read(),
  // write()).
  [[nodiscard]] bool single_copy() const { return single_copy_; }
  void set_single_copy() { single_copy_ = true; }
  // Into a slot. What the others have read last and will read next goes past the caches, unless
  // they share our core, and so its caches.
  void fill(std::byte* to, const void* from, std::size_t bytes, Ways ways = Ways::one) const {
    constexpr std::size_t worth_past_caches = 8 << 10;
    const bool has_lines = ways == Ways::both && chunks.in_turn != 0; // see data()
    if (bytes >= worth_past_caches && !shares_cores_ && !has_lines)
      base::copy_past_caches(to, from, bytes);
    else
      base::copy(to, from, bytes);
  }
  // All ranks combine what one of them wants: that takes less time than that one alone does.
  [[nodiscard]] bool divides_work() const { return divides_work_; }
  void set_divides_work() { divides_work_ = true; }

  // This rank will not touch the panels of others any more.
  void leave() noexcept;
  // All others have said so.
  [[nodiscard]] bool is_left() const;
  [[nodiscard]] std::byte* own_panel() const { return panel(rank_); }

  SlotRing notes;
  SlotRing chunks;
  std::uint8_t history = 0; // digest of the collectives so far
  bool broken = false;      // a collective ended in the middle: positions mean nothing any more

 private:
  struct Peer {
    std::byte* panel;
    engine::Transport* network;
    engine::Link* link;
  };
  [[nodiscard]] std::byte* panel(int rank) const {
    return peers_[static_cast<std::size_t>(rank)].panel;
  }
  [[nodiscard]] engine::Word& word(int rank, std::size_t offset) const {
    return *reinterpret_cast<engine::Word*>(panel(rank) + offset);
  }
  void wake(int rank) const {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.network->wake_peer(*peer.link);
  }
  void wake_all() const;
  void wake_reader(int reader, const SlotRing& ring, Position position) const;
  template <class WordOf>
  [[nodiscard]] int behind(const SlotRing& ring, Position position, WordOf&& word_of) const;

  int rank_;
  bool single_copy_ = false;
  bool divides_work_ = false;
  const bool shares_cores_;
  std::vector<Peer> peers_;
};

inline Algorithm Comm::choose(Kind kind, std::uint64_t bytes, bool ordered, bool may_share,
                              bool even) const {
  // By what does not depend on earlier calls, networks, machines and what was tuned for them.
  if (shared->reproducible && is_reduction(kind)) [[unlikely]]
    return select(default_rules(), kind, size(), Among::all, uneven, bytes, ordered);
  const Among among = board != nullptr && may_share
                          ? (board->single_copy() ? Among::single_copy : Among::sharing)
                      : team->connected ? Among::connected
                      : frequent        ? Among::frequent
                                        : Among::all;
  const int per_machine = !even ? uneven : machines != nullptr ? on_levels(kind, ordered) : 0;
  return select(shared->rules, kind, size(), among, per_machine, bytes, ordered);
}

// A collective's turn on its board. One that ends before end() breaks the board.
class Turn {
 public:
  // Throws MPI_ERR_OTHER if the board is broken. `called` follows the collectives before.
  Turn(const Comm& comm, Called& called);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { board_.broken = board_.broken || !ended_; }
  void end() { ended_ = true; }

 private:
  Board& board_;
  bool ended_ = false;
};

// The boards of a communicator, by the tags of its collectives. One is made at the first blocking
// collective, and at the second of any other tag: many programs start a nonblocking or persistent
// one but once, and messages do for that.
class Boards {
 public:
  // A collective with this tag begins, the next on this rank. Null: it has no board (yet).
  [[nodiscard]] Board* begin(std::int32_t tag);
  // Whether that one is to make it, or has tried to.
  [[nodiscard]] bool is_due(std::int32_t tag) const {
    const Entry* const known = entry(tag);
    return !known->tried && (tag == 0 || known->begun > 1);
  }
  [[nodiscard]] Board* find(std::int32_t tag) const {
    const Entry* const known = entry(tag);
    return known != nullptr ? known->board.get() : nullptr;
  }
  // Null: it cannot be made.
  void put(std::int32_t tag, std::unique_ptr<Board> board);
  // Nothing comes with this tag any more, which is a persistent collective's.
  void leave(std::int32_t tag, Panels& panels) noexcept;
  // The communicator is freed.
  void leave(Panels& panels) noexcept;

 private:
  struct Entry {
    std::unique_ptr<Board> board;
    std::uint8_t begun = 0; // at most 2
    bool tried = false;
  };
  // Null if none has begun with this tag.
  [[nodiscard]] const Entry* entry(std::int32_t tag) const {
    const auto at = static_cast<std::size_t>(tag);
    if (at < entries_.size()) [[likely]]
      return &entries_[at];
    const auto own = own_.find(tag);
    return own != own_.end() ? &own->second : nullptr;
  }
  [[nodiscard]] Entry& made_entry(std::int32_t tag);

  std::vector<Entry> entries_;        // by the first tags, which most collectives share
  std::map<std::int32_t, Entry> own_; // by the others, each of one persistent collective
};

class Collective;

// Makes the board for the tag of `comm`, which has boards, or finds with all other ranks that there
// can be none.
Task make_board(Comm& comm);
// The same, and runs the collective (again).
Task run_with_board(Collective& self, Task (*run)(Collective& self));

} // namespace macadam::coll
