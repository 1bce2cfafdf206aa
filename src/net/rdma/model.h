// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "mem/buffer_pool.h"
#include "mem/pages.h"
#include "net/rdma/device.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What the transport takes of memory: the constants that its code uses, and from them the bytes of
// a process (Sur et al., section 3.3). `macadam model` prints it; a test holds it against what a
// run measures.
namespace macadam::net::rdma::model {

using mem::BufferPool;
using mem::page;
using mem::round_up;

inline constexpr std::size_t line = 64;            // bytes
inline constexpr std::size_t header_room = 64;     // the engine's longest header
inline constexpr std::size_t repeated_header = 20; // bytes of the header that may be left out
inline constexpr std::size_t receive_headroom =
    32; // where messages land in their buffer: behind room for it
inline constexpr std::size_t trailer_bytes = 8; // wire::Trailer
// `mixed`: rings of a process, their slots, bytes of a slot, and of the longest message in one:
// behind it are up to 7 bytes and the trailer, before it is room for a header that repeats.
inline constexpr std::uint32_t most_rings = 8;
inline constexpr std::uint32_t most_slots = 64;
inline constexpr std::size_t slot_bytes = 1024;
inline constexpr std::size_t slot_most = slot_bytes - 7 - trailer_bytes - repeated_header;
// Message buffers of sends whose completion was not asked for, in a process.
inline constexpr std::uint32_t unsignalled_buffers = 7;
inline constexpr std::uint32_t spare_window = 3;      // receives of a connection beyond its window
inline constexpr std::uint32_t shared_batch = 16;     // shared receives posted together
inline constexpr std::size_t most_hybrid = 512 << 10; // bytes of a copy left behind for a receiver

// Datagram queue pair: requests of many peers at once, and our answers.
inline constexpr std::uint32_t datagram_receives = 128;
inline constexpr std::uint32_t datagram_sends = 64;
inline constexpr std::uint32_t datagram_room = 144; // bytes: route header and packet

constexpr std::size_t send_entry(std::uint32_t inline_bytes) {
  return round_up(32 + std::max<std::size_t>(3 * 16, inline_bytes + 4), line);
}
constexpr std::uint32_t most_segments = 16;
constexpr std::uint32_t fewest_segments = 3; // a message's header, data and tail
// Segments of a request: as many as lie where its inline data would. `most`: of the device.
constexpr std::uint32_t send_segments(std::uint32_t inline_bytes, std::uint32_t most) {
  return std::min({most, most_segments, std::max(fewest_segments, (inline_bytes + 4) / 16)});
}

// Bytes of a buffer that holds the longest message: its header and `eager` bytes of data.
constexpr std::size_t buffer_bytes(std::size_t eager) {
  return round_up(header_room + eager, line);
}

// Bytes of the process that the device's driver holds, beside what is registered: measured on a
// device (measure_driver()), or else estimated from the formats of verbs' work requests. What is
// held by the adapter and the kernel themselves is in neither.
struct Driver {
  double queue_pair = 1024; // of each
  // For each entry of a queue.
  double send = 0;
  double receive = 16;
  double completion = 64;
  double shared = 16;     // of the shared receive queue
  double datagrams = 0;   // for the datagram queue pair with its completion queues
  bool rounds_up = false; // completion and shared queues have a power of two of entries, more than
                          // were asked for: as measured entries are counted

  [[nodiscard]] double entries(std::uint32_t depth) const {
    return rounds_up ? static_cast<double>(std::bit_ceil(std::uint64_t{depth} + 1)) : depth;
  }
  // Bytes of one queue pair, completion queue, shared receive queue.
  [[nodiscard]] std::size_t queue_pair_bytes(std::uint32_t sends, std::uint32_t receives) const {
    return static_cast<std::size_t>(queue_pair + sends * send + receives * receive);
  }
  [[nodiscard]] std::size_t completion_bytes(std::uint32_t depth) const {
    return static_cast<std::size_t>(entries(depth) * completion);
  }
  [[nodiscard]] std::size_t shared_bytes(std::uint32_t depth) const {
    return static_cast<std::size_t>(entries(depth) * shared);
  }
};

// By verbs' formats. A send entry holds control, remote address and three segments, or inline data.
Driver estimated_driver(std::uint32_t inline_bytes);
// A measured one as the line `rdma_driver` of the tuned file, and back: send, receive, completion,
// shared and datagrams, as "1088.00 234.06 130.00 65.25 111616.00". Throws base::Error
// (MPI_ERR_ARG) for another text.
std::string text_of(const Driver& driver);
Driver driver_of(const std::string& text);

// The packets of the datagram queue pair.
constexpr std::size_t datagram_packets() {
  return round_up((datagram_receives + datagram_sends) * datagram_room, page);
}

// Receives posted to one queue pair of its own (`credit`, `ring`).
constexpr std::uint32_t own_receives(std::uint32_t window) {
  return window + spare_window;
}

// Completion queues are made as connections come, each twice as deep as the one before: few to
// poll, and memory in proportion to the connections. The depth of the `index`-th.
constexpr std::uint32_t queue_connections_first = 16;
constexpr std::uint32_t queue_depth(unsigned index, std::uint32_t per_connection,
                                    std::uint32_t most) {
  const std::uint64_t depth = std::uint64_t{queue_connections_first * per_connection}
                              << std::min(index, 24u);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(depth, most));
}

