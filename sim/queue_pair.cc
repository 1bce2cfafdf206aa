// SPDX-License-Identifier: BSD-3-Clause
#include "sim/queue_pair.h"

#include "base/copy.h"
#include "base/error.h"

#include <atomic>
#include <cstring>

namespace macadam::sim {

using net::rdma::Completion;
using net::rdma::Operation;
using net::rdma::ReceiveWork;
using net::rdma::Segment;
using net::rdma::SendWork;
using net::rdma::WorkStatus;

SimulatedQueuePair::SimulatedQueuePair(SimulatedDevice& device, std::uint32_t number,
                                       const net::rdma::QueuePairOptions& options)
    : device_(device), sent_(static_cast<SimulatedCompletionQueue&>(*options.sends)),
      received_(static_cast<SimulatedCompletionQueue&>(*options.receives)),
      shared_(static_cast<SimulatedSharedReceiveQueue*>(options.shared)),
      receives_(options.shared != nullptr ? nullptr
                                          : std::make_unique<ReceiveQueue>(options.receive_depth)),
      inline_bytes_(options.inline_bytes), number_(number), places_(options.send_depth) {}

SimulatedQueuePair::~SimulatedQueuePair() {
  sent_.forget(number_);
  if (&received_ != &sent_) received_.forget(number_);
  device_.remove_queue_pair(number_);
}

bool SimulatedQueuePair::post_receive(std::span<const ReceiveWork> work) {
  if (shared_ != nullptr)
    base::fail(MPI_ERR_INTERN, "{}: queue pair {} takes its receives from a shared queue",
               device_.name(), number_);
  device_.check_receives(work);
  device_.spend_posting(work.size());
  return receives_->post(work);
}

std::optional<ReceiveWork> SimulatedQueuePair::pop_receive() {
  return shared_ != nullptr ? shared_->pop() : receives_->pop();
}

void SimulatedQueuePair::push_receive(const Completion& completion) {
  received_.push(completion, 0);
}

void SimulatedQueuePair::push_send(const Work& work, WorkStatus status, std::uint32_t released) {
  Completion completion;
  completion.id = work.id;
  completion.queue_pair = number_;
  completion.status = status;
  sent_.push(completion, released);
}

void SimulatedQueuePair::check(const SendWork& work, std::uint64_t longest) const {
  const auto refuse = [&](const std::string& what) {
    base::fail(MPI_ERR_INTERN, "{}: a request posted to queue pair {} {}", device_.name(), number_,
               what);
  };
  const net::rdma::DeviceLimits& limits = device_.limits();
  if (work.segments.size() > limits.segments)
    refuse(
        fmt::format("has {} segments, the device takes {}", work.segments.size(), limits.segments));
  std::uint64_t bytes = 0;
  for (const Segment& segment : work.segments) {
    bytes += segment.bytes;
    if (!work.inlined && !device_.allows(segment))
      refuse(fmt::format("names {} bytes that key {:#x} does not open", segment.bytes,
                         segment.local_key));
  }
  if (bytes > longest) refuse(fmt::format("has {} bytes, the most are {}", bytes, longest));
  if (work.inlined && bytes > inline_bytes_)
    refuse(fmt::format("has {} bytes inline, the queue pair takes {}", bytes, inline_bytes_));
  switch (work.operation) {
  case Operation::compare_and_swap:
  case Operation::fetch_and_add:
    if (!limits.atomics) refuse("is an atomic, which the device does not have");
    if (bytes != 8) refuse(fmt::format("is an atomic on {} bytes, not 8", bytes));
    [[fallthrough]];
  case Operation::read:
    if (work.inlined) refuse("reads into inline data");
    break;
  default:
    break;
  }
}

void SimulatedQueuePair::take_data(Work& work, const SendWork& from) const {
  for (const Segment& segment : from.segments) {
    work.segments[work.segment_count++] = segment;
    work.bytes += segment.bytes;
  }
  if (!from.inlined || work.bytes == 0) return;
  work.data = std::make_unique_for_overwrite<std::byte[]>(work.bytes);
  std::byte* to = work.data.get();
  for (const Segment& segment : from.segments) {
    base::copy(to, segment.memory, segment.bytes); // by the processor
    to += segment.bytes;
  }
}

void SimulatedQueuePair::place(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto last = static_cast<std::uint8_t>(from[bytes - 1]); // they may overlap
  std::memmove(to, from, bytes - 1);
  std::atomic_ref(reinterpret_cast<std::uint8_t&>(to[bytes - 1]))
      .store(last, std::memory_order_release);
}

bool SimulatedQueuePair::gather(const Work& work, std::byte* to) const {
  if (work.data != nullptr) {
    place(to, work.data.get(), work.bytes);
    return true;
  }
  for (std::uint32_t i = 0; i < work.segment_count; ++i) {
    const Segment& segment = work.segments[i];
    if (!device_.allows(segment)) return false;
    if (segment.bytes > 0) place(to, static_cast<const std::byte*>(segment.memory), segment.bytes);
    to += segment.bytes;
  }
  return true;
}

bool SimulatedQueuePair::scatter(const Work& work, const std::byte* from) const {
  for (std::uint32_t i = 0; i < work.segment_count; ++i) {
    const Segment& segment = work.segments[i];
    if (!device_.allows(segment)) return false;
    if (segment.bytes > 0) std::memmove(segment.memory, from, segment.bytes);
    from += segment.bytes;
  }
  return true;
}

} // namespace macadam::sim
