// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/model.h"
#include "net/rdma/receiver.h"

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace macadam::net::rdma {

// `shared`: one queue of receives for all connections (Sur et al., section 4). Senders are not
// throttled. `kept` receives are posted; when fewer than `watermark` are left because the
// application computes, the device wakes the progress thread, which posts more from the pool.
// Equation 5 gives it the time to wake up and to post, not to register memory: so the first
// refill's is registered with the first connection. A sender that comes faster still is refused by
// the network and tries again: nothing is lost.
class SharedReceiver : public Receiver {
 public:
  // With a watermark of 0 the progress thread posts nothing (Figure 10, without flow control).
  // `async`, of the queue of completions, as in Device. Throws base::Error if the device has no
  // shared receive queue.
  SharedReceiver(Device& device, BufferPool& pool, const model::Shape& shape, bool async);
  ~SharedReceiver() override;

  void configure(QueuePairOptions& options) const override;
  void open(Connection&) override;
  void join(Connection&, const wire::Reception&) override {}
  void close(Connection&) override {}
  void take_receive(Connection&) override {}
  wire::Note prepare(Connection&, SendWork&, wire::Note note) override { return note; }
  std::uint32_t take_credits(Connection&) override { return 0; }
  void on_credits(Connection&, std::uint32_t) override {}
  std::byte* arrived(Connection&, const Completion& completion, const wire::Note&) override {
    return buffer_of(completion.id)->memory + model::receive_headroom;
  }
  Connection* consumed(Connection*, const Completion& completion, const wire::Note&) override;
  CompletionQueue* shared_completions() override { return completions_.get(); }
  std::size_t on_limit() noexcept override;
  void list_counters(base::CounterList& list) const override;
  [[nodiscard]] std::size_t buffers() const override {
    return held_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t bytes() const override;

 private:
  std::size_t post_new(std::uint32_t count, std::size_t registering);
  std::size_t post(std::span<const ReceiveWork> work);
  [[nodiscard]] ReceiveWork receive_into(const Buffer& buffer) const {
    return {.id = receive_id(&buffer), .segment = receive_segment(pool_, buffer)};
  }
  [[gnu::noinline]] void repost();
  [[gnu::noinline]] void give_back(Buffer& buffer);
  void rearm();

  BufferPool& pool_;
  const std::uint32_t kept_;
  const std::uint32_t watermark_;
  const std::uint32_t most_;
  const std::uint32_t depth_; // of the queue
  const std::uint32_t batch_; // posted together
  const model::Driver driver_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<SharedReceiveQueue> queue_;
  // Buffers of this: left in the queue, completed and not yet read, or in `unposted_`. Never more
  // than `most_`, as the progress thread alone adds to them, once the constructor has.
  std::atomic<std::uint32_t> held_ = 0;
  bool reserved_ = false;               // for the first refill; under the connector's lock
  std::atomic<bool> limit_due_ = false; // the watermark is to be armed again
  std::array<ReceiveWork, model::shared_batch> unposted_; // read, not yet posted again: the first
  std::size_t unposted_count_ = 0;                        // ... of these
  std::uint64_t limit_events_ = 0;                        // the progress thread's
  std::uint64_t refilled_ = 0;                            // the progress thread's
  std::uint64_t returned_ = 0;
};

} // namespace macadam::net::rdma
