// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/port.h"

#include <mutex>

namespace macadam::net::rdma::ibverbs {

class IbverbsCompletionQueue;

// Where armed completion queues put their events: a descriptor to wait for. Any thread.
class CompletionChannel {
 public:
  explicit CompletionChannel(Port& port);
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  [[nodiscard]] int descriptor() const { return channel_->fd; }
  [[nodiscard]] ibv_comp_channel* get() const { return channel_.get(); }
  // The queue of the oldest event; null if there is none. Does not wait.
  IbverbsCompletionQueue* take();

 private:
  friend class IbverbsCompletionQueue;

  Port& port_;
  Owned<ibv_comp_channel> channel_;
  // Drivers count events and armings of a queue against each other without a lock of their own.
  std::mutex lock_;
};

class IbverbsCompletionQueue final : public CompletionQueue {
 public:
  IbverbsCompletionQueue(Port& port, CompletionChannel& channel, std::uint32_t depth);

  std::size_t poll(std::span<Completion> completions) override;
  void arm() override;

  [[nodiscard]] ibv_cq* get() const { return queue_.get(); }

 private:
  Port& port_;
  CompletionChannel& channel_;
  Owned<ibv_cq> queue_;
};

class IbverbsSharedReceiveQueue final : public SharedReceiveQueue {
 public:
  IbverbsSharedReceiveQueue(Port& port, std::uint32_t depth);

  std::size_t post(std::span<const ReceiveWork> work) override;
  void arm_limit(std::uint32_t watermark) override;

  [[nodiscard]] ibv_srq* get() const { return queue_.get(); }

 private:
  Port& port_;
  Owned<ibv_srq> queue_;
};

} // namespace macadam::net::rdma::ibverbs
