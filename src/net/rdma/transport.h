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
#include "net/rdma/completion_queues.h"
#include "net/rdma/connection.h"
#include "net/rdma/connector.h"
#include "net/rdma/device.h"
#include "net/rdma/model.h"
#include "net/rdma/number_table.h"
#include "net/rdma/rails.h"
#include "net/rdma/receiver.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace macadam::net::rdma {

using engine::Posted;
using engine::RemoteMemory;
using engine::Sink;

struct Counters {
  std::uint64_t sent = 0;
  std::uint64_t sent_inline = 0;
  std::uint64_t busy = 0;
  std::uint64_t credit_notes = 0;
  std::uint64_t puts = 0;
  std::uint64_t gets = 0;
  std::uint64_t atomics = 0;
  std::uint64_t bounced = 0;
  std::uint64_t gathered = 0;
  std::uint64_t split = 0;
  std::uint64_t evicted = 0;
  std::uint64_t no_receiver = 0;
  std::uint64_t broken = 0;
};

// Longer puts and gets are cut in fragments, which every device takes and whose lengths fit their
// field.
inline std::size_t longest_fragment(const DeviceLimits& device) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(device.message, std::uint64_t{1} << 30));
}

// RemoteMemory::key: the device's key below, the generation of the registration above; or the key
// of a second port (rails.h).
inline std::uint32_t device_key(RemoteMemory memory) {
  return static_cast<std::uint32_t>(memory.key);
}

// A network of RDMA adapters (or the simulated one). One instance a process. Messages go through
// reliable connections made at first use; how they are received is a strategy (receiver.h). Puts
// and gets are RDMA writes and reads, in one queue with the messages, which keeps them in order.
class RdmaTransport : public engine::Transport, EventSink {
 public:
  // Then this process listens at endpoint(). All arguments outlive the transport; `invalidation`
  // may be null, then no user memory stays registered after its use. A process that has another
  // network too sleeps on that one, the `sleeper`: then idle() is not called, and the progress
  // thread wakes it. Without `permits` none may be issued to this process or by it, nor is memory
  // registered for them. By `second`, another port like `device` that this process has for itself,
  // go halves of long puts and gets. Throws base::Error if the device cannot do what the settings
  // ask for.
  RdmaTransport(Device& device, const boot::Processes& processes, const base::Settings& settings,
                mem::InvalidationSource* invalidation, engine::Transport* sleeper = nullptr,
                bool permits = true, Device* second = nullptr);
  RdmaTransport(const RdmaTransport&) = delete;
  RdmaTransport& operator=(const RdmaTransport&) = delete;
  // What has not arrived (see drain()) is lost.
  ~RdmaTransport() override;

  // Before anything else, where it is used: what a short message costs (measure.h), against which
  // copies are weighed (Limits::cheap_copy). A put with a notification is copied too, and its
  // memory free at once, if both copies cost less than that. Without, no copy is cheap.
  void set_message_cost(double seconds) {
    const auto copied = static_cast<std::size_t>(device_.limits().copy_bytes_per_s * seconds);
    limits_.cheap_copy = std::min(limits_.eager, copied);
    copied_put_ = std::min(limits_.eager, copied / 2);
  }

  // To be published, so that peers find us.
  [[nodiscard]] wire::Endpoint endpoint() const { return connector_->endpoint(); }

