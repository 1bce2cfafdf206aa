// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "engine/transport.h"
#include "net/shm/bulk/stores.h"
#include "net/shm/segment.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

// What stands in the queues and rings: messages in consecutive cache lines. The first line begins
// with a stamp, stored last; so a message of up to 52 bytes travels in one transfer of one line,
// and the reader writes nothing but its position, seldom.
//
// What is trusted. The processes of a job are one user's and may write to each other's memory, so
// nothing here keeps one out that means harm. But a wild pointer may hit a segment, and what it
// leaves there must not become a second one: positions are reduced to the circular buffer by at(),
// and every index, offset and length that a peer has written is looked at once, where it is read,
// before it is used: of a line by holds() and least_body(), of a chunk in Transport::data_of(), of
// a claim in on_get_request(), of a ring in on_grant(), of a segment's header in reach(). Trusted
// are addresses in this process's private memory, which it has told the peer itself, and what the
// engine's messages say.
namespace macadam::net::shm {

enum class Kind : std::uint8_t {
  message = 1,  // of the engine
  fragment,     // of a long message of the engine: Fragment
  pad,          // nothing up to the end of the circular buffer
  to_ring,      // in the queue: the sender's next message is in its ring
  ring_end,     // in a ring: the sender's next message is in the queue
  grant,        // Grant: a ring for the receiver of this
  revoke,       // give the ring back
  put_fragment, // PutFragment
  get_request,  // GetRequest
  get_done,     // GetDone
  notified_put, // NotifiedPut, then the data
  notification, // Notification
};

// What a line says besides its message.
struct Mark {
  constexpr Mark(std::uint32_t its_place, std::uint8_t its_seen = 0)
      : place(its_place), seen(its_seen) {}
  // In the queue the seat of the one it comes from. In a ring and in a Mailbox what was written
  // before it in the other of the two.
  std::uint32_t place;
  // In a ring and in a Mailbox what its sender had read in both, see Mailbox::sum().
  std::uint8_t seen;
};

// The first line of a message.
struct alignas(line_bytes) Line {
  std::uint32_t stamp; // see CircularBuffer::stamp()
  std::uint16_t bytes; // in the body
  Kind kind;
  std::uint8_t seen;   // as in Mark
  std::uint32_t place; // the same
  std::byte first[52]; // of the body, which goes on in the following lines

  [[nodiscard]] std::byte* body() { return reinterpret_cast<std::byte*>(this) + 12; }
  [[nodiscard]] const std::byte* body() const {
    return reinterpret_cast<const std::byte*>(this) + 12;
  }
};
static_assert(sizeof(Line) == line_bytes && offsetof(Line, first) == 12);

inline constexpr std::size_t line_body = sizeof(Line::first);

// Lines that a message with a body of this size takes.
constexpr std::uint32_t lines_for(std::size_t body_bytes) {
  return static_cast<std::uint32_t>((offsetof(Line, first) + body_bytes + line_bytes - 1) /
                                    line_bytes);
}

inline constexpr std::size_t longest_header = 64; // of the engine's messages, in bytes

// A message up to this long stands in the circular buffer; the data of longer ones go through
// chunks.
inline constexpr std::size_t longest_inline = (4 << 10) + longest_header;

// A payload from this size on is long enough to ask for its lines ahead.
inline constexpr std::size_t long_payload = 1 << 10;

// The least payload to write past the caches.
inline constexpr std::size_t worth_past_caches = 2 << 10;

// Bodies of the transport's own messages.
struct Grant {
  std::uint32_t lines;
  engine::RemoteMemory ring;    // its RingControl
  engine::RemoteMemory mailbox; // not mapped: there is none, or it is the other's to give
};
// Long data that stand in a chunk, behind the fragments of the same message.
struct Fragment {
  std::uint64_t all;  // bytes of the message, or of the put
  std::uint64_t left; // of these that follow
  std::uint32_t bytes;
  std::uint8_t chunk;
  bool senders; // the chunk is the sender's, or else the receiver's
};
struct PutFragment {
  Fragment fragment;
  std::uint64_t address; // where the data go, in the receiver's address space
  std::uint32_t tail;    // bytes of its last fragments, which share a chunk; 0: this has its own
  std::uint32_t notification; // with the last fragment, or 0
};
struct GetRequest {
  std::uint32_t claim;  // index into SegmentHeader::claim of the asking process, or no_claim
  std::uint32_t ticket; // what the claim holds until someone takes it
  std::uint64_t id;     // comes back in GetDone
  std::uint64_t from;   // address at the owner
  std::uint64_t to;     // address at the asking process
  std::uint64_t bytes;
};
struct GetDone {
  std::uint64_t id;
  bool ok;
};
struct NotifiedPut {
  std::uint64_t address; // as in RemoteMemory
  bool mapped;           // its key is not `private_key`: the owner needs no more of it
  std::uint32_t notification;
};
struct Notification {
  std::uint32_t notification;
  std::uint64_t bytes; // of the put, whose data are there
};
inline constexpr std::size_t longest_notified_put = 256; // bytes: copied twice, for short ones only

// Bytes that a message of the transport has at least.
[[nodiscard]] constexpr std::size_t least_body(Kind kind) {
  switch (kind) {
  case Kind::fragment:
    return sizeof(Fragment);
  case Kind::grant:
    return sizeof(Grant);
  case Kind::put_fragment:
    return sizeof(PutFragment);
  case Kind::get_request:
    return sizeof(GetRequest);
  case Kind::get_done:
    return sizeof(GetDone);
  case Kind::notified_put:
    return sizeof(NotifiedPut);
  case Kind::notification:
    return sizeof(Notification);
  default:
    return 0;
  }
}

template <class Body>
[[nodiscard]] Body read_body(const Line& line) {
  Body body;
  std::memcpy(&body, line.body(), sizeof body);
  return body;
}

// Asks for the first lines behind that of a header, while the header is looked at.
inline void fetch_rest(const Line& line) {
  constexpr std::uint32_t most = 8;
  const std::uint32_t lines = std::min(lines_for(line.bytes), most);
  for (std::uint32_t i = 1; i < lines; ++i)
    __builtin_prefetch(&line + i);
}

// A queue or ring has at least these: four of the longest messages, so that one always fits in the
// end however the circular buffer is cut.
inline constexpr std::uint64_t fewest_lines = std::uint64_t{4} * lines_for(longest_inline);

// Lines in a circle, a power of two of them. Positions count on without end; the line of a position
// is its remainder.
struct CircularBuffer {
  Line* lines = nullptr;
  std::uint64_t size = 0;
  unsigned shift = 0; // log2 of size

