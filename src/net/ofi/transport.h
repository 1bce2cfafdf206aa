// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/settings.h"
#include "base/slab.h"
#include "boot/processes.h"
#include "engine/breakdown.h"
#include "engine/self_queue.h"
#include "engine/transport.h"
#include "engine/yielding.h"
#include "mem/buffer_pool.h"
#include "mem/heap.h"
#include "mem/registration_cache.h"
#include "net/ofi/fabric.h"
#include "net/ofi/permits.h"
#include "net/ofi/waiting.h"
#include "net/ofi/wire.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace macadam::net::ofi {

using engine::Posted;
using engine::Rank;
using engine::RemoteMemory;
using engine::Sink;

struct Route;

struct OfRoute {}; // the list of a route's transfers

// A put, a get, or the payload of a message that is not copied, from its post to its completion.
// What does not fit the provider's queue waits in Route::unposted.
struct Transfer : base::ListNode<>, base::ListNode<OfRoute> {
  Route* route = nullptr;
  std::uint64_t cookie = 0;
  std::byte* local = nullptr;
  RemoteMemory remote;
  std::size_t bytes = 0;
  std::size_t posted = 0;
  unsigned under_way = 0; // operations of the provider's
  std::uint32_t notification = 0;
  bool is_get = false;
  bool noticed = false; // the notification was sent
  bool failed = false;
  mem::Registration* registration = nullptr; // of `local`, if it needs one
  void* descriptor = nullptr;                // ... its name for the provider
};

// What waits for an answer of the peer's process: a flush, or an atomic.
struct Inquiry {
  std::uint64_t cookie = 0;
  std::uint64_t* result = nullptr; // of an atomic
  bool is_probe = false;           // nobody waits for it
};

// A message that cannot be taken yet.
struct KeptMessage {
  wire::Header header;
  std::vector<std::byte> body;
};

// The way to one process. There are no connections here: the provider may make some.
struct Route : engine::Link {
  enum class State : std::uint8_t { unknown, waiting, open, broken };

  // unknown: this process sends nothing there yet. waiting: its address is not published yet,
  // or this process gives way (gives_way()).
  State state = State::unknown;
  bool wanted = false;     // by connect(): a failure is told
  bool promised = false;   // Sink::on_peer() once it is open
  std::uint64_t token = 0; // of our messages
  std::uint64_t their_token = 0;
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  unsigned under_way = 0; // operations of the provider's
  unsigned unplaced = 0;  // puts that messages must not pass
  bool talked = false;    // something has come from there, or was taken
  double open_at = 0;     // when this process gives way no longer, in seconds; 0: it has not begun
  double refused_since = 0;  // nothing is under way, and the provider takes nothing; seconds, or 0
  double probe_at = 0;       // when to ask again whether it is there, in seconds
  double probe_patience = 0; // seconds it has for the answer; 0: it owes none
  double ended_since = 0;    // that its process has ended is known since, in seconds; 0: it is not
  std::uint32_t credits = 0; // messages that may be sent
  std::uint32_t taken = 0;   // of its messages, since it was told
  std::uint32_t next_to_send = 0; // number of a message
  std::uint32_t next_to_take = 0; // ... of its
  std::vector<KeptMessage> ahead; // of its that have overtaken others
  base::List<Transfer> unposted;
  base::List<Transfer, OfRoute> transfers;
  std::unordered_map<std::uint64_t, Inquiry> inquiries; // by id
  std::vector<std::vector<std::byte>> answers;          // that found no room, oldest first
  std::unique_ptr<Permits> permits;                     // null: there never was one
  std::unique_ptr<const std::string> reason; // why it is reached no more, as the network says
};

struct Counters {
  std::uint64_t sent = 0;
  std::uint64_t injected = 0;
  std::uint64_t busy = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t atomics = 0;
  std::uint64_t served = 0;
  std::uint64_t strangers = 0;
  std::uint64_t broken = 0;
  std::uint64_t routes = 0;
  std::uint64_t sleeps = 0;
};

