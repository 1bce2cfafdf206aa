// SPDX-License-Identifier: BSD-3-Clause
// What the network cannot take at once waits in the engine, in order; and what the receiver cannot
// hold is not sent.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Backlog : public OneEngine {
 protected:
  // Progress with room for one operation at a time shows that order does not depend on luck.
  void drip() {
    for (int i = 0; i < 50; ++i) {
      net.room = 1;
      progress();
    }
    net.room = -1;
  }
};

TEST_F(Backlog, KeepsTheOrderOfEverything) {
  feed(announcement(2)); // for the third message
  net.busy = true;
  const Bytes eager1 = pattern(small, 1), hybrid = pattern(medium, 2), written = pattern(large, 3),
              offered = pattern(large, 4), eager2 = pattern(small, 5);
  SendRequest* requests[] = {send(eager1), send(hybrid), send(written), send(offered),
                             send(eager2)};
  expect_nothing();
  EXPECT_EQ(requests[1], nullptr); // HYBRID is done for the user: it has been copied
  for (const int i : {0, 2, 3, 4}) {
    ASSERT_NE(requests[i], nullptr) << i;
    EXPECT_FALSE(requests[i]->complete) << i;
  }
  net.busy = false;
  drip();
  EXPECT_EQ(expect_eager(), eager1);
  const auto hybrid_offer = expect_offer(wire::Offer::hybrid);
  expect_put(written, announcement(2).memory);
  expect_fin_to_receiver(500, large);
  const auto offer = expect_offer(wire::Offer::read);
  EXPECT_EQ(expect_eager(), eager2);
  expect_nothing();
  feed(fin_to_sender(hybrid_offer.send_id));
  feed(fin_to_sender(offer.send_id));
  for (SendRequest* request : requests) {
    if (request == nullptr) continue;
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }
  expect_rest();
}

TEST_F(Backlog, ShortMessagesDoNotOvertake) {
  net.busy = true;
  SendRequest* waiting = send(pattern(small, 1));
  net.busy = false; // room again, but the first one still waits
  EXPECT_EQ(send(pattern(small, 2)), nullptr);
  EXPECT_EQ(expect_eager(), pattern(small, 1));
  EXPECT_EQ(expect_eager(), pattern(small, 2));
  EXPECT_EQ(send(pattern(small, 3)), nullptr); // the short path is open again
  EXPECT_EQ(expect_eager(), pattern(small, 3));
  EXPECT_TRUE(waiting->complete);
  engine->release(waiting);
  expect_rest();
}

TEST_F(Backlog, PeersDoNotWaitForEachOther) {
  net.busy = true;
  SendRequest* waiting = send(pattern(small));
  net.busy = false;
  expect_at_once(2, SendMode::standard);
  progress();
  expect_eager();
  EXPECT_TRUE(waiting->complete);
  engine->release(waiting);
  expect_rest();
}

TEST_F(Backlog, FinStaysBehindItsPut) {
  feed(announcement(0));
  net.room = 0;
  net.puts = Posted::pending;
  const Bytes data = pattern(large);
  SendRequest* request = send(data);
  net.room = 1;
  progress();
  const Operation put = expect_put(data, announcement(0).memory);
  expect_nothing();
  net.room = -1;
  progress();
  expect_fin_to_receiver(500, large);
  EXPECT_FALSE(request->complete);
  feed_completion(put.cookie);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Backlog, GetThatFindsNoRoomComesLater) {
  const Bytes data = pattern(large);
  Bytes buffer(large);
  net.gets = Posted::busy;
  feed(offer_of(data, wire::Offer::read));
  auto& request = receive(buffer);
  expect_nothing();
  net.gets = Posted::pending;
  progress();
  const Operation get = expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  net.fetch(get);
  net.busy = true;
  feed_completion(get.cookie);
  expect_received(request, buffer, data);
  EXPECT_FALSE(engine->quiet()); // the sender does not know yet
  net.busy = false;
  progress();
  expect_fin_to_sender(77);
  expect_rest();
}

TEST_F(Backlog, WaitsForTheConnection) {
  net.new_links = PeerState::connecting;
  const Bytes first = pattern(small), second = pattern(medium);
  SendRequest* request = send(first);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(send(second), nullptr);
  Bytes buffer(large);
  auto& announced = receive(buffer);
  progress();
  expect_nothing();
  feed_state(other, PeerState::connected);
  EXPECT_EQ(expect_eager(), first);
  const auto offer = expect_offer(wire::Offer::hybrid);
  const auto ready = expect_announcement(0, buffer);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  EXPECT_EQ(send(first), nullptr);
  EXPECT_EQ(expect_eager(), first);
  feed(fin_to_sender(offer.send_id));
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(announced.complete);
  engine->release(&announced);
  expect_rest();
}

