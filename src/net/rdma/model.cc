// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/model.h"

#include "base/error.h"
#include "net/rdma/transport.h"

#include <array>
#include <sstream>

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

// Whether messages that are written to rings can be looked for there.
bool can_poll(const DeviceLimits& limits, bool sleeps_elsewhere,
              std::vector<std::string>& lowered) {
  const bool ordered = limits.orders_bytes && limits.orders_writes;
  if (ordered && !sleeps_elsewhere) return true;
  lowered.push_back(
      fmt::format("rdma: rings are not polled, completions tell of their messages: {}",
                  ordered ? "the process sleeps on another network"
                          : "the adapter does not promise to place bytes and writes in order"));
  return false;
}

// Whether peers may be given rings beside the shared queue. What takes a receive is counted modulo
// 2^16: more must not be under way from a peer, which has our settings, or wait here to be read.
bool can_merge(const Shape& shape, const DeviceLimits& limits, std::vector<std::string>& lowered) {
  const bool ordered = limits.orders_bytes && limits.orders_writes && limits.orders_arrivals;
  const bool few = shape.most_receives + shape.send_depth < 1u << wire::Note::slot_bits;
  if (ordered && few) return true;
  lowered.push_back(
      fmt::format("rdma: no peer gets a ring: {}",
                  ordered ? "MACADAM_RDMA_SEND_DEPTH and the receives that "
                            "MACADAM_RDMA_BUFFERS allows are 65536 or more together"
                          : "the adapter does not promise to place bytes and writes in order"));
  return false;
}

// What the pool has made: a first arena with the spare buffers, the reserve, and smaller ones.
struct Pool {
  std::size_t buffers = 0;
  std::size_t pinned = 0; // bytes, in whole pages
};

Pool pool_of(const Shape& shape, const Use& use) {
  const bool shared = shape.has_queue();
  std::size_t receives = 0;
  if (shared) receives = shape.shared;
  if (shape.mode == base::ReceiveMode::credit) receives = use.connections * shape.receive_depth();
  if (receives + use.sends + use.buffers == 0) return {};

  const std::size_t first =
      shared ? round_up(shape.shared, BufferPool::smallest_arena) : BufferPool::smallest_arena;
  std::size_t reserved = 0;
  if (shared && use.connections > 0) {
    reserved = reserved_receives(shape.shared, shape.watermark, shape.most_receives);
    reserved =
        round_up(reserved - std::min(reserved, first - shape.shared), BufferPool::smallest_arena);
  }
  const auto beyond_spare = [](std::size_t count) {
    return count - std::min(count, BufferPool::spare);
  };
  const std::size_t usual = std::max(
      first + reserved, round_up(receives + beyond_spare(use.sends), BufferPool::smallest_arena));
  const std::size_t burst = beyond_spare(use.buffers);
  const std::size_t grain = shared ? BufferPool::largest_arena : BufferPool::smallest_arena;
  const std::size_t more = round_up(burst - std::min(burst, usual), grain);

  // Registered in blocks of whole pages, of `each` buffers and a rest.
  const auto pinned = [&](std::size_t buffers, std::size_t each) {
    const std::size_t buffer = buffer_bytes(shape.eager);
    return buffers / each * round_up(each * buffer, page) + round_up(buffers % each * buffer, page);
  };
  const std::size_t at_once = std::min(first, BufferPool::largest_arena);
  return {.buffers = BufferPool::spare + usual + more,
          .pinned = pinned(BufferPool::spare + at_once, BufferPool::spare + at_once) +
                    pinned(first - at_once, BufferPool::largest_arena) +
                    pinned(reserved, BufferPool::reserve_arena) +
                    pinned(usual - first - reserved, BufferPool::smallest_arena) +
                    pinned(more, grain)};
}

// The numbers of a measured driver, in the order in which they are written.
constexpr std::array measured{&Driver::send, &Driver::receive, &Driver::completion, &Driver::shared,
                              &Driver::datagrams};

} // namespace

Driver estimated_driver(std::uint32_t inline_bytes) {
  Driver driver;
  driver.send = static_cast<double>(send_entry(inline_bytes));
  driver.datagrams = (datagram_receives + datagram_sends) * driver.completion + driver.queue_pair +
                     datagram_sends * static_cast<double>(send_entry(0)) +
                     datagram_receives * driver.receive;
  return driver;
}

std::string text_of(const Driver& driver) {
  std::string text;
  for (const auto value : measured)
    text += fmt::format("{}{:.2f}", text.empty() ? "" : " ", driver.*value);
  return text;
}

Driver driver_of(const std::string& text) {
  Driver driver;
  driver.queue_pair = 0;
  driver.rounds_up = true;
  std::istringstream words(text);
  for (const auto value : measured)
    words >> driver.*value;
  const bool sound =
      words && std::ranges::all_of(measured, [&](auto value) { return driver.*value >= 0; });
  if (std::string rest; !sound || words >> rest) {
    base::fail(MPI_ERR_ARG,
               "RDMA: rdma_driver is '{}', needed are the {} numbers that 'macadam tune' "
               "measures, as '{}'",
               text, measured.size(), text_of(estimated_driver(0)));
  }
  return driver;
}

