// SPDX-License-Identifier: BSD-3-Clause
// Collectives that combine, in shared memory: straight from where the ranks have written their
// parts, always in the order of the ranks, so that no operation need commute.
#include "coll/algorithms.h"
#include "coll/reduction.h"
#include "coll/shared.h"

namespace macadam::coll {
namespace {

// Combines `count` elements that `part(rank)` points to on each of n > 1 ranks. Of the parts, `sum`
// may be the last rank's only. In blocks that stay in the nearest cache between the operands.
template <class Part>
void fold(const datatype::Op& op, const datatype::Type& type, int n, std::byte* sum,
          std::size_t count, Part&& part) {
  constexpr std::size_t block_bytes = 8 << 10;
  const auto size = static_cast<std::size_t>(type.size());
  const std::size_t block = std::max<std::size_t>(block_bytes / size, 1);
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t elements = std::min(block, count - first);
    const std::size_t at = first * size;
    op.combine(part(n - 2) + at, part(n - 1) + at, sum + at, static_cast<MPI_Count>(elements),
               type);
    for (int rank = n - 3; rank >= 0; --rank)
      op.apply(part(rank) + at, sum + at, static_cast<MPI_Count>(elements), type);
  }
}

std::size_t size_of(const Data& data) {
  return static_cast<std::size_t>(data.type->size());
}
std::byte* element(const Data& data, std::size_t i) {
  return static_cast<std::byte*>(data.address) + i * size_of(data);
}
// Elements that go in chunks; none if the vector is in the notes.
std::size_t long_count(const Board& board, const Data& vector) {
  return vector.bytes() > board.notes.room ? static_cast<std::size_t>(vector.count) : 0;
}

} // namespace

bool can_share(const Comm& comm, const datatype::Type& type) {
  return is_dense(type) && type.size() > 0 &&
         static_cast<std::size_t>(type.size()) * static_cast<std::size_t>(comm.size()) <=
             comm.shared->panels.shape.chunk_bytes;
}

namespace {

constexpr int every_rank = -1; // as a root

// A vector in a chunk at a time: each rank writes its pieces, combines one piece of all, writes
// that to where its own piece was in its panel, and the root, or every rank, reads the others'
// pieces. What is computed is computed in memory of its own: stores one by one to lines that others
// hold take four times as long as a copy.
Task combine_pieces(Comm& comm, Position note, Called called, Data mine, Data result,
                    const datatype::Op& op, Steps steps, int root) {
  Board& board = *comm.board;
  SlotRing& chunks = board.chunks;
  const int n = comm.size();
  const int rank = comm.rank();
  const std::size_t size = size_of(mine);
  const Position first = chunks.position;
  const bool reads = root == every_rank || rank == root;
  const bool in_place = mine.address == result.address;
  Scratch sums(comm, reads ? 0 : (steps.each / static_cast<std::size_t>(n) + 1) * size);
  const auto pieces = [&](std::uint32_t step) {
    return Pieces{static_cast<MPI_Count>(steps.units(step)), n};
  };
  const auto begin = [](const Pieces& of, int piece) {
    return static_cast<std::size_t>(of.begin(piece));
  };
  const auto write = [&](std::uint32_t step) {
    if (step == steps.count || !board.find_room(chunks, first + step)) return false;
    std::byte* const to = board.data(chunks, rank, first + step);
    const std::byte* const from = element(mine, steps.begin(step));
    const Pieces of = pieces(step);
    const std::size_t own = in_place ? 0 : begin(of, rank) * size;
    const std::size_t behind = in_place ? 0 : begin(of, rank + 1) * size;
    board.fill(to, from, own, Ways::both);
    board.fill(to + behind, from + behind, steps.units(step) * size - behind, Ways::both);
    board.publish(chunks, first + step, called);
    return true;
  };
  const auto combine = [&](std::uint32_t step) {
    const Pieces of = pieces(step);
    const std::size_t own = begin(of, rank);
    const std::size_t count = begin(of, rank + 1) - own;
    std::byte* const sum = reads ? element(result, steps.begin(step) + own) : sums.bytes();
    fold(op, *mine.type, n, sum, count, [&](int from) -> const std::byte* {
      return from == rank && !in_place ? element(mine, steps.begin(step) + own)
                                       : board.data(chunks, from, first + step) + own * size;
    });
    if (rank == root) return;
    board.fill(board.data(chunks, rank, first + step) + own * size, sum, count * size, Ways::both);
    if (root == every_rank)
      board.publish_combined(chunks, first + step);
    else
      board.publish_combined_to(root, chunks, first + step);
  };
  const auto read = [&](std::uint32_t step) {
    const Pieces of = pieces(step);
    for (const int from : others(comm)) {
      const std::size_t its = begin(of, from);
      base::copy(element(result, steps.begin(step) + its),
                 board.data(chunks, from, first + step) + its * size,
                 (begin(of, from + 1) - its) * size);
    }
  };
  // As flow() with a step more.
  std::uint32_t wrote = 0;
  std::uint32_t summed = 0;
  while (write(wrote))
    ++wrote;
  board.await_all(chunks, first); // behind the notes
  co_await pass_notes(comm, note, called);
  for (std::uint32_t step = 0; step < steps.count;) {
    bool moved = write(wrote);
    if (moved) ++wrote;
    int unwritten = -1;
    while (summed < wrote && (unwritten = board.not_written(chunks, first + summed)) < 0) {
      combine(summed++);
      moved = true;
      if (reads) continue;
      board.pass(chunks);
      ++step;
    }
    int uncombined = -1;
    while (step < summed && (uncombined = board.not_combined(chunks, first + step)) < 0) {
      read(step++);
      board.pass(chunks);
      moved = true;
    }
    if (moved) continue;
    if (uncombined >= 0) {
      co_await board.combined(comm, chunks, uncombined, first + step);
    } else if (unwritten >= 0) {
      board.await_all(chunks, first + summed);
      co_await board.written(comm, chunks, unwritten, first + summed);
    } else {
      co_await Board::make_room(comm, chunks, first + wrote);
    }
  }
}

} // namespace

