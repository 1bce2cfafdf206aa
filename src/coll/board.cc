// SPDX-License-Identifier: BSD-3-Clause
#include "coll/board.h"

#include "base/fence.h"
#include "coll/algorithms.h"
#include "coll/collective.h"
#include "engine/mutant.h"

#include <algorithm>
#include <new>
#include <utility>

namespace macadam::coll {
namespace {

using engine::Mutant;

constexpr std::size_t line = 64;
// In the first lines of a panel: what its rank has passed, and how many others have left.
constexpr std::size_t notes_passed = 0;
constexpr std::size_t chunks_passed = 8;
constexpr std::size_t left = line;
// On the line that is written seldom: what it waits for.
constexpr std::size_t notes_awaited = line + 8;
constexpr std::size_t chunks_awaited = line + 16;
static_assert(PanelShape::front == 2 * line);
// A rank tells what it has passed this many times a lap, so that few are woken. Ranks are at most
// two chunks ahead of what they have passed: a quarter is little enough for all to go on.
constexpr std::uint32_t tellings = 4;

} // namespace

bool PeerWord::await_suspend(std::coroutine_handle<> waiting) noexcept {
  waiting_ = waiting;
  call = [](engine::WordWait& wait, bool ok) noexcept {
    auto& self = static_cast<PeerWord&>(wait);
    self.ok_ = ok;
    if (WaitObserver* const observer = self.shared_.observer)
      observer->on_word((*self.group)[self.from_]);
    self.waiting_.resume();
  };
  ok_ = shared_.engine.wait_for(*this);
  return ok_;
}

void PeerWord::throw_lost() const {
  if (const base::Error* const failure = shared_.engine.failure()) throw base::Error(*failure);
  base::fail(MPI_ERR_PROC_ABORTED, "a process of the communicator has failed");
}

Board::Board(const Comm& comm, std::vector<std::byte*> panels)
    : rank_(comm.rank()),
      shares_cores_(comm.shared->engine.networks().nearest().limits().shares_cores) {
  const PanelShape& shape = comm.shared->panels.shape;
  notes = {.offset = PanelShape::front,
           .stride = shape.note_stride(),
           .head = note_head,
           .room = shape.note_bytes,
           .slots = shape.notes,
           .passed = notes_passed,
           .awaited = notes_awaited,
           .in_turn = 0};
  chunks = {.offset = shape.first_chunk(),
            .stride = shape.chunk_stride(),
            .head = chunk_head,
            .room = shape.chunk_bytes,
            .slots = shape.chunks,
            .passed = chunks_passed,
            .awaited = chunks_awaited,
            .in_turn = comm.size() == 2 ? shape.chunks : 0};
  notes.free_end = notes.slots;
  chunks.free_end = chunks.slots;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const engine::Peer& peer = comm.shared->engine.peer((*comm.team->local)[rank]);
    peers_.push_back({panels[static_cast<std::size_t>(rank)], peer.transport, peer.link});
  }
}

// All others can pass what stands there without this rank's help. They tell so for a part of a lap
// at once, so this rank does not wait again for the next slot.
Task Board::make_room(Comm& comm, SlotRing& ring, Position position) {
  const Board& board = *comm.board;
  const Position needed = position + 1 - ring.slots;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (rank == comm.rank()) continue;
    co_await PeerWord(comm, rank, board.word(rank, ring.passed), needed);
  }
  static_cast<void>(board.find_room(ring, position));
}

bool Board::find_room(SlotRing& ring, Position position) const {
  if (has_room(ring, position)) return true;
  Position least = ring.position; // what this rank writes it may still need itself
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank == rank_) continue;
    least = std::min(least, word(rank, ring.passed).load());
  }
  ring.free_end = least + ring.slots + (engine::is_mutant(Mutant::board_one_late) ? 1 : 0);
  return has_room(ring, position);
}

template <class WordOf>
int Board::behind(const SlotRing& ring, Position position, WordOf&& word_of) const {
  const int n = static_cast<int>(peers_.size());
  const int others = n - (engine::is_mutant(Mutant::board_unwritten) ? 1 : 0);
  for (int distance = 1; distance < others; ++distance) {
    const int rank = (rank_ + distance) % n;
    if (word_of(slot(ring, rank, position)).load() <= position) return rank;
  }
  return -1;
}
int Board::not_written(const SlotRing& ring, Position position) const {
  return behind(ring, position, [](Slot& its) -> engine::Word& { return its.written; });
}
int Board::not_combined(const SlotRing& ring, Position position) const {
  return behind(ring, position, [](Slot& its) -> engine::Word& { return chunk(its).combined; });
}

void Board::publish(const SlotRing& ring, Position position, Called called) {
  Slot& own = slot(ring, rank_, position);
  own.called = called.word();
  own.written.store(position + 1);
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank != rank_) wake_reader(rank, ring, position);
  }
}

