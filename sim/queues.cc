// SPDX-License-Identifier: BSD-3-Clause
#include "sim/queues.h"

#include "base/error.h"
#include "sim/device.h"

#include <algorithm>
#include <utility>

namespace macadam::sim {

using net::rdma::Completion;
using net::rdma::ReceiveWork;

SimulatedCompletionQueue::SimulatedCompletionQueue(SimulatedDevice& device, std::uint32_t depth,
                                                   bool async)
    : device_(device), id_(device.completion_queues.add(this)), depth_(depth), async_(async) {}

SimulatedCompletionQueue::~SimulatedCompletionQueue() {
  device_.completion_queues.remove(id_);
}

std::size_t SimulatedCompletionQueue::poll(std::span<Completion> completions) {
  const Model& model = device_.fabric().model();
  device_.enter_poll(admits_progress_thread_);
  std::size_t found = 0;
  for (; found < completions.size() && !entries_.empty(); ++found) {
    const Entry entry = entries_.pop();
    completions[found] = entry.completion;
    if (entry.released > 0) device_.release_places(entry.completion.queue_pair, entry.released);
  }
  device_.spend(found == 0 ? from_ns(model.poll_ns)
                           : from_ns(model.completion_ns) * static_cast<Time>(found));
  return found;
}

void SimulatedCompletionQueue::arm() {
  device_.spend(from_ns(device_.fabric().model().poll_ns));
  armed_ = true;
}

void SimulatedCompletionQueue::push(const Completion& completion, std::uint32_t released) {
  if (entries_.size() == depth_) {
    base::fail(MPI_ERR_INTERN,
               "{}: a completion queue of {} was overrun: more was posted than it can hold between "
               "two polls",
               device_.name(), depth_);
  }
  entries_.push({completion, released});
  device_.on_activity();
  if (!armed_) return;
  armed_ = false;
  if (async_) {
    device_.notify({SimulatedDevice::Event::Kind::completions, id_});
  } else {
    device_.on_event();
  }
}

void SimulatedCompletionQueue::forget(std::uint32_t queue_pair) {
  entries_.erase_if([&](const Entry& entry) { return entry.completion.queue_pair == queue_pair; });
}

SimulatedSharedReceiveQueue::SimulatedSharedReceiveQueue(SimulatedDevice& device,
                                                         std::uint32_t depth)
    : device_(device), queue_(depth), id_(device.shared_queues.add(this)) {}

SimulatedSharedReceiveQueue::~SimulatedSharedReceiveQueue() {
  device_.shared_queues.remove(id_);
}

std::size_t SimulatedSharedReceiveQueue::post(std::span<const ReceiveWork> work) {
  device_.check_receives(work);
  device_.spend_posting(work.size());
  const std::size_t taken = std::min(work.size(), queue_.room() - coming_.size());
  for (const ReceiveWork& each : work.first(taken))
    coming_.push_back({device_.time(), each});
  at_its_time();
  return taken;
}

void SimulatedSharedReceiveQueue::arm_limit(std::uint32_t watermark) {
  device_.spend(from_ns(device_.fabric().model().post_ns));
  armed_ = watermark;
  armed_at_ = device_.time();
  at_its_time();
}

void SimulatedSharedReceiveQueue::at_its_time() {
  Scheduler& scheduler = device_.fabric().scheduler();
  if (device_.time() <= scheduler.now()) return catch_up();
  scheduler.at(device_.time(), [&fabric = device_.fabric(), lid = device_.lid(), id = id_] {
    SimulatedDevice* const device = fabric.find(lid);
    if (device == nullptr) return;
    if (auto* const queue = device->shared_queues.find(id)) queue->catch_up();
  });
}

void SimulatedSharedReceiveQueue::catch_up() {
  const Time now = device_.fabric().scheduler().now();
  std::erase_if(coming_, [&](const Coming& coming) {
    if (coming.when > now) return false;
    queue_.post({&coming.work, 1});
    return true;
  });
  if (armed_ == 0 || armed_at_ > now) return;
  watermark_ = std::exchange(armed_, 0);
  check_limit();
}

std::optional<ReceiveWork> SimulatedSharedReceiveQueue::pop() {
  const auto work = queue_.pop();
  check_limit();
  return work;
}

void SimulatedSharedReceiveQueue::check_limit() {
  if (queue_.size() >= watermark_) return;
  watermark_ = 0;
  device_.notify({SimulatedDevice::Event::Kind::limit, id_});
}

} // namespace macadam::sim
