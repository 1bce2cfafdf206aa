// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/error.h"

#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace macadam::engine {

// A process as this one numbers those that it knows (boot/processes.h): the ranks of its own job
// come first. Communicators map their own ranks to these. Never travels.
using Rank = std::uint32_t;

// What became of an operation that was handed to a transport.
enum class Posted : std::uint8_t {
  done,       // finished: the memory is free again, nothing will be delivered
  pending,    // accepted; Sink::on_complete() follows with the cookie
  busy,       // no room now, nothing was done: the engine tries again after a poll()
  unnotified, // put_notified() only: nothing was done, it takes a put() and a message this time
  refused,    // nothing was done, nor will be: the memory there cannot be reached (any more)
};

// Memory of one process as its peers may name it on the wire. Made by register_cached().
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint64_t key = 0;
};
static_assert(sizeof(RemoteMemory) == 16);

// A block of memory: of this process, or of a peer as RemoteMemory::address names it.
struct Block {
  std::uint64_t address = 0;
  std::size_t bytes = 0;
};

// An atomic operation on an aligned word of 8 bytes.
struct Atomic {
  enum class Kind : std::uint8_t { fetch_and_add, compare_and_swap } kind = Kind::fetch_and_add;
  std::uint64_t operand = 0; // what is added, or swapped in
  std::uint64_t compare = 0; // the value that is swapped out
};

enum class PeerState : std::uint8_t { connecting, connected, failed };

// What became of a permit that its issuer wants back.
enum class Revoked : std::uint8_t {
  yes,     // it was not used, and never will be
  no,      // the peer has used it
  unknown, // not known yet: ask again after a poll()
};

// A connection to one peer, owned by the transport that made it. Transports derive from it.
struct Link {
  Rank rank = 0;
};

// One thing that a network has done by itself, for timelines.
struct NetworkEvent {
  double at = 0; // by Transport::now()
  const char* what = "";
  std::uint64_t count = 0; // of what it says, the memory that was posted for one
};

// What moves messages. By the kernel each takes as long as some copies inside a machine.
enum class MessagesBy : std::uint8_t {
  adapter,
  tcp,       // the kernel, but inside a machine, where they go through shared memory
  tcp_alone, // the kernel, everywhere
};

// Facts about a transport, constant after construction.
struct Limits {
  const char* name = "";   // "shm", "rdma"
  std::size_t message = 0; // longest message that send() takes: header and payload, in bytes
  std::size_t eager = 0;   // payload bytes up to which EAGER is best
  std::size_t hybrid = 0;  // payload bytes up to which HYBRID is best
  // Payload bytes from which EAGER messages go better uncopied: by send_uncopied().
  std::size_t uncopied = SIZE_MAX;
  // Payload bytes up to which several EAGER messages go better as one; -1: none do. Less than 64
  // KiB.
  std::int32_t bundled = -1;
  bool orders_bytes = false; // the last byte of a put arrives last
  // Bytes that the network moves at once: what is shorter costs about as much.
  std::size_t packet = 0;
  // Bytes up to which data had better come to a place that the receiver copies them from than wait
  // until the sender is told where they go.
  std::size_t cheap_copy = 0;
  // Bytes up to which a put can tell its target that it is there (put_notified); 0: none can.
  std::size_t notified_put = 0;
  // A put is there before the notification of a later one to the same peer (orders_puts), and
  // before what a later write() changes there, for a process that looks at it (orders_writes). If
  // not, it is there once it is complete, and a write once a flush() behind it is.
  bool orders_puts = false;
  bool orders_writes = false;
  bool atomics = false;  // has atomic()
  bool maps = false;     // all it reaches have mapped what allocate() gives
  bool connects = false; // a peer's first message makes a connection, which costs something
  MessagesBy messages_by = MessagesBy::adapter;
  // Blocks here and there that write_blocks() and read_blocks() take; 1 and 1: has neither.
  std::size_t local_blocks = 1;
  std::size_t target_blocks = 1;
  // Puts and gets take the processor of the process that posts them; permits are revoked at once.
  bool copies = false;
  unsigned polls_before_idle = 4; // that find nothing, before a wait calls idle()
  // Others need the core: a wait for a message calls idle() at the first poll that finds nothing.
  bool shares_cores = false;
};

// What a put tells its target: a number that means something to the engine there, not 0.
inline constexpr unsigned notification_bits = 28;

