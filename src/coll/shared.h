// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "coll/board.h"
#include "coll/buffers.h"
#include "coll/called.h"
#include "datatype/cursor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>

namespace macadam::coll {

// What the algorithms in shared memory have in common.

// A user's data as a stream of bytes that is read and written in pieces, mostly one after the
// other.
class ByteStream {
 public:
  explicit ByteStream(const Data& data)
      : flat_(data.type->contiguous() ? static_cast<std::byte*>(data.address) : nullptr) {
    if (!data.type->contiguous()) walk_.emplace(*data.type, data.address, data.count);
  }
  // `count` bytes from byte `first` on, out of the user's memory, into a panel of the board, and
  // into the user's memory.
  void read(std::size_t first, std::byte* to, std::size_t count) {
    if (!walk_) return base::copy(to, flat_ + first, count);
    walk_->seek(static_cast<MPI_Count>(first));
    walk_->pack(to, count);
  }
  void read(const Board& board, std::size_t first, std::byte* to, std::size_t count,
            Ways ways = Ways::one) {
    if (!walk_) return board.fill(to, flat_ + first, count, ways);
    read(first, to, count);
  }
  void write(std::size_t first, const std::byte* from, std::size_t count) {
    if (!walk_) return base::copy(flat_ + first, from, count);
    walk_->seek(static_cast<MPI_Count>(first));
    walk_->unpack(from, count);
  }

 private:
  std::byte* flat_;
  std::optional<datatype::PackCursor> walk_;
};

// How `total` units go in steps of at most `most`. None where there is nothing.
struct Steps {
  // Data that go one way, in several steps if they are more than `least`, so that one is read while
  // the next is written.
  static Steps one_way(std::size_t total, std::size_t most, std::size_t least) {
    constexpr std::size_t parts = 4;
    return {total, std::clamp((total + parts - 1) / parts, std::min(least, most), most)};
  }
  // Where all ranks write and read, none has time to be ahead: as few steps as can be. But two of
  // what fills more than half a chunk, which take as long, and leave half of the pages untouched.
  static Steps both_ways(std::size_t total, std::size_t most) {
    const std::size_t fewest = total > most / 2 ? 2 : 1;
    const std::size_t count = total > 0 ? std::max(fewest, (total + most - 1) / most) : 0;
    return {total, count > 0 ? (total + count - 1) / count : 0};
  }
  [[nodiscard]] std::size_t begin(std::uint32_t step) const { return std::min(total, step * each); }
  // How many of step `step` are in data of `length` units, which may be fewer than `total`.
  [[nodiscard]] std::size_t units(std::uint32_t step, std::size_t length) const {
    const std::size_t first = begin(step);
    return first < length ? std::min(each, length - first) : 0;
  }
  [[nodiscard]] std::size_t units(std::uint32_t step) const { return units(step, total); }

  std::size_t total;
  std::size_t each;
  std::uint32_t count;

 private:
  Steps(std::size_t all, std::size_t step)
      : total(all), each(std::max<std::size_t>(step, 1)),
        count(static_cast<std::uint32_t>((total + each - 1) / each)) {}
};
// Bytes that are worth a step of their own.
inline constexpr std::size_t least_step = std::size_t{16} << 10;

// The other ranks from the next on, so that not all look at the same one first.
inline auto others(const Comm& comm) {
  return std::views::iota(1, comm.size()) |
         std::views::transform(
             [rank = comm.rank(), n = comm.size()](int distance) { return (rank + distance) % n; });
}

// Which of the parts that rank `from` writes for each other rank, in their order, is for rank `to`.
// Of two ranks both write the same lines, see Board::data().
inline std::size_t part_for(int to, int from) {
  return static_cast<std::size_t>(to < from ? to : to - 1);
}

// Waits for a rank's note. All ranks must call what this one calls, with as much data.
class [[nodiscard]] PeerNote : public PeerWord {
 public:
  PeerNote(const Comm& comm, int from, Position note, Called mine)
      : PeerWord(comm, from, comm.board->slot(comm.board->notes, from, note).written, note + 1),
        comm_(comm), from_(from), note_(note), mine_(mine) {}
  void await_resume() const {
    PeerWord::await_resume();
    const Called its(comm_.board->slot(comm_.board->notes, from_, note_).called);
    if (its.word() != mine_.word()) [[unlikely]]
      fail_different(comm_, from_, its, mine_);
  }

 private:
  const Comm& comm_;
  int from_;
  Position note_;
  Called mine_;
};

// All others have written their notes, and call what this rank calls, whose chunks follow.
inline Task pass_notes(Comm& comm, Position note, Called mine) {
  Board& board = *comm.board;
  board.await_all(board.notes, note);
  for (const int from : others(comm))
    co_await PeerNote(comm, from, note, mine);
  board.pass(board.notes);
}

// Long data of ranks that all give and take, behind a note that is published, or that this rank has
// passed already (then there is none): write(step) fills this rank's chunk of a step, and
// read(step) takes from the others', when all have written theirs.
// A rank writes as far ahead as there is room, even before it knows the others' notes, so one that
// shares its core does much in a turn; and reads as soon as it can.
template <class Write, class Read>
Task flow(Comm& comm, std::optional<Position> note, Called mine, Steps steps, Write write,
          Read read) {
  Board& board = *comm.board;
  SlotRing& chunks = board.chunks;
  const Position first = chunks.position;
  std::uint32_t wrote = 0;
  const auto write_next = [&] {
    if (wrote == steps.count || !board.find_room(chunks, first + wrote)) return false;
    write(wrote, board.data(chunks, comm.rank(), first + wrote));
    board.publish(chunks, first + wrote, mine);
    ++wrote;
    return true;
  };
  while (write_next()) {
  }
  board.await_all(chunks, first); // behind the notes
  if (note) co_await pass_notes(comm, *note, mine);
  for (std::uint32_t step = 0; step < steps.count;) {
    bool moved = write_next();
    int behind = -1;
    while (step < wrote && (behind = board.not_written(chunks, first + step)) < 0) {
      read(step);
      board.pass(chunks);
      ++step;
      moved = true;
    }
    if (moved) continue;
    if (behind >= 0) {
      board.await_all(chunks, first + step);
      co_await board.written(comm, chunks, behind, first + step);
    } else {
      co_await Board::make_room(comm, chunks, first + wrote);
    }
  }
}

} // namespace macadam::coll
