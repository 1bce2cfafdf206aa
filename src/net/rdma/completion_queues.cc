// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/completion_queues.h"

#include "base/error.h"
#include "net/rdma/model.h"

namespace macadam::net::rdma {

CompletionQueues::CompletionQueues(Device& device, std::uint32_t per_connection, bool async)
    : device_(device), per_connection_(per_connection), async_(async) {
  if (per_connection > device.limits().completion_depth) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: a completion queue of {} has {} entries at most, a connection needs {}; "
               "lower MACADAM_RDMA_SEND_DEPTH or MACADAM_RDMA_WINDOW",
               device.name(), device.limits().completion_depth, per_connection);
  }
}

CompletionQueue& CompletionQueues::reserve() {
  const unsigned size = size_.load(std::memory_order_relaxed);
  for (unsigned i = 0; i < size; ++i) {
    Row& row = rows_[i];
    if (row.depth - row.reserved < per_connection_) continue;
    row.reserved += per_connection_;
    return *row.queue;
  }
  if (size == rows_.size()) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: {} completion queues of {} are full; lower MACADAM_RDMA_SEND_DEPTH, or limit "
               "connections by MACADAM_RDMA_QUEUE_PAIRS",
               size, device_.name());
  }
  Row& row = rows_[size];
  row.depth = model::queue_depth(size, per_connection_, device_.limits().completion_depth);
  row.queue = device_.make_completion_queue(row.depth, async_);
  row.reserved = per_connection_;
  size_.store(size + 1, std::memory_order_release);
  return *row.queue;
}

void CompletionQueues::release(const CompletionQueue& queue) {
  for (Row& row : rows_) {
    if (row.queue.get() == &queue) row.reserved -= per_connection_;
  }
}

std::size_t CompletionQueues::bytes(const model::Driver& driver) const {
  std::size_t sum = 0;
  for (unsigned i = 0, count = size(); i < count; ++i)
    sum += driver.completion_bytes(rows_[i].depth);
  return sum;
}

} // namespace macadam::net::rdma
