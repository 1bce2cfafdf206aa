// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/mixed.h"

#include "net/rdma/connection.h"
#include "net/rdma/slots.h"

#include <algorithm>
#include <cstring>

namespace macadam::net::rdma {
namespace {

// Short messages for which a peer gets a ring: so many rings full of them. Twice as many after each
// ring in which fewer came, so that rings do not come and go for nothing.
constexpr std::uint32_t full_rings = 2;
constexpr std::uint32_t most_ring_after = 1 << 20;

std::byte* end_of(const Window& window, std::uint32_t slot) {
  return window.ring.get() + (slot + 1) * model::slot_bytes;
}

void forget_peer_ring(Window& window) {
  window.peer_ring = PeerRing::none;
  window.theirs = {};
  window.credits = window.writes_up_to = 0;
}

// A message in a ring was in no buffer.
bool is_in_ring(const Completion& completion) {
  return buffer_of(completion.id) == nullptr;
}

} // namespace

MixedReceiver::MixedReceiver(Device& device, mem::Registrar& registrar, BufferPool& pool,
                             const model::Shape& shape, bool async)
    : SharedReceiver(device, pool, shape, async), registrar_(registrar), rings_(shape.rings),
      slots_(shape.window) {
  given_.reserve(rings_);
}

void MixedReceiver::open(Connection& connection) {
  SharedReceiver::open(connection);
  connection.window = std::make_unique<Window>();
  connection.window->may_queue = true;
  connection.window->ring_after = full_rings * slots_;
}

void MixedReceiver::close(Connection& connection) {
  if (connection.window == nullptr) return;
  if (connection.window->own_ring != OwnRing::none) drop_ring(connection);
  connection.window.reset();
}

// ---- What is written

wire::Note MixedReceiver::prepare(Connection& connection, SendWork& work, wire::Note note) {
  note.credits = static_cast<std::uint16_t>(take_credits(connection));
  if (work.operation != Operation::write) return note;
  Window& window = *connection.window;
  --window.credits;
  note.slot = window.receives_taken;
  work.remote_key = window.theirs.key;
  work.remote_address =
      window.theirs.address + (window.slot + 1) * model::slot_bytes - bytes_of(work);
  window.slot = (window.slot + 1) % window.theirs.window;
  return note;
}

std::uint32_t MixedReceiver::take_credits(Connection& connection) {
  Window& window = *connection.window;
  return window.has_lump(slots_) ? std::exchange(window.consumed, 0) : 0;
}

void MixedReceiver::on_credits(Connection& connection, std::uint32_t credits) {
  if (connection.window->peer_ring == PeerRing::begun) connection.window->credits += credits;
}

// ---- What is read

bool MixedReceiver::look(Connection& connection, Completion& found) {
  Window& window = *connection.window;
  if (!window.ring_begun) return false;
  const std::optional<wire::Trailer> trailer = slots::look(end_of(window, window.read));
  if (!trailer || wire::Note::decode(trailer->note).slot != window.receives_read) [[likely]]
    return false;
  found = found_in_slot(connection, *trailer);
  return true;
}

std::byte* MixedReceiver::arrived(Connection& connection, const Completion& completion,
                                  const wire::Note& note) {
  if (!is_in_ring(completion)) return SharedReceiver::arrived(connection, completion, note);
  const Window& window = *connection.window;
  return slots::message(end_of(window, window.read), completion.bytes);
}

Connection* MixedReceiver::consumed(Connection* connection, const Completion& completion,
                                    const wire::Note& note) {
  if (!is_in_ring(completion)) {
    SharedReceiver::consumed(connection, completion, note);
    if (connection == nullptr) return nullptr;
    Window& window = *connection->window;
    // Both sides count from behind `ring_begin` (told()).
    if (window.ring_begun && note.kind != wire::NoteKind::ring_begin) ++window.receives_read;
    const bool fits = is_message(note.kind) && completion.bytes <= model::slot_most;
    if (!fits || window.own_ring != OwnRing::none || ++window.short_messages < window.ring_after)
      return nullptr;
    return want_ring(*connection);
  }
  if (connection == nullptr) return nullptr; // closed meanwhile, and its ring with it
  Window& window = *connection->window;
  slots::empty(end_of(window, window.read));
  window.read = (window.read + 1) % slots_;
  window.ring_used = true;
  ++window.short_messages;
  ++read_;
  ++window.consumed;
  return window.owes_note(slots_) ? connection : nullptr;
}

// ---- Rings given and withdrawn

// Returns whose peer is to be told: this one, which gets a ring, or another that loses its own.
// While one is coming free no other is withdrawn.
Connection* MixedReceiver::want_ring(Connection& connection) {
  connection.window->short_messages = 0;
  if (rings_ == 0 || connection.phase != Phase::open || connection.left) return nullptr;
  if (given_.size() < rings_) {
    given_.push_back(&connection);
    connection.window->own_ring = OwnRing::offer_due;
    return &connection;
  }
  Connection* idle = nullptr;
  for (Connection* const other : given_) {
    Window& window = *other->window;
    if (window.own_ring == OwnRing::withdraw_due || window.own_ring == OwnRing::withdrawn)
      return nullptr;
    if (!std::exchange(window.ring_used, false) && window.ring_begun) idle = other;
  }
  return idle != nullptr ? withdraw(*idle) : nullptr;
}

Connection* MixedReceiver::withdraw(Connection& connection) {
  Window& window = *connection.window;
  if (window.own_ring != OwnRing::offered) return nullptr;
  window.own_ring = OwnRing::withdraw_due;
  if (window.short_messages < window.ring_after)
    window.ring_after = std::min(2 * window.ring_after, most_ring_after);
  return &connection;
}

// False if there is no memory for it, or no region: then the peer does without.
bool MixedReceiver::make_ring(Window& window) {
  const std::size_t bytes = model::ring_bytes(slots_);
  try {
    window.ring = mem::allocate_pages(bytes, "the ring of a peer");
    window.region = registrar_.register_memory(window.ring.get(), bytes, Access::remote);
  } catch (...) { // of whatever kind: nothing depends on a ring
    window.ring.reset();
    window.ring_after = most_ring_after;
    return false;
  }
  bytes_ += bytes;
  return true;
}

void MixedReceiver::drop_ring(Connection& connection) {
  Window& window = *connection.window;
  if (window.region != nullptr) bytes_ -= model::ring_bytes(slots_);
  window.region.reset();
  window.ring.reset();
  window.own_ring = OwnRing::none;
  window.ring_begun = false;
  window.ring_used = false;
  window.read = window.consumed = window.short_messages = 0;
  std::erase(given_, &connection);
}

std::optional<Receiver::Due> MixedReceiver::due(Connection& connection) {
  Window& window = *connection.window;
  const auto plain = [](wire::NoteKind kind) { return Due{.kind = kind, .payload = {}}; };
  if (window.peer_ring == PeerRing::begin_due) return plain(wire::NoteKind::ring_begin);
  if (window.peer_ring == PeerRing::end_due) return plain(wire::NoteKind::ring_end);
  if (window.own_ring == OwnRing::withdraw_due) return plain(wire::NoteKind::ring_withdraw);
  if (window.own_ring == OwnRing::offer_due) {
    if (window.ring != nullptr || make_ring(window)) {
      offer_ = {.address = reinterpret_cast<std::uintptr_t>(window.ring.get()),
                .key = static_cast<std::uint32_t>(window.region->remote_key),
                .window = static_cast<std::uint16_t>(slots_)};
      return Due{.kind = wire::NoteKind::ring_offer,
                 .payload = std::as_bytes(std::span(&offer_, 1))};
    }
    drop_ring(connection);
  }
  if (window.owes_note(slots_)) return plain(wire::NoteKind::credits);
  return std::nullopt;
}

void MixedReceiver::told(Connection& connection, wire::NoteKind kind) {
  Window& window = *connection.window;
  switch (kind) {
  case wire::NoteKind::ring_offer:
    window.own_ring = OwnRing::offered;
    ++offered_;
    break;
  case wire::NoteKind::ring_withdraw:
    window.own_ring = OwnRing::withdrawn;
    ++withdrawn_;
    break;
  case wire::NoteKind::ring_begin: // counted from behind it, as consumed() does
    window.peer_ring = PeerRing::begun;
    window.credits = window.theirs.window;
    window.writes_up_to = model::slot_most;
    window.slot = 0;
    window.receives_taken = 0;
    break;
  case wire::NoteKind::ring_end:
    forget_peer_ring(window);
    break;
  default:
    break;
  }
}

Connection* MixedReceiver::on_note(Connection& connection, wire::NoteKind kind,
                                   const std::byte* payload) {
  Window& window = *connection.window;
  switch (kind) {
  case wire::NoteKind::ring_offer:
    std::memcpy(&window.theirs, payload, sizeof window.theirs);
    window.peer_ring = PeerRing::begin_due;
    return &connection;
  case wire::NoteKind::ring_withdraw:
    window.peer_ring = PeerRing::end_due;
    window.writes_up_to = 0;
    return &connection;
  case wire::NoteKind::ring_begin:
    window.ring_begun = window.ring_used = true;
    window.receives_read = 0;
    return nullptr;
  case wire::NoteKind::ring_end:
    drop_ring(connection);
    return nullptr;
  case wire::NoteKind::leave: // all that it has written was read before, and it reads nothing more
    if (window.own_ring != OwnRing::none) drop_ring(connection);
    forget_peer_ring(window);
    return nullptr;
  default:
    return nullptr;
  }
}

void MixedReceiver::list_counters(base::CounterList& list) const {
  SharedReceiver::list_counters(list);
  list.add("rdma", "rings_offered", "rings offered to peers that talk much", offered_);
  list.add("rdma", "rings_withdrawn", "... and withdrawn before a sleep, or for another peer",
           withdrawn_);
  list.add("rdma", "read_in_rings", "messages found in such rings", read_);
}

std::size_t MixedReceiver::bytes() const {
  return SharedReceiver::bytes() + bytes_;
}

} // namespace macadam::net::rdma
