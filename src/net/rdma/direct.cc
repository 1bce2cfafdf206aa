// SPDX-License-Identifier: BSD-3-Clause
// One-sided access beyond put and get, which RDMA writes and reads are already: regions registered
// for as long as a window lives, completion at the target, atomics.
#include "net/rdma/transport.h"

#include "base/error.h"

namespace macadam::net::rdma {

namespace {

constexpr std::uint32_t word_bytes = 8;

} // namespace

RemoteMemory RdmaTransport::register_region(void* memory, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes == 0) return {address, 0};
  auto region = preferred_.register_memory(memory, bytes, Access::remote);
  // A device may give a key out again: the number above it tells one use from the other. Two keys
  // leave no room for one.
  const std::uint64_t key = rails_ != nullptr
                                ? region->remote_key
                                : std::uint64_t{++region_generation_} << 32 | region->remote_key;
  regions_.emplace(key, std::move(region));
  return {address, key};
}

void RdmaTransport::deregister_region(RemoteMemory memory) noexcept {
  if (memory.key == 0) return;
  if (regions_.erase(memory.key) == 0) {
    base::fail(MPI_ERR_INTERN, "RDMA: memory at {:#x} is deregistered, but key {:#x} is not in use",
               memory.address, memory.key);
  }
}

// An acknowledged write has landed, and with it all that were posted before.
Posted RdmaTransport::flush(engine::Link& link, std::uint64_t cookie) noexcept try {
  if (is_self(link)) return Posted::done;
  auto& connection = static_cast<Connection&>(link);
  if (connection.phase == Phase::broken) return Posted::done;
  if (connection.unposted.empty() && connection.sends.idle()) return Posted::done;
  if (!can_post(connection)) return refuse(connection);
  Transfer* const transfer = begin_transfer(connection, cookie);
  if (transfer == nullptr) return refuse(connection);
  SendWork work;
  work.operation = Operation::write; // of nothing
  post(connection, work, nullptr, transfer);
  return Posted::pending;
} catch (...) {
  return break_down();
}

Posted RdmaTransport::atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                             std::uint64_t* result, std::uint64_t cookie) noexcept try {
  // The adapter's atomics are atomic to each other only: those of this process on its own memory go
  // through it too, over a connection to itself.
  Connection& connection = is_self(link) ? connector_->get(rank_) : static_cast<Connection&>(link);
  if (connection.phase == Phase::broken) return Posted::done;
  if (!can_post(connection)) return refuse(connection);
  Buffer* const buffer = take_buffer();
  if (buffer == nullptr) return refuse(connection);
  Transfer* const made = begin_transfer(connection, cookie);
  if (made == nullptr) {
    pool_.give(buffer);
    return refuse(connection);
  }
  Transfer& transfer = *made;
  transfer.bounce = buffer;
  transfer.local = reinterpret_cast<std::byte*>(result);
  transfer.is_get = true;
  transfer.bytes = transfer.posted = transfer.bounced = word_bytes;
  Segment segment{buffer->memory, word_bytes, buffer->local_key};
  SendWork work;
  work.segments = {&segment, 1};
  work.remote_address = target.address;
  work.remote_key = device_key(target);
  if (what.kind == engine::Atomic::Kind::fetch_and_add) {
    work.operation = Operation::fetch_and_add;
    work.compare_or_add = what.operand;
  } else {
    work.operation = Operation::compare_and_swap;
    work.compare_or_add = what.compare;
    work.swap = what.operand;
  }
  ++counters_.atomics;
  post(connection, work, nullptr, &transfer);
  return Posted::pending;
} catch (...) {
  return break_down();
}

// Null if there is no memory for it.
Transfer* RdmaTransport::begin_transfer(Connection& connection, std::uint64_t cookie) noexcept {
  Transfer* const transfer = transfer_slab_.try_make();
  if (transfer == nullptr) return nullptr;
  transfer->connection = &connection;
  transfer->cookie = cookie;
  ++connection.transfers;
  chores_ = true; // to look for its completion
  connection.last_used = ++clock_;
  return transfer;
}

// The same for data of the user's, which `registration`, if there is one, is of: it is released if
// there is no memory.
Transfer* RdmaTransport::begin_move(Connection& connection, bool is_get, std::byte* local,
                                    RemoteMemory remote, std::size_t bytes,
                                    mem::Registration* registration, std::uint64_t cookie,
                                    std::uint32_t notification) noexcept {
  Transfer* const transfer = begin_transfer(connection, cookie);
  if (transfer == nullptr) {
    if (registration != nullptr) cache_.release(*registration);
    return nullptr;
  }
  transfer->registration = registration;
  transfer->local = local;
  transfer->remote = remote;
  transfer->bytes = bytes;
  transfer->notification = notification;
  transfer->is_get = is_get;
  if (may_be_passed(is_get, bytes, notification)) ++connection.sends.unplaced;
  ++(is_get ? counters_.gets : counters_.puts);
  return transfer;
}

} // namespace macadam::net::rdma
