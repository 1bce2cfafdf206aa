// SPDX-License-Identifier: BSD-3-Clause
// What completes, and what follows from it.
#include "net/rdma/transport.h"

#include "net/rdma/model.h"

#include <algorithm>
#include <cstring>

namespace macadam::net::rdma {

bool RdmaTransport::poll(Sink& sink) {
  const bool arming = arm_wanted_.load(std::memory_order_relaxed);
  if (arming) [[unlikely]]
    arm_queues();
  bool moved = false;
  if (batch_at_ != batch_size_) [[unlikely]] {
    moved = true;
    deliver_batch(sink);
  }
  if (connector_->busy()) [[unlikely]]
    connector_->progress();
  if (connector_->has_news() || !news_.empty()) [[unlikely]]
    moved |= take_news(sink);
  bool arrived = arrivals_ != nullptr && poll_queue(*arrivals_, sink);
  if (arrivals_ == nullptr || arming || awaits_sends()) {
    unseen_polls_ = 0;
    for (unsigned i = 0, count = queues_.size(); i < count; ++i)
      arrived |= poll_queue(queues_[i], sink);
  }
  if (!to_self_.empty()) [[unlikely]]
    moved |= deliver_to_self(sink);
  if (!dead_.empty() && !arrived) [[unlikely]] {
    // Their queue pairs have stopped, and all that they had received is read.
    for (Connection* const connection : dead_)
      connector_->discard(*connection);
    dead_.clear();
  }
  if (owes()) [[unlikely]]
    moved |= settle();
  moved |= arrived;
  if (arming && !moved) armed_.store(true, std::memory_order_release);
  if (moved && sleeper_ != nullptr) sleeper_->wake(); // another thread of ours should look again
  return moved;
}

// Where messages arrive in a queue of their own, the others tell of sends alone: now and then is
// enough to learn of room and of failures, unless something waits for one.
bool RdmaTransport::awaits_sends() {
  constexpr unsigned enough = 8;
  return ++unseen_polls_ >= enough || transfer_slab_.live() != 0 || !closing_.empty() ||
         !dead_.empty();
}

void RdmaTransport::arm_queues() {
  arm_wanted_.store(false, std::memory_order_relaxed);
  cache_.collect(); // a wait is long enough to give back what the program has freed
  if (arrivals_ != nullptr) arrivals_->arm();
  for (unsigned i = 0, count = queues_.size(); i < count; ++i)
    queues_[i].arm();
}

bool RdmaTransport::poll_queue(CompletionQueue& queue, Sink& sink) {
  batch_at_ = 0;
  batch_size_ = queue.poll(batch_);
  if (batch_size_ == 0) return false;
  // A message may be the first of a connection that the attendant accepted: that is in the news,
  // and was before the peer could send.
  if (connector_->has_news()) [[unlikely]]
    take_news(sink);
  deliver_batch(sink);
  return true;
}

void RdmaTransport::deliver_batch(Sink& sink) {
  while (batch_at_ != batch_size_)
    on_completion(batch_[batch_at_++], sink);
}

namespace {

const char* text_of(WorkStatus status) {
  switch (status) {
  case WorkStatus::ok:
    break;
  case WorkStatus::flushed:
    return "its queue pair has stopped";
  case WorkStatus::no_receiver:
    return "it had no receive posted for longer than MACADAM_RDMA_RNR_RETRIES allow";
  case WorkStatus::no_answer:
    return "it does not answer: the process or the path to it is gone";
  case WorkStatus::refused:
    return "it refused an access to its memory";
  case WorkStatus::failed:
    return "the adapter reports an error of a request";
  }
  return "";
}

} // namespace

// The last request of a connection that the peer has stopped using.
bool RdmaTransport::is_answer_to_close(const Connection& connection, std::uint32_t sequence) {
  return connection.phase == Phase::closing && connection.close_sent && connection.close_received &&
         sequence + 1 == connection.sends.posted;
}

void RdmaTransport::on_completion(const Completion& completion, Sink& sink) {
  const auto found = numbers_.find(completion.queue_pair);
  Connection* const connection = found == numbers_.end() ? nullptr : found->second;
  if (is_receive(completion.id)) {
    if (completion.status != WorkStatus::ok) [[unlikely]] {
      // The buffer of a shared receive is free; others come back with the queue pair.
      receiver_->consumed(nullptr, completion, {});
      if (connection != nullptr && completion.status != WorkStatus::flushed)
        break_off(*connection, text_of(completion.status), sink);
      return;
    }
    if (connection != nullptr) [[likely]]
      return on_receive(*connection, completion, sink);
    receiver_->consumed(nullptr, completion, wire::Note::decode(completion.immediate));
    return;
  }
  if (connection == nullptr) return;
  const auto sequence = static_cast<std::uint32_t>(completion.id >> 1);
  if (completion.status != WorkStatus::ok) [[unlikely]] {
    if (completion.status == WorkStatus::no_receiver) ++counters_.no_receiver;
    if (!is_answer_to_close(*connection, sequence))
      return break_off(*connection, text_of(completion.status), sink);
    // The peer waits for nothing else from us. It has read the note and destroyed its queue pair
    // before ours knew; or the connection broke with the note, and then this is what tells it.
    connector_->tell_closed(*connection);
  }
  retire(*connection, sequence, sink);
}

void RdmaTransport::on_receive(Connection& connection, const Completion& completion, Sink& sink) {
  if (connection.phase == Phase::down) [[unlikely]] { // the first message says: we were accepted
    connector_->confirm(connection);
    take_news(sink);
  }
  const wire::Note note = wire::Note::decode(completion.immediate);
  if (note.kind != wire::NoteKind::put && note.credits != 0)
    receiver_->on_credits(connection, note.credits);
  // The buffer is given back whatever the sink does.
  struct Consumed {
    ~Consumed() {
      if (transport.receiver_->consumed(&connection, completion, note) &&
          !connection.owes_credits) {
        connection.owes_credits = true;
        transport.owing_.push_back(&connection);
      }
    }
    RdmaTransport& transport;
    Connection& connection;
    const Completion& completion;
    const wire::Note& note;
  } const consumed{*this, connection, completion, note};
  switch (note.kind) {
  case wire::NoteKind::message:
  case wire::NoteKind::headed:
  case wire::NoteKind::repeat:
    return deliver(connection, receiver_->arrived(connection, completion, note), completion.bytes,
                   note.kind, sink);
  case wire::NoteKind::close:
    connection.close_received = true;
    if (connection.phase == Phase::open) begin_close(connection);
    return;
  case wire::NoteKind::put:
    ++connection.messages;
    return sink.on_put(connection.rank, note.notice(), completion.bytes);
  case wire::NoteKind::credits:
    return;
  }
}

void RdmaTransport::deliver(Connection& connection, std::byte* message, std::size_t bytes,
                            wire::NoteKind kind, Sink& sink) {
  if (connection.headers == nullptr) [[unlikely]]
    return; // it failed before it was open, as the engine knows
  std::array<std::byte, model::repeated_header>& header = connection.headers->received;
  if (kind == wire::NoteKind::headed) {
    std::memcpy(header.data(), message, header.size());
  } else if (kind == wire::NoteKind::repeat) {
    message -= header.size();
    bytes += header.size();
    std::memcpy(message, header.data(), header.size());
  }
  ++connection.messages;
  connection.last_used = ++clock_;
  sink.on_message(connection.rank, message, bytes);
}

// A request has completed, and with it all that were posted before.
void RdmaTransport::retire(Connection& connection, std::uint32_t sequence, Sink& sink) {
  SendQueue& queue = connection.sends;
  queue.completed = sequence + 1;
  while (queue.first != queue.last) {
    const PendingSend done = queue.pending[queue.first % queue.depth];
    if (static_cast<std::int32_t>(done.sequence - sequence) > 0) break;
    ++queue.first;
    if (done.buffer != nullptr) pool_.give(done.buffer);
    if (done.transfer != nullptr) on_posted(*done.transfer, sink);
  }
  while (!connection.unposted.empty() && post_pieces(connection.unposted.front())) {
  }
}

bool RdmaTransport::deliver_to_self(Sink& sink) {
  // Only what is there now: an answer to oneself waits for the next poll.
  for (std::size_t count = to_self_.size(); count > 0; --count) {
    const ToSelf item = std::move(to_self_.front());
    to_self_.pop_front();
    if (item.notice != 0)
      sink.on_put(rank_, item.notice, item.put_bytes);
    else
      sink.on_message(rank_, item.message.data(), item.message.size());
  }
  return true;
}

// What was owed or asked for in this poll: credits, closing, room for others.
bool RdmaTransport::settle() {
  for (std::size_t i = owing_.size(); i-- > 0;) {
    Connection& connection = *owing_[i];
    // A message of ours may have told them meanwhile; who closes gets no more messages.
    const bool due = connection.phase == Phase::open &&
                     connection.window->consumed >= std::max(shape_.window / 2, 1u);
    if (due && !post_note(connection, {.kind = wire::NoteKind::credits})) continue;
    if (due) ++counters_.credit_notes;
    connection.owes_credits = false;
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
