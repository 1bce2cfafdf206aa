// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "base/counters.h"
#include "base/id_table.h"
#include "base/settings.h"
#include "base/slab.h"
#include "engine/breakdown.h"
#include "engine/context_set.h"
#include "engine/counters.h"
#include "engine/eager_view.h"
#include "engine/match.h"
#include "engine/networks.h"
#include "engine/observer.h"
#include "engine/partitioned.h"
#include "engine/peer.h"
#include "engine/request.h"
#include "engine/team.h"
#include "engine/transport.h"
#include "engine/wire.h"
#include "engine/word_wait.h"
#include "mem/buffers.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace macadam::engine {

// What waits for operations on a peer's memory that a layer above has posted to a transport with
// cookie(). It is told of each that was `pending`.
class MemoryWaiter {
 public:
  virtual void on_done(bool ok) noexcept = 0;
  [[nodiscard]] std::uint64_t cookie() const;

 protected:
  ~MemoryWaiter() = default;
};

// Matching, the four protocols, peers, backlog and progress. Pure: no system call, thread, clock,
// environment or mutable static; everything comes from the transports. Not thread safe.
class Engine final : public Sink {
 public:
  // The transports, `settings` and the observer, if there is one, outlive the engine.
  Engine(Networks networks, Rank job_size, const base::Settings& settings,
         Observer* observer = nullptr);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // So many processes are known now: nothing comes from the later ones, or goes there, before.
  void know(Rank processes);
  // Whether anything is under way to or from one of these processes; and whether somebody waits for
  // such an operation, or may.
  [[nodiscard]] bool has_to_do_with(Rank first, Rank processes) const;
  [[nodiscard]] bool is_used_for(Rank first, Rank processes) const;
  // Cancels the sends that nobody waits for, of those that are `wanted`.
  template <class Wanted>
  void call_off(Wanted&& wanted) {
    for (SendRequest& send : sends_)
      if (send.detached && wanted(send)) cancel(send);
  }
  // They are not talked to any more, and their numbers are for others: true once that is done. To
  // be asked again between polls.
  bool forget(Rank first, Rank processes);

  // Called before a peer is connected to, and when it has been reached, before anything goes there
  // or is taken from there: throws base::Error if this process cannot talk to it. Empty: it can to
  // all.
  std::function<void(Rank, const Transport&)> admit;

  // The peer, connected to if this is the first use. Throws base::Error if it cannot be reached.
  Peer& peer(Rank rank) {
    if (Peer* known = peers_.find(rank)) [[likely]]
      return *known;
    return meet(rank);
  }

  // Starts a send; `envelope.source` is our rank in the communicator. Null if the message has left
  // and the data are free again (EAGER, HYBRID): there is nothing to wait for.
  SendRequest* send(Peer& peer, const Envelope& envelope, const Data& data, SendMode mode) {
    if (send_at_once(peer, envelope, data, mode)) [[likely]]
      return nullptr;
    return send_long(peer, envelope, data, data.bytes(), mode);
  }
  // The short path alone; false if the message cannot take it.
  [[gnu::always_inline]] bool send_at_once(Peer& peer, const Envelope& envelope, const Data& data,
                                           SendMode mode) {
    const std::size_t bytes = data.bytes();
    if (static_cast<std::int64_t>(bytes) > peer.short_limit || mode == SendMode::synchronous ||
        !data.type->contiguous())
      return false;
    if (mode == SendMode::nonblocking && static_cast<std::int64_t>(bytes) <= peer.bundled) {
      if (peer.look == looks_) return send_in_burst(peer, envelope, data.address, bytes);
      peer.look = looks_;
      peer.burst.count = 1;
    }
    return send_short(peer, envelope, data.address, bytes);
  }

