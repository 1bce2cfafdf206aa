// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/shared.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace macadam::net::rdma {

// `mixed`: a shared queue for all, and rings for the few peers that talk most. A peer from which
// enough short messages have come is offered a ring, and writes to it what fits a slot and finds
// one free; all else, and what a burst brings, goes through the queue. The ring is looked at in
// memory, which takes no completion and no receive to be posted.
//
// Messages keep their order: a slot says how many requests that take a receive have gone before it,
// and what takes a receive completes behind all that was written before. So of a ring those are
// delivered that stand behind as many receives as have been consumed, and all of these before the
// next receive.
//
// It takes a device that places bytes and writes in order. Nothing that is written ends a sleep: a
// process that is about to sleep withdraws its rings. If there are as many as may be, one that
// nobody has written to since another peer wanted one is withdrawn for that.
class MixedReceiver final : public SharedReceiver {
 public:
  // Arguments and errors as of SharedReceiver. `registrar`, the application thread's, is for rings.
  MixedReceiver(Device& device, mem::Registrar& registrar, BufferPool& pool,
                const model::Shape& shape, bool async);

  void open(Connection& connection) override;
  void close(Connection& connection) override;
  wire::Note prepare(Connection& connection, SendWork& work, wire::Note note) override;
  std::uint32_t take_credits(Connection& connection) override;
  void on_credits(Connection& connection, std::uint32_t credits) override;
  bool look(Connection& connection, Completion& found) override;
  std::byte* arrived(Connection& connection, const Completion& completion,
                     const wire::Note& note) override;
  Connection* consumed(Connection* connection, const Completion& completion,
                       const wire::Note& note) override;
  std::optional<Due> due(Connection& connection) override;
  void told(Connection& connection, wire::NoteKind kind) override;
  Connection* on_note(Connection& connection, wire::NoteKind kind,
                      const std::byte* payload) override;
  Connection* withdraw(Connection& connection) override;
  [[nodiscard]] bool merges() const override { return true; }
  void list_counters(base::CounterList& list) const override;
  [[nodiscard]] std::size_t bytes() const override;

 private:
  [[nodiscard]] Connection* want_ring(Connection& connection);
  bool make_ring(Window& window);
  void drop_ring(Connection& connection);

  mem::Registrar& registrar_;
  const std::uint32_t rings_;          // at most
  const std::uint32_t slots_;          // of each
  std::vector<Connection*> given_;     // have a ring of ours, or soon; the application thread's
  wire::Reception offer_;              // what is told to the next of them
  std::atomic<std::size_t> bytes_ = 0; // of all rings
  std::uint64_t offered_ = 0;
  std::uint64_t withdrawn_ = 0;
  std::uint64_t read_ = 0;
};

} // namespace macadam::net::rdma
