// SPDX-License-Identifier: BSD-3-Clause
// The three rendezvous protocols in detail: who completes when, in which order packets leave, what
// happens to a message that is longer than its receive.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Hybrid : public OneEngine {};

TEST_F(Hybrid, SendsACopy) {
  Bytes data = pattern(medium);
  const Bytes original = data;
  EXPECT_EQ(send(data), nullptr);
  std::fill(data.begin(), data.end(), std::byte{0});
  const auto offer = expect_offer(wire::Offer::hybrid);
  EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(offer.memory.address), original.data(),
                        original.size()),
            0);
  EXPECT_EQ(net.allocated, 1u);
  EXPECT_EQ(net.registered.size(), 1u);
  feed(fin_to_sender(offer.send_id));
  feed(fin_to_sender(offer.send_id)); // a second one names nothing
  expect_rest();
}

// Figure 6, Isend (8) and (9).
TEST_F(Hybrid, AnnouncementDuringTheCopyIsUsed) {
  const Bytes data = pattern(medium);
  engine->peer(other);
  // The poll before the copy finds an eager message, the one after it the announcement.
  feed_later(eager_header(tag + 1), pattern(8));
  feed_later(announcement(0));
  net.puts = Posted::pending;
  EXPECT_EQ(send(data), nullptr); // the put uses the copy: the sender leaves at once
  const Operation put = expect_put(data, announcement(0).memory);
  expect_fin_to_receiver(500, medium);
  EXPECT_EQ(net.allocated, 1u);
  feed_completion(put.cookie);
  EXPECT_EQ(engine->counters().recv_rndv, 1u);
  EXPECT_EQ(engine->counters().hybrid_sent, 0u);
  EXPECT_EQ(net.allocated, 0u);
  expect_nothing();
}

