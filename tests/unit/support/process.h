// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/counters.h"
#include "base/error.h"
#include "base/settings.h"
#include "boot/processes.h"
#include "engine/transport.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace macadam::test {

using engine::Posted;
using engine::Rank;

// A process of a job, all of which run in one thread: it publishes what its transport is reached
// by, uses links as the engine does, and writes down what it is told. How it starts, polls and lets
// time go by is for `Its`, the class that is made of it for a network.
template <class Its, class Transport, class Endpoint>
class Process : public boot::Job, public engine::Sink {
 public:
  using Members = std::vector<std::unique_ptr<Its>>; // of the job, by rank

  Process(const Members& its_job, Rank own, const base::Settings& its_settings)
      : self(own), settings(its_settings), job_(its_job) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

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
  [[nodiscard]] int size() const override { return static_cast<int>(job_.size()); }
  [[nodiscard]] boot::Secret secret() const override { return its_secret; }
  [[nodiscard]] int cores() const override { return size(); }
  void publish(std::span<const std::byte>) override {}
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int peer) const override {
    const Its& its = *job_[static_cast<std::size_t>(peer)];
    if (!its.endpoint || unknown == its.self) return std::nullopt;
    return std::as_bytes(std::span(&*its.endpoint, 1));
  }
  [[nodiscard]] boot::Life life(int peer) const override {
    return job_[static_cast<std::size_t>(peer)]->its_life;
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

  const Rank self;
  base::Settings settings;
  boot::Secret its_secret = {1, 2, 3};
  boot::Life its_life = boot::Life::running;
  std::optional<Endpoint> endpoint; // published
  std::optional<Rank> unknown;      // whose endpoint has not come yet
  std::optional<boot::Processes> processes;
  std::unique_ptr<Transport> transport;
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
  std::function<void()> on_notification;
  std::function<void()> on_failed_operation;

 private:
  const Members& job_;
};

// Text of the n-th message of a stream, of a length that follows from n.
inline std::string message(unsigned n, std::size_t longest = 1000) {
  std::string text = std::to_string(n) + ":";
  text.resize(text.size() + n * 397 % longest, static_cast<char>('a' + n % 26));
  return text;
}

} // namespace macadam::test
