// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/connector.h"

#include "base/error.h"

#include <algorithm>

namespace macadam::net::rdma {
namespace {

using wire::ConnectPacket;
using wire::PacketKind;

// A packet is sent again after a millisecond at first: far longer than a round trip with a wake-up
// in it, short beside what a user notices. Then each time after twice as long.
constexpr double first_interval = 1e-3;
constexpr double longest_interval = 64e-3;
// Packets that are not answered, so not sure to arrive, are sent so often.
constexpr int unanswered_copies = 3;

} // namespace

Connector::Connector(Device& device, const boot::Processes& processes,
                     const base::Settings& settings, Receiver& receiver, CompletionQueues& queues,
                     const QueuePairOptions& options, std::uint32_t most, bool permits,
                     Rails* rails)
    : device_(device), processes_(processes), settings_(settings), receiver_(receiver),
      queues_(queues), options_(options), rails_(rails), rank_(processes.own()),
      secret_(processes.secret(rank_)), most_(most), expected_(rank_),
      datagrams_(device, qkey_of(secret_)) {
  if (permits) permit_rows_.emplace(device);
}

Connector::~Connector() {
  for (auto& [rank, connection] : connections_) {
    connection.queue_pair.reset();
    if (rails_ != nullptr) rails_->drop(connection);
    receiver_.close(connection);
  }
}

Connection& Connector::get(Rank peer) {
  const std::scoped_lock guard(lock_);
  return get_locked(peer);
}

Connection& Connector::get_locked(Rank peer) {
  if (const auto known = connections_.find(peer); known != connections_.end()) return known->second;
  state_events_.reserve(connections_.size() + 1); // each is there once at most: tell() needs none
  Connection& made = connections_[peer];
  made.rank = peer;
  return made;
}

Permits& Connector::permits(Connection& connection) {
  const std::scoped_lock guard(lock_);
  return permits_locked(connection);
}

Permits& Connector::permits_locked(Connection& connection) {
  if (connection.permits == nullptr) connection.permits = permit_rows_->make();
  return *connection.permits;
}

void Connector::open(Connection& connection) {
  const std::scoped_lock guard(lock_);
  if (connection.rank == rank_) return begin_to_self(connection);
  connection.sought = true;
  if (connection.state != ConnectState::idle) return;
  if (!lost_.empty()) return set_failed(connection, lost_);
  if (connection.parked != nullptr) return; // start-up in rank order: its turn will come
  if (find_address(connection)) return begin(connection);
  if (const auto why = processes_.why_never(connection.rank))
    base::fail(MPI_ERR_PROC_ABORTED, "{}", *why);
  set_state(connection, ConnectState::seeking);
}

void Connector::reopen(Connection& connection) noexcept {
  try {
    open(connection);
  } catch (...) {
    const std::scoped_lock guard(lock_);
    fail_unmade(connection);
  }
}

// Looks for the address of a peer that had not published when it was wanted.
void Connector::seek(Connection& connection) noexcept {
  try {
    if (find_address(connection)) {
      set_state(connection, ConnectState::idle);
      begin(connection);
    } else if (const auto why = processes_.why_never(connection.rank)) {
      set_failed(connection, *why);
    }
  } catch (...) {
    fail_unmade(connection);
  }
}

void Connector::confirm(Connection& connection) {
  const std::scoped_lock guard(lock_);
  if (connection.state == ConnectState::accepted) set_connected(connection);
}

void Connector::close(Connection& connection) {
  const std::scoped_lock guard(lock_);
  ++counters_.closed;
  drop_queue_pair(connection);
  if (permit_rows_ && connection.permits->unused())
    permit_rows_->give(std::move(connection.permits));
  set_state(connection, ConnectState::idle);
  serve_waiting();
}

void Connector::tell_closed(Connection& connection) {
  const std::scoped_lock guard(lock_);
  for (int copies = 0; copies < unanswered_copies; ++copies)
    send(connection, PacketKind::gone, connection.peer_attempt);
}

void Connector::fail(Connection& connection, std::string_view reason) {
  const std::scoped_lock guard(lock_);
  connection.queue_pair->fail();
  if (rails_ != nullptr) rails_->fail(connection);
  // A peer that only waits for us would never notice. If none arrives, it notices when it sends.
  for (int copies = 0; copies < unanswered_copies; ++copies)
    send(connection, PacketKind::broken, connection.peer_attempt);
  set_failed(connection, reason);
}

void Connector::abandon() noexcept {
  const std::scoped_lock guard(lock_);
  try {
    lost_ = "this process communicates no more";
    for (auto& [rank, connection] : connections_) {
      if (connection.queue_pair == nullptr) continue;
      for (int copies = 0; copies < unanswered_copies; ++copies)
        send(connection, PacketKind::broken, connection.peer_attempt);
    }
  } catch (const std::exception&) { // peers that are not told notice when they send
  }
  for (auto& [rank, connection] : connections_) {
    if (connection.queue_pair != nullptr) drop_queue_pair(connection);
    set_state(connection, ConnectState::failed);
  }
}

void Connector::lose(std::uint32_t number, const std::string& reason) noexcept {
  const std::scoped_lock guard(lock_);
  if (number == all_queue_pairs) {
    try {
      lost_ = reason;
    } catch (const std::bad_alloc&) {
      lost_ = "no adapter"; // short enough to need none
    }
  }
  for (auto& [rank, connection] : connections_) {
    const bool has_it =
        connection.queue_pair != nullptr && connection.queue_pair->number() == number;
    if (has_it || number == all_queue_pairs) lose(connection, reason);
  }
  if (lost_.empty()) serve_waiting();
}

// One that was connected keeps its queue pair until the application's thread has read what is left.
void Connector::lose(Connection& connection, const std::string& reason) noexcept {
  if (connection.state == ConnectState::idle || connection.state == ConnectState::failed) return;
  if (connection.state != ConnectState::connected && connection.queue_pair != nullptr)
    drop_queue_pair(connection);
  set_failed(connection, reason);
}

void Connector::discard(Connection& connection) {
  const std::scoped_lock guard(lock_);
  drop_queue_pair(connection);
  serve_waiting();
}

void Connector::erase(Rank first, Rank count) {
  const std::scoped_lock guard(lock_);
  std::erase_if(state_events_, [&](const Connection* c) { return c->rank - first < count; });
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection& connection = at->second;
    if (at->first - first >= count) {
      ++at;
      continue;
    }
    if (connection.queue_pair != nullptr) drop_queue_pair(connection);
    std::erase(state_events_, &connection);
    set_state(connection, ConnectState::idle);
    if (permit_rows_ && connection.permits != nullptr)
      permit_rows_->give(std::move(connection.permits));
    at = connections_.erase(at);
  }
  serve_waiting();
}

