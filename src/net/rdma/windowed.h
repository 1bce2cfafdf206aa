// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/receiver.h"

namespace macadam::net::rdma {

// What `credit` and `ring` have in common: a window of messages that may be under way on a
// connection; a put with a notification counts as one, for the receive that it takes. The receiver
// tells what it has consumed with messages of its own, by lumps of a quarter of the window, and by
// an explicit note once half a window is owed. Notes need no credit: for them there are
// `model::spare_window` receives more. Two credit notes at most are under way, since half a window
// of messages lies between them and they follow the credits of the one before; and one to close.
class WindowedReceiver : public Receiver {
 public:
  explicit WindowedReceiver(std::uint32_t window) : window_(window) {}

  void join(Connection& connection, const wire::Reception& theirs) override;
  void take_receive(Connection& connection) override { --connection.window->credits; }
  wire::Note prepare(Connection& connection, SendWork&, wire::Note note) override;
  std::uint32_t take_credits(Connection& connection) override;
  void on_credits(Connection& connection, std::uint32_t credits) override {
    connection.window->credits += credits;
  }
  std::optional<Due> due(Connection& connection) override;

 protected:
  // Receives of a connection that are posted with one doorbell.
  static constexpr std::uint32_t receive_batch = 64;
  // Posts receives for the messages consumed, all with one doorbell.
  virtual void repost(Connection& connection) = 0;
  // A message was read: the connection, if it is time for an explicit note.
  Connection* count_consumed(Connection& connection, const wire::Note& note);

  const std::uint32_t window_;
};

} // namespace macadam::net::rdma
