// SPDX-License-Identifier: BSD-3-Clause
// The key of a run's state. Two runs with equal keys have the same future: the key holds everything
// that steps of program, network, engines or oracle look at, and holds it in full; addresses, ids
// and keys of memory, which only name things, are replaced by what they name. (What the key tells
// apart needlessly costs time; what it failed to tell apart would cost soundness. explorer_test
// compares with runs that use no keys.)
#include "engine/wire.h"
#include "prove/execution.h"

#include <cstring>

namespace macadam::prove {

namespace wire = engine::wire;

class StateHash {
 public:
  explicit StateHash(const Execution& run) : run_(run) {
    add_all(run.network_.refusals_left(), run.network_.scarcity_left(), run.deaths_left_);
    for (int rank = 0; rank < ranks(); ++rank) {
      add_all(run_.job_.is_dead(rank), run_.network_.has_ended(rank));
      if (run_.job_.is_dead(rank)) continue;
      add_process(rank);
      add_engine(rank);
      for (int peer = 0; peer < ranks(); ++peer)
        add_link(rank, peer);
    }
    add_oracle();
  }
  [[nodiscard]] StateKey key() const { return {first_, second_}; }

 private:
  // Names of things that are gone: late packets that mention them find nothing.
  static constexpr std::uint64_t gone = ~std::uint64_t{0};

  template <class Value>
  void add(Value value) {
    static_assert(sizeof(Value) <= 8);
    const auto word = static_cast<std::uint64_t>(value);
    first_ = (first_ ^ word) * 0x9e3779b97f4a7c15u;
    first_ ^= first_ >> 29;
    second_ = (second_ + word + 0x632be59bd9b4e019u) * 0xd6e8feb86659fd93u;
    second_ ^= second_ >> 32;
  }
  template <class... Values>
  void add_all(Values... values) {
    (add(values), ...);
  }
  void add_bytes(const void* bytes, std::size_t count) {
    add(count);
    for (std::size_t at = 0; at < count; at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, static_cast<const std::byte*>(bytes) + at,
                  std::min<std::size_t>(8, count - at));
      add(word);
    }
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(run_.job_.processes_.size()); }
  [[nodiscard]] const Job::Process& process(int rank) const {
    return run_.job_.processes_[Job::index(rank)];
  }

  // ---- names

