// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/registrar.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

// A thin picture of verbs: what libibverbs offers and nothing above it. Two devices implement it:
// that of ibverbs/ and the simulated one in sim/. A failure to make something throws
// base::Error with what was asked for, what there was, and the remedy.
//
// Threads, as in verbs: what makes objects (Device::register_memory(), make_*()) may be called by
// any thread, and different objects may be used at the same time; calls of one object are for the
// callers to serialise, except where it says otherwise.
namespace macadam::net::rdma {

// Where a port is on the network: enough to address it from another port of the fabric.
struct PortAddress {
  std::array<std::uint8_t, 16> gid = {};
  std::uint32_t lid = 0;
  std::uint8_t mtu = 0; // verbs' code: 128 << code bytes; 0: not known

  bool operator==(const PortAddress&) const = default;
};

// A queue pair on the network.
struct QueuePairAddress {
  PortAddress port;
  std::uint32_t number = 0;
};

// Facts about a device and its port, constant after it was opened.
struct DeviceLimits {
  std::uint32_t queue_pairs = 0;       // that this process may make
  std::uint32_t regions = 0;           // memory regions
  std::uint32_t send_depth = 0;        // work requests of a send queue, at most
  std::uint32_t receive_depth = 0;     // of a receive queue
  std::uint32_t shared_depth = 0;      // of a shared receive queue; 0: the device has none
  std::uint32_t completion_depth = 0;  // of a completion queue
  std::uint32_t segments = 0;          // of a scatter or gather list, of reads too
  std::uint32_t inline_bytes = 0;      // that a post may carry in itself
  std::uint32_t outstanding_reads = 0; // reads and atomics under way per queue pair
  std::uint32_t mtu = 0;               // bytes: longest datagram
  std::uint64_t message = 0;           // bytes: longest RC message
  std::uint64_t registered = 0;        // bytes that may be pinned; 0: no bound known
  // What it costs to move data, for a choice between ways to do so; guesses, where not known.
  double bytes_per_s = 12.5e9;    // of the port, one way
  double copy_bytes_per_s = 10e9; // of the processor, from memory to memory
  double round_trip_s = 2e-6;     // of a short message
  double post_s = 80e-9;          // of the processor, to post a request
  bool atomics = false;           // compare-and-swap and fetch-and-add of 8 bytes
  bool orders_bytes = false;      // the last byte of a write is placed last
  // What a write places is in memory before what a later one places, for who looks there; and
  // before a later send or write with immediate completes at the target. Reads and atomics find
  // what was written before them. A write that has completed is in place.
  bool orders_writes = false;
  bool orders_arrivals = false;
};

using mem::Access;
using mem::MemoryRegion;

struct Segment {
  void* memory = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t local_key = 0;
};

struct ReceiveWork {
  std::uint64_t id = 0;
  Segment segment; // of no bytes (and no key) if only immediates are to be received
};

// How to reach a datagram queue pair's port. Destroyed like any object.
class AddressHandle {
 public:
  virtual ~AddressHandle() = default;
};

enum class Operation : std::uint8_t {
  send,
  send_immediate, // a send with SendWork::immediate
  write,
  write_immediate, // a write that also consumes a receive of the target and completes it
  read,
  compare_and_swap, // 8 bytes; the old value is written to the segment
  fetch_and_add,
};

// One work request for a send queue. The memory of `segments` stays the device's until its
// completion (or that of a later signalled request of the queue pair), unless `inlined`.
struct SendWork {
  std::uint64_t id = 0;
  std::span<const Segment> segments;
  std::uint64_t remote_address = 0;
  std::uint64_t compare_or_add = 0;
  std::uint64_t swap = 0;
  const AddressHandle* to = nullptr; // datagrams: with `remote_number` and `remote_qkey`
  std::uint32_t remote_number = 0;
  std::uint32_t remote_qkey = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
  Operation operation = Operation::send;
  bool signalled = false;
  bool inlined = false;
};

inline std::size_t bytes_of(const SendWork& work) {
  std::size_t bytes = 0;
  for (const Segment& segment : work.segments)
    bytes += segment.bytes;
  return bytes;
}

// Whether it uses up a receive of its target.
constexpr bool takes_receive(Operation operation) {
  return operation <= Operation::send_immediate || operation == Operation::write_immediate;
}

enum class WorkStatus : std::uint8_t {
  ok,
  flushed,     // the queue pair is in error: not done
  no_receiver, // receiver-not-ready retries exhausted
  no_answer,   // transport retries exhausted: peer or path is gone
  refused,     // remote access or remote operation error
  failed,      // local or other error
};

struct Completion {
  std::uint64_t id = 0;
  std::uint32_t queue_pair = 0; // number, of ours
  // For receives, if `status` is ok: bytes received, or written by a write_immediate; a datagram
  // counts with the `datagram_header` before it. The immediate is 0 if none came.
  std::uint32_t bytes = 0;
  std::uint32_t immediate = 0;
  WorkStatus status = WorkStatus::ok;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  // Takes of what has completed, oldest first; how many, none only if nothing has. Without error
  // only `ok` ones of signalled sends and of receives; after an error of a queue pair its failed
  // request comes, then everything else posted to it, signalled or not, `flushed` (but nothing from
  // a shared receive queue). The queue's depth must hold all that may come between two polls: the
  // user's to see to.
  virtual std::size_t poll(std::span<Completion> completions) = 0;
  // The next completion after this call is an event: it ends Device::wait(), or, if the queue was
  // made `async`, calls EventSink::on_completions(). One event per call; what completed before
  // the call is none.
  virtual void arm() = 0;
};

class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;
  // Takes them in order; how many (fewer: the queue is full). A receive that is used up may keep
  // its place until its completion was polled. Callable from any thread.
  virtual std::size_t post(std::span<const ReceiveWork> work) = 0;
  // Once fewer than `watermark` receives are left, EventSink::on_limit() is called, once per call
  // of this (at once if so already, or with the next receive used). 0 disarms. Any thread.
  virtual void arm_limit(std::uint32_t watermark) = 0;
};