void Board::publish_to(int reader, const SlotRing& ring, Position position, Called called) {
  Slot& own = slot(ring, rank_, position);
  own.called = called.word();
  own.written.store(position + 1);
  wake_reader(reader, ring, position);
}

void Board::publish_combined(const SlotRing& ring, Position position) {
  chunk(slot(ring, rank_, position)).combined.store(position + 1);
  wake_all();
}

void Board::publish_combined_to(int reader, const SlotRing& ring, Position position) {
  chunk(slot(ring, rank_, position)).combined.store(position + 1);
  if (!engine::is_mutant(Mutant::board_reader_asleep)) wake(reader);
}

void Board::wake_all() const {
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank != rank_) wake(rank);
  }
}

// What this rank has written is there for the others before it looks at theirs: so of several that
// write at once, the last one sees that it is.
void Board::wake_reader(int reader, const SlotRing& ring, Position position) const {
  const Peer& peer = peers_[static_cast<std::size_t>(reader)];
  if (!peer.network->peer_sleeps(*peer.link)) [[likely]]
    return;
  const Position awaited = word(reader, ring.awaited).load();
  if (awaited == position + 1 || (awaited != 0 && engine::is_mutant(Mutant::board_awaited_once))) {
    base::full_fence();
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank != reader && rank != rank_ && slot(ring, rank, position).written.load() <= position)
        return;
    }
  }
  wake(reader);
}

void Board::pass(SlotRing& ring, std::uint32_t count) {
  const std::uint32_t part = ring.slots / tellings;
  const Position before = ring.position / part;
  ring.position += count;
  if (ring.position / part == before) return;
  word(rank_, ring.passed).store(ring.position);
  wake_all();
}

void Board::leave() noexcept {
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank != rank_) word(rank, left).add_one();
  }
}

bool Board::is_left() const {
  return word(rank_, left).load() + 1 == peers_.size();
}

Turn::Turn(const Comm& comm, Called& called) : board_(*comm.board) {
  if (board_.broken) [[unlikely]]
    base::fail(MPI_ERR_OTHER,
               "an earlier collective of the communicator failed on this rank, so no other can "
               "follow; make a new communicator");
  called.follow(board_.history);
  ++comm.shared->panels.collectives;
}

Panels::Panels(engine::Engine& engine) : engine_(engine) {}
Panels::~Panels() = default;

std::byte* Panels::make(engine::RemoteMemory& name) {
  free_left();
  engine::Transport& network = engine_.networks().nearest();
  auto* const panel = bytes_ + shape.bytes() <= most_bytes
                          ? static_cast<std::byte*>(network.allocate(shape.bytes()))
                          : nullptr;
  if (panel == nullptr) {
    ++refused_;
    return nullptr;
  }
  try {
    name = network.register_region(panel, shape.bytes());
  } catch (...) {
    network.free(panel);
    throw;
  }
  bytes_ += shape.bytes();
  bytes_most_ = std::max(bytes_most_, bytes_);
  clear(panel);
  return panel;
}

// No page of the data is touched before it is used.
void Panels::clear(std::byte* panel) const {
  new (panel + notes_passed) engine::Word;
  new (panel + chunks_passed) engine::Word;
  new (panel + left) engine::Word;
  new (panel + notes_awaited) engine::Word;
  new (panel + chunks_awaited) engine::Word;
  for (std::uint32_t i = 0; i < shape.notes; ++i)
    new (panel + PanelShape::front + i * shape.note_stride()) Slot;
  for (std::uint32_t i = 0; i < shape.chunks; ++i)
    new (panel + shape.first_chunk() + i * shape.chunk_stride()) ChunkSlot;
}

void Panels::free(std::byte* panel) noexcept {
  engine_.networks().nearest().free(panel);
  bytes_ -= shape.bytes();
}

// One that finds no place in the list stays until the network ends.
void Panels::retire(std::unique_ptr<Board> board) noexcept {
  board->leave();
  try {
    retired_.push_back(std::move(board));
  } catch (const std::bad_alloc&) {
    return;
  }
  free_left();
}

void Panels::free_left() noexcept {
  std::erase_if(retired_, [&](const std::unique_ptr<Board>& board) {
    if (!board->is_left()) return false;
    free(board->own_panel());
    return true;
  });
}

void Panels::list(base::CounterList& list) const {
  list.add("collectives", "coll_shared", "collectives done in shared memory, without messages",
           collectives);
  list.add("collectives", "coll_board_bytes_most",
           "the most bytes set aside for them, of which what is used is in memory", bytes_most_);
  list.add("collectives", "coll_boards_refused",
           "boards for which there was no memory: these collectives are done by messages",
           refused_);
}

Boards::Entry& Boards::made_entry(std::int32_t tag) {
  constexpr std::size_t shared = 2 * Sequence::tags; // as Machines numbers them
  const auto at = static_cast<std::size_t>(tag);
  if (at < entries_.size()) [[likely]]
    return entries_[at];
  if (at >= shared) return own_[tag];
  entries_.resize(at + 1);
  return entries_[at];
}

