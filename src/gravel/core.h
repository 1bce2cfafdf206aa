// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/id_table.h"
#include "base/list.h"
#include "base/slab.h"
#include "boot/job.h"
#include "engine/breakdown.h"
#include "engine/networks.h"
#include "engine/transport.h"
#include "gravel/coverage.h"
#include "gravel/error.h"
#include "gravel/memory.h"
#include "gravel/promise.h"
#include "gravel/wire.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace macadam::gravel {

using RequestId = std::uint64_t; // 0: none is needed
using BufferId = std::uint64_t;  // never 0

inline constexpr int any_source = -1;
inline constexpr int any_tag = -2;

// What Core::ledgers() of a process said, for the network by which this one reaches it.
using LedgersOf = std::function<RemoteMemory(Rank)>;

enum class RequestKind : std::uint8_t {
  receive_buffer, // until the FIN of the process that puts
  send_buffer,    // until the FIN of the process that gets
  send_request,   // until it has left
  put,            // until its memory is free
  get,            // until the data are there
  fin,            // until it has left, and all of its buffer's transfers are over
};

struct Peer;
struct Buffer;

struct Request : base::ListNode<> {
  RequestKind kind = RequestKind::put;
  bool complete = false;
  bool released = false; // nobody waits: goes when it is complete
  Code code = Code::success;
  std::int32_t tag = 0;
  Peer* peer = nullptr;
  Region* region = nullptr;
  Request* joined = nullptr;  // of an earlier fragment that moves with this one
  Buffer* buffer = nullptr;   // of a fin
  void* memory = nullptr;     // of a receive_buffer that was promised
  std::uint32_t position = 0; // of its entry in the ledger: receive_buffer
  std::size_t bytes = 0;
  RequestId id = 0;
};

// A put or get that a user has begun.
struct Transfer : base::ListNode<> {
  Buffer* buffer = nullptr;
  Request* request = nullptr; // if it has one
  Region* region = nullptr;
  void* local = nullptr;
  RemoteMemory remote;
  std::size_t bytes = 0;
  std::uint64_t id = 0; // the cookie
  bool is_get = false;
};

// A peer's memory, as announced by it and taken up here.
struct Buffer : base::ListNode<> {
  Peer* peer = nullptr;
  EntryKind kind = EntryKind::receive_buffer;
  std::int32_t tag = 0;
  RemoteMemory memory;
  std::size_t bytes = 0;
  std::uint64_t request = 0;  // the peer's, or the name of its place
  std::uint32_t position = 0; // of its entry in the ledger
  bool promised = false;      // it is a place of a ring (promise.h)
  Coverage put;
  std::uint32_t unposted = 0;   // transfers that the network has not accepted yet
  std::uint32_t unfinished = 0; // these and those under way
  bool failed = false;          // one of them
  bool fin_queued = false;
  bool fin_left = false;  // or the last fragment has told the same
  Request* fin = nullptr; // send_fin() was called
  BufferId id = 0;
};

struct OfPeer;
struct OfLedger;
// An entry in a ledger here that nobody has taken out. Linked by peer and over all peers, oldest
// first.
struct Arrived : base::ListNode<OfPeer>, base::ListNode<OfLedger> {
  Peer* peer = nullptr;
  std::uint32_t position = 0;
  std::uint32_t taken = 0; // of its uses, if it has several
  bool kept = false;       // it has left its ledger, and is here
  Entry entry;
};

// An entry on its way into a ledger of a peer, while there is no room.
struct Outgoing : base::ListNode<> {
  Entry entry;
  Request* leaves = nullptr;  // complete when it has left
  Buffer* finishes = nullptr; // over when it has left
};

// A message of a peer that fills a promised buffer, until its last fragment is there.
struct Coming {
  std::uint32_t place = 0; // its name
  std::byte* to = nullptr; // the next byte
  std::size_t left = 0;    // bytes
};

// A process that this one has talked to or heard from.
struct Peer {
  Rank rank = 0;
  std::size_t network = 0; // index
  engine::Transport* transport = nullptr;
  engine::Link* link = nullptr; // null until we write to it
  bool connected = false;
  bool failed = false;
  bool queued = false;  // in Core::busy_
  bool noting = false;  // a put of credits is under way
  RemoteMemory ledgers; // where we write

