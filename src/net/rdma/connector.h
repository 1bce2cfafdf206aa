// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/settings.h"
#include "boot/processes.h"
#include "net/rdma/completion_queues.h"
#include "net/rdma/connection.h"
#include "net/rdma/datagrams.h"
#include "net/rdma/rails.h"
#include "net/rdma/receiver.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace macadam::net::rdma {

// Written under the connector's lock.
struct ConnectorCounters {
  std::uint64_t opened = 0;    // connections, either side's wish
  std::uint64_t accepted = 0;  // of these, by a request of the peer
  std::uint64_t crossed = 0;   // of these, both sides asked at once
  std::uint64_t closed = 0;    // to free the queue pair
  std::uint64_t withdrawn = 0; // requests taken back to let a lower rank in
  std::uint64_t resent = 0;    // packets
  std::uint64_t repeated = 0;  // packets that came again or too late
  std::uint64_t rejected = 0;  // packets that are none of this job's
  std::uint64_t waited = 0;    // connections that found no queue pair free
  std::uint64_t most_open = 0; // queue pairs in use at a time, without the datagrams'
};

// What has changed about a connection.
struct StateEvent {
  Connection* connection = nullptr;
  ConnectState state = ConnectState::idle;
  std::uint32_t number = 0; // of its queue pair; 0: it has none
  bool peer_closed = false; // the peer's is gone
};

// Makes connections on demand, peer-to-peer, over datagrams (Wu et al.; docs/rdma.md has the
// states). Each side makes one queue pair and tells the other; two requests that cross give one
// connection. Its functions may be called by the application's thread and by the progress thread: a
// lock is taken inside.
class Connector {
 public:
  // Queue pairs are made by `options`, to which `receiver` adds; their completions go to `queues`.
  // At most `most` at a time. `permits` as for RdmaTransport; `rails` is null if there is no second
  // port.
  Connector(Device& device, const boot::Processes& processes, const base::Settings& settings,
            Receiver& receiver, CompletionQueues& queues, const QueuePairOptions& options,
            std::uint32_t most, bool permits, Rails* rails);
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;
  ~Connector();

  // Where others reach us; to be published.
  [[nodiscard]] wire::Endpoint endpoint() const { return datagrams_.endpoint(); }
  // The record of a peer, made at first. Never moves.
  Connection& get(Rank peer);
  // Its permits, made at first. Never move.
  Permits& permits(Connection& connection);
  // Wants it connected; one to this process itself is at once. A peer that has not published yet
  // is looked for again in progress(). Throws base::Error if it never will.
  void open(Connection& connection);
  // The same for one that was known: fails it if it can't be.
  void reopen(Connection& connection) noexcept;
  // A message of the peer has come: our queue pair was accepted.
  void confirm(Connection& connection);
  // Nothing is under way in either direction: the queue pair is destroyed and given to the next.
  void close(Connection& connection);
  // Our close note has failed, and perhaps was not read: tells the peer what it said.
  void tell_closed(Connection& connection);
  // The queue pair has failed. It is left as it is: what it received is still to be read.
  void fail(Connection& connection, std::string_view reason);
  // The same for the queue pair of this number, or for all (all_queue_pairs): no more connections
  // can be made then. Found by the progress thread; the application's thread has it as a state
  // event.
  void lose(std::uint32_t number, const std::string& reason) noexcept;
  // Tells all peers, of which one that only waits would never notice, and destroys all queue pairs;
  // none is made any more.
  void abandon() noexcept;
  // A failed queue pair has no completion left that anyone waits for.
  void discard(Connection& connection);
  // The records of these peers, of which none has the application's thread at work, go.
  void erase(Rank first, Rank count);
  // One that is so; null: none is.
  template <class Is>
  [[nodiscard]] Connection* find(Is&& is) {
    const std::scoped_lock guard(lock_);
    for (auto& [rank, connection] : connections_)
      if (is(connection)) return &connection;
    return nullptr;
  }
  template <class Visit>
  void for_each_of(Rank first, Rank count, Visit&& visit) {
    const std::scoped_lock guard(lock_);
    for (auto& [rank, connection] : connections_)
      if (rank - first < count) visit(connection);
  }
  [[nodiscard]] std::string reason(const Connection& connection) const;

  // Resends what is due; reads packets, so that a process that waits need not be told. Cheap when
  // no connection is being made; to be called every millisecond then.
  void progress();
  [[nodiscard]] bool busy() const { return opening() != 0; }
  [[nodiscard]] unsigned opening() const { return opening_count_.load(std::memory_order_relaxed); }
  // Reads packets; called by the progress thread too.
  void read_packets() noexcept;

