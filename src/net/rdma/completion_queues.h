// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "net/rdma/model.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

namespace macadam::net::rdma {

// Completion queues that never overflow: a queue pair reserves the entries that it may need. More
// queues are made as connections come (model::queue_depth). reserve() and release() are for one
// thread at a time; another may walk over the queues meanwhile.
class CompletionQueues {
 public:
  // `per_connection` entries are reserved each time; `async` as in Device.
  CompletionQueues(Device& device, std::uint32_t per_connection, bool async);
  CompletionQueues(const CompletionQueues&) = delete;
  CompletionQueues& operator=(const CompletionQueues&) = delete;

  // A queue with room for one more connection. Throws base::Error if the device has none.
  CompletionQueue& reserve();
  void release(const CompletionQueue& queue);

  [[nodiscard]] unsigned size() const { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] CompletionQueue& operator[](unsigned index) { return *rows_[index].queue; }
  [[nodiscard]] std::size_t bytes(const model::Driver& driver) const;

 private:
  struct Row {
    std::unique_ptr<CompletionQueue> queue;
    std::uint32_t depth = 0;
    std::uint32_t reserved = 0;
  };
  Device& device_;
  const std::uint32_t per_connection_;
  const bool async_;
  std::array<Row, 32> rows_;
  std::atomic<unsigned> size_ = 0;
};

} // namespace macadam::net::rdma
