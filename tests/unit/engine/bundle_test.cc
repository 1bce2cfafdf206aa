// SPDX-License-Identifier: BSD-3-Clause
// Short nonblocking messages of a burst: the first go singly, the others are held until the program
// looks, and travel together. Nothing else waits, and nothing waits for long.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Bundles : public OneEngine {
 protected:
  static constexpr unsigned singly = 4;

  Bundles() {
    net.bundles(small);
    start({});
  }

  // Sends `count` messages as fast as that goes; those that are not complete.
  std::vector<SendRequest*> burst(unsigned count, SendMode mode = SendMode::nonblocking) {
    std::vector<SendRequest*> waiting;
    for (unsigned n = 0; n < count; ++n)
      if (SendRequest* const request = send(pattern(small, sent_++), tag, mode))
        waiting.push_back(request);
    return waiting;
  }
  void release(const std::vector<SendRequest*>& requests) {
    for (SendRequest* const request : requests) {
      EXPECT_TRUE(request->complete);
      EXPECT_EQ(request->status.error, MPI_SUCCESS);
      engine->release(request);
    }
  }
  void expect_singly(unsigned count) {
    for (unsigned n = 0; n < count; ++n)
      EXPECT_EQ(expect_eager(), pattern(small, seen_++)) << "message " << seen_ - 1;
  }
  // The messages of the next bundle.
  std::vector<Bytes> expect_bundle() {
    Bytes data;
    expect<wire::Bundle>(wire::Kind::bundle, other, &data);
    std::vector<Bytes> messages;
    for (std::size_t at = 0; at < data.size();) {
      wire::BundledBytes bytes;
      std::memcpy(&bytes, data.data() + at, sizeof bytes);
      at += sizeof bytes;
      EXPECT_LE(bytes, data.size() - at);
      messages.emplace_back(data.begin() + static_cast<std::ptrdiff_t>(at),
                            data.begin() + static_cast<std::ptrdiff_t>(at + bytes));
      at += bytes;
    }
    return messages;
  }
  void expect_bundle_of(unsigned count) {
    const std::vector<Bytes> messages = expect_bundle();
    EXPECT_EQ(messages.size(), count);
    for (const Bytes& message : messages) {
      const Bytes data(message.begin() + sizeof(wire::Eager), message.end());
      EXPECT_EQ(data, pattern(small, seen_++)) << "message " << seen_ - 1;
    }
  }

 private:
  int sent_ = 0;
  int seen_ = 0;
};

TEST_F(Bundles, TravelTogetherBehindTheFirst) {
  const auto waiting = burst(20);
  EXPECT_EQ(waiting.size(), 20 - singly);
  expect_singly(singly);
  expect_nothing();
  engine->progress();
  expect_bundle_of(20 - singly);
  release(waiting);
  EXPECT_TRUE(burst(1).empty()); // one that is alone goes at once, again
  expect_singly(1);
  EXPECT_EQ(engine->counters().bundled, 20 - singly);
  EXPECT_EQ(engine->counters().eager_sent, 21u);
  EXPECT_EQ(engine->counters().backlogged, 0u);
  expect_rest();
}

TEST_F(Bundles, OneIsNone) {
  const auto waiting = burst(singly + 1);
  expect_singly(singly);
  engine->progress();
  expect_singly(1);
  release(waiting);
  expect_rest();
}

// Each look is a new beginning: what comes between two of them is no burst.
TEST_F(Bundles, NothingIsHeldWhereTheProgramLooks) {
  for (unsigned n = 0; n < 100; ++n) {
    EXPECT_TRUE(burst(singly).empty());
    engine->progress();
  }
  expect_singly(100 * singly);
  expect_rest();
}

// The fifth of a program that sends one a second, and never looks, is not held.
TEST_F(Bundles, NothingIsHeldBehindAPause) {
  for (unsigned n = 0; n < 100; ++n) {
    EXPECT_TRUE(burst(1).empty());
    net.clock += 20e-6;
  }
  expect_singly(100);
  expect_rest();
}

