// SPDX-License-Identifier: BSD-3-Clause
// Receives taken back, at once. The buffer is never written after the user has it back, and the
// ordinals of the receives behind stay true: permits of what was announced are revoked first. And
// sends, which ask the receiver.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Cancel : public OneEngine {
 protected:
  Bytes first = Bytes(large), second = Bytes(large), third = Bytes(large);

  void expect_cancelled(ReceiveRequest& request) {
    ASSERT_TRUE(request.complete);
    EXPECT_TRUE(request.status.cancelled);
    EXPECT_EQ(request.status.error, MPI_SUCCESS);
    engine->release(&request);
  }
  void finish(ReceiveRequest& request, const wire::ReceiverReady& ready) {
    EXPECT_FALSE(request.complete);
    feed(fin_to_receiver(ready.receive_id, large));
    ASSERT_TRUE(request.complete);
    EXPECT_FALSE(request.status.cancelled);
    engine->release(&request);
  }
};

TEST_F(Cancel, NotAnnouncedIsImmediate) {
  Bytes buffer(small);
  auto& request = receive(buffer);
  engine->cancel(request);
  expect_cancelled(request);
  feed_eager(pattern(small)); // waits for another receive
  auto& later = receive(buffer);
  expect_received(later, buffer, pattern(small));
  expect_rest();
}

TEST_F(Cancel, CompleteIsTooLate) {
  Bytes buffer(small);
  feed_eager(pattern(small));
  auto& request = receive(buffer);
  engine->cancel(request);
  expect_received(request, buffer, pattern(small));
  expect_rest();
}

TEST_F(Cancel, AnnouncedIsImmediateToo) {
  auto& request = receive(first);
  const auto ready = expect_announcement(0, first);
  engine->cancel(request);
  expect_nothing(); // nobody is asked
  expect_cancelled(request);
  EXPECT_EQ(net.revoked, std::vector{ready.permit});
  feed(fin_to_receiver(ready.receive_id, large)); // names nothing any more
  // The ordinal is free for the next one.
  auto& next = receive(second);
  finish(next, expect_announcement(0, second));
  expect_rest();
}

TEST_F(Cancel, BeforeTheAnnouncementHasLeft) {
  net.busy = true;
  auto& request = receive(first);
  engine->cancel(request);
  expect_cancelled(request);
  EXPECT_TRUE(net.revoked.empty());
  net.busy = false;
  progress();
  expect_rest();
}

TEST_F(Cancel, OfTheLastInTheBacklogOpensTheShortPath) {
  Bytes buffer(large);
  net.busy = true;
  ReceiveRequest& request = receive(buffer);
  engine->cancel(request);
  ASSERT_TRUE(request.complete);
  net.busy = false;
  EXPECT_GE(engine->peer(other).short_limit, 0);
  engine->release(&request);
  expect_rest();
}

TEST_F(Cancel, UsedAnnouncementWins) {
  net.answer = engine::Revoked::no;
  auto& request = receive(first);
  const auto ready = expect_announcement(0, first);
  engine->cancel(request);
  finish(request, ready);
  auto& next = receive(second);
  finish(next, expect_announcement(1, second));
  expect_rest();
}

TEST_F(Cancel, WaitsForTheNetworkAlone) {
  net.answer = engine::Revoked::unknown;
  auto& request = receive(first);
  expect_announcement(0, first);
  engine->cancel(request);
  progress();
  EXPECT_FALSE(request.complete);
  engine->cancel(request); // again: nothing new
  net.answer = engine::Revoked::yes;
  progress();
  expect_cancelled(request);
  expect_rest();
}

TEST_F(Cancel, EagerMessageWinsMeanwhile) {
  net.answer = engine::Revoked::unknown;
  auto& request = receive(first);
  expect_announcement(0, first);
  engine->cancel(request);
  feed_eager(pattern(small));
  expect_received(request, first, pattern(small));
  progress();
  expect_rest();
}

// The sender has offered the message and will use the announcement, if it can.
TEST_F(Cancel, OfferWinsMeanwhile) {
  for (const bool used : {true, false}) {
    net.answer = engine::Revoked::unknown;
    start({});
    auto& request = receive(first);
    const auto ready = expect_announcement(0, first);
    engine->cancel(request);
    const Bytes data = pattern(large);
    feed(offer_of(data, wire::Offer::read));
    expect_nothing();
    net.answer = used ? engine::Revoked::no : engine::Revoked::yes;
    progress();
    if (used) {
      finish(request, ready);
    } else {
      expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
      expect_fin_to_sender(77);
      expect_received(request, first, data);
    }
    expect_rest();
  }
}

TEST_F(Cancel, FirstOfTwoMovesTheSecondUp) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  const auto ready_two = expect_announcement(1, second);
  engine->cancel(one);
  EXPECT_EQ(net.revoked, (std::vector{ready_two.permit, ready_one.permit})); // the last one first
  expect_cancelled(one);
  finish(two, expect_announcement(0, second));
  expect_rest();
}

TEST_F(Cancel, SecondOfTwoLeavesTheFirst) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  expect_announcement(1, second);
  engine->cancel(two);
  expect_cancelled(two);
  finish(one, ready_one);
  expect_rest();
}

TEST_F(Cancel, SmallOneBeforeAnAnnouncedOne) {
  for (const bool used : {false, true}) {
    start({});
    net.answer = used ? engine::Revoked::no : engine::Revoked::yes;
    Bytes buffer(small);
    auto& one = receive(buffer);
    auto& two = receive(second);
    const auto ready = expect_announcement(1, second);
    engine->cancel(one);
    if (used) { // then the first message has been sent too
      feed_eager(pattern(small));
      expect_received(one, buffer, pattern(small));
      finish(two, ready);
    } else {
      expect_cancelled(one);
      finish(two, expect_announcement(0, second));
    }
    expect_rest();
  }
}

