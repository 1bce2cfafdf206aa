// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ring.h"

#include "net/rdma/connection.h"
#include "net/rdma/slots.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace macadam::net::rdma {

void RingReceiver::configure(QueuePairOptions& options) const {
  options.receive_depth = polled_ ? 1 : model::own_receives(window_); // for the immediates
}

void RingReceiver::open(Connection& connection) {
  connection.window = std::make_unique<Window>();
  Window& window = *connection.window;
  window.ring = mem::allocate_pages(ring_bytes_, "the ring of a connection");
  window.region = device_.register_memory(window.ring.get(), ring_bytes_, Access::remote);
  bytes_ += ring_bytes_;
  if (!polled_) post(connection, model::own_receives(window_));
  window.notes = reinterpret_cast<wire::Trailer*>(window.ring.get() +
                                                  model::round_up(slots_ * slot_bytes_, 8));
  window.ours = {.address = reinterpret_cast<std::uintptr_t>(window.ring.get()),
                 .key = static_cast<std::uint32_t>(window.region->remote_key),
                 .window = static_cast<std::uint16_t>(window_),
                 .polled = polled_};
}

void RingReceiver::close(Connection& connection) {
  if (connection.window != nullptr && connection.window->region != nullptr) bytes_ -= ring_bytes_;
  connection.window.reset();
}

// No more than there are notes to send from.
void RingReceiver::join(Connection& connection, const wire::Reception& theirs) {
  WindowedReceiver::join(connection, theirs);
  connection.window->credits = std::min<std::uint32_t>(theirs.window, window_);
}

wire::Note RingReceiver::prepare(Connection& connection, SendWork& work, wire::Note note) {
  if (wire::takes_credit(note.kind)) take_receive(connection);
  if (note.kind != wire::NoteKind::put)
    note.credits = static_cast<std::uint16_t>(take_credits(connection));
  Window& window = *connection.window;
  const wire::Reception& theirs = window.theirs;
  work.remote_key = theirs.key;
  work.remote_address = theirs.address + window.slot * slot_bytes_;
  if (theirs.polled != 0) { // notes that take no credit have slots of their own, as many
    work.operation = Operation::write;
    work.remote_address += slot_bytes_ - bytes_of(work);
    window.slot = (window.slot + 1) % model::own_receives(theirs.window);
  } else {
    note.slot = static_cast<std::uint16_t>(window.slot);
    work.operation = Operation::write_immediate;
    work.remote_address += model::receive_headroom;
    window.slot = (window.slot + 1) % theirs.window;
  }
  return note;
}

bool RingReceiver::look(Connection& connection, Completion& found) {
  const Window& window = *connection.window;
  const std::optional<wire::Trailer> trailer = slots::look(end_of(window, window.read));
  if (!trailer) [[likely]]
    return false;
  found = found_in_slot(connection, *trailer);
  return true;
}

std::byte* RingReceiver::arrived(Connection& connection, const Completion& completion,
                                 const wire::Note& note) {
  const Window& window = *connection.window;
  if (!polled_) return window.ring.get() + model::receive_headroom + note.slot * slot_bytes_;
  return slots::message(end_of(window, window.read), completion.bytes);
}

Connection* RingReceiver::consumed(Connection* connection, const Completion&,
                                   const wire::Note& note) {
  if (connection == nullptr) return nullptr; // closed meanwhile, and its ring with it
  if (polled_) {
    Window& window = *connection->window;
    slots::empty(end_of(window, window.read));
    window.read = (window.read + 1) % slots_;
  } else if (!wire::takes_credit(note.kind)) {
    post(*connection, 1);
  }
  return count_consumed(*connection, note);
}

void RingReceiver::repost(Connection& connection) {
  if (!polled_) post(connection, connection.window->consumed);
}

void RingReceiver::post(Connection& connection, std::uint32_t count) const {
  std::array<ReceiveWork, receive_batch> work;
  work.fill({.id = receive_id(nullptr), .segment = {}});
  for (std::uint32_t left = count; left > 0;) {
    const std::uint32_t next = std::min(left, receive_batch);
    connection.queue_pair->post_receive(std::span(work).first(next));
    left -= next;
  }
}

} // namespace macadam::net::rdma
