// SPDX-License-Identifier: BSD-3-Clause
// Puts and gets: RDMA writes and reads of registered memory (Jiang et al.). Large data go from
// where they are, registered through the pin-down cache; small ones that are not registered yet go
// through a message buffer, which costs less than to register them. So do large ones, a buffer at a
// time, if they can't be registered.
#include "net/rdma/transport.h"

#include "base/copy.h"
#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <array>

namespace macadam::net::rdma {
RemoteMemory RdmaTransport::register_cached(void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes == 0) return {address, 0};
  if (const MemoryRegion* const region = heap_.find(memory)) return {address, region->remote_key};
  const mem::Registration* const registration = cache_.register_range(memory, bytes);
  if (registration == nullptr) { // the cache has let go all it could, and the device still refuses
    base::fail(
        MPI_ERR_NO_MEM,
        "RDMA: {} bytes at {} cannot be registered; {} regions of {} bytes together are in use; "
        "{}; transfer less at once, or raise the limit that is named",
        bytes, fmt::ptr(memory), cache_.entries(), cache_.pinned_bytes(), cache_.refusal());
  }
  return {address,
          rails_ != nullptr ? registration->region->remote_key : registration->packed_key()};
}

void RdmaTransport::release_cached(RemoteMemory memory) noexcept {
  if (memory.key >> 32 == 0) return; // of no bytes, or of the heap, which stays registered
  mem::Registration* const registration =
      rails_ != nullptr ? cache_.find_remote_key(memory.key) : cache_.find_key(memory.key);
  if (registration == nullptr) {
    if (rails_ != nullptr && heap_.find(reinterpret_cast<void*>(memory.address)) != nullptr) return;
    base::fail(MPI_ERR_INTERN, "RDMA: memory at {:#x} is released, but key {:#x} is not in use",
               memory.address, memory.key);
  }
  cache_.deregister(*registration);
}

Posted RdmaTransport::put(engine::Link& link, const void* local, RemoteMemory target,
                          std::size_t bytes, std::uint64_t cookie) noexcept {
  if (is_self(link)) [[unlikely]] {
    base::copy(reinterpret_cast<void*>(target.address), local, bytes);
    return Posted::done;
  }
  return move(static_cast<Connection&>(link), false, const_cast<void*>(local), target, bytes,
              cookie, false);
}

Posted RdmaTransport::write(engine::Link& link, const void* local, RemoteMemory target,
                            std::size_t bytes, std::uint64_t cookie) noexcept {
  if (is_self(link)) return put(link, local, target, bytes, cookie);
  return move(static_cast<Connection&>(link), false, const_cast<void*>(local), target, bytes,
              cookie, true);
}

Posted RdmaTransport::put_notified(engine::Link& link, const void* local, RemoteMemory target,
                                   std::size_t bytes, std::uint64_t cookie,
                                   std::uint32_t notification) noexcept try {
  if (is_self(link)) [[unlikely]] {
    base::copy(reinterpret_cast<void*>(target.address), local, bytes);
    to_self_.notify(notification, bytes);
    chores_ = true;
    return Posted::done;
  }
  if (bytes >= split_from_ && half_of(static_cast<Connection&>(link), target) != nullptr)
    return Posted::unnotified;
  return transfer(static_cast<Connection&>(link), false, const_cast<void*>(local), target, bytes,
                  cookie, notification);
} catch (...) {
  return break_down();
}

Posted RdmaTransport::get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
                          std::uint64_t cookie) noexcept {
  if (is_self(link)) [[unlikely]] {
    base::copy(local, reinterpret_cast<const void*>(target.address), bytes);
    return Posted::done;
  }
  return move(static_cast<Connection&>(link), true, local, target, bytes, cookie, false);
}

Posted RdmaTransport::read(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
                           std::uint64_t cookie) noexcept {
  if (is_self(link)) return get(link, local, target, bytes, cookie);
  return move(static_cast<Connection&>(link), true, local, target, bytes, cookie, true);
}

// `ordered`: it must not pass what was posted before.
inline Posted RdmaTransport::move(Connection& connection, bool is_get, void* local,
                                  RemoteMemory remote, std::size_t bytes, std::uint64_t cookie,
                                  bool ordered) noexcept try {
  if (bytes >= split_from_) [[unlikely]] {
    if (const auto posted = try_split(connection, is_get, local, remote, bytes, cookie, ordered))
      return *posted;
  }
  return transfer(connection, is_get, local, remote, bytes, cookie, 0);
} catch (...) {
  return break_down();
}

