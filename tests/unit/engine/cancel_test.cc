// SPDX-License-Identifier: BSD-3-Clause
// Receives taken back. The buffer is never written after the user has it back, and the ordinals of
// the receives behind stay true: whatever was announced is retracted first, and the sender's word
// is awaited.
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

TEST_F(Cancel, AnnouncedAsksTheSender) {
  auto& request = receive(first);
  const auto ready = expect_announcement(0, first);
  engine->cancel(request);
  const auto question = expect_retract(0);
  EXPECT_FALSE(request.complete); // the sender may be writing
  EXPECT_EQ(net.registered.size(), 1u);
  engine->cancel(request); // again: nothing new
  feed(retracted(question, false));
  expect_cancelled(request);
  feed(fin_to_receiver(ready.receive_id, large)); // names nothing any more
  // The ordinal is free for the next one.
  auto& next = receive(second);
  finish(next, expect_announcement(0, second));
  expect_rest();
}

TEST_F(Cancel, UsedAnnouncementWins) {
  auto& request = receive(first);
  const auto ready = expect_announcement(0, first);
  engine->cancel(request);
  const auto question = expect_retract(0);
  finish(request, ready); // FIN comes before the answer
  feed(retracted(question, true));
  auto& next = receive(second);
  finish(next, expect_announcement(1, second));
  expect_rest();
}

TEST_F(Cancel, EagerMessageWins) {
  auto& request = receive(first);
  expect_announcement(0, first);
  engine->cancel(request);
  const auto question = expect_retract(0);
  feed_eager(pattern(small));
  expect_received(request, first, pattern(small));
  feed(retracted(question, true));
  expect_rest();
}

TEST_F(Cancel, OfferWins) {
  auto& request = receive(first);
  const auto ready = expect_announcement(0, first);
  engine->cancel(request);
  const auto question = expect_retract(0);
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read)); // the sender got the announcement before the question
  expect_nothing();
  feed(retracted(question, true));
  finish(request, ready);
  expect_rest();
}

TEST_F(Cancel, FirstOfTwoMovesTheSecondUp) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  const auto ready_two = expect_announcement(1, second);
  engine->cancel(one);
  const auto question = expect_retract(0);
  feed(retracted(question, false));
  expect_cancelled(one);
  const auto anew = expect_announcement(0, second);
  EXPECT_NE(anew.receive_id, ready_two.receive_id);
  feed(fin_to_receiver(ready_one.receive_id, large)); // stale names are not followed
  feed(fin_to_receiver(ready_two.receive_id, large));
  finish(two, anew);
  expect_rest();
}

TEST_F(Cancel, SecondOfTwoLeavesTheFirst) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  expect_announcement(1, second);
  engine->cancel(two);
  const auto question = expect_retract(1);
  feed(retracted(question, false));
  expect_cancelled(two);
  finish(one, ready_one);
  expect_rest();
}

TEST_F(Cancel, SmallOneBeforeAnAnnouncedOne) {
  Bytes buffer(small);
  auto& one = receive(buffer);
  auto& two = receive(second);
  expect_announcement(1, second);
  engine->cancel(one);
  const auto question = expect_retract(0);
  EXPECT_FALSE(one.complete); // a message for it may be on its way, and the second ordinal changes
  feed(retracted(question, false));
  expect_cancelled(one);
  finish(two, expect_announcement(0, second));
  expect_rest();
}

TEST_F(Cancel, SmallOneBehindAnAnnouncedOneIsImmediate) {
  Bytes buffer(small);
  auto& one = receive(first);
  auto& two = receive(buffer);
  const auto ready = expect_announcement(0, first);
  engine->cancel(two);
  expect_cancelled(two);
  finish(one, ready);
  expect_rest();
}

TEST_F(Cancel, BothInOneGo) {
  for (const bool in_order : {true, false}) {
    start({});
    auto& one = receive(first);
    auto& two = receive(second);
    expect_announcement(0, first);
    expect_announcement(1, second);
    engine->cancel(in_order ? one : two);
    engine->cancel(in_order ? two : one);
    feed(retracted(expect_retract(in_order ? 0 : 1), false));
    while (!net.done.empty()) {
      const Operation operation = next();
      wire::Retract question;
      ASSERT_EQ(operation.bytes[0], static_cast<std::byte>(wire::Kind::retract));
      std::memcpy(&question, operation.bytes.data(), sizeof question);
      feed(retracted(question, false));
    }
    expect_cancelled(one);
    expect_cancelled(two);
    expect_rest();
  }
}