  // Starts a receive. `peer` is the source, null for MPI_ANY_SOURCE.
  [[gnu::always_inline]] ReceiveRequest* receive(Peer* peer, const Envelope& envelope,
                                                 const Data& data) {
    if (ReceiveRequest* const posted = receive_short(peer, envelope, data)) [[likely]]
      return posted;
    return receive_long(peer, envelope, data);
  }
  // The short path alone, for a message that has not come yet; null if that may not be taken.
  [[gnu::always_inline]] ReceiveRequest* receive_short(Peer* peer, const Envelope& envelope,
                                                       const Data& data) {
    const std::size_t bytes = data.bytes();
    if (peer == nullptr || envelope.tag == MPI_ANY_TAG ||
        static_cast<std::int64_t>(bytes) > peer->short_receive_limit || matcher_.any_unexpected() ||
        peer->state == PeerState::failed) [[unlikely]]
      return nullptr;
    ReceiveRequest& receive = make_receive(envelope, data, bytes);
    receive.peer = peer;
    matcher_.post(receive, envelope);
    count_pending(receive, *peer, envelope);
    return &receive;
  }

  // What send_at_once() and receive_short() have left. By value: the address of an envelope or of
  // data would keep them in memory there.
  SendRequest* send_long(Peer& peer, Envelope envelope, Data data, std::size_t bytes,
                         SendMode mode);
  ReceiveRequest* receive_long(Peer* peer, Envelope envelope, Data data);

  // The oldest message that would match, left where it is (Probe); null if none has come.
  [[nodiscard]] const Message* probe(const Envelope& wanted) const {
    return matcher_.find_unexpected(wanted);
  }
  // The same, taken out of the queue (Mprobe): to be received by receive_matched().
  Message* match_probe(const Envelope& wanted);
  ReceiveRequest* receive_matched(Message& message, const Data& data);

  // Whether any peer has failed.
  [[nodiscard]] bool any_failed() const { return any_failed_; }
  // The peer of a send or receive. Null for other requests, and while it is not known.
  [[nodiscard]] static const Peer* peer_of(const Request& request);
  // Why operations with a peer that has failed cannot finish; `peer` may be null.
  [[nodiscard]] static std::string why_failed(const Peer* peer);

  // Cancels a receive that no message has matched, whatever other processes do; otherwise it
  // completes with its message. (Where the network must be asked first, after some progress().)
  void cancel(ReceiveRequest& receive);
  // Asks the receiver to forget a message that no receive has matched. The send completes either
  // cancelled or as any other.
  void cancel(SendRequest& send);

  // Whether leave() might complete this operation, which is not complete.
  [[nodiscard]] static bool may_leave(const Request& request) noexcept {
    return request.role == Role::send && static_cast<const SendRequest&>(request).may_leave;
  }
  // The process has nothing to do but wait for this send, whose receiver does not come: completes
  // it, if a copy of its data can be left behind for the receiver (HYBRID). Once for each send.
  void leave(SendRequest& send) noexcept;

  // The owner needs the request no more. An active one finishes first.
  void release(Request* request) {
    if (request->complete) [[likely]] {
      recycle(request);
    } else {
      request->continuation = nullptr;
      request->detached = true;
    }
  }

  // Delivers what has arrived and moves what waited. True if anything happened. For calls that have
  // more to do; those that wait call progress().
  // Does nothing when called from a continuation, inside progress, or after a failure().
  [[gnu::always_inline]] bool deliver() noexcept {
    if (stands_) [[unlikely]]
      return end_after_failure();
    const Progressing guard(*this);
    ++looks_;
    bool moved = !looks_at_last_bytes_ ? networks_.poll(*this) : poll_and_look();
    if (aside_ || partitioned_.any_left()) [[unlikely]]
      moved = look_aside() || moved;
    if (!word_waits_.empty()) moved = look_at_words() || moved;
    moves_ += moved ? 1 : 0;
    return moved;
  }
  // The same, of a process that has nothing else to do: if nothing has arrived it copies what
  // either side may.
  bool progress() noexcept { return deliver() || (may_copy() && copy_when_idle(true)); }
  // The same in two parts, of a process that waits: where deliver() has found nothing `fruitless`
  // times, it copies, but lets the peers know before that it waits, as two copy faster together.
  [[nodiscard]] bool may_copy() noexcept { return copies_ && find_copies(); }
  bool copy_in_wait(unsigned fruitless) noexcept;
  // Whether somebody waits for a word that another process writes (WordWait).
  [[nodiscard]] bool waits_for_word() const noexcept { return !word_waits_.empty(); }
  // Begins a wait, which `wait.call` ends. False: it is over, not `ok`, as this process
  // communicates no more.
  [[nodiscard]] bool wait_for(WordWait& wait) noexcept;
  // Why this process communicates no more, null if it does: there was no memory for a record of the
  // engine itself, or a network has failed as a whole. Everything that was under way has ended, or
  // ends in the next progress(), with this error; what is begun later fails with it.
  [[nodiscard]] const base::Error* failure() const {
    return failure_.noted() ? &failure_.what() : nullptr;
  }
  // For a continuation that has caught what it cannot go on after, in its catch block.
  void break_down() noexcept;
  // How often progress() found something to do: a process that waits has not gone on while this
  // stands still.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  // How often it looked, modulo 2^32.
  [[nodiscard]] std::uint32_t looks() const { return looks_; }

