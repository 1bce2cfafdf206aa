// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "base/object.h"
#include "datatype/type.h"
#include "engine/transport.h"

#include <cstddef>
#include <cstdint>

namespace macadam::engine {

struct Peer;
struct Channel;

// What a message is matched by. `source` is the sender's rank in the communicator; a receive may
// hold MPI_ANY_SOURCE and MPI_ANY_TAG. Contexts are never used twice in a job.
struct Envelope {
  std::uint64_t context = 0;
  std::int32_t source = 0;
  std::int32_t tag = 0;
};

// The user's data: `count` elements of `type` at `address`. The engine takes a reference to the
// type if it needs it beyond the call.
struct Data {
  void* address = nullptr;
  MPI_Count count = 0;
  const datatype::Type* type = nullptr;

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count) * static_cast<std::size_t>(type->size());
  }
};

// How a finished operation ended. `error` is an MPI error class.
struct Status {
  std::int32_t source = MPI_ANY_SOURCE;
  std::int32_t tag = MPI_ANY_TAG;
  std::int32_t error = MPI_SUCCESS;
  bool cancelled = false;
  std::uint64_t bytes = 0;
};

// What a request is, for the layers above; the engine itself makes sends and receives.
enum class Role : std::uint8_t {
  done, // always complete, shared
  send,
  receive,
  persistent,
  collective,
  combined, // several operations as one (MPI_Isendrecv)
  generalized,
  partitioned,
};

// An operation in flight; an MPI_Request handle is the address of one. Owned by whoever started it
// until Engine::release().
struct Request : base::Object {
  explicit Request(Role r) : base::Object(base::ObjectKind::request), role(r) {}

  // Called once, when `complete` becomes true; may start other operations and release this one.
  using Continuation = void (*)(Request& request, void* argument) noexcept;

  Role role;
  bool complete = false;
  bool detached = false; // released by its owner while active: goes when complete
  Status status;
  Continuation continuation = nullptr;
  void* argument = nullptr;
  void* owner = nullptr; // for the layer above (its communicator); the engine does not touch it
};

enum class SendMode : std::uint8_t {
  standard,
  synchronous, // complete only once it is matched
  exchange,    // its process waits for what others send it too: leaving early gains it nothing
  nonblocking, // its process goes on, and waits later
  blocking,    // as standard, of a process that waits for it
};
// Those who wait for `nonblocking` and `blocking` sends call Engine::leave().

// How far a send that could not finish at once has come.
enum class SendStage : std::uint8_t {
  backlogged, // EAGER, waits for room or for the connection
  leaving,    // EAGER, uncopied: the data are being sent
  awaits_ack, // synchronous EAGER, waits until it is matched; or data that are being read
  announced,  // SENDER_READY sent, waits for the receiver
  unwritten,  // the receive is known; the data move when this process, or the receiver, is idle
  writing,    // RECV_RNDV or write form: put in flight
  written,    // put done at once, FIN still to be posted
};

struct InFlight; // tag of the engine's list of rendezvous in flight

struct SendRequest : Request, base::ListNode<InFlight> {
  SendRequest() : Request(Role::send) {}
  Peer* peer = nullptr;
  Envelope envelope;
  Data data;
  datatype::TypeRef noncontiguous; // the type, if its data are not one block
  std::byte* bounce = nullptr;     // packed copy of such data, or HYBRID's library buffer
  RemoteMemory registered;         // what the receiver may read
  std::uint64_t id = 0;            // its name on the wire, 0: none
  std::uint64_t ordinal = 0;       // its place on its channel
  std::size_t bytes = 0;
  std::uint64_t permit = 0; // of ours, to read the data; 0: none, or any time
  SendMode mode = SendMode::standard;
  SendStage stage = SendStage::backlogged;
  bool counted = false; // has an ordinal: announcements may be used
  bool hybrid = false;  // `bounce` is from the transport; the user's send is complete
  bool is_registered = false;
  bool cancelling = false;  // the receiver has been asked to forget it
  bool may_leave = false;   // see Engine::leave()
  bool left_behind = false; // a copy; its steps were those of the send that has left
};

enum class ReceiveStage : std::uint8_t {
  posted,     // waits for a message
  reading,    // get in flight, or pulling
  awaits_fin, // matched or announced, the sender writes
};

struct Held;    // tag: receives that may not announce themselves yet
struct Watched; // tag: receives whose last byte is looked at

// Its first list node is in a bucket of the matcher while it is posted, then in the engine's list
// of receives in flight.
struct ReceiveRequest : Request,
                        base::ListNode<InFlight>,
                        base::ListNode<Held>,
                        base::ListNode<Watched> {
  ReceiveRequest() : Request(Role::receive) {}
  // What every receive has stands first, so that the rest is cleared as one block.
  Envelope envelope; // as asked, wildcards included
  Data data;
  std::size_t capacity = 0;   // bytes
  std::uint64_t sequence = 0; // order of posting
  std::uint8_t granule = 1;   // the type's: a message of another multiple ends inside an element
  ReceiveStage stage = ReceiveStage::posted;
  bool announced = false;  // RECEIVER_READY sent with an ordinal
  bool cancelling = false; // waits until permits are revoked
  bool revoking = false;   // it is not known yet whether the sender has used its permit
  bool is_registered = false;
  std::uint8_t last_byte = 0;        // of the destination, when the sender was told of it
  Peer* peer = nullptr;              // null until known, for MPI_ANY_SOURCE
  Channel* channel = nullptr;        // where it counts as pending
  datatype::TypeRef noncontiguous;   // the type, if its data are not one block
  std::byte* bounce = nullptr;       // bounce buffer for such data
  RemoteMemory registered;           // what the sender may write
  std::uint64_t id = 0;              // its name on the wire, 0: none
  std::uint64_t permit = 0;          // of its announcement, 0: none
  std::uint64_t sender_id = 0;       // the send it answers, while reading
  struct Message* offered = nullptr; // what it matched while that was not known
  RemoteMemory readable;             // where the data are, if the sender may write them too
  std::uint64_t sender_permit = 0; // decides who moves them; 0: the sender, or they are being read
  std::uint64_t incoming = 0; // bytes of the message that matched, while its data are on the way
  std::size_t pulled = 0;     // of them, those that have come as fragments
};

} // namespace macadam::engine