Posted RdmaTransport::transfer(Connection& connection, bool is_get, void* local,
                               RemoteMemory remote, std::size_t bytes, std::uint64_t cookie,
                               std::uint32_t notification) noexcept try {
  if (bytes == 0 || connection.phase == Phase::broken) return Posted::done;
  if (!can_post(connection) || (notification != 0 && !connection.may_send()))
    return refuse(connection);
  const bool may_pass = may_be_passed(is_get, bytes, notification);
  mem::Registration* registration = nullptr;
  Buffer* bounce = nullptr;
  const MemoryRegion* const region = heap_.find(local);
  if (region == nullptr) {
    const bool small = bytes <= pool_.buffer_bytes();
    if (bytes <= copied_put_ && notification != 0 && !may_pass &&
        put_small(connection, local, remote, bytes, notification))
      return Posted::done;
    registration = small ? cache_.find(local, bytes) : cache_.acquire(local, bytes);
    if (registration == nullptr) {
      if (small && !is_get && !may_pass &&
          put_small(connection, local, remote, bytes, notification))
        return Posted::done;
      if (!small && notification != 0) return Posted::unnotified; // takes several writes
      bounce = take_buffer();
      if (bounce == nullptr) return refuse(connection);
    }
  }
  Transfer* const made = begin_move(connection, is_get, static_cast<std::byte*>(local), remote,
                                    bytes, registration, cookie, notification);
  if (made == nullptr) {
    if (bounce != nullptr) pool_.give(bounce);
    return refuse(connection);
  }
  Transfer& transfer = *made;
  transfer.bounce = bounce;
  if (bounce != nullptr) ++counters_.bounced;
  connection.unposted.push_back(transfer);
  post_fragments(transfer);
  return Posted::pending;
} catch (...) {
  return break_down();
}

Posted RdmaTransport::write_blocks(engine::Link& link, std::span<const engine::Block> local,
                                   std::span<const engine::Block> target, std::uint64_t key,
                                   std::uint64_t cookie, engine::Block around) noexcept {
  return transfer_blocks(link, false, local, {target.front().address, key}, cookie, around);
}

Posted RdmaTransport::read_blocks(engine::Link& link, std::span<const engine::Block> local,
                                  std::span<const engine::Block> target, std::uint64_t key,
                                  std::uint64_t cookie, engine::Block around) noexcept {
  return transfer_blocks(link, true, local, {target.front().address, key}, cookie, around);
}

// One request, of which our side is a gather list.
Posted RdmaTransport::transfer_blocks(engine::Link& link, bool is_get,
                                      std::span<const engine::Block> local, RemoteMemory remote,
                                      std::uint64_t cookie, engine::Block around) noexcept try {
  if (is_self(link) || local.size() > shape_.segments) return Posted::refused;
  auto& connection = static_cast<Connection&>(link);
  if (connection.phase == Phase::broken) return Posted::done;
  if (!can_post(connection)) return refuse(connection);
  auto* const memory = reinterpret_cast<std::byte*>(around.address);
  const MemoryRegion* const region = heap_.find(memory);
  mem::Registration* registration = nullptr;
  if (region == nullptr) {
    registration = cache_.acquire(memory, around.bytes);
    if (registration == nullptr) return Posted::refused;
  } else if (heap_.find(memory + around.bytes - 1) != region) {
    return Posted::refused;
  }
  std::array<Segment, model::most_segments> segments;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < local.size(); ++i) {
    segments[i] = {reinterpret_cast<void*>(local[i].address),
                   static_cast<std::uint32_t>(local[i].bytes),
                   region != nullptr ? region->local_key : registration->region->local_key};
    bytes += local[i].bytes;
  }
  Transfer* const made =
      begin_move(connection, is_get, memory, remote, bytes, registration, cookie, 0);
  if (made == nullptr) return refuse(connection);
  Transfer& transfer = *made;
  transfer.posted = bytes;
  ++counters_.gathered;
  SendWork work;
  work.operation = is_get ? Operation::read : Operation::write;
  work.segments = {segments.data(), local.size()};
  work.remote_address = remote.address;
  work.remote_key = device_key(remote);
  post(connection, work, nullptr, &transfer);
  return Posted::pending;
} catch (...) {
  return break_down();
}