  // Everything that must leave before this process may: backlogs, hybrid buffers not yet read,
  // sends whose owner has gone.
  [[nodiscard]] bool quiet() const;

  // A communicator was freed: the channels of its contexts, so many in a row, with these processes
  // are forgotten, and announcements that are still on their way make none again.
  void drop_contexts(std::uint64_t first, std::uint64_t number, const RankMap& processes);
  // Nothing is sent or received with this tag any more.
  void drop_channel(std::uint64_t context, std::int32_t tag, const RankMap& processes);

  [[nodiscard]] PartitionedTable& partitioned() { return partitioned_; }
  [[nodiscard]] const PartitionedTable& partitioned() const { return partitioned_; }
  [[nodiscard]] const Networks& networks() const { return networks_; }
  // One more network, for peers that those which there are do not reach; it outlives the engine.
  // Throws base::Error.
  void add_network(Transport& farthest);
  [[nodiscard]] const EngineCounters& counters() const { return counters_; }
  void list_counters(base::CounterList& list) const;
  [[nodiscard]] std::size_t memory_bytes() const;

  // Whether the observer is told of messages that could take the short paths. If not, these are
  // open; it is told of all others then, among them every rendezvous.
  void observe_short(bool all);

  // For the hang report.
  [[nodiscard]] const Matcher& matcher() const { return matcher_; }
  [[nodiscard]] const PeerTable& peers() const { return peers_; }
  template <class Visit>
  void for_each_send(Visit&& visit) const {
    for (SendRequest& send : sends_)
      visit(send);
  }
  // Channels on which receives are being cancelled, and the receive whose permit is asked for.
  template <class Visit>
  void for_each_revocation(Visit&& visit) const {
    for (const Revoking& row : revoking_)
      visit(*row.peer, *row.channel, row.receive_id);
  }
  // Receives that read if their sender does not write first.
  template <class Visit>
  void for_each_unread(Visit&& visit) const {
    for (const ReceiveRequest* receive : unread_)
      visit(*receive);
  }
  // Sends whose receive is known, and which nobody has begun to move.
  template <class Visit>
  void for_each_unwritten(Visit&& visit) const {
    for (const Unwritten& waiting : unwritten_)
      visit(*waiting.send, waiting.target);
  }
  template <class Visit>
  void for_each_rendezvous_receive(Visit&& visit) const {
    for (ReceiveRequest& receive : receiving_)
      visit(receive);
  }

