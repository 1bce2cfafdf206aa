// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move data, in shared memory: a rank that gives data writes them to its panel
// once, the ranks that need them read them there. Short ones are in the note; long ones follow it
// in chunks.
#include "coll/algorithms.h"
#include "coll/shared.h"

namespace macadam::coll {
namespace {

// Bytes of a chunk for each of n blocks.
std::size_t room_for_each(const Board& board, int n) {
  return board.chunks.room / static_cast<std::size_t>(n) & ~std::size_t{63};
}

} // namespace

// Every rank writes one word, and reads one of each other: one step.
Task barrier_shared(Comm& comm) {
  Board& board = *comm.board;
  Called called(Kind::barrier, 0);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  board.publish(notes, note, called);
  board.await_all(notes, note);
  for (const int from : others(comm))
    co_await PeerNote(comm, from, note, called);
  board.pass(notes);
  turn.end();
}

// The root is done when its last data are in its panel.
Task bcast_shared(Comm& comm, Data data, int root) {
  const std::size_t bytes = data.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::bcast, bytes, root);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  SlotRing& chunks = board.chunks;
  const Position note = notes.position;
  const bool gives = comm.rank() == root;
  ByteStream stream(data);
  if (gives) {
    if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
    if (bytes <= notes.room) stream.read(board, 0, board.data(notes, root, note), bytes);
    board.publish(notes, note, called);
  } else {
    co_await board.written(comm, notes, root, note);
    const Called its(board.slot(notes, root, note).called);
    if (its.word() != called.word()) [[unlikely]] {
      if (its.is_like(called)) { // the next collective finds the ranks in step again
        board.pass(notes);
        if (its.bytes() > notes.room)
          board.pass(chunks, Steps::one_way(its.bytes(), chunks.room, least_step).count);
        turn.end();
      }
      fail_different(comm, root, its, called);
    }
    if (bytes <= notes.room) stream.write(0, board.data(notes, root, note), bytes);
  }
  board.pass(notes);
  const Steps steps = Steps::one_way(bytes > notes.room ? bytes : 0, chunks.room, least_step);
  for (std::uint32_t step = 0; step < steps.count; ++step) {
    const Position at = chunks.position;
    if (gives) {
      if (!Board::has_room(chunks, at)) co_await Board::make_room(comm, chunks, at);
      stream.read(board, steps.begin(step), board.data(chunks, root, at), steps.units(step));
      board.publish(chunks, at, called);
    } else {
      co_await board.written(comm, chunks, root, at);
      stream.write(steps.begin(step), board.data(chunks, root, at), steps.units(step));
    }
    board.pass(chunks);
  }
  turn.end();
}

// A rank that is not the root is done when its last data are in its panel.
Task gather_shared(Comm& comm, Data mine, Blocks all, int root) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::gather, bytes, root);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  const bool is_long = bytes > notes.room;
  if (comm.rank() != root) {
    if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
    if (!is_long) ByteStream(mine).read(board, 0, board.data(notes, comm.rank(), note), bytes);
    board.publish_to(root, notes, note, called);
  } else {
    board.await_all(notes, note);
    for (const int from : others(comm)) {
      co_await PeerNote(comm, from, note, called);
      if (!is_long) ByteStream(all[from]).write(0, board.data(notes, from, note), bytes);
    }
  }
  board.pass(notes);
  if (is_long) co_await gather_chunks(comm, called, mine, all, root);
  turn.end();
}

Task gather_chunks(Comm& comm, Called called, Data mine, Blocks all, int root) {
  Board& board = *comm.board;
  SlotRing& chunks = board.chunks;
  const Steps steps = Steps::one_way(mine.bytes(), chunks.room, least_step);
  ByteStream stream(mine);
  for (std::uint32_t step = 0; step < steps.count; ++step) {
    const Position at = chunks.position;
    if (comm.rank() != root) {
      if (!Board::has_room(chunks, at)) co_await Board::make_room(comm, chunks, at);
      stream.read(board, steps.begin(step), board.data(chunks, comm.rank(), at), steps.units(step));
      board.publish_to(root, chunks, at, called);
    } else {
      board.await_all(chunks, at);
      for (const int from : others(comm)) {
        co_await board.written(comm, chunks, from, at);
        ByteStream(all[from]).write(steps.begin(step), board.data(chunks, from, at),
                                    steps.units(step));
      }
    }
    board.pass(chunks);
  }
}

namespace {

// A part of every rank's block, but the root's, one behind the other.
void write_parts(const Board& board, std::byte* to, const Blocks& all, int n, int root,
                 std::size_t first, std::size_t count, std::size_t stride) {
  for (int rank = 0; rank < n; ++rank)
    if (rank != root)
      ByteStream(all[rank]).read(board, first, to + static_cast<std::size_t>(rank) * stride, count);
}

} // namespace

// A part of each rank's block in every chunk. The root is done when its last data are there.
Task scatter_shared(Comm& comm, Blocks all, Data mine, int root) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::scatter, bytes, root);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const Position note = notes.position;
  const int n = comm.size();
  const bool is_long = bytes * static_cast<std::size_t>(n) > notes.room;
  if (comm.rank() == root) {
    if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
    if (!is_long) write_parts(board, board.data(notes, root, note), all, n, root, 0, bytes, bytes);
    board.publish(notes, note, called);
  } else {
    co_await PeerNote(comm, root, note, called);
    if (!is_long)
      ByteStream(mine).write(
          0, board.data(notes, root, note) + static_cast<std::size_t>(comm.rank()) * bytes, bytes);
  }
  board.pass(notes);
  if (is_long) co_await scatter_chunks(comm, called, all, mine, root);
  turn.end();
}

