// SPDX-License-Identifier: BSD-3-Clause
// What completes, and what follows from it.
#include "net/rdma/transport.h"

#include "net/rdma/model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace macadam::net::rdma {

inline bool RdmaTransport::poll_queue(CompletionQueue& queue, Sink& sink) {
  if (batch_at_ == batch_size_) [[likely]] {
    batch_at_ = 0;
    batch_size_ = queue.poll(batch_);
    if (batch_size_ == 0) return false;
  }
  deliver_batch(sink);
  return true;
}

// To look at a ring costs less than to look at a queue (a tenth in the simulator's presets): where
// there are both, and something was found in a ring, the queue is left for the next time, three
// times at most.
inline bool RdmaTransport::poll_arrivals(Sink& sink) {
  bool arrived = false;
  if (has_rings_.load(std::memory_order_relaxed)) [[unlikely]] {
    arrived = poll_rings(sink);
    if (arrived && ++unqueued_polls_ < 4) return true;
    unqueued_polls_ = 0;
  }
  if (arrivals_ != nullptr) [[likely]]
    arrived |= poll_queue(*arrivals_, sink);
  return arrived;
}

bool RdmaTransport::poll(Sink& sink) noexcept {
  return breakdown_.poll(sink, [&] { return look(sink); });
}

// Most polls have nothing to do but to look for arrivals, and most of them find nothing.
inline bool RdmaTransport::look(Sink& sink) {
  if (chores_ || arm_wanted_.load(std::memory_order_relaxed) || connector_->needs_care())
      [[unlikely]]
    return poll_all(sink);
  bool arrived = poll_arrivals(sink);
  // Where messages do not arrive in the same queues, these tell of sends alone: now and then is
  // enough to learn of room and of failures, unless something waits for one.
  if (--unseen_left_ <= 0) [[unlikely]]
    arrived |= poll_queues(sink);
  if (arrived && sleeper_ != nullptr) [[unlikely]]
    sleeper_->wake(); // another thread of ours should look again
  return arrived;
}

// With all that is done beside messages; what is still to be done is for the next poll.
bool RdmaTransport::poll_all(Sink& sink) {
  breakdown_.raise();
  const bool arming = arm_wanted_.load(std::memory_order_relaxed);
  if (arming) arm_queues();
  bool moved = false;
  if (connector_->busy()) connector_->progress();
  if (connector_->has_state_events() || !state_events_.empty()) moved |= take_state_events(sink);
  bool arrived = poll_arrivals(sink);
  if (--unseen_left_ <= 0 || arming || awaits_sends()) arrived |= poll_queues(sink);
  if (rails_ != nullptr && (!rails_->idle() || !dead_.empty())) arrived |= poll_second(sink);
  if (!to_self_.empty()) moved |= to_self_.deliver(rank_, sink);
  if (!dead_.empty() && !arrived) {
    // Their queue pairs have stopped, and all that they had received is read.
    while (!dead_.empty()) {
      Connection& connection = *dead_.back();
      dead_.pop_back();
      connector_->discard(connection);
      end_broken(connection, sink);
    }
    moved = true;
  }
  if (owes()) moved |= settle();
  moved |= arrived;
  if (arming && !moved) moved = look_for_ended(sink);
  chores_ = !state_events_.empty() || !to_self_.empty() || owes() || awaits_sends();
  if (arming && !moved) armed_.store(true, std::memory_order_release);
  if (moved && sleeper_ != nullptr) sleeper_->wake();
  return moved;
}

bool RdmaTransport::poll_queues(Sink& sink) {
  unseen_left_ = unseen_limit_;
  bool moved = false;
  for (unsigned i = 0, count = queues_.size(); i < count; ++i)
    moved |= poll_queue(queues_[i], sink);
  return moved;
}

// One that is not open yet belongs to the connector: it will be, and then what has come is found.
bool RdmaTransport::poll_rings(Sink& sink) {
  device_.before_look(rings_.size());
  bool moved = false;
  for (std::size_t i = 0; i < rings_.size(); ++i) // a message may close or open some
    moved |= read_ring(*rings_[i], shape_.window, sink);
  return moved;
}

