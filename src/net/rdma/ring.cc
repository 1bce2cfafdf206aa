// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ring.h"

#include "net/rdma/model.h"

namespace macadam::net::rdma {

void RingReceiver::configure(QueuePairOptions& options) const {
  options.receive_depth = model::own_receives(window_); // for the immediates
}

void RingReceiver::open(Connection& connection) {
  const std::size_t bytes = model::round_up(window_ * slot_bytes_, model::page);
  connection.window = std::make_unique<Window>();
  Window& window = *connection.window;
  window.ring = allocate_pages(bytes, "the ring of a connection");
  window.region = device_.register_memory(window.ring.get(), bytes, Access::remote);
  bytes_ += bytes;
  post(connection, model::own_receives(window_));
  window.ours = {.address =
                     reinterpret_cast<std::uintptr_t>(window.ring.get()) + model::receive_headroom,
                 .key = window.region->remote_key,
                 .window = window_};
}

void RingReceiver::close(Connection& connection) {
  if (connection.window != nullptr && connection.window->region != nullptr)
    bytes_ -= model::round_up(window_ * slot_bytes_, model::page);
  connection.window.reset();
}

wire::Note RingReceiver::prepare(Connection& connection, SendWork& work, wire::Note note) {
  note = WindowedReceiver::prepare(connection, work, note);
  Window& window = *connection.window;
  note.slot = static_cast<std::uint16_t>(window.slot);
  work.operation = Operation::write_immediate;
  work.remote_address = window.theirs.address + window.slot * slot_bytes_;
  work.remote_key = window.theirs.key;
  window.slot = (window.slot + 1) % window.theirs.window;
  return note;
}

bool RingReceiver::consumed(Connection* connection, const Completion&, const wire::Note& note) {
  if (connection == nullptr) return false; // closed meanwhile, and its ring with it
  if (!wire::takes_credit(note.kind)) post(*connection, 1);
  return count_consumed(*connection, note);
}

void RingReceiver::repost(Connection& connection) {
  post(connection, connection.window->consumed);
}

void RingReceiver::post(Connection& connection, std::uint32_t count) {
  const std::vector<ReceiveWork> work(count, ReceiveWork{.id = receive_id(nullptr), .segment = {}});
  connection.queue_pair->post_receive(work);
}

} // namespace macadam::net::rdma
