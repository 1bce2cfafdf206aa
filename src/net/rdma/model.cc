// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/model.h"

#include "base/error.h"
#include "net/rdma/transport.h"

namespace macadam::net::rdma::model {

namespace {

constexpr std::uint32_t most_inline = 256; // bytes: beyond, copying by the adapter costs too much

void require(const char* variable, std::int64_t found, std::int64_t least, std::int64_t most) {
  if (found >= least && found <= most) return;
  base::fail(MPI_ERR_ARG, "RDMA: {} is {}, needed {} to {}", variable, found, least, most);
}

std::uint32_t bounded(std::int64_t wanted, std::uint32_t most, const char* variable,
                      const char* what, std::vector<std::string>& lowered) {
  if (wanted <= most) return static_cast<std::uint32_t>(wanted);
  lowered.push_back(fmt::format("rdma: {} is {}, {} allows {}", variable, wanted, what, most));
  return most;
}

// Buffers that the pool has made.
std::size_t pool_buffers(const Shape& shape, std::size_t connections, std::size_t sends) {
  std::size_t receives = 0;
  if (shape.mode == base::ReceiveMode::shared) receives = shape.shared;
  if (shape.mode == base::ReceiveMode::credit) receives = connections * shape.receive_depth();
  if (receives + sends == 0) return 0;
  const std::size_t reserved =
      shape.mode == base::ReceiveMode::shared && connections > 0
          ? reserved_receives(shape.shared, shape.watermark, shape.most_receives)
          : 0;
  const std::size_t chunked =
      receives + std::max<std::size_t>(sends - std::min(sends, spare_buffers), reserved);
  return spare_buffers + round_up(std::max<std::size_t>(chunked, 1), pool_chunk);
}

} // namespace

Shape shape_of(const base::Settings& settings, const DeviceLimits& limits,
               std::vector<std::string>& lowered) {
  require("MACADAM_RDMA_RNR_RETRIES", settings.rdma_rnr_retries, 0, 7);
  require("MACADAM_RDMA_WINDOW", settings.rdma_window, 2, wire::Note::most_credits);
  require("MACADAM_RDMA_SEND_DEPTH", settings.rdma_send_depth, 4, 1 << 15);
  require("MACADAM_RDMA_EAGER", settings.rdma_eager, 64, 1 << 20);
  require("MACADAM_RDMA_BUFFERS", settings.rdma_buffers, 2, 1 << 24);
  require("MACADAM_RDMA_SHARED", settings.rdma_shared, 1, 1 << 24);
  require("MACADAM_RDMA_QUEUE_PAIRS", settings.rdma_queue_pairs, -1, 1 << 24);
  const auto bound = [&](std::int64_t wanted, std::uint32_t most, const char* variable,
                         const char* what) {
    return bounded(wanted, most, variable, what, lowered);
  };
  Shape shape;
  shape.mode = settings.rdma_receive;
  shape.eager = static_cast<std::size_t>(settings.rdma_eager);
  shape.send_depth =
      bound(settings.rdma_send_depth, limits.send_depth, "MACADAM_RDMA_SEND_DEPTH", "the adapter");
  shape.inline_bytes = std::min(limits.inline_bytes, most_inline);
  shape.completion_depth = limits.completion_depth;
  shape.queue_pairs = settings.rdma_queue_pairs < 0
                          ? limits.queue_pairs
                          : bound(settings.rdma_queue_pairs, limits.queue_pairs,
                                  "MACADAM_RDMA_QUEUE_PAIRS", "the adapter");
  if (shape.mode == base::ReceiveMode::shared) {
    const auto pool = static_cast<std::uint32_t>(settings.rdma_buffers);
    // An eighth of the pool is left for sends.
    shape.most_receives = bound(pool - std::max(pool / 8, 1u), limits.completion_depth,
                                "MACADAM_RDMA_BUFFERS", "the depth of a completion queue");
    shape.shared_depth = std::min(shape.most_receives, limits.shared_depth);
    shape.shared = bound(settings.rdma_shared, shape.shared_depth, "MACADAM_RDMA_SHARED",
                         "the depth of a shared queue, or the pool,");
    // The attendant is woken while something is left, but not by every message.
    shape.watermark = bound(settings.rdma_watermark, shape.shared - (shape.shared + 3) / 4,
                            "MACADAM_RDMA_WATERMARK", "MACADAM_RDMA_SHARED");
  } else {
    shape.window = bound(settings.rdma_window,
                         limits.receive_depth - std::min(spare_window, limits.receive_depth),
                         "MACADAM_RDMA_WINDOW", "the depth of a receive queue");
  }
  return shape;
}

std::size_t pinned_bytes(const Shape& shape, std::size_t connections, std::size_t sends) {
  const std::size_t buffer = buffer_bytes(shape.eager);
  std::size_t sum = datagram_packets() + pool_buffers(shape, connections, sends) * buffer +
                    round_up(std::max<std::size_t>(connections, 1) * sizeof(Permits::Row),
                             PermitRows::chunk_bytes);
  if (shape.mode == base::ReceiveMode::ring)
    sum += connections * round_up(shape.window * buffer, page);
  return sum;
}

std::size_t bytes(const Shape& shape, std::size_t connections, std::size_t sends) {
  // Equations 1 to 4: what all connections share, and what each has.
  std::size_t sum = pinned_bytes(shape, connections, sends) + sizeof(RdmaTransport) +
                    datagram_bytes() - datagram_packets() +
                    pool_buffers(shape, connections, sends) * sizeof(Buffer);
  if (shape.mode == base::ReceiveMode::shared)
    sum += shape.most_receives * completion_entry + shape.shared_depth * receive_entry;
  sum +=
      connections * (queue_pair_bytes(shape.send_depth, shape.receive_depth(), shape.inline_bytes) +
                     shape.send_depth * sizeof(PendingSend) + record_bytes + sizeof(Permits) +
                     sizeof(Headers) + (shape.window != 0 ? sizeof(Window) : 0));

  const std::uint32_t each = shape.completions();
  std::size_t left = connections;
  for (unsigned index = 0; left > 0; ++index) {
    const std::uint32_t depth = queue_depth(index, each, shape.completion_depth);
    sum += depth * completion_entry;
    left -= std::min<std::size_t>(left, depth / each);
  }
  return sum;
}

} // namespace macadam::net::rdma::model
