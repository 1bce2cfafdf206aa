// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/model.h"
#include "net/rdma/windowed.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace macadam::net::rdma {

// `ring`: persistent buffers of each connection, which the peer writes in turn (MVAPICH-RDMA in
// Sur et al., section 2.2). As there, a process looks for messages in memory, at the next slot of
// each of its rings: that takes no completion, but the more the more connections there are. It
// takes a device that places the last byte of a write last and writes in order, and a process that
// does not sleep on another network. Else a write carries an immediate that tells which slot is
// full.
class RingReceiver final : public WindowedReceiver {
 public:
  RingReceiver(Device& device, const model::Shape& shape)
      : WindowedReceiver(shape.window), device_(device), polled_(shape.polls_memory),
        slots_(model::ring_slots(shape)), slot_bytes_(model::buffer_bytes(shape.eager)),
        ring_bytes_(model::ring_bytes(shape)) {}

  void configure(QueuePairOptions& options) const override;
  void open(Connection& connection) override;
  void close(Connection& connection) override;
  void join(Connection& connection, const wire::Reception& theirs) override;
  wire::Note prepare(Connection& connection, SendWork& work, wire::Note note) override;
  bool look(Connection& connection, Completion& found) override;
  std::byte* arrived(Connection& connection, const Completion& completion,
                     const wire::Note& note) override;
  Connection* consumed(Connection* connection, const Completion& completion,
                       const wire::Note& note) override;
  [[nodiscard]] bool polls_memory() const override { return polled_; }
  void list_counters(base::CounterList&) const override {}
  [[nodiscard]] std::size_t buffers() const override { return 0; }
  [[nodiscard]] std::size_t bytes() const override { return bytes_; }

 private:
  void repost(Connection& connection) override;
  void post(Connection& connection, std::uint32_t count) const;
  [[nodiscard]] std::byte* end_of(const Window& window, std::uint32_t slot) const {
    return window.ring.get() + (slot + 1) * slot_bytes_;
  }

  Device& device_;
  const bool polled_;
  const std::uint32_t slots_;
  const std::size_t slot_bytes_;
  const std::size_t ring_bytes_;
  std::atomic<std::size_t> bytes_ = 0; // of all rings
};

} // namespace macadam::net::rdma