  struct Out {
    std::uint32_t written = 0;  // entries, ever
    std::uint32_t consumed = 0; // of them, as far as told
    base::List<Outgoing> waiting;
  };
  struct In {
    std::uint32_t arrived = 0;           // entries, ever
    std::uint32_t credited = 0;          // of them taken out, as the peer knows or will
    base::List<Arrived, OfPeer> kept;    // not taken out, and older than ...
    base::List<Arrived, OfPeer> untaken; // ... these, which are in the ledger
  };
  std::array<Out, ledger_count> out;
  std::array<In, ledger_count> in;
  std::unique_ptr<Slot[]> written; // our entries in the peer's ledgers, and the credits before them
  base::List<Transfer> unposted;
  base::List<Request> requests; // not complete
  base::List<Promise> promises; // to this peer
  Coming coming;
};

// What a producer said about data to come.
struct SendRequest {
  Rank producer;
  int tag;
  std::size_t bytes;
};

struct CoreCounters {
  std::uint64_t entries = 0;
  std::uint64_t filled = 0;
  std::uint64_t promised = 0;
  std::uint64_t copied = 0;
  std::uint64_t straight = 0;
  std::uint64_t joined = 0;
  std::uint64_t credits = 0;
  std::uint64_t ledger_full = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t bytes_put = 0;
  std::uint64_t bytes_got = 0;
};

// Gravel in one process: rendezvous whose parts are separate calls (Danalis et al. 2008). Announced
// memory, put, get and FIN; metadata go into the peer's ledgers, data from where they are to where
// they belong. Makes no system call, does not block, and moves only in calls and progress(). One
// caller at a time. What a call cannot do throws gravel::Error and changes nothing.
class Core final : engine::Sink {
 public:
  // `slots`: entries of each ledger of each peer, a power of two, the same in all processes. The
  // networks and `job` outlive the core; `ledgers_of` is asked at the first contact with a peer.
  Core(engine::Networks networks, const boot::Job& job, LedgersOf ledgers_of, std::uint32_t slots);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  // What the others need to write into ledgers here, by network.
  [[nodiscard]] RemoteMemory ledgers(std::size_t network) const { return ledger_regions_[network]; }
  [[nodiscard]] std::size_t ledger_bytes() const;

  void register_memory(void* memory, std::size_t bytes) { memory_.add(memory, bytes); }
  void unregister_memory(const void* memory) { memory_.remove(memory); }

  // ---- The process that has the memory. The request is complete when the FIN has come.

  RequestId post_receive_buffer(int producer, void* memory, std::size_t bytes, int tag);
  RequestId post_send_buffer(int consumer, const void* memory, std::size_t bytes, int tag);
  // Tells that data will come; complete when it has left.
  RequestId post_send_request(int consumer, std::size_t bytes, int tag);

  // The next `count` receive buffers that will be posted to this producer with this tag have so
  // many bytes: it may be told of them before, and their data be copied.
  void promise_receive_buffers(int producer, std::size_t bytes, int tag, std::uint64_t count);

  // ---- The process that moves the data.

  // Takes the oldest announcement of that kind, source and tag out of its ledger; nothing if there
  // is none yet.
  std::optional<BufferId> take_receive_buffer(int consumer, int tag);
  std::optional<BufferId> take_send_buffer(int producer, int tag);
  std::optional<SendRequest> take_send_request(int producer, int tag);

  // Moves a fragment: `offset` bytes into the announced buffer. Without a request of its own (then
  // 0 is returned) that of the FIN stands for it.
  enum class Asked : bool { no, yes };
  RequestId put(BufferId buffer, const void* memory, std::size_t bytes, std::size_t offset,
                Asked request = Asked::yes);
  RequestId get(BufferId buffer, void* memory, std::size_t bytes, std::size_t offset,
                Asked request = Asked::yes);
  // No more fragments: the peer is told once all are there, or was told by the put that filled the
  // buffer. It must not be used any more. For puts every byte of it must have been put. 0: all that
  // is over already.
  RequestId send_fin(BufferId buffer);

