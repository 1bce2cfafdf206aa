// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/rails.h"

#include "base/error.h"

namespace macadam::net::rdma {

void Rails::start(Events events) {
  events_ = std::move(events);
  second_.set_event_sink(this);
}

std::unique_ptr<MemoryRegion> Rails::register_memory(void* memory, std::size_t bytes,
                                                     Access access) {
  auto first = first_.register_memory(memory, bytes, access);
  return std::make_unique<RailRegion>(std::move(first),
                                      second_.register_memory(memory, bytes, access));
}

std::size_t Rails::bytes(const model::Driver& driver) const {
  const std::scoped_lock guard(lock_);
  return sizeof(Rails) + queues_.bytes(driver) +
         halves_.size() * (sizeof(Half) + driver.queue_pair_bytes(send_depth_, receives));
}

// ---- The connector's.

void Rails::make(Connection& connection) {
  auto half = std::make_unique<Half>();
  try {
    half->completions = &queues_.reserve();
    half->queue_pair = second_.make_queue_pair({.sends = half->completions,
                                                .receives = half->completions,
                                                .send_depth = send_depth_,
                                                .receive_depth = receives});
    half->connection = &connection;
    half->first_number = connection.queue_pair->number();
    const std::scoped_lock guard(lock_);
    halves_.emplace(&connection, nullptr).first->second.swap(half);
  } catch (const std::exception&) { // the port has no more, or there is no memory: then without
    if (half->completions != nullptr) queues_.release(*half->completions);
  }
}

wire::Endpoint Rails::endpoint(const Connection& connection) const {
  const std::scoped_lock guard(lock_);
  const auto found = halves_.find(&connection);
  if (found == halves_.end()) return {};
  return wire::endpoint_of({second_.address(), found->second->queue_pair->number()});
}

void Rails::pair(const Connection& connection, const wire::Endpoint& theirs,
                 const Retries& retries) {
  if (theirs.queue_pair == 0) return drop(connection);
  const std::scoped_lock guard(lock_);
  const auto found = halves_.find(&connection);
  if (found == halves_.end()) return;
  Half& half = *found->second;
  half.queue_pair->accept(wire::address_of(theirs), retries);
  half.queue_pair->establish();
  half.connected = true;
}

void Rails::fail(const Connection& connection) {
  const std::scoped_lock guard(lock_);
  if (const auto found = halves_.find(&connection); found != halves_.end())
    found->second->queue_pair->fail();
}

void Rails::drop(const Connection& connection) {
  std::unique_ptr<Half> half;
  {
    const std::scoped_lock guard(lock_);
    const auto found = halves_.find(&connection);
    if (found == halves_.end()) return;
    half = std::move(found->second);
    halves_.erase(found);
  }
  half->queue_pair.reset();
  queues_.release(*half->completions);
}

void Rails::on_failure(std::uint32_t queue_pair, const std::string& reason) noexcept {
  std::uint32_t first_number = all_queue_pairs;
  if (queue_pair != all_queue_pairs) {
    const std::scoped_lock guard(lock_);
    for (const auto& [connection, half] : halves_)
      if (half->queue_pair->number() == queue_pair) first_number = half->first_number;
    if (first_number == all_queue_pairs) return; // it is gone already
  }
  events_.failed(first_number, reason);
}

// ---- The application thread's.

void Rails::open(const Connection& connection) {
  const std::scoped_lock guard(lock_);
  const auto found = halves_.find(&connection);
  if (found == halves_.end() || !found->second->connected) return;
  Half* const half = found->second.get();
  by_number_[half->queue_pair->number()] = open_[&connection] = half;
}

void Rails::close(const Connection& connection) {
  Half* const half = find(connection);
  if (half == nullptr) return;
  under_way_ -= half->under_way;
  by_number_.erase(half->queue_pair->number());
  open_.erase(&connection);
}

void Rails::end() {
  stop();
  open_.clear();
  by_number_.clear();
  under_way_ = 0;
}

void Rails::post(Half& half, const SendWork& work) {
  if (half.queue_pair->post({&work, 1}) == 0) {
    base::fail(MPI_ERR_INTERN,
               "RDMA: the send queue of {} to rank {} refused a request, {} of {} are in use",
               second_.name(), half.connection->rank, half.under_way, send_depth_);
  }
  ++half.under_way;
  ++under_way_;
}

} // namespace macadam::net::rdma