// How an RC queue pair behaves when the other side is slow. Times are verbs' codes.
struct Retries {
  std::uint8_t timeout = 15;                  // 4.096 us x 2^timeout until a packet is sent again
  std::uint8_t count = 6;                     // of such resends; by 7 soft-RoCE means for ever
  std::uint8_t receiver_not_ready = 7;        // 7: for ever
  std::uint8_t receiver_not_ready_timer = 12; // verbs' code: 0.64 ms
};

struct QueuePairOptions {
  CompletionQueue* sends = nullptr;
  CompletionQueue* receives = nullptr;
  SharedReceiveQueue* shared = nullptr; // null: receives are posted to the queue pair
  std::uint32_t send_depth = 0;
  std::uint32_t receive_depth = 0; // without `shared`
  std::uint32_t inline_bytes = 0;
  std::uint32_t qkey = 0; // datagrams
  bool datagrams = false; // UD; else RC
};

class QueuePair {
 public:
  // What was posted is forgotten, and so are its completions that were not polled.
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual std::uint32_t number() const = 0;

  // RC, in two steps as in verbs: after `accept` it receives from `remote`, after `establish` it
  // sends. Packet numbers are derived from the two queue pairs' numbers. What is sent to a queue
  // pair that has not accepted is resent by `retries`, and fails with `no_answer` in the end.
  // Receives may be posted before `accept`.
  virtual void accept(const QueuePairAddress& remote, const Retries& retries) = 0;
  virtual void establish() = 0;
  // Everything posted completes `flushed`, and nothing more is sent or received.
  virtual void fail() = 0;

  // Posts in order, with one doorbell; how many were taken (fewer: the send queue is full).
  virtual std::size_t post(std::span<const SendWork> work) = 0;
  // Without a shared queue; all or none. A datagram is received behind `datagram_header` bytes.
  virtual bool post_receive(std::span<const ReceiveWork> work) = 0;
};

inline constexpr std::size_t datagram_header = 40; // bytes (the global route header)

inline constexpr std::uint32_t all_queue_pairs = 0; // no queue pair of ours has this number

// What happens outside poll(). Called on a thread of the device's, so only what is under the
// callee's own lock may be touched. In the simulator: at a moment of virtual time when the process
// computes or is inside wait(), yield() or a poll() of the queue where connections' receives
// complete, or of its neighbours, never inside another call of the device, so that a lock is never
// found held. The callee may call the device, and throws nothing.
class EventSink {
 public:
  virtual void on_limit(SharedReceiveQueue& queue) noexcept = 0;
  virtual void on_completions(CompletionQueue& queue) noexcept = 0;
  // A queue pair has failed, perhaps without a completion that tells so; or all have, because the
  // adapter or its port is gone for good. `reason` is for users.
  virtual void on_failure(std::uint32_t queue_pair, const std::string& reason) noexcept = 0;

 protected:
  ~EventSink() = default;
};

// One port of one adapter, opened by one process.
class Device : public mem::Registrar {
 public:
  virtual ~Device() = default;

  [[nodiscard]] virtual const DeviceLimits& limits() const = 0;
  [[nodiscard]] virtual const PortAddress& address() const = 0;
  // For the user, where there were several ports: why it is this one. Else empty.
  [[nodiscard]] virtual std::string why() const { return {}; }

  // `async`: its events reach the EventSink; otherwise they end wait().
  virtual std::unique_ptr<CompletionQueue> make_completion_queue(std::uint32_t depth,
                                                                 bool async) = 0;
  virtual std::unique_ptr<SharedReceiveQueue> make_shared_receive_queue(std::uint32_t depth) = 0;
  virtual std::unique_ptr<QueuePair> make_queue_pair(const QueuePairOptions& options) = 0;
  virtual std::unique_ptr<AddressHandle> make_address_handle(const PortAddress& to) = 0;

  // From now on events are delivered to `sink`, until null is given (which waits for a call under
  // way). With no sink there is no thread.
  virtual void set_event_sink(EventSink* sink) = 0;

  // Sleeps until an armed, synchronous completion queue has an event, until wake(), or for
  // `longest_us`. An event or wake() since the last wait() ends it at once. Any thread.
  virtual void wait(unsigned longest_us) = 0;
  // Ends a wait() under way, or else the next one. Any thread.
  virtual void wake() = 0;
  // Gives the processor away for a moment; a spinning wait calls it between polls.
  virtual void yield() = 0;
  // The process is about to look at so many places in memory that the network writes to. A device
  // that is simulated charges it, and lets the others catch up.
  virtual void before_look(std::size_t /*places*/) {}
  // Seconds on a monotonic clock.
  [[nodiscard]] virtual double now() const = 0;
};

} // namespace macadam::net::rdma