std::string Connector::reason(const Connection& connection) const {
  const std::scoped_lock guard(lock_);
  return connection.reason == nullptr ? std::string() : *connection.reason;
}

void Connector::expect(Rank peer) {
  const std::scoped_lock guard(lock_);
  expected_ = peer;
  if (peer == rank_) return;
  if (Connection& connection = get_locked(peer); connection.parked != nullptr)
    answer_parked(connection);
}

void Connector::progress() {
  read_packets();
  const std::scoped_lock guard(lock_);
  const double now = device_.now();
  // What becomes of one may take others out of the list: each time from the beginning.
  const auto is_due = [&](const Connection& connection) {
    return connection.is_asking() && now >= connection.resend_at;
  };
  while (Connection* const due = first_opening(is_due))
    resend(*due, now);
  for (unsigned left = seeking_; left > 0; --left) {
    Connection& oldest = *first_opening(
        [](const Connection& connection) { return connection.state == ConnectState::seeking; });
    seek(oldest);
    if (oldest.state != ConnectState::seeking) continue;
    base::List<Connection, OpeningList>::erase(oldest); // its turn comes again after the others
    opening_.push_back(oldest);
  }
}

void Connector::read_packets() noexcept {
  const std::scoped_lock guard(lock_);
  while (const std::optional<ConnectPacket> packet = datagrams_.receive())
    handle(*packet);
}

