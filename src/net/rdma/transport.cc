// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/transport.h"

#include "base/copy.h"
#include "base/error.h"
#include "base/try_push.h"
#include "engine/wire.h"
#include "net/rdma/credit.h"
#include "net/rdma/mixed.h"
#include "net/rdma/model.h"
#include "net/rdma/ring.h"
#include "net/rdma/shared.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace macadam::net::rdma {
namespace {

static_assert(engine::wire::longest_control <= model::header_room);
static_assert(sizeof(engine::wire::Eager) == model::repeated_header);
static_assert(model::repeated_header <= model::receive_headroom);

constexpr unsigned packet_interval_us = 1000;

engine::Limits make_limits(const base::Settings& settings, const DeviceLimits& device,
                           const model::Shape& shape) {
  const auto eager = static_cast<std::size_t>(settings.rdma_eager);
  return {.name = "rdma",
          .message = model::header_room + eager - model::receive_headroom,
          .eager = eager,
          .hybrid = model::hybrid_bytes(settings, device),
          .bundled = static_cast<std::int32_t>(model::bundled_bytes(eager, device)),
          // A message must not pass a write whose end its target looks for.
          .orders_bytes = device.orders_bytes && device.orders_arrivals,
          .packet = device.mtu,
          .notified_put = longest_fragment(device),
          .orders_puts = device.orders_arrivals,
          .orders_writes = device.orders_writes,
          .atomics = device.atomics,
          .connects = settings.rdma_connections == base::ConnectMode::on_demand,
          .local_blocks = shape.segments,
          .polls_before_idle = 0}; // a look at a completion queue costs as much as a yield
}

} // namespace

RdmaTransport::RdmaTransport(Device& device, const boot::Processes& processes,
                             const base::Settings& settings, mem::InvalidationSource* invalidation,
                             engine::Transport* sleeper, bool permits, Device* second)
    : device_(device), processes_(processes), settings_(settings), sleeper_(sleeper),
      rank_(processes.own()), job_size_(static_cast<Rank>(processes.job().size())),
      shape_(model::shape_of(settings, device.limits(), fallbacks_, sleeper != nullptr)),
      limits_(make_limits(settings, device.limits(), shape_)),
      yielding_(settings.spin, processes.job().oversubscribed()),
      // Data whose last byte is looked for go in one piece.
      rails_(second == nullptr || settings.last_byte
                 ? nullptr
                 : std::make_unique<Rails>(device, *second, shape_.send_depth,
                                           model::split_bytes(device.limits()))),
      split_from_(rails_ == nullptr ? SIZE_MAX : rails_->least()),
      pool_(device, model::buffer_bytes(limits_.eager),
            static_cast<std::size_t>(settings.rdma_buffers)),
      cache_(registrar(), settings.rdma_cache == 0 ? nullptr : invalidation,
             mem::most_registrations, static_cast<std::size_t>(settings.rdma_cache)),
      preferred_(registrar(), cache_), preferred_by_device_(device, cache_), heap_(preferred_),
      queues_(device, shape_.completions(), sleeper != nullptr) {
  if (invalidation != nullptr && !invalidation->why_not().empty()) {
    fallbacks_.push_back(
        "rdma: user memory is registered for each transfer and does not stay so: " +
        invalidation->why_not());
  }
  if (const std::string why = device.why(); !why.empty()) {
    fallbacks_.push_back(
        rails_ == nullptr
            ? fmt::format("rdma: of several ports only {} is used: {}", device.name(), why)
            : fmt::format("rdma: of several ports {} is used: {}; and for half of what is longer "
                          "than {} KiB {}: {}",
                          device.name(), why, split_from_ >> 10, second->name(), second->why()));
  }
  switch (shape_.mode) {
  case base::ReceiveMode::shared:
    receiver_ = std::make_unique<SharedReceiver>(device, pool_, shape_, sleeper != nullptr);
    break;
  case base::ReceiveMode::mixed:
    receiver_ = std::make_unique<MixedReceiver>(device, preferred_by_device_, pool_, shape_,
                                                sleeper != nullptr);
    break;
  case base::ReceiveMode::credit:
    receiver_ = std::make_unique<CreditReceiver>(pool_, shape_.window);
    break;
  case base::ReceiveMode::ring:
    receiver_ = std::make_unique<RingReceiver>(device, shape_);
    break;
  }
  arrivals_ = receiver_->shared_completions();
  polls_rings_ = receiver_->polls_memory();
  merges_ = receiver_->merges();
  if (arrivals_ != nullptr || polls_rings_) unseen_left_ = unseen_limit_ = 8;
  const std::uint32_t most = shape_.queue_pairs;
  if (most < 2) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} queue pairs may be used, needed 2 at least (one for datagrams, by which "
               "connections are made); {} has {}, MACADAM_RDMA_QUEUE_PAIRS is {}",
               most, device.name(), device.limits().queue_pairs, settings.rdma_queue_pairs);
  }
  if (device.limits().segments < model::fewest_segments) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: a request of {} has {} segments at most, needed {} (a message's header, data "
               "and tail); take another adapter by MACADAM_RDMA_DEVICE, or another network by "
               "MACADAM_NETWORK",
               device.name(), device.limits().segments, model::fewest_segments);
  }
  if (const Rank wanted = connections_at_start(); most - 1 < wanted) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} connections at start need {} queue pairs, {} are there; leave "
               "MACADAM_RDMA_CONNECTIONS at on-demand",
               wanted, wanted + 1, most);
  }
  self_.rank = rank_;
  QueuePairOptions options;
  options.send_depth = shape_.send_depth;
  options.inline_bytes = shape_.inline_bytes;
  connector_ = std::make_unique<Connector>(device, processes, settings, *receiver_, queues_,
                                           options, most - 1, permits, rails_.get());
  device.set_event_sink(this);
  if (rails_ == nullptr) return;
  const auto wake = [this] { sleeper_ != nullptr ? sleeper_->wake() : device_.wake(); };
  rails_->start(
      {.completed = wake, .failed = [this, wake](std::uint32_t number, const std::string& reason) {
         connector_->lose(number, reason);
         wake();
       }});
}