Board* Boards::begin(std::int32_t tag) {
  Entry& entry = made_entry(tag);
  if (entry.begun < 2) ++entry.begun;
  return entry.board.get();
}

void Boards::put(std::int32_t tag, std::unique_ptr<Board> board) {
  Entry& entry = made_entry(tag);
  entry.board = std::move(board);
  entry.tried = true;
}

void Boards::leave(std::int32_t tag, Panels& panels) noexcept {
  if (find(tag) != nullptr) panels.retire(std::move(made_entry(tag).board));
  own_.erase(tag);
}

void Boards::leave(Panels& panels) noexcept {
  for (Entry& entry : entries_)
    if (entry.board != nullptr) panels.retire(std::move(entry.board));
  for (auto& [tag, entry] : own_)
    if (entry.board != nullptr) panels.retire(std::move(entry.board));
  entries_.clear();
  own_.clear();
}

namespace {

// What a rank tells the others of its panel.
struct Offer {
  engine::RemoteMemory panel;
  std::uint64_t made;
};

std::vector<std::byte*> map_all(const Comm& comm, const Offer* offers, std::byte* own) {
  std::vector<std::byte*> panels;
  for (int rank = 0; rank < comm.size(); ++rank) {
    std::byte* panel = own;
    if (rank != comm.rank()) {
      const engine::Peer& peer = comm.shared->engine.peer((*comm.team->local)[rank]);
      panel = offers[rank].made != 0 ? peer.transport->mapped(*peer.link, offers[rank].panel,
                                                              comm.shared->panels.shape.bytes())
                                     : nullptr;
    }
    if (panel == nullptr) return {};
    panels.push_back(panel);
  }
  return panels;
}

// Each rank's block of `bytes` bytes to all.
Task exchange(Comm& comm, std::byte* all, std::size_t bytes) {
  const Blocks blocks{all, static_cast<MPI_Count>(bytes), &comm.shared->byte, {}, {}, nullptr};
  co_await allgather_direct(comm, blocks);
}

// What a rank says to a board that all would have: it holds where all say so.
enum Vote : std::uint8_t { has_board = 1, single_copy = 2, divides_work = 4 };

bool may_copy_once(const Comm& comm) {
  for (int rank = 0; rank < comm.size(); ++rank) {
    const engine::Peer& peer = comm.shared->engine.peer((*comm.team->local)[rank]);
    if (rank != comm.rank() && peer.transport->why_not_direct(*peer.link) != nullptr) return false;
  }
  // One measures for all: they are on one machine.
  return comm.rank() != 0 || comm.shared->engine.networks().nearest().is_direct_fast();
}

// Fewer than four have not written and combined their pieces before one alone has combined all; nor
// have those that share cores, where it is less work (docs/benchmarks.md).
bool is_worth_dividing(const Comm& comm) {
  constexpr int fewest = 4;
  return comm.size() >= fewest && !comm.shared->engine.networks().nearest().limits().shares_cores;
}

} // namespace

// A rank writes to the others' panels only when it knows that all have mapped all of them. If a
// peer fails meanwhile, the panel stays until the network ends: others may have come so far.
Task make_board(Comm& comm) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto own = static_cast<std::size_t>(comm.rank());
  Panels& panels = comm.shared->panels;
  Scratch offers(comm, ranks * sizeof(Offer));
  auto* const offer = reinterpret_cast<Offer*>(offers.bytes());
  offer[own] = {};
  std::byte* const panel = panels.make(offer[own].panel);
  offer[own].made = panel != nullptr ? 1 : 0;
  co_await exchange(comm, offers.bytes(), sizeof(Offer));

  std::unique_ptr<Board> board;
  try {
    std::vector<std::byte*> mapped = map_all(comm, offer, panel);
    if (!mapped.empty()) board = std::make_unique<Board>(comm, std::move(mapped));
  } catch (const std::exception&) {
    // No room in this address space, or no memory: the others hear of it.
  }
  Scratch votes(comm, ranks);
  int agreed = 0;
  if (board != nullptr)
    agreed = has_board | (may_copy_once(comm) ? single_copy : 0) |
             (is_worth_dividing(comm) ? divides_work : 0);
  votes.bytes()[own] = static_cast<std::byte>(agreed);
  co_await exchange(comm, votes.bytes(), 1);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    agreed &= static_cast<int>(votes.bytes()[rank]);
  if ((agreed & has_board) == 0) {
    if (panel != nullptr) panels.free(panel);
    board.reset();
  } else {
    if ((agreed & single_copy) != 0) board->set_single_copy();
    if ((agreed & divides_work) != 0) board->set_divides_work();
  }
  comm.boards->put(comm.tag, std::move(board));
  comm.board = comm.boards->find(comm.tag);
}

Task run_with_board(Collective& self, Task (*run)(Collective& self)) {
  co_await make_board(self);
  co_await run(self);
}

} // namespace macadam::coll
