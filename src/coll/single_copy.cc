// SPDX-License-Identifier: BSD-3-Clause
// Collectives whose long blocks each go from one rank to one other. On a board a root that gives or
// takes them all copies as much as all others together, and each block is copied twice. Here each
// is copied once, by the rank that is not the root (in an alltoall by the one that it is for), and
// all ranks copy at once. By their notes they tell where blocks are, and that they have copied
// them.
#include "coll/single_copy.h"

#include "base/error.h"
#include "coll/algorithms.h"
#include "coll/shared.h"
#include "engine/mutant.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace macadam::coll {
namespace {

// In place, the root's block is where it belongs.
bool is_same(const Data& one, const Data& other) {
  return one.address == other.address && one.type == other.type;
}

const engine::Peer& peer_of(const Comm& comm, int rank) {
  return comm.shared->engine.peer((*comm.team->local)[rank]);
}

} // namespace

Exposed::Exposed(const Comm& comm, const Blocks& blocks)
    : network_(comm.shared->engine.networks().nearest()) {
  if (!blocks.regular() || !blocks.type->contiguous()) return;
  const Data all = blocks.range(0, comm.size());
  memory_ = network_.register_cached(all.address, all.bytes());
}

Exposed::~Exposed() {
  if (memory_.address != 0) network_.release_cached(memory_);
}

SingleCopy::SingleCopy(const Comm& comm, Direction direction, int peer, void* ours,
                       engine::RemoteMemory theirs, std::size_t bytes)
    : comm_(comm), peer_(peer) {
  const engine::Peer& its = peer_of(comm, peer);
  posted_ = direction == Direction::read
                ? its.transport->read(*its.link, ours, theirs, bytes, cookie())
                : its.transport->write(*its.link, ours, theirs, bytes, cookie());
  refused_ = posted_ != engine::Posted::done && posted_ != engine::Posted::pending;
}

void SingleCopy::on_done(bool ok) noexcept {
  posted_ = ok ? engine::Posted::done : engine::Posted::refused;
  waiting_.resume();
}

void SingleCopy::throw_lost() const {
  if (const base::Error* const failure = comm_.shared->engine.failure())
    throw base::Error(*failure);
  if (refused_) {
    base::fail(MPI_ERR_OTHER,
               "the system does not copy from or to the buffer of rank {}: it is shorter than its "
               "count says, or is memory that only its process can access, or the system has begun "
               "to forbid it; if the buffer is right, MACADAM_SHM_COPY=pipeline does without",
               peer_);
  }
  base::fail(MPI_ERR_PROC_ABORTED, "rank {} has ended", peer_);
}

Task copy_once(Comm& comm, Direction direction, int peer, Data ours, engine::RemoteMemory theirs,
               std::size_t offset) {
  const std::size_t bytes = ours.bytes();
  theirs.address += offset;
  if (ours.type->contiguous()) {
    co_await SingleCopy(comm, direction, peer, ours.address, theirs, bytes);
    co_return;
  }
  constexpr std::size_t most = std::size_t{64} << 10;
  ByteStream stream(ours);
  Scratch packed(comm, std::min(bytes, most));
  for (std::size_t done = 0, piece = 0; done < bytes; done += piece, theirs.address += piece) {
    piece = std::min(bytes - done, most);
    if (direction == Direction::write) stream.read(done, packed.bytes(), piece);
    co_await SingleCopy(comm, direction, peer, packed.bytes(), theirs, piece);
    if (direction == Direction::read) stream.write(done, packed.bytes(), piece);
  }
}

namespace {

// Those that have called something else. A board has 64 ranks at most.
class Different {
 public:
  void add(int rank, Called its) {
    if (ranks_ == 0) first_ = {rank, its};
    ranks_ |= std::uint64_t{1} << rank;
  }
  [[nodiscard]] bool has(int rank) const { return (ranks_ >> rank & 1) != 0; }
  void fail_if_any(const Comm& comm, Called mine) const {
    if (ranks_ != 0) [[unlikely]]
      fail_different(comm, first_.first, first_.second, mine);
  }

 private:
  std::uint64_t ranks_ = 0;
  std::pair<int, Called> first_{-1, Called(0)};
};

// All others have written a note at this position, but those that differed before: they write no
// more. Whoever shows its blocks does not fail for one that differs while the rest still copy.
Task pass_all(Comm& comm, Position note, Called mine, Different& different) {
  Board& board = *comm.board;
  board.await_all(board.notes, note);
  for (const int from : others(comm)) {
    if (different.has(from)) continue;
    co_await board.written(comm, board.notes, from, note);
    const Called its(board.slot(board.notes, from, note).called);
    if (its.word() != mine.word()) [[unlikely]]
      different.add(from, its);
  }
  board.pass(board.notes);
}

// All others have copied, and said so at this position.
Task pass_copied(Comm& comm, Position copied, Called mine, Different different = {}) {
  if (engine::is_mutant(engine::Mutant::single_copy_unawaited)) {
    comm.board->pass(comm.board->notes);
    co_return;
  }
  co_await pass_all(comm, copied, mine, different);
  different.fail_if_any(comm, mine);
}

// In a note, where others find a rank's blocks.
void show(Board& board, int rank, Position note, const Exposed& blocks) {
  const engine::RemoteMemory memory = blocks.memory();
  std::memcpy(board.data(board.notes, rank, note), &memory, sizeof memory);
}
engine::RemoteMemory shown(const Board& board, int rank, Position note) {
  engine::RemoteMemory memory;
  std::memcpy(&memory, board.data(board.notes, rank, note), sizeof memory);
  return memory;
}

} // namespace