TEST_F(Bundles, BlockingSendsAreNoBurst) {
  EXPECT_TRUE(burst(100, SendMode::standard).empty());
  EXPECT_TRUE(burst(100, SendMode::exchange).empty());
  expect_singly(200);
  expect_rest();
}

TEST_F(Bundles, ABlockingSendTakesThemAlong) {
  const auto waiting = burst(10);
  expect_singly(singly);
  EXPECT_TRUE(burst(1, SendMode::standard).empty());
  expect_bundle_of(10 - singly);
  expect_singly(1);
  release(waiting);
  expect_rest();
}

TEST_F(Bundles, ASynchronousSendTakesThemAlong) {
  const auto waiting = burst(10);
  expect_singly(singly);
  SendRequest* const request = send(pattern(small, 50), tag, SendMode::synchronous);
  expect_bundle_of(10 - singly);
  Bytes data;
  const auto header = expect<wire::EagerSynchronous>(wire::Kind::eager_synchronous, other, &data);
  EXPECT_EQ(data, pattern(small, 50));
  feed(fin_to_sender(std::uint64_t{header.send_id_high} << 32 | header.send_id_low));
  release({request});
  release(waiting);
  expect_rest();
}

TEST_F(Bundles, ALongMessageTakesThemAlong) {
  const auto waiting = burst(10);
  expect_singly(singly);
  const Bytes longer = pattern(small + 1, 77);
  EXPECT_EQ(send(longer, tag, SendMode::nonblocking), nullptr);
  expect_bundle_of(10 - singly);
  EXPECT_EQ(expect_eager(), longer);
  const auto more = burst(10);
  expect_singly(singly);
  SendRequest* const large_send = send(pattern(large), tag, SendMode::nonblocking);
  expect_bundle_of(10 - singly);
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  release({large_send});
  release(waiting);
  release(more);
  expect_rest();
}

// What a receive of a message that has come tells its sender does not wait, though no look follows.
TEST_F(Bundles, AnAcknowledgementTakesThemAlong) {
  feed(wire::EagerSynchronous{.eager = {.kind = wire::Kind::eager_synchronous,
                                        .tag = tag,
                                        .source = static_cast<std::int32_t>(other),
                                        .context_low = context,
                                        .context_high = 0},
                              .send_id_low = 9,
                              .send_id_high = 0},
       pattern(small));
  const auto waiting = burst(10);
  expect_singly(singly);
  Bytes buffer(small);
  expect_received(receive(buffer), buffer, pattern(small));
  expect_bundle_of(10 - singly);
  expect_fin_to_sender(9);
  release(waiting);
  progress();
  expect_rest();
}

TEST_F(Bundles, APutTakesThemAlong) {
  feed(announcement(10));
  const auto waiting = burst(10);
  expect_singly(singly);
  const Bytes data = pattern(large, 3);
  EXPECT_EQ(send(data, tag, SendMode::nonblocking), nullptr);
  expect_bundle_of(10 - singly);
  expect_put(data, announcement(10).memory);
  expect_fin_to_receiver(500, large);
  release(waiting);
  expect_rest();
}

TEST_F(Bundles, PeersDoNotWaitForEachOther) {
  const auto waiting = burst(10);
  expect_singly(singly);
  expect_at_once(2, SendMode::nonblocking);
  progress();
  expect_bundle_of(10 - singly);
  release(waiting);
  expect_rest();
}

// A program that only sends makes progress, and fills bundles.
TEST_F(Bundles, LeaveWhenTheyAreFull) {
  bool arrived = false;
  net.incoming.push_back([&](engine::Sink&) { arrived = true; });
  const auto waiting = burst(200);
  EXPECT_TRUE(arrived);
  expect_singly(singly);
  expect_bundle_of(64);
  expect_bundle_of(64);
  expect_bundle_of(64);
  expect_nothing();
  engine->progress();
  expect_bundle_of(200 - singly - 3 * 64);
  release(waiting);
  expect_rest();
}

