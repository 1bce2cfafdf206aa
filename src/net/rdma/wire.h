// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "engine/transport.h"
#include "net/rdma/device.h"

#include <array>
#include <cstddef>
#include <cstdint>

// Everything this transport puts on the wire besides the engine's messages. Little-endian, fixed
// sizes. docs/rdma.md tells the protocol of connections, packet by packet.
namespace macadam::net::rdma::wire {

// Where a process listens for connections: the address of its datagram queue pair. All that
// start-up publishes.
struct Endpoint {
  std::array<std::uint8_t, 16> gid = {};
  std::uint32_t lid = 0;
  std::uint32_t queue_pair : 24 = 0;
  std::uint32_t mtu : 8 = 0; // verbs' code
};
static_assert(sizeof(Endpoint) == 24);

inline Endpoint endpoint_of(const QueuePairAddress& address) {
  return {address.port.gid, address.port.lid, address.number & 0xffffff, address.port.mtu};
}
inline QueuePairAddress address_of(const Endpoint& endpoint) {
  return {{endpoint.gid, endpoint.lid, static_cast<std::uint8_t>(endpoint.mtu)},
          endpoint.queue_pair};
}

// What a sender must know of the receiver's buffers.
struct Reception {
  std::uint64_t address = 0; // of a ring: where its first slot begins
  std::uint32_t key = 0;     // ... and the key to write there
  std::uint16_t window = 0;  // messages that may be under way, of a ring too
  std::uint16_t polled = 0;  // `ring`: 1 if it looks at the slots; then each ends with a Trailer
};
static_assert(sizeof(Reception) == 16);

enum class PacketKind : std::uint8_t {
  request = 1, // here is my queue pair
  reply,       // here is mine, and it has accepted yours
  ready,       // mine has accepted yours too
  wait,        // I have no queue pair left; one is being freed, keep asking
  gone,        // I have given up the attempt that you answer; forget it
  refused,     // never: see `mode`, or the connection has failed before
  broken,      // our connection has failed on my side
};

// The packets by which two processes connect, sent as datagrams.
struct ConnectPacket {
  static constexpr std::uint32_t magic_value = 0x4d634331; // "1CcM"
  static constexpr std::uint8_t version_value = 4;

  std::uint32_t magic = magic_value;
  std::uint8_t version = version_value;
  PacketKind kind = PacketKind::request;
  std::uint8_t mode = 0; // base::ReceiveMode of the sender
  std::uint8_t pad = 0;
  boot::ProcessName source;
  std::uint32_t target = 0;   // rank in its job
  std::uint32_t attempt = 0;  // the sender's number for its queue pair; grows, per peer
  std::uint32_t answered = 0; // the receiver's number this packet refers to; 0: none
  Endpoint queue_pair;        // request, reply; see `first_number`
  std::uint32_t permits_key = 0;
  Reception reception;       // request, reply
  std::uint64_t permits = 0; // request, reply: where the receiver's lie
  boot::Secret secret = {};  // of the target's job
  // Sent only by who has a second queue pair beside the first, on a second port. Then `queue_pair`
  // is that one, and this the number of the first, which is on the port that was published.
  std::uint32_t first_number = 0;
  std::uint32_t no_more = 0;
};
static_assert(sizeof(ConnectPacket) == 104);

// Bytes of it that are sent.
constexpr std::size_t bytes_of(const ConnectPacket& packet) {
  return packet.first_number != 0 ? sizeof packet : offsetof(ConnectPacket, first_number);
}

// What comes with every message of a connection, as its immediate; a note of zeros needs none.
enum class NoteKind : std::uint8_t {
  repeat,  // the engine's, without its header: the one remembered last
  headed,  // the engine's, and its header is to be remembered
  message, // the engine's
  credits, // nothing but `credits`
  close,   // the last message of this side: the connection is being closed
  put,     // a put is complete; `slot` and `credits` together are the engine's notification
  leave,   // the last message of this process: it has all that it waited for, and ends
  // `mixed`. Of the process that owns a ring:
  ring_offer,    // here is one for you; a Reception follows
  ring_withdraw, // write no more to it
  // ... and of the peer that writes to it:
  ring_begin, // what comes behind this may stand there
  ring_end,   // nothing that comes behind this stands there
};

constexpr bool is_message(NoteKind kind) {
  return kind <= NoteKind::message;
}

constexpr bool takes_credit(NoteKind kind) {
  return is_message(kind) || kind == NoteKind::put;
}

struct Note {
  NoteKind kind = NoteKind::repeat;
  std::uint16_t credits = 0; // messages consumed of a window or ring since the last such note
  // `ring`, if it is not polled: where the message was written. `mixed`, in a ring: how many that
  // took a receive have gone before since the ring was begun, modulo 2^16.
  std::uint16_t slot = 0;

  static constexpr std::uint32_t credit_bits = 12;
  static constexpr std::uint32_t slot_bits = 16;
  static constexpr std::uint32_t most_credits = (1u << credit_bits) - 1;

  static_assert(engine::notification_bits == credit_bits + slot_bits);

  [[nodiscard]] std::uint32_t encode() const {
    return static_cast<std::uint32_t>(kind) << (credit_bits + slot_bits) |
           std::uint32_t{credits} << slot_bits | slot;
  }
  // The engine's notification of a put, which fills both fields.
  static Note of_put(std::uint32_t notification) {
    return {NoteKind::put, static_cast<std::uint16_t>(notification >> slot_bits),
            static_cast<std::uint16_t>(notification)};
  }
  [[nodiscard]] std::uint32_t notification() const {
    return std::uint32_t{credits} << slot_bits | slot;
  }
  static Note decode(std::uint32_t immediate) {
    return {static_cast<NoteKind>(immediate >> (credit_bits + slot_bits)),
            static_cast<std::uint16_t>(immediate >> slot_bits & most_credits),
            static_cast<std::uint16_t>(immediate)};
  }
};

// The end of a slot whose owner looks at memory (`ring`). A message is written together with it, as
// one block that ends where the slot does, so that the byte with `full` is placed last of all.
struct Trailer {
  std::uint32_t note = 0;       // Note::encode()
  std::uint32_t bytes : 31 = 0; // of the message before it, or of the put that it tells of
  std::uint32_t full : 1 = 0;
};
static_assert(sizeof(Trailer) == 8);

// What follows a message in such a slot: bytes up to the grain of Trailer, so that the message
// begins on it, and the trailer.
constexpr std::size_t tail_bytes(std::size_t message) {
  return (message + 7) / 8 * 8 - message + sizeof(Trailer);
}
inline constexpr std::size_t longest_tail = 7 + sizeof(Trailer);

} // namespace macadam::net::rdma::wire
