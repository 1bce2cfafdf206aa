// SPDX-License-Identifier: BSD-3-Clause
// MPI_ANY_SOURCE and MPI_ANY_TAG: they never announce themselves, and hold back the announcements
// of receives behind them whose message they could take.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Wildcard : public OneEngine {
 protected:
  Bytes first = Bytes(large), second = Bytes(large);
};

TEST_F(Wildcard, NeverAnnounces) {
  engine->release(&receive(first, MPI_ANY_SOURCE));
  engine->release(&receive(second, other, MPI_ANY_TAG));
  expect_nothing();
  feed_eager(pattern(8));
  feed_eager(pattern(8));
  expect_rest();
}

TEST_F(Wildcard, ReadsLargeMessagesOfTheSender) {
  auto& request = receive(first, MPI_ANY_SOURCE, MPI_ANY_TAG);
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  EXPECT_EQ(request.status.tag, tag);
  expect_received(request, first, data);
  expect_rest();
}

TEST_F(Wildcard, HoldsBackThoseBehindUntilItIsMatched) {
  for (const bool any_source : {true, false}) {
    start({});
    auto& wild = any_source ? receive(first, MPI_ANY_SOURCE) : receive(first, other, MPI_ANY_TAG);
    auto& behind = receive(second);
    expect_nothing();
    feed_eager(pattern(small));
    expect_received(wild, first, pattern(small));
    const auto ready = expect_announcement(1, second); // the wildcard took message 0
    feed(fin_to_receiver(ready.receive_id, large));
    EXPECT_TRUE(behind.complete);
    engine->release(&behind);
    expect_rest();
  }
}

TEST_F(Wildcard, ThatTookAnotherPeersMessageLeavesTheOrdinal) {
  auto& wild = receive(first, MPI_ANY_SOURCE);
  auto& behind = receive(second);
  feed_eager(pattern(small), tag, 2);
  EXPECT_TRUE(wild.complete);
  EXPECT_EQ(wild.status.source, 2);
  engine->release(&wild);
  const auto ready = expect_announcement(0, second);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(behind.complete);
  engine->release(&behind);
  expect_rest();
}

TEST_F(Wildcard, CancelledLetsThoseBehindAnnounce) {
  auto& wild = receive(first, MPI_ANY_SOURCE);
  auto& behind = receive(second);
  engine->cancel(wild);
  EXPECT_TRUE(wild.complete);
  EXPECT_TRUE(wild.status.cancelled);
  engine->release(&wild);
  const auto ready = expect_announcement(0, second);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(behind.complete);
  engine->release(&behind);
  expect_rest();
}

TEST_F(Wildcard, PostedLaterHoldsNothingBack) {
  auto& exact = receive(first);
  const auto ready = expect_announcement(0, first);
  auto& wild = receive(second, MPI_ANY_SOURCE);
  expect_nothing();
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(exact.complete);
  EXPECT_FALSE(wild.complete);
  feed_eager(pattern(small));
  expect_received(wild, second, pattern(small));
  engine->release(&exact);
  expect_rest();
}

TEST_F(Wildcard, ThatCannotTakeTheMessageHoldsNothingBack) {
  auto& other_tag = receive(first, MPI_ANY_SOURCE, tag + 1);
  auto& other_source = receive(first, 2, MPI_ANY_TAG);
  auto& elsewhere =
      *engine->receive(nullptr, {context + 1, MPI_ANY_SOURCE, MPI_ANY_TAG}, describe(first));
  auto& exact = receive(second);
  const auto ready = expect_announcement(0, second);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(exact.complete);
  engine->release(&exact);
  for (ReceiveRequest* wild : {&other_tag, &other_source, &elsewhere}) {
    engine->cancel(*wild);
    EXPECT_TRUE(wild->complete);
    engine->release(wild);
  }
  expect_rest();
}

TEST_F(Wildcard, SeveralInARowAreResolvedOneByOne) {
  Bytes third(large);
  auto& wild1 = receive(first, MPI_ANY_SOURCE);
  auto& wild2 = receive(second, other, MPI_ANY_TAG);
  auto& behind = receive(third);
  feed_eager(pattern(small, 1));
  expect_received(wild1, first, pattern(small, 1));
  expect_nothing(); // the second one could still take it
  feed_eager(pattern(small, 2));
  expect_received(wild2, second, pattern(small, 2));
  const auto ready = expect_announcement(2, third);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(behind.complete);
  engine->release(&behind);
  expect_rest();
}

TEST_F(Wildcard, OrderOfPostingDecides) {
  Bytes third(small);
  auto& exact = receive(first, other, tag);
  expect_announcement(0, first);
  auto& wild = receive(second, MPI_ANY_SOURCE, MPI_ANY_TAG);
  auto& last = receive(third);
  feed_eager(pattern(small, 1));
  expect_received(exact, first, pattern(small, 1));
  feed_eager(pattern(small, 2));
  expect_received(wild, second, pattern(small, 2));
  feed_eager(pattern(small, 3));
  expect_received(last, third, pattern(small, 3));
  expect_rest();
}

TEST_F(Wildcard, TakesTheOldestUnexpectedMessage) {
  feed_eager(pattern(small, 1), tag, 2);
  feed_eager(pattern(small, 2), tag + 1, 1);
  feed_eager(pattern(small, 3), tag, 1);
  const struct { int source, tag; } expected[] = {{2, tag}, {1, tag + 1}, {1, tag}};
  for (const auto& message : expected) {
    auto& request = receive(first, MPI_ANY_SOURCE, MPI_ANY_TAG);
    ASSERT_TRUE(request.complete);
    EXPECT_EQ(request.status.source, message.source);
    EXPECT_EQ(request.status.tag, message.tag);
    engine->release(&request);
  }
  expect_rest();
}

} // namespace
} // namespace macadam::test