// What a transport delivers from poll(); the engine implements it. A sink may call any operation of
// the transport from inside, except poll(). Nothing is thrown: what fails ends a request, or this
// process's communication (on_failure).
class Sink {
 public:
  // A message of `source`: valid only during the call.
  virtual void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept = 0;
  // A put of `source` with a notification is there as a whole. In order with messages.
  virtual void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept = 0;
  // The same for a long message, which a transport may deliver while it still arrives: its first
  // fragment (all of the engine's header and what has come of the payload) and the number of bytes
  // to come, then these in order, before any other message of this source.
  virtual void on_first_fragment(Rank source, const std::byte*, std::size_t bytes,
                                 std::size_t rest) noexcept {
    on_failure(base::make_error(MPI_ERR_INTERN,
                                "rank {} sent {} bytes in fragments, whole messages are needed",
                                source, bytes + rest));
  }
  virtual void on_next_fragment(Rank, const std::byte*, std::size_t) noexcept {}
  // A put or get that was `pending` is finished; `ok` is false if the peer failed.
  virtual void on_complete(std::uint64_t cookie, bool ok) noexcept = 0;
  // The state of a peer changed: a connection is ready, or the peer is gone, and reaches this
  // process's memory no more.
  virtual void on_peer(Rank peer, PeerState state) noexcept = 0;
  // This process can go on with nobody: what it shares with others is damaged, or there is no
  // memory for the records of a network. It is not polled any more.
  virtual void on_failure(base::Error&& why) noexcept = 0;

 protected:
  ~Sink() = default;
};

