// SPDX-License-Identifier: BSD-3-Clause
#include "prove/execution.h"

#include "fmt/format.h"

namespace macadam::prove {

base::Settings settings_for(const Conditions& conditions) {
  base::Settings settings;
  settings.rendezvous = conditions.rendezvous;
  settings.protocols = conditions.protocols;
  settings.tags_per_peer = conditions.tags;
  settings.last_byte = conditions.last_byte;
  if (conditions.throttle) settings.unexpected_limit = sizeof(engine::Message) + 1;
  return settings;
}

Execution::Execution(const Program& program, const Types& types, Decider& decider)
    : program_(program), settings_(settings_for(program.conditions)),
      allocations_(program.conditions.starved, decider),
      network_(static_cast<int>(program.ranks.size()), program.conditions, decider),
      job_(program, types, settings_), deaths_left_(program.conditions.deaths) {
  for (int rank = 0; rank < ranks(); ++rank)
    job_.start(rank, network_.transport(rank));
  network_.on_message = [this](int at, int from, const Network::Bytes& message) {
    job_.sees(at, from, message.data(), message.size());
  };
  network_.on_notification = [this](int at, int from, const Network::Transfer& put) {
    job_.sees_notification(at, from, put.notification, put.bytes);
  };
  network_.on_polled = [this](int rank) { job_.polled(rank); };
  network_.on_failed = [this](int at, int peer) { job_.loses(at, peer); };
  network_.on_abandoned = [this](int rank) { job_.breaks_down(rank); };
}

// A poll that finds nothing matters: something waits for room, and room there is; or a receive
// waits for its last byte, which is there.
bool Execution::may_poll(int rank) const {
  if (job_.engine(rank).failure() != nullptr) return !network_.has_ended(rank);
  const engine::PartitionedTable& partitioned = job_.engine(rank).partitioned();
  bool found = partitioned.any_left();
  found = found || job_.engine(rank).may_copy();
  for (const Job::Operation* receive : job_.processes_[Job::index(rank)].receives) {
    if (receive->request == nullptr || !program_.conditions.last_byte) continue;
    const auto& request = static_cast<const engine::ReceiveRequest&>(*receive->request);
    const base::ListNode<engine::Watched>& watched = request;
    if (!watched.linked()) continue;
    const auto* const destination = request.bounce != nullptr
                                        ? reinterpret_cast<const unsigned char*>(request.bounce)
                                        : receive->memory.data();
    found = found || destination[request.capacity - 1] != request.last_byte;
  }
  for (int peer = 0; peer < ranks(); ++peer) {
    if (network_.must_deliver(rank, peer)) return false;
  }
  job_.engine(rank).peers().for_each([&](const engine::Peer& peer) {
    if (peer.state != engine::PeerState::connected || peer.backlog.empty()) return;
    const auto type = peer.backlog.front().type;
    found = found || type == engine::Deferred::Type::put || type == engine::Deferred::Type::get ||
            !network_.blocked(rank, static_cast<int>(peer.rank));
  });
  return found;
}

const std::vector<Event>& Execution::possible() {
  events_.clear();
  for (int rank = 0; rank < ranks(); ++rank) {
    if (job_.is_dead(rank)) continue;
    if (job_.may_call(rank)) events_.push_back({Event::What::call, rank});
    deliveries_.clear();
    network_.list_deliveries(rank, deliveries_);
    for (const Delivery& delivery : deliveries_)
      events_.push_back({Event::What::deliver, rank, delivery});
    for (int peer = 0; peer < ranks(); ++peer) {
      if (network_.can_land(rank, peer)) {
        events_.push_back({Event::What::land, rank, {Delivery::What::message, rank, peer}});
      }
    }
    if (may_poll(rank)) events_.push_back({Event::What::progress, rank});
    for (const std::size_t send : job_.may_leave(rank))
      events_.push_back({Event::What::leave, rank, {}, send});
    if (deaths_left_ != 0) events_.push_back({Event::What::die, rank});
  }
  return events_;
}

void Execution::happen(const Event& event) {
  if (++events_so_far_ == endless) job_.say("messages go to and fro for ever");
  network_.begin_call(event.at);
  if (event.what == Event::What::die) return kill(event.at);
  engine::Engine& engine = job_.engine(event.at);
  switch (event.what) {
  case Event::What::call:
    job_.call(event.at);
    job_.check_held(event.at, false);
    // Where permits are not revoked at once, it waits for them.
    if (program_.conditions.transfers == Transfers::at_once) job_.check_cancels(event.at);
    return;
  case Event::What::deliver: {
    network_.allow(event.delivery);
    const InLibrary library;
    engine.progress();
    break;
  }
  case Event::What::land:
    return network_.land(event.at, event.delivery.peer);
  case Event::What::progress: {
    const InLibrary library;
    engine.progress();
    break;
  }
  case Event::What::leave:
    job_.leave(event.at, event.number);
    break;
  case Event::What::die:
    return;
  }
  job_.check_held(event.at, true);
}

// The engine goes without a word to anybody, as the whole process does.
void Execution::kill(int rank) {
  --deaths_left_;
  job_.die(rank);
  network_.kill(rank);
}

std::string show(const Event& event, const Program& program, std::size_t step) {
  switch (event.what) {
  case Event::What::call:
    return fmt::format("rank {}: {}", event.at,
                       show(program.ranks[static_cast<std::size_t>(event.at)][step]));
  case Event::What::deliver:
    switch (event.delivery.what) {
    case Delivery::What::connected:
      return fmt::format("rank {} is connected to {}", event.at, event.delivery.peer);
    case Delivery::What::message:
      return fmt::format("rank {} gets the next packet of {}", event.at, event.delivery.peer);
    case Delivery::What::answered:
      return fmt::format("rank {} learns whether rank {} has used its permit", event.at,
                         event.delivery.peer);
    case Delivery::What::finished:
      return fmt::format("rank {} ends its put or get with {}", event.at, event.delivery.peer);
    case Delivery::What::failed:
      return fmt::format("rank {} hears that rank {} is gone", event.at, event.delivery.peer);
    }
    break;
  case Event::What::land:
    return fmt::format("a put of rank {} lands at {}", event.delivery.peer, event.at);
  case Event::What::progress:
    return fmt::format("rank {} tries again to send", event.at);
  case Event::What::leave:
    return fmt::format("rank {} leaves a copy of its send {} behind", event.at, event.number);
  case Event::What::die:
    return fmt::format("rank {} disappears", event.at);
  }
  return "";
}

// ---------------------------------------------------------------- the end

void Execution::settle() {
  while (wrong().empty()) {
    const auto& events = possible();
    const auto event = std::find_if(events.begin(), events.end(),
                                    [](const Event& e) { return e.what != Event::What::call; });
    if (event == events.end()) return;
    happen(Event(*event));
  }
}

void Execution::finish() {
  network_.calm();
  allocations_.calm();
  deaths_left_ = 0;
  job_.check_rest();
  for (int rank = 0; rank < ranks(); ++rank)
    job_.take_back(rank);
  settle();
  for (bool found = true; found && wrong().empty();) {
    found = false;
    for (int rank = 0; rank < ranks(); ++rank) {
      found = job_.receive_rest(rank) || found;
      settle();
    }
  }
  job_.check_end();
  job_.check_harm(allocations_.refused());
  if (network_.registered() != 0) job_.say("memory stays registered");
  if (network_.permits() != 0) job_.say("permits are left");
}

} // namespace macadam::prove