RdmaTransport::~RdmaTransport() {
  device_.set_event_sink(nullptr);
  if (rails_ == nullptr) return;
  rails_->stop();
  while (!rails_->gets.empty()) // these go before the list
    rails_->gets.pop_front();
}

engine::Link& RdmaTransport::connect(Rank peer, engine::PeerState& state) {
  if (peer == rank_) {
    state = engine::PeerState::connected;
    return self_;
  }
  Connection& connection = connector_->get(peer);
  connection.wanted = true;
  switch (connection.phase) {
  case Phase::down:
    connector_->open(connection);
    connection.promised = true;
    state = engine::PeerState::connecting;
    break;
  case Phase::open:
  case Phase::closing: // comes back by itself when it is used
    state = engine::PeerState::connected;
    break;
  case Phase::breaking: // it will be told
    state = engine::PeerState::connecting;
    break;
  case Phase::broken:
    state = engine::PeerState::failed;
    break;
  }
  return connection;
}

std::string RdmaTransport::why_failed(const engine::Link& link) const {
  const auto& connection = static_cast<const Connection&>(link);
  const std::string reason = connector_->reason(connection);
  if (reason.empty() || has_ended(processes_.life(connection.rank))) return {};
  return processes_.describe_unreached(connection.rank, connection.carried, reason);
}

// No room, or not connected any more: then it is, when the engine tries again. Or broken, as the
// engine has been told.
Posted RdmaTransport::refuse(Connection& connection) {
  if (connection.phase == Phase::broken) return Posted::done;
  ++counters_.busy;
  unseen_left_ = 0; // the next poll looks for room
  if (connection.phase == Phase::down) connector_->reopen(connection);
  return Posted::busy;
}

// To be called in a catch block: the next poll() tells the sink.
Posted RdmaTransport::break_down() noexcept {
  breakdown_.note();
  chores_ = true;
  return Posted::busy;
}

Posted RdmaTransport::send_to_self(const void* header, std::size_t header_bytes,
                                   const void* payload, std::size_t payload_bytes) {
  to_self_.send(header, header_bytes, payload, payload_bytes);
  chores_ = true;
  return Posted::done;
}

void RdmaTransport::set_tail(std::byte* tail, std::size_t tail_bytes, wire::Note note,
                             std::size_t message_bytes) {
  const wire::Trailer trailer{.note = note.encode(),
                              .bytes = static_cast<std::uint32_t>(message_bytes) & 0x7fffffff,
                              .full = 1};
  std::memset(tail, 0, tail_bytes - sizeof trailer);
  std::memcpy(tail + tail_bytes - sizeof trailer, &trailer, sizeof trailer);
}

