// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/op.h"
#include "datatype/type.h"
#include "engine/engine.h"
#include "rma/window.h"
#include "sim/fiber.h"
#include "support/choices.h"
#include "support/null_transport.h"

#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// A few ranks with a window each, in one thread, over a network of which every order of events can
// be tried: operations of one rank to one other are done in order, and the explorer chooses which
// pair's is next. What one rank does by itself between two operations takes no time.
namespace macadam::rma::test {

using macadam::test::Choices;

struct Conditions {
  bool writes_copied = false; // small writes leave at once; else when they land
  bool torn_atomics = false;  // an adapter whose atomics are not: to see that it is found out
  int neighbours = 0;         // the first ranks, which have each other's memory mapped
};

class ExploredNetwork {
 public:
  using Program = std::function<void(Window&, int rank)>;
  static constexpr std::size_t words = 8; // in each rank's window

  ExploredNetwork(int ranks, const Conditions& conditions, Choices& choices,
                  const datatype::PredefinedTypes& types, const datatype::PredefinedOps& ops,
                  Window::Memory memory = Window::Memory::own);

  // Runs it on all ranks; empty, or what went wrong.
  std::string run(const Program& program);
  // Of the window of a rank.
  std::uint64_t& word(int rank, std::size_t i);
  // Operations that were handed to the network, of all explored networks.
  static std::size_t& posted() {
    static std::size_t count = 0;
    return count;
  }

 private:
  struct Operation {
    enum class Kind : std::uint8_t { write, read, atomic, second_half, flush } kind;
    void* local = nullptr;
    std::uint64_t remote = 0;
    std::uint64_t key = 0;
    std::size_t bytes = 0;
    std::uint64_t cookie = 0;
    engine::Atomic atomic;
    std::uint64_t value = 0; // of the second half of a torn atomic
    std::vector<std::byte> copy;
  };

  class Network;
  class Neighbours;
  struct Rank;

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  void perform(int from, int to);
  void check_key(int owner, const Operation& operation);
  void let_run(Rank& rank);

