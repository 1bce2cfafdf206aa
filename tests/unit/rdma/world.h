// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/null_transport.h"
#include "base/error.h"
#include "boot/processes.h"
#include "net/rdma/transport.h"
#include "sim/device.h"
#include "sim/fiber.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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

// The processes of a job: each a transport on a simulated device, with a sink that writes down what
// it is told. All run in this thread; nobody polls but the test.
class World {
 public:
  struct Process final : boot::Job, Sink {
    Process(World& of, Rank own, const Settings& its_settings)
        : world(of), self(own), settings(its_settings), processor(of.scheduler),
          device(of.fabric, processor) {}

    void start() {
      engine::Transport* const beside = node_ranks != 0 ? &nearer : nullptr;
      start(device, beside);
    }
    void start(Device& its, engine::Transport* sleeper) {
      processes.emplace(*this);
      transport = std::make_unique<RdmaTransport>(its, *processes, settings, invalidation, sleeper);
      endpoint = transport->endpoint();
    }
    // As the engine: it asks for a link once, and uses it when it is connected.
    engine::Link& link(Rank peer) {
      engine::Link*& known = links[peer];
      if (known == nullptr) {
        engine::PeerState state = engine::PeerState::failed;
        known = &transport->connect(peer, state);
        states[peer] = state;
      }
      return *known;
    }
    bool up(Rank peer) {
      link(peer);
      return states[peer] == engine::PeerState::connected;
    }
    Posted try_send(Rank peer, const std::string& text) {
      if (!up(peer)) return Posted::busy;
      return transport->send(link(peer), text.data(), text.size(), nullptr, 0);
    }
    // Polls once; a little time goes by, in which the progress thread may run.
    bool step() {
      const bool moved = transport->poll(*this);
      device.compute(sim::microsecond);
      return moved;
    }
    std::uint64_t counter(const std::string& name) const {
      base::CounterList list;
      transport->list_counters(list);
      for (const base::Counter& counter : list.rows()) {
        if (counter.name == name) return *counter.value;
      }
      ADD_FAILURE() << "no counter " << name;
      return 0;
    }

    // boot::Job
    [[nodiscard]] int rank() const override { return static_cast<int>(self); }
    [[nodiscard]] int size() const override { return static_cast<int>(world.processes.size()); }
    [[nodiscard]] boot::Secret secret() const override { return its_secret; }
    [[nodiscard]] int cores() const override { return cores_are_few ? size() - 1 : size(); }
    [[nodiscard]] bool is_local(int peer) const override {
      return node_ranks != 0 && peer / node_ranks == rank() / node_ranks;
    }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
      const Process& its = *world.processes[static_cast<std::size_t>(peer)];
      if (!its.endpoint || unknown == its.self) return std::nullopt;
      return std::as_bytes(std::span(&*its.endpoint, 1));
    }
    // Sink
    void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override {
      received[source].emplace_back(reinterpret_cast<const char*>(message), bytes);
      if (on_receive) on_receive(source);
    }
    void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override {
      notifications.push_back({source, notification, bytes});
    }
    void on_complete(std::uint64_t cookie, bool ok) noexcept override {
      completed[cookie] = ok;
      if (!ok && on_failed_operation) on_failed_operation();
    }
    void on_peer(Rank peer, engine::PeerState state) noexcept override {
      EXPECT_NE(states[peer], engine::PeerState::failed) << "told again of rank " << peer;
      states[peer] = state;
      ++changes[peer];
    }
    void on_failure(base::Error&& why) noexcept override { ADD_FAILURE() << why.text; }

    World& world;
    const Rank self;
    Settings settings;
    sim::Processor processor;
    sim::SimulatedDevice device;
    mem::InvalidationSource* invalidation = nullptr;
    std::optional<wire::Endpoint> endpoint; // published
    int node_ranks = 0;   // that share a node, on which another network serves them
    NullTransport nearer; // ... this one
    std::optional<boot::Processes> processes;
    bool cores_are_few = false;
    std::optional<Rank> unknown; // whose endpoint has not come yet
    boot::Secret its_secret = {1, 2, 3};
    std::unique_ptr<RdmaTransport> transport;
    std::map<Rank, std::vector<std::string>> received;
    std::map<Rank, engine::Link*> links;
    std::map<Rank, engine::PeerState> states;
    std::map<Rank, int> changes;
    std::map<std::uint64_t, bool> completed;
    struct Notification {
      Rank source;
      std::uint32_t notification;
      std::size_t bytes;
    };
    std::vector<Notification> notifications;
    std::function<void(Rank)> on_receive;
    std::function<void()> on_failed_operation;
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

// Text of the n-th message of a stream, of a length that follows from n.
inline std::string message(unsigned n, std::size_t longest = 1000) {
  std::string text = std::to_string(n) + ":";
  text.resize(text.size() + n * 37 % longest, static_cast<char>('a' + n % 26));
  return text;
}

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
