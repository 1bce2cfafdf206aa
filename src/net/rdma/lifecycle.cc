// SPDX-License-Identifier: BSD-3-Clause
// Connections as the application's thread sees them: opened, closed for others, broken.
#include "net/rdma/transport.h"

#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <utility>

namespace macadam::net::rdma {
namespace {

// A connection that was opened and has carried nothing is not closed sooner: its messages may be
// on the way, and closing it at once could go on for ever.
constexpr double unused_time = 10e-3; // seconds
// A peer that polls answers a close note sooner.
constexpr double answer_time = 5e-3; // seconds
// ... and one that has not answered for so long may be gone.
constexpr double doubt_time = 1; // seconds

// At most so many requests of ours under way at start-up, so that the packets find room.
constexpr unsigned most_opening = model::datagram_receives / 4;

} // namespace

bool RdmaTransport::take_state_events(Sink& sink) {
  chores_ = true; // until all are applied
  connector_->take_state_events(state_events_);
  const bool any = !state_events_.empty();
  while (!state_events_.empty()) { // one by one: a sink that throws loses no other
    const StateEvent state_event = state_events_.front();
    state_events_.pop_front();
    apply(state_event, sink);
  }
  return any;
}

void RdmaTransport::apply(const StateEvent& state_event, Sink& sink) {
  Connection& connection = *state_event.connection;
  if (connection.phase >= Phase::breaking)
    return; // what its queue pair still does is of no interest
  if (connection.number != state_event.number) {
    if (numbers_.find(connection.number) == &connection) numbers_.erase(connection.number);
    connection.number = state_event.number;
    if (state_event.number != 0) numbers_.set(state_event.number, connection);
  }
  if (state_event.peer_closed && connection.phase == Phase::closing)
    connection.close_received = true;
  if (state_event.state == ConnectState::connected && connection.phase == Phase::down) {
    open(connection, sink);
  } else if (state_event.state == ConnectState::failed) {
    break_off(connection, connector_->reason(connection), sink);
  }
}

void RdmaTransport::open(Connection& connection, Sink& sink) {
  if (connection.sends.pending == nullptr)
    connection.sends.pending = std::make_unique<PendingSend[]>(shape_.send_depth);
  connection.headers = std::make_unique<Headers>();
  if (rails_ != nullptr) rails_->open(connection);
  if (polls_rings_) begin_to_look(connection);
  connection.phase = Phase::open; // from here on nothing needs memory
  connection.close_sent = connection.close_received = false;
  connection.carried = false;
  connection.phase_since = device_.now();
  connection.last_used = ++clock_;
  connection.sends = {.pending = std::move(connection.sends.pending), .depth = shape_.send_depth};
  if (!connection.promised) return;
  connection.promised = false;
  sink.on_peer(connection.rank, engine::PeerState::connected);
}

// Each side posts a close note as its last message. When a side has received the other's, and its
// own has completed, nothing is under way in either direction.
void RdmaTransport::begin_close(Connection& connection) {
  connection.phase = Phase::closing;
  connection.phase_since = device_.now();
  closing_.push_back(&connection);
  chores_ = true;
}

bool RdmaTransport::continue_close(Connection& connection) {
  if (!connection.close_sent) {
    // A read that is not finished needs the peer's queue pair, which goes once it has our note.
    if (connection.transfers != 0) return false;
    connection.close_sent = post_note(connection, {.kind = wire::NoteKind::close});
  }
  if (!connection.close_sent || !connection.sends.idle()) return false;
  if (!connection.close_received) {
    // Its adapter has taken the note, and says nothing if the process then ends: look, by a write
    // of nothing, which breaks the connection if nobody is there.
    if (const double now = device_.now(); now - connection.phase_since > doubt_time) {
      connection.phase_since = now;
      post_flush(connection);
    }
    return false;
  }
  numbers_.erase(connection.number);
  if (rails_ != nullptr) rails_->close(connection);
  end_to_look(connection);
  connection.number = 0;
  connection.phase = Phase::down;
  connection.sends.pending.reset();
  connection.headers.reset();
  connector_->close(connection);
  return true;
}

// The end of a process whose peers do not wait for it. Acknowledgements of what it posts come only
// while the peer has its queue pair, so each says in its last message that it needs no more. A
// process that has such a note needs no acknowledgement: the other has all that it waited for. For
// one that has none the peer's adapter acknowledges, as the peer does not go before it has one or
// the other.
bool RdmaTransport::leave() {
  bool quiet = to_self_.empty();
  for (const auto& [number, connection] : numbers_) {
    if (connection->left) continue;
    if (connection->phase == Phase::open) {
      if (connection->transfers == 0 && post_note(*connection, {.kind = wire::NoteKind::leave})) {
        connection->phase = Phase::closing; // takes nothing more
        connection->close_sent = true;
      }
      quiet = false;
    } else if (connection->phase == Phase::closing && !connection->sends.idle()) {
      quiet = false;
    }
  }
  return quiet;
}

// Those that are open are closed, which waits for the peer; what is still being made is given up.
bool RdmaTransport::forget(Rank first, Rank processes) {
  bool done = true;
  std::vector<Connection*> open;
  connector_->for_each_of(first, processes, [&](Connection& connection) {
    if (connection.phase == Phase::open) open.push_back(&connection);
    const bool busy = connection.phase == Phase::open || connection.phase == Phase::closing ||
                      connection.phase == Phase::breaking ||
                      std::ranges::find(dead_, &connection) != dead_.end();
    // Its peer may have more to say: it is open soon.
    const bool begins =
        connection.phase == Phase::down &&
        (connection.state == ConnectState::accepted || connection.state == ConnectState::connected);
    done = done && !busy && !begins;
  });
  for (Connection* const connection : open)
    if (connection->transfers == 0) begin_close(*connection);
  if (!done) return false;
  const auto is_its = [&](const Connection* connection) {
    return connection->rank - first < processes;
  };
  std::erase_if(owing_, is_its);
  std::erase_if(state_events_, [&](const StateEvent& event) { return is_its(event.connection); });
  connector_->erase(first, processes);
  return true;
}

// Others wait for queue pairs: as many connections are closed. One whose peer computes, and so does
// not answer, is not waited for. Or for memory: all that stays registered without use.
void RdmaTransport::make_room() {
  if (connector_->was_refused()) connector_->retry(cache_.give_back_unused());
  const double now = device_.now();
  const auto soon = std::count_if(closing_.begin(), closing_.end(), [&](const Connection* c) {
    return now - c->phase_since < answer_time;
  });
  if (connector_->waiting() > static_cast<std::size_t>(soon)) evict(now);
}

// Closes the connection that has been idle longest.
void RdmaTransport::evict(double now) {
  Connection* oldest = nullptr;
  for (const auto& [number, connection] : numbers_) {
    if (connection->phase != Phase::open || connection->transfers != 0) continue;
    if (!connection->carried && now - connection->phase_since < unused_time) continue;
    if (oldest == nullptr || connection->last_used < oldest->last_used) oldest = connection;
  }
  if (oldest == nullptr) return; // soon one will be idle
  ++counters_.evicted;
  begin_close(*oldest);
}

void RdmaTransport::break_off(Connection& connection, const std::string& reason, Sink& sink) {
  const bool has_queue_pair = connection.number != 0;
  std::erase(closing_, &connection);
  std::erase(owing_, &connection);
  end_to_look(connection);
  if (rails_ != nullptr) rails_->close(connection);
  connection.phase = Phase::breaking;
  ++counters_.broken;
  fallbacks_.push_back(
      fmt::format("rdma: the connection to rank {} has failed: {}", connection.rank, reason));
  if (has_queue_pair) {
    numbers_.erase(connection.number);
    connection.number = 0;
    connector_->fail(connection, reason);
    dead_.push_back(&connection);
    chores_ = true;
  }
  unsignalled_ -= std::exchange(connection.sends.unsignalled, 0);
  if (!has_queue_pair) end_broken(connection, sink);
}

// A process that only waits for another would never notice that it has ended. mpiexec ends a whole
// job if one of its ranks dies, but not the jobs that it talks to.
bool RdmaTransport::look_for_ended(Sink& sink) {
  if (!processes_.has_met()) return false;
  std::vector<Connection*> ended;
  for (const auto& [number, connection] : numbers_) {
    if (connection->rank < job_size_ || connection->phase >= Phase::breaking) continue;
    if (has_ended(processes_.life(connection->rank))) ended.push_back(connection);
  }
  for (Connection* const connection : ended)
    break_off(*connection, "its process has ended", sink);
  return !ended.empty();
}

// The queue pair is gone, and so nothing reads or writes memory any more: it is given back, and
// the operation that waits for it is told.
void RdmaTransport::end_broken(Connection& connection, Sink& sink) {
  connection.phase = Phase::broken;
  SendQueue& queue = connection.sends;
  for (; queue.first != queue.last; ++queue.first) {
    const PendingSend lost = queue.pending[queue.first % queue.depth];
    if (!lost.is_transfer)
      pool_.give(lost.buffer);
    else if (lost.transfer->posted == lost.transfer->bytes)
      finish(*lost.transfer, false, sink);
  }
  while (!connection.unposted.empty())
    finish(connection.unposted.front(), false, sink);
  if (rails_ != nullptr) end_split_gets(connection, sink);
  if (connection.wanted) sink.on_peer(connection.rank, engine::PeerState::failed);
}

// Without queue pairs no peer reaches this process's memory. Of what this transport has noted of a
// connection some may be missing, so it is the connector that says which there are.
void RdmaTransport::abandon(Sink& sink) noexcept {
  device_.set_event_sink(nullptr);
  if (rails_ != nullptr) rails_->end();
  connector_->abandon();
  rings_.clear();
  has_rings_.store(false, std::memory_order_relaxed);
  dead_.clear();
  const auto is_left = [](const Connection& connection) {
    return connection.phase != Phase::broken;
  };
  while (Connection* const connection = connector_->find(is_left)) {
    numbers_.erase(std::exchange(connection->number, 0));
    end_broken(*connection, sink);
  }
}

// ---- Static connections (Wu et al., section 5.6): what on-demand is compared with.

Rank RdmaTransport::connections_at_start() const {
  if (settings_.rdma_connections == base::ConnectMode::on_demand) return 0;
  Rank count = 0;
  for (Rank peer = 0; peer < job_size_; ++peer)
    count += connects_at_start(peer) ? 1 : 0;
  return count;
}

bool RdmaTransport::connect_at_start() {
  if (settings_.rdma_connections == base::ConnectMode::on_demand) return true;
  return settings_.rdma_connections == base::ConnectMode::serial ? connect_in_turn()
                                                                 : connect_at_once();
}

// Peer-to-peer, starting behind oneself so that not all ask the same rank: first all are asked,
// then all are waited for.
bool RdmaTransport::connect_at_once() {
  for (; at_start_ < 2 * job_size_; ++at_start_) {
    const Rank peer = (rank_ + at_start_) % job_size_;
    if (!connects_at_start(peer)) continue;
    const bool asks = at_start_ < job_size_;
    if (asks && connector_->opening() >= most_opening) return false;
    Connection& connection = connector_->get(peer);
    connector_->open(connection);
    if (!asks && !is_up(connection)) return false;
  }
  return true;
}

// Client-server, in the order of ranks: the lower rank serves, no matter who else asks.
bool RdmaTransport::connect_in_turn() {
  for (; at_start_ < job_size_; ++at_start_) {
    if (!connects_at_start(at_start_)) continue;
    Connection& connection = connector_->get(at_start_);
    if (at_start_ < rank_)
      connector_->open(connection);
    else
      connector_->expect(at_start_);
    if (!is_up(connection)) return false;
  }
  connector_->expect(rank_);
  return true;
}

bool RdmaTransport::is_up(const Connection& connection) const {
  if (connection.phase >= Phase::breaking)
    base::fail(MPI_ERR_OTHER, "RDMA: no connection to rank {}: {}", connection.rank,
               connector_->reason(connection));
  return connection.phase == Phase::open;
}

} // namespace macadam::net::rdma