  const Conditions conditions_;
  Choices& choices_;
  std::map<std::pair<int, int>, std::deque<Operation>> queues_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::map<int, int> in_atomic_; // targets whose adapter is at one, and whose it is
  std::uint64_t changes_ = 0;    // of memory, by the network
  std::string wrong_;
};

class ExploredNetwork::Network final : public macadam::test::NullTransport {
 public:
  Network(ExploredNetwork& explored, int rank, int ranks)
      : explored_(explored), rank_(rank), links_(index(ranks)) {
    for (int peer = 0; peer < ranks; ++peer)
      links_[index(peer)].rank = static_cast<engine::Rank>(peer);
  }
  const engine::Limits& limits() const noexcept override { return limits_; }
  engine::Link& connect(engine::Rank peer, engine::PeerState& state) override {
    state = engine::PeerState::connected;
    return links_[peer];
  }
  RemoteMemory register_region(void* memory, std::size_t bytes) override {
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    keys[++last_key_] = {address, bytes};
    return {address, last_key_};
  }
  void deregister_region(RemoteMemory memory) noexcept override { keys.erase(memory.key); }
  Posted write(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
               std::uint64_t cookie) noexcept override {
    Operation operation{.kind = Operation::Kind::write,
                        .local = const_cast<void*>(local),
                        .remote = target.address,
                        .key = target.key,
                        .bytes = bytes,
                        .cookie = cookie,
                        .atomic = {},
                        .value = 0,
                        .copy = {}};
    const bool copied = explored_.conditions_.writes_copied;
    if (copied) {
      const auto* const from = static_cast<const std::byte*>(local);
      operation.copy.assign(from, from + bytes);
      operation.cookie = 0;
    }
    return post(link, std::move(operation), copied ? Posted::done : Posted::pending);
  }
  Posted read(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
              std::uint64_t cookie) noexcept override {
    return post(link,
                {.kind = Operation::Kind::read,
                 .local = local,
                 .remote = target.address,
                 .key = target.key,
                 .bytes = bytes,
                 .cookie = cookie,
                 .atomic = {},
                 .value = 0,
                 .copy = {}},
                Posted::pending);
  }
  Posted atomic(engine::Link& link, const engine::Atomic& what, RemoteMemory target,
                std::uint64_t* result, std::uint64_t cookie) noexcept override {
    return post(link,
                {.kind = Operation::Kind::atomic,
                 .local = result,
                 .remote = target.address,
                 .key = target.key,
                 .bytes = 8,
                 .cookie = cookie,
                 .atomic = what,
                 .value = 0,
                 .copy = {}},
                Posted::pending);
  }
  Posted flush(engine::Link& link, std::uint64_t cookie) noexcept override {
    return post(link,
                {.kind = Operation::Kind::flush,
                 .local = nullptr,
                 .remote = 0,
                 .key = 0,
                 .bytes = 0,
                 .cookie = cookie,
                 .atomic = {},
                 .value = 0,
                 .copy = {}},
                Posted::pending);
  }
  void* allocate(std::size_t bytes) override {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void free(void* memory) noexcept override { std::free(memory); }
  bool poll(engine::Sink& sink) noexcept override {
    const bool any = !completed.empty();
    while (!completed.empty()) {
      const std::uint64_t cookie = completed.front();
      completed.pop_front();
      sink.on_complete(cookie, true);
    }
    return any;
  }

  std::deque<std::uint64_t> completed;
  std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> keys;

 private:
  Posted post(engine::Link& link, Operation operation, Posted result) {
    ++posted();
    explored_.queues_[{rank_, static_cast<int>(link.rank)}].push_back(std::move(operation));
    return result;
  }
  ExploredNetwork& explored_;
  const int rank_;
  std::vector<engine::Link> links_;
  std::uint64_t last_key_ = 0;
  engine::Limits limits_{.name = "explored", .atomics = true};
};

// The nearer network of the ranks that share memory: all is mapped, so nothing is ever sent.
class ExploredNetwork::Neighbours final : public macadam::test::NullTransport {
 public:
  explicit Neighbours(const ExploredNetwork& explored)
      : links_(index(explored.conditions_.neighbours)) {
    for (std::size_t peer = 0; peer < links_.size(); ++peer)
      links_[peer].rank = static_cast<engine::Rank>(peer);
  }
  bool reaches(engine::Rank rank) const noexcept override { return rank < links_.size(); }
  engine::Link& connect(engine::Rank peer, engine::PeerState& state) override {
    state = engine::PeerState::connected;
    return links_.at(peer);
  }
  RemoteMemory register_region(void* memory, std::size_t) override {
    return {reinterpret_cast<std::uint64_t>(memory), 0};
  }
  void deregister_region(RemoteMemory) noexcept override {}
  bool is_mapped(RemoteMemory) const noexcept override { return true; }
  std::byte* mapped(engine::Link&, RemoteMemory memory, std::size_t) noexcept override {
    return reinterpret_cast<std::byte*>(memory.address);
  }
  void* allocate(std::size_t bytes) override {
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void free(void* memory) noexcept override { std::free(memory); }

 private:
  std::vector<engine::Link> links_;
};

// One process. Waiting: it stops until something completes, or until memory has changed.
struct ExploredNetwork::Rank final : Waiting {
  Rank(ExploredNetwork& explored_by, int own, int ranks, const datatype::PredefinedTypes& types,
       const datatype::PredefinedOps& ops)
      : explored(explored_by), number(own), neighbours(explored_by),
        network(explored_by, own, ranks),
        engine(networks(), static_cast<engine::Rank>(ranks), settings),
        map(0, 1, ranks), team{0, own, &map, &map}, memory(words),
        window(engine, *this, team, types, ops, false, counters) {}

  void look() override { engine.progress(); }
  void wait(bool (*done)(void*), void* argument, For what) override {
    for (;;) {
      engine.progress();
      const std::uint64_t seen = explored.changes_;
      if (done(argument)) return;
      polls = what == For::memory;
      seen_changes = seen;
      sim::Fiber::suspend();
      polls = false;
    }
  }
  [[nodiscard]] engine::Networks networks() {
    if (number < explored.conditions_.neighbours)
      return engine::Networks(std::vector<engine::Transport*>{&neighbours, &network});
    return network;
  }
  [[nodiscard]] bool may_run() const {
    return !network.completed.empty() || (polls && seen_changes != explored.changes_);
  }