// A network, as the engine sees it. Messages between two processes arrive once and in order. The
// data of a put arrives before any message sent to the same peer after it, so a FIN may follow a
// put at once; a transport that has accepted a put and not moved it all answers `busy` to sends on
// that link. Not thread safe: one caller at a time, except where it says otherwise. No operation
// blocks, except idle().
class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual const Limits& limits() const noexcept = 0;

  // Whether this network reaches a rank. Of several networks a peer is talked to over the first
  // that does (networks.h).
  [[nodiscard]] virtual bool reaches(Rank) const noexcept { return true; }

  // So many processes are known now (boot/processes.h).
  virtual void know(Rank /*processes*/) {}

  // Nothing is sent to these processes any more, and nothing of theirs waited for: what is kept for
  // them goes. True once that is done; to be asked again between polls.
  virtual bool forget(Rank /*first*/, Rank /*processes*/) { return true; }

  // The link to a peer, made on first call and kept. `connecting` links take operations only after
  // Sink::on_peer(). Throws base::Error if the peer can never be reached.
  virtual Link& connect(Rank peer, PeerState& state) = 0;
  // Of a peer that has failed: "rank 1 on host b cannot be reached: Connection refused". Empty if
  // its process has ended, or nothing more is known.
  [[nodiscard]] virtual std::string why_failed(const Link&) const { return {}; }

  // The connections that the settings want before the first message, where all processes of the job
  // start together: true once all are there. To be asked again between polls. Throws base::Error.
  virtual bool connect_at_start() { return true; }

  // Sends header and payload as one message, copied before return: done or busy.
  virtual Posted send(Link& link, const void* header, std::size_t header_bytes, const void* payload,
                      std::size_t payload_bytes) noexcept = 0;

  // The same, but the payload may stay in use: then `pending`.
  virtual Posted send_uncopied(Link& link, const void* header, std::size_t header_bytes,
                               const void* payload, std::size_t payload_bytes,
                               std::uint64_t /*cookie*/) noexcept {
    return send(link, header, header_bytes, payload, payload_bytes);
  }

  // Writes local memory to a peer's (put) or reads it (get). `pending` means that the local memory
  // is still in use; see above for what orders a put with messages.
  virtual Posted put(Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                     std::uint64_t cookie) noexcept = 0;
  // The same with a notification (of notification_bits, not 0) for Sink::on_put() of the target, if
  // Limits::notified_put allows so many bytes: on verbs one write with immediate, no message.
  virtual Posted put_notified(Link&, const void*, RemoteMemory, std::size_t,
                              std::uint64_t /*cookie*/, std::uint32_t /*notification*/) noexcept {
    return Posted::unnotified;
  }
  // The same, where Limits::copies, if the data can leave at once and without an act of the target:
  // done, or else busy, and the target may have been written. For a sender that has another way.
  virtual Posted put_at_once(Link&, const void*, RemoteMemory, std::size_t,
                             std::uint32_t /*notification*/) noexcept {
    return Posted::busy;
  }
  virtual Posted get(Link& link, void* local, RemoteMemory target, std::size_t bytes,
                     std::uint64_t cookie) noexcept = 0;

  // Registers memory, by the cache where there is one, so that peers may put to it and get from it
  // until release_cached(). Throws base::Error (MPI_ERR_NO_MEM) if no more can be registered. Local
  // memory of puts and gets needs no registration.
  virtual RemoteMemory register_cached(void* memory, std::size_t bytes) = 0;
  virtual void release_cached(RemoteMemory memory) noexcept = 0;

  // Permits: leave for a peer to do something once, which the peer uses or this process revokes,
  // never both, and neither needs an act of the other's process for it. A permit is a number that
  // travels. issue() may be called before the peer is connected; 0: there are too many already.
  virtual std::uint64_t issue(Link&) noexcept { return 0; }
  // The peer's permit: false if it was revoked. Not to be asked twice.
  virtual bool use(Link&, std::uint64_t /*permit*/) noexcept { return true; }
  virtual Revoked revoke(Link&, std::uint64_t /*permit*/) noexcept { return Revoked::yes; }
  // A permit of ours, revoked, used or never to be used, is wanted no more.
  virtual void discard(Link&, std::uint64_t /*permit*/) noexcept {}

  // One-sided access (rma/). Unlike put() and get(), these need no act of the target's process, and
  // may be used between any two processes that the network connects, though a nearer one does too.

  // Registers a region for them until deregister_region(), which ends all access: the key is
  // revoked. Of no bytes: a key that opens nothing.
  virtual RemoteMemory register_region(void* memory, std::size_t bytes) {
    return register_cached(memory, bytes);
  }
  virtual void deregister_region(RemoteMemory memory) noexcept { release_cached(memory); }
  // Whether the local peers of this process have its registered regions in their address spaces.
  [[nodiscard]] virtual bool is_mapped(RemoteMemory) const noexcept { return false; }
  // Where a registered region of a peer is in this address space; null if it is not there. Throws
  // base::Error if it could be, and there is no room for it.
  virtual std::byte* mapped(Link&, RemoteMemory, std::size_t) { return nullptr; }
  // Why a registered region of this peer that is not mapped cannot be accessed; null if it can.
  virtual const char* why_not_direct(Link&) noexcept { return nullptr; }
  // Whether one copy there by read() or write() is thought to take no longer than two by processes,
  // through memory that both have mapped. The first call measures, for some 0.1 ms.
  [[nodiscard]] virtual bool is_direct_fast() noexcept { return true; }

  // Ends the sleep of a peer that may wait for what this process has just stored in memory that
  // both have mapped: its poll() finds nothing, but what it looks at besides has changed.
  virtual void wake_peer(Link&) noexcept {}
  // Whether it sleeps; if so, what it had stored before is there to be read.
  [[nodiscard]] virtual bool peer_sleeps(Link&) noexcept { return false; }

  // Whether a peer that has failed has ended in good order, so that all it had to store is there.
  [[nodiscard]] virtual bool has_left(Link&) noexcept { return false; }

  // As put() and get(). Writes to one peer land in the order in which they were posted if
  // Limits::orders_writes, and a read or atomic() finds what was written before it. `done` means
  // that the local memory is free; that a write has landed is told by flush(). An operation on a
  // failed peer completes not `ok`, or is `done` if Sink::on_peer() has told of the failure.
  virtual Posted write(Link& link, const void* local, RemoteMemory target, std::size_t bytes,
                       std::uint64_t cookie) noexcept {
    return put(link, local, target, bytes, cookie);
  }
  virtual Posted read(Link& link, void* local, RemoteMemory target, std::size_t bytes,
                      std::uint64_t cookie) noexcept {
    return get(link, local, target, bytes, cookie);
  }
  // As write() and read(), of several blocks (Limits::local_blocks, ::target_blocks), taken in
  // order: as many bytes here as there. For memory that is not mapped. `around` is memory of ours
  // that holds all local blocks and may be registered as a whole. `refused`: perhaps another way
  // works.
  virtual Posted write_blocks(Link&, std::span<const Block> /*local*/,
                              std::span<const Block> /*target*/, std::uint64_t /*key*/,
                              std::uint64_t /*cookie*/, Block /*around*/) noexcept {
    return Posted::refused;
  }
  virtual Posted read_blocks(Link&, std::span<const Block> /*local*/,
                             std::span<const Block> /*target*/, std::uint64_t /*key*/,
                             std::uint64_t /*cookie*/, Block /*around*/) noexcept {
    return Posted::refused;
  }
  // Complete (`done` or later) once all that was written to the peer before has landed.
  virtual Posted flush(Link&, std::uint64_t /*cookie*/) noexcept { return Posted::done; }
  // The old value goes to `result`. Atomic with respect to other atomic() of this network, and to
  // nothing else: not to the processor's instructions, unless the word is mapped.
  virtual Posted atomic(Link&, const Atomic&, RemoteMemory /*target*/, std::uint64_t* /*result*/,
                        std::uint64_t /*cookie*/) noexcept {
    return Posted::refused;
  }

  // Memory that peers reach fastest (in a shared segment, or registered once). Null when there is
  // none left: the caller then does without it.
  virtual void* allocate(std::size_t bytes) = 0;
  // Why the last allocate() that gave null did so, with the remedy, for callers that cannot do
  // without.
  [[nodiscard]] virtual std::string why_not_allocated() const { return "none is left"; }
  virtual void free(void* memory) noexcept = 0;

  // Delivers what has arrived, a bounded amount. True if anything was delivered or moved.
  virtual bool poll(Sink& sink) noexcept = 0;
  // The end of all communication of this process, before its time: ends all connections, and
  // completes what is pending not `ok`. Afterwards no peer reaches this process's memory, but by
  // addresses that mapped() has given. Nothing else is called then but the destructor, and what
  // needs no link.
  virtual void abandon(Sink&) noexcept {}

  // True once everything that was accepted has reached its peer, so that the transport may be
  // destroyed; asked again between polls. What send() has copied may be on its way for a while.
  virtual bool drain() { return true; }

  // For processes that end one by one: as drain(), but also tells the peers that this process needs
  // nothing more of them, and does not wait for those that have said so themselves. To be called
  // when nothing is under way that this process wants to end; nothing may be begun afterwards.
  virtual bool leave() { return drain(); }

  // Called when a wait had nothing to do: spins, yields or sleeps in the kernel, by the number of
  // fruitless polls since the last success. A sleep ends when a message arrives, after
  // `longest_us` at most, or spuriously. The only blocking operation. True if the next call will
  // sleep, should the poll() between find nothing. This one and the next four may be called by a
  // second thread meanwhile.
  virtual bool idle(unsigned fruitless, unsigned longest_us) = 0;
  // This process will poll, or call idle(), until resume().
  virtual void begin_wait() {}
  // Whether the peer does so too: what it may write it will.
  [[nodiscard]] virtual bool waits(Link&) const noexcept { return false; }
  // Instead of idle(), in a wait that does not sleep: gives the core to those that share it, for a
  // turn, or until the wait has lasted for some time. Where Limits::shares_cores.
  virtual void give_turn() {}
  // The wait in which idle() was called has ended: this process computes again.
  virtual void resume() = 0;
  // The same, but another wait follows soon: peers may go on to leave data for it.
  virtual void pause_wait() { resume(); }
  // Ends a sleep in idle(), or the one that an idle() has promised.
  virtual void wake() {}
  // For a network on which nobody sleeps, since another one does that for both: what arrives after
  // the next poll() wakes the other (once). And how long that sleep may last, in microseconds.
  virtual void arm() {}
  // For the network on which it sleeps: each poll of the other costs a system call, about as much
  // as a yield.
  virtual void sleep_sooner() {}
  [[nodiscard]] virtual unsigned longest_sleep_us() const { return UINT_MAX; }

  // Looks now whether peers have ended, as poll() does now and then: for a caller that polls
  // seldom. The next polls tell. Only where the system knows: nothing is sent.
  virtual void look_after_peers() {}

  // Seconds on a monotonic clock (virtual time in the simulator).
  [[nodiscard]] virtual double now() const = 0;

  // What users see: counters, and one line for each fast path that could not be used and why.
  virtual void list_counters(base::CounterList& list) const = 0;
  [[nodiscard]] virtual std::vector<std::string> fallbacks() const = 0;
  // What the network has done by itself, on its progress thread, where a trace is wanted.
  [[nodiscard]] virtual std::vector<NetworkEvent> history() const { return {}; }
  // Bytes of memory this process holds for the transport now.
  [[nodiscard]] virtual std::size_t memory_bytes() const = 0;
};

} // namespace macadam::engine
