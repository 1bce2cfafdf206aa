// SPDX-License-Identifier: BSD-3-Clause
// Put and get: an RDMA write or read for each contiguous segment of both sides (Jiang et al.,
// "Mapping MPI_Put to RDMA_Write"), or a copy where the memory is mapped. Short segments travel
// together (pieces.cc), and copies by the kernel take many at once (blocks.cc).
#include "base/copy.h"
#include "base/error.h"
#include "datatype/cursor.h"
#include "datatype/wide.h"
#include "rma/messages.h"
#include "rma/pieces.h"
#include "rma/post.h"
#include "rma/scattered.h"
#include "rma/window.h"

#include <algorithm>

namespace macadam::rma {

using datatype::PackCursor;
using datatype::Segment;
using datatype::Wide;
using engine::Posted;
using engine::RemoteMemory;

// Where a place is. Refuses what is not all inside the target's memory.
Reach Window::reach(Target& target, const Place& place) {
  const datatype::Type& type = *place.type;
  const bool attached = memory_is_ == Memory::attached;
  if (place.displacement < 0 && !attached) {
    base::fail(MPI_ERR_DISP, "target displacement is {}, it must not be negative",
               place.displacement);
  }
  const Wide start = attached ? Wide{static_cast<std::uint64_t>(place.displacement)}
                              : Wide{place.displacement} * static_cast<Wide>(target.unit);
  if (place.count == 0 || type.size() == 0) return {}; // nothing is accessed
  const Wide last = Wide{place.count - 1} * type.extent();
  const Wide first_byte = start + type.true_lb() + std::min<Wide>(last, 0);
  const Wide end = start + type.true_ub() + std::max<Wide>(last, 0);
  if (attached) {
    return reach_attached(target, place, static_cast<std::uint64_t>(first_byte),
                          static_cast<std::uint64_t>(end - first_byte));
  }
  if (first_byte < 0 || end > static_cast<Wide>(target.bytes)) {
    base::fail(MPI_ERR_RMA_RANGE,
               "{} elements of {} bytes at displacement {} (unit {}) are the bytes {} to {} of the "
               "memory of rank {}, which has {}",
               place.count, type.size(), place.displacement, target.unit,
               static_cast<std::int64_t>(first_byte), static_cast<std::int64_t>(end - 1),
               target.rank, target.bytes);
  }
  const auto offset = static_cast<std::uint64_t>(start);
  Reach found{{}, {target.data.address + offset, target.data.key}, offset};
  if (target.base != nullptr) found.here = target.base + offset;
  return found;
}

namespace {

// Bytes up to which a message to a target that is not there yet may wait for it: what takes longer
// is deferred (deferred.cc).
constexpr std::size_t most_at_once = 64 << 10;
// So that an epoch's memory does not grow with its operations.
constexpr std::size_t most_deferred = 1024;

bool is_one_segment(const Data& origin, const Place& place) {
  return origin.type->contiguous() && place.type->contiguous();
}

// Calls visit(ours, where at the target: from the place on, bytes) for all data.
template <class Visit>
void for_each_segment(const Data& origin, const Place& place, Visit&& visit) {
  if (is_one_segment(origin, place)) {
    visit(static_cast<std::byte*>(origin.address), std::ptrdiff_t{0}, origin.bytes());
    return;
  }
  PackCursor ours(*origin.type, origin.address, origin.count);
  PackCursor theirs(*place.type, nullptr, place.count);
  Segment here = ours.next_segment();
  Segment there = theirs.next_segment();
  while (here.bytes > 0 && there.bytes > 0) {
    const MPI_Count bytes = std::min(here.bytes, there.bytes);
    visit(here.data, reinterpret_cast<std::ptrdiff_t>(there.data), static_cast<std::size_t>(bytes));
    here =
        here.bytes == bytes ? ours.next_segment() : Segment{here.data + bytes, here.bytes - bytes};
    there = there.bytes == bytes ? theirs.next_segment()
                                 : Segment{there.data + bytes, there.bytes - bytes};
  }
}

// Calls access(memory, how many bytes are behind, how many are in it) for what one key opens each
// of the bytes at an offset of a place.
template <class Access>
void for_each_key(const Target& target, const Reach& to, std::uint64_t offset, std::size_t bytes,
                  Access&& access) {
  if (to.regions.empty()) [[likely]]
    return access(RemoteMemory{to.there.address + offset, to.there.key}, std::size_t{0}, bytes);
  const std::uint64_t address = to.place + offset;
  auto region = std::ranges::upper_bound(to.regions, address, {}, &Attached::address) - 1;
  for (std::size_t done = 0; done < bytes; ++region) {
    const std::uint64_t before = address + done - region->address;
    const std::size_t n = std::min<std::uint64_t>(bytes - done, region->bytes - before);
    const RemoteMemory memory = target.memory_of(region->keys);
    access(RemoteMemory{memory.address + before, memory.key}, done, n);
    done += n;
  }
}

Waiter& waiter_of(Operation* operation, Target& target) {
  if (operation != nullptr) return *operation;
  return target;
}

// All memory between the first and the last byte of the data; of no bytes if most of it is gaps.
engine::Block around(const Data& data) {
  constexpr Wide most_gaps = 16; // times the data
  const datatype::Type& type = *data.type;
  const Wide last = Wide{data.count - 1} * type.extent();
  const Wide low = type.true_lb() + std::min<Wide>(last, 0);
  const Wide bytes = type.true_ub() + std::max<Wide>(last, 0) - low;
  if (bytes > most_gaps * static_cast<Wide>(data.bytes())) return {};
  return {reinterpret_cast<std::uint64_t>(data.address) + static_cast<std::uint64_t>(low),
          static_cast<std::size_t>(bytes)};
}

void check_sizes(const Data& origin, const Place& place) {
  const MPI_Count target_bytes = datatype::packed_size(*place.type, place.count);
  const MPI_Count origin_bytes = datatype::packed_size(*origin.type, origin.count);
  if (origin_bytes == target_bytes) [[likely]]
    return;
  base::fail(MPI_ERR_TYPE,
             "the origin has {} elements of {}, {} bytes, and the target {} of {}, {} bytes; both "
             "must describe the same data",
             origin.count, datatype::describe(*origin.type), origin_bytes, place.count,
             datatype::describe(*place.type), target_bytes);
}

} // namespace

void Window::begin(Operation* operation, Target& target) {
  if (operation == nullptr) return;
  operation->target_ = &target;
  operation->pending_ = 1; // the call itself
}

bool Window::end(Operation* operation) {
  return operation == nullptr || --operation->pending_ == 0;
}

// Whether the targets come to the end of the present epoch too, and serve messages until then.
bool Window::target_ends_too() const {
  return messages_ != nullptr && (access_ == Access::fence || access_ == Access::started);
}

// The same of this target, where messages are not the way in any case.
bool Window::target_waits(const Target& target) const {
  return target_ends_too() && !prefers_messages_ && target.rank != rank();
}

void Window::put_by_message(Target& target, const void* from, std::uint64_t place,
                            std::size_t bytes, Waiter& waiter) {
  target.unserved = true;
  post_counted(target, waiter,
               [&] { return messages_->put(target.rank, from, place, bytes, waiter); });
}

void Window::get_by_message(Target& target, void* to, std::uint64_t place, std::size_t bytes,
                            Waiter& waiter) {
  post_counted(target, waiter,
               [&] { return messages_->get(target.rank, to, place, bytes, waiter); });
}

void Window::move_by_message(Target& target, Direction direction, void* ours, std::uint64_t place,
                             std::size_t bytes, Waiter& waiter) {
  direction == Direction::read ? get_by_message(target, ours, place, bytes, waiter)
                               : put_by_message(target, ours, place, bytes, waiter);
}

// One segment, by whatever reaches the target; `waiter` counts what is under way.
void Window::write(Target& target, const void* from, const Reach& to, std::ptrdiff_t at,
                   std::size_t bytes, Waiter& waiter) {
  const auto offset = static_cast<std::uint64_t>(at);
  if (target.by_messages) return put_by_message(target, from, to.place + offset, bytes, waiter);
  target.unlanded = true;
  stored_ |= !to.regions.empty(); // of which some may be mapped
  for_each_key(target, to, offset, bytes, [&](RemoteMemory there, std::size_t done, std::size_t n) {
    post_counted(target, waiter, [&] {
      return target.peer->transport->write(*target.link, static_cast<const std::byte*>(from) + done,
                                           there, n, waiter.cookie());
    });
  });
}

void Window::read(Target& target, void* to, const Reach& from, std::ptrdiff_t at, std::size_t bytes,
                  Waiter& waiter) {
  const auto offset = static_cast<std::uint64_t>(at);
  if (target.by_messages) return get_by_message(target, to, from.place + offset, bytes, waiter);
  for_each_key(target, from, offset, bytes,
               [&](RemoteMemory there, std::size_t done, std::size_t n) {
                 post_counted(target, waiter, [&] {
                   return target.peer->transport->read(
                       *target.link, static_cast<std::byte*>(to) + done, there, n, waiter.cookie());
                 });
               });
}

void Window::move_segment(Target& target, Direction direction, void* ours, const Reach& to,
                          std::ptrdiff_t at, std::size_t bytes, Waiter& waiter) {
  direction == Direction::read ? read(target, ours, to, at, bytes, waiter)
                               : write(target, ours, to, at, bytes, waiter);
}

// Whether a put or get is done by messages though the network reaches the memory.
bool Window::prefers_message(Target& target, Direction direction, const Place& place, bool whole) {
  if (!target_waits(target)) return false;
  if (!whole) return Scattered::suits(target, direction, place);
  return kernel_copies(target) && make_room_for_message();
}

// False if there is none: no call waits for a target that leaves no room by not coming.
bool Window::make_room_for_message() {
  if (messages_->is_busy()) waiting_.look();
  return !messages_->is_busy();
}

// A put or get as a whole, of memory that is not mapped.
void Window::move(Target& target, Direction direction, const Data& origin, const Place& place,
                  const Reach& to, Waiter& waiter) {
  const std::size_t bytes = origin.bytes();
  const bool whole = is_one_segment(origin, place);
  const bool is_long = whole && bytes > most_at_once;
  const bool preferred = !target.by_messages && prefers_message(target, direction, place, whole);
  if (preferred && is_long && deferred_.size() < most_deferred) {
    deferred_.push_back({&target, direction, origin.address, to, bytes});
    return;
  }
  const bool by_message = target.by_messages || (preferred && !is_long);
  ++(by_message ? counters_.by_target : counters_.by_network);
  if (whole && by_message)
    return move_by_message(target, direction, origin.address, to.place, bytes, waiter);
  if (whole) return move_segment(target, direction, origin.address, to, 0, bytes, waiter);
  const auto move_all = [&](auto&& by) {
    for_each_segment(origin, place, [&](std::byte* ours, std::ptrdiff_t at, std::size_t n) {
      by.add(ours, at, n);
    });
    by.end();
  };
  if (by_message && !prefers_messages_)
    return move_all(Scattered(*this, target, direction, to, waiter));
  if (takes_blocks(target, to)) return move_blocks(target, direction, origin, place, to, waiter);
  move_all(Pieces(*this, target, direction, to, waiter, around(origin)));
}

bool Window::put(const Data& origin, const Place& place, Operation* operation) {
  check_sizes(origin, place);
  Target& target = opened(place.rank);
  const Reach to = reach(target, place);
  if (origin.bytes() == 0) return true;
  if (to.here) {
    ++counters_.mapped;
    stored_ = true;
    for_each_segment(origin, place,
                     [&](const std::byte* from, std::ptrdiff_t at, std::size_t bytes) {
                       base::copy(*to.here + at, from, bytes);
                     });
    return true;
  }
  begin(operation, target);
  move(target, Direction::write, origin, place, to, waiter_of(operation, target));
  return end(operation);
}

bool Window::get(const Data& origin, const Place& place, Operation* operation) {
  check_sizes(origin, place);
  Target& target = opened(place.rank);
  const Reach from = reach(target, place);
  if (origin.bytes() == 0) return true;
  if (from.here) {
    ++counters_.mapped;
    for_each_segment(origin, place, [&](std::byte* to, std::ptrdiff_t at, std::size_t bytes) {
      base::copy(to, *from.here + at, bytes);
    });
    return true;
  }
  begin(operation, target);
  target.fetching = true;
  move(target, Direction::read, origin, place, from, waiter_of(operation, target));
  return end(operation);
}

} // namespace macadam::rma