void Connector::take_state_events(std::deque<StateEvent>& state_events) {
  const std::scoped_lock guard(lock_);
  for (Connection* const connection : state_events_) {
    connection->notified = false;
    state_events.push_back(
        {connection, connection->state,
         connection->queue_pair == nullptr ? 0 : connection->queue_pair->number(),
         connection->peer_closed});
  }
  state_events_.clear();
  has_state_events_.store(false, std::memory_order_relaxed);
}

// ---- Queue pairs.

bool Connector::make_queue_pair(Connection& connection) {
  if (!has_room()) return false;
  QueuePairOptions options = options_;
  const auto give_up = [&] {
    if (connection.completions != nullptr) queues_.release(*connection.completions);
    connection.completions = nullptr;
  };
  try {
    connection.completions = &queues_.reserve();
    options.sends = options.receives = connection.completions;
    receiver_.configure(options);
    connection.queue_pair = device_.make_queue_pair(options);
  } catch (const base::Error&) {
    give_up();
    // Others have used up the adapter: what we have must do, if it is anything.
    if (used_ == 0) throw;
    most_ = used_;
    return false;
  } catch (...) {
    give_up();
    throw;
  }
  ++used_;
  counters_.most_open = std::max<std::uint64_t>(counters_.most_open, used_);
  connection.attempt = ++attempts_;
  connection.told_to_wait = false;
  connection.peer_closed = false;
  try {
    receiver_.open(connection);
    if (permit_rows_) permits_locked(connection);
    if (rails_ != nullptr && connection.rank != rank_) rails_->make(connection);
  } catch (base::Error& error) { // the application's thread may have memory to give back (retry())
    drop_queue_pair(connection);
    refusal_ = std::move(error.text);
    refused_.store(true, std::memory_order_relaxed);
    return false;
  } catch (...) {
    drop_queue_pair(connection);
    throw;
  }
  tell(connection); // of the queue pair's number
  return true;
}

void Connector::drop_queue_pair(Connection& connection) {
  connection.queue_pair.reset();
  if (rails_ != nullptr) rails_->drop(connection);
  receiver_.close(connection);
  queues_.release(*connection.completions);
  connection.completions = nullptr;
  --used_;
  refused_.store(false, std::memory_order_relaxed); // what it had registered is free
  tell(connection);
}

// Starts to connect by our own wish.
void Connector::begin(Connection& connection) {
  if (!make_queue_pair(connection)) return wait_for_queue_pair(connection);
  set_state(connection, ConnectState::requesting);
  schedule(connection);
  send(connection, PacketKind::request, 0);
}

// One queue pair that sends to itself, for atomics on our own memory. Nobody is to be asked.
void Connector::begin_to_self(Connection& connection) {
  if (connection.state != ConnectState::idle && connection.state != ConnectState::waiting) return;
  if (!lost_.empty()) return set_failed(connection, lost_);
  if (!make_queue_pair(connection)) return wait_for_queue_pair(connection);
  wire::ConnectPacket own;
  own.attempt = connection.attempt;
  own.queue_pair = wire::endpoint_of({device_.address(), connection.queue_pair->number()});
  if (connection.window != nullptr) own.reception = connection.window->ours;
  pair(connection, own);
  set_connected(connection);
}

// Answers a request that was put aside, or has just come.
void Connector::answer_parked(Connection& connection) {
  if (!is_expected(connection.rank)) return;
  if (!make_queue_pair(connection)) {
    send(connection, PacketKind::wait, connection.parked->attempt);
    const Rank peer = connection.rank;
    wait_for_queue_pair(connection);
    return withdraw_for(peer);
  }
  const std::unique_ptr<ConnectPacket> packet = std::move(connection.parked);
  ++counters_.accepted;
  pair(connection, *packet);
  set_state(connection, ConnectState::accepted);
  schedule(connection);
  send_answer(connection);
}

