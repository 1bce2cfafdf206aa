// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/windowed.h"

#include <utility>

namespace macadam::net::rdma {

void WindowedReceiver::join(Connection& connection, const wire::Reception& theirs) {
  connection.window->theirs = theirs;
  connection.window->credits = theirs.window;
  connection.window->slot = 0;
}

wire::Note WindowedReceiver::prepare(Connection& connection, SendWork&, wire::Note note) {
  take_receive(connection);
  note.credits = static_cast<std::uint16_t>(take_credits(connection));
  return note;
}

// In lumps: to post one receive before each message would be a doorbell for each, where both sides
// send in turn. At half a window they are told at the latest (count_consumed()).
std::uint32_t WindowedReceiver::take_credits(Connection& connection) {
  Window& window = *connection.window;
  if (!window.has_lump(window_)) return 0;
  repost(connection);
  return std::exchange(window.consumed, 0);
}

Connection* WindowedReceiver::count_consumed(Connection& connection, const wire::Note& note) {
  if (!wire::takes_credit(note.kind)) return nullptr;
  ++connection.window->consumed;
  return connection.window->owes_note(window_) ? &connection : nullptr;
}

std::optional<Receiver::Due> WindowedReceiver::due(Connection& connection) {
  if (!connection.window->owes_note(window_)) return std::nullopt;
  return Due{.kind = wire::NoteKind::credits, .payload = {}};
}

} // namespace macadam::net::rdma
