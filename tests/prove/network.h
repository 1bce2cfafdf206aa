// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "engine/wire.h"
#include "prove/library_sink.h"
#include "prove/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

namespace macadam::prove {

// Whoever decides what the program leaves open: an explorer, a seed, a recorded schedule.
class Decider {
 public:
  virtual ~Decider() = default;
  // One of 0 .. of-1; 0 is the plain course.
  virtual unsigned choose(unsigned of) = 0;
};

// Something that the network can do next, as seen by the process `at`.
struct Delivery {
  enum class What {
    connected, // the link to `peer` is ready
    message,   // the next message of `peer`
    finished,  // the oldest put or get towards `peer` is over
    answered,  // it is known whether `peer` has used the permit that was asked for first
    failed,    // `peer` is gone; what it had sent and was not taken is lost
  } what;
  int at;
  int peer;
};

// The transports of a few processes in one thread. Nothing happens by itself: a process polls and
// is given the one delivery that was allowed to it, or, within a call, what the decider picks.
// Messages of a pair are in order; order between pairs is the decider's. What would corrupt memory
// on a real network is told by wrong().
class Network {
 public:
  Network(int ranks, const Conditions& conditions, Decider& decider)
      : conditions_(conditions), decider_(decider), refusals_(conditions.refusals),
        scarcity_(conditions.scarce) {
    for (int rank = 0; rank < ranks; ++rank)
      nodes_.push_back(std::make_unique<Node>(*this, rank, ranks));
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  using Bytes = std::vector<std::byte>;

  struct Transfer {
    bool put = false;
    void* local = nullptr;
    engine::RemoteMemory remote = {};
    std::size_t bytes = 0;
    std::uint64_t cookie = 0;
    std::uint32_t notification = 0; // for the target, 0: none
    bool moved = false;
    // Of a message that is not copied: what `local` must hold. Of a put at once: the data, which
    // the target's poll writes.
    std::vector<std::byte> payload = {};
  };
  // What is between two processes, in one direction: messages, puts that are `ordered`, and
  // notifications of puts that have moved.
  struct Item {
    Bytes message;
    std::optional<Transfer> put;
    std::size_t given = 0; // bytes of the message that the process has been given
  };
  struct Region {
    std::uint64_t address;
    std::size_t bytes;
  };
  enum class Permit : std::uint8_t { open, used, revoked, discarded };
  struct Link : engine::Link {
    bool connected = false;
    std::deque<std::uint64_t> asked; // permits of ours for the peer
    std::deque<Transfer> transfers;  // begun by us towards the peer, oldest first
    std::deque<Item> inbox;          // from the peer to us
  };

  [[nodiscard]] engine::Transport& transport(int rank) { return *nodes_[index(rank)]; }
  [[nodiscard]] const Link& link(int rank, int peer) const {
    return nodes_[index(rank)]->links[index(peer)];
  }
  // Memory that a key of this process names, if it is still registered.
  [[nodiscard]] const Region* region(int owner, std::uint64_t key) const {
    const auto& regions = nodes_[index(owner)]->regions;
    const auto found = regions.find(key);
    return found == regions.end() ? nullptr : &found->second;
  }
  [[nodiscard]] std::size_t registered() const {
    std::size_t sum = 0;
    for (const auto& node : nodes_)
      sum += node->regions.size();
    return sum;
  }
  // What became of a permit that this process has issued.
  [[nodiscard]] Permit permit(int issuer, std::uint64_t number) const {
    return nodes_[index(issuer)]->permits[number - 1];
  }
  // Permits that are not discarded.
  [[nodiscard]] std::size_t permits() const {
    std::size_t sum = 0;
    for (const auto& node : nodes_)
      sum += node->issued;
    return sum;
  }
  // The process is gone, its engine with it.
  void kill(int rank) {
    end(rank);
    nodes_[index(rank)]->clear();
  }
  // It communicates no more. Its peers may be told.
  [[nodiscard]] bool has_ended(int rank) const { return nodes_[index(rank)]->ended; }
  [[nodiscard]] bool has_told(int rank, int of) const {
    return nodes_[index(rank)]->told[index(of)];
  }
  [[nodiscard]] unsigned refusals_left() const { return refusals_; }
  [[nodiscard]] unsigned scarcity_left() const { return scarcity_; }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

  // Everything that can be delivered to a process now.
  void list_deliveries(int at, std::vector<Delivery>& found) const {
    const Node& node = *nodes_[index(at)];
    if (node.ended) return;
    for (int peer = 0; peer < static_cast<int>(nodes_.size()); ++peer) {
      const Link& link = node.links[index(peer)];
      if (node.connecting[index(peer)]) found.push_back({Delivery::What::connected, at, peer});
      if (!link.inbox.empty() && deliverable(link.inbox.front()))
        found.push_back({Delivery::What::message, at, peer});
      if (!link.transfers.empty() && may_finish(link.transfers.front()) &&
          (!has_ended(peer) || link.transfers.front().moved))
        found.push_back({Delivery::What::finished, at, peer});
      if (!link.asked.empty()) found.push_back({Delivery::What::answered, at, peer});
      if (has_ended(peer) && node.met[index(peer)] && !node.told[index(peer)] &&
          !must_deliver(at, peer))
        found.push_back({Delivery::What::failed, at, peer});
    }
  }
  // An ordered put from `peer` to `at` may land, before or after the process takes the messages
  // that were sent before it; landing needs neither process.
  [[nodiscard]] bool can_land(int at, int peer) const {
    const auto& inbox = link(at, peer).inbox;
    return std::any_of(inbox.begin(), inbox.end(), on_the_way);
  }
  void land(int at, int peer) {
    Link& link = nodes_[index(at)]->links[index(peer)];
    Transfer& put = *std::find_if(link.inbox.begin(), link.inbox.end(), on_the_way)->put;
    move(at, put);
    put.moved = true;
    for (Transfer& begun : nodes_[index(peer)]->links[index(at)].transfers) {
      if (begun.put && begun.cookie == put.cookie) begun.moved = true;
    }
    trim(link);
  }
  // Messages have arrived before a put that has landed, and were not taken: a poll must find them.
  [[nodiscard]] bool must_deliver(int at, int peer) const {
    const auto& inbox = link(at, peer).inbox;
    return std::any_of(inbox.begin(), inbox.end(),
                       [](const Item& item) { return item.put && item.put->moved; });
  }
  // The next poll of `delivery.at` delivers this.
  void allow(const Delivery& delivery) { nodes_[index(delivery.at)]->allowed = delivery; }
  // A call of the process begins. What its first poll could deliver could as well have been
  // delivered before the call, so only its later polls have a choice.
  void begin_call(int rank) { nodes_[index(rank)]->polls = 0; }
  // From now on all goes its plain course.
  void calm() {
    calm_ = true;
    refusals_ = scarcity_ = 0;
  }
  // A message to the process is refused for a reason that a poll of it alone cannot change.
  [[nodiscard]] bool blocked(int rank, int peer) const {
    for (const Transfer& transfer : link(rank, peer).transfers) {
      if (transfer.put && !ordered()) return true;
    }
    return false;
  }

 private:
  class Node final : public engine::Transport {
   public:
    Node(Network& network, int rank, int ranks)
        : links(index(ranks)), connecting(index(ranks)), met(index(ranks)), told(index(ranks)),
          network_(network),
          rank_(rank), limits_{.name = "proof",
                               .message = 4096,
                               .eager = eager_limit,
                               .hybrid = hybrid_limit,
                               .uncopied = network.conditions_.uncopied ? std::size_t{1} : SIZE_MAX,
                               .bundled = network.conditions_.bundles
                                              ? static_cast<std::int32_t>(eager_limit)
                                              : -1,
                               .orders_bytes = network.conditions_.last_byte,
                               .notified_put =
                                   network.conditions_.notifications ? std::size_t{4096} : 0,
                               .copies = network.conditions_.copies} {
      for (int peer = 0; peer < ranks; ++peer)
        links[index(peer)].rank = static_cast<engine::Rank>(peer);
    }

    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() override { clear(); }

    [[nodiscard]] const engine::Limits& limits() const noexcept override { return limits_; }
    engine::Link& connect(engine::Rank peer, engine::PeerState& state) override {
      const InLibrary test(false);
      Link& link = links[peer];
      met[peer] = true;
      if (!link.connected) {
        if (network_.conditions_.late)
          connecting[peer] = true;
        else
          link.connected = true;
      }
      state = link.connected ? engine::PeerState::connected : engine::PeerState::connecting;
      return link;
    }
    engine::Posted send(engine::Link& to, const void* header, std::size_t header_bytes,
                        const void* payload, std::size_t payload_bytes) noexcept override {
      const InLibrary test(false);
      check(to, "a message");
      if (network_.blocked(rank_, static_cast<int>(to.rank)) || network_.refuses())
        return engine::Posted::busy;
      if (network_.has_ended(static_cast<int>(to.rank))) return engine::Posted::done;
      Item item;
      item.message.resize(header_bytes + payload_bytes);
      std::memcpy(item.message.data(), header, header_bytes);
      if (payload_bytes != 0)
        std::memcpy(item.message.data() + header_bytes, payload, payload_bytes);
      network_.nodes_[to.rank]->links[index(rank_)].inbox.push_back(std::move(item));
      return engine::Posted::done;
    }
    // The message is on its way at once; its payload is in use until this process is told.
    engine::Posted send_uncopied(engine::Link& to, const void* header, std::size_t header_bytes,
                                 const void* payload, std::size_t payload_bytes,
                                 std::uint64_t cookie) noexcept override {
      const InLibrary test(false);
      const engine::Posted posted = send(to, header, header_bytes, payload, payload_bytes);
      if (posted != engine::Posted::done || told[to.rank] || network_.at_once()) return posted;
      const auto* const begin = static_cast<const std::byte*>(payload);
      links[to.rank].transfers.push_back({.local = const_cast<void*>(payload),
                                          .bytes = payload_bytes,
                                          .cookie = cookie,
                                          .payload = {begin, begin + payload_bytes}});
      return engine::Posted::pending;
    }
    engine::Posted put(engine::Link& to, const void* local, engine::RemoteMemory target,
                       std::size_t bytes, std::uint64_t cookie) noexcept override {
      return begin(to, {true, const_cast<void*>(local), target, bytes, cookie, 0, false});
    }
    engine::Posted put_notified(engine::Link& to, const void* local, engine::RemoteMemory target,
                                std::size_t bytes, std::uint64_t cookie,
                                std::uint32_t notification) noexcept override {
      const InLibrary test(false);
      if (network_.lacks()) return engine::Posted::unnotified;
      return begin(to,
                   {true, const_cast<void*>(local), target, bytes, cookie, notification, false});
    }
    engine::Posted put_at_once(engine::Link& to, const void* local, engine::RemoteMemory target,
                               std::size_t bytes, std::uint32_t notification) noexcept override {
      const InLibrary test(false);
      check(to, "a transfer");
      const int peer = static_cast<int>(to.rank);
      if (network_.blocked(rank_, peer) || !network_.has_room()) return engine::Posted::busy;
      if (network_.has_ended(peer)) return engine::Posted::done;
      const auto* const begin = static_cast<const std::byte*>(local);
      network_.nodes_[to.rank]->links[index(rank_)].inbox.push_back(
          {{},
           Transfer{.put = true,
                    .remote = target,
                    .bytes = bytes,
                    .notification = notification,
                    .moved = true,
                    .payload = {begin, begin + bytes}}});
      return engine::Posted::done;
    }
    engine::Posted get(engine::Link& from, void* local, engine::RemoteMemory source,
                       std::size_t bytes, std::uint64_t cookie) noexcept override {
      return begin(from, {false, local, source, bytes, cookie, 0, false});
    }
    engine::RemoteMemory register_cached(void* memory, std::size_t bytes) override {
      const InLibrary test(false);
      if (allocated_.count(memory) == 0 && network_.lacks())
        base::fail(MPI_ERR_NO_MEM, "{} bytes cannot be registered", bytes);
      const engine::RemoteMemory named{reinterpret_cast<std::uintptr_t>(memory), ++last_key_};
      regions[named.key] = {named.address, bytes};
      return named;
    }
    void release_cached(engine::RemoteMemory memory) noexcept override {
      const InLibrary test(false);
      if (regions.erase(memory.key) == 0) network_.say("memory is released twice");
    }
    std::uint64_t issue(engine::Link&) noexcept override {
      const InLibrary test(false);
      if (network_.lacks()) return 0;
      permits.push_back(Permit::open);
      ++issued;
      return permits.size();
    }
    bool use(engine::Link& issuer, std::uint64_t number) noexcept override {
      Permit& permit = network_.nodes_[issuer.rank]->permits[number - 1];
      if (permit == Permit::used) network_.say("a permit is used twice");
      if (permit == Permit::discarded) network_.say("a permit is used after its receive has ended");
      if (permit != Permit::open) return false;
      permit = Permit::used;
      return true;
    }
    // The peer may use it until the answer is known, or until now.
    engine::Revoked revoke(engine::Link& peer, std::uint64_t number) noexcept override {
      const InLibrary test(false);
      auto& asked = links[peer.rank].asked;
      Permit& permit = permits[number - 1];
      if (std::find(asked.begin(), asked.end(), number) != asked.end())
        return engine::Revoked::unknown;
      if (permit == Permit::open && !network_.conditions_.copies && !network_.at_once()) {
        asked.push_back(number);
        return engine::Revoked::unknown;
      }
      if (permit == Permit::open) permit = Permit::revoked;
      return permit == Permit::revoked ? engine::Revoked::yes : engine::Revoked::no;
    }
    void discard(engine::Link& peer, std::uint64_t number) noexcept override {
      std::erase(links[peer.rank].asked, number);
      if (permits[number - 1] != Permit::revoked) permits[number - 1] = Permit::discarded;
      --issued;
    }
    void* allocate(std::size_t bytes) override {
      const InLibrary test(false);
      if (network_.lacks()) return nullptr;
      return *allocated_.insert(::operator new(bytes)).first;
    }
    void free(void* memory) noexcept override {
      allocated_.erase(memory);
      ::operator delete(memory);
    }

    void abandon(engine::Sink& sink) noexcept override {
      const InLibrary test(false);
      LibrarySink library(sink);
      for (Link& link : links)
        fail_transfers(library, link);
      network_.end(rank_);
      if (network_.on_abandoned) network_.on_abandoned(rank_);
    }
    bool poll(engine::Sink& sink) noexcept override {
      const InLibrary test(false);
      LibrarySink library(sink);
      const bool moved = deliver_now(library);
      if (network_.on_polled) network_.on_polled(rank_);
      return moved;
    }
    bool idle(unsigned, unsigned) override { return false; }
    void resume() override {}
    [[nodiscard]] double now() const override { return 0; }
    void list_counters(base::CounterList&) const override {}
    [[nodiscard]] std::vector<std::string> fallbacks() const override { return {}; }
    [[nodiscard]] std::size_t memory_bytes() const override { return 0; }

    std::vector<Link> links;
    // Engines that end in the midst of something leave what they had.
    void clear() {
      regions.clear();
      issued = 0;
      for (void* const memory : std::exchange(allocated_, {}))
        ::operator delete(memory);
    }

    std::vector<bool> connecting; // connect() was called, on_peer() is owed
    std::vector<bool> met, told;  // peers: connect() was called; on_peer() has told of their end
    bool ended = false;
    std::map<std::uint64_t, Region> regions;
    std::vector<Permit> permits; // by number
    std::size_t issued = 0;      // of them, not discarded
    std::optional<Delivery> allowed;
    unsigned polls = 0;

   private:
    void check(const engine::Link& to, const char* what) {
      if (!links[to.rank].connected)
        network_.say(std::string(what) + " goes to a link that is not connected");
    }

    engine::Posted begin(engine::Link& with, Transfer transfer) {
      const InLibrary test(false);
      check(with, "a transfer");
      if (told[with.rank]) return engine::Posted::done;
      if (network_.refuses()) return engine::Posted::busy;
      const int peer = static_cast<int>(with.rank);
      Link& link = links[with.rank];
      if (network_.has_ended(peer)) {
        link.transfers.push_back(transfer);
        return engine::Posted::pending;
      }
      network_.check_region(peer, transfer); // it may reach the memory at once
      auto& theirs = network_.nodes_[with.rank]->links[index(rank_)].inbox;
      if (network_.at_once()) {
        network_.move(peer, transfer);
        transfer.moved = true;
        theirs.push_back({{}, transfer}); // what was sent before has arrived before
        trim(network_.nodes_[with.rank]->links[index(rank_)]);
        return engine::Posted::done;
      }
      link.transfers.push_back(transfer);
      if (transfer.put && network_.ordered()) theirs.push_back({{}, transfer});
      return engine::Posted::pending;
    }

    bool deliver_now(engine::Sink& sink) {
      if (allowed) {
        deliver(sink, *std::exchange(allowed, std::nullopt));
        while (network_.conditions_.bursts && deliver_some(sink)) {
        }
        return true;
      }
      bool moved = deliver_what_must(sink);
      if (polls++ == 0) return moved;
      while (deliver_some(sink))
        moved = true;
      return moved;
    }

    bool deliver_what_must(engine::Sink& sink) {
      bool moved = false;
      for (const Link& link : links) {
        const int peer = static_cast<int>(link.rank);
        for (; network_.must_deliver(rank_, peer); moved = true)
          deliver(sink, {Delivery::What::message, rank_, peer});
      }
      return moved;
    }

    bool deliver_some(engine::Sink& sink) {
      if (network_.calm_) return false;
      std::vector<Delivery> possible;
      network_.list_deliveries(rank_, possible);
      if (possible.empty()) return false;
      const unsigned choice = network_.decider_.choose(static_cast<unsigned>(possible.size()) + 1);
      if (choice == 0) return false;
      deliver(sink, possible[choice - 1]);
      return true;
    }

    void deliver(engine::Sink& sink, const Delivery& delivery) {
      Link& link = links[index(delivery.peer)];
      switch (delivery.what) {
      case Delivery::What::connected:
        connecting[index(delivery.peer)] = false;
        link.connected = true;
        return sink.on_peer(link.rank, engine::PeerState::connected);
      case Delivery::What::message:
        return deliver_message(sink, link, delivery.peer);
      case Delivery::What::failed:
        connecting[index(delivery.peer)] = false;
        told[index(delivery.peer)] = true;
        link.inbox.clear();
        for (const std::uint64_t number : std::exchange(link.asked, {})) {
          if (permits[number - 1] == Permit::open) permits[number - 1] = Permit::revoked;
        }
        fail_transfers(sink, link);
        if (network_.on_failed) network_.on_failed(rank_, delivery.peer);
        return sink.on_peer(link.rank, engine::PeerState::failed);
      case Delivery::What::answered: {
        Permit& permit = permits[link.asked.front() - 1];
        link.asked.pop_front();
        if (permit == Permit::open) permit = Permit::revoked;
        return;
      }
      case Delivery::What::finished: {
        Transfer transfer = link.transfers.front();
        link.transfers.pop_front();
        if (!transfer.payload.empty()) {
          network_.check_unchanged(transfer);
        } else if (!transfer.moved) {
          network_.move(delivery.peer, transfer);
          transfer.moved = true;
          if (transfer.notification != 0)
            network_.nodes_[link.rank]->links[index(rank_)].inbox.push_back({{}, transfer});
        }
        return sink.on_complete(transfer.cookie, true);
      }
      }
    }

    static void fail_transfers(engine::Sink& sink, Link& link) {
      while (!link.transfers.empty()) {
        const Transfer transfer = link.transfers.front();
        link.transfers.pop_front();
        sink.on_complete(transfer.cookie, transfer.moved);
      }
    }

    void deliver_message(engine::Sink& sink, Link& link, int peer) {
      if (Item& front = link.inbox.front();
          front.given == 0 && network_.comes_in_fragments(front)) {
        const Bytes& message = front.message;
        const std::size_t header = header_bytes(message);
        front.given = header + (message.size() - header) / 2;
        if (network_.on_message) network_.on_message(rank_, peer, message);
        return sink.on_first_fragment(link.rank, message.data(), front.given,
                                      message.size() - front.given);
      }
      Item item = std::move(link.inbox.front());
      link.inbox.pop_front();
      trim(link);
      if (item.put) {
        if (!item.put->payload.empty()) {
          item.put->local = item.put->payload.data();
          network_.move(rank_, *item.put);
        }
        if (network_.on_notification) network_.on_notification(rank_, peer, *item.put);
        return sink.on_put(link.rank, item.put->notification, item.put->bytes);
      }
      if (item.given != 0)
        return sink.on_next_fragment(link.rank, item.message.data() + item.given,
                                     item.message.size() - item.given);
      if (network_.on_message) network_.on_message(rank_, peer, item.message);
      return sink.on_message(link.rank, item.message.data(), item.message.size());
    }

    Network& network_;
    const int rank_;
    const engine::Limits limits_;
    std::set<void*> allocated_; // is registered
    std::uint64_t last_key_ = 0;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  // Nothing comes to this process any more, nor does what it has not finished.
  void end(int rank) {
    nodes_[index(rank)]->ended = true;
    for (Link& link : nodes_[index(rank)]->links) {
      for (const std::uint64_t number : std::exchange(link.asked, {})) {
        Permit& permit = nodes_[index(rank)]->permits[number - 1];
        if (permit == Permit::open) permit = Permit::revoked;
      }
      link.inbox.clear();
      link.transfers.clear();
      auto& theirs = nodes_[link.rank]->links[index(rank)].inbox;
      theirs.erase(std::find_if(theirs.begin(), theirs.end(), on_the_way), theirs.end());
    }
  }

  // Of an EAGER message; 0 of others.
  static std::size_t header_bytes(const Bytes& message) {
    switch (static_cast<engine::wire::Kind>(message[0])) {
    case engine::wire::Kind::eager:
      return sizeof(engine::wire::Eager);
    case engine::wire::Kind::eager_synchronous:
      return sizeof(engine::wire::EagerSynchronous);
    default:
      return 0;
    }
  }
  [[nodiscard]] bool comes_in_fragments(const Item& item) const {
    if (!conditions_.fragments || item.put) return false;
    const std::size_t header = header_bytes(item.message);
    return header != 0 && item.message.size() > header;
  }

  static bool on_the_way(const Item& item) { return item.put && !item.put->moved; }
  static bool deliverable(const Item& item) {
    return !item.put || (item.put->moved && item.put->notification != 0);
  }
  // Puts that have landed and tell nobody are over.
  static void trim(Link& link) {
    while (!link.inbox.empty() && !deliverable(link.inbox.front()) &&
           !on_the_way(link.inbox.front()))
      link.inbox.pop_front();
  }

  [[nodiscard]] bool ordered() const { return conditions_.transfers == Transfers::ordered; }
  bool may_finish(const Transfer& transfer) const {
    return !transfer.put || !ordered() || transfer.moved;
  }
  bool refuses() {
    if (calm_ || refusals_ == 0 || decider_.choose(2) == 0) return false;
    --refusals_;
    return true;
  }
  // For a put at once.
  bool has_room() { return !calm_ && decider_.choose(2) == 1; }
  // No more memory can be registered now.
  bool lacks() {
    if (calm_ || scarcity_ == 0 || decider_.choose(2) == 0) return false;
    --scarcity_;
    return true;
  }
  bool at_once() {
    switch (conditions_.transfers) {
    case Transfers::at_once:
      return true;
    case Transfers::either:
      return calm_ || decider_.choose(2) == 0;
    case Transfers::blocking:
    case Transfers::ordered:
      return false;
    }
    return true;
  }

  bool check_region(int owner, const Transfer& transfer) {
    const Region* const found = region(owner, transfer.remote.key);
    const std::string name = transfer.put ? "a put" : "a get";
    if (found == nullptr) {
      say(name + " reaches memory that is not registered (any more)");
      return false;
    }
    if (transfer.remote.address < found->address ||
        transfer.remote.address + transfer.bytes > found->address + found->bytes) {
      say(name + " goes beyond the registered memory");
      return false;
    }
    return true;
  }
  void check_unchanged(const Transfer& message) {
    if (std::memcmp(message.local, message.payload.data(), message.bytes) != 0)
      say("the data of a message were changed before they had left");
  }
  void move(int owner, const Transfer& transfer) {
    if (!check_region(owner, transfer)) return;
    void* const remote = reinterpret_cast<void*>(transfer.remote.address);
    std::memcpy(transfer.put ? remote : transfer.local, transfer.put ? transfer.local : remote,
                transfer.bytes);
  }
  void say(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  const Conditions& conditions_;
  Decider& decider_;
  unsigned refusals_, scarcity_;
  bool calm_ = false;
  std::string wrong_;
  std::vector<std::unique_ptr<Node>> nodes_;

 public:
  // Sees each message before the process `at` does.
  std::function<void(int at, int from, const Bytes& message)> on_message;
  // Sees each notification before the process `at` does.
  std::function<void(int at, int from, const Transfer& put)> on_notification;
  // A poll of the process has ended.
  std::function<void(int rank)> on_polled;
  // The process `at` is about to be told of the end of `peer`.
  std::function<void(int at, int peer)> on_failed;
  // The engine of a process has ended all communication.
  std::function<void(int rank)> on_abandoned;
};

} // namespace macadam::prove
