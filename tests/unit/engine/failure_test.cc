// SPDX-License-Identifier: BSD-3-Clause
// A peer is gone: everything that waits for it ends with MPI_ERR_PROC_ABORTED instead of hanging,
// memory goes back, others are not disturbed. And packets that make no sense are refused.
#include "base/error.h"
#include "one_engine.h"

namespace macadam::test {
namespace {

class Failure : public OneEngine {
 protected:
  void fail_peer() { feed_state(other, PeerState::failed); }
  template <class Request>
  void expect_aborted(Request* request) {
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->status.error, MPI_ERR_PROC_ABORTED);
    engine->release(request);
  }
};

TEST_F(Failure, EndsSendsInEveryStage) {
  feed(announcement(0));
  net.puts = Posted::pending;
  const Bytes data = pattern(large);
  SendRequest* writing = send(data);
  expect_put(data, announcement(0).memory);
  expect_fin_to_receiver(500, large);
  SendRequest* offered = send(data);
  expect_offer(wire::Offer::read);
  SendRequest* synchronous = send(pattern(small), tag, SendMode::synchronous);
  next();
  EXPECT_EQ(send(pattern(medium)), nullptr); // HYBRID: complete for the user
  expect_offer(wire::Offer::hybrid);
  net.busy = true;
  SendRequest* backlogged = send(pattern(small));
  fail_peer();
  for (SendRequest* request : {writing, offered, synchronous, backlogged})
    expect_aborted(request);
  expect_rest();
}

TEST_F(Failure, EndsReceivesInEveryStage) {
  Bytes buffers[5] = {Bytes(large), Bytes(small), Bytes(large), Bytes(large), Bytes(large)};
  const Bytes data = pattern(large);
  net.gets = Posted::pending;
  feed(offer_of(data, wire::Offer::read));
  auto& reading = receive(buffers[0]);
  const Operation get = expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  auto& posted = receive(buffers[1]);
  auto& announced = receive(buffers[2]);
  expect_announcement(2, buffers[2]);
  net.answer = engine::Revoked::unknown;
  engine->cancel(announced);
  auto& held = receive(buffers[3]);
  auto& wild = receive(buffers[4], MPI_ANY_SOURCE);
  fail_peer();
  for (ReceiveRequest* request : {&reading, &posted, &announced, &held})
    expect_aborted(request);
  feed_completion(get.cookie, false); // the transport reports it as well
  EXPECT_FALSE(wild.complete);        // others may still send
  feed_eager(pattern(small), tag, 2);
  EXPECT_TRUE(wild.complete);
  engine->release(&wild);
  expect_rest();
}

// Held behind a wildcard: must leave that list too.
TEST_F(Failure, EndsHeldReceives) {
  Bytes first(large), second(large);
  auto& wild = receive(first, MPI_ANY_SOURCE);
  auto& held = receive(second);
  fail_peer();
  expect_aborted(&held);
  feed_eager(pattern(small), tag, 2); // resolves the wildcard, looks at those held
  EXPECT_TRUE(wild.complete);
  engine->release(&wild);
  expect_rest();
}

TEST_F(Failure, NewOperationsAreRefused) {
  engine->peer(other);
  fail_peer();
  for (const std::size_t bytes : {std::size_t{0}, small, medium, large}) {
    try {
      send(pattern(bytes));
      FAIL() << "a send of " << bytes << " bytes to a failed peer";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_PROC_ABORTED);
      EXPECT_NE(error.text.find("rank 1"), std::string::npos) << error.text;
    }
  }
  Bytes buffer(large);
  expect_aborted(&receive(buffer));
  expect_rest();
}

// In the network's words, if it has any; the operations say whose failure they met.
TEST_F(Failure, IsToldWithItsReason) {
  EXPECT_FALSE(engine->any_failed());
  SendRequest* const request = send(pattern(large));
  expect_offer(wire::Offer::read);
  Bytes buffer(small);
  auto& posted = receive(buffer);
  auto& wild = receive(buffer, MPI_ANY_SOURCE);
  fail_peer();
  EXPECT_TRUE(engine->any_failed());
  EXPECT_EQ(engine::Engine::peer_of(wild), nullptr);
  for (const engine::Request* failed :
       {static_cast<engine::Request*>(request), static_cast<engine::Request*>(&posted)}) {
    const engine::Peer* const peer = engine::Engine::peer_of(*failed);
    ASSERT_NE(peer, nullptr);
    EXPECT_EQ(peer->rank, other);
    net.unreached.clear();
    EXPECT_EQ(engine::Engine::why_failed(peer), "the other process has ended");
    net.unreached = "rank 1 on host b cannot be reached: no route";
    EXPECT_EQ(engine::Engine::why_failed(peer), net.unreached);
  }
  try {
    send(pattern(small));
    FAIL() << "a send to a failed peer";
  } catch (const base::Error& error) {
    EXPECT_NE(error.text.find(net.unreached), std::string::npos) << error.text;
  }
  expect_aborted(request);
  expect_aborted(&posted);
  engine->cancel(wild);
  engine->release(&wild);
  expect_rest();
}