// The root combines what the others have written; they are done when their last data are there. Of
// long vectors each rank combines a piece, where that takes less time.
Task reduce_shared(Comm& comm, Data mine, Data result, const datatype::Op& op, int root) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::reduce, bytes, root, &op);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  SlotRing& chunks = board.chunks;
  const int n = comm.size();
  const int rank = comm.rank();
  const Position note = notes.position;
  const std::size_t size = size_of(mine);
  const std::size_t total = long_count(board, mine);
  if (total > 0 && board.divides_work()) {
    if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
    board.publish(notes, note, called);
    co_await combine_pieces(comm, note, called, mine, result, op,
                            Steps::both_ways(total, chunks.room / size), root);
    turn.end();
    co_return;
  }
  const Steps steps =
      Steps::one_way(total, chunks.room / size, std::max<std::size_t>(least_step / size, 1));
  // The root's own data are in its panel, too, where the result takes their place.
  const bool writes = rank != root || mine.address == result.address;
  if (writes) {
    if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
    if (steps.count == 0) base::copy(board.data(notes, rank, note), mine.address, bytes);
  }
  if (rank != root) board.publish_to(root, notes, note, called);
  if (rank == root) {
    board.await_all(notes, note);
    for (const int from : others(comm))
      co_await PeerNote(comm, from, note, called);
    if (steps.count == 0)
      fold(op, *mine.type, n, element(result, 0), static_cast<std::size_t>(mine.count),
           [&](int from) -> const std::byte* {
             return from == root && !writes ? element(mine, 0) : board.data(notes, from, note);
           });
  }
  board.pass(notes);
  for (std::uint32_t step = 0; step < steps.count; ++step) {
    const Position at = chunks.position;
    const std::size_t begin = steps.begin(step);
    const std::size_t count = steps.units(step);
    if (writes) {
      if (!Board::has_room(chunks, at)) co_await Board::make_room(comm, chunks, at);
      board.fill(board.data(chunks, rank, at), element(mine, begin), count * size);
    }
    if (rank != root) {
      board.publish_to(root, chunks, at, called);
    } else {
      board.await_all(chunks, at);
      for (const int from : others(comm))
        co_await board.written(comm, chunks, from, at);
      fold(op, *mine.type, n, element(result, begin), count, [&](int from) -> const std::byte* {
        return from == root && !writes ? element(mine, begin) : board.data(chunks, from, at);
      });
    }
    board.pass(chunks);
  }
  turn.end();
}

namespace {

// Two ranks with not much: each writes all of its vector and combines all, which is one step less.
constexpr std::size_t both_up_to = std::size_t{16} << 10;
Task allreduce_by_both(Comm& comm, Position note, Called called, Data mine, Data result,
                       const datatype::Op& op, Steps steps) {
  Board& board = *comm.board;
  const SlotRing& chunks = board.chunks;
  const int rank = comm.rank();
  const std::size_t size = size_of(mine);
  const Position first = chunks.position;
  const bool in_place = mine.address == result.address;
  co_await flow(
      comm, note, called, steps,
      [&](std::uint32_t step, std::byte* to) {
        board.fill(to, element(mine, steps.begin(step)), steps.units(step) * size, Ways::both);
      },
      [&](std::uint32_t step) {
        const std::size_t begin = steps.begin(step);
        fold(op, *mine.type, 2, element(result, begin), steps.units(step),
             [&](int from) -> const std::byte* {
               // In place, the first rank's own lies where the second's is copied to.
               return from == rank && (!in_place || rank == 1)
                          ? element(mine, begin)
                          : board.data(chunks, from, first + step);
             });
      });
}

} // namespace

