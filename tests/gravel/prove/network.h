// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/prove/program.h"
#include "gravel/wire.h"
#include "unit/support/null_transport.h"

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace macadam::gravel::prove {

// Whoever decides what the program leaves open.
class Decider {
 public:
  virtual ~Decider() = default;
  // One of 0 .. of-1.
  virtual unsigned choose(unsigned of) = 0;
};

// What a poll of `at` can be given.
struct Delivery {
  enum class What : std::uint8_t { connected, notification, complete, gone } what;
  int at;
  int peer;
  std::size_t index = 0; // of the operation towards the peer: complete
};

// The transports of a few processes in one thread, for puts, gets and messages. Everything lands as
// late as the contract of engine/transport.h allows, and memory is read as late: what is freed or
// reused too early is seen. (What lands early is seen by nobody before it is told.) A slot of a
// ledger that is written before its content was taken out is an error at once.
class Network {
 public:
  Network(int ranks, const Conditions& conditions, Decider& decider)
      : conditions_(conditions), decider_(decider), refusals_(conditions.refusals) {
    for (int rank = 0; rank < ranks; ++rank)
      nodes_.push_back(std::make_unique<Node>(*this, rank, ranks));
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] engine::Transport& transport(int rank) { return *nodes_[index(rank)]; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  void say(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }
  // A notification is about to be given to a process, for a put that is at `address`.
  std::function<void(int rank, int source, std::uint32_t notification, std::uint64_t address)>
      on_notification;

  void list_deliveries(int at, std::vector<Delivery>& found) const {
    const Node& node = *nodes_[index(at)];
    if (node.dead) return;
    for (int peer = 0; peer < static_cast<int>(nodes_.size()); ++peer) {
      const Link& link = node.links[index(peer)];
      if (link.connecting) found.push_back({Delivery::What::connected, at, peer});
      if (link.owed_gone) found.push_back({Delivery::What::gone, at, peer});
      const Node& other = *nodes_[index(peer)];
      for (const Operation& operation : other.links[index(at)].under_way) {
        if (operation.notification == 0 || operation.notified || other.dead) continue;
        found.push_back({Delivery::What::notification, at, peer});
        break;
      }
      for (std::size_t i = 0; i < link.under_way.size(); ++i) {
        const Operation& operation = link.under_way[i];
        if (operation.over || operation.cookie == 0 || other.dead) continue;
        found.push_back({Delivery::What::complete, at, peer, i});
        if (conditions_.ordered) break; // completions of a queue pair come in order
      }
    }
  }
  // The next poll of `delivery.at` delivers this.
  void allow(const Delivery& delivery) { nodes_[index(delivery.at)]->allowed = delivery; }
  // A put or get was refused since the last poll.
  [[nodiscard]] bool refused(int rank) const { return nodes_[index(rank)]->refused; }
  // The slot may be written again.
  void vacate(int owner, std::uint64_t address) { occupied_.erase({owner, address}); }

  // The process has ended: what it has not handed over is lost, what is for it goes nowhere.
  void kill(int rank) {
    nodes_[index(rank)]->dead = true;
    for (auto& node : nodes_) {
      Link& link = node->links[index(rank)];
      if (node->dead) continue;
      link.owed_gone = true; // whether it is connected or not: who watches processes tells
      link.connecting = false;
    }
  }
  [[nodiscard]] bool is_dead(int rank) const { return nodes_[index(rank)]->dead; }

  [[nodiscard]] bool quiet() const {
    for (const auto& node : nodes_) {
      for (const Link& link : node->links) {
        for (const Operation& operation : link.under_way) {
          if (!node->dead && !nodes_[link.rank]->dead && operation.cookie != 0) return false;
        }
      }
    }
    return true;
  }
  // What is under way, for the key of a state. `mix_entry` does so for an entry from one process to
  // another; other data stand in the processes' memory, or are mixed here.
  void
  mix_into(const std::function<void(std::uint64_t)>& mix,
           const std::function<void(int from, int to, const Entry&)>& mix_entry,
           const std::function<void(int to, std::uint32_t notification)>& mix_notification) const {
    mix(refusals_);
    for (const auto& node : nodes_) {
      mix(node->refused ? 1 : 0);
      for (const Link& link : node->links) {
        mix((link.connected ? 1u : 0u) | (link.connecting ? 2u : 0u) | (link.owed_gone ? 4u : 0u));
        mix(link.under_way.size());
        for (const Operation& operation : link.under_way) {
          mix((operation.landed ? 1u : 0u) | (operation.over ? 2u : 0u) |
              (operation.notified ? 4u : 0u) | (operation.is_get ? 8u : 0u) |
              (operation.copy.empty() ? 0u : 16u) | (operation.cookie == 0 ? 0u : 32u) |
              (operation.is_message ? 64u : 0u) | (operation.begun ? 128u : 0u));
          mix_notification(static_cast<int>(link.rank), operation.notification);
          mix(place(static_cast<int>(link.rank), operation.remote));
          const void* const data = operation.copy.empty() ? operation.local : operation.copy.data();
          if (operation.notification != 0 && operation.bytes == sizeof(Entry)) {
            mix_entry(node->number(), static_cast<int>(link.rank),
                      *static_cast<const Entry*>(data));
          } else if (operation.is_get) {
            mix(place_of_local(node->number(), operation.local));
          } else {
            for (std::size_t i = 0; i < operation.bytes; ++i)
              mix(static_cast<std::uint64_t>(static_cast<const std::byte*>(data)[i]));
          }
        }
      }
    }
  }
  [[nodiscard]] std::uint64_t place_of_local(int rank, const void* memory) const {
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    for (const auto& [key, region] : nodes_[index(rank)]->regions) {
      if (address - region.first < region.second) return place(rank, {address, key});
    }
    return 0;
  }
  // Where in its owner's registered memory an address is.
  [[nodiscard]] std::uint64_t place(int owner, RemoteMemory memory) const {
    const auto& regions = nodes_[index(owner)]->regions;
    const auto found = regions.find(memory.key);
    return found == regions.end() ? 0 : memory.key << 32 | (memory.address - found->second.first);
  }

 private:
  struct Operation {
    bool is_get = false;
    void* local = nullptr;
    std::vector<std::byte> copy = {}; // if it was `done` at once
    RemoteMemory remote = {};
    std::size_t bytes = 0;
    std::uint64_t cookie = 0; // 0: nobody is told of its end
    std::uint32_t notification = 0;
    bool is_message = false; // `copy`, whose notification is only that there is something
    bool landed = false, over = false, notified = false;
    bool begun = false; // its first fragment was given
  };
  struct Link : engine::Link {
    bool connected = false, connecting = false, owed_gone = false;
    std::deque<Operation> under_way; // from us to the peer, in the order of posting
  };

  class Node final : public test::NullTransport {
   public:
    Node(Network& network, int rank, int ranks)
        : links(index(ranks)), network_(network), rank_(rank) {
      limits_ = {.name = "proof",
                 .message = network.conditions_.messages,
                 .packet = 6, // of fragments that move together
                 .cheap_copy = network.conditions_.copies ? 16u : 0u,
                 .notified_put = sizeof(Entry),
                 .orders_puts = network.conditions_.says_ordered,
                 .copies = network.conditions_.messages != 0};
      for (int peer = 0; peer < ranks; ++peer)
        links[index(peer)].rank = static_cast<Rank>(peer);
    }
    [[nodiscard]] int number() const { return rank_; }
    const engine::Limits& limits() const noexcept override { return limits_; }
    engine::Link& connect(Rank peer, engine::PeerState& state) override {
      Link& link = links[peer];
      if (!link.connected && !link.connecting) {
        if (network_.conditions_.late)
          link.connecting = true;
        else
          link.connected = true;
      }
      state = link.connected ? engine::PeerState::connected : engine::PeerState::connecting;
      return link;
    }
    Posted put(engine::Link& to, const void* local, RemoteMemory target, std::size_t bytes,
               std::uint64_t cookie) noexcept override {
      return begin(
          to,
          {.local = const_cast<void*>(local), .remote = target, .bytes = bytes, .cookie = cookie});
    }
    Posted put_notified(engine::Link& to, const void* local, RemoteMemory target, std::size_t bytes,
                        std::uint64_t cookie, std::uint32_t notification) noexcept override {
      return begin(to, {.local = const_cast<void*>(local),
                        .remote = target,
                        .bytes = bytes,
                        .cookie = cookie,
                        .notification = notification});
    }
    Posted send(engine::Link& to, const void* header, std::size_t header_bytes, const void* payload,
                std::size_t payload_bytes) noexcept override {
      Operation operation{
          .bytes = header_bytes + payload_bytes, .notification = filled_place, .is_message = true};
      if (operation.bytes > limits_.message) network_.say("a message is too long");
      operation.copy.resize(operation.bytes);
      std::memcpy(operation.copy.data(), header, header_bytes);
      std::memcpy(operation.copy.data() + header_bytes, payload, payload_bytes);
      return begin(to, std::move(operation));
    }
    Posted get(engine::Link& from, void* local, RemoteMemory source, std::size_t bytes,
               std::uint64_t cookie) noexcept override {
      return begin(
          from,
          {.is_get = true, .local = local, .remote = source, .bytes = bytes, .cookie = cookie});
    }
    RemoteMemory register_cached(void* memory, std::size_t bytes) override {
      const RemoteMemory named{reinterpret_cast<std::uintptr_t>(memory), ++last_key_};
      regions[named.key] = {named.address, bytes};
      return named;
    }
    void release_cached(RemoteMemory memory) noexcept override {
      if (regions.erase(memory.key) == 0) network_.say("memory is released twice");
    }
    void* allocate(std::size_t bytes) override {
      if (bytes > 10) return nullptr; // so that rings of promised buffers are short
      allocated.push_back(std::make_unique<std::byte[]>(bytes));
      return allocated.back().get();
    }
    void free(void* memory) noexcept override {
      const auto is_it = [&](const auto& block) { return block.get() == memory; };
      if (std::erase_if(allocated, is_it) != 1) network_.say("memory is freed twice");
    }
    bool poll(engine::Sink& sink) noexcept override {
      refused = false;
      if (!allowed) return false;
      network_.deliver(sink, *std::exchange(allowed, std::nullopt));
      return true;
    }

    std::vector<Link> links;
    std::map<std::uint64_t, std::pair<std::uint64_t, std::size_t>> regions;
    std::vector<std::unique_ptr<std::byte[]>> allocated; // not freed
    std::optional<Delivery> allowed;
    bool refused = false;
    bool dead = false;

   private:
    Posted begin(engine::Link& to, Operation operation) {
      Link& link = links[to.rank];
      const int peer = static_cast<int>(to.rank);
      if (!link.connected) network_.say("an operation goes to a link that is not connected");
      if (network_.refuses()) {
        refused = true;
        return Posted::busy;
      }
      if (operation.is_message) {
        link.under_way.push_back(std::move(operation));
        return Posted::done;
      }
      network_.check_region(peer, operation);
      if (operation.notification != 0 && operation.bytes == sizeof(Entry) &&
          !network_.occupied_.insert({peer, operation.remote.address}).second)
        network_.say("an entry that nobody has taken out is overwritten");
      const bool from_the_dead = operation.is_get && network_.nodes_[to.rank]->dead;
      const bool at_once = network_.ends_at_once() && !from_the_dead;
      if (at_once && (operation.is_get || !network_.conditions_.ordered) &&
          operation.notification == 0) {
        network_.land(rank_, peer, operation); // done means there
        return Posted::done;
      }
      if (at_once && !network_.conditions_.reads_late) {
        const auto* const from = static_cast<const std::byte*>(operation.local);
        operation.copy.assign(from, from + operation.bytes);
      }
      if (at_once) operation.cookie = 0;
      link.under_way.push_back(std::move(operation));
      return at_once ? Posted::done : Posted::pending;
    }

    Network& network_;
    const int rank_;
    engine::Limits limits_;
    std::uint64_t last_key_ = 0;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  bool refuses() {
    if (refusals_ == 0 || decider_.choose(2) == 0) return false;
    --refusals_;
    return true;
  }
  bool ends_at_once() {
    if (conditions_.ends == Ends::either) return decider_.choose(2) == 0;
    return conditions_.ends == Ends::at_once;
  }

  void check_region(int owner, const Operation& operation) {
    const auto& regions = nodes_[index(owner)]->regions;
    const auto found = regions.find(operation.remote.key);
    if (found == regions.end()) return say("an operation reaches memory that is not registered");
    const auto& [address, bytes] = found->second;
    if (operation.remote.address < address ||
        operation.remote.address + operation.bytes > address + bytes)
      say("an operation goes beyond the registered memory");
  }

  void land(int from, int to, Operation& operation) {
    if (std::exchange(operation.landed, true)) return;
    if (operation.is_message || nodes_[index(from)]->dead || nodes_[index(to)]->dead) return;
    auto* const remote = reinterpret_cast<std::byte*>(operation.remote.address);
    if (operation.is_get)
      std::memcpy(operation.local, remote, operation.bytes);
    else
      std::memcpy(remote, operation.copy.empty() ? operation.local : operation.copy.data(),
                  operation.bytes);
  }
  // Puts before this one, if the network keeps their order.
  void land_puts_before(int from, int to, std::size_t index_of) {
    auto& queue = nodes_[index(from)]->links[index(to)].under_way;
    for (std::size_t i = 0; i < index_of; ++i) {
      if (!queue[i].is_get && (conditions_.ordered || queue[i].notification != 0))
        land(from, to, queue[i]);
    }
  }
  void tidy(Link& link) {
    const auto gone = [](const Operation& o) {
      return o.landed && (o.over || o.cookie == 0) && (o.notified || o.notification == 0);
    };
    std::erase_if(link.under_way, gone);
  }

  void deliver(engine::Sink& sink, const Delivery& delivery) {
    Link& ours = nodes_[index(delivery.at)]->links[index(delivery.peer)];
    switch (delivery.what) {
    case Delivery::What::connected:
      ours.connecting = false;
      ours.connected = true;
      return sink.on_peer(ours.rank, engine::PeerState::connected);
    case Delivery::What::gone: {
      ours.owed_gone = false;
      std::vector<std::uint64_t> lost;
      for (const Operation& operation : ours.under_way) {
        if (operation.cookie != 0 && !operation.over) lost.push_back(operation.cookie);
      }
      ours.under_way.clear();
      for (const std::uint64_t cookie : lost)
        sink.on_complete(cookie, false);
      return sink.on_peer(ours.rank, engine::PeerState::failed);
    }
    case Delivery::What::complete: {
      Operation& operation = ours.under_way[delivery.index];
      land_puts_before(delivery.at, delivery.peer, delivery.index);
      land(delivery.at, delivery.peer, operation);
      operation.over = true;
      const std::uint64_t cookie = operation.cookie;
      tidy(ours);
      return sink.on_complete(cookie, true);
    }
    case Delivery::What::notification: {
      Link& theirs = nodes_[index(delivery.peer)]->links[index(delivery.at)];
      std::size_t at = 0;
      while (theirs.under_way[at].notification == 0 || theirs.under_way[at].notified)
        ++at;
      Operation& operation = theirs.under_way[at];
      land_puts_before(delivery.peer, delivery.at, at);
      land(delivery.peer, delivery.at, operation);
      if (operation.is_message) return deliver_message(sink, theirs, delivery.peer, operation);
      operation.notified = true;
      const std::uint32_t notification = operation.notification;
      const std::size_t bytes = operation.bytes;
      const std::uint64_t address = operation.remote.address;
      tidy(theirs);
      on_notification(delivery.at, delivery.peer, notification, address);
      return sink.on_put(static_cast<Rank>(delivery.peer), notification, bytes);
    }
    }
  }

  // All of it, its first fragment, with a byte of data, or the rest.
  void deliver_message(engine::Sink& sink, Link& of, int source, Operation& message) {
    const auto from = static_cast<Rank>(source);
    constexpr std::size_t first = sizeof(Filling) + 1;
    if (!message.begun && decider_.choose(2) == 1) {
      message.begun = true;
      return sink.on_first_fragment(from, message.copy.data(), first, message.bytes - first);
    }
    message.notified = true;
    const auto at = message.copy.begin() + (message.begun ? static_cast<std::ptrdiff_t>(first) : 0);
    const bool is_whole = !message.begun;
    const std::vector<std::byte> data(at, message.copy.end());
    tidy(of);
    if (is_whole)
      sink.on_message(from, data.data(), data.size());
    else
      sink.on_next_fragment(from, data.data(), data.size());
  }

  const Conditions conditions_;
  Decider& decider_;
  unsigned refusals_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::set<std::pair<int, std::uint64_t>> occupied_; // slots, by owner and address
  std::string wrong_;
};

} // namespace macadam::gravel::prove
