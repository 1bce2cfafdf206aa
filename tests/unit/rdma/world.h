// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/null_transport.h"
#include "../support/process.h"
#include "net/rdma/transport.h"
#include "sim/device.h"
#include "sim/fiber.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace macadam::test {

using namespace macadam::net::rdma;
using base::ConnectMode;
using base::ReceiveMode;
using base::Settings;
using sim::Faults;
using sim::Model;

// Small numbers, so that every limit is met soon.
inline Settings small_settings(ReceiveMode mode = ReceiveMode::shared) {
  Settings settings;
  settings.rdma_receive = mode;
  settings.rdma_eager = 1024;
  settings.rdma_buffers = 256;
  settings.rdma_shared = 32;
  settings.rdma_watermark = 8;
  settings.rdma_window = 8;
  settings.rdma_send_depth = 16;
  return settings;
}

// The processes of a job: each a transport on a simulated device. All run in this thread; nobody
// polls but the test.
class World {
 public:
  struct Process final : test::Process<Process, RdmaTransport, wire::Endpoint> {
    Process(World& of, Rank own, const Settings& its_settings)
        : test::Process<Process, RdmaTransport, wire::Endpoint>(of.processes, own, its_settings),
          world(of), processor(of.scheduler), device(of.fabric, processor) {}
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;
    ~Process() { transport.reset(); } // before the device

    void start() {
      engine::Transport* const beside = node_ranks != 0 ? &nearer : nullptr;
      start(device, beside);
    }
    void start(Device& its, engine::Transport* sleeper) {
      processes.emplace(*this);
      transport = std::make_unique<RdmaTransport>(its, *processes, settings, invalidation, sleeper);
      endpoint = transport->endpoint();
    }
    // Polls once; a little time goes by, in which the progress thread may run.
    bool step() {
      const bool moved = transport->poll(*this);
      device.compute(sim::microsecond);
      return moved;
    }
    [[nodiscard]] int cores() const override { return cores_are_few ? size() - 1 : size(); }
    [[nodiscard]] bool is_local(int peer) const override {
      return node_ranks != 0 && peer / node_ranks == rank() / node_ranks;
    }

    World& world;
    sim::Processor processor;
    sim::SimulatedDevice device;
    mem::InvalidationSource* invalidation = nullptr;
    int node_ranks = 0;   // that share a node, on which another network serves them
    NullTransport nearer; // ... this one
    bool cores_are_few = false;
  };

  explicit World(Rank size, const Settings& settings = small_settings(), const Model& model = {},
                 const Faults& faults = {}, std::uint64_t seed = 1)
      : scheduler(seed), fabric(scheduler, model, faults, seed) {
    for (Rank rank = 0; rank < size; ++rank)
      processes.push_back(std::make_unique<Process>(*this, rank, settings));
  }
  World& start() {
    for (auto& process : processes)
      process->start();
    return *this;
  }
  Process& operator[](Rank rank) { return *processes[rank]; }

  // Lets all processes (but one that `computes`) poll until it is so; false after `rounds`.
  bool until(const std::function<bool()>& so, int rounds = 20000, Rank computes = ~Rank{0}) {
    for (int round = 0; round < rounds; ++round) {
      if (so()) return true;
      for (Rank rank = 0; rank < processes.size(); ++rank) {
        Process& process = *processes[rank];
        if (process.transport == nullptr) continue;
        if (rank == computes)
          process.device.compute(sim::microsecond);
        else
          process.step();
      }
    }
    return so();
  }
  void run(int rounds = 200) {
    until([] { return false; }, rounds);
  }

  sim::Scheduler scheduler;
  sim::Fabric fabric;
  std::vector<std::unique_ptr<Process>> processes;
};

// `count` messages from one process to another, begun and not waited for.
class Stream {
 public:
  Stream(World& world, Rank from, Rank to, unsigned count)
      : world_(&world), from_(from), to_(to), count_(count) {}
  // Sends as many as there is room for; true if all were sent.
  bool push() {
    while (sent_ < count_ && (*world_)[from_].try_send(to_, message(sent_)) == Posted::done)
      ++sent_;
    return sent_ == count_;
  }
  bool arrived() const { return (*world_)[to_].received[from_].size() >= count_; }
  void check() const {
    const std::vector<std::string>& got = (*world_)[to_].received[from_];
    ASSERT_EQ(got.size(), count_) << "from " << from_ << " to " << to_;
    for (unsigned n = 0; n < count_; ++n)
      ASSERT_EQ(got[n], message(n)) << "message " << n << " from " << from_ << " to " << to_;
  }

 private:
  World* world_;
  Rank from_;
  Rank to_;
  unsigned count_;
  unsigned sent_ = 0;
};

} // namespace macadam::test