TEST_F(Bundles, HoldNoMoreBytesThanAMessageTakes) {
  net.bundles(1000);
  start({});
  std::vector<SendRequest*> waiting;
  for (int n = 0; n < 30; ++n)
    if (SendRequest* const request = send(pattern(1000, n), tag, SendMode::nonblocking))
      waiting.push_back(request);
  engine->progress();
  int seen = 0;
  while (!net.done.empty()) {
    if (net.done.front().bytes[0] == static_cast<std::byte>(wire::Kind::eager)) {
      EXPECT_EQ(expect_eager(), pattern(1000, seen++));
      continue;
    }
    for (const Bytes& message : expect_bundle())
      EXPECT_EQ(Bytes(message.begin() + sizeof(wire::Eager), message.end()), pattern(1000, seen++));
  }
  EXPECT_EQ(seen, 30);
  EXPECT_EQ(engine->counters().bundled, 30 - singly);
  release(waiting);
  expect_rest();
}

// A producer that slows down: what it holds is seen to, by its own next sends.
TEST_F(Bundles, LeaveWhenTheProgramSlowsDown) {
  auto waiting = burst(singly + 1);
  unsigned held = 1;
  while (net.done.size() == singly && held < 100) {
    net.clock += 50e-6;
    const auto more = burst(1);
    waiting.insert(waiting.end(), more.begin(), more.end());
    ++held;
  }
  EXPECT_LT(held, 10u);
  expect_singly(singly);
  expect_bundle_of(held - 1);
  expect_singly(1);
  release(waiting);
  expect_rest();
}

// A program that computes behind each burst: one is late, the next ones are not held, and each time
// four times as many are not.
TEST_F(Bundles, AreBarredAfterALongHold) {
  std::vector<unsigned> late;
  for (unsigned round = 0; round < 3000; ++round) {
    const auto waiting = burst(10);
    if (!waiting.empty()) late.push_back(round);
    net.clock += 1e-3;
    engine->progress();
    release(waiting);
  }
  ASSERT_GE(late.size(), 2u);
  EXPECT_LE(late.size(), 6u);
  for (std::size_t n = 2; n < late.size(); ++n)
    EXPECT_GT(late[n] - late[n - 1], 3 * (late[n - 1] - late[n - 2])) << n;
  EXPECT_GT(late[1] - late[0], 5u);
  net.done.clear();
  expect_rest();
}

// A burst that takes longer than a hold may, as each send does: nothing was computed behind it.
TEST_F(Bundles, AreNotBarredInALongBurst) {
  unsigned singles = 0;
  for (unsigned round = 0; round < 50; ++round) {
    std::vector<SendRequest*> waiting;
    for (unsigned n = 0; n < 100; ++n) {
      net.clock += 2e-6;
      const auto more = burst(1);
      singles += more.empty() ? 1 : 0;
      waiting.insert(waiting.end(), more.begin(), more.end());
    }
    engine->progress();
    release(waiting);
  }
  EXPECT_LT(singles, 50u * 20);
  EXPECT_GT(engine->counters().bundled, 50u * 80);
  net.done.clear();
  expect_rest();
}

TEST_F(Bundles, ComeBackWithProgramsThatWait) {
  release([&] {
    auto waiting = burst(10);
    net.clock += 1e-3;
    engine->progress();
    return waiting;
  }());
  EXPECT_EQ(engine->counters().bundled, 10 - singly);
  for (unsigned round = 0; round < 200; ++round) {
    const auto waiting = burst(10);
    engine->progress();
    release(waiting);
  }
  EXPECT_GT(engine->counters().bundled, 400u);
  net.done.clear();
  expect_rest();
}

TEST_F(Bundles, WaitForRoom) {
  const auto waiting = burst(10);
  expect_singly(singly);
  net.busy = true;
  progress();
  const auto behind = burst(1, SendMode::standard);
  EXPECT_EQ(behind.size(), 1u);
  net.busy = false;
  progress();
  expect_bundle_of(10 - singly + 1);
  release(waiting);
  release(behind);
  expect_rest();
}

TEST_F(Bundles, EndWithTheirPeer) {
  const auto waiting = burst(10);
  expect_singly(singly);
  feed_state(other, PeerState::failed);
  for (SendRequest* const request : waiting) {
    EXPECT_TRUE(request->complete);
    EXPECT_EQ(request->status.error, MPI_ERR_PROC_ABORTED);
    engine->release(request);
  }
  expect_rest();
}

