// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/transport.h"
#include "mem/buffer_pool.h"
#include "mem/registration_cache.h"
#include "net/rdma/device.h"
#include "net/rdma/model.h"
#include "net/rdma/permits.h"
#include "net/rdma/wire.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace macadam::net::rdma {

using engine::Rank;
using mem::Buffer;
using mem::BufferPool;

struct Connection;

// A put or get under way.
struct Transfer : base::ListNode<> {
  Connection* connection = nullptr;
  std::uint64_t cookie = 0;
  mem::Registration* registration = nullptr; // of `local`; or else
  Buffer* bounce = nullptr;                  // ... the data go through here, fragment by fragment
  std::size_t bounced = 0;                   // bytes of the fragment that is there now
  std::byte* local = nullptr;
  engine::RemoteMemory remote;
  std::size_t bytes = 0;
  std::size_t posted = 0;         // of them
  std::uint32_t notification = 0; // of a put, for its target
  std::uint32_t second_left = 0;  // requests under way on the second port
  std::size_t split = 0;   // bytes, the last ones, that go by it; `posted` once they are there
  bool first_done = false; // the others are there
  bool is_get = false;
};

// Something that a completion of a send queue ends. `sequence` is that of its (last) request. A
// connection has as many as its queue is deep.
struct PendingSend {
  std::uint32_t sequence = 0;
  bool is_transfer = false;
  union {
    Buffer* buffer = nullptr; // to be given back to the pool
    Transfer* transfer;       // to be completed
  };
};
static_assert(sizeof(PendingSend) == 16);

// The send queue of a connection as we account for it, so that it never overflows. Requests are
// numbered; a signalled one that has completed has completed all before it.
struct SendQueue {
  std::unique_ptr<PendingSend[]> pending; // a ring of `depth`: those that hold something
  std::uint32_t depth = 0;
  std::uint32_t posted = 0;    // sequence of the next request
  std::uint32_t completed = 0; // sequence behind the last request known to be complete
  std::uint32_t signalled = 0; // sequence behind the last signalled request
  std::uint32_t first = 0;     // of the ring
  std::uint32_t last = 0;
  std::uint32_t unsignalled = 0; // of its buffers: no signalled request is behind them
  std::uint32_t unplaced = 0;    // puts under way that a message could pass on this device

  [[nodiscard]] std::uint32_t room() const { return depth - (posted - completed); }
  [[nodiscard]] bool idle() const { return posted == completed; }
};

// The headers that were last sent and received to be remembered (wire::NoteKind). Messages of a
// connection arrive in order, so each is what the other side means by it.
struct Headers {
  using Header = std::array<std::byte, model::repeated_header>;
  Header sent = {};
  Header received = {};
};

// `mixed`: how far the ring of a connection is that this process owns, and the one that it writes
// to (mixed.h). What is `due` is to be told by a note.
enum class OwnRing : std::uint8_t { none, offer_due, offered, withdraw_due, withdrawn };
enum class PeerRing : std::uint8_t { none, begin_due, begun, end_due };

// What an open connection has of receive buffers of its own (`credit`, `ring`, `mixed`).
struct Window {
  std::uint32_t credits = 0;    // messages that we may still send, or write to the peer's ring
  std::uint32_t consumed = 0;   // messages read and not told to the peer
  std::vector<Buffer*> reposts; // `credit`: their buffers
  std::vector<Buffer*> buffers; // `credit`: all of this connection
  mem::PageMemory ring;         // `ring`: what the peer writes to
  std::unique_ptr<MemoryRegion> region;
  wire::Reception ours;    // what the peer must know of them
  wire::Reception theirs;  // where we write, and how much may be under way
  std::uint32_t slot = 0;  // of a ring: next to write to
  std::uint32_t read = 0;  // of a ring that is polled: next to be read
  std::uint32_t noted = 0; // `ring`: notes that were written; each is sent from `notes`
  wire::Trailer* notes = nullptr;

  // `mixed`: what the peer reads, whose free slots are `credits`.
  PeerRing peer_ring = PeerRing::none;
  bool may_queue = false;           // where no slot is free, messages go through the shared queue
  std::uint32_t writes_up_to = 0;   // bytes: the longest message that goes there; 0: none does
  std::uint16_t receives_taken = 0; // by what we have sent since we began to write there
  // ... and what we read.
  OwnRing own_ring = OwnRing::none;
  bool ring_begun = false;          // the peer writes there
  bool ring_used = false;           // ... and has since other peers wanted one
  std::uint16_t receives_read = 0;  // since it began
  std::uint32_t short_messages = 0; // that would fit there; if there is one: that stood there
  std::uint32_t ring_after = 0;     // so many of them

