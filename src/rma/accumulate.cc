// SPDX-License-Identifier: BSD-3-Clause
// Accumulates, done by the origin alone (Jiang et al., "Mapping MPI_Accumulate to RDMA
// operations"), in one of two ways, which exclude each other (remote_atomics.h,
// network_atomics.cc):
//  - where all memory of the window is mapped by all its ranks, a few elements of 1, 2, 4 or 8
//    bytes are changed by the processor's atomics; elsewhere a few integers of 8 bytes are by the
//    network's;
//  - all else is done while the target's accumulate lock is held: in place by the loops of the
//    reductions where the memory is mapped, otherwise read, changed and written back. An origin
//    holds the lock inside a call only, so it is never held by a process that computes; and not at
//    all where nobody else may access the target.
// Where the target waits anyway it may do them instead (by_target.cc). Those of one predefined type
// in mapped memory have short ways (direct.cc).
#include "base/copy.h"
#include "base/error.h"
#include "datatype/cursor.h"
#include "datatype/op.h"
#include "rma/element.h"
#include "rma/pieces.h"
#include "rma/post.h"
#include "rma/remote_atomics.h"
#include "rma/window.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace macadam::rma {

using datatype::Op;
using datatype::PackCursor;
using datatype::Segment;
using datatype::Type;
using engine::RemoteMemory;

namespace {

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

// Refuses what the operation cannot combine. `bytes`: at the target.
void check_operands(const Data* origin, const Data* result, const Place& place, MPI_Count bytes,
                    const Op& op) {
  if (!op.predefined()) {
    base::fail(MPI_ERR_OP, "{}: only predefined operations can be used to accumulate", op.name());
  }
  if (bytes > 0) op.check(element_of(*place.type, "target"));
  const auto check_side = [&](const Data* data, const char* side) {
    if (data == nullptr) return;
    const MPI_Count found = datatype::packed_size(*data->type, data->count);
    if (found != bytes) {
      base::fail(MPI_ERR_TYPE, "the {} has {} elements of {}, {} bytes, and the target {} bytes",
                 side, data->count, datatype::describe(*data->type), found, bytes);
    }
    if (bytes > 0)
      check_same(element_of(*data->type, side), element_of(*place.type, "target"), side);
  };
  check_side(origin, "origin");
  check_side(result, "result");
}

// The origin's data or results, fragment by fragment: packed, or where they lie.
class Side {
 public:
  // `data` may be null: there are none.
  Side(const Data* data, const Type& element, bool may_stay) {
    if (data == nullptr) return;
    const auto address = reinterpret_cast<std::uintptr_t>(data->address);
    const bool is_aligned = address % static_cast<std::size_t>(element.alignment()) == 0;
    if (may_stay && is_aligned && data->type->contiguous())
      next_ = static_cast<std::byte*>(data->address);
    else
      cursor_.emplace(*data->type, data->address, data->count);
  }
  // The next bytes, or `room` for them.
  std::byte* in_place(std::byte* room, std::size_t bytes) {
    return next_ != nullptr ? std::exchange(next_, next_ + bytes) : room;
  }
  void pack(std::byte* room, std::size_t bytes) {
    if (cursor_) cursor_->pack(room, bytes);
  }
  void unpack(const std::byte* room, std::size_t bytes) {
    if (cursor_) cursor_->unpack(room, bytes);
  }

 private:
  std::byte* next_ = nullptr;
  std::optional<PackCursor> cursor_;
};

bool lie_aligned(std::span<const Segment> segments, const std::byte* base, std::size_t alignment) {
  return std::ranges::all_of(segments, [&](const Segment& segment) {
    return (reinterpret_cast<std::uintptr_t>(base) +
            reinterpret_cast<std::uintptr_t>(segment.data)) %
               alignment ==
           0;
  });
}

} // namespace

// One accumulate under way, and what of it is worked on.
struct Window::Accumulation {
  const Op& op;
  const Type& element;
  Reach to;
  PackCursor theirs;
  bool wants_old = false;
  Operands fragment;
  std::span<const Segment> segments; // of the fragment, at the target