  CircularBuffer() = default;
  CircularBuffer(void* memory, std::uint64_t count)
      : lines(static_cast<Line*>(memory)), size(count),
        shift(static_cast<unsigned>(__builtin_ctzll(count))) {}

  [[nodiscard]] Line& at(std::uint64_t position) const { return lines[index(position)]; }
  [[nodiscard]] std::uint64_t index(std::uint64_t position) const { return position & (size - 1); }
  // Lines from there to the end of the buffer.
  [[nodiscard]] std::uint64_t left(std::uint64_t position) const { return size - index(position); }

  // A line holds the first line of a message if it is stamped with the lap of its position. Inner
  // lines of long messages hold whatever the user sent: writer (ring) or reader (queue) see to it
  // that a line never bears by chance the stamp that it will be polled for.
  [[nodiscard]] std::uint32_t stamp(std::uint64_t position) const {
    return stamp_of_lap(position >> shift);
  }
  // Never 0, which stands in lines that bear none.
  [[nodiscard]] static constexpr std::uint32_t stamp_of_lap(std::uint64_t lap) {
    return static_cast<std::uint32_t>(lap) | 1U << 31;
  }
  [[nodiscard]] bool stamped(std::uint64_t position) const {
    return std::atomic_ref(at(position).stamp).load(std::memory_order_acquire) == stamp(position);
  }
  void publish(std::uint64_t position) const {
    std::atomic_ref(at(position).stamp).store(stamp(position), std::memory_order_release);
  }

  // Lines to leave out so that `count` lines from there on are consecutive in memory.
  [[nodiscard]] std::uint64_t gap(std::uint64_t position, std::uint32_t count) const {
    const std::uint64_t rest = left(position);
    return count <= rest ? 0 : rest;
  }
  // Whether what a line says of its message's length can be.
  [[nodiscard]] bool holds(std::uint64_t position, const Line& line) const {
    return line.bytes <= longest_inline && gap(position, lines_for(line.bytes)) == 0;
  }
  [[nodiscard]] std::uint64_t lines_of(std::uint64_t position, const Line& line) const {
    if (line.kind == Kind::pad) return left(position);
    return lines_for(line.bytes);
  }
};

// The body of a message, to be written one after the other.
struct MessageBody {
  const void* header = nullptr;
  std::size_t header_bytes = 0;
  const void* payload = nullptr;
  std::size_t payload_bytes = 0;
  bool past_caches = false; // the payload, if it is worth it: see Transport::goes_one_way()
};

// A message of the transport itself.
template <class Body>
[[nodiscard]] MessageBody only(const Body& body) {
  return {&body, sizeof body, nullptr, 0};
}

// Writes everything of a message but the stamp.
inline void fill(Line& line, Kind kind, Mark mark, const MessageBody& body) {
  line.bytes = static_cast<std::uint16_t>(body.header_bytes + body.payload_bytes);
  line.kind = kind;
  line.seen = mark.seen;
  line.place = mark.place;
  base::copy(line.body(), body.header, body.header_bytes);
  std::byte* const to = line.body() + body.header_bytes;
  const auto* const from = static_cast<const std::byte*>(body.payload);
  if (body.payload_bytes < long_payload) {
    base::copy(to, from, body.payload_bytes);
  } else if (body.past_caches) {
    base::copy_past_caches(to, from, body.payload_bytes);
  } else {
    copy_ahead(to, from, body.payload_bytes);
    base::touched(body.payload_bytes);
  }
}

} // namespace macadam::net::shm