Posted RdmaTransport::send(engine::Link& link, const void* header, std::size_t header_bytes,
                           const void* payload, std::size_t payload_bytes) noexcept try {
  if (is_self(link)) [[unlikely]]
    return send_to_self(header, header_bytes, payload, payload_bytes);
  auto& connection = static_cast<Connection&>(link);
  if (!can_post(connection) || !connection.may_send() || connection.sends.unplaced != 0)
      [[unlikely]]
    return refuse(connection);

  wire::Note note{.kind = wire::NoteKind::message};
  if (header_bytes == model::repeated_header) [[likely]] {
    if (std::memcmp(connection.headers->sent.data(), header, model::repeated_header) == 0) {
      note.kind = wire::NoteKind::repeat;
      header_bytes = 0;
    } else {
      note.kind = wire::NoteKind::headed;
    }
  }
  const std::size_t bytes = header_bytes + payload_bytes;
  SendWork work;
  std::size_t tail_bytes = 0;
  if (connection.goes_to_slot(bytes)) [[unlikely]] {
    tail_bytes = wire::tail_bytes(bytes);
    work.operation = Operation::write;
  }
  std::array<Segment, model::fewest_segments> segments;
  std::array<std::byte, wire::longest_tail> inline_tail;
  std::byte* tail = inline_tail.data();
  Buffer* buffer = nullptr;
  if (bytes + tail_bytes <= shape_.inline_bytes) {
    std::size_t count = 0;
    const auto add = [&](const void* part, std::size_t length) {
      if (length != 0)
        segments[count++] = {const_cast<void*>(part), static_cast<std::uint32_t>(length), 0};
    };
    add(header, header_bytes);
    add(payload, payload_bytes);
    add(tail, tail_bytes);
    work.segments = {segments.data(), count};
    work.inlined = true;
    ++counters_.sent_inline;
  } else {
    buffer = copy_to_buffer(header, header_bytes, payload, payload_bytes);
    if (buffer == nullptr) return refuse(connection);
    tail = buffer->memory + bytes;
    segments[0] = {buffer->memory, static_cast<std::uint32_t>(bytes + tail_bytes),
                   buffer->local_key};
    work.segments = {segments.data(), 1};
  }
  if (note.kind == wire::NoteKind::headed)
    std::memcpy(connection.headers->sent.data(), header, model::repeated_header);
  if (connection.window != nullptr) note = receiver_->prepare(connection, work, note);
  work.immediate = note.encode();
  if (tail_bytes != 0) set_tail(tail, tail_bytes, note, bytes);
  if (work.immediate != 0 && work.operation == Operation::send)
    work.operation = Operation::send_immediate;
  post(connection, work, buffer, nullptr);
  ++counters_.sent;
  connection.carried = true;
  connection.last_used = ++clock_;
  return Posted::done;
} catch (...) {
  return break_down();
}

// A message as one block. Null if no buffer is free.
Buffer* RdmaTransport::copy_to_buffer(const void* header, std::size_t header_bytes,
                                      const void* payload, std::size_t payload_bytes) {
  const std::size_t bytes = header_bytes + payload_bytes;
  if (bytes > limits_.message) [[unlikely]]
    base::fail(MPI_ERR_INTERN, "RDMA: a message of {} bytes, at most {} are taken", bytes,
               limits_.message);
  Buffer* const buffer = take_buffer();
  if (buffer == nullptr) return nullptr;
  base::copy(buffer->memory, header, header_bytes);
  base::copy(buffer->memory + header_bytes, payload, payload_bytes);
  return buffer;
}

// Null if all are in use. Then those come back first that nothing has asked for.
Buffer* RdmaTransport::take_buffer() {
  Buffer* const buffer = cache_.with_room([&] { return pool_.take(); });
  if (buffer != nullptr || unsignalled_ == 0) [[likely]]
    return buffer;
  for (const auto& [number, connection] : numbers_) {
    if (connection->sends.unsignalled != 0) post_flush(*connection);
  }
  return nullptr;
}