  // Valid until its FIN.
  [[nodiscard]] const Buffer& buffer(BufferId id) const;

  // ---- Requests.

  // Valid until it is finished. Throws Code::request if there is no such request.
  [[nodiscard]] Request& request(RequestId id) const;
  // Ends a complete request. Throws what it failed with.
  void finish(Request& request);
  // Nobody will wait for it.
  void release(RequestId id);

  // ---- Progress.

  // Delivers what has come, tries again what found no room. True if anything moved. Throws what the
  // process cannot go on after (Code::system).
  bool progress();
  [[nodiscard]] const engine::Networks& networks() const { return networks_; }
  // Something could leave if the network took it: it was busy, or a connection is being made.
  [[nodiscard]] bool must_progress() const { return !busy_.empty(); }
  // The next progress() moves something, whatever the network says.
  [[nodiscard]] bool holds_fragment() const { return held_ != nullptr; }
  [[nodiscard]] bool is_connecting() const;
  [[nodiscard]] bool has_lost(Rank rank) const {
    const auto found = peers_.find(rank);
    return found != peers_.end() && found->second->failed;
  }
  [[nodiscard]] bool knows(Rank rank) const { return peers_.find(rank) != peers_.end(); }
  // Everything that was begun here has left, and no data are under way.
  [[nodiscard]] bool at_rest() const;
  // Makes the network look whether the peer is still there, and reach it for that.
  void probe(Rank peer);

  // What is not finished, for the end: "2 requests, 1 buffer without FIN".
  [[nodiscard]] std::string unfinished() const;
  void list_counters(base::CounterList& list) const;

 private:
  friend class StateHash;

  // engine::Sink
  void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override;
  void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override;
  void on_first_fragment(Rank source, const std::byte* message, std::size_t bytes,
                         std::size_t rest) noexcept override;
  void on_next_fragment(Rank source, const std::byte* data, std::size_t bytes) noexcept override;
  void on_complete(std::uint64_t cookie, bool ok) noexcept override;
  void on_peer(Rank rank, engine::PeerState state) noexcept override;
  void on_failure(base::Error&& why) noexcept override { breakdown_.note(std::move(why)); }

  // core.cc: peers and requests
  Peer& peer(Rank rank);
  Peer& peer(int rank, const char* role);
  Peer& reach(int rank, const char* role);
  void reach(Peer& peer);
  void connect(Peer& peer);
  void check_tag(int tag, bool may_be_any) const;
  static void check_size(std::uint64_t size, const char* of);
  [[nodiscard]] Buffer& find_buffer(BufferId id) const;
  RequestId post_buffer(EntryKind kind, int to, const void* memory, std::size_t bytes, int tag);
  Request& make_request(RequestKind kind, Peer& peer, std::size_t bytes, int tag, Region* region);
  void complete(Request& request, Code code);
  void erase(Request& request);
  void fail_peer(Peer& peer);
  void queue(Peer& peer);
  [[nodiscard]] bool has_work(const Peer& peer) const;
  bool flush(Peer& peer);

  // ledgers.cc: entries out and in
  void announce(Peer& peer, Ledger ledger, const Entry& entry, Request* leaves, Buffer* finishes);
  [[nodiscard]] bool has_room(const Peer::Out& out) const;
  bool write_waiting(Peer& peer);
  bool write(Peer& peer, Ledger ledger, const Entry& entry);
  void end_exchange(Peer& peer, Request* over, bool failed);
  void end_filled(Peer& peer, std::uint32_t name);
  [[nodiscard]] std::uint32_t consumed(const Peer& peer, Ledger ledger) const;
  [[nodiscard]] Consumed all_consumed(const Peer& peer) const;
  static void note_credited(Peer& peer, const Consumed& credited);
  void learn(Peer& peer, const Consumed& credits);
  [[nodiscard]] bool owes_credits(const Peer& peer) const;
  bool tell_credits(Peer& peer);
  [[nodiscard]] const Entry& entry_of(const Arrived& arrived, Ledger ledger) const;
  void keep_all(Peer::In& in, Ledger ledger);
  void forget(Peer::In& in, Ledger ledger);
  void erase(Arrived& arrived);
  template <class List>
  Arrived* find(const List& untaken, Ledger ledger, EntryKind kind, int tag);
  Arrived* find_oldest(Ledger ledger, EntryKind kind, int source, int tag);
  void take_out(Arrived& found, std::uint32_t uses);
  std::optional<BufferId> take_buffer(Ledger ledger, EntryKind kind, int source, int tag);

