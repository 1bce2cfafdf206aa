// SPDX-License-Identifier: BSD-3-Clause
// Long puts and gets by two ports, half by each.
//
// The two halves know nothing of each other's order, so whatever must not pass a put waits until
// its second half is there: the put stands among the `unposted` ones of its connection until then,
// which holds up all else, but other puts and gets that no order binds. The first half is in the
// queue that all else goes through, and needs no such care. For the same reason a split put has no
// notification: the engine sends a message behind it.
#include "net/rdma/transport.h"

#include "net/rdma/model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace macadam::net::rdma {

// The second port's queue pair, if data may go there now.
Rails::Half* RdmaTransport::half_of(const Connection& connection, RemoteMemory remote) const {
  if (connection.phase != Phase::open || remote.key >> 32 == 0) return nullptr;
  // What cannot be posted yet is in order, and so is what comes behind it.
  const bool waits = !connection.unposted.empty() && connection.unposted.front().split == 0;
  return waits ? nullptr : rails_->find(connection);
}

// Whether all that was written before is complete. If not, it soon is.
bool RdmaTransport::nothing_to_pass(Connection& connection, Rails::Half& half, bool is_get) {
  if (connection.transfers != (is_get ? half.gets : 0)) return false;
  if (!half.small_puts) return true;
  SendQueue& sends = connection.sends;
  const auto reaches = [&](std::uint32_t sequence) {
    return static_cast<std::int32_t>(sequence - half.small_puts_end) >= 0;
  };
  if (!reaches(sends.signalled)) post_flush(connection);
  if (!reaches(sends.completed)) return false;
  half.small_puts = false;
  return true;
}

// `ordered`: what was posted before must not be passed either.
std::optional<Posted> RdmaTransport::try_split(Connection& connection, bool is_get, void* local,
                                               RemoteMemory remote, std::size_t bytes,
                                               std::uint64_t cookie, bool ordered) {
  Rails::Half* const half = half_of(connection, remote);
  if (half == nullptr) return std::nullopt;
  // To wait takes a round trip at most beyond what was posted before, less than the second port
  // saves.
  if (ordered && !nothing_to_pass(connection, *half, is_get)) return refuse(connection);
  const std::size_t most = longest_fragment(device_.limits());
  const std::size_t second = bytes / 2 / model::page * model::page;
  const std::size_t first = bytes - second;
  const std::size_t requests = (first + most - 1) / most;
  if (connection.sends.room() < requests || rails_->room(*half) < requests) return std::nullopt;

  const MemoryRegion* region = heap_.find(local);
  mem::Registration* registration = nullptr;
  if (region == nullptr) {
    registration = cache_.acquire(local, bytes);
    if (registration == nullptr) return std::nullopt;
    region = registration->region.get();
  }
  Transfer* const made = begin_move(connection, is_get, static_cast<std::byte*>(local), remote,
                                    bytes, registration, cookie, 0);
  if (made == nullptr) return refuse(connection);
  Transfer& transfer = *made;
  transfer.split = second;
  ++counters_.split;
  if (is_get) ++half->gets;
  (is_get ? rails_->gets : connection.unposted).push_back(transfer);

  const auto part = [&](std::size_t from, std::size_t to, std::uint32_t local_key,
                        std::uint32_t remote_key, const auto& post_part) {
    for (std::size_t at = from; at < to;) {
      const std::size_t length = std::min(most, to - at);
      const Segment segment{transfer.local + at, static_cast<std::uint32_t>(length), local_key};
      SendWork work;
      work.operation = is_get ? Operation::read : Operation::write;
      work.segments = {&segment, 1};
      work.remote_address = remote.address + at;
      work.remote_key = remote_key;
      at += length;
      post_part(work, at == to);
    }
  };
  part(0, first, region->local_key, device_key(remote), [&](SendWork& work, bool last) {
    post(connection, work, nullptr, last ? &transfer : nullptr);
  });
  transfer.posted = first;
  part(first, bytes, static_cast<const RailRegion*>(region)->second_local_key,
       static_cast<std::uint32_t>(remote.key >> 32), [&](SendWork& work, bool) {
         work.id = reinterpret_cast<std::uintptr_t>(&transfer);
         work.signalled = true;
         rails_->post(*half, work);
         ++transfer.second_left;
       });
  return Posted::pending;
}

bool RdmaTransport::poll_second(Sink& sink) {
  std::array<Completion, 16> done;
  bool moved = false;
  CompletionQueues& queues = rails_->queues();
  for (unsigned i = 0, count = queues.size(); i < count; ++i) {
    const std::size_t found = queues[i].poll(done);
    for (std::size_t at = 0; at < found; ++at)
      on_second(done[at], sink);
    moved |= found != 0;
  }
  return moved;
}

void RdmaTransport::on_second(const Completion& completion, Sink& sink) {
  Rails::Half* const half = rails_->find(completion.queue_pair);
  if (half == nullptr) return; // of a connection that is no more
  if (completion.status != WorkStatus::ok) {
    return break_off(*half->connection,
                     fmt::format("{}: {}", rails_->second_name(), text_of(completion.status)),
                     sink);
  }
  rails_->completed(*half);
  auto& transfer = *reinterpret_cast<Transfer*>(completion.id);
  if (--transfer.second_left != 0) return;
  transfer.posted = transfer.bytes;
  base::List<Transfer>::erase(transfer);
  if (transfer.first_done) finish(transfer, true, sink);
}

// Those of a connection that has failed.
void RdmaTransport::end_split_gets(const Connection& connection, Sink& sink) {
  base::List<Transfer>& gets = rails_->gets;
  for (auto at = gets.begin(); at != gets.end();) {
    Transfer& transfer = *at;
    ++at;
    if (transfer.connection == &connection) finish(transfer, false, sink);
  }
}

} // namespace macadam::net::rdma
