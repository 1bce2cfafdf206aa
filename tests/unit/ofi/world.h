// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/process.h"
#include "net/ofi/transport.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace macadam::test {

using namespace macadam::net::ofi;

// The processes of a job, each a transport with an endpoint of its own on this machine. All run in
// this thread; nobody polls but the test.
class World {
 public:
  struct Process final : test::Process<Process, OfiTransport, wire::Endpoint> {
    using test::Process<Process, OfiTransport, wire::Endpoint>::Process;

    void start(engine::Transport* sleeper = nullptr) {
      processes.emplace(*this);
      transport = std::make_unique<OfiTransport>(
          *processes, settings, Wish{.one_machine = true, .interface = {}, .source = {}}, nullptr,
          sleeper);
      endpoint = transport->endpoint();
    }
  };

  explicit World(Rank size, bool starts = true) {
    for (Rank rank = 0; rank < size; ++rank)
      processes.push_back(std::make_unique<Process>(processes, rank, base::Settings()));
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
    return until([&] { return (*this)[from].try_send(to, text) == Posted::done; });
  }

  std::vector<std::unique_ptr<Process>> processes;
};

// Rank 1 of `strangers` becomes a process that has the right provider, knows all names and where
// `target` is, its rank 0; but its messages are sealed with another secret than the job's.
inline void make_stranger(World& strangers, const wire::Endpoint& target) {
  World::Process& stranger = strangers[1];
  stranger.start();
  stranger.its_secret = {9, 9, 9};
  strangers[0].endpoint = target;
  stranger.processes.emplace(stranger);
}

// Nobody gives it any: after each window it forgets what it has sent.
inline void give_itself_credit(World::Process& stranger, unsigned sent) {
  if (sent % wire::window == 0 && stranger.transport->forget(0, 1)) stranger.links.clear();
}

inline std::string long_message(unsigned n) {
  return message(n, 8000);
}

} // namespace macadam::test
