// SPDX-License-Identifier: BSD-3-Clause
// Dynamic windows. Each rank lists what it has attached in memory that the others read, so that a
// lookup needs no act of the target. A list is known by its version: an origin reads the version
// before each access and the list only when it has changed, and so never uses a key that was
// revoked before its access began.
#include "base/error.h"
#include "rma/post.h"
#include "rma/window.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace macadam::rma {

using engine::RemoteMemory;
using engine::Transport;

namespace {

constexpr std::size_t first_room = 16;
constexpr std::size_t attachments_offset = offsetof(Control, attachments);

// Those that hold some bytes, one behind the other; none if not all of the bytes are held.
std::span<const Attached> holding(std::span<const Attached> all, std::uint64_t first,
                                  std::uint64_t bytes) {
  const auto behind = std::ranges::upper_bound(all, first, {}, &Attached::address);
  if (behind == all.begin()) return {};
  const auto begin = behind - 1;
  for (auto region = begin; region != all.end() && region->address <= first; ++region) {
    const std::uint64_t before = first - region->address;
    if (before >= region->bytes) return {};
    const std::uint64_t held = region->bytes - before;
    if (bytes <= held) return {begin, region + 1};
    first += held;
    bytes -= held;
  }
  return {};
}

} // namespace

// Changes the list; its version is odd meanwhile, and the others wait.
void Window::publish_attached(auto&& change) {
  static_assert(noexcept(change()));
  Attachments& header = reinterpret_cast<Control*>(control_)->attachments;
  std::atomic_ref version(header.version);
  version.fetch_add(1);
  full_fence();
  change();
  std::copy(own_attached_.begin(), own_attached_.end(), attached_list_);
  header.count = own_attached_.size();
  full_fence();
  version.fetch_add(1);
}

// Room for so many, here and in the list. A longer list is another one: a reader of the old one
// finds it as it was.
void Window::reserve_attached(std::size_t count) {
  if (count <= attached_room_) return;
  Transport& near = engine_.networks().nearest();
  const std::size_t room = std::max(first_room, 2 * attached_room_);
  const std::size_t bytes = room * sizeof(Attached);
  own_attached_.reserve(room);
  attached_lists_.reserve(attached_lists_.size() + 1);
  const auto free = [&near](void* block) { near.free(block); };
  std::unique_ptr<void, decltype(free)> memory(near.allocate(bytes), free);
  if (memory == nullptr) {
    base::fail(MPI_ERR_NO_MEM, "no memory of {} to list {} regions of attached memory: {}",
               near.limits().name, room, near.why_not_allocated());
  }
  Attached list;
  list.address = reinterpret_cast<std::uint64_t>(memory.get());
  list.keys = register_both(memory.get(), bytes);
  attached_lists_.push_back(list);
  attached_list_ = new (memory.release()) Attached[room];
  attached_room_ = room;
  publish_attached(
      [&]() noexcept { reinterpret_cast<Control*>(control_)->attachments.list = list.keys; });
}

void Window::attach(void* memory, std::uint64_t bytes) {
  if (memory_is_ != Memory::attached) {
    base::fail(MPI_ERR_RMA_FLAVOR,
               "memory is attached to dynamic windows only (MPI_Win_create_dynamic)");
  }
  if (bytes == 0) return own_empty_.push_back(memory); // nobody can access it
  reserve_attached(own_attached_.size() + 1);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const auto next = std::ranges::upper_bound(own_attached_, address, {}, &Attached::address);
  const auto check_apart = [&](const Attached& other) {
    if (address + bytes <= other.address || other.address + other.bytes <= address) return;
    base::fail(MPI_ERR_RMA_ATTACH,
               "{} bytes at {:#x} overlap with {} bytes at {:#x}, which are attached already",
               bytes, address, other.bytes, other.address);
  };
  if (next != own_attached_.end()) check_apart(*next);
  if (next != own_attached_.begin()) check_apart(*(next - 1));
  const Attached added{address, bytes, register_both(memory, bytes)};
  publish_attached([&]() noexcept { own_attached_.insert(next, added); });
}

void Window::detach(const void* memory) {
  if (memory_is_ != Memory::attached) {
    base::fail(MPI_ERR_RMA_FLAVOR, "the window is not dynamic; nothing is attached to it");
  }
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  const auto found = std::ranges::find(own_attached_, address, &Attached::address);
  if (found == own_attached_.end()) {
    const auto empty = std::ranges::find(own_empty_, memory);
    if (empty != own_empty_.end()) {
      own_empty_.erase(empty);
      return;
    }
    base::fail(MPI_ERR_RMA_ATTACH,
               "no memory that begins at {:#x} is attached; {} other regions are", address,
               own_attached_.size());
  }
  const Attached gone = *found;
  publish_attached([&]() noexcept { own_attached_.erase(found); });
  deregister_both(gone.keys);
}

// Learns what the target has attached now.
void Window::refresh(Target& target) {
  if (target.rank == rank()) {
    target.attached = own_attached_;
    return;
  }
  const Turn turn(*this, target);
  const auto copy = [&](void* to, RemoteMemory from, std::size_t bytes) {
    run_once(target, [&](std::uint64_t cookie) {
      return target.peer->transport->read(*target.link, to, from, bytes, cookie);
    });
  };
  const RemoteMemory header_memory{target.control.address + attachments_offset, target.control.key};
  static_assert(sizeof(Attachments) <= sizeof target.scratch);
  Attachments header;
  const auto read_header = [&] {
    copy(target.scratch, header_memory, sizeof header);
    full_fence();
    std::memcpy(&header, target.scratch, sizeof header);
  };
  const auto is_stable = [&] {
    read_header();
    if (header.version % 2 != 0) return false;
    if (header.version == target.version) return true;
    target.attached.resize(header.count);
    if (header.count > 0) {
      copy(target.attached.data(), target.memory_of(header.list), header.count * sizeof(Attached));
    }
    const std::uint64_t version = header.version;
    read_header();
    if (header.version != version) return false;
    target.version = version;
    return true;
  };
  waiting_.until_seen(is_stable);
}

Reach Window::reach_attached(Target& target, const Place& place, std::uint64_t first_byte,
                             std::uint64_t bytes) {
  refresh(target);
  const auto address = static_cast<std::uint64_t>(place.displacement);
  const auto regions = holding(target.attached, first_byte, bytes);
  if (regions.empty()) {
    base::fail(MPI_ERR_RMA_RANGE,
               "{} bytes at {:#x} of rank {} are not all inside the {} regions of memory that it "
               "has attached",
               bytes, first_byte, target.rank, target.attached.size());
  }
  if (target.rank == rank()) return {reinterpret_cast<std::byte*>(address), {}, address};
  const Attached& first = regions.front();
  const Attached& last = regions.back();
  const RemoteMemory memory = target.memory_of(first.keys);
  const bool one_key = std::ranges::all_of(regions, [&](const Attached& each) {
    const RemoteMemory its = target.memory_of(each.keys);
    return its.key == memory.key && its.address - memory.address == each.address - first.address;
  });
  if (!one_key) return {{}, {}, address, {regions.begin(), regions.end()}};
  std::byte* const mapped =
      target.by_messages ? nullptr
                         : target.peer->transport->mapped(
                               *target.link, memory, last.address + last.bytes - first.address);
  const std::uint64_t offset = address - first.address;
  Reach found{{}, {memory.address + offset, memory.key}, address};
  if (mapped != nullptr) found.here = mapped + offset;
  return found;
}

} // namespace macadam::rma