void RdmaTransport::fail_full(const Connection& connection) {
  const SendQueue& queue = connection.sends;
  base::fail(MPI_ERR_INTERN,
             "RDMA: the send queue to rank {} refused a request, {} of {} are in use",
             connection.rank, queue.depth - queue.room(), queue.depth);
}

// A message of the transport itself; false if the send queue is full.
bool RdmaTransport::post_note(Connection& connection, wire::Note note,
                              std::span<const std::byte> payload) {
  if (connection.sends.room() == 0) return false;
  const bool signalled = note.kind != wire::NoteKind::credits;
  if (connection.peer_polls()) {
    write_note(connection, note, 0, signalled);
    return true;
  }
  SendWork work;
  work.operation = Operation::send_immediate;
  work.signalled = signalled;
  Segment segment{const_cast<std::byte*>(payload.data()),
                  static_cast<std::uint32_t>(payload.size()), 0};
  if (!payload.empty()) work.segments = {&segment, 1};
  work.inlined = payload.size() <= shape_.inline_bytes;
  Buffer* buffer = nullptr;
  if (!work.inlined) {
    buffer = copy_to_buffer(payload.data(), payload.size(), nullptr, 0);
    if (buffer == nullptr) return false;
    segment.memory = buffer->memory;
    segment.local_key = buffer->local_key;
  }
  note.credits = static_cast<std::uint16_t>(receiver_->take_credits(connection));
  work.immediate = note.encode();
  post(connection, work, buffer, nullptr);
  return true;
}

// The same to a peer that looks for it in memory, or what tells of a put of `bytes` before it.
void RdmaTransport::write_note(Connection& connection, wire::Note note, std::size_t bytes,
                               bool signalled) {
  Window& window = *connection.window;
  wire::Trailer* const trailer = &window.notes[window.noted++ % model::own_receives(shape_.window)];
  const Segment segment{trailer, sizeof *trailer, window.region->local_key};
  SendWork work;
  work.segments = {&segment, 1};
  work.inlined = sizeof *trailer <= shape_.inline_bytes;
  work.signalled = signalled;
  note = receiver_->prepare(connection, work, note);
  set_tail(reinterpret_cast<std::byte*>(trailer), sizeof *trailer, note, bytes);
  post(connection, work, nullptr, nullptr);
}

// A write of nothing, whose completion tells that all before it is complete.
void RdmaTransport::post_flush(Connection& connection) {
  if (connection.sends.room() == 0) return;
  SendWork work;
  work.operation = Operation::write;
  work.signalled = true;
  post(connection, work, nullptr, nullptr);
}

bool RdmaTransport::drain() {
  bool quiet = to_self_.empty() && (rails_ == nullptr || rails_->gets.empty());
  for (const auto& [number, connection] : numbers_) {
    if (connection->phase != Phase::open && connection->phase != Phase::closing) continue;
    const SendQueue& queue = connection->sends;
    if (connection->unposted.empty() && queue.idle()) continue;
    quiet = false;
    if (connection->unposted.empty() && queue.signalled != queue.posted) post_flush(*connection);
  }
  return quiet;
}

// First spins, then arms the queues in a poll(), then sleeps. That poll() sees what came before the
// queues were armed, and what comes after ends the sleep.
bool RdmaTransport::idle(unsigned fruitless, unsigned longest_us) {
  if (yielding_.is_blind(fruitless)) [[likely]] {
    device_.yield();
    return false;
  }
  return spin_or_sleep(fruitless, longest_us);
}

bool RdmaTransport::spin_or_sleep(unsigned fruitless, unsigned longest_us) {
  const double time = device_.now();
  pool_.trim(time);
  if (yielding_.goes_on(fruitless, time) || !sleeps()) {
    device_.yield();
    return false;
  }
  if (!armed_.exchange(false, std::memory_order_acquire)) {
    arm();
    return true;
  }
  device_.wait(std::min(longest_us, longest_sleep_us()));
  return false;
}

// While a connection is being made, packets may have to be sent again; rings that were withdrawn
// may be written to until their peers know; and what a burst needed is given back a period later,
// or two.
unsigned RdmaTransport::longest_sleep_us() const {
  if (!sleeps()) return 0; // what comes ends no sleep, a neighbour's neither
  if (connector_->busy() || has_rings_.load(std::memory_order_relaxed)) return packet_interval_us;
  return pool_.falling() ? static_cast<unsigned>(BufferPool::period * 1e6) : UINT_MAX;
}