TEST_F(Cancel, WhileTheAnswerIsAwaitedNothingIsAnnounced) {
  auto& one = receive(first);
  expect_announcement(0, first);
  engine->cancel(one);
  const auto question = expect_retract(0);
  auto& two = receive(second);
  auto& elsewhere = receive(third, other, tag + 1); // another channel is free
  const auto ready = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
  EXPECT_EQ(ready.tag, tag + 1);
  expect_nothing();
  feed(retracted(question, false));
  expect_cancelled(one);
  finish(two, expect_announcement(0, second));
  finish(elsewhere, ready);
  expect_rest();
}

TEST_F(Cancel, UsedLeavesTheOnesBehindAsTheyAre) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  const auto ready_two = expect_announcement(1, second);
  engine->cancel(one);
  const auto question = expect_retract(0);
  finish(one, ready_one);
  feed(retracted(question, true));
  expect_nothing(); // the second announcement still stands
  finish(two, ready_two);
  expect_rest();
}

TEST_F(Cancel, SecondAfterTheFirstWasUsed) {
  auto& one = receive(first);
  auto& two = receive(second);
  const auto ready_one = expect_announcement(0, first);
  expect_announcement(1, second);
  engine->cancel(one);
  engine->cancel(two);
  const auto question = expect_retract(0);
  finish(one, ready_one);
  feed(retracted(question, true));
  const auto again = expect_retract(1); // one question at a time
  feed(retracted(again, false));
  expect_cancelled(two);
  expect_rest();
}

TEST_F(Cancel, ReleasedWhileItIsCancelled) {
  auto& request = receive(first);
  expect_announcement(0, first);
  engine->cancel(request);
  const auto question = expect_retract(0);
  engine->release(&request); // MPI_Cancel, MPI_Request_free
  feed(retracted(question, false));
  expect_rest();
}

// The sender's side.
class Retracted : public OneEngine {
 protected:
  wire::Retract question(std::uint64_t ordinal) {
    return {.kind = wire::Kind::retract,
            .tag = tag,
            .context = context,
            .ordinal = ordinal,
            .receive_id = 500};
  }
  void expect_answer(bool used) {
    EXPECT_EQ(expect<wire::Retract>(wire::Kind::retracted).used, used);
  }
};

TEST_F(Retracted, ForgetsTheAnnouncement) {
  feed(announcement(0));
  feed(question(0));
  expect_answer(false);
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  expect_rest();
}

TEST_F(Retracted, KeepsTheOnesBefore) {
  feed(announcement(0, 500));
  feed(announcement(1, 501));
  feed(announcement(2, 502));
  feed(question(1));
  expect_answer(false);
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data), nullptr);
  expect_put(data, announcement(0, 500).memory);
  expect_fin_to_receiver(500, large);
  SendRequest* request = send(data);
  const auto offer = expect_offer(wire::Offer::read);
  // The third receive has moved up and announces itself anew.
  feed(announcement(1, 602));
  expect_put(data, announcement(1, 602).memory);
  expect_fin_to_receiver(602, large);
  EXPECT_TRUE(request->complete);
  engine->release(request);
  feed(fin_to_sender(offer.send_id));
  expect_rest();
}

TEST_F(Retracted, AfterUseSaysSo) {
  feed(announcement(0, 500));
  feed(announcement(1, 501));
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data), nullptr);
  expect_put(data, announcement(0, 500).memory);
  expect_fin_to_receiver(500, large);
  feed(question(0));
  expect_answer(true);
  EXPECT_EQ(send(data), nullptr); // the second one still stands
  expect_put(data, announcement(1, 501).memory);
  expect_fin_to_receiver(501, large);
  expect_rest();
}

TEST_F(Retracted, AfterAnEagerMessageSaysSoToo) {
  EXPECT_EQ(send(pattern(small)), nullptr);
  expect_eager();
  feed(question(0));
  expect_answer(true);
  expect_rest();
}

TEST_F(Retracted, AnswersBehindWhatWasSentBefore) {
  net.busy = true;
  EXPECT_NE(send(pattern(small)), nullptr);
  feed(question(0));
  expect_nothing();
  net.busy = false;
  progress();
  expect_eager();
  expect_answer(true);
  engine.reset();
  start({});
}

} // namespace
} // namespace macadam::test
