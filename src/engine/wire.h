// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

// Every packet of the engine. Little-endian, fixed sizes, ids instead of pointers. Each begins with
// its kind; an EAGER header and 8 bytes of data fit in one cache line of a transport.
namespace macadam::engine::wire {

enum class Kind : std::uint8_t {
  eager = 1,
  eager_synchronous,
  sender_ready,
  receiver_ready,
  fin_to_receiver,
  fin_to_sender,
  withdraw,
  withdrawn,
  throttle,
  pull,
  fragment,
  partitioned_send,
  partitioned_ready,
  partition_fin,
  partition_fragment,
  partitioned_done,
  partition_offer,
  bundle,
  sender_copied,
};

// EAGER: the payload follows. For eager_synchronous an 8-byte send id stands before the payload.
struct Eager {
  Kind kind = Kind::eager;
  std::uint8_t pad[3] = {};
  std::int32_t tag = 0;
  std::int32_t source = 0;
  std::uint32_t context_low = 0;
  std::uint32_t context_high = 0;
};
static_assert(sizeof(Eager) == 20 && alignof(Eager) == 4);

struct EagerSynchronous {
  Eager eager;
  std::uint32_t send_id_low = 0;
  std::uint32_t send_id_high = 0;
};
static_assert(sizeof(EagerSynchronous) == 28);

enum class Offer : std::uint8_t {
  hybrid, // the data lies in the sender's library buffer: read it
  read,   // large: read it from the user's buffer
  write,  // large: answer with a buffer, the sender will write
  either, // answer with a buffer, unless it was announced; who takes the permit moves the data
};

// SENDER_READY: a message too long for EAGER. Without data (Small & Yuan, Figures 2 and 4). The
// field's RTS (ready to send).
struct SenderReady {
  Kind kind = Kind::sender_ready;
  Offer offer = Offer::write;
  // The sender counts ordinals for this channel: if this message's receive was announced, the
  // sender will use the announcement (large messages).
  bool counted = false;
  bool synchronous = false;
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint32_t ordinal = 0; // its low bits, if counted
  std::uint64_t context = 0;
  std::uint64_t bytes = 0;
  std::uint64_t send_id = 0;
  RemoteMemory memory;
  std::uint64_t permit = 0; // to read `memory`, of Offer::either
};
static_assert(sizeof(SenderReady) == 64);

// RECEIVER_READY, the field's RTR (ready to receive): a buffer to write to. An announcement says
// which message of the channel it is for by its ordinal, and the sender must use its permit before
// it writes; an answer to a SENDER_READY names the send.
struct ReceiverReady {
  Kind kind = Kind::receiver_ready;
  // The receiver looks at the last byte of its buffer, which is `last_byte` now: a message of just
  // that length whose last byte is another needs no FIN.
  bool watched = false;
  std::uint8_t last_byte = 0;
  bool answers = false; // a SENDER_READY
  std::int32_t tag = 0;
  std::uint64_t context = 0;
  std::uint64_t ordinal = 0;
  std::uint64_t receive_id = 0;
  union {
    std::uint64_t permit = 0;
    std::uint64_t send_id;
  };
  std::uint64_t capacity = 0;
  RemoteMemory memory;
};
static_assert(sizeof(ReceiverReady) == 64);

// FIN: to a receiver, the data of its announced or answered receive are there (`bytes` is the size
// of the message, which may be more than was written); to a sender, its data have been read, or its
// synchronous message was matched; to a partitioned receive, partition `source` of the sender is
// there, or will not come as the sender `lacks` memory to send it from.
struct Fin {
  Kind kind = Kind::fin_to_receiver;
  bool lacks = false;
  std::uint8_t pad[2] = {};
  std::int32_t source = 0;
  std::uint64_t id = 0;
  std::uint64_t bytes = 0;
};
static_assert(sizeof(Fin) == 24);

// PULL: the data of a SENDER_READY, from `offset` on, as a message, since there is no memory here
// that can be written to. FRAGMENT answers: as many of them as one message takes follow.
struct Pull {
  Kind kind = Kind::pull;
  std::uint8_t pad[7] = {};
  std::uint64_t send_id = 0;
  std::uint64_t receive_id = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(Pull) == 32);

struct Fragment {
  Kind kind = Kind::fragment;
  std::uint8_t pad[7] = {};
  std::uint64_t receive_id = 0;
};
static_assert(sizeof(Fragment) == 16);

// WITHDRAW: a send that waits for its receive is being cancelled. WITHDRAWN answers, if no receive
// had matched the message; if one had, the send completes as any other.
struct Withdraw {
  Kind kind = Kind::withdraw;
  std::uint8_t pad[3] = {};
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint8_t pad2[4] = {};
  std::uint64_t context = 0;
  std::uint64_t send_id = 0;
};
static_assert(sizeof(Withdraw) == 32);

// SENDER_COPIED: the data of a SENDER_READY have been copied, to be read from there: HYBRID, of a
// sender that has waited for its receiver. The copy has a name of its own; the send's is no more.
struct SenderCopied {
  Kind kind = Kind::sender_copied;
  std::uint8_t pad[3] = {};
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint8_t pad2[4] = {};
  std::uint64_t context = 0;
  std::uint64_t send_id = 0;
  std::uint64_t copy_id = 0;
  RemoteMemory memory;
};
static_assert(sizeof(SenderCopied) == 56);

// THROTTLE: the receiver's room for unexpected data is used up (or free again): send SENDER_READY
// without data instead of EAGER (or EAGER again).
struct Throttle {
  Kind kind = Kind::throttle;
  bool on = false;
  std::uint8_t pad[2] = {};
};
static_assert(sizeof(Throttle) == 4);

// What the data of all partitions are, for the layer above to compare: with MACADAM_CHECK.
struct PartitionsNote {
  std::int64_t elements = 0; // basic ones
  std::uint64_t hash = 0;    // see datatype::Signature
  std::uint64_t basic = 0;   // the handle of the basic type, if it is one for all
};

// PARTITIONED_SEND: a partitioned send was made, of `partitions` of `bytes` each. Once.
struct PartitionedSend {
  Kind kind = Kind::partitioned_send;
  std::uint8_t pad[3] = {};
  std::int32_t source = 0;
  std::int32_t tag = 0;
  std::uint32_t partitions = 0;
  std::uint64_t context = 0;
  std::uint64_t bytes = 0;
  std::uint64_t send_id = 0;
  PartitionsNote note;
};
static_assert(sizeof(PartitionedSend) == 64);

enum class Refusal : std::uint8_t { no, too_little, no_memory };

// PARTITIONED_READY: the receiver has begun a round. Each partition of the sender may be written to
// its place in `memory`, with the notification `first_notification` + its number (0: with a FIN).
// If `by_messages`, the memory is not registered and the data come as PARTITION_FRAGMENTs;
// `refused`: nothing may be sent, as there is none, or too little.
struct PartitionedReady {
  Kind kind = Kind::partitioned_ready;
  bool by_messages = false;
  Refusal refused = Refusal::no;
  std::uint8_t pad = 0;
  std::uint32_t first_notification = 0;
  std::uint64_t send_id = 0;
  std::uint64_t receive_id = 0;
  RemoteMemory memory;
};
static_assert(sizeof(PartitionedReady) == 40);

// PARTITION_FRAGMENT: data of a partition follow, to be put at `offset` of the receiver's data.
// `last`: the partition is there.
struct PartitionFragment {
  Kind kind = Kind::partition_fragment;
  bool last = false;
  std::uint8_t pad[2] = {};
  std::uint32_t partition = 0;
  std::uint64_t receive_id = 0;
  std::uint64_t offset = 0;
};
static_assert(sizeof(PartitionFragment) == 24);

// PARTITIONED_DONE: all PARTITION_FRAGMENTs of a round are there, so the sender's data are free.
struct PartitionedDone {
  Kind kind = Kind::partitioned_done;
  std::uint8_t pad[7] = {};
  std::uint64_t send_id = 0;
};
static_assert(sizeof(PartitionedDone) == 16);

// PARTITION_OFFER: a partition may be read from `memory`, if `permit` can still be used; a FIN to
// the sender answers. If not, the sender has written it.
struct PartitionOffer {
  Kind kind = Kind::partition_offer;
  std::uint8_t pad[3] = {};
  std::uint32_t partition = 0;
  std::uint64_t receive_id = 0;
  std::uint64_t send_id = 0; // of the partition
  std::uint64_t permit = 0;
  RemoteMemory memory;
};
static_assert(sizeof(PartitionOffer) == 48);

// BUNDLE: several EAGER messages follow, each behind its length in bytes.
struct Bundle {
  Kind kind = Kind::bundle;
  std::uint8_t pad[3] = {};
};
static_assert(sizeof(Bundle) == 4);
using BundledBytes = std::uint16_t;

inline constexpr std::size_t longest_control =
    std::max({sizeof(SenderReady), sizeof(ReceiverReady), sizeof(PartitionedSend)});

} // namespace macadam::engine::wire
