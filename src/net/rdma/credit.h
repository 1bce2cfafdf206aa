// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/model.h"
#include "net/rdma/windowed.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace macadam::net::rdma {

// `credit`: receives posted to each queue pair, and a sender that counts them (MVAPICH-SR in
// Sur et al., section 2.2).
class CreditReceiver final : public WindowedReceiver {
 public:
  CreditReceiver(BufferPool& pool, std::uint32_t window) : WindowedReceiver(window), pool_(pool) {}

  void configure(QueuePairOptions& options) const override;
  void open(Connection& connection) override;
  void close(Connection& connection) override;
  std::byte* arrived(Connection&, const Completion& completion, const wire::Note&) override {
    return buffer_of(completion.id)->memory + model::receive_headroom;
  }
  Connection* consumed(Connection* connection, const Completion& completion,
                       const wire::Note& note) override;
  void list_counters(base::CounterList&) const override {}
  [[nodiscard]] std::size_t buffers() const override { return held_; }
  [[nodiscard]] std::size_t bytes() const override { return 0; }

 private:
  void repost(Connection& connection) override;
  void post(Connection& connection, std::span<Buffer* const> buffers);

  BufferPool& pool_;
  std::atomic<std::size_t> held_ = 0;
};

} // namespace macadam::net::rdma