// So many messages at most: what is sent meanwhile may let the peer write more.
bool RdmaTransport::read_ring(Connection& connection, std::uint32_t most, Sink& sink) {
  std::uint32_t count = 0;
  Completion found;
  while (count < most && connection.has_queue_pair() && receiver_->look(connection, found)) {
    on_receive(connection, found, sink);
    ++count;
  }
  return count != 0;
}

void RdmaTransport::begin_to_look(Connection& connection) {
  rings_.push_back(&connection);
  has_rings_.store(true, std::memory_order_relaxed);
}

void RdmaTransport::end_to_look(Connection& connection) {
  std::erase(rings_, &connection);
  has_rings_.store(!rings_.empty(), std::memory_order_relaxed);
}

void RdmaTransport::on_ring_note(Connection& connection, const Completion& completion,
                                 const wire::Note& note) {
  owe(receiver_->on_note(connection, note.kind, receiver_->arrived(connection, completion, note)));
  if (note.kind == wire::NoteKind::ring_begin) begin_to_look(connection);
  if (note.kind == wire::NoteKind::ring_end || note.kind == wire::NoteKind::leave)
    end_to_look(connection);
}

void RdmaTransport::arm_queues() {
  arm_wanted_.store(false, std::memory_order_relaxed);
  for (Connection* const connection : rings_)
    owe(receiver_->withdraw(*connection));
  cache_.collect(); // a wait is long enough to give back what the program has freed
  if (pool_.grown()) pool_.trim(device_.now());
  if (arrivals_ != nullptr) arrivals_->arm();
  for (unsigned i = 0, count = queues_.size(); i < count; ++i)
    queues_[i].arm();
  if (rails_ == nullptr) return;
  for (unsigned i = 0, count = rails_->queues().size(); i < count; ++i)
    rails_->queues()[i].arm();
}

const char* RdmaTransport::text_of(WorkStatus status) {
  switch (status) {
  case WorkStatus::ok:
    break;
  case WorkStatus::flushed:
    return "its queue pair has stopped";
  case WorkStatus::no_receiver:
    return "it had no receive posted for too long";
  case WorkStatus::no_answer:
    return "it does not answer: the process or the path to it is gone";
  case WorkStatus::refused:
    return "it refused an access to its memory";
  case WorkStatus::failed:
    return "the adapter reports an error of a request";
  }
  return "";
}

// The last request of a connection that the peer has stopped using.
bool RdmaTransport::is_answer_to_close(const Connection& connection, std::uint32_t sequence) {
  return connection.phase == Phase::closing && connection.close_sent && connection.close_received &&
         sequence + 1 == connection.sends.posted;
}

// An error, or something of a connection that is no more.
void RdmaTransport::on_odd_completion(const Completion& completion, Connection* connection,
                                      Sink& sink) {
  const bool ok = completion.status == WorkStatus::ok;
  if (is_receive(completion.id)) {
    // The buffer of a shared receive is free; others come back with the queue pair.
    receiver_->consumed(nullptr, completion,
                        ok ? wire::Note::decode(completion.immediate) : wire::Note{});
    if (!ok && connection != nullptr && completion.status != WorkStatus::flushed)
      break_off(*connection, text_of(completion.status), sink);
    return;
  }
  if (connection == nullptr) return;
  const std::uint32_t sequence = sequence_of(completion.id);
  if (completion.status == WorkStatus::no_receiver) ++counters_.no_receiver;
  if (!is_answer_to_close(*connection, sequence))
    return break_off(*connection, text_of(completion.status), sink);
  // The peer waits for nothing else from us. It has read the note and destroyed its queue pair
  // before ours knew; or the connection broke with the note, and then this is what tells it.
  connector_->tell_closed(*connection);
  retire(*connection, sequence, sink);
}

inline void RdmaTransport::deliver(Connection& connection, std::byte* message, std::size_t bytes,
                                   wire::NoteKind kind, Sink& sink) {
  if (connection.headers == nullptr) [[unlikely]]
    return; // it failed before it was open, as the engine knows
  Headers::Header& header = connection.headers->received;
  if (kind == wire::NoteKind::repeat) {
    message -= header.size();
    bytes += header.size();
    std::memcpy(message, header.data(), header.size());
  } else if (kind == wire::NoteKind::headed) {
    std::memcpy(header.data(), message, header.size());
  }
  connection.carried = true;
  connection.last_used = ++clock_;
  sink.on_message(connection.rank, message, bytes);
}