  [[nodiscard]] bool replaces() const { return op.handle() == MPI_REPLACE; }
  [[nodiscard]] bool changes() const { return op.handle() != MPI_NO_OP; }
  // Calls move(packed, there, bytes) for each segment.
  template <class Move>
  void for_each_segment(std::byte* packed, Move&& move) const {
    for (const Segment& segment : segments) {
      const auto bytes = static_cast<std::size_t>(segment.bytes);
      move(packed, reinterpret_cast<std::ptrdiff_t>(segment.data), bytes);
      packed += bytes;
    }
  }
  void combine_in_place() const;
};

bool Window::by_processor(const Type& element) const {
  return data_by_processor_ && element.contiguous() && is_atomic_width(element.size());
}

// What was written is there before the word that is written next: in order with it, unless it goes
// another way.
void Window::land_before_atomic(Target& target) {
  if (target.atomics_network != nullptr) full_fence();
  if (target.by_messages) wait_landed(target);
}

// A fragment in mapped memory, where whole elements lie aligned.
void Window::Accumulation::combine_in_place() const {
  std::byte* old = fragment.old;
  for_each_segment(fragment.ours, [&](const std::byte* ours, std::ptrdiff_t at, std::size_t bytes) {
    std::byte* const there = *to.here + at;
    if (wants_old) base::copy(old, there, bytes);
    old += bytes;
    if (replaces())
      base::copy(there, ours, bytes);
    else if (changes())
      op.apply(ours, there, static_cast<MPI_Count>(bytes) / element.size(), element);
  });
}

// A fragment by copies there and back.
void Window::combine_copied(Target& target, Accumulation& what, std::size_t bytes) {
  const std::optional<std::byte*> here = what.to.here;
  std::vector<engine::Block> blocks;
  if (!here && what.segments.size() > 1 && takes_blocks(target, what.to)) {
    for (const Segment& segment : what.segments)
      blocks.push_back({what.to.there.address + reinterpret_cast<std::uint64_t>(segment.data),
                        static_cast<std::size_t>(segment.bytes)});
  }
  const auto move = [&](Direction direction, std::byte* packed) {
    const bool reads = direction == Direction::read;
    if (!blocks.empty()) {
      move_packed(target, direction, packed, blocks, what.to.there.key, target.batch);
      return;
    }
    Pieces pieces(*this, target, direction, what.to, target.batch);
    what.for_each_segment(packed, [&](std::byte* ours, std::ptrdiff_t at, std::size_t size) {
      if (!here)
        pieces.add(ours, at, size);
      else
        reads ? base::copy(ours, *here + at, size) : base::copy(*here + at, ours, size);
    });
    pieces.end();
  };
  const bool computes = what.changes() && !what.replaces();
  if (what.wants_old || computes) {
    move(Direction::read, what.fragment.old);
    wait_for_batch(target);
  }
  if (computes) combine(what.op, what.element, bytes, what.fragment);
  if (what.changes()) move(Direction::write, computes ? what.fragment.result : what.fragment.ours);
}

// A fragment, while nobody else accumulates to the target.
void Window::combine_fragment(Target& target, Accumulation& what, std::size_t bytes) {
  const auto alignment = static_cast<std::size_t>(what.element.alignment());
  run_in_bulk(target, by_network(target, what.element), [&] {
    if (!what.to.here) {
      combine_copied(target, what, bytes);
    } else {
      stored_ = true;
      if (what.element.contiguous() && lie_aligned(what.segments, *what.to.here, alignment))
        what.combine_in_place();
      else
        combine_copied(target, what, bytes);
    }
    // Behind the data, which land before it.
    land_before_atomic(target);
  });
  wait_for_batch(target);
}

