// SPDX-License-Identifier: BSD-3-Clause
// Accumulates, done by the origin alone (Jiang et al., "Mapping MPI_Accumulate to RDMA
// operations").
//
// Two ways, of which a window has one for each location, whoever accesses it: where all memory of
// the window is mapped by all its ranks, elements of 1, 2, 4 and 8 bytes are changed by the
// processor's atomics. Everything else is read, changed and written back while the target's
// accumulate lock is held; an origin holds it inside a call only, so it is never held by a process
// that computes.
#include "base/error.h"
#include "datatype/cursor.h"
#include "datatype/op.h"
#include "rma/element.h"
#include "rma/post.h"
#include "rma/window.h"
#include "rma/words.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace macadam::rma {

using datatype::Op;
using datatype::PackCursor;
using datatype::Segment;
using datatype::Type;
using engine::RemoteMemory;

namespace {

constexpr std::size_t accumulate_lock = offsetof(Control, accumulate);
// Packed bytes that are worked on at a time, so for which the lock is held.
constexpr std::size_t chunk_bytes = 16 << 10;
constexpr std::size_t line = 64;

std::byte* aligned(std::byte* memory) {
  return memory + (-reinterpret_cast<std::uintptr_t>(memory)) % line;
}

// The predefined type that all elements are of.
const Type& element_of(const Type& type, const char* side) {
  if (const Type* const element = type.elementary()) return *element;
  base::fail(MPI_ERR_TYPE,
             "the {} datatype is {}, which is not made of one predefined type, as an accumulate "
             "needs",
             side, datatype::describe(type));
}

void check_same(const Type& ours, const Type& theirs, const char* side) {
  if (ours.signature() == theirs.signature()) return;
  base::fail(MPI_ERR_TYPE, "the {} datatype is made of {}, that of the target of {}", side,
             datatype::describe(ours), datatype::describe(theirs));
}

} // namespace

// One accumulate under way, and memory for a chunk of it.
struct Window::Accumulation {
  const Op& op;
  const Type& element;
  Reach to;
  PackCursor theirs;
  Operands chunk;
  bool wants_old = false;
  std::vector<Segment> pieces; // of the chunk, at the target

  [[nodiscard]] bool replaces() const { return op.handle() == MPI_REPLACE; }
  [[nodiscard]] bool changes() const { return op.handle() != MPI_NO_OP; }
};

bool Window::by_processor(const Type& element) const {
  return data_by_processor_ && element.contiguous() && is_atomic_width(element.size());
}

// What was written is there before the word that is written next: in order with it, unless it goes
// another way.
void Window::land_before_word(Target& target) {
  if (target.word_network != nullptr) full_fence();
  if (target.by_messages) wait_landed(target);
}

// A chunk, whose pieces are known, under the lock.
void Window::combine_locked(Target& target, Accumulation& what, std::size_t bytes) {
  std::uint64_t ticket = 0;
  take_lock(target, accumulate_lock, true, ticket);
  const auto for_each = [&](std::byte* packed, auto&& move) {
    for (const Segment& piece : what.pieces) {
      const auto at = reinterpret_cast<std::ptrdiff_t>(piece.data);
      move(packed, at, static_cast<std::size_t>(piece.bytes));
      packed += piece.bytes;
    }
  };
  std::byte* const here = what.to.here;
  const bool in_blocks = here == nullptr && what.pieces.size() > 1 && takes_blocks(target, what.to);
  std::vector<engine::Block> blocks;
  if (in_blocks) {
    for (const Segment& piece : what.pieces)
      blocks.push_back({what.to.there.address + reinterpret_cast<std::uint64_t>(piece.data),
                        static_cast<std::size_t>(piece.bytes)});
  }
  const auto move_packed_chunk = [&](Direction direction, std::byte* packed) {
    move_packed(target, direction, packed, blocks, what.to.there.key, target.batch);
  };
  if (what.wants_old || (what.changes() && !what.replaces())) {
    if (in_blocks)
      move_packed_chunk(Direction::read, what.chunk.old);
    else
      for_each(what.chunk.old, [&](std::byte* to, std::ptrdiff_t at, std::size_t size) {
        if (here != nullptr) {
          std::memcpy(to, here + at, size);
          return;
        }
        read(target, to, what.to, at, size, target.batch);
      });
    wait_for_batch(target);
  }
  if (what.changes() && !what.replaces()) combine(what.op, what.element, bytes, what.chunk);
  if (what.changes()) {
    if (in_blocks)
      move_packed_chunk(Direction::write, what.replaces() ? what.chunk.ours : what.chunk.result);
    else
      for_each(what.replaces() ? what.chunk.ours : what.chunk.result,
               [&](const std::byte* from, std::ptrdiff_t at, std::size_t size) {
                 if (here != nullptr) {
                   std::memcpy(here + at, from, size);
                   return;
                 }
                 write(target, from, what.to, at, size, target.batch);
               });
  }
  // Behind the data, which land before it.
  land_before_word(target);
  give_lock(target, accumulate_lock, true, ticket);
  wait_for_batch(target);
}

