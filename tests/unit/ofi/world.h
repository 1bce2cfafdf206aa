// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/processes.h"
#include "net/ofi/transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace macadam::test {

using namespace macadam::net::ofi;

// The processes of a job, each a transport with an endpoint of its own on this machine. All run in
// this thread; nobody polls but the test.
class World {
 public:
  struct Process final : boot::Job, Sink {
    Process(World& of, Rank own, const boot::Secret& its) : world(of), self(own), its_secret(its) {}

    void start(engine::Transport* sleeper = nullptr) {
      processes.emplace(*this);
      transport = std::make_unique<OfiTransport>(
          *processes, settings, Wish{.one_machine = true, .interface = {}, .source = {}}, nullptr,
          sleeper);
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
    Posted send(Rank peer, const std::string& text) {
      if (!up(peer)) return Posted::busy;
      return transport->send(link(peer), text.data(), text.size(), nullptr, 0);
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
    [[nodiscard]] int cores() const override { return size(); }
    void publish(std::span<const std::byte>) override {}
    [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
      const Process& its = *world.processes[static_cast<std::size_t>(peer)];
      if (!its.endpoint) return std::nullopt;
      return std::as_bytes(std::span(&*its.endpoint, 1));
    }
    [[nodiscard]] boot::Life life(int peer) const override {
      return world.processes[static_cast<std::size_t>(peer)]->its_life;
    }
    // Sink
    void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override {
      received[source].emplace_back(reinterpret_cast<const char*>(message), bytes);
      if (on_receive) on_receive(source);
    }
    void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override {
      notifications.push_back({source, notification, bytes});
      if (on_notification) on_notification();
    }
    void on_complete(std::uint64_t cookie, bool ok) noexcept override { completed[cookie] = ok; }
    void on_peer(Rank peer, engine::PeerState state) noexcept override {
      EXPECT_NE(states[peer], engine::PeerState::failed) << "told again of rank " << peer;
      states[peer] = state;
    }
    void on_failure(base::Error&& why) noexcept override { failures.push_back(why.text); }

    World& world;
    const Rank self;
    base::Settings settings;
    boot::Secret its_secret;
    boot::Life its_life = boot::Life::running;
    std::optional<wire::Endpoint> endpoint; // published
    std::optional<boot::Processes> processes;
    std::unique_ptr<OfiTransport> transport;
    std::map<Rank, std::vector<std::string>> received;
    std::map<Rank, engine::Link*> links;
    std::map<Rank, engine::PeerState> states;
    std::map<std::uint64_t, bool> completed;
    std::vector<std::string> failures;
    struct Notification {
      Rank source;
      std::uint32_t notification;
      std::size_t bytes;
    };
    std::vector<Notification> notifications;
    std::function<void(Rank)> on_receive;
    std::function<void()> on_notification;
  };

  explicit World(Rank size, bool starts = true) {
    for (Rank rank = 0; rank < size; ++rank)
      processes.push_back(std::make_unique<Process>(*this, rank, boot::Secret{1, 2, 3}));
    for (auto& process : processes) {
      if (starts) process->start();
    }
  }
  Process& operator[](Rank rank) { return *processes[rank]; }

  // Lets all processes poll until it is so; false if it is not after some seconds.
  bool until(const std::function<bool()>& so, double seconds = 10) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!so()) {
      if (std::chrono::steady_clock::now() > end) return false;
      for (auto& process : processes) {
        if (process->transport != nullptr) process->transport->poll(*process);
      }
    }
    return true;
  }
  bool send(Rank from, Rank to, const std::string& text) {
    return until([&] { return (*this)[from].send(to, text) == Posted::done; });
  }

  std::vector<std::unique_ptr<Process>> processes;
};

// Text of the n-th message of a stream, of a length that follows from n.
inline std::string message(unsigned n, std::size_t longest = 8000) {
  std::string text = std::to_string(n) + ":";
  text.resize(text.size() + n * 397 % longest, static_cast<char>('a' + n % 26));
  return text;
}

} // namespace macadam::test