// A packet of a connection, or something for a process that sleeps elsewhere. Which queue it was
// does not matter: to look for packets costs little, and a sleep may end without a reason.
void RdmaTransport::on_completions(CompletionQueue&) noexcept {
  connector_->read_packets();
  if (sleeper_ != nullptr) sleeper_->wake();
}

void RdmaTransport::on_failure(std::uint32_t queue_pair, const std::string& reason) noexcept {
  connector_->lose(queue_pair, reason);
  if (sleeper_ != nullptr) sleeper_->wake();
}

std::size_t RdmaTransport::memory_bytes() const {
  const std::size_t used = connector_->used();
  const model::Driver& driver = shape_.driver;
  return sizeof(RdmaTransport) + model::datagram_packets() +
         static_cast<std::size_t>(driver.datagrams) + pool_.bytes() + heap_.bytes() +
         receiver_->bytes() + queues_.bytes(driver) + connector_->known() * record_bytes +
         connector_->permit_bytes() + (rails_ != nullptr ? rails_->bytes(driver) : 0) +
         used * (driver.queue_pair_bytes(shape_.send_depth, shape_.receive_depth()) +
                 shape_.send_depth * sizeof(PendingSend) + sizeof(Headers) +
                 (shape_.window != 0 ? sizeof(Window) : 0));
}

// On the progress thread, for the application's does not read.
void RdmaTransport::on_limit(SharedReceiveQueue&) noexcept {
  if (settings_.trace.empty()) {
    receiver_->on_limit();
    return;
  }
  const double at = device_.now();
  const engine::NetworkEvent done{at, "shared receives below the watermark", receiver_->on_limit()};
  const std::lock_guard guard(history_mutex_);
  if (history_.size() < longest_history)
    base::try_push(history_, done);
  else
    history_[next_in_history_++ % longest_history] = done;
}

std::vector<engine::NetworkEvent> RdmaTransport::history() const {
  const std::lock_guard guard(history_mutex_);
  return history_;
}

RdmaTransport::InUse RdmaTransport::in_use() const {
  InUse now;
  now.receives = receiver_->buffers();
  now.buffers = pool_.taken() - now.receives;
  now.transfers = transfer_slab_.live();
  now.registrations = cache_.in_use();
  for (const auto& [number, connection] : numbers_) {
    if (const Window* const window = connection->window.get()) {
      now.credits += window->credits + window->consumed;
      now.windows += window->theirs.window;
    }
    if (connection->left) now.transfers -= connection->transfers; // nobody answers any more
  }
  return now;
}

void RdmaTransport::list_counters(base::CounterList& list) const {
  const auto add = [&](const char* name, const char* text, const std::uint64_t& value) {
    list.add("rdma", name, text, value);
  };
  connector_->list_counters(list);
  add("evicted", "idle connections that were asked to close", counters_.evicted);
  add("broken", "connections that failed", counters_.broken);
  add("rdma_sent", "messages sent over RDMA", counters_.sent);
  add("sent_inline", "messages sent inside the work request", counters_.sent_inline);
  add("rdma_busy", "operations that found no room or no connection at first", counters_.busy);
  add("credit_notes", "messages that carried nothing but credits", counters_.credit_notes);
  add("puts", "RDMA writes of data", counters_.puts);
  add("gets", "RDMA reads of data", counters_.gets);
  add("atomics", "RDMA atomics", counters_.atomics);
  add("buffers_most", "message buffers in use at once, at most", pool_.most());
  add("bounced", "puts and gets copied through a message buffer", counters_.bounced);
  add("gathered", "puts and gets of several pieces in one request", counters_.gathered);
  add("split", "puts and gets of which half went by the second port", counters_.split);
  add("no_receiver", "connections lost as the peer had no receive posted for too long",
      counters_.no_receiver);
  const mem::RegistrationCounters& cache = cache_.counters();
  add("registrations", "regions of user memory registered", cache.registrations);
  add("registration_hits", "uses of memory that was registered already", cache.hits);
  add("registration_evictions", "registrations let go for want of room", cache.evictions);
  add("registrations_invalidated", "registrations whose memory went away", cache.invalidated);
  receiver_->list_counters(list);
}

} // namespace macadam::net::rdma