TEST_F(Cancel, SmallOneBehindAnAnnouncedOneIsImmediate) {
  Bytes buffer(small);
  auto& one = receive(first);
  auto& two = receive(buffer);
  const auto ready = expect_announcement(0, first);
  engine->cancel(two);
  expect_cancelled(two);
  EXPECT_TRUE(net.revoked.empty());
  finish(one, ready);
  expect_rest();
}

TEST_F(Cancel, WhileTheAnswerIsAwaitedNothingIsAnnounced) {
  net.answer = engine::Revoked::unknown;
  auto& one = receive(first);
  expect_announcement(0, first);
  engine->cancel(one);
  auto& two = receive(second);
  auto& elsewhere = receive(third, other, tag + 1); // another channel is free
  const auto ready = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
  EXPECT_EQ(ready.tag, tag + 1);
  expect_nothing();
  net.answer = engine::Revoked::yes;
  progress();
  expect_cancelled(one);
  finish(two, expect_announcement(0, second));
  finish(elsewhere, ready);
  expect_rest();
}

TEST_F(Cancel, ReleasedWhileItIsCancelled) {
  net.answer = engine::Revoked::unknown;
  auto& request = receive(first);
  expect_announcement(0, first);
  engine->cancel(request);
  engine->release(&request); // MPI_Cancel, MPI_Request_free
  net.answer = engine::Revoked::yes;
  progress();
  expect_rest();
}

// The sender's side.
class Revoked : public OneEngine {};

TEST_F(Revoked, IsNotUsed) {
  net.peer_revoked = true;
  feed(announcement(0));
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  expect_rest();
}

TEST_F(Revoked, LeavesAMediumMessageToHybrid) {
  net.peer_revoked = true;
  feed(announcement(0));
  EXPECT_EQ(send(pattern(medium)), nullptr);
  feed(fin_to_sender(expect_offer(wire::Offer::hybrid).send_id));
  expect_rest();
}

// The receive that moves up announces itself anew.
TEST_F(Revoked, GivesWayToTheNextOfItsOrdinal) {
  for (const bool before : {true, false}) {
    start({});
    const Bytes data = pattern(large);
    SendRequest* request = nullptr;
    if (before) feed(announcement(0, 500));
    net.peer_revoked = true;
    if (!before) {
      request = send(data);
      expect_offer(wire::Offer::read);
      feed(announcement(0, 500)); // crosses the offer
      expect_nothing();
    }
    net.peer_revoked = false;
    feed(announcement(0, 600));
    if (before) request = send(data);
    EXPECT_EQ(request == nullptr, before);
    expect_put(data, announcement(0, 600).memory);
    expect_fin_to_receiver(600, large);
    if (request != nullptr) engine->release(request);
    expect_rest();
  }
}

// Sends.
class Withdraw : public OneEngine {
 protected:
  wire::Withdraw withdrawal(std::uint64_t send_id, wire::Kind kind = wire::Kind::withdraw) {
    return {.kind = kind, .source = other, .tag = tag, .context = context, .send_id = send_id};
  }
  void expect_cancelled(SendRequest* request, bool cancelled) {
    ASSERT_TRUE(request->complete);
    EXPECT_EQ(request->status.cancelled, cancelled);
    engine->release(request);
    expect_rest();
  }
};

TEST_F(Withdraw, AsksTheReceiver) {
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  engine->cancel(*request);
  engine->cancel(*request); // once
  EXPECT_EQ(expect<wire::Withdraw>(wire::Kind::withdraw).send_id, offer.send_id);
  feed(withdrawal(offer.send_id, wire::Kind::withdrawn));
  expect_cancelled(request, true);
}

TEST_F(Withdraw, TooLateCompletes) {
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  engine->cancel(*request);
  expect<wire::Withdraw>(wire::Kind::withdraw);
  feed(fin_to_sender(offer.send_id));
  expect_cancelled(request, false);
}

TEST_F(Withdraw, SynchronousOneBehindAFullNetwork) {
  net.busy = true;
  SendRequest* request = send(pattern(small), tag, SendMode::synchronous);
  engine->cancel(*request);
  net.busy = false;
  progress();
  expect<wire::EagerSynchronous>(wire::Kind::eager_synchronous, other, &kept.emplace_back());
  const auto asked = expect<wire::Withdraw>(wire::Kind::withdraw);
  feed(withdrawal(asked.send_id, wire::Kind::withdrawn));
  expect_cancelled(request, true);
}

// The receiver: what nothing has matched is forgotten, and counted.
TEST_F(Withdraw, ForgetsAnUnexpectedMessage) {
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read));
  feed(withdrawal(77));
  EXPECT_EQ(expect<wire::Withdraw>(wire::Kind::withdrawn).send_id, 77u);
  Bytes buffer(large);
  auto& request = receive(buffer);
  const auto ready = expect_announcement(1, buffer);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(request.complete);
  engine->release(&request);
  expect_rest();
}

TEST_F(Withdraw, LeavesAMatchedMessage) {
  const Bytes data = pattern(large);
  Bytes buffer(large);
  feed(offer_of(data, wire::Offer::read));
  engine::Message* const taken = engine->match_probe({context, other, tag});
  feed(withdrawal(77));
  expect_nothing();
  ReceiveRequest* const request = engine->receive_matched(*taken, describe(buffer));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  expect_received(*request, buffer, data);
  expect_rest();
}

} // namespace
} // namespace macadam::test
