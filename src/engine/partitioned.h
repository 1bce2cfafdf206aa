// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/id_table.h"
#include "base/list.h"
#include "base/slab.h"
#include "datatype/type.h"
#include "engine/mutant.h"
#include "engine/request.h"
#include "engine/wire.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace macadam::engine {

class Engine;
class PartitionedTable;

// Partitioned communication (MPI 5.0, section 4.2), with the explicit rendezvous of Danalis et al.
// inside: a send and a receive are matched once, when they are made; from then on the receiver only
// says that its buffer is open for the next round, and each partition that is ready there is one
// put with a notification to its place. Nothing is matched, and no partition waits for another.
//
//   sender                                  receiver
//   made: PARTITIONED_SEND (shape)  ------> matched with the receive that was made for it
//   partition ready: waits          <------ started: PARTITIONED_READY (memory), each round
//   ... put, notification (or FIN)  ------> counts the bytes of its own partitions
//
// Where the processor that posts a put copies it, a partition for a receiver that computes is put
// at once, if there is room on the way, and waits in the network until the receiver polls. Else it
// is offered (PARTITION_OFFER, with a permit to read it): the thread that computes it need not copy
// it, and whichever side waits does, the receiver by reading, or else the sender by taking the
// permit back and writing.
//
// The two sides may cut the buffer into different numbers of partitions: a notification names the
// sender's, and the receiver counts what is missing of its own.

// The buffer of one side: `number` partitions in a row, each of `count` elements of `type`.
struct Partitions {
  std::byte* address = nullptr;
  std::uint32_t number = 0;
  MPI_Count count = 0;
  const datatype::Type* type = nullptr;
  wire::PartitionsNote note = {}; // of a send: its receive gets it

  // Bytes of data in one.
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count) * static_cast<std::size_t>(type->size());
  }
  [[nodiscard]] Data partition(std::uint32_t i) const {
    return {address + static_cast<std::ptrdiff_t>(i) * count * type->extent(), count, type};
  }
};

// What a send and a receive have in common.
struct Partitioned {
  // Called at the end of each round.
  using Ended = void (*)(void* argument, const Status& status) noexcept;

  PartitionedTable* table = nullptr;
  Peer* peer = nullptr;
  Envelope envelope;
  Partitions data;
  datatype::TypeRef type; // keeps data.type
  std::uint64_t id = 0;   // its name on the wire
  Ended ended = nullptr;
  void* argument = nullptr;
  bool running = false;      // between start() and `ended`
  bool lost = false;         // its peer has failed
  std::int32_t error = 0;    // of this round
  std::size_t bytes = 0;     // that a round moves
  std::uint32_t left = 0;    // the sender's partitions that are still to be sent, or to arrive
  std::uint64_t peer_id = 0; // the other side's, once known
  RemoteMemory memory;       // the receiver's
  std::uint32_t first_notification = 0; // of the sender's partition 0; 0: FIN instead
};

struct Sending; // tag: partitioned sends

struct PartitionedSend : Partitioned, base::ListNode<Sending> {
  // The receiver has begun the round that runs here.
  [[nodiscard]] bool is_open() const {
    return static_cast<std::int32_t>(opened - started) >= 0 ||
           (is_mutant(Mutant::partition_too_early) && opened != 0);
  }

  // The receiver has begun the next round, while this one has partitions to be sent: it lacked
  // memory for this one, which it has refused.
  [[nodiscard]] bool is_passed() const { return static_cast<std::int32_t>(opened - started) > 0; }

  // Where a partition belongs, at the receiver.
  [[nodiscard]] RemoteMemory place(std::uint32_t partition) const {
    return {memory.address + std::uint64_t{partition} * data.bytes(), memory.key};
  }

  // Marks a partition as ready; false if it was already. The one thing that threads do without the
  // lock: the last access of the caller to this object.
  bool mark(std::uint32_t partition) {
    const std::uint64_t bit = std::uint64_t{1} << partition % 64;
    return (marked[partition / 64].fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
  }
  // Partitions of this round that nobody has marked yet.
  [[nodiscard]] std::uint32_t unmarked() const {
    std::uint32_t count = data.number;
    for (std::size_t i = 0; i < words(); ++i)
      count -= static_cast<std::uint32_t>(std::popcount(marked[i].load(std::memory_order_relaxed)));
    return count;
  }
  [[nodiscard]] std::size_t words() const { return (std::size_t{data.number} + 63) / 64; }

  std::unique_ptr<std::atomic<std::uint64_t>[]> marked; // a bit for each partition, of this round
  std::vector<std::uint64_t> posted;                    // those that are on their way
  std::uint32_t started = 0;                            // rounds begun here
  std::uint32_t opened = 0;                             // ... and by the receiver: may be ahead
  bool by_messages = false;                             // the receiver cannot name its memory
  std::int32_t refused = MPI_SUCCESS;                   // ... or lacks it: the error of the round
};

struct Receiving; // tag: partitioned receives

struct PartitionedReceive : Partitioned, base::ListNode<Receiving> {
  // Whether all of a partition is there. For any thread.
  [[nodiscard]] bool has_arrived(std::uint32_t partition) const {
    return missing[partition].load(std::memory_order_acquire) == 0;
  }

