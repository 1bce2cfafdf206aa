// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/comm.h"
#include "coll/task.h"
#include "engine/word_wait.h"

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::coll {

// What a rank has written for others to read, in its panel. Data stand behind it.
struct Slot {
  std::atomic<std::uint32_t> written{0};  // the position of what is in it, + 1
  std::atomic<std::uint32_t> combined{0}; // the same, of what the rank has put over its own piece
  std::uint64_t bytes = 0;                // of all that this rank gives in the collective
};
static_assert(sizeof(Slot) == 16);

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

  std::uint32_t position = 0; // the next that this rank has not passed
  std::uint32_t free_end = 0; // positions before this one may be written
};

// Waits until a peer has written a word; throws MPI_ERR_PROC_ABORTED if a rank of the team has
// failed before.
class [[nodiscard]] PeerWord : engine::WordWait {
 public:
  PeerWord(const Comm& comm, const std::atomic<std::uint32_t>& what, std::uint32_t until)
      : engine_(comm.shared->engine) {
    word = &what;
    value = until;
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
  engine::Engine& engine_;
  std::coroutine_handle<> waiting_;
  bool ok_ = true;
};

// Memory by which the ranks of a machine run one collective after the other: each has a panel in
// its own, which it writes and all others have mapped. A note is for short data, and goes ahead of
// long ones, which follow in chunks. Made at the first collective that can use it, for one tag of a
// communicator; those of another tag have a board of their own.
class Board {
 public:
  static constexpr std::size_t note_bytes = 17 * 64 - sizeof(Slot);
  static constexpr std::size_t chunk_bytes = std::size_t{32} << 10;
  static constexpr std::uint32_t note_slots = 64;
  static constexpr std::uint32_t chunk_slots = 8;
  static constexpr std::size_t panel_bytes =
      2 * 64 + note_slots * (17 * 64) + chunk_slots * (chunk_bytes + 2 * 64);

  // `panels`, by rank, are cleared and mapped.
  Board(const Comm& comm, std::vector<std::byte*> panels);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  [[nodiscard]] Slot& slot(const SlotRing& ring, int rank, std::uint32_t position) const {
    return *reinterpret_cast<Slot*>(panel(rank) + ring.offset +
                                    (position & (ring.slots - 1)) * ring.stride);
  }
  [[nodiscard]] std::byte* data(const SlotRing& ring, int rank, std::uint32_t position) const {
    return reinterpret_cast<std::byte*>(&slot(ring, rank, position)) + ring.head;
  }

  // Whether this rank may write at a position; if not, make_room() waits for it.
  [[nodiscard]] static bool has_room(const SlotRing& ring, std::uint32_t position) {
    return static_cast<std::int32_t>(ring.free_end - position) > 0;
  }
  static Task make_room(Comm& comm, SlotRing& ring, std::uint32_t position);
  // Whether it may now, by what the others have passed meanwhile.
  [[nodiscard]] bool find_room(SlotRing& ring, std::uint32_t position) const;

  // What this rank has written at a position is there to be read, by all or by one.
  void publish(const SlotRing& ring, std::uint32_t position, std::uint64_t bytes);
  void publish_to(int reader, const SlotRing& ring, std::uint32_t position, std::uint64_t bytes);
  void publish_combined(const SlotRing& ring, std::uint32_t position);
  [[nodiscard]] PeerWord written(const Comm& comm, const SlotRing& ring, int from,
                                 std::uint32_t position) const {
    return {comm, slot(ring, from, position).written, position + 1};
  }
  [[nodiscard]] PeerWord combined(const Comm& comm, const SlotRing& ring, int from,
                                  std::uint32_t position) const {
    return {comm, slot(ring, from, position).combined, position + 1};
  }

  // A rank that has not come so far; none: -1.
  [[nodiscard]] int not_written(const SlotRing& ring, std::uint32_t position) const;
  [[nodiscard]] int not_combined(const SlotRing& ring, std::uint32_t position) const;

  // This rank needs nothing any more that stands at the next `count` positions.
  void pass(SlotRing& ring, std::uint32_t count = 1);

  // This rank will not touch the panels of others any more.
  void leave() noexcept;
  // All others have said so.
  [[nodiscard]] bool is_left() const;
  [[nodiscard]] std::byte* own_panel() const { return panel(rank_); }

  SlotRing notes;
  SlotRing chunks;
  bool broken = false; // a collective ended in the middle: positions mean nothing any more

 private:
  struct Peer {
    std::byte* panel;
    engine::Transport* network;
    engine::Link* link;
  };
  [[nodiscard]] std::byte* panel(int rank) const {
    return peers_[static_cast<std::size_t>(rank)].panel;
  }
  [[nodiscard]] std::atomic<std::uint32_t>& word(int rank, std::size_t offset) const {
    return *reinterpret_cast<std::atomic<std::uint32_t>*>(panel(rank) + offset);
  }
  void wake(int rank) const {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    peer.network->wake_peer(*peer.link);
  }
  void wake_all() const;
  template <auto Word>
  [[nodiscard]] int behind(const SlotRing& ring, std::uint32_t position) const;

  int rank_;
  std::vector<Peer> peers_;
};

// A collective's turn on its board. One that ends before end() breaks the board.
class Turn {
 public:
  // Throws MPI_ERR_OTHER if the board is broken.
  explicit Turn(const Comm& comm);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { board_.broken = board_.broken || !ended_; }
  void end() { ended_ = true; }

 private:
  Board& board_;
  bool ended_ = false;
};

// The boards of a communicator, by the tags of its collectives.
class Boards {
 public:
  // Null: there is none (yet).
  [[nodiscard]] Board* find(std::int32_t tag) const {
    const auto at = static_cast<std::size_t>(tag);
    return at < boards_.size() ? boards_[at].board.get() : nullptr;
  }
  // Whether the ranks have tried to make one.
  [[nodiscard]] bool tried(std::int32_t tag) const {
    const auto at = static_cast<std::size_t>(tag);
    return at < boards_.size() && boards_[at].tried;
  }
  // Null: it cannot be made.
  void put(std::int32_t tag, std::unique_ptr<Board> board);
  // The communicator is freed.
  void leave(Panels& panels) noexcept;

 private:
  struct Entry {
    std::unique_ptr<Board> board;
    bool tried = false;
  };
  std::vector<Entry> boards_;
};

class Collective;

// Makes the board for the collective's tag, or finds with all other ranks that there can be none,
// and runs it (again).
Task run_with_board(Collective& self, Task (*run)(Collective& self));

} // namespace macadam::coll