TEST_F(Failure, MessagesThatHadArrivedAreStillReceived) {
  feed_eager(pattern(small));
  fail_peer();
  Bytes buffer(small);
  expect_received(receive(buffer), buffer, pattern(small));
  expect_rest();
}

TEST_F(Failure, OffersOfAFailedPeerEndTheReceive) {
  const Bytes data = pattern(large);
  for (const auto how : {wire::Offer::hybrid, wire::Offer::read, wire::Offer::write}) {
    start({});
    feed(offer_of(data, how));
    fail_peer();
    Bytes buffer(large);
    expect_aborted(&receive(buffer));
    expect_rest();
  }
}

TEST_F(Failure, DuringTheCopyOfAHybridSend) {
  engine->peer(other);
  feed_later(eager_header(tag + 1), pattern(8));
  net.incoming.push_back([](engine::Sink& sink) { sink.on_peer(other, PeerState::failed); });
  EXPECT_THROW(send(pattern(medium)), base::Error);
  expect_rest();
}

TEST_F(Failure, OfAGetIsAnErrorOfTheReceive) {
  const Bytes data = pattern(large);
  net.gets = Posted::pending;
  feed(offer_of(data, wire::Offer::read));
  Bytes buffer(large);
  auto& request = receive(buffer);
  const Operation get = expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  feed_completion(get.cookie, false);
  expect_aborted(&request);
  expect_fin_to_sender(77);
  expect_rest();
}

// Who sends what nobody knows is of another version: this process goes on with nobody.
TEST_F(Failure, UnknownPacketEndsAllCommunication) {
  const Bytes data = pattern(large);
  SendRequest* const sent = send(data);
  expect_offer(wire::Offer::read);
  Bytes buffers[] = {Bytes(small), Bytes(small)};
  ReceiveRequest& posted = receive(buffers[0]);
  feed(wire::Throttle{.kind = static_cast<wire::Kind>(99)});
  ASSERT_NE(engine->failure(), nullptr);
  EXPECT_EQ(engine->failure()->error_class, MPI_ERR_INTERN);
  EXPECT_NE(engine->failure()->text.find("kind 99"), std::string::npos) << engine->failure()->text;
  for (engine::Request* request :
       {static_cast<engine::Request*>(sent), static_cast<engine::Request*>(&posted)}) {
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->status.error, MPI_ERR_INTERN);
    engine->release(request);
  }
  EXPECT_THROW(send(data), base::Error);
  for (const int source : {static_cast<int>(other), int{MPI_ANY_SOURCE}}) {
    ReceiveRequest& late = receive(buffers[1], source);
    ASSERT_TRUE(late.complete);
    EXPECT_EQ(late.status.error, MPI_ERR_INTERN);
    engine->release(&late);
  }
  expect_rest();
}

// What an operation of a network could only note is told, with its text, by the next poll.
TEST(Breakdown, IsToldByTheNextPoll) {
  struct {
    std::string text;
    void on_failure(base::Error&& why) { text = std::move(why.text); }
  } sink;
  engine::Breakdown breakdown;
  breakdown.note(base::make_error(MPI_ERR_NO_MEM, "first"));
  breakdown.note(base::make_error(MPI_ERR_NO_MEM, "second"));
  EXPECT_TRUE(breakdown.poll(sink, [&] {
    breakdown.raise();
    return false;
  }));
  EXPECT_EQ(sink.text, "first");
}

TEST_F(Failure, FreedRequestsAreMarked) {
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  EXPECT_EQ(request->kind, base::ObjectKind::freed); // the slab keeps the memory readable
  Bytes buffer(small);
  auto& received = receive(buffer);
  feed_eager(pattern(small));
  engine->release(&received);
  EXPECT_EQ(received.kind, base::ObjectKind::freed);
  expect_rest();
}

TEST_F(Failure, PeerThatCannotBeReachedIsAskedForAgain) {
  net.unreachable = true;
  EXPECT_THROW(engine->peer(3), base::Error);
  EXPECT_THROW(engine->peer(3), base::Error);
  net.unreachable = false;
  EXPECT_EQ(engine->peer(3).state, PeerState::connected);
  EXPECT_NE(engine->peer(3).link, nullptr);
}

// Each is looked at once, or this takes minutes.
TEST_F(Failure, ManyOperationsEndWithTheirPeer) {
  constexpr int many = 200'000;
  Bytes buffer(small);
  std::vector<ReceiveRequest*> receives;
  std::vector<SendRequest*> sends;
  const Bytes data = pattern(large);
  for (int i = 0; i < many; ++i) {
    receives.push_back(&receive(buffer));
    sends.push_back(send(data));
  }
  net.done.clear();
  fail_peer();
  for (int i = 0; i < many; ++i) {
    EXPECT_EQ(receives[static_cast<std::size_t>(i)]->status.error, MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(sends[static_cast<std::size_t>(i)]->status.error, MPI_ERR_PROC_ABORTED);
    engine->release(receives[static_cast<std::size_t>(i)]);
    engine->release(sends[static_cast<std::size_t>(i)]);
  }
  expect_rest();
}

} // namespace
} // namespace macadam::test