  // The peer, which may have `size` messages under way, is told of what was consumed with messages
  // of ours, by lumps of a quarter of them; once it is half, by a note.
  [[nodiscard]] bool has_lump(std::uint32_t size) const {
    return consumed >= std::max(size / 4, 1u);
  }
  [[nodiscard]] bool owes_note(std::uint32_t size) const {
    return consumed >= std::max(size / 2, 1u);
  }
};

enum class ConnectState : std::uint8_t {
  idle,       // no queue pair: not wanted yet, or closed again
  seeking,    // wanted; the peer has not published where it listens
  waiting,    // wants a queue pair; none is free
  requesting, // our request is on its way
  accepted,   // peers' queue pairs know each other; we have not heard that ours was accepted
  connected,
  failed, // for good
};

// The same connection as the application's thread sees it.
enum class Phase : std::uint8_t {
  down,     // not connected: an operation asks for it
  open,     // takes operations
  closing,  // to be closed once both sides have said so
  breaking, // failed; its queue pair may still have our memory
  broken,   // failed, and all that was under way is told
};

struct OpeningList; // tag of the connector's list of connections being made

// The connection to one peer. Made when the peer is first heard of or wanted, and kept: what it has
// of queue pair and buffers comes and goes. Closed, it is all that a peer costs here.
//
// Two owners. The connector's part is touched under its lock only, by the application's thread and
// the progress thread. The other part is the application thread's; it is told of changes by state
// events (Connector::take_state_events).
struct Connection : engine::Link, base::ListNode<OpeningList> {
  // The connector's.
  ConnectState state = ConnectState::idle;
  bool notified : 1 = false;     // is in the list of state events
  bool sought : 1 = false;       // we want it connected
  bool told_to_wait : 1 = false; // the peer has answered our request that it has no queue pair left
  bool peer_closed : 1 = false;  // ... has told by a packet that it has destroyed its queue pair
  std::uint32_t attempt = 0;     // our number of the queue pair, of all connections: grows
  std::uint32_t peer_attempt = 0; // the highest of the peer's that we accepted
  std::uint32_t to_number = 0;    // the peer's datagram queue pair
  std::unique_ptr<AddressHandle> to;
  double resend_at = 0; // seconds
  double give_up_at = 0;
  double interval = 0;
  std::unique_ptr<QueuePair> queue_pair;
  CompletionQueue* completions = nullptr;      // reserved for the queue pair
  std::unique_ptr<Window> window;              // of the queue pair; the receiver's
  std::unique_ptr<wire::ConnectPacket> parked; // a request that waits for a queue pair
  std::unique_ptr<const std::string> reason;   // why it failed
  std::unique_ptr<Permits> permits;            // from the first queue pair or permit on

  // The application thread's.
  Phase phase = Phase::down;
  bool wanted = false;   // the engine knows this link
  bool promised = false; // ... and was told that it is connecting
  bool close_sent = false;
  bool close_received = false;
  bool left = false;           // the peer needs nothing any more, and may be gone
  bool owes = false;           // is in the list of those whose peer is to be told something
  bool carried = false;        // a message, either way, since it was opened
  std::uint32_t number = 0;    // of the queue pair, as known to the table of numbers
  std::uint32_t transfers = 0; // puts and gets under way
  std::uint64_t last_used = 0;
  double phase_since = 0; // seconds
  SendQueue sends;
  std::unique_ptr<Headers> headers; // while it is open
  // Accepted puts and gets that are not posted as a whole; or split puts, which none may pass.
  base::List<Transfer> unposted;

  // ... that the application's thread may use.
  [[nodiscard]] bool has_queue_pair() const {
    return phase == Phase::open || phase == Phase::closing;
  }
  // Packets are sent again until the peer answers.
  [[nodiscard]] bool is_asking() const {
    return state == ConnectState::requesting || state == ConnectState::accepted;
  }
  // Has the peer a receive for one more message? With shared receives the network sees to that.
  [[nodiscard]] bool may_send() const {
    return window == nullptr || window->credits != 0 || window->may_queue;
  }
  // Whatever is to arrive in order there is written to a slot, which ends with a trailer.
  [[nodiscard]] bool peer_polls() const { return window != nullptr && window->theirs.polled != 0; }
  // So is a message of so many bytes.
  [[nodiscard]] bool goes_to_slot(std::size_t bytes) const {
    return window != nullptr &&
           (window->theirs.polled != 0 ||
            (window->writes_up_to >= bytes && window->writes_up_to != 0 && window->credits != 0));
  }
};

// What is left of a closed connection: the record, in a row of the connector's table (key, pointer
// and a bucket). The design allows 256 bytes for a rank that is known and idle.
inline constexpr std::size_t record_bytes = sizeof(Connection) + 3 * sizeof(void*);
static_assert(record_bytes <= 256);

} // namespace macadam::net::rdma