// Buffers that are registered beside the shared receives, once somebody is connected: as many as
// the progress thread must post at least when it is woken, so that the first time it registers
// none.
constexpr std::uint32_t reserved_receives(std::uint32_t shared, std::uint32_t watermark,
                                          std::uint32_t most) {
  return std::min(watermark, most - shared);
}

// What settings and device together come to: the numbers that the transport works with.
struct Shape {
  base::ReceiveMode mode = base::ReceiveMode::shared;
  std::size_t eager = 0;              // bytes
  std::uint32_t shared = 0;           // receives kept in the shared queue
  std::uint32_t watermark = 0;        // ... of which fewer wake the progress thread; 0: never
  std::uint32_t most_receives = 0;    // in the queue, or completed and not yet read
  std::uint32_t shared_depth = 0;     // of the shared queue
  std::uint32_t window = 0;           // of a connection; of a ring
  std::uint32_t rings = 0;            // `mixed`: at most
  std::uint32_t send_depth = 0;       // of a connection
  std::uint32_t inline_bytes = 0;     // that a request carries in itself
  std::uint32_t segments = 0;         // of a gather list
  std::uint32_t queue_pairs = 0;      // at most, with that for datagrams
  std::uint32_t completion_depth = 0; // of the device's completion queues, at most
  bool polls_memory = false;          // `ring`: messages are looked for there
  Driver driver;

  [[nodiscard]] bool has_queue() const { // of receives, for all connections
    return mode == base::ReceiveMode::shared || mode == base::ReceiveMode::mixed;
  }
  [[nodiscard]] std::uint32_t receive_depth() const { // of a connection's queue pair
    if (has_queue()) return 0;
    return polls_memory ? 1 : own_receives(window);
  }
  [[nodiscard]] std::uint32_t completions() const { // that a connection may need at any time
    return send_depth + receive_depth();
  }
};

// Slots of the ring of a connection. A ring that is polled takes notes too.
constexpr std::uint32_t ring_slots(const Shape& shape) {
  return shape.polls_memory ? own_receives(shape.window) : shape.window;
}
// Bytes of the ring, and of the trailers of notes that the process sends, one for each slot there.
constexpr std::size_t ring_bytes(const Shape& shape) {
  return round_up(ring_slots(shape) * buffer_bytes(shape.eager) +
                      own_receives(shape.window) * trailer_bytes,
                  page);
}

// `mixed`: bytes of a ring of so many slots.
constexpr std::size_t ring_bytes(std::uint32_t slots) {
  return round_up(slots * slot_bytes, page);
}

// The longest message that goes by HYBRID if the receiver has not announced itself. Its copy may
// take twice what a sender that makes none waits for a receiver that comes at once, which is a
// round trip and the transfer: so the choice is never much the dearer one, and for a receiver that
// comes late it is the cheaper one.
std::size_t hybrid_bytes(const base::Settings& settings, const DeviceLimits& limits);

// Messages of up to so many bytes of data may travel with others: one more copy of them takes at
// most half of the time of a request. (At two thirds it was even, in the simulator's networks.)
std::size_t bundled_bytes(std::size_t eager, const DeviceLimits& limits);

// A put or get of so many bytes is as fast by one port as by two, half by each: where the order of
// the halves matters something waits until both are there, a round trip that one port does not
// take.
std::size_t split_bytes(const DeviceLimits& limits);

// Settings that no device could follow throw base::Error (MPI_ERR_ARG); those that this one does
// not allow are lowered, with a line each in `lowered`. `sleeps_elsewhere`: on another network.
Shape shape_of(const base::Settings& settings, const DeviceLimits& limits,
               std::vector<std::string>& lowered, bool sleeps_elsewhere = false);

// What decides on the memory of a process of this shape.
struct Use {
  std::size_t connections = 0; // open
  std::size_t sends = 0;       // message buffers in use for sends at the busiest moment
  std::size_t buffers = 0;     // ... for sends and receives together, if that is known to be more
  std::size_t rings = 0;       // `mixed`: given to peers
};

std::size_t bytes(const Shape& shape, const Use& use);
// Those of them that are registered, and so cannot be swapped out.
std::size_t pinned_bytes(const Shape& shape, const Use& use);

// Equation 5: how many receives must be left when the progress thread is woken, so that it can post
// more before the last is used up. `bandwidth` bytes/s, `packet` bytes, `wake_up` seconds.
constexpr std::uint32_t watermark(double bandwidth, double packet, double wake_up) {
  return static_cast<std::uint32_t>(bandwidth / packet * wake_up + 0.5);
}

} // namespace macadam::net::rdma::model
