// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/model.h"
#include "net/rdma/windowed.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace macadam::net::rdma {

// `ring`: persistent buffers of each connection, which the peer writes in turn (MVAPICH-RDMA in
// Sur et al., section 2.2). A write carries an immediate that tells which slot is full, so that
// nothing depends on the order in which a device places bytes, no memory is polled, and an
// arrival ends a sleep like any other.
class RingReceiver final : public WindowedReceiver {
 public:
  RingReceiver(Device& device, std::size_t slot_bytes, std::uint32_t window)
      : WindowedReceiver(window), device_(device), slot_bytes_(slot_bytes) {}

  void configure(QueuePairOptions& options) const override;
  void open(Connection& connection) override;
  void close(Connection& connection) override;
  wire::Note prepare(Connection& connection, SendWork& work, wire::Note note) override;
  std::byte* arrived(Connection& connection, const Completion&, const wire::Note& note) override {
    return connection.window->ring.get() + model::receive_headroom + note.slot * slot_bytes_;
  }
  bool consumed(Connection* connection, const Completion& completion,
                const wire::Note& note) override;
  void list_counters(base::CounterList&) const override {}
  [[nodiscard]] std::size_t buffers() const override { return 0; }
  [[nodiscard]] std::size_t bytes() const override { return bytes_; }

 private:
  void repost(Connection& connection) override;
  static void post(Connection& connection, std::uint32_t count);

  Device& device_;
  const std::size_t slot_bytes_;
  std::atomic<std::size_t> bytes_ = 0; // of all rings
};

} // namespace macadam::net::rdma