  // A send or receive, by the user's memory that its data lie in.
  [[nodiscard]] std::uint64_t operation_at(int rank, const void* address) const {
    const auto& operations = process(rank).operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      if (operations[i]->memory.data() == address) return i;
    }
    const auto& partitioned = process(rank).partitioned; // by a place inside
    for (std::size_t i = 0; i < partitioned.size(); ++i) {
      const auto& memory = partitioned[i]->memory;
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
      if (at >= begin && at < begin + memory.size()) return (i + 1) << 32 | (at - begin);
    }
    return gone;
  }
  // A partitioned operation of a process by its id on the wire.
  [[nodiscard]] std::uint64_t partitioned_registered(int rank, std::uint64_t id, bool sends) const {
    const auto& partitioned = process(rank).partitioned;
    if (run_.job_.is_dead(rank)) return gone;
    for (std::size_t i = 0; i < partitioned.size(); ++i) {
      if (partitioned[i]->sends() == sends && common(*partitioned[i]).id == id) return i;
    }
    return gone;
  }
  static const engine::Partitioned& common(const PartitionedOperation& operation) {
    if (operation.sends()) return *operation.send;
    return *operation.receive;
  }
  [[nodiscard]] std::uint64_t name(int rank, const engine::Request* request) const {
    if (request == nullptr) return gone;
    return operation_at(rank,
                        request->role == engine::Role::send
                            ? static_cast<const engine::SendRequest*>(request)->data.address
                            : static_cast<const engine::ReceiveRequest*>(request)->data.address);
  }
  [[nodiscard]] std::uint64_t send_registered(int rank, std::uint64_t id) const {
    std::uint64_t found = gone;
    if (run_.job_.is_dead(rank)) return found;
    process(rank).engine->for_each_send([&](const engine::SendRequest& send) {
      if (send.id == id) found = name(rank, &send);
    });
    return id == 0 ? gone - 1 : found;
  }
  [[nodiscard]] std::uint64_t receive_registered(int rank, std::uint64_t id) const {
    if (id == 0) return gone - 1;
    for (const Job::Operation* receive : process(rank).receives) {
      if (receive->request == nullptr) continue;
      const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
      if (request.id == id) return name(rank, &request);
    }
    return gone;
  }
  [[nodiscard]] std::uint64_t receive_notified(int rank, std::uint32_t notification) const {
    if (run_.job_.is_dead(rank)) return gone;
    for (const Job::Operation* receive : process(rank).receives) {
      if (notification == 0 || receive->request == nullptr) continue;
      const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
      if (base::short_id(request.id) == notification) return name(rank, &request);
    }
    const auto& partitioned = process(rank).partitioned;
    for (std::size_t i = 0; i < partitioned.size(); ++i) {
      if (partitioned[i]->sends() || partitioned[i]->receive->first_notification == 0) continue;
      const std::uint32_t partition = notification - partitioned[i]->receive->first_notification;
      if (partition < partitioned[i]->receive->sent_number) return (i + 1) << 32 | partition;
    }
    return notification == 0 ? gone - 1 : gone;
  }
  [[nodiscard]] std::uint64_t permit_of(int issuer, std::uint64_t number) const {
    return number == 0 ? gone : static_cast<std::uint64_t>(run_.network_.permit(issuer, number));
  }
  // The receive, or the partition, that a permit is for.
  [[nodiscard]] std::uint64_t permitted(int rank, std::uint64_t number) const {
    for (const Job::Operation* receive : process(rank).receives) {
      if (receive->request == nullptr) continue;
      const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
      if (request.permit == number) return name(rank, &request);
    }
    std::uint64_t found = gone;
    if (run_.job_.is_dead(rank)) return found;
    process(rank).engine->for_each_send([&](const engine::SendRequest& send) {
      if (send.permit == number) found = name(rank, &send);
    });
    return found;
  }
  // Registered memory: whether it still is, and whose data are to be there.
  void add_memory(int owner, engine::RemoteMemory memory) {
    if (run_.job_.is_dead(owner)) return add(gone);
    const Network::Region* const region = run_.network_.region(owner, memory.key);
    if (region == nullptr) return add(memory.key == 0 ? gone - 1 : gone);
    std::uint64_t found = operation_at(owner, reinterpret_cast<void*>(region->address));
    if (found == gone) { // a copy of the library
      const auto is = [&](const std::byte* bounce) {
        return reinterpret_cast<std::uintptr_t>(bounce) == region->address;
      };
      process(owner).engine->for_each_send([&](const engine::SendRequest& send) {
        if (is(send.bounce)) found = name(owner, &send) + 1000;
      });
      for (const Job::Operation* receive : process(owner).receives) {
        if (receive->request == nullptr) continue;
        const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
        if (is(request.bounce)) found = name(owner, &request) + 1000;
      }
      const auto& partitioned = process(owner).partitioned;
      for (std::size_t i = 0; i < partitioned.size(); ++i) {
        if (!partitioned[i]->sends() && is(partitioned[i]->receive->bounce)) found = i + 2000;
      }
    }
    add_all(found, memory.address - region->address, region->bytes);
  }

  // ---- program and oracle

  void add_process(int rank) {
    const Job::Process& at = process(rank);
    add_all(at.next, at.operations.size(), at.receives.size());
    for (const auto& operation : at.operations) {
      add_all(operation->step.what, operation->number, operation->cancelling,
              operation->request != nullptr);
      add_bytes(operation->memory.data(), operation->memory.size());
      if (operation->request == nullptr) continue;
      if (operation->receive)
        add_receive(rank, static_cast<const engine::ReceiveRequest&>(*operation->request));
    }
    add(at.probed != nullptr);
    if (at.probed != nullptr) add_message(*at.probed);
    add(at.probed_message);
    add(at.partitioned.size());
    for (const auto& operation : at.partitioned)
      add_partitioned(*operation);
  }
  void add_partitioned(const PartitionedOperation& operation) {
    const engine::Partitioned& its = common(operation);
    add_all(operation.started, operation.ended, operation.filled, operation.marked, its.left,
            its.running, its.error, its.first_notification != 0);
    add_bytes(operation.memory.data(), operation.memory.size());
    if (operation.sends()) {
      const engine::PartitionedSend& send = *operation.send;
      add_all(send.marked[0].load(), send.posted[0], send.started, send.opened, send.by_messages,
              send.refused);
      if (send.opened != 0) {
        add(partitioned_registered(operation.step.peer, send.peer_id, false));
        add_memory(operation.step.peer, send.memory);
      }
      return;
    }
    const engine::PartitionedReceive& receive = *operation.receive;
    add_all(receive.matched, receive.prepared, receive.is_registered, receive.sent_number,
            receive.sent_bytes);
    if (receive.matched) add(partitioned_registered(operation.step.peer, receive.peer_id, true));
    for (std::uint32_t i = 0; i < receive.data.number; ++i)
      add(receive.missing[i].load());
    add(receive.bounce != nullptr);
    if (receive.bounce != nullptr) add_bytes(receive.bounce, operation.bytes());
  }
  void add_oracle() {
    const Oracle& oracle = run_.job_.oracle_;
    add(oracle.messages().size());
    for (const Oracle::Message& m : oracle.messages())
      add_all(m.from, m.to, m.context, m.tag, m.bytes, m.receive, m.silent, m.withdrawn);
    for (int rank = 0; rank < ranks(); ++rank) {
      const auto& receives = oracle.receives()[Job::index(rank)];
      add(receives.size());
      for (const Oracle::Receive& r : receives)
        add_all(r.message, r.pending);
      add(oracle.unexpected(rank).size());
      for (const int number : oracle.unexpected(rank))
        add(number);
      for (int peer = 0; peer < ranks(); ++peer)
        add(oracle.on_the_way(rank, peer).size());
    }
  }

  // ---- engine

  // Receives stand in the matcher in the order of posting, which is that of the operations.
  void add_receive(int rank, const engine::ReceiveRequest& receive) {
    add_all(receive.stage, receive.announced, receive.cancelling, receive.is_registered,
            receive.id != 0, receive.incoming, receive.pulled, receive.channel != nullptr,
            receive.peer == nullptr ? gone : receive.peer->rank, receive.status.source,
            receive.status.tag, receive.status.error, receive.detached, receive.revoking,
            permit_of(rank, receive.permit),
            receive.sender_permit == 0
                ? gone
                : permit_of(static_cast<int>(receive.peer->rank), receive.sender_permit));
    if (receive.sender_permit != 0)
      add_memory(static_cast<int>(receive.peer->rank), receive.readable);
    add(receive.offered != nullptr);
    if (receive.offered != nullptr) add_message(*receive.offered);
    add(receive.peer == nullptr
            ? gone
            : send_registered(static_cast<int>(receive.peer->rank), receive.sender_id));
    add(receive.bounce != nullptr);
    if (receive.bounce != nullptr) add_bytes(receive.bounce, receive.capacity);
    const base::ListNode<engine::Watched>& watched = receive;
    add_all(watched.linked(), receive.last_byte);
    // Who follows in the list of receives that may not announce themselves yet.
    const base::ListNode<engine::Held>& held = receive;
    add(held.linked());
    for (const Job::Operation* other : process(rank).receives) {
      if (other->request == nullptr) continue;
      const base::ListNode<engine::Held>& node =
          static_cast<const engine::ReceiveRequest&>(*other->request);
      add(held.next == &node);
      const base::ListNode<engine::Watched>& other_watched =
          static_cast<const engine::ReceiveRequest&>(*other->request);
      add(watched.next == &other_watched);
    }
  }
  void add_send(int rank, const engine::SendRequest& send) {
    add_all(name(rank, &send), send.peer->rank, send.stage, send.counted, send.ordinal, send.hybrid,
            send.is_registered, send.mode, send.detached, send.cancelling, send.may_leave,
            send.bytes, permit_of(rank, send.permit));
    add(send.bounce != nullptr);
    if (send.bounce != nullptr) add_bytes(send.bounce, send.bytes);
  }
  void add_message(const engine::Message& message) {
    const int from = static_cast<int>(message.peer->rank);
    add_all(from, message.envelope.context, message.envelope.source, message.envelope.tag,
            message.bytes, message.offer, message.rendezvous, message.counted);
    add_all(send_registered(from, message.send_id), permit_of(from, message.permit));
    add_memory(from, message.memory);
    add(message.data != nullptr);
    const engine::Arriving& arriving = message.peer->arriving;
    if (message.data != nullptr)
      add_bytes(message.data, arriving.message == &message ? arriving.arrived : message.bytes);
  }
  void add_partition(int from, int to, const wire::PartitionOffer& offer) {
    add_all(offer.partition, partitioned_registered(to, offer.receive_id, false),
            send_registered(from, offer.send_id), permit_of(from, offer.permit));
    add_memory(from, offer.memory);
  }
  void add_engine(int rank) {
    const engine::Engine& at = *process(rank).engine;
    add(at.partitioned().any_left());
    at.partitioned().for_each_offer(
        [&](const engine::Peer& peer, const wire::PartitionedSend& offer) {
          add_all(peer.rank, offer.tag,
                  partitioned_registered(static_cast<int>(peer.rank), offer.send_id, true));
        });
    at.partitioned().for_each_readable(
        [&](const engine::Peer& peer, const wire::PartitionOffer& offer) {
          add_partition(static_cast<int>(peer.rank), rank, offer);
        });
    at.for_each_send([&](const engine::SendRequest& send) { add_send(rank, send); });
    at.for_each_unread([&](const engine::ReceiveRequest& r) { add(name(rank, &r)); });
    at.for_each_unwritten([&](const engine::SendRequest& s, const engine::Announcement& target) {
      const int to = static_cast<int>(s.peer->rank);
      add_all(name(rank, &s), receive_registered(to, target.receive_id), target.capacity);
      add_memory(to, target.memory);
    });
    at.matcher().for_each_unexpected([&](const engine::Message& m) { add_message(m); });
    at.peers().for_each([&](const engine::Peer& peer) { add_peer(rank, at, peer); });
    at.for_each_revocation(
        [&](const engine::Peer& peer, const engine::Channel& channel, std::uint64_t receive_id) {
          add_all(peer.rank, channel.context, channel.tag, receive_registered(rank, receive_id));
        });
  }
  void add_peer(int rank, const engine::Engine& at, const engine::Peer& peer) {
    const int other = static_cast<int>(peer.rank);
    add_all(peer.rank, peer.state, peer.throttled, peer.throttled_by_us, peer.short_limit,
            peer.channels.refused().size(), peer.arriving.arrived, peer.arriving.bytes,
            peer.arriving.message != nullptr, name(rank, peer.arriving.receive));
    add_all(peer.holds, peer.look == at.looks(), peer.burst.count, peer.burst.bytes);
    for (const std::uint64_t context : peer.channels.refused())
      add(context);
    // Channels stand in a table whose order follows from their names and the order in which they
    // were made; only what they hold matters: they are added up.
    std::uint64_t sum_first = 0, sum_second = 0;
    peer.channels.for_each([&](const engine::Channel& channel) {
      const auto [first, second] = std::pair(first_, second_);
      first_ = second_ = 1;
      add_channel(rank, other, channel);
      sum_first += std::exchange(first_, first);
      sum_second += std::exchange(second_, second);
    });
    add_all(sum_first, sum_second);
    // Who follows in the list of peers with a backlog.
    const base::ListNode<engine::Backlogged>& node = peer;
    add(node.linked());
    at.peers().for_each([&](const engine::Peer& next) {
      const base::ListNode<engine::Backlogged>& its = next;
      add(node.next == &its);
    });
    for (const engine::Deferred& waiting : peer.backlog) {
      add_all(waiting.type, waiting.bytes, receive_notified(other, waiting.notification),
              waiting.control_bytes);
      add_bytes(waiting.payload, waiting.payload == nullptr ? 0 : waiting.bytes);
      if (waiting.control_bytes != 0)
        add_packet(rank, other, waiting.control.data(), waiting.control_bytes);
      add(name(rank, waiting.send));
      add(name(rank, waiting.receive));
      add_memory(other, waiting.remote);
    }
  }
  void add_channel(int rank, int peer, const engine::Channel& channel) {
    add_all(channel.context, channel.tag, channel.source, channel.revoking, channel.pending,
            channel.sent, channel.matched);
    add(channel.announcements.size());
    for (const engine::Announcement& announcement : channel.announcements) {
      add_all(announcement.ordinal, announcement.capacity, announcement.watched,
              announcement.last_byte);
      add(receive_registered(peer, announcement.receive_id));
      add(permit_of(peer, announcement.permit));
      add_memory(peer, announcement.memory);
    }
    add(channel.waiting.size());
    for (const engine::SendRequest* send : channel.waiting)
      add(name(rank, send));
  }

  // ---- network

  void add_link(int rank, int peer) {
    const Network::Link& link = run_.network_.link(rank, peer);
    add_all(link.connected, link.transfers.size(), link.inbox.size(),
            run_.network_.has_told(rank, peer));
    for (const Network::Transfer& transfer : link.transfers)
      add_transfer(rank, peer, transfer);
    add(link.asked.size());
    for (const std::uint64_t permit : link.asked)
      add(permitted(rank, permit));
    for (const Network::Item& item : link.inbox) {
      add_all(item.put.has_value(), item.given);
      if (item.put)
        add_transfer(peer, rank, *item.put);
      else
        add_packet(peer, rank, item.message.data(), item.message.size());
    }
  }
  void add_transfer(int rank, int peer, const Network::Transfer& transfer) {
    constexpr std::uint64_t receive_cookie = std::uint64_t{1} << 63;
    add_all(transfer.put, transfer.payload.size(), transfer.bytes, transfer.moved,
            receive_notified(peer, transfer.notification));
    add((transfer.cookie & receive_cookie) != 0
            ? receive_registered(rank, transfer.cookie & ~receive_cookie)
            : send_registered(rank, transfer.cookie));
    add_memory(peer, transfer.remote);
    for (const std::byte byte : transfer.payload)
      add(static_cast<std::uint64_t>(byte));
  }
  // A packet of `from` to `to`.
  void add_packet(int from, int to, const std::byte* packet, std::size_t bytes) {
    const auto read = [&]<class Header>(Header header) {
      std::memcpy(&header, packet, sizeof header);
      return header;
    };
    const auto kind = static_cast<wire::Kind>(packet[0]);
    add(kind);
    switch (kind) {
    case wire::Kind::eager:
    case wire::Kind::bundle:
      return add_bytes(packet, bytes);
    case wire::Kind::eager_synchronous: {
      const auto header = read(wire::EagerSynchronous{});
      add(send_registered(from, std::uint64_t{header.send_id_high} << 32 | header.send_id_low));
      add_bytes(packet, sizeof(wire::Eager));
      return add_bytes(packet + sizeof header, bytes - sizeof header);
    }
    case wire::Kind::sender_ready: {
      const auto ready = read(wire::SenderReady{});
      add_all(ready.offer, ready.counted, ready.synchronous, ready.source, ready.tag, ready.context,
              ready.bytes, send_registered(from, ready.send_id), permit_of(from, ready.permit));
      return add_memory(from, ready.memory);
    }
    case wire::Kind::receiver_ready: {
      const auto ready = read(wire::ReceiverReady{});
      add_all(ready.tag, ready.context, ready.ordinal, receive_registered(from, ready.receive_id),
              ready.answers ? send_registered(to, ready.send_id) : permit_of(from, ready.permit),
              ready.answers, ready.capacity, ready.watched, ready.last_byte);
      return add_memory(from, ready.memory);
    }
    case wire::Kind::fin_to_receiver:
    case wire::Kind::fin_to_sender: {
      const auto fin = read(wire::Fin{});
      add_all(fin.source, fin.bytes,
              kind == wire::Kind::fin_to_receiver ? receive_registered(to, fin.id)
                                                  : send_registered(to, fin.id));
      return;
    }
    case wire::Kind::sender_copied: {
      const auto copied = read(wire::SenderCopied{});
      add_all(copied.tag, copied.source, copied.context, send_registered(from, copied.send_id),
              send_registered(from, copied.copy_id));
      return add_memory(from, copied.memory);
    }
    case wire::Kind::withdraw:
    case wire::Kind::withdrawn: {
      const auto withdraw = read(wire::Withdraw{});
      add_all(withdraw.tag, withdraw.source, withdraw.context,
              send_registered(kind == wire::Kind::withdraw ? from : to, withdraw.send_id));
      return;
    }
    case wire::Kind::pull: {
      const auto pull = read(wire::Pull{});
      add_all(send_registered(to, pull.send_id), receive_registered(from, pull.receive_id),
              pull.offset);
      return;
    }
    case wire::Kind::fragment:
      add(receive_registered(to, read(wire::Fragment{}).receive_id));
      return add_bytes(packet + sizeof(wire::Fragment), bytes - sizeof(wire::Fragment));
    case wire::Kind::throttle:
      return add(read(wire::Throttle{}).on);
    case wire::Kind::partitioned_send: {
      const auto offer = read(wire::PartitionedSend{});
      add_all(offer.tag, offer.partitions, offer.bytes,
              partitioned_registered(from, offer.send_id, true));
      return;
    }
    case wire::Kind::partitioned_ready: {
      const auto ready = read(wire::PartitionedReady{});
      add_all(ready.by_messages, ready.refused, receive_notified(from, ready.first_notification),
              partitioned_registered(to, ready.send_id, true),
              partitioned_registered(from, ready.receive_id, false));
      return add_memory(from, ready.memory);
    }
    case wire::Kind::partition_fin: {
      const auto fin = read(wire::Fin{});
      return add_all(fin.source, fin.bytes, partitioned_registered(to, fin.id, false));
    }
    case wire::Kind::partition_fragment: {
      const auto piece = read(wire::PartitionFragment{});
      add_all(piece.last, piece.partition, piece.offset,
              partitioned_registered(to, piece.receive_id, false));
      return add_bytes(packet + sizeof piece, bytes - sizeof piece);
    }
    case wire::Kind::partition_offer:
      return add_partition(from, to, read(wire::PartitionOffer{}));
    case wire::Kind::partitioned_done:
      return add(partitioned_registered(to, read(wire::PartitionedDone{}).send_id, true));
    }
  }

  const Execution& run_;
  std::uint64_t first_ = 1, second_ = 1;
};

StateKey Execution::key() const {
  return StateHash(*this).key();
}

} // namespace macadam::prove
