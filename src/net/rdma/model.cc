// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/model.h"

#include "net/rdma/transport.h"

namespace macadam::net::rdma::model {

std::size_t bytes(const Shape& shape, std::size_t connections, std::size_t sends) {
  const bool shared = shape.mode == base::ReceiveMode::shared;
  const std::uint32_t own = shared ? 0 : own_receives(shape.window);
  const std::size_t buffer = buffer_bytes(shape.eager);

  // Equations 1 to 4: what all connections share, and what each has.
  std::size_t buffers = sends;
  if (shared) buffers += shape.shared;
  if (shape.mode == base::ReceiveMode::credit) buffers += connections * own;
  std::size_t sum = sizeof(RdmaTransport) + datagram_bytes() +
                    round_up(buffers, pool_chunk) * (buffer + sizeof(Buffer));
  if (shared) sum += shape.most_receives * completion_entry + shape.shared * receive_entry;
  sum += connections * (queue_pair_bytes(shape.send_depth, own, shape.inline_bytes) +
                        shape.send_depth * sizeof(PendingSend) + sizeof(Connection));
  if (shape.mode == base::ReceiveMode::ring)
    sum += connections * round_up(shape.window * buffer, page);

  const std::uint32_t each = completions(shape.mode, shape.send_depth, shape.window);
  std::size_t left = connections;
  for (unsigned index = 0; left > 0; ++index) {
    const std::uint32_t depth = queue_depth(index, each, shape.completion_depth);
    sum += depth * completion_entry;
    left -= std::min<std::size_t>(left, depth / each);
  }
  return sum;
}

} // namespace macadam::net::rdma::model
