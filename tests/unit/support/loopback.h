// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace macadam::test {

// What no test may do: ends the test program.
template <class... Args>
[[noreturn, gnu::noinline]] void wrong(fmt::format_string<Args...> format, Args&&... args) {
  throw std::logic_error(fmt::format(format, std::forward<Args>(args)...));
}

// How a LoopbackNetwork behaves. Probabilities are per operation; all zero: everything happens at
// once, in order. The same options and the same calls give the same run.
struct LoopbackOptions {
  std::uint64_t seed = 1;
  double connect_late = 0; // connect() answers `connecting`, Sink::on_peer() comes some polls later
  double busy = 0;         // an operation is refused for want of room
  double pending = 0;      // a put or get is `pending`; its data moves in a later poll
  double hold = 0;         // a poll leaves the messages of a pair for later
  std::size_t burst = 16;  // messages delivered in one poll at most
  engine::Limits limits = {.name = "loopback", .message = 8192, .eager = 1024, .hybrid = 4096};
  bool no_memory = false;    // allocate() gives null
  bool names_repeat = false; // those of registered memory: no late use of one is found
  std::function<bool(engine::Rank, engine::Rank)> reaches; // none: all reach all

  // Everything that a transport may do, often.
  static LoopbackOptions rough(std::uint64_t seed) {
    LoopbackOptions options;
    options.seed = seed;
    options.connect_late = 0.5;
    options.busy = 0.2;
    options.pending = 0.5;
    options.hold = 0.4;
    options.burst = 3;
    return options;
  }
};

