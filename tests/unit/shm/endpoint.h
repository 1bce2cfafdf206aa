// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "boot/processes.h"
#include "job.h"
#include "net/shm/transport.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace macadam::net::shm::test {

// The front of a rank's memory, mapped once more.
inline Mapping map_front(const boot::Job& self, Rank rank) {
  const SharedMemory memory = self.memory_of(static_cast<int>(rank));
  const Mapping first(memory, {0, Extent::grain});
  return {memory, {0, first.header().front_bytes}};
}

// One rank: its transport, and a record of what was delivered.
class Endpoint final : public Sink {
 public:
  Endpoint(boot::Job& job, const base::Settings& settings)
      : settings_(settings), processes_(job), transport_(processes_, settings_) {
    job.publish({});
  }

  using OnMessage = std::function<void(Rank, const std::byte*, std::size_t)>;
  OnMessage on_message_do;

  void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override {
    ++messages;
    if (on_message_do)
      on_message_do(source, message, bytes);
    else
      inbox.emplace_back(reinterpret_cast<const char*>(message), bytes);
  }
  std::function<void(Rank, std::uint32_t, std::size_t)> on_put_do;
  void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override {
    on_put_do(source, notification, bytes);
  }
  // Put together again.
  void on_first_fragment(Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override {
    body[source] = {{fragment, fragment + bytes}, bytes + rest};
    ++messages_in_parts;
  }
  void on_next_fragment(Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override {
    auto& [data, whole] = body.at(source);
    data.insert(data.end(), fragment, fragment + bytes);
    if (data.size() < whole) return;
    const std::vector<std::byte> message = std::move(data);
    body.erase(source);
    on_message(source, message.data(), message.size());
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override { completions[cookie] = ok; }
  void on_peer(Rank peer, engine::PeerState state) noexcept override { states[peer] = state; }
  void on_failure(base::Error&& why) noexcept override { failure.emplace(std::move(why)); }

  // Once the peer is reached.
  engine::Link& link(Rank peer) {
    for (;;) {
      engine::PeerState state;
      engine::Link& found = transport_.connect(peer, state);
      if (state != engine::PeerState::connecting) return found;
      std::this_thread::yield();
    }
  }
  Posted try_send(Rank peer, const void* data, std::size_t bytes) {
    return transport_.send(link(peer), data, bytes, nullptr, 0);
  }
  void send(Rank peer, const void* data, std::size_t bytes) {
    while (try_send(peer, data, bytes) == Posted::busy) {
      if (!transport_.poll(*this)) std::this_thread::yield();
    }
  }
  void send_text(Rank peer, const std::string& text) { send(peer, text.data(), text.size()); }

  // Talks to another job from now on; returns the index of its rank 0.
  Rank meet(const boot::Job& other) {
    const Rank first = processes_.add(other);
    transport_.know(processes_.size());
    return first;
  }

  // ... and no more, which both have agreed on.
  void part_from(const boot::Job& other, Rank first) {
    processes_.hide(other);
    wait([&] { return transport_.forget(first, static_cast<Rank>(other.size())); });
    processes_.remove(other);
  }

  // Polls until the condition holds, as an MPI wait does. Throws after half a minute.
  template <class Done>
  void wait(Done&& done) {
    const double limit = seconds() + 30;
    unsigned fruitless = 0;
    while (!done()) {
      if (transport_.poll(*this))
        fruitless = 0;
      else
        transport_.idle(++fruitless, 100000);
      if (seconds() > limit) throw std::runtime_error("nothing came for 30 s");
    }
    transport_.resume();
  }
  void wait_messages(std::uint64_t count) {
    wait([&] { return messages >= count; });
  }
  // The next message that on_message_do did not take.
  std::string receive() {
    wait([&] { return !inbox.empty(); });
    std::string message = std::move(inbox.front());
    inbox.pop_front();
    return message;
  }
  // What became of a put or get, waited for if it was pending.
  bool finished(Posted posted, std::uint64_t cookie) {
    if (posted == Posted::done) return true;
    wait([&] { return completions.contains(cookie); });
    return completions[cookie];
  }

  [[nodiscard]] std::uint64_t counter(const std::string& name) const {
    base::CounterList list;
    transport_.list_counters(list);
    for (const base::Counter& row : list.rows()) {
      if (row.name == name) return *row.value;
    }
    throw std::out_of_range(name);
  }
  Transport& transport() { return transport_; }

  std::uint64_t messages = 0;
  std::uint64_t messages_in_parts = 0;
  std::map<Rank, std::pair<std::vector<std::byte>, std::size_t>> body; // so far, of how many bytes
  std::deque<std::string> inbox;
  std::map<std::uint64_t, bool> completions;
  std::map<Rank, engine::PeerState> states;
  std::optional<base::Error> failure; // of this process's communication

 private:
  base::Settings settings_; // the transport refers to both
  boot::Processes processes_;
  Transport transport_;
};

// Runs every rank as a thread. Transports live until all bodies have returned.
inline void run_threads(Job& job, const base::Settings& settings,
                        const std::function<void(Endpoint&, Rank)>& body) {
  std::atomic<Rank> finished = 0;
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < job.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Job::View view(job, rank);
      Endpoint endpoint(view, settings);
      try {
        body(endpoint, rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      ++finished;
      while (finished < job.size()) {
        endpoint.transport().poll(endpoint);
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

// Runs rank 0 here and the others in forked children, which must exit with 0. The children end
// without running the test's own clean-up.
inline void run_processes(Job& job, const std::function<void(Rank)>& body) {
  std::vector<pid_t> children;
  for (Rank rank = 1; rank < job.size(); ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        body(rank);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  body(0);
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    waitpid(children[i], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << i + 1 << " failed";
  }
}

} // namespace macadam::net::shm::test