Task scatter_chunks(Comm& comm, Called called, Blocks all, Data mine, int root) {
  Board& board = *comm.board;
  SlotRing& chunks = board.chunks;
  const int n = comm.size();
  const Steps steps = Steps::one_way(mine.bytes(), room_for_each(board, n),
                                     least_step / static_cast<std::size_t>(n));
  ByteStream stream(mine);
  for (std::uint32_t step = 0; step < steps.count; ++step) {
    const Position at = chunks.position;
    if (comm.rank() == root) {
      if (!Board::has_room(chunks, at)) co_await Board::make_room(comm, chunks, at);
      write_parts(board, board.data(chunks, root, at), all, n, root, steps.begin(step),
                  steps.units(step), steps.each);
      board.publish(chunks, at, called);
    } else {
      co_await board.written(comm, chunks, root, at);
      stream.write(steps.begin(step),
                   board.data(chunks, root, at) +
                       static_cast<std::size_t>(comm.rank()) * steps.each,
                   steps.units(step));
    }
    board.pass(chunks);
  }
}

namespace {

// Every rank gives and takes: what a rank writes at one step, and what it reads of another's.
template <class Write, class Read>
Task exchange_shared(Comm& comm, Called called, Steps steps, Write write, Read read) {
  Board& board = *comm.board;
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const int rank = comm.rank();
  const Position note = notes.position;
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  if (steps.count == 0) write(0, board.data(notes, rank, note));
  board.publish(notes, note, called);
  if (steps.count == 0) {
    board.await_all(notes, note);
    for (const int from : others(comm)) {
      co_await PeerNote(comm, from, note, called);
      read(0, from, board.data(notes, from, note));
    }
    board.pass(notes);
  } else {
    const Position first = board.chunks.position;
    co_await flow(comm, note, called, steps, write, [&](std::uint32_t step) {
      for (const int from : others(comm)) {
        read(step, from, board.data(board.chunks, from, first + step));
      }
    });
  }
  turn.end();
}

} // namespace

Task allgather_shared(Comm& comm, Blocks all) {
  std::size_t total = 0;
  std::size_t longest = 0;
  for (int rank = 0; rank < comm.size(); ++rank) {
    total += all[rank].bytes();
    longest = std::max(longest, all[rank].bytes());
  }
  if (longest == 0) co_return;
  const Data mine = all[comm.rank()];
  const Steps steps =
      Steps::both_ways(longest > comm.board->notes.room ? longest : 0, comm.board->chunks.room);
  const std::size_t one = steps.count == 0 ? longest : steps.each;
  const auto part = [=](std::uint32_t step, const Data& block) {
    const std::size_t first = step * one;
    return first < block.bytes() ? std::min(one, block.bytes() - first) : 0;
  };
  co_await exchange_shared(
      comm, {Kind::allgather, total}, steps,
      [&](std::uint32_t step, std::byte* to) {
        if (part(step, mine) > 0)
          ByteStream(mine).read(*comm.board, step * one, to, part(step, mine), Ways::both);
      },
      [&](std::uint32_t step, int from, const std::byte* what) {
        const Data block = all[from];
        if (part(step, block) > 0) ByteStream(block).write(step * one, what, part(step, block));
      });
}

namespace {

// An alltoall by steps: a part of each block for another rank, in the order of ranks.
struct Parts {
  const Comm& comm;
  const Blocks& out;
  const Blocks& in;
  std::size_t one; // bytes of a part

  [[nodiscard]] std::size_t bytes(std::uint32_t step) const {
    return std::min(one, in[0].bytes() - step * one);
  }
  void write(std::uint32_t step, std::byte* to) const {
    for (int rank = 0; rank < comm.size(); ++rank)
      if (rank != comm.rank())
        ByteStream(out[rank]).read(*comm.board, step * one, to + part_for(rank, comm.rank()) * one,
                                   bytes(step), Ways::both);
  }
  void read(std::uint32_t step, int from, const std::byte* what) const {
    ByteStream(in[from]).write(step * one, what + part_for(comm.rank(), from) * one, bytes(step));
  }
};

Steps alltoall_steps(const Comm& comm, std::size_t bytes) {
  return Steps::both_ways(bytes, room_for_each(*comm.board, comm.size() - 1));
}

} // namespace

// `out` and `in` may be the same memory: what is read into a part of a block has been written from
// there before.
Task alltoall_shared(Comm& comm, Blocks out, Blocks in) {
  const std::size_t bytes = in[0].bytes();
  const int others = comm.size() - 1;
  if (bytes == 0 || others == 0) co_return;
  const bool is_long = bytes * static_cast<std::size_t>(others) > comm.board->notes.room;
  const Steps steps = alltoall_steps(comm, is_long ? bytes : 0);
  const Parts parts{comm, out, in, is_long ? steps.each : bytes};
  co_await exchange_shared(
      comm, {Kind::alltoall, bytes}, steps,
      [&](std::uint32_t step, std::byte* to) { parts.write(step, to); },
      [&](std::uint32_t step, int from, const std::byte* what) { parts.read(step, from, what); });
}

Task alltoall_chunks(Comm& comm, Called called, Blocks out, Blocks in) {
  const Steps steps = alltoall_steps(comm, in[0].bytes());
  const Parts parts{comm, out, in, steps.each};
  const Position first = comm.board->chunks.position;
  co_await flow(
      comm, {}, called, steps, [&](std::uint32_t step, std::byte* to) { parts.write(step, to); },
      [&](std::uint32_t step) {
        for (const int from : others(comm)) {
          parts.read(step, from, comm.board->data(comm.board->chunks, from, first + step));
        }
      });
}

} // namespace macadam::coll