// Short vectors: every rank combines all. Long ones: each a piece of every chunk.
Task allreduce_shared(Comm& comm, Data mine, Data result, const datatype::Op& op) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::allreduce, bytes, 0, &op);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  const int n = comm.size();
  const int rank = comm.rank();
  const Position note = notes.position;
  const Steps steps = Steps::both_ways(long_count(board, mine), board.chunks.room / size_of(mine));
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  if (steps.count == 0) base::copy(board.data(notes, rank, note), mine.address, bytes);
  board.publish(notes, note, called);
  if (steps.count == 0) {
    board.await_all(notes, note);
    for (const int from : others(comm))
      co_await PeerNote(comm, from, note, called);
    fold(op, *mine.type, n, element(result, 0), static_cast<std::size_t>(mine.count),
         [&](int from) -> const std::byte* { return board.data(notes, from, note); });
    board.pass(notes);
  } else if (n == 2 && bytes <= both_up_to) {
    co_await allreduce_by_both(comm, note, called, mine, result, op, steps);
  } else {
    co_await combine_pieces(comm, note, called, mine, result, op, steps, every_rank);
  }
  turn.end();
}

// A part of each rank's block in every chunk, combined by its rank as it comes.
Task reduce_scatter_shared(Comm& comm, Data mine, Blocks blocks, Data result,
                           const datatype::Op& op) {
  const std::size_t bytes = mine.bytes();
  if (bytes == 0) co_return;
  Board& board = *comm.board;
  Called called(Kind::reduce_scatter, bytes, 0, &op);
  Turn turn(comm, called);
  SlotRing& notes = board.notes;
  SlotRing& chunks = board.chunks;
  const int n = comm.size();
  const int rank = comm.rank();
  const std::size_t size = size_of(mine);
  const Position note = notes.position;
  const Position first = chunks.position;
  const auto count_of = [&](int of) {
    return static_cast<std::size_t>(blocks.regular() ? blocks.count : blocks.counts[of]);
  };
  std::size_t longest = 0;
  std::size_t own_begin = 0;
  for (int i = 0; i < n; ++i) {
    longest = std::max(longest, count_of(i));
    own_begin += i < rank ? count_of(i) : 0;
  }
  const bool is_short = bytes <= notes.room;
  const std::size_t most = chunks.room / size / static_cast<std::size_t>(n - 1);
  const Steps steps = Steps::both_ways(longest, most);
  if (!Board::has_room(notes, note)) co_await Board::make_room(comm, notes, note);
  if (is_short) base::copy(board.data(notes, rank, note), mine.address, bytes);
  board.publish(notes, note, called);
  if (is_short) {
    board.await_all(notes, note);
    for (const int from : others(comm))
      co_await PeerNote(comm, from, note, called);
    fold(op, *mine.type, n, element(result, 0), static_cast<std::size_t>(result.count),
         [&](int from) -> const std::byte* {
           return board.data(notes, from, note) + own_begin * size;
         });
    board.pass(notes);
    turn.end();
    co_return;
  }

  // In place, the result lies over what is still to be written.
  const auto* const result_at = static_cast<const std::byte*>(result.address);
  const bool overlaps = result_at >= element(mine, 0) && result_at < element(mine, 0) + bytes;
  Scratch sums(comm, *mine.type, overlaps ? result.count : 0);
  const Data sum = overlaps ? sums.data() : result;
  const std::size_t part_bytes = steps.each * size;
  co_await flow(
      comm, note, called, steps,
      [&](std::uint32_t step, std::byte* to) {
        std::size_t begin = 0;
        for (int i = 0; i < n; ++i) {
          if (i != rank)
            board.fill(to + part_for(i, rank) * part_bytes,
                       element(mine, begin + steps.begin(step)),
                       steps.units(step, count_of(i)) * size, Ways::both);
          begin += count_of(i);
        }
      },
      [&](std::uint32_t step) {
        const std::size_t begin = steps.begin(step);
        const std::size_t count = steps.units(step, static_cast<std::size_t>(result.count));
        fold(op, *mine.type, n, element(sum, begin), count, [&](int from) -> const std::byte* {
          return from == rank
                     ? element(mine, own_begin + begin)
                     : board.data(chunks, from, first + step) + part_for(rank, from) * part_bytes;
        });
      });
  if (overlaps) copy(sum, result);
  turn.end();
}

} // namespace macadam::coll