void Window::accumulate(const Data& origin, const Data* result, const Place& place, const Op& op) {
  if (!op.predefined()) {
    base::fail(MPI_ERR_OP, "{}: only predefined operations can be used to accumulate", op.name());
  }
  const bool sends = op.handle() != MPI_NO_OP;
  const MPI_Count bytes = datatype::packed_size(*place.type, place.count);
  const auto check_side = [&](const Data& data, const char* side) {
    const MPI_Count found = datatype::packed_size(*data.type, data.count);
    if (found != bytes) {
      base::fail(MPI_ERR_TYPE, "the {} has {} elements of {}, {} bytes, and the target {} bytes",
                 side, data.count, datatype::describe(*data.type), found, bytes);
    }
    if (bytes > 0)
      check_same(element_of(*data.type, side), element_of(*place.type, "target"), side);
  };
  if (bytes > 0) op.check(element_of(*place.type, "target"));
  if (sends) check_side(origin, "origin");
  if (result != nullptr) check_side(*result, "result");

  Target& target = opened(place.rank);
  const Reach to = reach(target, place);
  if (bytes == 0) return; // a type without data is made of nothing
  const Type& element = *place.type->elementary();
  const Turn turn(*this, target);
  Accumulation what{op, element, to, {*place.type, nullptr, place.count}, {}, false, {}};
  what.wants_old = result != nullptr;
  // The packed chunk holds whole elements.
  const auto size = static_cast<std::size_t>(element.size());
  const std::size_t most = std::min(chunk_bytes / size * size, static_cast<std::size_t>(bytes));
  const std::size_t spread =
      element.contiguous() ? 0 : most / size * static_cast<std::size_t>(element.extent());
  target.chunk.resize(std::max(target.chunk.size(), 3 * most + 2 * spread + 5 * line));
  what.chunk.ours = aligned(target.chunk.data());
  what.chunk.old = aligned(what.chunk.ours + most);
  what.chunk.result = aligned(what.chunk.old + most);
  what.chunk.ours_spread = aligned(what.chunk.result + most);
  what.chunk.result_spread = aligned(what.chunk.ours_spread + spread);

  std::optional<PackCursor> ours, results;
  if (sends) ours.emplace(*origin.type, origin.address, origin.count);
  if (result != nullptr) results.emplace(*result->type, result->address, result->count);
  const bool atomically = by_processor(element);
  ++(atomically ? counters_.by_atomics : counters_.under_lock);
  while (!what.theirs.done()) {
    const std::size_t chunk = std::min(most, static_cast<std::size_t>(what.theirs.remaining()));
    if (sends) ours->pack(what.chunk.ours, chunk);
    what.pieces.clear();
    for (auto left = static_cast<MPI_Count>(chunk); left > 0;) {
      what.pieces.push_back(what.theirs.next_segment(left));
      left -= what.pieces.back().bytes;
    }
    const bool aligned_all = std::ranges::all_of(what.pieces, [&](const Segment& piece) {
      return (reinterpret_cast<std::uintptr_t>(to.here) +
              reinterpret_cast<std::uintptr_t>(piece.data)) %
                 size ==
             0;
    });
    if (atomically && aligned_all) {
      std::size_t done = 0;
      for (const Segment& piece : what.pieces) {
        const auto length = static_cast<std::size_t>(piece.bytes);
        combine_atomically(op, element, to.here + reinterpret_cast<std::ptrdiff_t>(piece.data),
                           what.chunk.ours + done, what.chunk.old + done, length / size);
        done += length;
      }
    } else {
      combine_locked(target, what, chunk);
    }
    if (results) results->unpack(what.chunk.old, chunk);
  }
}

bool Window::fetch_and_op_directly(const void* origin, void* result, const Type& type, int rank,
                                   MPI_Aint displacement, const Op& op) {
  if (!data_by_processor_ || !type.predefined() || !type.contiguous() ||
      !is_atomic_width(type.size()) || !op.predefined() || !op.accepts(type))
    return false;
  const auto size = static_cast<std::size_t>(type.size());
  std::byte* const there = direct(rank, displacement, size, false);
  if (there == nullptr || reinterpret_cast<std::uintptr_t>(there) % size != 0) return false;
  combine_atomically(op, type, there, static_cast<const std::byte*>(origin),
                     static_cast<std::byte*>(result), 1);
  return true;
}

void Window::compare_and_swap(const void* origin, const void* compare, void* result,
                              const Place& place) {
  using enum datatype::BasicClass;
  const datatype::Basic* const basic = place.type->basic();
  const bool allowed =
      basic != nullptr && (basic->type_class == c_integer || basic->type_class == fortran_integer ||
                           basic->type_class == logical || basic->type_class == multi_language ||
                           basic->type_class == byte);
  if (!allowed) {
    base::fail(MPI_ERR_TYPE,
               "{} cannot be compared and swapped: the type must be a predefined integer, logical "
               "or byte",
               datatype::describe(*place.type));
  }
  Target& target = opened(place.rank);
  const Reach to = reach(target, place);
  const auto size = static_cast<std::size_t>(place.type->size());
  if (by_processor(*place.type) && reinterpret_cast<std::uintptr_t>(to.here) % size == 0) {
    ++counters_.by_atomics;
    compare_and_swap_atomically(to.here, origin, compare, result, size);
    return;
  }
  const Turn turn(*this, target);
  ++counters_.under_lock;
  std::uint64_t ticket = 0;
  take_lock(target, accumulate_lock, true, ticket);
  std::byte found[line];
  const auto move = [&](bool writes) {
    if (to.here != nullptr) {
      if (writes)
        std::memcpy(to.here, origin, size);
      else
        std::memcpy(found, to.here, size);
      return;
    }
    if (writes)
      write(target, origin, to, 0, size, target.batch);
    else
      read(target, found, to, 0, size, target.batch);
    wait_for_batch(target);
  };
  move(false);
  if (std::memcmp(found, compare, size) == 0) {
    move(true);
    land_before_word(target);
  }
  give_lock(target, accumulate_lock, true, ticket);
  std::memcpy(result, found, size);
}

} // namespace macadam::rma
