// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "engine/transport.h"

#include <array>
#include <cstdint>

// Everything this transport puts on the wire besides the engine's messages. Little-endian, fixed
// sizes.
namespace macadam::net::ofi::wire {

// Where a process is reached: all that start-up publishes. Both sides must have the same provider,
// which the format of its addresses and its protocol tell.
struct Endpoint {
  static constexpr std::uint32_t magic_value = 0x4d63664f; // "OfcM"

  std::uint32_t magic = magic_value;
  std::uint32_t format = 0;   // fi_info::addr_format
  std::uint32_t protocol = 0; // fi_ep_attr::protocol
  std::uint32_t bytes = 0;    // of the address
  std::array<std::uint8_t, 48> address = {};
};
static_assert(sizeof(Endpoint) == boot::endpoint_address_bytes);

enum class Kind : std::uint8_t {
  message = 1, // the engine's
  notice,      // Notice: a put is there
  ask,         // Question: answer when all before it has been taken
  answer,      // Question
  atomic,      // AtomicRequest
  result,      // AtomicResult
  credits,     // nothing but Header::credits
  revoke,      // PermitWanted: the sender wants it back
  revoked,     // PermitWanted: the answer
};

// What the progress thread answers for a program that computes, in no order with messages.
constexpr bool is_question(Kind kind) {
  return kind == Kind::ask || kind == Kind::atomic || kind == Kind::revoke;
}

// What is taken in the order in which it was sent. Providers keep that order for the receives that
// messages meet (FI_ORDER_SAS), not for their ends: one that `ofi_rxm` fetches ends after short
// ones that were sent later. So these are numbered.
constexpr bool is_numbered(Kind kind) {
  return kind == Kind::message || kind == Kind::notice;
}
// 0 is the first one alone: its sender may have forgotten that it had sent to us before.
constexpr std::uint32_t number_after(std::uint32_t number) {
  return number == UINT32_MAX ? 1 : number + 1;
}

// Providers keep what comes without a receive, as much as it may be. So a process sends no more
// than so many messages of these kinds that its peer has not taken; what answers them is as little.
inline constexpr std::uint32_t window = 64;
// TCP alone keeps nothing: what nobody receives stays in the sockets.
inline constexpr std::uint32_t window_of_tcp = 256;
constexpr bool takes_credit(Kind kind) {
  return is_numbered(kind) || is_question(kind);
}

// In front of every message. Whoever reaches this process's endpoint can send it something, so
// each message says who sends it, and has a proof of that in it (token.h).
struct Header {
  boot::ProcessName source;
  std::uint64_t seal = 0;    // the kind, and above it the upper 56 bits of the token
  std::uint32_t credits = 0; // messages of the receiver's that were taken since the last message
  std::uint32_t number = 0;  // if is_numbered()

  static constexpr unsigned kind_bits = 8;
  static constexpr std::uint64_t kind_mask = (1u << kind_bits) - 1;

  [[nodiscard]] Kind kind() const { return static_cast<Kind>(seal & kind_mask); }
  [[nodiscard]] bool is_sealed_by(std::uint64_t token) const {
    return (seal & ~kind_mask) == (token & ~kind_mask);
  }
  static std::uint64_t seal_of(std::uint64_t token, Kind kind) {
    return (token & ~kind_mask) | static_cast<std::uint64_t>(kind);
  }
};
static_assert(sizeof(Header) == 24);

struct Notice {
  std::uint64_t bytes = 0;
  std::uint32_t notification = 0;
  std::uint32_t pad = 0;
};
static_assert(sizeof(Notice) == 16);

struct Question {
  std::uint64_t id = 0; // of the one who asked
};
static_assert(sizeof(Question) == 8);

// An atomic of a word of the receiver's, which does it in its poll().
struct AtomicRequest {
  std::uint64_t id = 0; // of the one who asked
  engine::RemoteMemory word;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;
  std::uint64_t kind = 0; // engine::Atomic::Kind
};
static_assert(sizeof(AtomicRequest) == 48);

struct AtomicResult {
  std::uint64_t id = 0;
  std::uint64_t value = 0; // the old one
  std::uint64_t done = 0;  // 0: the word is not in memory that is registered
};
static_assert(sizeof(AtomicResult) == 24);

struct PermitWanted {
  std::uint64_t permit = 0;
  std::uint64_t used = 0; // in the answer: 1 if it was used before
};
static_assert(sizeof(PermitWanted) == 16);

} // namespace macadam::net::ofi::wire