void Connector::wait_for_queue_pair(Connection& connection) {
  if (connection.state == ConnectState::waiting) return;
  ++counters_.waited;
  set_state(connection, ConnectState::waiting);
  device_.wake(); // the application's thread, which may sleep, is to close another connection
}

void Connector::retry(bool gave_back) {
  const std::scoped_lock guard(lock_);
  if (!gave_back && used_ != 0) return; // what closing one of these gives back may do
  const bool was_refused = refused_.exchange(false, std::memory_order_relaxed);
  const auto waits = [](const Connection& connection) {
    return connection.state == ConnectState::waiting;
  };
  Connection* const oldest = first_opening(waits);
  if (was_refused && !gave_back && oldest != nullptr) set_failed(*oldest, refusal_);
  serve_waiting();
}

// Queue pairs have come free: those that waited longest have them.
void Connector::serve_waiting() noexcept {
  const auto may_begin = [&](const Connection& connection) {
    return connection.state == ConnectState::waiting &&
           (connection.parked == nullptr || is_expected(connection.rank));
  };
  while (has_room()) {
    Connection* const next = first_opening(may_begin);
    if (next == nullptr) return;
    try {
      if (next->parked != nullptr) {
        answer_parked(*next);
      } else if (next->rank == rank_) {
        begin_to_self(*next);
      } else {
        begin(*next);
      }
    } catch (...) {
      fail_unmade(*next);
    }
  }
}

// When all queue pairs of all processes wait for answers, they wait in a circle, and all have been
// told to wait. Somewhere in it a process is asked by a lower rank: there one of its own requests
// is taken back. Else the answer may be on its way, and who keeps asking would starve it for ever.
void Connector::withdraw_for(Rank peer) {
  if (processes_.name(peer) > processes_.own_name()) return;
  std::uint32_t told = 0;
  Connection* own = nullptr;
  for (Connection& connection : opening_) {
    if (connection.state != ConnectState::requesting || !connection.told_to_wait) continue;
    ++told;
    own = &connection;
  }
  if (told != used_ || own == nullptr) return; // another will be closed or connected
  ++counters_.withdrawn;
  drop_queue_pair(*own);
  base::List<Connection, OpeningList>::erase(*own);
  opening_.push_back(*own); // behind the one that asks
  set_state(*own, ConnectState::waiting);
  serve_waiting();
}

// ---- States.

void Connector::set_state(Connection& connection, ConnectState state) {
  const auto opening = [](ConnectState s) {
    return s == ConnectState::seeking || s == ConnectState::waiting ||
           s == ConnectState::requesting || s == ConnectState::accepted;
  };
  const auto waits = [](ConnectState s) { return s == ConnectState::waiting ? 1u : 0u; };
  waiting_.store(waiting_.load(std::memory_order_relaxed) + waits(state) - waits(connection.state),
                 std::memory_order_relaxed);
  const auto seeks = [](ConnectState s) { return s == ConnectState::seeking ? 1u : 0u; };
  seeking_ += seeks(state) - seeks(connection.state);
  if (opening(state) && !opening(connection.state)) {
    opening_.push_back(connection);
    opening_count_.fetch_add(1, std::memory_order_relaxed);
  } else if (!opening(state) && opening(connection.state)) {
    base::List<Connection, OpeningList>::erase(connection);
    opening_count_.fetch_sub(1, std::memory_order_relaxed);
  }
  connection.state = state;
}

// The two queue pairs know each other: ours receives from now on, and may send once we know that
// the peer's does.
void Connector::pair(Connection& connection, const ConnectPacket& packet) {
  const Retries retries{.receiver_not_ready =
                            static_cast<std::uint8_t>(settings_.rdma_rnr_retries)};
  connection.peer_attempt = packet.attempt;
  if (permit_rows_) connection.permits->theirs = {packet.permits, packet.permits_key};
  receiver_.join(connection, packet.reception);
  wire::Endpoint first = packet.queue_pair;
  wire::Endpoint second;
  if (packet.first_number != 0) {
    second = first;
    const std::optional<wire::Endpoint> published = published_by(connection);
    if (!published)
      base::fail(MPI_ERR_PROC_ABORTED, "rank {} is no more where it was", connection.rank);
    first = *published;
    first.queue_pair = packet.first_number & 0xffffff;
  }
  if (rails_ != nullptr) rails_->pair(connection, second, retries);
  connection.queue_pair->accept(wire::address_of(first), retries);
  connection.queue_pair->establish();
}

