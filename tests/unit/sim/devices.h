// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "sim/device.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace macadam::test {

using namespace macadam::net::rdma;
using sim::Faults;
using sim::Model;

// The text of the error that `call` throws; a test failure if it throws none.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const base::Error& error) {
    return error.text;
  }
  ADD_FAILURE() << "no error";
  return {};
}

// One process with one device, registered memory and completion queues.
struct Node {
  Node(sim::Scheduler& scheduler, sim::Fabric& fabric)
      : processor(scheduler), device(fabric, processor),
        sends(device.make_completion_queue(64, false)),
        receives(device.make_completion_queue(64, false)),
        region(device.register_memory(memory.data(), memory.size(), Access::remote)) {}

  Segment at(std::size_t offset, std::uint32_t bytes) {
    return {memory.data() + offset, bytes, region->local_key};
  }
  std::uint64_t address(std::size_t offset) {
    return reinterpret_cast<std::uint64_t>(memory.data() + offset);
  }
  void put(std::size_t offset, const std::string& text) {
    std::memcpy(memory.data() + offset, text.data(), text.size());
  }
  std::string get(std::size_t offset, std::size_t bytes) {
    return {reinterpret_cast<const char*>(memory.data() + offset), bytes};
  }
  static std::vector<Completion> poll(CompletionQueue& queue) {
    std::array<Completion, 64> found;
    const std::size_t count = queue.poll(found);
    return {found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  sim::Processor processor;
  sim::SimulatedDevice device;
  std::array<std::byte, 1 << 16> memory{};
  std::unique_ptr<CompletionQueue> sends;
  std::unique_ptr<CompletionQueue> receives;
  std::unique_ptr<MemoryRegion> region;
};

// Two processes, not yet connected.
struct Pair {
  explicit Pair(const Model& model = {}, const Faults& faults = {}, std::uint64_t seed = 1)
      : scheduler(seed), fabric(scheduler, model, faults, seed), a(scheduler, fabric),
        b(scheduler, fabric) {}

  QueuePairOptions options(Node& node) {
    QueuePairOptions result;
    result.sends = node.sends.get();
    result.receives = node.receives.get();
    result.send_depth = 16;
    result.receive_depth = 16;
    result.inline_bytes = 64;
    return result;
  }
  // A connection from `a` to `b`.
  void connect(const Retries& retries = {}) { connect(options(a), options(b), retries); }
  void connect(const QueuePairOptions& of_a, const QueuePairOptions& of_b,
               const Retries& retries = {}) {
    qa = a.device.make_queue_pair(of_a);
    qb = b.device.make_queue_pair(of_b);
    qa->accept({b.device.address(), qb->number()}, retries);
    qb->accept({a.device.address(), qa->number()}, retries);
    qa->establish();
    qb->establish();
  }
  // Lets a millisecond go by.
  void run(sim::Time time = 1000 * sim::microsecond) {
    scheduler.run_until(std::max({scheduler.now(), a.processor.now(), b.processor.now()}) + time);
  }
  // One request from `a`.
  std::size_t post(const SendWork& work) { return qa->post({&work, 1}); }
  bool post_receive(std::uint64_t id, Segment segment) {
    const ReceiveWork work{id, segment};
    return qb->post_receive({&work, 1});
  }

  sim::Scheduler scheduler;
  sim::Fabric fabric;
  Node a, b;
  std::unique_ptr<QueuePair> qa, qb;
};

inline SendWork work(Operation operation, std::uint64_t id, std::span<const Segment> segments) {
  SendWork result;
  result.operation = operation;
  result.id = id;
  result.segments = segments;
  result.signalled = true;
  return result;
}

} // namespace macadam::test