  [[nodiscard]] const engine::Limits& limits() const noexcept override { return limits_; }
  [[nodiscard]] bool reaches(Rank peer) const noexcept override {
    return sleeper_ == nullptr || !processes_.is_local(peer);
  }
  engine::Link& connect(Rank peer, engine::PeerState& state) override;
  [[nodiscard]] std::string why_failed(const engine::Link& link) const override;
  bool forget(Rank first, Rank processes) override;
  // With static connections (rdma_connections `all` or `serial`): to every rank that goes by RDMA.
  bool connect_at_start() override;
  Posted send(engine::Link& link, const void* header, std::size_t header_bytes, const void* payload,
              std::size_t payload_bytes) noexcept override;
  Posted put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  Posted put_notified(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie, std::uint32_t notification) noexcept override;
  Posted get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override;
  Posted write(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
               std::uint64_t cookie) noexcept override;
  Posted read(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
              std::uint64_t cookie) noexcept override;
  RemoteMemory register_cached(void* memory, std::size_t bytes) override;
  std::uint64_t issue(engine::Link& link) noexcept override;
  bool use(engine::Link& issuer, std::uint64_t permit) noexcept override;
  engine::Revoked revoke(engine::Link& link, std::uint64_t permit) noexcept override;
  void discard(engine::Link& link, std::uint64_t permit) noexcept override;
  void release_cached(RemoteMemory memory) noexcept override;
  RemoteMemory register_region(void* memory, std::size_t bytes) override;
  void deregister_region(RemoteMemory memory) noexcept override;
  Posted write_blocks(engine::Link& link, std::span<const engine::Block> local,
                      std::span<const engine::Block> target, std::uint64_t key,
                      std::uint64_t cookie, engine::Block around) noexcept override;
  Posted read_blocks(engine::Link& link, std::span<const engine::Block> local,
                     std::span<const engine::Block> target, std::uint64_t key, std::uint64_t cookie,
                     engine::Block around) noexcept override;
  Posted flush(engine::Link& link, std::uint64_t cookie) noexcept override;
  Posted atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                std::uint64_t* result, std::uint64_t cookie) noexcept override;
  void* allocate(std::size_t bytes) override { return heap_.allocate(bytes); }
  [[nodiscard]] std::string why_not_allocated() const override { return heap_.refusal(); }
  void free(void* memory) noexcept override { heap_.free(memory); }
  bool poll(Sink& sink) noexcept override;
  void abandon(Sink& sink) noexcept override;
  bool drain() override;
  bool leave() override;
  bool idle(unsigned fruitless, unsigned longest_us) override;
  void resume() override {}
  void wake() override { device_.wake(); }
  void arm() override { arm_wanted_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] unsigned longest_sleep_us() const override;
  [[nodiscard]] double now() const override { return device_.now(); }
  void list_counters(base::CounterList& list) const override;
  [[nodiscard]] std::vector<std::string> fallbacks() const override { return fallbacks_; }
  [[nodiscard]] std::size_t memory_bytes() const override;
  [[nodiscard]] std::vector<engine::NetworkEvent> history() const override;

  // Whether a wait may end in a sleep: not if what comes is found in memory, which ends none.
  [[nodiscard]] bool sleeps() const { return !settings_.last_byte && !polls_rings_; }

  // Connections open now.
  [[nodiscard]] std::size_t connections() const { return connector_->used(); }

  // What is in use, for tests: at rest, nothing for sends, puts and gets, and all receives there.
  struct InUse {
    std::size_t buffers = 0;       // of the pool, for sends
    std::size_t receives = 0;      // of the pool, for receives
    std::size_t transfers = 0;     // puts and gets, but to peers that have left
    std::size_t registrations = 0; // regions of user memory
    std::size_t credits = 0;       // of all connections: that we have, and that we owe to the peer
    std::size_t windows = 0;       // ... that peers have given us
  };
  [[nodiscard]] InUse in_use() const;

 private:
  // EventSink: on the device's thread.
  void on_limit(SharedReceiveQueue&) noexcept override;
  void on_completions(CompletionQueue&) noexcept override;
  void on_failure(std::uint32_t queue_pair, const std::string& reason) noexcept override;

  // transport.cc: messages
  // Nothing is to go before, and there is room for a request.
  static bool can_post(const Connection& connection) {
    return connection.phase == Phase::open && connection.unposted.empty() &&
           connection.sends.room() != 0;
  }
  Posted send_to_self(const void* header, std::size_t header_bytes, const void* payload,
                      std::size_t payload_bytes);
  Posted refuse(Connection& connection);
  Posted break_down() noexcept;
  Buffer* take_buffer();
  Buffer* copy_to_buffer(const void* header, std::size_t header_bytes, const void* payload,
                         std::size_t payload_bytes);
  [[gnu::always_inline]] void post(Connection& connection, SendWork& work, Buffer* buffer,
                                   Transfer* transfer);
  [[noreturn, gnu::cold]] static void fail_full(const Connection& connection);
  bool post_note(Connection& connection, wire::Note note, std::span<const std::byte> payload = {});
  void write_note(Connection& connection, wire::Note note, std::size_t bytes, bool signalled);
  static void set_tail(std::byte* tail, std::size_t tail_bytes, wire::Note note,
                       std::size_t message_bytes);
  void post_flush(Connection& connection);
  [[gnu::noinline]] bool spin_or_sleep(unsigned fruitless, unsigned longest_us);
  bool is_self(const engine::Link& link) const { return link.rank == rank_; }

  // progress.cc: what completes and what follows from it
  [[gnu::always_inline]] bool look(Sink& sink);
  [[gnu::always_inline]] bool poll_arrivals(Sink& sink);
  [[gnu::noinline]] bool poll_all(Sink& sink);
  [[gnu::noinline]] bool poll_queues(Sink& sink);
  [[gnu::always_inline]] bool poll_queue(CompletionQueue& queue, Sink& sink);
  [[gnu::noinline]] bool poll_rings(Sink& sink);
  [[gnu::noinline]] bool read_ring(Connection& connection, std::uint32_t most, Sink& sink);
  void begin_to_look(Connection& connection);
  void end_to_look(Connection& connection);
  [[gnu::cold]] void on_ring_note(Connection& connection, const Completion& completion,
                                  const wire::Note& note);
  void deliver_batch(Sink& sink);
  [[gnu::always_inline]] void on_completion(const Completion& completion, Sink& sink);
  [[gnu::cold]] void on_odd_completion(const Completion& completion, Connection* connection,
                                       Sink& sink);
  static const char* text_of(WorkStatus status);
  static bool is_answer_to_close(const Connection& connection, std::uint32_t sequence);
  [[gnu::always_inline]] void on_receive(Connection& connection, const Completion& completion,
                                         Sink& sink);
  void deliver(Connection& connection, std::byte* message, std::size_t bytes, wire::NoteKind kind,
               Sink& sink);
  void retire(Connection& connection, std::uint32_t sequence, Sink& sink);
  void owe(Connection* connection);
  bool pay(Connection& connection);
  [[nodiscard]] bool owes() const {
    return !owing_.empty() || !closing_.empty() || connector_->waiting() != 0;
  }
  // Something waits for the completion of a send.
  [[nodiscard]] bool awaits_sends() const {
    return transfer_slab_.live() != 0 || !closing_.empty() || !dead_.empty();
  }
  bool settle();
  void arm_queues();

  // lifecycle.cc: connections opened, closed, evicted, broken
  bool take_state_events(Sink& sink);
  void apply(const StateEvent& state_event, Sink& sink);
  void open(Connection& connection, Sink& sink);
  void begin_close(Connection& connection);
  bool continue_close(Connection& connection);
  void make_room();
  void evict(double now);
  void break_off(Connection& connection, const std::string& reason, Sink& sink);
  bool look_for_ended(Sink& sink);
  void end_broken(Connection& connection, Sink& sink);
  [[nodiscard]] bool connects_at_start(Rank peer) const { return peer != rank_ && reaches(peer); }
  [[nodiscard]] Rank connections_at_start() const;
  bool connect_at_once();
  bool connect_in_turn();
  [[nodiscard]] bool is_up(const Connection& connection) const;

  // split.cc: puts and gets by two ports
  [[gnu::cold]] Rails::Half* half_of(const Connection& connection, RemoteMemory remote) const;
  bool nothing_to_pass(Connection& connection, Rails::Half& half, bool is_get);
  [[gnu::cold]] std::optional<Posted> try_split(Connection& connection, bool is_get, void* local,
                                                RemoteMemory remote, std::size_t bytes,
                                                std::uint64_t cookie, bool ordered);
  [[gnu::cold]] bool poll_second(Sink& sink);
  void on_second(const Completion& completion, Sink& sink);
  void end_split_gets(const Connection& connection, Sink& sink);
  // What memory that peers reach is registered with.
  mem::Registrar& registrar() {
    return rails_ != nullptr ? static_cast<mem::Registrar&>(*rails_) : device_;
  }

  // transfer.cc: puts and gets
  Posted move(Connection& connection, bool is_get, void* local, RemoteMemory remote,
              std::size_t bytes, std::uint64_t cookie, bool ordered) noexcept;
  Posted transfer(Connection& connection, bool is_get, void* local, RemoteMemory remote,
                  std::size_t bytes, std::uint64_t cookie, std::uint32_t notification) noexcept;
  Posted transfer_blocks(engine::Link& link, bool is_get, std::span<const engine::Block> local,
                         RemoteMemory remote, std::uint64_t cookie, engine::Block around) noexcept;
  bool put_small(Connection& connection, const void* local, RemoteMemory target, std::size_t bytes,
                 std::uint32_t notification);
  // Requests that a put's last fragment takes.
  static std::uint32_t requests(const Connection& connection, std::uint32_t notification) {
    return notification != 0 && connection.peer_polls() ? 2 : 1;
  }
  void add_notification(Connection& connection, SendWork& work, std::uint32_t notification);
  void tell_polling(Connection& connection, std::uint32_t notification, std::size_t bytes);
  bool post_fragments(Transfer& transfer);
  void on_posted(Transfer& transfer, Sink& sink);
  // permits.cc
  Permits& permits_of(engine::Link& link);
  void ask(Connection& connection, Permits& permits, unsigned at, std::uint64_t number);

  // Messages wait until such a put is complete, as the device might place it after them.
  [[nodiscard]] bool may_be_passed(bool is_get, std::size_t bytes,
                                   std::uint32_t notification) const {
    return !limits_.orders_puts && !is_get && bytes != 0 && notification == 0;
  }
  Transfer* begin_transfer(Connection& connection, std::uint64_t cookie) noexcept;
  Transfer* begin_move(Connection& connection, bool is_get, std::byte* local, RemoteMemory remote,
                       std::size_t bytes, mem::Registration* registration, std::uint64_t cookie,
                       std::uint32_t notification) noexcept;
  void finish(Transfer& transfer, bool ok, Sink& sink);

  Device& device_;
  const boot::Processes& processes_;
  const base::Settings& settings_;
  engine::Transport* const sleeper_; // null: this network
  const Rank rank_;
  const Rank job_size_; // of our own job, whose ranks come first
  Rank at_start_ = 0;   // where connect_at_start() goes on
  std::vector<std::string> fallbacks_;
  const model::Shape shape_;
  engine::Limits limits_;
  std::size_t copied_put_ = 0; // bytes
  engine::Yielding yielding_;

  const std::unique_ptr<Rails> rails_; // null: there is no second port
  const std::size_t split_from_;       // bytes
  BufferPool pool_;
  mem::RegistrationCache cache_;
  mem::PreferredRegistrar preferred_, preferred_by_device_; // the application thread's
  mem::Heap heap_;
  std::unique_ptr<Receiver> receiver_;
  CompletionQueue* arrivals_ = nullptr; // the receiver's; null: they complete with the sends
  bool polls_rings_ = false;            // ... or are found in memory
  bool merges_ = false;                 // ... or both
  CompletionQueues queues_;
  base::Slab<Transfer> transfer_slab_; // before the connections, in whose lists its objects stand
  std::unique_ptr<Connector> connector_;

  NumberTable numbers_;
  // Something for poll() to do besides looking for arrivals: one of the next five, or a transfer.
  bool chores_ = false;
  std::deque<StateEvent> state_events_; // taken and not applied yet
  engine::SelfQueue to_self_;           // messages and notifications
  std::vector<Connection*> owing_;      // notes (Receiver::due())
  std::vector<Connection*> closing_;    // in Phase::closing
  std::vector<Connection*> rings_;      // open ones whose rings are looked at
  std::vector<Connection*> dead_;       // failed queue pairs whose completions may still come
  std::uint64_t clock_ = 0;             // counts uses of connections
  std::unordered_map<std::uint64_t, std::unique_ptr<MemoryRegion>> regions_; // by packed key
  std::uint32_t region_generation_ = 0;                                      // ever made

  // Completions taken from a queue and not handled yet.
  std::array<Completion, 16> batch_;
  std::size_t batch_at_ = 0;
  std::size_t batch_size_ = 0;

  engine::Link self_;

  engine::Breakdown breakdown_;
  int unseen_limit_ = 1;                 // polls without a look for completions of sends
  int unseen_left_ = 1;                  // ... until the next look
  unsigned unqueued_polls_ = 0;          // one after the other in which only rings were looked at
  std::uint32_t unsignalled_ = 0;        // of all connections (SendQueue)
  std::atomic<bool> arm_wanted_ = false; // the next poll() arms the queues first
  std::atomic<bool> armed_ = false;      // ... and has found nothing: a sleep would be woken
  std::atomic<bool> has_rings_ = false;  // some are looked at
  Counters counters_;

  // What the progress thread has done, the latest of it, if there is to be a trace.
  static constexpr std::size_t longest_history = 4096;
  mutable std::mutex history_mutex_;
  std::vector<engine::NetworkEvent> history_;
  std::size_t next_in_history_ = 0;
};