// A network of libfabric's, on a reliable datagram endpoint (FI_EP_RDM): any network that has a
// provider, TCP at last. Nothing is kept for a peer before the first message to it. docs/ofi.md
// tells what a provider must promise, and what is done where it promises less.
class OfiTransport final : public engine::Transport, Attended {
 public:
  // All arguments outlive the transport; `invalidation` may be null. A process that has another
  // network too sleeps on that one, the `sleeper`. Throws base::Error if libfabric has nothing that
  // is as `wish` says.
  OfiTransport(const boot::Processes& processes, const base::Settings& settings, const Wish& wish,
               mem::InvalidationSource* invalidation, engine::Transport* sleeper = nullptr);
  OfiTransport(const OfiTransport&) = delete;
  OfiTransport& operator=(const OfiTransport&) = delete;
  ~OfiTransport() override;

  // To be published, so that peers find us.
  [[nodiscard]] const wire::Endpoint& endpoint() const { return fabric_.address(); }
  // "tcp;ofi_rxm on lo 127.0.0.1"
  [[nodiscard]] const std::string& provider() const { return fabric_.name(); }
  // One more line for fallbacks().
  void add_note(std::string note) {
    const std::scoped_lock guard(lock_);
    notes_.push_back(std::move(note));
  }

  [[nodiscard]] const engine::Limits& limits() const noexcept override { return limits_; }
  [[nodiscard]] bool reaches(Rank peer) const noexcept override {
    return sleeper_ == nullptr || !processes_.is_local(peer);
  }
  engine::Link& connect(Rank peer, engine::PeerState& state) override;
  [[nodiscard]] std::string why_failed(const engine::Link& link) const override;
  bool forget(Rank first, Rank processes) override;
  Posted send(engine::Link& link, const void* header, std::size_t header_bytes, const void* payload,
              std::size_t payload_bytes) noexcept override;
  Posted send_uncopied(engine::Link& link, const void* header, std::size_t header_bytes,
                       const void* payload, std::size_t payload_bytes,
                       std::uint64_t cookie) noexcept override;
  Posted put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  Posted put_notified(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie, std::uint32_t notification) noexcept override;
  Posted get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  RemoteMemory register_cached(void* memory, std::size_t bytes) override;
  void release_cached(RemoteMemory memory) noexcept override;
  std::uint64_t issue(engine::Link& link) noexcept override;
  bool use(engine::Link& link, std::uint64_t permit) noexcept override;
  engine::Revoked revoke(engine::Link& link, std::uint64_t permit) noexcept override;
  void discard(engine::Link& link, std::uint64_t permit) noexcept override;
  RemoteMemory register_region(void* memory, std::size_t bytes) override;
  void deregister_region(RemoteMemory memory) noexcept override;
  Posted flush(engine::Link& link, std::uint64_t cookie) noexcept override;
  Posted atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                std::uint64_t* result, std::uint64_t cookie) noexcept override;
  void* allocate(std::size_t bytes) override {
    const std::scoped_lock guard(lock_);
    return heap_.allocate(bytes);
  }
  [[nodiscard]] std::string why_not_allocated() const override { return heap_.refusal(); }
  void free(void* memory) noexcept override {
    const std::scoped_lock guard(lock_);
    heap_.free(memory);
  }
  bool poll(Sink& sink) noexcept override;
  void abandon(Sink& sink) noexcept override;
  bool drain() override;
  bool idle(unsigned fruitless, unsigned longest_us) override;
  void resume() override {}
  void wake() override { waiting_.wake(); }
  void arm() override { arm_wanted_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] unsigned longest_sleep_us() const override;
  [[nodiscard]] double now() const override;
  void list_counters(base::CounterList& list) const override;
  [[nodiscard]] std::vector<std::string> fallbacks() const override {
    const std::scoped_lock guard(lock_);
    return notes_;
  }
  [[nodiscard]] std::size_t memory_bytes() const override;

 private:
  // What the provider has been given and not completed yet. It names it by `room`, in which it may
  // keep what it likes.
  struct Operation {
    fi_context2 room = {};
    enum class Kind : std::uint8_t { receive, send, put_small, transfer } kind = Kind::receive;
    Route* route = nullptr;
    mem::Buffer* buffer = nullptr; // that it holds
    Transfer* transfer = nullptr;
  };

  // Of a message that has come into a buffer of ours; no route: it does not prove whose it is.
  struct Sender {
    wire::Header header;
    Route* route = nullptr;
  };

  // Attended
  [[nodiscard]] std::uint64_t polls() const noexcept override {
    return polls_.load(std::memory_order_relaxed);
  }
  bool attend() noexcept override;

  // transport.cc
  Route& route_to(Rank peer);
  void open(Route& route);
  bool try_open(Route& route);
  bool gives_way(Route& route);
  [[nodiscard]] bool owes_credits(const Route& route) const { return route.taken >= window_ / 2; }
  static void note_talk(Route& route) {
    if (!std::exchange(route.talked, true)) route.refused_since = 0; // that there was no connection
  }
  void add_credits(Route& route, std::uint32_t credits) const {
    route.credits = std::min(route.credits + credits, window_);
  }
  [[nodiscard]] bool is_self(const engine::Link& link) const { return link.rank == rank_; }
  [[nodiscard]] static bool can_post(const Route& route) {
    return route.state == Route::State::open && route.unposted.empty() && route.answers.empty();
  }
  // A message that must find there what was put before.
  [[nodiscard]] static bool can_send(const Route& route) {
    return can_post(route) && route.credits != 0 && route.unplaced == 0;
  }
  Posted refuse(Route& route);
  Posted break_down() noexcept;
  Posted post_message(Route& route, wire::Kind kind, const void* header, std::size_t header_bytes,
                      const void* payload, std::size_t payload_bytes, Transfer* uncopied = nullptr);
  // Of an operation just handed over: true if the provider has taken it. If it never will, the
  // route breaks with the next poll().
  bool is_taken(long result, Operation& operation);
  Operation* begin(Operation::Kind kind, Route& route);
  void end(Operation& operation);
  void note_failure(Route& route, std::string reason);
  void note_refusal(Route& route);

  // progress.cc
  bool look(Sink& sink);
  bool look_with_chores(Sink& sink);
  bool read_completions(Sink& sink);
  bool deliver_held(Sink& sink);
  bool serve_at_once(Operation& operation, const Sender& sender, std::size_t bytes);
  void reply(Route& route, wire::Kind kind, const std::byte* body, std::size_t bytes);
  void count_taken(Route& route, wire::Kind kind);
  void retry_answers();
  void on_completion(const fi_cq_msg_entry& entry, Sink& sink);
  bool keep_error();
  void end_failed(Sink& sink);
  void on_receive(Operation& operation, std::size_t bytes, Sink& sink);
  void keep_early(const wire::Header& header, const std::byte* memory, std::size_t bytes);
  bool take_early(Sink& sink);
  void take(Route& route, const wire::Header& header, const std::byte* body, std::size_t bytes,
            Sink& sink);
  void take_next(Route& route, wire::Kind kind, const std::byte* body, std::size_t bytes,
                 Sink& sink);
  void take_ahead(Route& route, Sink& sink);
  void deliver(Route& route, wire::Kind kind, const std::byte* body, std::size_t bytes, Sink& sink);
  void owe(Route& route);
  Route* find_source(const wire::Header& header);
  Sender sender_of(const Operation& receive, std::size_t bytes);
  void post_receive(Operation& operation);
  void post_spare_receive();
  void answer(Route& route, wire::Kind kind, const void* body, std::size_t bytes);
  bool send_answers(Route& route);
  void serve(Route& route, const wire::AtomicRequest& request);
  void end_inquiry(Route& route, std::uint64_t id, const std::uint64_t* value, bool ok, Sink& sink);
  bool open_waiting(Sink& sink);
  template <class Which>
  std::vector<Route*> routes_with(Which&& which) {
    std::vector<Route*> found;
    for (const auto& [rank, route] : routes_) {
      if (which(*route)) found.push_back(route.get());
    }
    return found;
  }
  bool look_for_ended(Sink& sink);
  void probe(Route& route, double time);
  void break_off(Route& route, Sink& sink);
  void fail_pending(Route& route, Sink& sink);

  // permits.cc
  static Permits* permits_of(Route& route) noexcept;

  // transfer.cc
  Posted transfer(Route& route, bool is_get, void* local, RemoteMemory remote, std::size_t bytes,
                  std::uint64_t cookie, std::uint32_t notification) noexcept;
  bool put_small(Route& route, const void* local, RemoteMemory target, std::size_t bytes);
  long post_access(Route& route, bool is_get, std::byte* local, void* descriptor,
                   RemoteMemory remote, std::size_t bytes, std::uint64_t flags,
                   Operation& operation);
  bool advance(Transfer& transfer);
  void advance_all(Route& route, Sink& sink);
  void finish(Transfer& transfer, Sink& sink);
  [[nodiscard]] static bool is_finished(const Transfer& transfer) {
    return transfer.under_way == 0 &&
           (transfer.failed || (transfer.posted == transfer.bytes &&
                                (transfer.notification == 0 || transfer.noticed)));
  }
  [[nodiscard]] const Region* region_of(const void* memory) const {
    return static_cast<const Region*>(heap_.find(memory));
  }
  static std::uint64_t change(std::byte* word, const engine::Atomic& what);

  // Of all that the progress thread touches too, which is most. The program holds it in each call,
  // and a sink may call again; the thread only takes it when it is free.
  mutable std::recursive_mutex lock_;
  const boot::Processes& processes_;
  engine::Transport* const sleeper_; // null: this network
  const Rank rank_;
  std::vector<std::string> notes_; // for the report
  Fabric fabric_;
  const engine::Limits limits_;
  const std::uint32_t window_;     // messages under way to a peer
  const std::size_t inject_bytes_; // longest message that is sent without a buffer
  engine::Yielding yielding_;
  Waiting waiting_;
  mem::BufferPool pool_;
  mem::Heap heap_;
  mem::RegistrationCache cache_;
  base::Slab<Operation> operations_;
  base::Slab<Transfer> transfers_; // before the routes, in whose lists its objects stand
  std::unordered_map<std::uint64_t, std::unique_ptr<mem::MemoryRegion>> exposed_; // by key
  std::unordered_map<Rank, std::unique_ptr<Route>> routes_;
  Route* last_source_ = nullptr;
  boot::ProcessName last_name_; // its

  // Something for poll() to do besides reading completions.
  bool chores_ = false;
  bool refused_ = false;            // an operation, since the last poll()
  std::vector<Route*> unpublished_; // wait for an address
  std::vector<Route*> breaking_;
  std::vector<Route*> answering_;    // have answers, or owe credits
  std::vector<Operation*> unposted_; // receives
  struct Failed {
    Operation* operation = nullptr;
    int error = 0; // libfabric's
  };
  std::vector<KeptMessage> early_;    // of jobs that this process has not met yet
  std::vector<fi_cq_msg_entry> held_; // what the thread has taken, for the next poll()
  std::vector<Failed> failed_;        // the same; no receives
  double look_again_at_ = 0;          // whether anybody listens where a peer was, in seconds
  unsigned spare_receives_ = 0;       // more than there shall be
  engine::SelfQueue to_self_;         // messages and notifications
  std::uint64_t inquiries_ = 0;       // ever made
  Route self_;
  engine::Breakdown breakdown_;
  std::atomic<bool> arm_wanted_ = false; // the next poll() prepares a sleep
  std::atomic<bool> armed_ = false;      // ... and has found nothing
  std::atomic<bool> hurried_ = false;    // something has to be tried again soon
  bool sleeps_ = false;                  // armed, and not polled since
  std::atomic<std::uint64_t> polls_ = 0;
  Counters counters_;
};

} // namespace macadam::net::ofi