  ExploredNetwork& explored;
  const int number;
  base::Settings settings;
  Neighbours neighbours;
  Network network;
  engine::Engine engine;
  engine::RankMap map;
  engine::Team team;
  std::vector<std::uint64_t> memory;
  Counters counters;
  Window window;
  std::unique_ptr<sim::Fiber> fiber;
  bool polls = false;
  std::uint64_t seen_changes = 0;
};

inline std::uint64_t& ExploredNetwork::word(int rank, std::size_t i) {
  return ranks_[index(rank)]->memory[i];
}

inline ExploredNetwork::ExploredNetwork(int ranks, const Conditions& conditions, Choices& choices,
                                        const datatype::PredefinedTypes& types,
                                        const datatype::PredefinedOps& ops, Window::Memory memory)
    : conditions_(conditions), choices_(choices) {
  std::vector<Exposure> exposures;
  const bool own = memory == Window::Memory::own;
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>(*this, rank, ranks, types, ops));
    Rank& made = *ranks_.back();
    exposures.push_back(made.window.register_window(own ? made.memory.data() : nullptr,
                                                    own ? words * 8 : 0, own ? 8 : 1));
  }
  for (const auto& rank : ranks_)
    rank->window.join(exposures, memory);
}

inline std::string ExploredNetwork::run(const Program& program) {
  for (const auto& rank : ranks_) {
    Rank& each = *rank;
    each.fiber = std::make_unique<sim::Fiber>(64 << 10, [&each, &program, this] {
      try {
        program(each.window, each.number);
        each.window.leave();
      } catch (const base::Error& error) {
        wrong_ = fmt::format("rank {}: {}", each.number, error.text);
      }
    });
    each.fiber->resume();
  }
  // Stores into mapped memory happen unseen: who polls looks again before he counts as stuck.
  int looks_left = conditions_.neighbours > 0 ? 100 : 0;
  while (wrong_.empty()) {
    bool ran = false;
    for (const auto& rank : ranks_) {
      if (rank->fiber->ended() || !rank->may_run()) continue;
      rank->fiber->resume();
      ran = true;
    }
    if (ran) continue;
    std::vector<std::pair<int, int>> ready;
    for (const auto& [pair, queue] : queues_) {
      const auto busy = in_atomic_.find(pair.second);
      if (!queue.empty() && (busy == in_atomic_.end() || busy->second == pair.first))
        ready.push_back(pair);
    }
    if (ready.empty() && looks_left-- > 0) {
      ++changes_;
      continue;
    }
    if (ready.empty()) break;
    const auto [from, to] = ready[choices_.choose(static_cast<unsigned>(ready.size()))];
    perform(from, to);
  }
  for (const auto& rank : ranks_) {
    if (wrong_.empty() && !rank->fiber->ended())
      wrong_ = fmt::format("rank {} waits for ever", rank->number);
  }
  return wrong_;
}

inline void ExploredNetwork::check_key(int owner, const Operation& operation) {
  const auto& keys = ranks_[index(owner)]->network.keys;
  const auto found = keys.find(operation.key);
  if (found != keys.end() && operation.remote >= found->second.first &&
      operation.remote + operation.bytes <= found->second.first + found->second.second)
    return;
  wrong_ = fmt::format("{} bytes at {:#x} of rank {} are accessed with key {}, which does not open "
                       "them",
                       operation.bytes, operation.remote, owner, operation.key);
}

inline void ExploredNetwork::perform(int from, int to) {
  auto& queue = queues_[{from, to}];
  Operation operation = std::move(queue.front());
  queue.pop_front();
  using Kind = Operation::Kind;
  auto* const there = reinterpret_cast<void*>(operation.remote);
  if (operation.kind != Kind::flush) check_key(to, operation);
  if (!wrong_.empty()) return;
  switch (operation.kind) {
  case Kind::write:
    std::memcpy(there, operation.copy.empty() ? operation.local : operation.copy.data(),
                operation.bytes);
    ++changes_;
    break;
  case Kind::read:
    std::memcpy(operation.local, there, operation.bytes);
    break;
  case Kind::atomic: {
    std::uint64_t old = 0;
    std::memcpy(&old, there, 8);
    std::memcpy(operation.local, &old, 8);
    const bool adds = operation.atomic.kind == engine::Atomic::Kind::fetch_and_add;
    operation.value = adds                              ? old + operation.atomic.operand
                      : old == operation.atomic.compare ? operation.atomic.operand
                                                        : old;
    operation.kind = Kind::second_half;
    // Others' operations on the target wait, but its processors do not.
    if (conditions_.neighbours > 0) in_atomic_[to] = from;
    if (conditions_.torn_atomics || conditions_.neighbours > 0) {
      queue.push_front(std::move(operation));
      return;
    }
    [[fallthrough]];
  }
  case Kind::second_half:
    std::memcpy(there, &operation.value, 8);
    in_atomic_.erase(to);
    ++changes_;
    break;
  case Kind::flush:
    break;
  }
  if (operation.cookie != 0) ranks_[index(from)]->network.completed.push_back(operation.cookie);
}

} // namespace macadam::rma::test