TEST_F(Backlog, SynchronousEagerStaysIncompleteAfterItHasLeft) {
  net.busy = true;
  SendRequest* request = send(pattern(small), tag, SendMode::synchronous);
  net.busy = false;
  progress();
  const auto header = expect<wire::EagerSynchronous>(wire::Kind::eager_synchronous, other,
                                                     std::make_unique<Bytes>().get());
  EXPECT_FALSE(request->complete);
  feed(fin_to_sender(std::uint64_t{header.send_id_high} << 32 | header.send_id_low));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

// Unexpected eager data are bounded in the receiver.
class Throttling : public OneEngine {
 protected:
  Throttling() {
    base::Settings wanted;
    wanted.unexpected_limit = 10 * (100 + sizeof(engine::Message));
    start(wanted);
  }
  void expect_throttle(bool on) { EXPECT_EQ(expect<wire::Throttle>(wire::Kind::throttle).on, on); }
};

TEST_F(Throttling, IsAskedForPastTheBoundAndTakenBack) {
  for (int i = 0; i < 10; ++i)
    feed_eager(pattern(100, i));
  expect_nothing();
  feed_eager(pattern(100, 10));
  expect_throttle(true);
  feed_eager(pattern(100, 11)); // was under way
  expect_nothing();             // asked once
  Bytes buffer(100);
  for (int i = 0; i < 7; ++i)
    expect_received(receive(buffer), buffer, pattern(100, i));
  expect_nothing();
  expect_received(receive(buffer), buffer, pattern(100, 7));
  expect_throttle(false); // less than half
  for (int i = 8; i < 12; ++i)
    expect_received(receive(buffer), buffer, pattern(100, i));
  expect_rest();
}

TEST_F(Throttling, ComesBackWhenItIsNeededAgain) {
  Bytes buffer(600);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 4; ++i)
      feed_eager(pattern(600, i));
    expect_throttle(true);
    for (int i = 0; i < 4; ++i)
      expect_received(receive(buffer), buffer, pattern(600, i));
    expect_throttle(false);
  }
  expect_rest();
}

// Within the time of a test; not if each message looked for peers that are throttled, as some once
// were.
TEST_F(Throttling, CostsNothingWhenItIsOver) {
  engine->know(Rank{1} << 27);
  Bytes buffer(600);
  for (int i = 0; i < 4; ++i)
    feed_eager(pattern(600, i));
  expect_throttle(true);
  for (int i = 0; i < 4; ++i)
    expect_received(receive(buffer), buffer, pattern(600, i));
  expect_throttle(false);
  const Bytes data = pattern(small);
  for (int i = 0; i < 100'000; ++i) {
    feed_eager(data);
    engine->release(&receive(buffer));
  }
  expect_rest();
}

TEST_F(Throttling, MakesTheSenderOfferInsteadOfSend) {
  feed(wire::Throttle{.on = true});
  const Bytes data = pattern(small);
  EXPECT_EQ(send(data), nullptr);
  const auto offer = expect_offer(wire::Offer::hybrid); // without data
  EXPECT_EQ(offer.bytes, data.size());
  feed(wire::Throttle{.on = false});
  EXPECT_EQ(send(data), nullptr);
  EXPECT_EQ(expect_eager(), data);
  feed(fin_to_sender(offer.send_id));
  expect_rest();
}

// Messages that waited for room when the receiver asked: each keeps its place.
TEST_F(Throttling, ReachesMessagesThatWait) {
  net.busy = true;
  SendRequest* first = send(pattern(small, 1));
  SendRequest* empty = send(Bytes{});
  SendRequest* second = send(pattern(small, 2), tag, SendMode::synchronous);
  feed(announcement(0)); // comes too late for an eager message: dropped
  feed(wire::Throttle{.on = true});
  net.busy = false;
  progress();
  const auto first_offer = expect_offer(wire::Offer::read);
  EXPECT_FALSE(first_offer.counted); // so that the receiver does not rely on the announcement
  EXPECT_EQ(expect_eager(), Bytes{});
  const auto second_offer = expect_offer(wire::Offer::read);
  EXPECT_TRUE(empty->complete);
  EXPECT_FALSE(first->complete);
  feed(fin_to_sender(first_offer.send_id));
  feed(fin_to_sender(second_offer.send_id));
  for (SendRequest* request : {first, empty, second}) {
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }
  expect_rest();
}

TEST_F(Throttling, LetsMessagesWithoutDataThrough) {
  feed(wire::Throttle{.on = true});
  EXPECT_EQ(send({}), nullptr);
  expect_eager(); // there is nothing that the receiver would have to hold
  expect_rest();
}

TEST_F(Throttling, ReceiverReadsSmallOffersToo) {
  const Bytes data = pattern(small);
  feed(offer_of(data, wire::Offer::hybrid));
  Bytes buffer(small);
  auto& request = receive(buffer);
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, small);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

} // namespace
} // namespace macadam::test