inline void RdmaTransport::on_receive(Connection& connection, const Completion& completion,
                                      Sink& sink) {
  if (connection.phase == Phase::down) [[unlikely]] { // the first message says: we were accepted
    connector_->confirm(connection);
    take_state_events(sink);
    if (!connection.has_queue_pair()) return on_odd_completion(completion, nullptr, sink);
  }
  const wire::Note note = wire::Note::decode(completion.immediate);
  if (note.kind == wire::NoteKind::put) {
    connection.carried = true;
    sink.on_put(connection.rank, note.notification(), completion.bytes);
  } else {
    if (note.credits != 0) receiver_->on_credits(connection, note.credits);
    if (is_message(note.kind)) [[likely]] {
      deliver(connection, receiver_->arrived(connection, completion, note), completion.bytes,
              note.kind, sink);
    } else if (note.kind == wire::NoteKind::close) {
      connection.close_received = true;
      if (connection.phase == Phase::open) begin_close(connection);
    } else if (note.kind == wire::NoteKind::leave) {
      connection.left = connection.close_received = true;
      if (merges_) on_ring_note(connection, completion, note);
    } else if (note.kind >= wire::NoteKind::ring_offer) {
      on_ring_note(connection, completion, note);
    }
  }
  owe(receiver_->consumed(&connection, completion, note));
}

inline void RdmaTransport::on_completion(const Completion& completion, Sink& sink) {
  Connection* const connection = numbers_.find(completion.queue_pair);
  if (connection == nullptr || completion.status != WorkStatus::ok) [[unlikely]]
    return on_odd_completion(completion, connection, sink);
  if (is_receive(completion.id)) [[likely]] {
    if (merges_) [[unlikely]]
      read_ring(*connection, UINT32_MAX, sink); // what was written before
    on_receive(*connection, completion, sink);
  } else {
    retire(*connection, sequence_of(completion.id), sink);
  }
}

void RdmaTransport::deliver_batch(Sink& sink) {
  // A message may be the first of a connection that the progress thread accepted: that is among the
  // state events, and was before the peer could send.
  if (connector_->has_state_events()) [[unlikely]]
    take_state_events(sink);
  while (batch_at_ != batch_size_)
    on_completion(batch_[batch_at_++], sink);
}

inline void RdmaTransport::owe(Connection* connection) {
  if (connection == nullptr || std::exchange(connection->owes, true)) [[likely]]
    return;
  owing_.push_back(connection);
  chores_ = true;
}

// Tells a peer what it is to be told. A message of ours may have done so meanwhile; a peer that
// closes or has left gets no more. False: there is no room now.
bool RdmaTransport::pay(Connection& connection) {
  while (connection.phase == Phase::open && !connection.left) {
    const std::optional<Receiver::Due> due = receiver_->due(connection);
    if (!due) break;
    if (!post_note(connection, {.kind = due->kind}, due->payload)) return false;
    receiver_->told(connection, due->kind);
    if (due->kind == wire::NoteKind::credits) ++counters_.credit_notes;
  }
  return true;
}

// A request has completed, and with it all that were posted before.
void RdmaTransport::retire(Connection& connection, std::uint32_t sequence, Sink& sink) {
  SendQueue& queue = connection.sends;
  queue.completed = sequence + 1;
  while (queue.first != queue.last) {
    const PendingSend done = queue.pending[queue.first % queue.depth];
    if (static_cast<std::int32_t>(done.sequence - sequence) > 0) break;
    ++queue.first;
    if (done.is_transfer)
      on_posted(*done.transfer, sink);
    else
      pool_.give(done.buffer);
  }
  while (!connection.unposted.empty() && post_fragments(connection.unposted.front())) {
  }
}

// What was owed or asked for in this poll: notes, closing, room for others.
bool RdmaTransport::settle() {
  for (std::size_t i = owing_.size(); i-- > 0;) {
    if (!pay(*owing_[i])) continue;
    owing_[i]->owes = false;
    owing_[i] = owing_.back();
    owing_.pop_back();
  }
  bool moved = false;
  for (std::size_t i = closing_.size(); i-- > 0;) {
    if (!continue_close(*closing_[i])) continue;
    closing_[i] = closing_.back();
    closing_.pop_back();
    moved = true;
  }
  if (connector_->waiting() != 0) [[unlikely]]
    make_room();
  return moved;
}

} // namespace macadam::net::rdma
