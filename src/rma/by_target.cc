// SPDX-License-Identifier: BSD-3-Clause
// Accumulates that their target does, in epochs that it ends too (a fence, or post and wait). By
// the origin alone they take the target's lock and three round trips, or calls of the kernel, for
// each segment; here the elements travel in messages, and the target combines them when it makes
// progress, one message after the other. So nobody needs the lock: in such an epoch all accumulates
// of a window go this way, but for windows whose memory all map; those of the target itself are
// done between two messages; and MPI lets nobody lock a window that is exposed.
//
// A message has as many elements as the target combines while others are on their way.
#include "datatype/cursor.h"
#include "rma/collected.h"
#include "rma/messages.h"
#include "rma/post.h"
#include "rma/window.h"

#include <array>
#include <optional>

namespace macadam::rma {

using datatype::Op;
using datatype::PackCursor;
using datatype::Type;

namespace {

// What a message has: data that the engine takes from where they lie; or with it, packed.
struct Most {
  std::size_t runs;
  std::size_t bytes;
};
constexpr Most most_in_place{96, 64 << 10};
constexpr std::size_t runs_of_element = 4; // of the last one, which may have gaps
constexpr std::size_t most_packed_runs = 32;
constexpr Most most_packed{most_packed_runs,
                           Messages::most_combined(most_packed_runs + runs_of_element)};

// The next pieces of a walk, at most `most` bytes, as places from `place` on.
Run next_run(PackCursor& walk, std::uint64_t place, std::size_t most) {
  const datatype::SegmentRun next = walk.next_run(static_cast<MPI_Count>(most));
  return {place + reinterpret_cast<std::uint64_t>(next.data), next.stride,
          static_cast<std::uint32_t>(next.bytes), static_cast<std::uint32_t>(next.count)};
}

// What the next message has of the target's elements, whole ones of `size` bytes.
void fill(Runs& runs, PackCursor& theirs, std::uint64_t place, std::size_t size, const Most& most) {
  runs.clear();
  const std::size_t whole = most.bytes / size * size;
  while (!theirs.done() && runs.size() < most.runs && runs.bytes() < whole)
    runs.add(next_run(theirs, place, whole - runs.bytes()));
  while (const std::size_t begun = runs.bytes() % size)
    runs.add(next_run(theirs, place, size - begun));
}

} // namespace

// In this epoch.
bool Window::combines_at_target() const {
  return target_ends_too() && !data_by_processor_;
}

// Of `origin` and `result` either may be null.
void Window::accumulate_by_target(Target& target, const Data* origin, const Data* result,
                                  const Place& place, const Reach& to, const Op& op,
                                  const Type& element) {
  const auto size = static_cast<std::size_t>(element.size());
  const bool is_packed = origin != nullptr && !origin->type->contiguous();
  std::optional<PackCursor> ours, results;
  if (is_packed) ours.emplace(*origin->type, origin->address, origin->count);
  if (result != nullptr) results.emplace(*result->type, result->address, result->count);
  const auto* data = origin != nullptr ? static_cast<const std::byte*>(origin->address) : nullptr;
  std::array<std::byte, most_packed.bytes> packed;
  PackCursor theirs(*place.type, nullptr, place.count);
  Runs runs;
  target.unserved = true;
  target.fetching |= result != nullptr;
  while (!theirs.done()) {
    fill(runs, theirs, to.place, size, is_packed ? most_packed : most_in_place);
    const std::size_t bytes = runs.bytes();
    if (is_packed) ours->pack(packed.data(), bytes);
    const std::span<const std::byte> sent(is_packed ? packed.data() : data,
                                          origin != nullptr ? bytes : 0);
    const auto combine = [&](void* old, Waiter& waiter) {
      make_room_for_message();
      post_counted(target, waiter, [&] {
        return messages_->combine(target.rank, op, element, runs.all(), sent, old, waiter);
      });
    };
    if (result == nullptr) {
      combine(nullptr, target);
    } else {
      Runs here;
      while (here.bytes() < bytes)
        here.add(next_run(*results, 0, bytes - here.bytes()));
      collect(std::move(here), target, combine);
    }
    if (data != nullptr && !is_packed) data += bytes;
  }
}

void Window::swap_by_target(Target& target, const Reach& to, const void* origin,
                            const void* compare, void* result, std::size_t bytes) {
  target.fetching = true;
  make_room_for_message();
  post_counted(target, target, [&] {
    return messages_->compare_and_swap(target.rank, to.place, origin, compare, result, bytes,
                                       target);
  });
}

} // namespace macadam::rma
