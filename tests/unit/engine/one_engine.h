// SPDX-License-Identifier: BSD-3-Clause
// Header in, header out: one engine (rank 0) on a network that records what the engine hands to it
// and delivers what the test feeds.
#pragma once

#include "datatype/constructors.h"
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace macadam::test {

using engine::Envelope;
using engine::PeerState;
using engine::Posted;
using engine::Rank;
using engine::ReceiveRequest;
using engine::RemoteMemory;
using engine::SendMode;
using engine::SendRequest;
using Bytes = std::vector<std::byte>;
namespace wire = engine::wire;

// `bytes` bytes that differ from each other and from those of another seed.
inline Bytes pattern(std::size_t bytes, int seed = 1) {
  Bytes data(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    data[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<std::size_t>(seed) * 17);
  return data;
}

// Something that the engine handed to the network.
struct Operation {
  enum class Type { message, put, get } type;
  Rank peer;
  Bytes bytes;         // of a message or a put
  void* local;         // of a get
  RemoteMemory remote; // of a put or get
  std::size_t size;
  std::uint64_t cookie;
};

class RecordingTransport final : public engine::Transport {
 public:
  static constexpr std::size_t eager = 1024, hybrid = 4096;

  // What the network answers.
  PeerState new_links = PeerState::connected;
  Posted puts = Posted::done;
  Posted gets = Posted::done;
  bool busy = false;                             // for everything
  int room = -1;                                 // operations until it is busy; -1: no end
  bool unreachable = false;                      // every new peer
  bool no_memory = false;                        // allocate() has none left
  bool unregistered = false;                     // nothing can be registered
  std::set<std::uint64_t> permits;               // issued and not discarded
  std::vector<std::uint64_t> revoked;            // asked for, in order
  engine::Revoked answer = engine::Revoked::yes; // ... the network's
  bool peer_revoked = false;                     // the peer's permits
  bool peer_waits = false;
  double clock = 0;      // seconds
  std::string unreached; // what it knows of peers that have failed

  std::deque<Operation> done;
  std::map<std::uint64_t, std::size_t> registered; // bytes by key
  std::size_t allocated = 0;                       // blocks
  // What poll() delivers: one entry in each poll.
  std::deque<std::function<void(engine::Sink&)>> incoming;

  // Before the first message: takes HYBRID up to more bytes.
  void raise_hybrid(std::size_t bytes) { limits_.hybrid = bytes; }
  void copies() { limits_.copies = true; }
  // Before the first message: messages of a burst travel together.
  void bundles(std::int32_t bytes) { limits_.bundled = bytes; }

  const engine::Limits& limits() const noexcept override { return limits_; }
  engine::Link& connect(Rank peer, PeerState& state) override {
    if (unreachable) base::fail(MPI_ERR_OTHER, "rank {} cannot be reached", peer);
    auto& link = links_[peer];
    link.rank = peer;
    state = new_links;
    return link;
  }
  std::string why_failed(const engine::Link&) const override { return unreached; }
  Posted send(engine::Link& link, const void* header, std::size_t header_bytes, const void* payload,
              std::size_t payload_bytes) noexcept override {
    if (refuses()) return Posted::busy;
    Bytes message(header_bytes + payload_bytes);
    std::memcpy(message.data(), header, header_bytes);
    if (payload_bytes != 0) std::memcpy(message.data() + header_bytes, payload, payload_bytes);
    EXPECT_LE(message.size(), limits_.message);
    done.push_back({Operation::Type::message, link.rank, message, nullptr, {}, message.size(), 0});
    return Posted::done;
  }
  Posted put(engine::Link& link, const void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override {
    if (refuses() || puts == Posted::busy) return Posted::busy;
    const auto* data = static_cast<const std::byte*>(local);
    done.push_back(
        {Operation::Type::put, link.rank, {data, data + bytes}, nullptr, target, bytes, cookie});
    return puts;
  }
  // The address of the memory that a test names is real: its bytes are read when the get is done.
  Posted get(engine::Link& link, void* local, RemoteMemory target, std::size_t bytes,
             std::uint64_t cookie) noexcept override {
    if (refuses() || gets == Posted::busy) return Posted::busy;
    done.push_back({Operation::Type::get, link.rank, {}, local, target, bytes, cookie});
    if (gets == Posted::done) fetch(done.back());
    return gets;
  }
  static void fetch(const Operation& get) {
    std::memcpy(get.local, reinterpret_cast<const void*>(get.remote.address), get.size);
  }
  RemoteMemory register_cached(void* memory, std::size_t bytes) override {
    if (unregistered) base::fail(MPI_ERR_NO_MEM, "{} bytes cannot be registered", bytes);
    registered[++keys_] = bytes;
    return {reinterpret_cast<std::uintptr_t>(memory), keys_};
  }
  void release_cached(RemoteMemory memory) noexcept override {
    EXPECT_EQ(registered.erase(memory.key), 1u) << "memory released twice, or never registered";
  }
  std::uint64_t issue(engine::Link&) noexcept override {
    permits.insert(++last_permit_);
    return last_permit_;
  }
  bool use(engine::Link&, std::uint64_t) noexcept override { return !peer_revoked; }
  engine::Revoked revoke(engine::Link&, std::uint64_t permit) noexcept override {
    revoked.push_back(permit);
    return answer;
  }
  void discard(engine::Link&, std::uint64_t permit) noexcept override {
    EXPECT_EQ(permits.erase(permit), 1u) << "a permit discarded twice, or never issued";
  }
  void* allocate(std::size_t bytes) override {
    if (no_memory) return nullptr;
    ++allocated;
    return ::operator new(bytes);
  }
  void free(void* memory) noexcept override {
    --allocated;
    ::operator delete(memory);
  }
  bool poll(engine::Sink& sink) noexcept override {
    if (incoming.empty()) return false;
    const auto deliver = std::move(incoming.front());
    incoming.pop_front();
    deliver(sink);
    return true;
  }
  bool waits(engine::Link&) const noexcept override { return peer_waits; }
  bool idle(unsigned, unsigned) override { return false; }
  void resume() override {}
  double now() const override { return clock; }
  void list_counters(base::CounterList&) const override {}
  std::vector<std::string> fallbacks() const override { return {}; }
  std::size_t memory_bytes() const override { return 0; }

 private:
  bool refuses() {
    if (busy || room == 0) return true;
    if (room > 0) --room;
    return false;
  }

  engine::Limits limits_{.name = "recording", .message = 8192, .eager = eager, .hybrid = hybrid};
  std::map<Rank, engine::Link> links_;
  std::uint64_t keys_ = 0;
  std::uint64_t last_permit_ = 0;
};

class OneEngine : public testing::Test {
 protected:
  static constexpr std::size_t small = 100, medium = 3000, large = 9000;
  static constexpr std::uint64_t context = 4;
  static constexpr Rank other = 1; // the peer of most tests
  static constexpr int tag = 7;

  OneEngine() { start({}); }
  ~OneEngine() override {
    if (HasFailure()) return; // what is left over says nothing then
    EXPECT_TRUE(net.done.empty()) << "the test did not look at everything the engine sent";
  }

  void start(const base::Settings& wanted) {
    engine.reset();
    settings = wanted;
    engine = std::make_unique<engine::Engine>(net, Rank{4}, settings);
  }

  // The user's calls. Buffers belong to the tests.
  SendRequest* send(const Bytes& data, int with_tag = tag, SendMode mode = SendMode::standard) {
    return engine->send(engine->peer(other), {context, 0, with_tag}, describe(data), mode);
  }
  // Data that nobody else keeps live as long as the test.
  SendRequest* send(Bytes&& data, int with_tag = tag, SendMode mode = SendMode::standard) {
    return send(std::as_const(kept.emplace_back(std::move(data))), with_tag, mode);
  }
  ReceiveRequest& receive(Bytes& data, int source = other, int with_tag = tag) {
    engine::Peer* peer =
        source == MPI_ANY_SOURCE ? nullptr : &engine->peer(static_cast<Rank>(source));
    return *engine->receive(peer, {context, source, with_tag}, describe(data));
  }
  engine::Data describe(const Bytes& data) {
    return {const_cast<std::byte*>(data.data()), static_cast<MPI_Count>(data.size()),
            &types[MPI_BYTE]};
  }
  void progress() {
    while (engine->progress()) {
    }
  }

  // Feeding: delivered by the next poll.
  template <class Header>
  void feed_later(const Header& header, const Bytes& payload = {}, Rank from = other) {
    const auto* first = reinterpret_cast<const std::byte*>(&header);
    Bytes message(first, first + sizeof header);
    message.insert(message.end(), payload.begin(), payload.end());
    net.incoming.push_back([message, from](engine::Sink& sink) {
      sink.on_message(from, message.data(), message.size());
    });
  }
  template <class Header>
  void feed(const Header& header, const Bytes& payload = {}, Rank from = other) {
    feed_later(header, payload, from);
    progress();
  }
  void feed_eager(const Bytes& data, int with_tag = tag, Rank from = other) {
    feed(eager_header(with_tag, from), data, from);
  }
  static wire::Eager eager_header(int with_tag = tag, Rank from = other) {
    return {.tag = with_tag,
            .source = static_cast<std::int32_t>(from),
            .context_low = context,
            .context_high = 0};
  }
  // A message of the peer that is too long for EAGER.
  static wire::SenderReady offer_of(const Bytes& data, wire::Offer how, std::uint64_t send_id = 77,
                                    bool counted = true) {
    return {.offer = how,
            .counted = counted,
            .source = static_cast<std::int32_t>(other),
            .tag = tag,
            .context = context,
            .bytes = data.size(),
            .send_id = send_id,
            .memory = {reinterpret_cast<std::uintptr_t>(data.data()), 5}};
  }
  static wire::ReceiverReady announcement(std::uint64_t ordinal, std::uint64_t receive_id = 500,
                                          std::uint64_t capacity = large, int with_tag = tag) {
    return {.tag = with_tag,
            .context = context,
            .ordinal = ordinal,
            .receive_id = receive_id,
            .permit = receive_id,
            .capacity = capacity,
            .memory = {0x1000 + receive_id, receive_id}};
  }
  static wire::Fin fin_to_receiver(std::uint64_t id, std::uint64_t bytes) {
    return {.kind = wire::Kind::fin_to_receiver,
            .source = static_cast<std::int32_t>(other),
            .id = id,
            .bytes = bytes};
  }
  static wire::Fin fin_to_sender(std::uint64_t id) {
    return {.kind = wire::Kind::fin_to_sender, .id = id};
  }
  void feed_completion(std::uint64_t cookie, bool ok = true) {
    net.incoming.push_back([=](engine::Sink& sink) { sink.on_complete(cookie, ok); });
    progress();
  }
  void feed_state(Rank peer, PeerState state) {
    net.incoming.push_back([=](engine::Sink& sink) { sink.on_peer(peer, state); });
    progress();
  }

  // Looking at what the engine sent, in order.
  Operation next() {
    if (net.done.empty()) {
      ADD_FAILURE() << "the engine sent nothing more";
      return {Operation::Type::message, other, Bytes(64), nullptr, {}, 0, 0};
    }
    Operation first = std::move(net.done.front());
    net.done.pop_front();
    return first;
  }
  // The next operation must be a message of this kind to `to`.
  template <class Header>
  Header expect(wire::Kind kind, Rank to = other, Bytes* payload = nullptr) {
    Header header;
    const Operation operation = next();
    EXPECT_EQ(operation.type, Operation::Type::message);
    EXPECT_EQ(operation.peer, to);
    if (operation.bytes.empty() || operation.bytes[0] != static_cast<std::byte>(kind)) {
      ADD_FAILURE() << "expected a packet of kind " << static_cast<int>(kind) << ", found "
                    << (operation.bytes.empty() ? -1 : static_cast<int>(operation.bytes[0]));
      return header;
    }
    EXPECT_GE(operation.bytes.size(), sizeof header);
    std::memcpy(&header, operation.bytes.data(), sizeof header);
    if (payload != nullptr)
      payload->assign(operation.bytes.begin() + sizeof header, operation.bytes.end());
    else
      EXPECT_EQ(operation.bytes.size(), sizeof header);
    return header;
  }
  Bytes expect_eager(int with_tag = tag) {
    Bytes payload;
    const auto header = expect<wire::Eager>(wire::Kind::eager, other, &payload);
    EXPECT_EQ(header.tag, with_tag);
    EXPECT_EQ(header.source, 0);
    EXPECT_EQ(header.context_low, context);
    return payload;
  }
  // A message to another rank, which finds no reason to wait.
  void expect_at_once(Rank to, SendMode mode) {
    const Bytes& data = kept.emplace_back(pattern(small, 2));
    EXPECT_EQ(engine->send(engine->peer(to), {context, 0, tag}, describe(data), mode), nullptr);
    Bytes payload;
    expect<wire::Eager>(wire::Kind::eager, to, &payload);
    EXPECT_EQ(payload, data);
  }
  wire::SenderReady expect_offer(wire::Offer how) {
    const auto ready = expect<wire::SenderReady>(wire::Kind::sender_ready);
    EXPECT_EQ(ready.offer, how);
    EXPECT_EQ(ready.tag, tag);
    EXPECT_EQ(ready.source, 0);
    EXPECT_EQ(ready.context, context);
    EXPECT_NE(ready.send_id, 0u);
    return ready;
  }
  wire::ReceiverReady expect_announcement(std::uint64_t ordinal, const Bytes& buffer) {
    const auto ready = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
    EXPECT_FALSE(ready.answers);
    EXPECT_EQ(net.permits.count(ready.permit), 1u);
    EXPECT_EQ(ready.ordinal, ordinal);
    EXPECT_EQ(ready.context, context);
    EXPECT_EQ(ready.capacity, buffer.size());
    EXPECT_EQ(ready.memory.address, reinterpret_cast<std::uintptr_t>(buffer.data()));
    EXPECT_EQ(net.registered.count(ready.memory.key), 1u);
    return ready;
  }
  Operation expect_put(const Bytes& data, RemoteMemory to) {
    Operation operation = next();
    EXPECT_EQ(operation.type, Operation::Type::put);
    EXPECT_EQ(operation.bytes, data);
    EXPECT_EQ(operation.remote.address, to.address);
    EXPECT_EQ(operation.remote.key, to.key);
    return operation;
  }
  Operation expect_get(RemoteMemory from, std::size_t bytes) {
    Operation operation = next();
    EXPECT_EQ(operation.type, Operation::Type::get);
    EXPECT_EQ(operation.remote.address, from.address);
    EXPECT_EQ(operation.size, bytes);
    return operation;
  }
  wire::Fin expect_fin_to_receiver(std::uint64_t id, std::uint64_t bytes) {
    const auto fin = expect<wire::Fin>(wire::Kind::fin_to_receiver);
    EXPECT_EQ(fin.id, id);
    EXPECT_EQ(fin.bytes, bytes);
    return fin;
  }
  void expect_fin_to_sender(std::uint64_t id) {
    EXPECT_EQ(expect<wire::Fin>(wire::Kind::fin_to_sender).id, id);
  }
  void expect_nothing() {
    EXPECT_TRUE(net.done.empty()) << net.done.size() << " operations too many";
    net.done.clear();
  }
  void expect_received(ReceiveRequest& request, const Bytes& buffer, const Bytes& sent) {
    ASSERT_TRUE(request.complete);
    EXPECT_EQ(request.status.error, MPI_SUCCESS);
    EXPECT_FALSE(request.status.cancelled);
    EXPECT_EQ(request.status.source, static_cast<int>(other));
    EXPECT_EQ(request.status.bytes, sent.size());
    EXPECT_EQ(Bytes(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(sent.size())),
              sent);
    engine->release(&request);
  }
  // Nothing registered, nothing allocated, nothing in flight.
  void expect_rest() {
    EXPECT_TRUE(engine->quiet());
    EXPECT_TRUE(net.registered.empty());
    EXPECT_TRUE(net.permits.empty());
    EXPECT_EQ(net.allocated, 0u);
    expect_nothing();
  }

  RecordingTransport net;
  base::Settings settings;
  datatype::PredefinedTypes types;
  std::deque<Bytes> kept;
  std::unique_ptr<engine::Engine> engine;
};

} // namespace macadam::test
