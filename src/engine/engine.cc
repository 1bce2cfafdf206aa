// SPDX-License-Identifier: BSD-3-Clause
#include "engine/engine.h"

#include "base/error.h"
#include "datatype/cursor.h"

#include <cstring>

namespace macadam::engine {

Engine::Engine(Networks networks, Rank job_size, const base::Settings& settings, Observer* observer)
    : networks_(std::move(networks)), settings_(settings), observer_(observer),
      observes_short_(observer != nullptr),
      short_kind_(observer == nullptr ? wire::Kind::eager : wire::Kind{0}), peers_(job_size) {
  for (const Transport* const network : networks_)
    check(*network);
}

void Engine::check(const Transport& network) const {
  if (!settings_.last_byte || network.limits().orders_bytes) return;
  base::fail(MPI_ERR_ARG,
             "MACADAM_LAST_BYTE=yes needs a network that places the last byte of a write last, "
             "and {} does not promise that; leave it at no",
             network.limits().name);
}

void Engine::add_network(Transport& farthest) {
  check(farthest);
  networks_.add(farthest);
}

// What is still in flight belongs to nobody any more.
Engine::~Engine() {
  peers_.for_each([&](Peer& peer) {
    while (!peer.backlog.empty())
      deferred_slab_.free(&peer.backlog.pop_front());
  });
  while (!sends_.empty()) {
    SendRequest& send = sends_.pop_front();
    if (send.bounce != nullptr && !send.hybrid) buffers_.give(send.bounce, send.bytes);
    recycle(&send);
  }
  matcher_.for_each_posted([&](ReceiveRequest& receive) {
    matcher_.remove(receive);
    receiving_.push_back(receive);
  });
  while (!receiving_.empty()) {
    ReceiveRequest& receive = receiving_.pop_front();
    if (receive.bounce != nullptr) buffers_.give(receive.bounce, receive.capacity);
    base::List<ReceiveRequest, Held>::erase(receive);
    recycle(&receive);
  }
  while (matcher_.any_unexpected()) {
    Message& message = matcher_.oldest();
    matcher_.remove(message);
    buffers_.give(message.data, message.bytes);
    message_slab_.free(&message);
  }
}

void Engine::know(Rank processes) {
  peers_.grow(processes);
  for (Transport* const network : networks_)
    network->know(processes);
}

bool Engine::has_to_do_with(Rank first, Rank processes) const {
  bool found = false;
  const auto look = [&](const Peer* peer) {
    found = found || (peer != nullptr && peer->rank - first < processes);
  };
  for_each_send([&](const SendRequest& send) { look(send.peer); });
  matcher_.for_each_posted([&](const ReceiveRequest& receive) { look(receive.peer); });
  for_each_rendezvous_receive([&](const ReceiveRequest& receive) { look(receive.peer); });
  for_each_revocation([&](const Peer& peer, const auto&, auto) { look(&peer); });
  partitioned_.for_each_running([&](const Partitioned& round, bool) { look(round.peer); });
  peers_.for_each([&](const Peer& peer) {
    if (!peer.backlog.empty()) look(&peer);
  });
  return found;
}

// Receives that have their message end by themselves, as do sends without an owner.
bool Engine::is_used_for(Rank first, Rank processes) const {
  bool found = false;
  const auto look = [&](const Peer* peer, bool used) {
    found = found || (used && peer != nullptr && peer->rank - first < processes);
  };
  for_each_send([&](const SendRequest& send) { look(send.peer, !send.detached); });
  matcher_.for_each_posted([&](const ReceiveRequest& receive) { look(receive.peer, true); });
  for_each_rendezvous_receive(
      [&](const ReceiveRequest& receive) { look(receive.peer, !receive.detached); });
  partitioned_.for_each_running([&](const Partitioned& round, bool) { look(round.peer, true); });
  return found;
}

// Messages that nobody has received go with the peer.
bool Engine::forget(Rank first, Rank processes) {
  std::vector<Message*> left;
  matcher_.for_each_unexpected([&](Message& message) {
    if (message.peer->rank - first < processes) left.push_back(&message);
  });
  for (Message* const message : left) {
    matcher_.remove(*message);
    free_message(*message);
  }
  bool done = true;
  for (Transport* const network : networks_)
    done = network->forget(first, processes) && done;
  if (!done) return false;
  for (Rank rank = first; rank < first + processes; ++rank) {
    Peer* const peer = peers_.find(rank);
    if (peer == nullptr) continue;
    partitioned_.fail_peer(*peer, MPI_ERR_PROC_ABORTED);
    while (!peer->backlog.empty())
      deferred_slab_.free(&peer->backlog.pop_front());
    base::ListNode<Backlogged>& node = *peer;
    node.unlink();
    if (peer->throttled_by_us) --throttled_;
    peers_.drop(rank);
  }
  return true;
}

Peer& Engine::meet(Rank rank) {
  Transport& transport = networks_.reaching(rank);
  if (admit) admit(rank, transport); // one that it cannot talk to may never be reached
  PeerState state = PeerState::connecting;
  Link& link = transport.connect(rank, state); // if that fails there is no peer
  if (state == PeerState::connected && admit) admit(rank, transport);
  Peer& peer = peers_.make(rank);
  ++counters_.peers;
  peer.transport = &transport;
  peer.eager = transport.limits().eager;
  peer.hybrid = transport.limits().hybrid;
  peer.uncopied = transport.limits().uncopied;
  if (!settings_.last_byte) peer.bundled = transport.limits().bundled;
  peer.link = &link;
  if (!settings_.check) peer.short_receive_limit = static_cast<std::int64_t>(peer.eager);
  peer.state = failure_.noted() ? PeerState::failed : state;
  update_short_limit(peer);
  note(state == PeerState::connecting ? Step::Kind::connecting : Step::Kind::connected, peer);
  return peer;
}

void Engine::update_short_limit(Peer& peer) {
  peer.short_limit = open(peer) && !peer.throttled && !observes_short_ && !settings_.check
                         ? static_cast<std::int64_t>(std::min(peer.eager, peer.uncopied - 1))
                         : -1;
}

Peer* Engine::meet_sender(Rank rank) noexcept {
  try {
    return &meet(rank);
  } catch (...) {
    break_down();
  }
  return nullptr;
}

void Engine::on_failure(base::Error&& why) noexcept {
  if (failure_.noted()) return;
  failure_.note(std::move(why));
  stand();
}

void Engine::break_down() noexcept {
  if (failure_.noted()) return;
  failure_.note();
  stand();
}

// Something was lost. What would come after it must not take its place: nothing is sent any more,
// no receive matches what comes, and no peer that has not begun to reaches what was offered to it.
void Engine::stand() noexcept {
  stands_ = true;
  peers_.for_each([this](Peer& peer) {
    peer.state = PeerState::failed;
    update_short_limit(peer);
  });
  matcher_.for_each_posted([this](ReceiveRequest& receive) { unpost(receive); });
  const auto revoke = [](const auto& operation) {
    if (operation.permit != 0)
      operation.peer->transport->revoke(*operation.peer->link, operation.permit);
  };
  for (const ReceiveRequest& receive : receiving_)
    revoke(receive);
  for (const SendRequest& send : sends_)
    revoke(send);
}

// In the first progress() after a failure, if not in the one that has met it, everything ends.
bool Engine::end_after_failure() noexcept {
  if (progressing_ || ended_) return false;
  ended_ = true;
  const Progressing guard(*this);
  for (Transport* const network : networks_)
    network->abandon(*this);
  peers_.for_each([this](Peer& peer) { fail_peer(peer); });
  while (!receiving_.empty()) // from whoever sends first
    finish_receive(receiving_.front(), 0, error_of_end());
  end_word_waits();
  return true;
}

// Noncontiguous data as one block, of `buffers_`. Throws base::Error.
std::byte* Engine::pack(const Data& data, std::size_t bytes) {
  datatype::PackCursor cursor(*data.type, data.address, data.count);
  std::byte* const packed = buffers_.take(bytes);
  cursor.pack(packed, bytes);
  return packed;
}

void Engine::finish_send(SendRequest& send, std::int32_t error) noexcept {
  if ((send.stage >= SendStage::announced || send.is_registered) && !send.left_behind)
    note(Step::Kind::finished, send);
  base::List<SendRequest, InFlight>::erase(send);
  if (send.id != 0) send_ids_.remove(send.id);
  if (send.is_registered) send.peer->transport->release_cached(send.registered);
  if (send.stage == SendStage::unwritten)
    std::erase_if(unwritten_, [&](const Unwritten& of) { return of.send == &send; });
  if (send.permit != 0) send.peer->transport->discard(*send.peer->link, send.permit);
  free_bounce(send);
  send.status.error = error;
  send.status.bytes = send.bytes;
  complete(send);
}

void Engine::free_bounce(SendRequest& send) noexcept {
  std::byte* const block = std::exchange(send.bounce, nullptr);
  if (block == nullptr) return;
  if (send.hybrid) {
    send.peer->transport->free(block);
  } else {
    buffers_.give(block, send.bytes);
  }
}

bool Engine::quiet() const {
  for (const Peer& peer : backlogged_)
    if (!peer.backlog.empty()) return false;
  return sends_.empty() && receiving_.empty();
}

void Engine::drop_contexts(std::uint64_t first, std::uint64_t number, const RankMap& processes) {
  for (std::uint64_t context = first; context < first + number; ++context) {
    dropped_.add(context);
    partitioned_.drop_context(context);
  }
  for (int rank = 0; rank < processes.size(); ++rank)
    if (Peer* const peer = peers_.find(processes[rank])) peer->channels.drop_all(first, number);
}

void Engine::drop_channel(std::uint64_t context, std::int32_t tag, const RankMap& processes) {
  for (int rank = 0; rank < processes.size(); ++rank)
    if (Peer* const peer = peers_.find(processes[rank])) peer->channels.drop(context, tag);
}

bool Engine::look_aside() noexcept {
  bool moved = false;
  if (!revoking_.empty()) moved = continue_cancels();
  if (!backlogged_.empty()) moved = flush_backlogs() || moved;
  if (partitioned_.any_left()) {
    partitioned_.post_left();
    moved = true;
  }
  aside_ = !revoking_.empty() || !backlogged_.empty();
  return moved;
}

void Engine::on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept {
  Peer* const from = known(source);
  if (from == nullptr) [[unlikely]]
    return;
  if (static_cast<wire::Kind>(message[0]) == short_kind_) [[likely]]
    return on_eager(*from, message, bytes);
  const std::uint64_t unexpected = counters_.unexpected;
  on_control(*from, message, bytes);
  if (observer_ != nullptr) [[unlikely]]
    note_eager(*from, message, bytes, unexpected == counters_.unexpected);
}

void Engine::on_control(Peer& from, const std::byte* message, std::size_t bytes) noexcept {
  const auto kind = static_cast<wire::Kind>(message[0]);
  const auto header = [message]<class Header>(Header copy) {
    std::memcpy(&copy, message, sizeof copy);
    return copy;
  };
  switch (kind) {
  case wire::Kind::eager:
    return on_eager(from, message, bytes);
  case wire::Kind::eager_synchronous:
    return on_eager_synchronous(from, message, bytes);
  case wire::Kind::sender_ready:
    return on_sender_ready(from, header(wire::SenderReady{}));
  case wire::Kind::receiver_ready:
    return on_receiver_ready(from, header(wire::ReceiverReady{}));
  case wire::Kind::fin_to_receiver:
    return on_fin_to_receiver(from, header(wire::Fin{}));
  case wire::Kind::fin_to_sender:
    return on_fin_to_sender(header(wire::Fin{}));
  case wire::Kind::withdraw:
    return on_withdraw(from, header(wire::Withdraw{}));
  case wire::Kind::withdrawn:
    return on_withdrawn(header(wire::Withdraw{}));
  case wire::Kind::pull:
    return on_pull(from, header(wire::Pull{}));
  case wire::Kind::fragment:
    return on_fragment(message, bytes);
  case wire::Kind::partitioned_send:
    return partitioned_.on_send(from, header(wire::PartitionedSend{}));
  case wire::Kind::partitioned_ready:
    return partitioned_.on_ready(header(wire::PartitionedReady{}));
  case wire::Kind::partition_fin:
    return partitioned_.on_fin(header(wire::Fin{}));
  case wire::Kind::partition_fragment:
    return partitioned_.on_fragment(message, bytes);
  case wire::Kind::partitioned_done:
    return partitioned_.on_done(header(wire::PartitionedDone{}));
  case wire::Kind::partition_offer:
    return partitioned_.on_offer(from, header(wire::PartitionOffer{}));
  case wire::Kind::bundle:
    return on_bundle(from, message, bytes);
  case wire::Kind::sender_copied:
    return on_sender_copied(from, header(wire::SenderCopied{}));
  case wire::Kind::throttle:
    from.throttled = header(wire::Throttle{}).on;
    return update_short_limit(from);
  }
  on_failure(base::make_error(MPI_ERR_INTERN,
                              "rank {} has sent a packet of unknown kind {} ({} bytes): all ranks "
                              "of a job must run the same version of the library",
                              from.rank, static_cast<int>(message[0]), bytes));
}

// A receive that announced itself names its source, so the notification need not.
void Engine::on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept {
  if ((notification & PartitionedTable::notification_bit) != 0)
    return partitioned_.on_notification(notification);
  ReceiveRequest* const receive = receive_ids_.find_short(notification);
  Peer* const from = known(source);
  if (receive != nullptr && from != nullptr) {
    note(Step::Kind::fin_arrived, *receive, *from);
    finish_written(*from, *receive, receive->envelope.source, bytes);
  }
}

// Cookies are the wire ids of requests; the top bit, which ids never have, marks a receive. The
// next one, which neither ids nor addresses have, marks somebody else's operation.
void Engine::on_complete(std::uint64_t cookie, bool ok) noexcept {
  if ((cookie & waiter_cookie) != 0) {
    reinterpret_cast<MemoryWaiter*>(cookie & ~waiter_cookie)->on_done(ok);
  } else if ((cookie & receive_cookie) != 0) {
    if (ReceiveRequest* receive = receive_ids_.find(cookie & ~receive_cookie)) {
      finish_reading(*receive, ok ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED);
    }
  } else if (SendRequest* send = send_ids_.find(cookie)) {
    finish_send(*send, ok ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED);
  }
}

void Engine::on_peer(Rank rank, PeerState state) noexcept {
  Peer* const changed = known(rank);
  if (changed == nullptr) return;
  if (failure_.noted() && state != PeerState::failed) return; // reached too late
  if (state == PeerState::connected && admit) {
    try {
      admit(rank, *changed->transport);
    } catch (...) {
      return break_down();
    }
  }
  changed->state = state;
  if (state == PeerState::failed) fail_peer(*changed);
  if (state == PeerState::connected) note(Step::Kind::connected, *changed);
  if (state == PeerState::connected && !changed->backlog.empty()) flush(*changed);
  update_short_limit(*changed);
}

// Everything that waits for this peer ends with an error instead of waiting for ever.
void Engine::fail_peer(Peer& peer) noexcept {
  any_failed_ = true;
  note(Step::Kind::failed, peer);
  peer.arriving.receive = nullptr; // ends below; a message of which fragments are missing stays so
  while (!peer.backlog.empty())
    deferred_slab_.free(&peer.backlog.pop_front());
  peer.holds = false;
  base::ListNode<Backlogged>& node = peer;
  node.unlink();
  peer.channels.for_each([](Channel& channel) { channel.waiting.clear(); });
  // All are taken out first: the end of one may start others, or end some of these.
  const auto take = [&peer](auto& list, auto& lost) {
    for (auto at = list.begin(); at != list.end();) {
      auto& operation = *at;
      ++at;
      if (operation.peer != &peer) continue;
      list.erase(operation);
      lost.push_back(operation);
    }
  };
  base::List<SendRequest, InFlight> sends;
  base::List<ReceiveRequest, InFlight> receives;
  take(sends_, sends);
  take(receiving_, receives);
  matcher_.for_each_posted([&](ReceiveRequest& receive) {
    if (receive.peer != &peer) return;
    unpost(receive);
    base::List<ReceiveRequest, InFlight>::erase(receive);
    receives.push_back(receive);
  });
  const std::int32_t error = error_of_end();
  while (!sends.empty())
    finish_send(sends.front(), error);
  while (!receives.empty())
    finish_receive(receives.front(), 0, error);
  partitioned_.fail_peer(peer, error);
}

const Peer* Engine::peer_of(const Request& request) {
  if (request.role == Role::send) return static_cast<const SendRequest&>(request).peer;
  if (request.role == Role::receive) return static_cast<const ReceiveRequest&>(request).peer;
  return nullptr;
}

std::string Engine::why_failed(const Peer* peer) {
  std::string why = peer != nullptr ? peer->transport->why_failed(*peer->link) : std::string();
  return why.empty() ? "the other process has ended" : why;
}

// A receive that nothing has matched, and nothing will.
void Engine::unpost(ReceiveRequest& receive) noexcept {
  matcher_.remove(receive);
  if (receive.channel != nullptr) --receive.channel->pending;
  base::List<ReceiveRequest, Held>::erase(receive);
  receive.stage = ReceiveStage::awaits_fin; // too late to cancel
  receiving_.push_back(receive);
}

std::size_t Engine::memory_bytes() const {
  std::size_t peers = 0;
  peers_.for_each([&](const Peer& peer) {
    peers += sizeof(Peer) + peer.channels.size() * (sizeof(Channel) + 2 * sizeof(void*));
  });
  return sizeof(Engine) + dropped_.memory_bytes() + peers + buffers_.bytes() + send_slab_.bytes() +
         receive_slab_.bytes() + message_slab_.bytes() + deferred_slab_.bytes() +
         partitioned_.memory_bytes();
}

void Engine::list_counters(base::CounterList& list) const {
  const EngineCounters& c = counters_;
  list.add("protocol", "eager_sent", "messages sent by EAGER", c.eager_sent);
  list.add("protocol", "hybrid_sent", "messages sent by HYBRID", c.hybrid_sent);
  list.add("protocol", "send_rndv_read", "messages sent by SEND_RNDV, read form", c.send_rndv_read);
  list.add("protocol", "send_rndv_write", "messages sent by SEND_RNDV, write form",
           c.send_rndv_write);
  list.add("protocol", "recv_rndv", "messages sent by RECV_RNDV", c.recv_rndv);
  list.add("protocol", "last_byte", "writes that the receiver saw by their last byte", c.last_byte);
  list.add("protocol", "notified", "writes that told the receiver by themselves, without a FIN",
           c.notified);
  list.add("protocol", "bytes_sent", "bytes of data sent", c.bytes_sent);
  list.add("early party", "sender_early", "longer than eager: the sender came first",
           c.sender_early);
  list.add("early party", "receiver_early", "longer than eager: the receiver came first",
           c.receiver_early);
  list.add("early party", "both", "longer than eager: both came at the same time", c.both);
  list.add("registration", "unregistered", "times that no more memory could be registered",
           c.unregistered);
  list.add("registration", "pulled",
           "messages received in fragments, for want of registered memory", c.pulled);
  list.add("announcement", "announced", "RECEIVER_READY packets sent by early receivers",
           c.announcements);
  list.add("announcement", "dropped", "RECEIVER_READY packets that came too late or did not match",
           c.announcements_dropped);
  list.add("announcement", "retracted", "announcements taken back by a cancelled receive",
           c.retractions);
  list.add(
      "announcement", "uncounted",
      "times that a message or receive had a tag beyond MACADAM_TAGS_PER_PEER, so that it goes "
      "unannounced",
      c.uncounted);
  list.add("partitioned", "partitions_sent", "partitions of partitioned sends", c.partitions_sent);
  list.add("partitioned", "partitions_ahead",
           "... of these, copied for a receiver that did not wait yet", c.partitions_ahead);
  list.add("partitioned", "partitions_received", "... and those that came from others",
           c.partitions_received);
  list.add("partitioned", "partitions_read", "... of these, read by the receiver, which waited",
           c.partitions_read);
  list.add("unexpected", "unexpected", "messages that came before their receive", c.unexpected);
  list.add("unexpected", "unexpected_bytes_most", "most bytes of unexpected data held at a time",
           c.unexpected_bytes_most);
  list.add("unexpected", "throttles", "senders asked to send no eager data", c.throttles);
  list.add("connection", "backlogged", "operations that waited for room or a connection",
           c.backlogged);
  list.add("connection", "bundled", "short messages that travelled together with others",
           c.bundled);
  list.add("connection", "peers", "peers talked to", c.peers);
}

} // namespace macadam::engine