// What goes on when a send is done may send to a peer that holds some, whose turn is next.
TEST_F(Bundles, LeaveBeforeWhatAContinuationSends) {
  net.busy = true;
  SendRequest* const first = send(pattern(small));
  net.busy = false;
  const auto to_third = [this](SendMode mode) {
    const Bytes& data = kept.emplace_back(pattern(small, 5));
    return engine->send(engine->peer(2), {context, 0, tag}, describe(data), mode);
  };
  std::vector<SendRequest*> held;
  for (unsigned n = 0; n < singly + 3; ++n)
    if (SendRequest* const request = to_third(SendMode::nonblocking)) held.push_back(request);
  EXPECT_EQ(held.size(), 3u);
  std::function<SendRequest*()> then = [&] { return to_third(SendMode::standard); };
  first->argument = &then;
  first->continuation = [](engine::Request&, void* argument) noexcept {
    EXPECT_EQ((*static_cast<std::function<SendRequest*()>*>(argument))(), nullptr);
  };
  progress();
  held.push_back(first);
  release(held);
  for (unsigned n = 0; n < singly; ++n)
    expect<wire::Eager>(wire::Kind::eager, 2, std::make_unique<Bytes>().get());
  expect_eager();
  Bytes data;
  expect<wire::Bundle>(wire::Kind::bundle, 2, &data);
  expect<wire::Eager>(wire::Kind::eager, 2, &data);
  expect_rest();
}

// Nobody waits for them any more: they leave with the next look all the same, before the end.
TEST_F(Bundles, LeaveThoughTheirRequestsAreFreed) {
  for (SendRequest* const request : burst(10))
    engine->release(request);
  expect_singly(singly);
  EXPECT_FALSE(engine->quiet());
  progress();
  expect_bundle_of(10 - singly);
  expect_rest();
}

TEST_F(Bundles, AreOfferedIfTheReceiverHasNoRoom) {
  const auto waiting = burst(singly + 2);
  expect_singly(singly);
  feed_later(wire::Throttle{.on = true});
  engine->progress();
  for (SendRequest* const request : waiting) {
    const auto offer = expect_offer(wire::Offer::read);
    feed(fin_to_sender(offer.send_id));
    EXPECT_TRUE(request->complete);
  }
  release(waiting);
  expect_rest();
}

TEST_F(Bundles, ArriveInOrder) {
  Bytes message(sizeof(wire::Bundle));
  const wire::Bundle header;
  std::memcpy(message.data(), &header, sizeof header);
  const auto add = [&](int with_tag, const Bytes& data) {
    const wire::Eager eager = eager_header(with_tag);
    const auto bytes = static_cast<wire::BundledBytes>(sizeof eager + data.size());
    const auto append = [&](const void* from, std::size_t size) {
      const auto* const first = static_cast<const std::byte*>(from);
      message.insert(message.end(), first, first + size);
    };
    append(&bytes, sizeof bytes);
    append(&eager, sizeof eager);
    append(data.data(), data.size());
  };
  Bytes first(small), second(small), third(small);
  ReceiveRequest& posted = receive(first);
  add(tag, pattern(small, 1));
  add(tag + 1, Bytes{});
  add(tag, pattern(small, 2)); // unexpected
  net.incoming.push_back(
      [&](engine::Sink& sink) { sink.on_message(other, message.data(), message.size()); });
  progress();
  expect_received(posted, first, pattern(small, 1));
  expect_received(receive(second), second, pattern(small, 2));
  expect_received(receive(third, other, tag + 1), third, {});
  expect_rest();
}

TEST_F(Bundles, ThatAreBrokenEndCommunication) {
  Bytes message(sizeof(wire::Bundle) + 40);
  const wire::Bundle header;
  std::memcpy(message.data(), &header, sizeof header);
  const wire::BundledBytes bytes = 39; // one too many
  std::memcpy(message.data() + sizeof header, &bytes, sizeof bytes);
  net.incoming.push_back(
      [&](engine::Sink& sink) { sink.on_message(other, message.data(), message.size()); });
  engine->progress();
  EXPECT_NE(engine->failure(), nullptr);
}

} // namespace
} // namespace macadam::test