void Connector::set_connected(Connection& connection) {
  ++counters_.opened;
  connection.sought = false;
  set_state(connection, ConnectState::connected);
  tell(connection);
}

void Connector::set_failed(Connection& connection, std::string_view reason) noexcept {
  if (connection.state == ConnectState::failed) return;
  try {
    connection.reason = std::make_unique<const std::string>(reason);
  } catch (const std::bad_alloc&) { // then it has none
  }
  connection.parked.reset();
  set_state(connection, ConnectState::failed);
  tell(connection);
}

void Connector::tell(Connection& connection) {
  if (connection.notified) return;
  state_events_.push_back(&connection);
  connection.notified = true;
  has_state_events_.store(true, std::memory_order_release);
  device_.wake();
}

void Connector::schedule(Connection& connection) {
  const double now = device_.now();
  connection.interval = first_interval;
  connection.resend_at = now + first_interval;
  connection.give_up_at = now + give_up_after;
}

void Connector::resend(Connection& connection, double now) {
  // Who writes to our ring knows that we have accepted: the packet that says so was lost, and its
  // sender may have ended since. Where messages complete, the first one confirms.
  Completion found;
  if (connection.state == ConnectState::accepted && receiver_.look(connection, found))
    return set_connected(connection);
  const boot::Life life = processes_.life(connection.rank);
  // It may have known, sent, and ended since: what has come is read before its end is heard of.
  if (connection.state == ConnectState::accepted && life == boot::Life::over)
    return set_connected(connection);
  const bool ended = has_ended(life);
  if (ended || now >= connection.give_up_at) {
    drop_queue_pair(connection);
    const base::Error why =
        ended ? base::make_error(MPI_ERR_PROC_ABORTED, "rank {} has ended", connection.rank)
              : base::make_error(MPI_ERR_PROC_ABORTED,
                                 "rank {} has not answered for {} s; it has ended, or the "
                                 "network does not carry datagrams to it",
                                 connection.rank, give_up_after);
    set_failed(connection, why.text);
    return serve_waiting();
  }
  ++counters_.resent;
  connection.interval = std::min(2 * connection.interval, longest_interval);
  connection.resend_at = now + connection.interval;
  if (connection.state == ConnectState::requesting)
    send(connection, PacketKind::request, 0);
  else
    send_answer(connection);
}

// ---- What others see.

std::size_t Connector::used() const {
  const std::scoped_lock guard(lock_);
  return used_;
}

std::size_t Connector::permit_bytes() const {
  const std::scoped_lock guard(lock_);
  return permit_rows_ ? permit_rows_->bytes() : 0;
}

std::size_t Connector::known() const {
  const std::scoped_lock guard(lock_);
  return connections_.size();
}

void Connector::list_counters(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("rdma", name, text, value);
  };
  add("connections", "connections opened", counters_.opened);
  add("connections_accepted", "connections opened by a request of the peer", counters_.accepted);
  add("connections_crossed", "connections that both sides asked for at once", counters_.crossed);
  add("connections_closed", "idle connections closed to free a queue pair", counters_.closed);
  add("connections_waited", "connections that found no queue pair free", counters_.waited);
  add("connections_most", "connections open at a time, at most", counters_.most_open);
  add("requests_withdrawn", "requests taken back to let a lower rank in", counters_.withdrawn);
  add("packets_resent", "connection packets sent again", counters_.resent);
  add("packets_repeated", "connection packets that came again or late", counters_.repeated);
  add("packets_rejected", "connection packets that are none of this job", counters_.rejected);
}

} // namespace macadam::net::rdma