  // promises.cc
  void make_ring(Promise& promise);
  void free_ring(const Promise& promise) noexcept;
  [[nodiscard]] std::uint32_t free_names(std::size_t places) const;
  [[nodiscard]] Promise* promise_of(int producer, int tag) const;
  void announce_places(Promise& promise);
  RequestId post_to_place(Promise& promise, Region* region, void* memory);
  void note_posted(Promise& promise);
  struct Named {
    Promise& promise;
    Promise::Place& place;
  };
  static Named find_place(Peer& from, std::uint32_t name);
  void end_place(Peer& from, std::uint32_t name, bool failed);
  static bool fill(Coming& coming, const std::byte* data, std::size_t bytes);
  void end_message(const Named& filled, const Coming& message);
  void deliver(const Named& filled);
  void end_use(const Named& over, Code code);
  void settle(Promise& promise);

  // transfers.cc
  RequestId begin(BufferId id, bool is_get, void* memory, std::size_t bytes, std::size_t offset,
                  Asked asked);
  [[nodiscard]] static bool is_full(const Buffer& buffer);
  [[nodiscard]] static std::uint32_t filling_notification(const Transfer& transfer);
  [[nodiscard]] bool joins_held(BufferId buffer, const void* memory, std::size_t bytes,
                                std::size_t offset) const;
  void extend_held(std::size_t bytes, std::size_t offset);
  void note_put(Buffer& buffer, std::size_t offset, std::size_t bytes);
  void note_told(Buffer& buffer);
  [[nodiscard]] static std::size_t joined_bytes(const Buffer& buffer);
  [[nodiscard]] static bool may_wait(const Transfer& transfer);
  bool release_held();
  bool post(Transfer& transfer);
  static engine::Posted hand_over(const Transfer& transfer, std::uint32_t& notification);
  void end(Transfer& transfer, bool ok);
  [[nodiscard]] static bool travel_as_message(const Buffer& buffer, std::size_t bytes);
  static engine::Posted send_whole(const Buffer& buffer, const void* memory);
  bool send_at_once(Buffer& buffer, const void* memory, std::size_t bytes);
  void erase(Buffer& buffer);
  void advance_fin(Buffer& buffer);

  const engine::Networks networks_;
  std::vector<engine::Transport*> network_list_;
  const LedgersOf ledgers_of_;
  const Rank rank_, size_;
  const Layout layout_;
  std::unique_ptr<Slot[]> ledgers_;
  std::vector<RemoteMemory> ledger_regions_; // by network
  MemoryTable memory_;

  // Before the lists that their objects stand in.
  base::Slab<Arrived> arrived_slab_;
  base::Slab<Outgoing> outgoing_slab_;
  base::Slab<Request> request_slab_;
  base::IdTable<Request> request_ids_;
  base::Slab<Transfer> transfer_slab_;
  base::IdTable<Transfer> transfer_ids_;
  base::Slab<Buffer> buffer_slab_;
  base::IdTable<Buffer> buffer_ids_;
  base::List<Buffer> buffers_; // all: what they hold is freed with the core

  std::unordered_map<Rank, std::unique_ptr<Peer>> peers_;
  Peer* recent_ = nullptr;                                     // that was asked for last
  std::map<std::uint32_t, std::unique_ptr<Promise>> promises_; // by name, if not fulfilled
  std::size_t ring_memory_ = 0;                                // bytes of their rings
  std::vector<Peer*> busy_;                                    // have something that found no room
  std::array<base::List<Arrived, OfLedger>, ledger_count> arrived_;
  Transfer* held_ =
      nullptr;    // a short fragment that waits for the next one, in its peer's `unposted`
  Rank lost_ = 0; // peers that are gone
  engine::Breakdown breakdown_;
  CoreCounters counters_;
};

} // namespace macadam::gravel