// The transports of n processes that live in one thread. Messages between two processes are FIFO
// and are delivered when the target polls; order between pairs is random. Misuse that would corrupt
// memory on a real network (a put to memory that is not registered, an operation on a link that is
// not connected) throws std::logic_error.
class LoopbackNetwork {
 public:
  explicit LoopbackNetwork(int ranks, LoopbackOptions options = {})
      : options_(options), random_(options.seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      nodes_.push_back(std::make_unique<Node>(*this, static_cast<engine::Rank>(rank)));
    }
  }
  LoopbackNetwork(const LoopbackNetwork&) = delete;
  LoopbackNetwork& operator=(const LoopbackNetwork&) = delete;

  [[nodiscard]] engine::Transport& transport(int rank) { return *nodes_[index(rank)]; }
  [[nodiscard]] int size() const { return static_cast<int>(nodes_.size()); }

  // Who sleeps, and how one is woken; see Transport::wake_peer(). Without these nobody sleeps.
  std::function<bool(engine::Rank)> sleeps;
  std::function<void(engine::Rank)> wake;

  // Nothing is on its way: if no process can go on by itself now, none ever will.
  [[nodiscard]] bool quiet() const {
    for (const auto& node : nodes_) {
      if (!node->idle()) return false;
    }
    return true;
  }

  // The process is gone: what it sent and did not deliver is lost, its peers are told.
  void kill(int rank) {
    nodes_[index(rank)]->dead = true;
    for (auto& node : nodes_)
      node->peer_died(static_cast<engine::Rank>(rank));
  }

  [[nodiscard]] std::uint64_t messages() const { return messages_; }
  [[nodiscard]] std::uint64_t puts() const { return puts_; }
  [[nodiscard]] std::uint64_t gets() const { return gets_; }
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t reads() const { return reads_; }
  // How many a rank has sent to, or heard of.
  [[nodiscard]] std::size_t partners(int rank) const { return nodes_[index(rank)]->partners(); }
  // Memory registered and not released: 0 when all engines are at rest.
  // Blocks of allocate() that were not freed.
  [[nodiscard]] std::size_t allocated() const {
    std::size_t sum = 0;
    for (const auto& node : nodes_)
      sum += node->allocated.size();
    return sum;
  }
  [[nodiscard]] std::size_t registered() const {
    std::size_t sum = 0;
    for (const auto& node : nodes_)
      sum += node->regions.size();
    return sum;
  }

 private:
  using Bytes = std::vector<std::byte>;

  struct Transfer {
    bool put;
    void* local;
    engine::RemoteMemory remote;
    std::size_t bytes;
    std::uint64_t cookie;
  };

  struct LoopbackLink : engine::Link {
    engine::PeerState state = engine::PeerState::connecting;
    bool tell = false;              // Sink::on_peer() is owed
    std::deque<Transfer> transfers; // pending, in order
    std::deque<Bytes> inbox;        // messages of this peer to us
  };

  struct Region {
    std::uint64_t name; // of its first byte
    std::size_t bytes;
    std::uintptr_t address;
  };

  class Node final : public engine::Transport {
   public:
    Node(LoopbackNetwork& network, engine::Rank rank) : network_(network), rank_(rank) {}

    [[nodiscard]] const engine::Limits& limits() const noexcept override {
      return network_.options_.limits;
    }

    [[nodiscard]] bool reaches(engine::Rank peer) const noexcept override {
      return !network_.options_.reaches || network_.options_.reaches(rank_, peer);
    }
    engine::Link& connect(engine::Rank peer, engine::PeerState& state) override {
      if (!reaches(peer)) {
        wrong("connect to rank {}, which is on another network", peer);
      }
      LoopbackLink& found = link(peer);
      if (found.state == engine::PeerState::connecting && !found.tell) {
        if (network_.nodes_.at(peer)->dead)
          found.state = engine::PeerState::failed;
        else if (network_.chance(network_.options_.connect_late))
          found.tell = true;
        else
          found.state = engine::PeerState::connected;
      }
      state = found.state;
      return found;
    }

    engine::Posted send(engine::Link& to, const void* header, std::size_t header_bytes,
                        const void* payload, std::size_t payload_bytes) noexcept override {
      LoopbackLink& link = connected(to, "send");
      if (header_bytes + payload_bytes > limits().message) {
        wrong("send: {} bytes, longest message is {}", header_bytes + payload_bytes,
              limits().message);
      }
      if (link.state == engine::PeerState::failed) return engine::Posted::done;
      if (!link.transfers.empty() && puts_pending(link)) return engine::Posted::busy;
      if (network_.chance(network_.options_.busy)) return engine::Posted::busy;
      Bytes message(header_bytes + payload_bytes);
      std::memcpy(message.data(), header, header_bytes);
      if (payload_bytes != 0) {
        std::memcpy(message.data() + header_bytes, payload, payload_bytes);
      }
      Node& target = *network_.nodes_.at(to.rank);
      target.link(rank_).inbox.push_back(std::move(message));
      ++network_.messages_;
      return engine::Posted::done;
    }

    engine::Posted put(engine::Link& to, const void* local, engine::RemoteMemory target,
                       std::size_t bytes, std::uint64_t cookie) noexcept override {
      ++network_.puts_;
      return transfer(to, {true, const_cast<void*>(local), target, bytes, cookie});
    }
    engine::Posted get(engine::Link& from, void* local, engine::RemoteMemory source,
                       std::size_t bytes, std::uint64_t cookie) noexcept override {
      ++network_.gets_;
      return transfer(from, {false, local, source, bytes, cookie});
    }

    // Where memory is mapped there is always room.
    engine::Posted write(engine::Link& to, const void* local, engine::RemoteMemory target,
                         std::size_t bytes, std::uint64_t cookie) noexcept override {
      ++network_.writes_;
      return transfer(to, {true, const_cast<void*>(local), target, bytes, cookie}, !limits().maps);
    }
    engine::Posted read(engine::Link& from, void* local, engine::RemoteMemory source,
                        std::size_t bytes, std::uint64_t cookie) noexcept override {
      ++network_.reads_;
      return transfer(from, {false, local, source, bytes, cookie}, !limits().maps);
    }

    engine::RemoteMemory register_cached(void* memory, std::size_t bytes) override {
      const auto address = reinterpret_cast<std::uintptr_t>(memory);
      engine::RemoteMemory named{address, next_key_ + 1};
      if (network_.options_.names_repeat) {
        named = {sizeof(Lines), 1};
        while (regions.contains(named.key))
          ++named.key;
      }
      next_key_ = named.key;
      regions[named.key] = {named.address, bytes, address};
      return named;
    }
    void release_cached(engine::RemoteMemory memory) noexcept override {
      if (regions.erase(memory.key) == 0) wrong("memory released twice");
    }

    std::uint64_t issue(engine::Link&) noexcept override {
      open_permits.insert(++last_permit_);
      return last_permit_;
    }
    bool use(engine::Link& issuer, std::uint64_t permit) noexcept override {
      return network_.nodes_.at(issuer.rank)->open_permits.erase(permit) != 0;
    }
    engine::Revoked revoke(engine::Link&, std::uint64_t permit) noexcept override {
      return open_permits.erase(permit) != 0 ? engine::Revoked::yes : engine::Revoked::no;
    }
    void discard(engine::Link&, std::uint64_t permit) noexcept override {
      open_permits.erase(permit);
    }

    engine::RemoteMemory register_region(void* memory, std::size_t bytes) override {
      if (limits().maps) return {reinterpret_cast<std::uintptr_t>(memory), mapped_key};
      return register_cached(memory, bytes);
    }
    std::byte* mapped(engine::Link&, engine::RemoteMemory memory, std::size_t) override {
      return memory.key == mapped_key ? reinterpret_cast<std::byte*>(memory.address) : nullptr;
    }

    // What is not freed stays until the network ends: others have mapped it.
    void* allocate(std::size_t bytes) override {
      if (network_.options_.no_memory) return nullptr;
      return allocated.emplace_back(std::make_unique<Lines[]>(bytes / sizeof(Lines) + 1)).get();
    }
    void free(void* memory) noexcept override {
      std::erase_if(allocated, [&](const auto& block) { return block.get() == memory; });
    }

    void wake_peer(engine::Link& link) noexcept override {
      if (network_.wake) network_.wake(link.rank);
    }
    bool peer_sleeps(engine::Link& link) noexcept override {
      return network_.sleeps && network_.sleeps(link.rank);
    }

    bool poll(engine::Sink& sink) noexcept override {
      if (dead) return false;
      bool moved = false;
      std::vector<engine::Rank> order;
      for (auto& [peer, link] : links_)
        order.push_back(peer);
      std::shuffle(order.begin(), order.end(), network_.random_);
      std::size_t budget = network_.options_.burst;
      for (const engine::Rank peer : order)
        moved |= poll_link(sink, *links_[peer], budget);
      return moved;
    }

    bool idle(unsigned, unsigned) override { return false; }
    void resume() override {}
    [[nodiscard]] double now() const override { return network_.now_ += 1e-6; }
    void list_counters(base::CounterList&) const override {}
    [[nodiscard]] std::vector<std::string> fallbacks() const override { return {}; }
    [[nodiscard]] std::size_t memory_bytes() const override { return 0; }

    [[nodiscard]] bool idle() const {
      if (dead) return true;
      for (const auto& [peer, link] : links_) {
        if (link->tell || !link->inbox.empty() || !link->transfers.empty()) return false;
      }
      return true;
    }

    [[nodiscard]] std::size_t partners() const { return links_.size(); }

    void peer_died(engine::Rank peer) {
      const auto found = links_.find(peer);
      if (found == links_.end()) return;
      found->second->inbox.clear();
      found->second->state = engine::PeerState::failed;
      found->second->tell = true;
    }

    bool dead = false;
    struct alignas(64) Lines {
      std::byte bytes[64];
    };
    std::vector<std::unique_ptr<Lines[]>> allocated;
    std::map<std::uint64_t, Region> regions;
    std::set<std::uint64_t> open_permits;

   private:
    LoopbackLink& link(engine::Rank peer) {
      auto& slot = links_[peer];
      if (!slot) {
        slot = std::make_unique<LoopbackLink>();
        slot->rank = peer;
      }
      return *slot;
    }

    LoopbackLink& connected(engine::Link& to, const char* operation) {
      auto& link = static_cast<LoopbackLink&>(to);
      if (link.state == engine::PeerState::connecting) {
        wrong("{} on a link that is not connected", operation);
      }
      return link;
    }

    static bool puts_pending(const LoopbackLink& link) {
      for (const Transfer& transfer : link.transfers) {
        if (transfer.put) return true;
      }
      return false;
    }

    engine::Posted transfer(engine::Link& to, const Transfer& transfer, bool may_refuse = true) {
      LoopbackLink& link = connected(to, transfer.put ? "put" : "get");
      if (may_refuse && network_.chance(network_.options_.busy)) return engine::Posted::busy;
      if (link.state == engine::PeerState::failed || !link.transfers.empty() ||
          network_.chance(network_.options_.pending)) {
        link.transfers.push_back(transfer);
        return engine::Posted::pending;
      }
      move(link, transfer);
      return engine::Posted::done;
    }

    void move(LoopbackLink& link, const Transfer& transfer) {
      const Node& owner = *network_.nodes_.at(link.rank);
      const auto region = owner.regions.find(transfer.remote.key);
      const char* name = transfer.put ? "put" : "get";
      if (region == owner.regions.end()) {
        wrong("{}: memory of rank {} is not registered (any more)", name, link.rank);
      }
      const auto& [name_of_first, bytes, address] = region->second;
      const std::uint64_t offset = transfer.remote.address - name_of_first;
      if (offset > bytes || transfer.bytes > bytes - offset) {
        wrong("{} outside of the registered memory of rank {}", name, link.rank);
      }
      void* remote = reinterpret_cast<void*>(address + offset);
      if (transfer.put)
        std::memcpy(remote, transfer.local, transfer.bytes);
      else
        std::memcpy(transfer.local, remote, transfer.bytes);
    }

    bool poll_link(engine::Sink& sink, LoopbackLink& link, std::size_t& budget) {
      bool moved = false;
      if (link.tell && (link.state == engine::PeerState::failed || !network_.chance(0.5))) {
        link.tell = false;
        if (link.state == engine::PeerState::connecting) link.state = engine::PeerState::connected;
        sink.on_peer(link.rank, link.state);
        moved = true;
      }
      while (!link.transfers.empty() && !network_.chance(network_.options_.hold)) {
        const Transfer transfer = link.transfers.front();
        link.transfers.pop_front();
        const bool ok = link.state == engine::PeerState::connected;
        if (ok) move(link, transfer);
        sink.on_complete(transfer.cookie, ok);
        moved = true;
      }
      while (budget > 0 && !link.inbox.empty() && !network_.chance(network_.options_.hold)) {
        const Bytes message = std::move(link.inbox.front());
        link.inbox.pop_front();
        --budget;
        sink.on_message(link.rank, message.data(), message.size());
        moved = true;
      }
      return moved;
    }

    LoopbackNetwork& network_;
    engine::Rank rank_;
    static constexpr std::uint64_t mapped_key = UINT64_MAX;
    std::uint64_t next_key_ = 0;
    std::uint64_t last_permit_ = 0;
    std::map<engine::Rank, std::unique_ptr<LoopbackLink>> links_;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  bool chance(double probability) {
    return probability > 0 && std::uniform_real_distribution<>(0, 1)(random_) < probability;
  }

  LoopbackOptions options_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Node>> nodes_;
  double now_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t puts_ = 0;
  std::uint64_t gets_ = 0;
  std::uint64_t writes_ = 0;
  std::uint64_t reads_ = 0;
};

} // namespace macadam::test