Task scatter_single_copy(Comm& comm, Blocks all, Data mine, int root) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  if (comm.rank() == root) check_own(all[root], mine);
  Board& board = *comm.board;
  Called called(Kind::scatter, bytes, root);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  if (comm.rank() != root) {
    co_await board.written(comm, notes, root, note);
    const Called its(board.slot(notes, root, note).called);
    if (its.word() != called.word()) [[unlikely]] {
      board.publish_to(root, notes, note, called); // which waits for it
      fail_different(comm, root, its, called);
    }
    const engine::RemoteMemory theirs = shown(board, root, note);
    if (theirs.address == 0) {
      board.pass(notes);
      co_await scatter_chunks(comm, called, all, mine, root);
    } else {
      co_await copy_once(comm, Direction::read, root, mine, theirs,
                         bytes * static_cast<std::size_t>(comm.rank()));
      board.publish_to(root, notes, note, called);
      board.pass(notes);
    }
  } else {
    const Exposed blocks(comm, all);
    show(board, root, note, blocks);
    board.publish(notes, note, called);
    if (!is_same(mine, all[root])) copy(all[root], mine);
    if (blocks.memory().address == 0) {
      board.pass(notes);
      co_await scatter_chunks(comm, called, all, mine, root);
    } else {
      co_await pass_copied(comm, note, called);
    }
  }
  turn.end();
}

// All write to the root's memory.
Task gather_single_copy(Comm& comm, Data mine, Blocks all, int root) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  if (comm.rank() == root) check_own(mine, all[root]);
  Board& board = *comm.board;
  Called called(Kind::gather, bytes, root);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  if (comm.rank() != root) {
    board.publish_to(root, notes, note, called); // the root compares
    co_await PeerNote(comm, root, note, called);
    const engine::RemoteMemory theirs = shown(board, root, note);
    board.pass(notes);
    if (theirs.address == 0) {
      co_await gather_chunks(comm, called, mine, all, root);
    } else {
      co_await copy_once(comm, Direction::write, root, mine, theirs,
                         bytes * static_cast<std::size_t>(comm.rank()));
      const Position copied = notes.position;
      if (!Board::has_room(notes, copied)) co_await Board::make_room(comm, notes, copied);
      board.publish_to(root, notes, copied, called);
      board.pass(notes);
    }
  } else {
    const Exposed blocks(comm, all);
    show(board, root, note, blocks);
    board.publish(notes, note, called);
    if (!is_same(mine, all[root])) copy(mine, all[root]);
    Different different;
    co_await pass_all(comm, note, called, different);
    if (blocks.memory().address == 0) {
      different.fail_if_any(comm, called);
      co_await gather_chunks(comm, called, mine, all, root);
    } else {
      co_await pass_copied(comm, notes.position, called, different);
    }
  }
  turn.end();
}

// Each reads what is for it.
Task alltoall_single_copy(Comm& comm, Blocks out, Blocks in) {
  const int n = comm.size();
  const std::size_t bytes = in[0].bytes();
  if (bytes == 0 || n == 1) co_return;
  Board& board = *comm.board;
  Called called(Kind::alltoall, bytes);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  const Exposed blocks(comm, out);
  show(board, comm.rank(), note, blocks);
  board.publish(notes, note, called);
  Scratch list(comm, static_cast<std::size_t>(n) * sizeof(engine::RemoteMemory));
  auto* const theirs = reinterpret_cast<engine::RemoteMemory*>(list.bytes()); // by rank
  bool all_shown = blocks.memory().address != 0;
  board.await_all(notes, note);
  for (const int from : others(comm)) {
    co_await PeerNote(comm, from, note, called);
    theirs[from] = shown(board, from, note);
    all_shown = all_shown && theirs[from].address != 0;
  }
  board.pass(notes);
  if (!all_shown) {
    co_await alltoall_chunks(comm, called, out, in);
  } else {
    for (const int from : others(comm)) {
      co_await copy_once(comm, Direction::read, from, in[from], theirs[from],
                         bytes * static_cast<std::size_t>(comm.rank()));
    }
    const Position copied = notes.position;
    if (!Board::has_room(notes, copied)) co_await Board::make_room(comm, notes, copied);
    board.publish(notes, copied, called);
    co_await pass_copied(comm, copied, called);
  }
  turn.end();
}

} // namespace macadam::coll