// The data leave their place at once. Behind the write, in the same queue, come later messages.
bool RdmaTransport::put_small(Connection& connection, const void* local, RemoteMemory target,
                              std::size_t bytes, std::uint32_t notification) {
  if (connection.sends.room() < requests(connection, notification)) return false;
  SendWork work;
  work.operation = Operation::write;
  work.remote_address = target.address;
  work.remote_key = device_key(target);
  Segment segment{const_cast<void*>(local), static_cast<std::uint32_t>(bytes), 0};
  Buffer* buffer = nullptr;
  if (bytes <= shape_.inline_bytes) {
    work.inlined = true;
  } else {
    buffer = take_buffer();
    if (buffer == nullptr) return false;
    base::copy(buffer->memory, local, bytes);
    segment.memory = buffer->memory;
    segment.local_key = buffer->local_key;
    ++counters_.bounced;
  }
  work.segments = {&segment, 1};
  if (notification != 0) add_notification(connection, work, notification);
  post(connection, work, buffer, nullptr);
  if (rails_ != nullptr) [[unlikely]]
    rails_->note_small_put(connection);
  if (notification != 0) tell_polling(connection, notification, bytes);
  ++counters_.puts;
  connection.last_used = ++clock_;
  return true;
}

// The write tells its target that it is complete, and takes a receive there; unless the target
// looks for that in memory.
void RdmaTransport::add_notification(Connection& connection, SendWork& work,
                                     std::uint32_t notification) {
  if (connection.peer_polls()) return;
  receiver_->take_receive(connection);
  work.operation = Operation::write_immediate;
  work.immediate = wire::Note::of_put(notification).encode();
}

// Then a note is written behind it.
void RdmaTransport::tell_polling(Connection& connection, std::uint32_t notification,
                                 std::size_t bytes) {
  if (connection.peer_polls())
    write_note(connection, wire::Note::of_put(notification), bytes, false);
}

// Posts what fits of a transfer, the front of its connection's; true if that was all.
bool RdmaTransport::post_fragments(Transfer& transfer) {
  if (transfer.split != 0) return false;
  Connection& connection = *transfer.connection;
  Buffer* const bounce = transfer.bounce;
  const std::size_t most =
      bounce != nullptr ? pool_.buffer_bytes() : longest_fragment(device_.limits());
  const MemoryRegion* const region =
      transfer.registration == nullptr ? heap_.find(transfer.local) : nullptr;
  while (transfer.posted < transfer.bytes) {
    if (connection.sends.room() < requests(connection, transfer.notification) ||
        transfer.bounced != 0)
      return false;
    const auto bytes = static_cast<std::uint32_t>(std::min(most, transfer.bytes - transfer.posted));
    Segment segment{transfer.local + transfer.posted, bytes, 0};
    if (bounce != nullptr) {
      if (!transfer.is_get) base::copy(bounce->memory, segment.memory, bytes);
      segment.memory = bounce->memory;
      segment.local_key = bounce->local_key;
      transfer.bounced = bytes;
    } else {
      segment.local_key =
          region != nullptr ? region->local_key : transfer.registration->region->local_key;
    }
    SendWork work;
    work.operation = transfer.is_get ? Operation::read : Operation::write;
    work.segments = {&segment, 1};
    work.remote_address = transfer.remote.address + transfer.posted;
    work.remote_key = device_key(transfer.remote);
    if (transfer.notification != 0)
      add_notification(connection, work, transfer.notification); // one fragment
    transfer.posted += bytes;
    const bool last = transfer.posted == transfer.bytes;
    post(connection, work, nullptr, last || bounce != nullptr ? &transfer : nullptr);
    if (transfer.notification != 0) tell_polling(connection, transfer.notification, bytes);
  }
  base::List<Transfer>::erase(transfer);
  return true;
}

// The last fragment is complete, or the one in the message buffer: the next may be posted then.
void RdmaTransport::on_posted(Transfer& transfer, Sink& sink) {
  if (transfer.is_get && transfer.bounce != nullptr) {
    base::copy(transfer.local + transfer.posted - transfer.bounced, transfer.bounce->memory,
               transfer.bounced);
  }
  transfer.bounced = 0;
  transfer.first_done = true;
  if (transfer.posted == transfer.bytes) finish(transfer, true, sink);
}

void RdmaTransport::finish(Transfer& transfer, bool ok, Sink& sink) {
  base::List<Transfer>::erase(transfer);
  --transfer.connection->transfers;
  if (transfer.split != 0) rails_->finished(*transfer.connection, transfer.is_get);
  if (may_be_passed(transfer.is_get, transfer.bytes, transfer.notification))
    --transfer.connection->sends.unplaced;
  if (transfer.bounce != nullptr) pool_.give(transfer.bounce);
  if (transfer.registration != nullptr) cache_.release(*transfer.registration);
  const std::uint64_t cookie = transfer.cookie;
  transfer_slab_.free(&transfer);
  sink.on_complete(cookie, ok);
}

} // namespace macadam::net::rdma