// Posts one request, which ends with a buffer or a transfer or neither; there is room for it. What
// holds memory is signalled, so that it comes back soon, but for a few buffers: a completion costs
// as much as all else that we do for a message. Others are signalled every quarter of the queue, so
// that the queue never stands still.
inline void RdmaTransport::post(Connection& connection, SendWork& work, Buffer* buffer,
                                Transfer* transfer) {
  SendQueue& queue = connection.sends;
  work.id = std::uint64_t{queue.posted} << 1;
  work.signalled = work.signalled || transfer != nullptr ||
                   (buffer != nullptr && unsignalled_ == model::unsignalled_buffers) ||
                   queue.posted + 1 - queue.signalled >= queue.depth / 4;
  if (connection.queue_pair->post({&work, 1}) == 0) [[unlikely]]
    fail_full(connection);
  if (work.signalled) {
    queue.signalled = queue.posted + 1;
    unsignalled_ -= std::exchange(queue.unsignalled, 0);
  } else if (buffer != nullptr) {
    ++queue.unsignalled;
    ++unsignalled_;
  }
  if (merges_ && takes_receive(work.operation)) [[unlikely]]
    ++connection.window->receives_taken;
  if (transfer != nullptr)
    queue.pending[queue.last++ % queue.depth] = {queue.posted, true, {.transfer = transfer}};
  else if (buffer != nullptr)
    queue.pending[queue.last++ % queue.depth] = {queue.posted, false, {.buffer = buffer}};
  ++queue.posted;
}

} // namespace macadam::net::rdma
