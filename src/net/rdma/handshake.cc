// SPDX-License-Identifier: BSD-3-Clause
// The packets by which two processes make a connection, and take it down: what the connector sends,
// and what it does about those that come.
#include "net/rdma/connector.h"

#include "base/error.h"

#include <cstring>

namespace macadam::net::rdma {

using wire::ConnectPacket;
using wire::PacketKind;

// Where a peer listens; nothing if it has not published that yet.
std::optional<wire::Endpoint> Connector::published_by(const Connection& connection) const {
  const auto published = processes_.endpoint(connection.rank);
  if (!published) return std::nullopt;
  wire::Endpoint endpoint;
  if (published->size() != sizeof endpoint) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: rank {} on host {} has published no address; all ranks of a job need the "
               "same MACADAM_NETWORK",
               connection.rank, processes_.host_of(connection.rank));
  }
  std::memcpy(&endpoint, published->data(), sizeof endpoint);
  return endpoint;
}

bool Connector::find_address(Connection& connection) {
  if (connection.to != nullptr) return true;
  const std::optional<wire::Endpoint> published = published_by(connection);
  if (!published) return false;
  const QueuePairAddress address = wire::address_of(*published);
  connection.to = device_.make_address_handle(address.port);
  connection.to_number = address.number;
  return true;
}

void Connector::send(Connection& connection, PacketKind kind, std::uint32_t answered) {
  if (connection.rank == rank_) return; // we know
  ConnectPacket packet;
  packet.kind = kind;
  packet.mode = static_cast<std::uint8_t>(settings_.rdma_receive);
  packet.source = processes_.own_name();
  packet.target = processes_.name(connection.rank).rank;
  packet.secret = processes_.secret(connection.rank);
  packet.attempt = connection.attempt;
  packet.answered = answered;
  if (connection.queue_pair != nullptr) {
    packet.queue_pair = wire::endpoint_of({device_.address(), connection.queue_pair->number()});
    if (rails_ != nullptr) {
      if (const wire::Endpoint second = rails_->endpoint(connection); second.queue_pair != 0) {
        packet.first_number = packet.queue_pair.queue_pair;
        packet.queue_pair = second;
      }
    }
    if (connection.window != nullptr) packet.reception = connection.window->ours;
    if (permit_rows_) {
      packet.permits = connection.permits->ours.address;
      packet.permits_key = static_cast<std::uint32_t>(connection.permits->ours.key);
    }
  }
  datagrams_.send(*connection.to, connection.to_number, qkey_of(packet.secret),
                  packet); // if lost, it is asked for again
}

void Connector::send_answer(Connection& connection) {
  send(connection, PacketKind::reply, connection.peer_attempt);
}

void Connector::handle(const ConnectPacket& packet) noexcept {
  // The difference of secrets is not told by the time of the comparison.
  unsigned different = 0;
  for (std::size_t i = 0; i < secret_.size(); ++i)
    different |= static_cast<unsigned>(packet.secret[i] ^ secret_[i]);
  if (packet.magic != ConnectPacket::magic_value ||
      packet.version != ConnectPacket::version_value || different != 0 ||
      packet.target != processes_.own_name().rank || packet.source == processes_.own_name()) {
    ++counters_.rejected;
    return;
  }
  // What the peer has published may still be on its way here, or that its job may talk to this one.
  // Then the packet is as good as lost: it will come again.
  const std::optional<Rank> source = processes_.find(packet.source);
  if (!source) return;
  Connection* connection = nullptr;
  try {
    connection = &get_locked(*source);
    if (find_address(*connection)) obey(*connection, packet);
  } catch (...) { // perhaps on the progress thread: nobody else to tell
    if (connection != nullptr) fail_unmade(*connection);
  }
}

// In a catch block: a connection that is being made cannot be.
void Connector::fail_unmade(Connection& connection) noexcept {
  const base::Error why = base::caught("for the records of a connection");
  if (connection.queue_pair != nullptr) drop_queue_pair(connection);
  set_failed(connection, why.text);
}