  std::unique_ptr<std::atomic<std::uint64_t>[]> missing; // bytes of each partition, or units
  std::uint32_t sent_number = 0;                         // the sender's partitions,
  std::size_t sent_bytes = 0;                            // ... and bytes in each,
  wire::PartitionsNote sent_note;                        // ... and what they are
  std::byte* bounce = nullptr; // where noncontiguous data land, until a partition is complete
  // Where data land: the user's memory, or what they are unpacked from.
  [[nodiscard]] std::byte* destination() const { return bounce != nullptr ? bounce : data.address; }
  // What is counted: bytes; where there are none, as many units as let either side's partitions be
  // whole numbers of them, so that an empty partition too is there when those that it touches are.
  [[nodiscard]] std::size_t units() const { // of one of ours
    return bytes == 0 && data.bytes() == 0 ? sent_number : data.bytes();
  }
  [[nodiscard]] std::size_t sent_units() const {
    return bytes == 0 && data.bytes() == 0 ? data.number : sent_bytes;
  }
  bool matched = false;
  bool freed = false;    // before it was matched, it keeps its place in the order
  bool prepared = false; // memory and notifications are as the sender knows them
  bool is_registered = false;
};

// All partitioned operations of a process. Not thread safe but where it says so.
class PartitionedTable {
 public:
  explicit PartitionedTable(Engine& engine) : engine_(engine) {}
  PartitionedTable(const PartitionedTable&) = delete;
  PartitionedTable& operator=(const PartitionedTable&) = delete;
  ~PartitionedTable();

  // Makes one, inactive. Sends and receives of one envelope are matched in the order of these calls
  // on either side. `ended` is called at the end of each round.
  PartitionedSend& make_send(Peer& peer, const Envelope& envelope, const Partitions& data,
                             Partitioned::Ended ended, void* argument);
  PartitionedReceive& make_receive(Peer& peer, const Envelope& envelope, const Partitions& data,
                                   Partitioned::Ended ended, void* argument);
  // Takes one back that is inactive.
  void release(PartitionedSend& send);
  void release(PartitionedReceive& receive);

  // Begins a round.
  void start(PartitionedSend& send);
  void start(PartitionedReceive& receive);
  // Sends what is marked of partitions `first` to `last` and not yet on its way, if the receiver
  // has begun the round, for which is looked once. The send, named by its id, may be gone.
  void post_marked(std::uint64_t id, std::uint32_t first, std::uint32_t last);

  // Threads that marked partitions and did not get the lock leave the rest to whoever has it.
  // leave() is for any thread.
  void leave() { left_->store(true); }
  [[nodiscard]] bool any_left() const { return left_->load(); }
  void post_left() noexcept;
  // Offered partitions that nobody has begun to move. A process that has nothing else to do reads
  // one that was offered to it, or takes one of its own back and writes it; false if the others
  // were faster.
  [[nodiscard]] bool any_offered() const { return !offered_.empty() || !readable_.empty(); }
  [[nodiscard]] bool any_readable() const { return !readable_.empty(); }
  bool move_offered(bool leaves_to_sender) noexcept {
    return read_oldest(leaves_to_sender) || (!offered_.empty() && take_back());
  }
  // Where it stands that some were left: a word that outlives the table, for threads that look at
  // it without the lock.
  void keep_left_in(std::atomic<bool>& word) { left_ = &word; }

  // For the engine.
  void on_send(Peer& peer, const wire::PartitionedSend& offer) noexcept;
  void on_ready(const wire::PartitionedReady& ready) noexcept;
  void on_fin(const wire::Fin& fin) noexcept;
  void on_done(const wire::PartitionedDone& done) noexcept;
  void on_fragment(const std::byte* packet, std::size_t bytes) noexcept;
  void on_notification(std::uint32_t notification) noexcept;
  void on_offer(Peer& peer, const wire::PartitionOffer& offer) noexcept;
  void fail_peer(const Peer& peer, std::int32_t error) noexcept;
  void drop_context(std::uint64_t context);

