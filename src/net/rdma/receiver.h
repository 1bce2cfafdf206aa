// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/connection.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace macadam::net::rdma {

// How messages find memory at their receiver, and how senders are kept from coming too fast: one
// strategy for all connections of a job, one file for each (Sur et al.).
class Receiver {
 public:
  virtual ~Receiver() = default;

  // Under the connector's lock, perhaps by the progress thread: before a queue pair is made; when
  // it was made, with a window if there is something that the peer must know; when the peer's
  // answer to that is known; when the queue pair is gone.
  virtual void configure(QueuePairOptions& options) const = 0;
  virtual void open(Connection& connection) = 0;
  virtual void join(Connection& connection, const wire::Reception& theirs) = 0;
  virtual void close(Connection& connection) = 0;

  // The application's thread. Takes a receive of the peer's for something else than a message.
  virtual void take_receive(Connection& connection) = 0;
  // Completes the work and note of a message to be sent, or of a note alone: where it goes and what
  // it tells. For connections with a window.
  virtual wire::Note prepare(Connection& connection, SendWork& work, wire::Note note) = 0;
  // Messages consumed that the peer is to be told of with what is sent next. Their memory is posted
  // again before.
  virtual std::uint32_t take_credits(Connection& connection) = 0;
  // The peer has consumed messages of ours.
  virtual void on_credits(Connection& connection, std::uint32_t credits) = 0;

  // Takes the next message of an open connection that was written to memory and is found by looking
  // there, as a receive that has completed. False: none has come.
  virtual bool look(Connection& /*connection*/, Completion& /*found*/) { return false; }
  // A receive has completed: where the message is. Valid until consumed(), and with it
  // model::repeated_header bytes before it, which are the caller's, if it came without its header.
  virtual std::byte* arrived(Connection& connection, const Completion& completion,
                             const wire::Note& note) = 0;
  // It was read, or nobody is there to read it (`connection` is null). Returns a connection whose
  // peer is to be told something by a note of its own, should no message come first; or null.
  virtual Connection* consumed(Connection* connection, const Completion& completion,
                               const wire::Note& note) = 0;
  // That note, if it is still due, and what is sent with it, valid until the next call. told(): it
  // was posted.
  struct Due {
    wire::NoteKind kind;
    std::span<const std::byte> payload;
  };
  virtual std::optional<Due> due(Connection& /*connection*/) { return std::nullopt; }
  virtual void told(Connection& /*connection*/, wire::NoteKind /*kind*/) {}

  // Messages of one connection come by more than one way: look() is to be asked before each receive
  // of it is read, besides.
  [[nodiscard]] virtual bool merges() const { return false; }
  // A note about a ring has come. Returns as consumed() does.
  virtual Connection* on_note(Connection& /*connection*/, wire::NoteKind /*kind*/,
                              const std::byte* /*payload*/) {
    return nullptr;
  }
  // The process is about to sleep: the peer should not write to its ring any more. Returns as
  // consumed() does.
  virtual Connection* withdraw(Connection& /*connection*/) { return nullptr; }

  // All open connections are to be looked at in memory; nothing that arrives there ends a sleep.
  [[nodiscard]] virtual bool polls_memory() const { return false; }
  // Completion queue of receives that belong to no connection; null if there is none.
  virtual CompletionQueue* shared_completions() { return nullptr; }
  // The shared queue is low; called by the progress thread. How many receives it has posted.
  virtual std::size_t on_limit() noexcept { return 0; }
  virtual void list_counters(base::CounterList& list) const = 0;
  // Buffers of the pool that it holds: for receives that are posted, or read and soon posted again.
  [[nodiscard]] virtual std::size_t buffers() const = 0;
  // Bytes beside the buffers of the pool.
  [[nodiscard]] virtual std::size_t bytes() const = 0;
};

// Ids of receives: the buffer's address with the lowest bit set. Ids of sends: twice the sequence.
inline std::uint64_t receive_id(const Buffer* buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer) | 1;
}
// A message that was found in a slot, as a receive that has completed: it has no buffer.
inline Completion found_in_slot(const Connection& connection, const wire::Trailer& trailer) {
  return {.id = receive_id(nullptr),
          .queue_pair = connection.number,
          .bytes = trailer.bytes,
          .immediate = trailer.note};
}
inline bool is_receive(std::uint64_t id) {
  return (id & 1) != 0;
}
inline std::uint32_t sequence_of(std::uint64_t id) {
  return static_cast<std::uint32_t>(id >> 1);
}
// Where a message may land in a buffer: behind model::receive_headroom bytes.
inline Segment receive_segment(const BufferPool& pool, const Buffer& buffer) {
  return {buffer.memory + model::receive_headroom,
          static_cast<std::uint32_t>(pool.buffer_bytes() - model::receive_headroom),
          buffer.local_key};
}
inline Buffer* buffer_of(std::uint64_t id) {
  return reinterpret_cast<Buffer*>(static_cast<std::uintptr_t>(id & ~std::uint64_t{1}));
}

} // namespace macadam::net::rdma