// The same for a message that is copied in several steps: what is left of the copy is not made.
TEST_F(Hybrid, AnnouncementDuringALongCopyEndsIt) {
  net.raise_hybrid(64 << 10);
  const Bytes data = pattern(20'000);
  engine->peer(other);
  feed_later(eager_header(tag + 1), pattern(8));
  feed_later(announcement(0, 500, 20'000));
  net.puts = Posted::pending;
  SendRequest* request = send(data);
  ASSERT_NE(request, nullptr); // the put uses the user's memory
  const Operation put = expect_put(data, announcement(0).memory);
  expect_fin_to_receiver(500, 20'000);
  EXPECT_EQ(net.allocated, 0u);
  feed_completion(put.cookie);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  EXPECT_EQ(engine->counters().recv_rndv, 1u);
  expect_nothing();
}

TEST_F(Hybrid, WithoutMemoryForTheCopyIsSendRndv) {
  net.no_memory = true;
  const Bytes data = pattern(medium);
  SendRequest* request = send(data);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Hybrid, SynchronousSendDoesNotLeaveBeforeItsMatch) {
  const Bytes data = pattern(medium);
  SendRequest* request = send(data, tag, SendMode::synchronous);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::read);
  EXPECT_FALSE(request->complete);
  feed(fin_to_sender(offer.send_id));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Hybrid, ExchangeMakesNoCopy) {
  const Bytes data = pattern(medium);
  SendRequest* request = send(data, tag, SendMode::exchange);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::read);
  EXPECT_EQ(net.allocated, 0u);
  feed(fin_to_sender(offer.send_id));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

class SendRndv : public OneEngine {
 protected:
  void write_form() {
    base::Settings wanted;
    wanted.rendezvous = base::Rendezvous::write;
    start(wanted);
  }
};

// Where processors copy, the data of an exchange are moved by the side that has nothing else to do.
TEST_F(SendRndv, ExchangeIsWrittenByASenderThatIsThere) {
  net.copies();
  const Bytes data = pattern(large);
  SendRequest* alone = send(data);
  const auto read = expect_offer(wire::Offer::read);
  SendRequest* request = send(data, tag, SendMode::exchange);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::either);
  EXPECT_EQ(net.permits.count(offer.permit), 1u);
  auto answer = announcement(0);
  answer.answers = true;
  answer.send_id = offer.send_id;
  feed(answer);
  EXPECT_EQ(net.revoked, std::vector{offer.permit});
  expect_put(data, answer.memory);
  expect_fin_to_receiver(500, large);
  EXPECT_TRUE(request->complete);
  EXPECT_TRUE(net.permits.empty());
  feed(fin_to_sender(read.send_id));
  engine->release(request);
  engine->release(alone);
  expect_rest();
}

TEST_F(SendRndv, ExchangeIsLeftToAReceiverThatReads) {
  net.copies();
  const Bytes data = pattern(large);
  SendRequest* request = send(data, tag, SendMode::exchange);
  const auto offer = expect_offer(wire::Offer::either);
  net.answer = engine::Revoked::no;
  auto answer = announcement(0);
  answer.answers = true;
  answer.send_id = offer.send_id;
  feed(answer);
  EXPECT_FALSE(request->complete);
  feed(fin_to_sender(offer.send_id));
  EXPECT_TRUE(request->complete);
  EXPECT_TRUE(net.permits.empty());
  engine->release(request);
  expect_rest();
}

TEST_F(SendRndv, AReceiverReadsAnExchangeWhenItIsIdle) {
  net.copies();
  const Bytes data = pattern(large);
  for (const bool sender_was_faster : {false, true}) {
    Bytes buffer(large);
    auto offer = offer_of(data, wire::Offer::either, 77, false);
    offer.permit = 9;
    feed(offer);
    ReceiveRequest& request = receive(buffer);
    const auto answer = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
    EXPECT_TRUE(answer.answers);
    net.peer_revoked = sender_was_faster;
    engine->progress(); // finds nothing else to do
    if (sender_was_faster) {
      expect_nothing();
      feed(fin_to_receiver(answer.receive_id, large));
    } else {
      expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
      expect_fin_to_sender(77);
    }
    EXPECT_TRUE(request.complete);
    engine->release(&request);
  }
  expect_rest();
}

// Two that wait copy faster if the sender writes; but not if it has lost its core.
TEST_F(SendRndv, AReceiverLeavesAnExchangeToASenderThatWaits) {
  net.copies();
  net.peer_waits = true;
  const Bytes data = pattern(large);
  Bytes buffer(large);
  auto offer = offer_of(data, wire::Offer::either, 77, false);
  offer.permit = 9;
  feed(offer);
  ReceiveRequest& request = receive(buffer);
  expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
  EXPECT_FALSE(engine->progress());
  EXPECT_FALSE(engine->copy_in_wait(100));
  expect_nothing();
  EXPECT_TRUE(engine->copy_in_wait(100'000));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  EXPECT_TRUE(request.complete);
  engine->release(&request);
  expect_rest();
}

TEST_F(SendRndv, WriteFormWaitsForTheAnswer) {
  write_form();
  const Bytes data = pattern(large);
  SendRequest* request = send(data);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::write);
  auto answer = announcement(0);
  answer.answers = true;
  answer.send_id = offer.send_id;
  net.puts = Posted::pending;
  feed(answer);
  const Operation put = expect_put(data, answer.memory);
  expect_fin_to_receiver(answer.receive_id, large); // FIN may follow a put at once
  EXPECT_FALSE(request->complete);                  // the data are still being read
  feed(answer);                                     // a second answer is no second put
  expect_nothing();
  feed_completion(put.cookie);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  EXPECT_EQ(engine->counters().send_rndv_write, 1u);
  expect_rest();
}

TEST_F(SendRndv, WriteFormWritesNoMoreThanFits) {
  write_form();
  const Bytes data = pattern(large);
  SendRequest* request = send(data);
  const auto offer = expect_offer(wire::Offer::write);
  auto answer = announcement(0, 500, 6000);
  answer.answers = true;
  answer.send_id = offer.send_id;
  feed(answer);
  expect_put(Bytes(data.begin(), data.begin() + 6000), answer.memory);
  expect_fin_to_receiver(answer.receive_id, large); // says how long the message was
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(SendRndv, LongerThanTheReceive) {
  const Bytes data = pattern(large);
  for (const auto how : {wire::Offer::hybrid, wire::Offer::read, wire::Offer::write}) {
    SCOPED_TRACE(static_cast<int>(how));
    feed(offer_of(data, how));
    Bytes buffer(6000);
    auto& request = receive(buffer);
    if (how == wire::Offer::write) {
      const auto answer = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
      EXPECT_EQ(answer.capacity, 6000u);
      std::memcpy(buffer.data(), data.data(), 6000);
      feed(fin_to_receiver(answer.receive_id, large));
    } else {
      expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, 6000);
      expect_fin_to_sender(77);
    }
    ASSERT_TRUE(request.complete);
    EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
    EXPECT_EQ(request.status.bytes, 6000u);
    EXPECT_EQ(buffer, Bytes(data.begin(), data.begin() + 6000));
    engine->release(&request);
  }
  expect_rest();
}

TEST_F(SendRndv, IntoAReceiveWithoutRoom) {
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read));
  Bytes nothing;
  auto& request = receive(nothing);
  expect_fin_to_sender(77); // nothing to read, but the sender is told
  ASSERT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
  EXPECT_EQ(request.status.bytes, 0u);
  engine->release(&request);
  expect_rest();
}

class RecvRndv : public OneEngine {};

TEST_F(RecvRndv, PutThenFinThenCompletion) {
  const auto ready = announcement(0);
  feed(ready);
  const Bytes data = pattern(large);
  net.puts = Posted::pending;
  SendRequest* request = send(data);
  ASSERT_NE(request, nullptr);
  const Operation put = expect_put(data, ready.memory);
  expect_fin_to_receiver(ready.receive_id, large);
  EXPECT_FALSE(request->complete);
  feed_completion(put.cookie);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(RecvRndv, WritesNoMoreThanFits) {
  const auto ready = announcement(0, 500, 5000);
  feed(ready);
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data), nullptr);
  expect_put(Bytes(data.begin(), data.begin() + 5000), ready.memory);
  expect_fin_to_receiver(ready.receive_id, large);
  expect_rest();
}