  template <class Visit>
  void for_each_running(Visit&& visit) const {
    for (PartitionedSend& send : sends_) {
      if (send.running) visit(send, true);
    }
    for (const auto* const receives : {&unmatched_, &matched_}) {
      for (PartitionedReceive& receive : *receives) {
        if (receive.running) visit(receive, false);
      }
    }
  }
  // Partitions of others that may be read, unless they were taken back.
  template <class Visit>
  void for_each_readable(Visit&& visit) const {
    for (const Readable& readable : readable_)
      visit(*readable.peer, readable.offer);
  }
  // Sends of others that wait for their receive to be made.
  template <class Visit>
  void for_each_offer(Visit&& visit) const {
    for (const Offer& offer : offers_)
      visit(*offer.peer, offer.send);
  }
  // A request of the engine's that moves one partition.
  [[nodiscard]] static bool is_part(const Request& request) {
    return request.continuation == &on_read || request.continuation == &on_written;
  }
  [[nodiscard]] std::size_t memory_bytes() const {
    return send_slab_.bytes() + receive_slab_.bytes();
  }

  // Notifications of partitions are told from those of receives by this bit.
  static constexpr std::uint32_t notification_bit = 1U << (notification_bits - 1);

 private:
  // A send of a peer for which no receive was made yet.
  struct Offer {
    Peer* peer;
    wire::PartitionedSend send;
  };
  // A partition of a peer that may be read.
  struct Readable {
    Peer* peer;
    wire::PartitionOffer offer;
  };

  void init(Partitioned& made, Peer& peer, const Envelope& envelope, const Partitions& data,
            Partitioned::Ended ended, void* argument);
  void match(PartitionedReceive& receive, const wire::PartitionedSend& offer);
  void open(PartitionedReceive& receive) noexcept;
  bool prepare(PartitionedReceive& receive) noexcept;
  [[nodiscard]] std::uint32_t free_notices(std::uint32_t number) const;
  void take_notices(PartitionedReceive& receive) noexcept;
  void post_marked(PartitionedSend& send, std::size_t word, std::size_t words) noexcept;
  void post(PartitionedSend& send, std::uint32_t partition) noexcept;
  SendRequest* make_part(PartitionedSend& whole, std::uint32_t partition) noexcept;
  void transmit(PartitionedSend& whole, SendRequest& send, std::uint32_t partition) noexcept;
  void write(PartitionedSend& whole, SendRequest& send, std::uint32_t partition) noexcept;
  bool write_ahead(PartitionedSend& whole, SendRequest& send, std::uint32_t partition) noexcept;
  bool offer(PartitionedSend& whole, SendRequest& send, std::uint32_t partition) noexcept;
  bool take_back() noexcept;
  bool read_oldest(bool leaves_to_sender) noexcept;
  void read(PartitionedReceive& whole, const wire::PartitionOffer& offer) noexcept;
  void count(Partitioned& operation) noexcept;
  void arrived(PartitionedReceive& receive, std::uint32_t partition) noexcept;
  void unpack(PartitionedReceive& receive, std::uint32_t partition) noexcept;
  [[nodiscard]] Partitioned* any_lost() const;
  void end(Partitioned& operation) noexcept;
  static void on_written(Request& request, void* argument) noexcept;
  static void on_read(Request& request, void* argument) noexcept;

  Engine& engine_;
  base::Slab<PartitionedSend> send_slab_;
  base::Slab<PartitionedReceive> receive_slab_;
  base::IdTable<PartitionedSend> send_ids_;
  base::IdTable<PartitionedReceive> receive_ids_;
  base::List<PartitionedSend, Sending> sends_;
  base::List<PartitionedReceive, Receiving> unmatched_; // in the order in which they were made
  base::List<PartitionedReceive, Receiving> matched_;
  std::vector<Offer> offers_;                                  // in the order of arrival
  std::map<std::uint32_t, PartitionedReceive*> notifications_; // by the first of each
  std::uint32_t next_notification_ = 0;                        // behind the row that was taken last
  std::vector<SendRequest*> offered_;                          // partitions, oldest first
  std::vector<Readable> readable_;                             // those of others, oldest first
  std::atomic<bool> own_left_ = false;
  std::atomic<bool>* left_ = &own_left_;
};

} // namespace macadam::engine
