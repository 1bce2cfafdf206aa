// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/windowed.h"

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
  const std::uint32_t notified = connection.window->consumed;
  if (notified == 0 || notified < window_ / 4) return 0;
  repost(connection);
  connection.window->consumed = 0;
  return notified;
}

Connection* WindowedReceiver::count_consumed(Connection& connection, const wire::Note& note) {
  if (!wire::takes_credit(note.kind)) return nullptr;
  ++connection.window->consumed;
  return owes(connection) ? &connection : nullptr;
}

std::optional<Receiver::Due> WindowedReceiver::due(Connection& connection) {
  if (!owes(connection)) return std::nullopt;
  return Due{.kind = wire::NoteKind::credits, .payload = {}};
}

} // namespace macadam::net::rdma