void Connector::obey(Connection& connection, const ConnectPacket& packet) {
  const bool ours = packet.answered == connection.attempt && connection.queue_pair != nullptr;
  switch (packet.kind) {
  case PacketKind::request:
    return on_request(connection, packet);
  case PacketKind::reply:
    return on_reply(connection, packet);
  case PacketKind::ready:
    if (ours && connection.state == ConnectState::accepted) set_connected(connection);
    return;
  case PacketKind::wait:
    if (!ours || connection.state != ConnectState::requesting) return;
    connection.told_to_wait = true;
    connection.give_up_at = device_.now() + give_up_after;
    return;
  case PacketKind::gone:
    if (ours && connection.state == ConnectState::connected) {
      connection.peer_closed = true;
      return tell(connection);
    }
    if (!ours || connection.state != ConnectState::accepted) return;
    drop_queue_pair(connection);
    set_state(connection, ConnectState::idle);
    if (connection.sought) begin(connection);
    return serve_waiting();
  case PacketKind::refused:
    if (!ours || connection.state != ConnectState::requesting) return;
    drop_queue_pair(connection);
    set_failed(
        connection,
        packet.mode == static_cast<std::uint8_t>(settings_.rdma_receive)
            ? fmt::format("rank {} counts its connection to this rank as failed", connection.rank)
            : fmt::format("rank {} runs with another MACADAM_RDMA_RECEIVE; all ranks of a "
                          "job need the same",
                          connection.rank));
    return serve_waiting();
  case PacketKind::broken:
    if (!ours) return;
    if (connection.state == ConnectState::accepted) drop_queue_pair(connection);
    if (connection.state == ConnectState::accepted || connection.state == ConnectState::connected)
      set_failed(connection, fmt::format("it has failed on the side of rank {}", connection.rank));
    return serve_waiting();
  }
  ++counters_.rejected;
}

void Connector::on_request(Connection& connection, const ConnectPacket& packet) {
  const bool same_mode = packet.mode == static_cast<std::uint8_t>(settings_.rdma_receive);
  if (connection.state == ConnectState::failed || !same_mode || !lost_.empty())
    return send(connection, PacketKind::refused, packet.attempt);
  const auto newer = static_cast<std::int32_t>(packet.attempt - connection.peer_attempt);
  if (newer <= 0) {
    ++counters_.repeated;
    if (newer == 0 &&
        (connection.state == ConnectState::accepted || connection.state == ConnectState::connected))
      send_answer(connection);
    return;
  }
  switch (connection.state) {
  case ConnectState::requesting: // both at once: the two queue pairs make one connection
    ++counters_.crossed;
    pair(connection, packet);
    set_state(connection, ConnectState::accepted);
    schedule(connection);
    return send_answer(connection);
  case ConnectState::accepted: // the peer had to give up its queue pair, and has another
    drop_queue_pair(connection);
    set_state(connection, ConnectState::idle);
    [[fallthrough]];
  case ConnectState::idle:
  case ConnectState::seeking:
  case ConnectState::waiting:
    connection.parked = std::make_unique<ConnectPacket>(packet);
    return answer_parked(connection);
  case ConnectState::connected: // being closed on our side; the peer will ask again
  case ConnectState::failed:
    return;
  }
}

void Connector::on_reply(Connection& connection, const ConnectPacket& packet) {
  if (connection.queue_pair == nullptr || packet.answered != connection.attempt) {
    ++counters_.repeated;
    return send(connection, PacketKind::gone, packet.attempt);
  }
  if (connection.state == ConnectState::requesting) {
    pair(connection, packet);
    set_connected(connection);
  } else if (packet.attempt != connection.peer_attempt) {
    ++counters_.repeated;
    return;
  } else if (connection.state == ConnectState::accepted) {
    set_connected(connection);
  }
  if (connection.state == ConnectState::connected)
    send(connection, PacketKind::ready, packet.attempt);
}

} // namespace macadam::net::rdma