  // Connections whose state has changed.
  [[nodiscard]] bool has_state_events() const {
    return has_state_events_.load(std::memory_order_acquire);
  }
  void take_state_events(std::deque<StateEvent>& state_events);
  // Connections that wait for a queue pair: others should be closed.
  [[nodiscard]] unsigned waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // To one of them the adapter has refused memory.
  [[nodiscard]] bool was_refused() const { return refused_.load(std::memory_order_relaxed); }
  // Then: the application's thread has given back what it does not use; or there was nothing, and
  // one fails if no connection is left to be closed for it.
  void retry(bool gave_back);
  // Any of these. (Connections that wait are being made.)
  [[nodiscard]] bool needs_care() const { return busy() || has_state_events(); }

  // Start-up in rank order: only requests of this peer are answered; of all, if it is this process.
  void expect(Rank peer);

  [[nodiscard]] const ConnectorCounters& counters() const { return counters_; }
  void list_counters(base::CounterList& list) const;
  // Queue pairs in use.
  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t known() const;
  [[nodiscard]] std::size_t permit_bytes() const;

 private:
  // Seconds without a sign of life after which a peer that has published its address is gone.
  static constexpr double give_up_after = 20;

  Connection& get_locked(Rank peer);
  Permits& permits_locked(Connection& connection);
  [[nodiscard]] std::optional<wire::Endpoint> published_by(const Connection& connection) const;
  bool find_address(Connection& connection);
  void seek(Connection& connection) noexcept;
  [[nodiscard]] bool has_room() const { return used_ < most_ && !was_refused(); }
  bool make_queue_pair(Connection& connection);
  void drop_queue_pair(Connection& connection);
  void begin(Connection& connection);
  void begin_to_self(Connection& connection);
  void answer_parked(Connection& connection);
  void wait_for_queue_pair(Connection& connection);
  void lose(Connection& connection, const std::string& reason) noexcept;
  void serve_waiting() noexcept;
  // Start-up in rank order: whether requests of this peer are answered now.
  [[nodiscard]] bool is_expected(Rank peer) const {
    return expected_ == rank_ || peer == expected_;
  }
  template <class Is>
  Connection* first_opening(Is&& is) const {
    for (Connection& connection : opening_)
      if (is(connection)) return &connection;
    return nullptr;
  }
  void withdraw_for(Rank peer);
  void pair(Connection& connection, const wire::ConnectPacket& packet);
  void set_connected(Connection& connection);
  void set_failed(Connection& connection, std::string_view reason) noexcept;
  void fail_unmade(Connection& connection) noexcept;
  void set_state(Connection& connection, ConnectState state);
  void tell(Connection& connection);
  void schedule(Connection& connection);
  void resend(Connection& connection, double now);

  void handle(const wire::ConnectPacket& packet) noexcept;
  void obey(Connection& connection, const wire::ConnectPacket& packet);
  void on_request(Connection& connection, const wire::ConnectPacket& packet);
  void on_reply(Connection& connection, const wire::ConnectPacket& packet);
  void send(Connection& connection, wire::PacketKind kind, std::uint32_t answered);
  void send_answer(Connection& connection);

  Device& device_;
  const boot::Processes& processes_;
  const base::Settings& settings_;
  Receiver& receiver_;
  CompletionQueues& queues_;
  const QueuePairOptions options_;
  Rails* const rails_;
  const Rank rank_;
  const boot::Secret secret_;

  mutable std::mutex lock_;
  std::uint32_t most_;                    // queue pairs
  std::uint32_t used_ = 0;                // of them
  std::uint32_t attempts_ = 0;            // that ever were
  unsigned seeking_ = 0;                  // connections
  std::optional<PermitRows> permit_rows_; // none: this process has no permits
  std::unordered_map<Rank, Connection> connections_;
  base::List<Connection, OpeningList> opening_; // those that are being made; oldest first
  std::vector<Connection*> state_events_;
  Rank expected_;
  std::string lost_;    // why no more connections can be made; empty: they can
  std::string refusal_; // why memory was last refused
  ConnectorCounters counters_;
  Datagrams datagrams_;

  std::atomic<bool> has_state_events_ = false;
  std::atomic<unsigned> opening_count_ = 0;
  std::atomic<unsigned> waiting_ = 0;
  std::atomic<bool> refused_ = false;
};

} // namespace macadam::net::rdma