std::size_t hybrid_bytes(const base::Settings& settings, const DeviceLimits& limits) {
  if (settings.rdma_hybrid >= 0) return static_cast<std::size_t>(settings.rdma_hybrid);
  const double lost = 1 / limits.copy_bytes_per_s - 2 / limits.bytes_per_s; // seconds a byte
  const double most = static_cast<double>(most_hybrid);
  return static_cast<std::size_t>(
      lost * most <= 2 * limits.round_trip_s ? most : 2 * limits.round_trip_s / lost);
}

std::size_t bundled_bytes(std::size_t eager, const DeviceLimits& limits) {
  constexpr std::size_t most = 1024; // a longer one is hardly worth it where a request takes long
  return std::min(
      {eager, most, static_cast<std::size_t>(limits.copy_bytes_per_s * limits.post_s / 2)});
}

std::size_t split_bytes(const DeviceLimits& limits) {
  return round_up(static_cast<std::size_t>(2 * limits.bytes_per_s * limits.round_trip_s), 2 * page);
}

Shape shape_of(const base::Settings& settings, const DeviceLimits& limits,
               std::vector<std::string>& lowered, bool sleeps_elsewhere) {
  require("MACADAM_RDMA_WINDOW", settings.rdma_window, 2, wire::Note::most_credits);
  require("MACADAM_RDMA_SEND_DEPTH", settings.rdma_send_depth, 4, 1 << 15);
  require("MACADAM_RDMA_EAGER", settings.rdma_eager, 64, 1 << 20);
  require("MACADAM_RDMA_HYBRID", settings.rdma_hybrid, -1, std::int64_t{1} << 40);
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
  shape.segments = send_segments(shape.inline_bytes, limits.segments);
  shape.completion_depth = limits.completion_depth;
  shape.driver = settings.rdma_driver.empty() ? estimated_driver(shape.inline_bytes)
                                              : driver_of(settings.rdma_driver);
  shape.queue_pairs = settings.rdma_queue_pairs < 0
                          ? limits.queue_pairs
                          : bound(settings.rdma_queue_pairs, limits.queue_pairs,
                                  "MACADAM_RDMA_QUEUE_PAIRS", "the adapter");
  if (shape.has_queue()) {
    const auto pool = static_cast<std::uint32_t>(settings.rdma_buffers);
    // An eighth of the pool is left for sends.
    shape.most_receives = bound(pool - std::max(pool / 8, 1u), limits.completion_depth,
                                "MACADAM_RDMA_BUFFERS", "the depth of a completion queue");
    shape.shared_depth = std::min(shape.most_receives, limits.shared_depth);
    shape.shared = bound(settings.rdma_shared, shape.shared_depth, "MACADAM_RDMA_SHARED",
                         "the depth of a shared queue, or the pool,");
    // The progress thread is woken while something is left, but not by every message.
    shape.watermark = bound(settings.rdma_watermark, shape.shared - (shape.shared + 3) / 4,
                            "MACADAM_RDMA_WATERMARK", "MACADAM_RDMA_SHARED");
    if (shape.mode == base::ReceiveMode::mixed) {
      shape.window =
          static_cast<std::uint32_t>(std::min<std::int64_t>(settings.rdma_window, most_slots));
      shape.rings = can_merge(shape, limits, lowered) ? most_rings : 0;
    }
  } else {
    shape.window = bound(settings.rdma_window,
                         limits.receive_depth - std::min(spare_window, limits.receive_depth),
                         "MACADAM_RDMA_WINDOW", "the depth of a receive queue");
  }
  if (shape.mode == base::ReceiveMode::ring)
    shape.polls_memory = can_poll(limits, sleeps_elsewhere, lowered);
  return shape;
}

std::size_t pinned_bytes(const Shape& shape, const Use& use) {
  std::size_t sum = datagram_packets() + pool_of(shape, use).pinned +
                    round_up(std::max<std::size_t>(use.connections, 1) * sizeof(Permits::Row),
                             PermitRows::arena_bytes);
  if (shape.mode == base::ReceiveMode::ring) sum += use.connections * ring_bytes(shape);
  return sum + use.rings * ring_bytes(shape.window);
}

std::size_t bytes(const Shape& shape, const Use& use) {
  // Equations 1 to 4: what all connections share, and what each has.
  std::size_t sum = pinned_bytes(shape, use) + sizeof(RdmaTransport) +
                    static_cast<std::size_t>(shape.driver.datagrams) +
                    pool_of(shape, use).buffers * sizeof(Buffer);
  if (shape.has_queue())
    sum += shape.driver.completion_bytes(shape.most_receives) +
           shape.driver.shared_bytes(shape.shared_depth);
  sum +=
      use.connections * (shape.driver.queue_pair_bytes(shape.send_depth, shape.receive_depth()) +
                         shape.send_depth * sizeof(PendingSend) + record_bytes + sizeof(Permits) +
                         sizeof(Headers) + (shape.window != 0 ? sizeof(Window) : 0));

  const std::uint32_t each = shape.completions();
  std::size_t left = use.connections;
  for (unsigned index = 0; left > 0; ++index) {
    const std::uint32_t depth = queue_depth(index, each, shape.completion_depth);
    sum += shape.driver.completion_bytes(depth);
    left -= std::min<std::size_t>(left, depth / each);
  }
  return sum;
}

} // namespace macadam::net::rdma::model