  // Sink
  void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override;
  void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override;
  void on_first_fragment(Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override;
  void on_next_fragment(Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override;
  void on_complete(std::uint64_t cookie, bool ok) noexcept override;
  void on_peer(Rank rank, PeerState state) noexcept override;
  void on_failure(base::Error&& why) noexcept override;

 private:
  // engine.cc: peers, completion, memory of requests
  Peer& meet(Rank rank);
  // The peer, for what comes from it. Null if there is none: then nobody can hear of it.
  Peer* known(Rank rank) noexcept {
    Peer* const peer = peers_.find(rank);
    return peer != nullptr ? peer : meet_sender(rank);
  }
  Peer* meet_sender(Rank rank) noexcept;
  void stand() noexcept;
  bool end_after_failure() noexcept;
  // The error of operations with a peer that is gone, or, after a failure of this process, of all.
  [[nodiscard]] std::int32_t error_of_end() const noexcept {
    return failure_.noted() ? failure_.what().error_class : MPI_ERR_PROC_ABORTED;
  }
  void on_control(Peer& peer, const std::byte* message, std::size_t bytes) noexcept;
  void update_short_limit(Peer& peer);

  // steps.cc: what an observer is told
  void note(Step::Kind kind, const SendRequest& send,
            Protocol protocol = Protocol::eager) noexcept {
    if (observer_ != nullptr) [[unlikely]]
      tell(kind, send, protocol);
  }
  void note(Step::Kind kind, const ReceiveRequest& receive, const Peer& peer,
            std::uint64_t bytes = 0, Protocol protocol = Protocol::eager) noexcept {
    if (observer_ != nullptr) [[unlikely]]
      tell(kind, receive, peer, bytes, protocol);
  }
  void note(Step::Kind kind, const Peer& peer, const Envelope& envelope = {},
            std::uint64_t bytes = 0, Protocol protocol = Protocol::eager,
            std::uint64_t ordinal = Step::uncounted) noexcept {
    if (observer_ != nullptr) [[unlikely]]
      observer_->on_step(
          {kind, protocol, peer.rank, envelope.context, envelope.tag, bytes, ordinal, 0});
  }
  [[gnu::cold]] void tell(Step::Kind kind, const SendRequest& send, Protocol protocol) noexcept;
  [[gnu::cold]] void tell(Step::Kind kind, const ReceiveRequest& receive, const Peer& peer,
                          std::uint64_t bytes, Protocol protocol) noexcept;
  [[gnu::cold]] void tell_announced(const ReceiveRequest& receive, std::uint64_t ordinal) noexcept;
  [[gnu::cold]] void note_eager(const Peer& peer, const std::byte* message, std::size_t bytes,
                                bool expected) noexcept;
  // The ordinal of the message that was matched last.
  [[nodiscard]] static std::uint64_t last_ordinal(const Peer& peer,
                                                  const Envelope& envelope) noexcept;

  Channel* channel(Peer& peer, std::uint64_t context, std::int32_t tag) noexcept {
    Channel* const found =
        peer.channels.get(context, tag, static_cast<std::size_t>(settings_.tags_per_peer));
    if (found == nullptr) [[unlikely]]
      ++counters_.uncounted;
    return found;
  }
  void complete(Request& request) noexcept {
    request.complete = true;
    if (request.continuation != nullptr) {
      request.continuation(request, request.argument);
    } else if (request.detached) [[unlikely]] {
      recycle(&request);
    }
  }
  void recycle(Request* request) {
    if (request->role == Role::receive) {
      receive_slab_.free(static_cast<ReceiveRequest*>(request));
    } else {
      send_slab_.free(static_cast<SendRequest*>(request));
    }
    // By this a stale handle is recognised. After the destructor: a store before it could be
    // dropped.
    new (static_cast<void*>(request)) base::Object(base::ObjectKind::freed);
  }
  std::byte* pack(const Data& data, std::size_t bytes);
  void finish_send(SendRequest& send, std::int32_t error) noexcept;
  void free_bounce(SendRequest& send) noexcept;
  // The message as one block: the user's own memory, or a packed copy.
  static const std::byte* flat(const SendRequest& send) {
    return send.bounce != nullptr ? send.bounce : static_cast<const std::byte*>(send.data.address);
  }
  void fail_peer(Peer& peer) noexcept;
  void unpost(ReceiveRequest& receive) noexcept;

  // backlog.cc: what could not be handed to the transport at once
  // `payload`, if any, is there until the peer has answered.
  void post_control(Peer& peer, const void* header, std::size_t bytes,
                    const std::byte* payload = nullptr, std::size_t payload_bytes = 0) noexcept;
  bool post_put(Peer& peer, SendRequest& send, RemoteMemory to, std::size_t bytes,
                std::uint32_t& notification, const wire::Fin* fin) noexcept;
  void post_get(Peer& peer, ReceiveRequest& receive, RemoteMemory from, std::size_t bytes) noexcept;
  bool try_put(Peer& peer, SendRequest& send, RemoteMemory to, std::size_t bytes,
               std::uint32_t& notification) noexcept;
  bool try_get(Peer& peer, ReceiveRequest& receive, RemoteMemory from, std::size_t bytes) noexcept;
  bool flush_backlogs() noexcept;
  bool flush(Peer& peer) noexcept;
  bool post_backlog(Peer& peer) noexcept;
  bool open(const Peer& peer) const {
    return peer.state == PeerState::connected && peer.backlog.empty();
  }
  // Whether what comes now may go to the transport at once.
  bool may_post(Peer& peer) noexcept {
    if (peer.holds) [[unlikely]]
      send_held(peer);
    return open(peer);
  }
  Deferred* defer(Peer& peer, Deferred::Type type) noexcept;

  // choose.cc: which protocol a message takes (Small & Yuan, Table 1)
  bool prepare(SendRequest& send, bool fits_eager);
  void unmake(SendRequest& send) noexcept;

  // eager.cc
  // Functions of the short paths stand here: each call would cost as much as what it does.
  [[gnu::always_inline]] bool send_short(Peer& peer, const Envelope& envelope, const void* address,
                                         std::size_t bytes) {
    const wire::Eager header = wire::eager_header(envelope, wire::Kind::eager);
    if (peer.transport->send(*peer.link, &header, sizeof header, address, bytes) == Posted::busy)
        [[unlikely]]
      return false;
    if (Channel* counting = channel(peer, envelope.context, envelope.tag)) ++counting->sent;
    ++counters_.eager_sent;
    counters_.bytes_sent += bytes;
    return true;
  }
  SendRequest* send_eager(SendRequest& send, bool held);
  Posted transmit_eager(SendRequest& send) noexcept;
  [[gnu::always_inline]] void on_eager(Peer& peer, const std::byte* message,
                                       std::size_t bytes) noexcept {
    const EagerView view = view_eager(message, bytes, false);
    if (ReceiveRequest* receive = matcher_.take_receive(view.envelope)) [[likely]] {
      bind(*receive, peer, view.envelope);
      return deliver(*receive, view.data, view.bytes);
    }
    keep_eager(peer, view);
  }
  void on_eager_synchronous(Peer& peer, const std::byte* message, std::size_t bytes) noexcept;
  void acknowledge(Peer& peer, std::uint64_t send_id) noexcept;
  void keep_eager(Peer& peer, EagerView view) noexcept;
  Message* keep_data(Peer& peer, const EagerView& view, std::size_t bytes) noexcept;
  // Puts eager data where the user wants them and completes the receive.
  [[gnu::always_inline]] void deliver(ReceiveRequest& receive, const std::byte* data,
                                      std::size_t bytes) {
    // Nothing to unpack, to take back or to complain about.
    if (receive.noncontiguous || receive.is_registered || bytes > receive.capacity ||
        !whole(receive, bytes)) [[unlikely]]
      return deliver_long(receive, data, bytes);
    base::copy(receive.data.address, data, bytes);
    receive.status.bytes = bytes;
    receive.stage = ReceiveStage::awaits_fin;
    complete(receive);
  }
  // Whether a message of this size ends with a whole element of the receive's type.
  static bool whole(const ReceiveRequest& receive, std::uint64_t bytes) {
    return (bytes & (receive.granule - 1U)) == 0;
  }
  void deliver_long(ReceiveRequest& receive, const std::byte* data, std::size_t bytes) noexcept;

  // bundle.cc
  [[gnu::noinline]] bool send_in_burst(Peer& peer, const Envelope& envelope, const void* address,
                                       std::size_t bytes) noexcept;
  static void hold(Peer& peer) noexcept;
  bool joins(Peer& peer, std::size_t bytes, SendMode mode) noexcept;
  static void end_hold(Peer& peer) noexcept;
  [[gnu::cold]] void send_held(Peer& peer) noexcept;
  static std::size_t bundle_room(const Peer& peer);
  bool flush_bundle(Peer& peer) noexcept;
  void on_bundle(const Peer& peer, const std::byte* message, std::size_t bytes) noexcept;

  // fragments.cc
  void receive_fragments(Peer& peer, ReceiveRequest& receive, std::size_t bytes) noexcept;
  void take_arriving(ReceiveRequest& receive, Message& message) noexcept;
  void add_fragment(Peer& peer, const std::byte* fragment, std::size_t bytes) noexcept;

  // hybrid.cc
  [[nodiscard]] bool copies_later(const SendRequest& send) const noexcept;
  void copy_for_hybrid(SendRequest& send);
  void offer_copy(SendRequest& send);
  bool copy_before_leaving(SendRequest& send, std::byte* to) noexcept;
  void hand_over(SendRequest& send, SendRequest& copy) noexcept;
  void on_sender_copied(Peer& peer, const wire::SenderCopied& copied) noexcept;
  static void adopt(Message& message, const wire::SenderCopied& copied) noexcept;
  void read_copy(ReceiveRequest& receive, const wire::SenderCopied& copied) noexcept;

  // exchange.cc
  [[nodiscard]] bool is_shared(const SendRequest& send) const noexcept;
  void await_idle(ReceiveRequest& receive, const Message& message) noexcept;
  void offer_announced(SendRequest& send, const Announcement& target) noexcept;
  void write_when_idle(SendRequest& send, const Announcement& target) noexcept;
  bool write_unwritten() noexcept;
  bool read_unread(bool leaves_to_sender) noexcept;
  bool find_copies() noexcept;
  bool copy_when_idle(bool leaves_to_sender) noexcept;
  bool take_permit_back(SendRequest& send) noexcept;
  void read_alone(Peer& peer, ReceiveRequest& receive, RemoteMemory from,
                  std::size_t bytes) noexcept;

  // send_rndv.cc: sender-initiated, and the reading half of HYBRID
  wire::SenderReady offer(SendRequest& send) noexcept;
  [[nodiscard]] static wire::SenderReady ready_of(const SendRequest& send,
                                                  wire::Offer form) noexcept;
  SendRequest* send_rndv(SendRequest& send);
  void on_sender_ready(Peer& peer, const wire::SenderReady& ready) noexcept;
  void accept(ReceiveRequest& receive, const Message& message) noexcept;
  void fetch(ReceiveRequest& receive, const Message& message) noexcept;
  Message* keep_offer(const Message& message) noexcept;
  void finish_reading(ReceiveRequest& receive, std::int32_t error) noexcept;
  void on_fin_to_sender(const wire::Fin& fin) noexcept;
  void stop_waiting(SendRequest& send) noexcept;

  // pull.cc: where memory cannot be registered
  bool try_register(Peer& peer, const std::byte* memory, std::size_t bytes,
                    RemoteMemory& registered) noexcept;
  void pull(ReceiveRequest& receive) noexcept;
  void on_pull(Peer& peer, const wire::Pull& pull) noexcept;
  void on_fragment(const std::byte* packet, std::size_t bytes) noexcept;

  // recv_rndv.cc: receiver-initiated
  [[nodiscard]] bool may_announce(const ReceiveRequest& receive) const;
  void announce(ReceiveRequest& receive, std::uint64_t ordinal) noexcept;
  void announce_held() noexcept;
  bool has_announcement(Peer& peer, const Envelope& envelope) noexcept;
  bool is_announced(Peer& peer, const Envelope& envelope) noexcept;
  Announcement* find_announcement(Peer& peer, Channel& channel, std::uint64_t ordinal) noexcept;
  static bool use(Peer& peer, Announcement& announcement) noexcept;
  void on_receiver_ready(Peer& peer, const wire::ReceiverReady& ready) noexcept;
  void keep_announcement(Channel& channel, const Announcement& announcement) noexcept;
  void write_to(SendRequest& send, const Announcement& target) noexcept;
  void write_and_tell(SendRequest& send, RemoteMemory to, std::size_t bytes,
                      std::uint32_t notification, const wire::Fin& fin) noexcept;
  void on_fin_to_receiver(Peer& peer, const wire::Fin& fin) noexcept;
  void finish_written(Peer& peer, ReceiveRequest& receive, std::int32_t source, std::uint64_t bytes,
                      std::int32_t error = MPI_SUCCESS) noexcept;

  // last_byte.cc: writes that are seen in memory
  void watch(ReceiveRequest& receive, wire::ReceiverReady& ready) noexcept;
  static void stop_watching(ReceiveRequest& receive) noexcept;
  static bool is_seen_by_last_byte(const SendRequest& send, const Announcement& target);
  class LastByteSink;
  bool poll_and_look() noexcept;
  bool look_at_last_bytes(bool moved) noexcept;
  static bool has_changed(const ReceiveRequest& receive);
  [[nodiscard]] bool is_next(const ReceiveRequest& receive) const;
  void finish_written_before(Rank source, const std::byte* packet) noexcept;
  void finish_written_before(std::uint32_t notification) noexcept;
  void finish_written_before(Channel* channel, const ReceiveRequest* its,
                             const std::uint32_t* offered) noexcept;

  // What the networks and other threads have left to do.
  bool look_aside() noexcept;

  // word_wait.cc
  bool look_at_words() noexcept;
  void end_word_waits() noexcept;
  [[nodiscard]] bool never_comes(const WordWait& wait) const noexcept;

  // cancel.cc: operations taken back
  void cancel_pending(ReceiveRequest& receive) noexcept;
  bool continue_cancel(std::size_t row) noexcept;
  bool continue_cancels() noexcept;
  bool is_unsent(Peer& peer, const ReceiveRequest& receive) noexcept;
  bool take_announcement_back(ReceiveRequest& receive) noexcept;
  void on_withdraw(Peer& peer, const wire::Withdraw& withdraw) noexcept;
  void on_withdrawn(const wire::Withdraw& withdrawn) noexcept;
  // The pending receives of a channel, in order of posting.
  template <class Visit>
  void for_each_pending(const Channel& counting, Visit&& visit) const {
    for (ReceiveRequest& receive :
         matcher_.same_bucket({counting.context, counting.source, counting.tag})) {
      if (receive.channel == &counting) visit(receive);
    }
  }

  // receive.cc
  ReceiveRequest& make_receive(const Envelope& envelope, const Data& data, std::size_t bytes) {
    ReceiveRequest& receive = *receive_slab_.make();
    receive.envelope = envelope;
    receive.data = data;
    receive.capacity = bytes;
    receive.granule = static_cast<std::uint8_t>(data.type->granule());
    if (!data.type->contiguous()) [[unlikely]]
      receive.noncontiguous = datatype::TypeRef(*data.type);
    return receive;
  }
  // A posted receive that names its source and tag waits for a message of this channel.
  Channel* count_pending(ReceiveRequest& receive, Peer& peer, const Envelope& envelope) noexcept {
    Channel* const counting = channel(peer, envelope.context, envelope.tag);
    if (counting == nullptr) [[unlikely]]
      return nullptr;
    receive.channel = counting;
    counting->source = envelope.source;
    ++counting->pending;
    return counting;
  }
  // A message from this peer has been matched with a receive that was pending or is new.
  void bind(ReceiveRequest& receive, Peer& peer, const Envelope& envelope) noexcept {
    receive.peer = &peer;
    receive.status.source = envelope.source;
    receive.status.tag = envelope.tag;
    if (receive.channel != nullptr) [[likely]] {
      --receive.channel->pending;
      ++receive.channel->matched;
      base::List<ReceiveRequest, Held>::erase_if_linked(receive);
    } else {
      count_match(peer, envelope);
      if (!held_.empty()) announce_held();
    }
  }
  void count_match(Peer& peer, Envelope envelope) noexcept;
  void take(ReceiveRequest& receive, Message& message) noexcept;
  std::uint64_t ordinal_of(const ReceiveRequest& receive) const;
  bool has_destination(ReceiveRequest& receive) noexcept;
  // Where the data go, once has_destination(): the user's memory, or a block to be unpacked from.
  static std::byte* destination(const ReceiveRequest& receive) {
    return receive.noncontiguous ? receive.bounce : static_cast<std::byte*>(receive.data.address);
  }
  bool register_destination(ReceiveRequest& receive) noexcept;
  void finish_receive(ReceiveRequest& receive, std::uint64_t bytes, std::int32_t error) noexcept;
  void check(const Transport& network) const;
  Message* keep_unexpected(Peer& peer, const Envelope& envelope, std::size_t bytes) noexcept;
  void free_message(Message& message) noexcept;
  // Memory that an unexpected message with data takes.
  static std::size_t room(const Message& message) { return sizeof(Message) + message.bytes; }
  void throttle(Peer& peer, bool on) noexcept;

  static constexpr std::uint64_t receive_cookie = std::uint64_t{1} << 63;
  static constexpr std::uint64_t waiter_cookie = std::uint64_t{1} << 62;
  friend class MemoryWaiter;
  friend class PartitionedTable;

  // Marks that the transport is being polled, which it may not be twice.
  struct Progressing {
    explicit Progressing(Engine& e) : engine(e) { engine.stands_ = engine.progressing_ = true; }
    ~Progressing() {
      engine.progressing_ = false;
      engine.stands_ = engine.failure_.noted();
    }
    Progressing(const Progressing&) = delete;
    Progressing& operator=(const Progressing&) = delete;
    Engine& engine;
  };

  Networks networks_;
  const base::Settings& settings_;
  Observer* const observer_;
  bool observes_short_;
  // What the short path of arriving messages takes: nothing, if they are to be observed.
  wire::Kind short_kind_;
  // The slabs go last: the lists below link what lies in them.
  base::Slab<SendRequest> send_slab_;
  base::Slab<ReceiveRequest> receive_slab_;
  base::Slab<Message> message_slab_;
  base::Slab<Deferred> deferred_slab_;
  PeerTable peers_;
  Matcher matcher_;
  base::IdTable<SendRequest> send_ids_;
  base::IdTable<ReceiveRequest> receive_ids_;
  base::List<SendRequest, InFlight> sends_;        // all that are not complete
  base::List<ReceiveRequest, InFlight> receiving_; // matched, data on the way
  base::List<Message, ByArrival> probed_;          // rendezvous that a matched probe took
  base::List<ReceiveRequest, Held> held_;          // may not announce themselves yet
  base::List<ReceiveRequest, Watched> watched_;
  base::List<Peer, Backlogged> backlogged_;
  base::List<WordWait> word_waits_;
  bool any_failed_ = false; // of the peers
  // Channels of which announcements are taken back; of what receive the permit is asked for.
  struct Revoking {
    Peer* peer;
    Channel* channel;
    std::uint64_t receive_id;
  };
  std::vector<Revoking> revoking_;
  std::vector<ReceiveRequest*> unread_; // answered offers of Offer::either, oldest first
  struct Unwritten {
    SendRequest* send;
    Announcement target;
  };
  std::vector<Unwritten> unwritten_; // sends whose receive is known, oldest first
  ContextSet dropped_;               // of communicators that were freed
  mem::Buffers buffers_;
  PartitionedTable partitioned_{*this};
  std::size_t unexpected_bytes_ = 0;
  std::size_t throttled_ = 0; // peers that this process has asked for no eager data
  const bool looks_at_last_bytes_ = settings_.last_byte;
  bool copies_ = false; // there may be data that either side may copy
  bool aside_ = false;  // there may be cancels or backlogs
  bool stands_ = false; // no progress: some is being made, or none is possible any more
  bool progressing_ = false;
  bool ended_ = false; // everything, after a failure
  std::uint32_t looks_ = 1;
  std::uint64_t moves_ = 0;
  EngineCounters counters_;
  Breakdown failure_;
};

inline std::uint64_t MemoryWaiter::cookie() const {
  return Engine::waiter_cookie | reinterpret_cast<std::uintptr_t>(this);
}

} // namespace macadam::engine