void Window::accumulate(const Data& origin, const Data* result, const Place& place, const Op& op) {
  const bool sends = op.handle() != MPI_NO_OP;
  const MPI_Count bytes = datatype::packed_size(*place.type, place.count);
  check_operands(sends ? &origin : nullptr, result, place, bytes, op);
  Target& target = opened(place.rank);
  const Reach to = reach(target, place);
  if (bytes == 0) return; // a type without data is made of nothing
  const Type& element = *place.type->elementary();
  if (target.rank != rank() && combines_at_target()) {
    ++counters_.by_target;
    return accumulate_by_target(target, sends ? &origin : nullptr, result, place, to, op, element);
  }
  const Turn turn(*this, target);
  Accumulation what{op, element, to, {*place.type, nullptr, place.count}, result != nullptr,
                    {}, {}};
  // A fragment holds whole elements.
  const auto size = static_cast<std::size_t>(element.size());
  const std::size_t most = std::min(fragment_bytes / size * size, static_cast<std::size_t>(bytes));
  const std::size_t spread =
      element.contiguous() ? 0 : most / size * static_cast<std::size_t>(element.extent());
  target.fragment.resize(std::max(target.fragment.size(), 3 * most + 2 * spread + 5 * line));
  std::byte* const ours_room = aligned(target.fragment.data());
  std::byte* const old_room = aligned(ours_room + most);
  what.fragment.result = aligned(old_room + most);
  what.fragment.ours_spread = aligned(what.fragment.result + most);
  what.fragment.result_spread = aligned(what.fragment.ours_spread + spread);

  const bool is_here = to.here.has_value();
  Side ours(sends ? &origin : nullptr, element, is_here);
  Side results(result, element, is_here);
  const bool few = bytes <= few_elements * element.size();
  const bool near = few && by_processor(element);
  const bool far = few && by_network(target, element) && !(is_here && is_alone(target));
  bool by_atomics = false;
  while (!what.theirs.done()) {
    const std::size_t fragment = std::min(most, static_cast<std::size_t>(what.theirs.remaining()));
    what.fragment.ours = ours.in_place(ours_room, fragment);
    what.fragment.old = results.in_place(old_room, fragment);
    ours.pack(what.fragment.ours, fragment);
    target.segments.clear();
    for (auto left = static_cast<MPI_Count>(fragment); left > 0;) {
      target.segments.push_back(what.theirs.next_segment(left));
      left -= target.segments.back().bytes;
    }
    what.segments = target.segments;
    by_atomics = near ? lie_aligned(what.segments, *to.here, size)
                      : far && find_words(target, to, what.segments, target.word_places) &&
                            combine_by_network(target, op, element, target.word_places,
                                               what.fragment.ours, what.fragment.old);
    if (by_atomics && near)
      atomically(target, [&] {
        std::byte* old = what.fragment.old;
        what.for_each_segment(
            what.fragment.ours, [&](const std::byte* from, std::ptrdiff_t at, std::size_t length) {
              combine_atomically(op, element, *to.here + at, from, old, length / size);
              old += length;
            });
      });
    else if (!by_atomics)
      combine_fragment(target, what, fragment);
    results.unpack(what.fragment.old, fragment);
  }
  ++(by_atomics ? counters_.by_atomics : counters_.under_lock);
}

void Window::compare_and_swap(const void* origin, const void* compare, void* result,
                              const Place& place) {
  // What MPI_Type_create_f90_integer gives out stands for a predefined type.
  const Type& type =
      place.type->combiner() == MPI_COMBINER_F90_INTEGER ? *place.type->elementary() : *place.type;
  if (!can_be_swapped(type)) {
    base::fail(MPI_ERR_TYPE,
               "{} cannot be compared and swapped: the type must be a predefined integer, logical "
               "or byte",
               datatype::describe(type));
  }
  Target& target = opened(place.rank);
  const Reach to = reach(target, place);
  const auto size = static_cast<std::size_t>(type.size());
  if (by_processor(type) && reinterpret_cast<std::uintptr_t>(*to.here) % size == 0) {
    ++counters_.by_atomics;
    atomically(target,
               [&] { compare_and_swap_atomically(*to.here, origin, compare, result, size); });
    return;
  }
  if (target.rank != rank() && combines_at_target()) {
    ++counters_.by_target;
    return swap_by_target(target, to, origin, compare, result, size);
  }
  const Turn turn(*this, target);
  const bool far = by_network(target, type);
  if (far && !(to.here && is_alone(target)) &&
      swap_by_network(target, to, origin, compare, result)) {
    ++counters_.by_atomics;
    return;
  }
  ++counters_.under_lock;
  std::byte found[line];
  const auto move = [&](bool writes) {
    if (to.here) {
      if (writes)
        base::copy(*to.here, origin, size);
      else
        base::copy(found, *to.here, size);
      return;
    }
    if (writes)
      write(target, origin, to, 0, size, target.batch);
    else
      read(target, found, to, 0, size, target.batch);
    wait_for_batch(target);
  };
  run_in_bulk(target, far, [&] {
    move(false);
    if (std::memcmp(found, compare, size) != 0) return;
    move(true);
    land_before_atomic(target);
  });
  base::copy(result, found, size);
}

} // namespace macadam::rma