TEST_F(RecvRndv, ReceiverLearnsOfTruncationFromFin) {
  Bytes buffer(5000);
  auto& request = receive(buffer);
  const auto ready = expect_announcement(0, buffer);
  feed(fin_to_receiver(ready.receive_id, large));
  ASSERT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
  EXPECT_EQ(request.status.bytes, 5000u);
  engine->release(&request);
  expect_rest();
}

TEST_F(RecvRndv, SynchronousSendIsCompleteToo) {
  feed(announcement(0));
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data, tag, SendMode::synchronous), nullptr); // its receive is known to be posted
  expect_put(data, announcement(0).memory);
  expect_fin_to_receiver(500, large);
  expect_rest();
}

// Where processors copy: whoever is idle first, this process or the receiver.
TEST_F(RecvRndv, NonblockingSendIsMovedByTheSideThatIsIdle) {
  net.copies();
  const Bytes data = pattern(large);
  for (const bool receiver_was_faster : {false, true}) {
    feed(announcement(receiver_was_faster ? 1 : 0));
    SendRequest* request = send(data, tag, SendMode::nonblocking);
    ASSERT_NE(request, nullptr);
    const auto offer = expect_offer(wire::Offer::either); // and nothing is written yet
    EXPECT_TRUE(offer.counted);
    net.answer = receiver_was_faster ? engine::Revoked::no : engine::Revoked::yes;
    EXPECT_EQ(engine->progress(), !receiver_was_faster);
    if (receiver_was_faster) {
      expect_nothing();
      EXPECT_FALSE(request->complete);
      feed(fin_to_sender(offer.send_id));
    } else {
      expect_put(data, announcement(0).memory);
      expect_fin_to_receiver(500, large);
    }
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }
  EXPECT_TRUE(net.permits.empty());
  expect_rest();
}

TEST_F(RecvRndv, NonblockingSendWithoutAPermitIsWrittenAtOnce) {
  net.copies();
  net.unregistered = true;
  feed(announcement(0));
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data, tag, SendMode::nonblocking), nullptr);
  expect_put(data, announcement(0).memory);
  expect_fin_to_receiver(500, large);
  expect_rest();
}

// What it announced itself for it may read, if the sender has not come upon the announcement.
TEST_F(RecvRndv, AnnouncedReceiveReadsANonblockingSendWhenItIsIdle) {
  net.copies();
  const Bytes data = pattern(large);
  Bytes buffer(large);
  auto& request = receive(buffer);
  expect_announcement(0, buffer);
  auto offer = offer_of(data, wire::Offer::either, 77, true);
  offer.permit = 9;
  feed_later(offer);
  EXPECT_TRUE(engine->deliver());
  expect_nothing();
  EXPECT_TRUE(engine->progress());
  EXPECT_EQ(net.revoked.size(), 1u);
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  EXPECT_TRUE(request.complete);
  EXPECT_EQ(buffer, data);
  engine->release(&request);
  EXPECT_TRUE(net.permits.empty());
  expect_rest();
}

TEST_F(RecvRndv, ReleasedReceiveStillFinishes) {
  Bytes buffer(large);
  auto& request = receive(buffer);
  const auto ready = expect_announcement(0, buffer);
  engine->release(&request); // MPI_Request_free
  EXPECT_EQ(net.registered.size(), 1u);
  feed(fin_to_receiver(ready.receive_id, large));
  expect_rest();
}

} // namespace
} // namespace macadam::test
