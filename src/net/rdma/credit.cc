// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/credit.h"

#include "base/error.h"
#include "net/rdma/model.h"

#include <algorithm>
#include <array>
#include <utility>

namespace macadam::net::rdma {

void CreditReceiver::configure(QueuePairOptions& options) const {
  options.receive_depth = model::own_receives(window_);
}

void CreditReceiver::open(Connection& connection) {
  const std::uint32_t count = model::own_receives(window_);
  auto made = std::make_unique<Window>();
  Window& window = *made;
  window.ours.window = static_cast<std::uint16_t>(window_);
  std::vector<Buffer*> buffers(count);
  window.reposts.reserve(count);
  connection.window = std::move(made);
  pool_.resize_limit(count);
  buffers.resize(pool_.take(buffers, 1));
  window.buffers = std::move(buffers);
  held_ += window.buffers.size();
  if (window.buffers.size() != count) {
    close(connection);
    base::fail(MPI_ERR_NO_MEM,
               "RDMA: no memory for {} receive buffers of {} bytes of the connection to rank {}; "
               "lower MACADAM_RDMA_WINDOW or MACADAM_RDMA_EAGER",
               count, pool_.buffer_bytes(), connection.rank);
  }
  post(connection, window.buffers);
}

// The queue pair is gone, and with it every receive: each buffer is ours again, also those whose
// messages were read and not yet posted again.
void CreditReceiver::close(Connection& connection) {
  if (connection.window == nullptr) return;
  held_ -= connection.window->buffers.size();
  pool_.give(connection.window->buffers);
  pool_.resize_limit(-static_cast<std::ptrdiff_t>(model::own_receives(window_)));
  connection.window.reset();
}

Connection* CreditReceiver::consumed(Connection* connection, const Completion& completion,
                                     const wire::Note& note) {
  if (connection == nullptr) return nullptr; // closed meanwhile: the buffer was given back
  Buffer* const buffer = buffer_of(completion.id);
  if (wire::takes_credit(note.kind)) {
    connection->window->reposts.push_back(buffer);
  } else {
    post(*connection, {&buffer, 1});
  }
  return count_consumed(*connection, note);
}

void CreditReceiver::repost(Connection& connection) {
  post(connection, connection.window->reposts);
  connection.window->reposts.clear();
}

void CreditReceiver::post(Connection& connection, std::span<Buffer* const> buffers) {
  while (!buffers.empty()) {
    std::array<ReceiveWork, receive_batch> work;
    const std::size_t count = std::min(buffers.size(), work.size());
    for (std::size_t i = 0; i < count; ++i)
      work[i] = {.id = receive_id(buffers[i]), .segment = receive_segment(pool_, *buffers[i])};
    connection.queue_pair->post_receive(std::span(work).first(count));
    buffers = buffers.subspan(count);
  }
}

} // namespace macadam::net::rdma
