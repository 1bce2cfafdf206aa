// SPDX-License-Identifier: BSD-3-Clause
// Section 4.1 of Small & Yuan: sender and receiver may expect different protocols, since the sizes
// that they name may differ; and control messages must be matched by ordinals.
#include "one_engine.h"

namespace macadam::test {
namespace {

struct Sizes {
  const char* name;
  std::size_t sent;
  std::size_t room;
};

// A receive that was posted first, of one size class, meets a message of the same or a smaller one.
class Mismatch : public OneEngine, public testing::WithParamInterface<Sizes> {};

TEST_P(Mismatch, EarlyReceiverCopesWithWhatComes) {
  const auto [name, sent, room] = GetParam();
  const Bytes data = pattern(sent);
  Bytes buffer(room);
  auto& request = receive(buffer);
  std::uint64_t announced = 0;
  if (room > net.eager) announced = expect_announcement(0, buffer).receive_id;
  if (sent <= net.eager) {
    feed_eager(data);
  } else if (sent <= net.hybrid) {
    feed(offer_of(data, wire::Offer::hybrid));
    expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, sent);
    expect_fin_to_sender(77);
  } else {
    feed(offer_of(data, wire::Offer::read));
    expect_nothing();
    std::memcpy(buffer.data(), data.data(), sent);
    feed(fin_to_receiver(announced, sent));
  }
  expect_received(request, buffer, data);
  // The useless announcement is the only trace; the next ordinal is right.
  Bytes next_buffer(large);
  auto& following = receive(next_buffer);
  const auto ready = expect_announcement(1, next_buffer);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(following.complete);
  engine->release(&following);
  expect_rest();
}

// The same from the other side: the announcement of a receive of one class meets a send.
TEST_P(Mismatch, SenderDecides) {
  const auto [name, sent, room] = GetParam();
  if (room <= net.eager) return; // no announcement
  const auto ready = announcement(0, 500, room);
  feed(ready);
  const Bytes data = pattern(sent);
  EXPECT_EQ(send(data), nullptr);
  if (sent <= net.eager) {
    EXPECT_EQ(expect_eager(), data);
  } else {
    expect_put(data, ready.memory);
    expect_fin_to_receiver(500, sent);
  }
  // Used or not, the announcement is not for the next message.
  const Bytes second = pattern(large, 2);
  SendRequest* request = send(second);
  ASSERT_NE(request, nullptr);
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  EXPECT_EQ(engine->counters().announcements_dropped, sent <= net.eager ? 1u : 0u);
  expect_rest();
}

INSTANTIATE_TEST_SUITE_P(
    All, Mismatch,
    testing::Values(Sizes{"EagerIntoSmall", 100, 1000}, Sizes{"EagerIntoMedium", 100, 3000},
                    Sizes{"EagerIntoLarge", 100, 9000}, Sizes{"NothingIntoLarge", 0, 9000},
                    Sizes{"HybridIntoMedium", 3000, 3000}, Sizes{"HybridIntoLarge", 3000, 9000},
                    Sizes{"LargeIntoLarge", 9000, 9000}),
    [](const auto& sizes) { return sizes.param.name; });

class Ordinals : public OneEngine {};

// The paper's example: R1 small, R2 large; the announcement carries 1.
TEST_F(Ordinals, AnnouncementOfAFutureMessageWaits) {
  feed(announcement(1));
  const Bytes first = pattern(small), second = pattern(large);
  EXPECT_EQ(send(first), nullptr);
  EXPECT_EQ(expect_eager(), first);
  EXPECT_EQ(send(second), nullptr);
  expect_put(second, announcement(1).memory);
  expect_fin_to_receiver(500, large);
  EXPECT_EQ(engine->counters().announcements_dropped, 0u);
  expect_rest();
}

TEST_F(Ordinals, LargeMessageDoesNotTakeAFutureAnnouncement) {
  feed(announcement(1));
  const Bytes first = pattern(large), second = pattern(large, 2);
  SendRequest* request = send(first);
  const auto offer = expect_offer(wire::Offer::read);
  EXPECT_EQ(send(second), nullptr);
  expect_put(second, announcement(1).memory);
  expect_fin_to_receiver(500, large);
  feed(fin_to_sender(offer.send_id));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Ordinals, StaleAnnouncementIsDropped) {
  EXPECT_EQ(send(pattern(small)), nullptr);
  expect_eager();
  feed(announcement(0)); // crossed the message that it was for
  EXPECT_EQ(engine->counters().announcements_dropped, 1u);
  SendRequest* request = send(pattern(large));
  const auto offer = expect_offer(wire::Offer::read);
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  expect_rest();
}

TEST_F(Ordinals, AnnouncementsInAnyNumberAreUsedInOrder) {
  for (std::uint64_t i = 0; i < 5; ++i)
    feed(announcement(i, 500 + i));
  for (int i = 0; i < 5; ++i) {
    const Bytes data = pattern(large, i);
    EXPECT_EQ(send(data), nullptr);
    const auto id = 500 + static_cast<std::uint64_t>(i);
    expect_put(data, announcement(0, id).memory);
    expect_fin_to_receiver(id, large);
  }
  expect_rest();
}

// After a retraction later receives may announce themselves first.
TEST_F(Ordinals, AnnouncementsMayComeInAnyOrder) {
  for (const std::uint64_t i : {2u, 0u, 1u})
    feed(announcement(i, 500 + i));
  for (int i = 0; i < 3; ++i) {
    const Bytes data = pattern(i == 1 ? medium : large, i);
    EXPECT_EQ(send(data), nullptr);
    const auto id = 500 + static_cast<std::uint64_t>(i);
    expect_put(data, announcement(0, id).memory);
    expect_fin_to_receiver(id, data.size());
  }
  expect_rest();
}

TEST_F(Ordinals, CrossedAnnouncementsFindTheirOwnSends) {
  SendRequest* requests[2];
  const Bytes data[] = {pattern(large, 0), pattern(large, 1)};
  for (int i = 0; i < 2; ++i) {
    requests[i] = send(data[i]);
    expect_offer(wire::Offer::read);
  }
  feed(announcement(1, 501)); // the first receive was a wildcard, say: it never announces
  expect_put(data[1], announcement(1, 501).memory);
  expect_fin_to_receiver(501, large);
  EXPECT_FALSE(requests[0]->complete);
  EXPECT_TRUE(requests[1]->complete);
  feed(announcement(0, 502));
  expect_put(data[0], announcement(0, 502).memory);
  expect_fin_to_receiver(502, large);
  for (SendRequest* request : requests) {
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }
  expect_rest();
}

TEST_F(Ordinals, TagsAndContextsCountApart) {
  EXPECT_EQ(send(pattern(small), tag), nullptr);
  expect_eager(tag);
  const auto elsewhere = announcement(0, 600, large, tag + 1);
  feed(elsewhere);
  const Bytes data = pattern(large);
  EXPECT_EQ(send(data, tag + 1), nullptr);
  expect_put(data, elsewhere.memory);
  expect_fin_to_receiver(600, large);
  auto far = announcement(0, 700);
  far.context = context + (std::uint64_t{1} << 32);
  feed(far);
  EXPECT_EQ(
      engine->send(engine->peer(other), {far.context, 0, tag}, describe(data), SendMode::standard),
      nullptr);
  expect_put(data, far.memory);
  expect_fin_to_receiver(700, large);
  expect_rest();
}

TEST_F(Ordinals, PlaceAmongPendingReceivesCounts) {
  Bytes buffers[3] = {Bytes(small), Bytes(small), Bytes(large)};
  for (int i = 0; i < 3; ++i) {
    feed_eager(pattern(small)); // two messages are received before
    if (i < 2) expect_received(receive(buffers[i]), buffers[i], pattern(small));
  }
  expect_received(receive(buffers[0]), buffers[0], pattern(small));
  ReceiveRequest* pending[2] = {&receive(buffers[0]), &receive(buffers[1])};
  auto& last = receive(buffers[2]);
  const auto ready = expect_announcement(5, buffers[2]); // three matched, two pending
  for (int i = 0; i < 2; ++i) {
    feed_eager(pattern(small, i));
    expect_received(*pending[i], buffers[i], pattern(small, i));
  }
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(last.complete);
  engine->release(&last);
  expect_rest();
}

// A matched probe takes its message: receives posted later are for later messages.
TEST_F(Ordinals, MatchedProbeAdvancesTheOrdinal) {
  feed_eager(pattern(small));
  engine::Message* message = engine->match_probe({context, other, MPI_ANY_TAG});
  ASSERT_NE(message, nullptr);
  Bytes buffer(large);
  auto& request = receive(buffer);
  const auto ready = expect_announcement(1, buffer);
  Bytes probed(small);
  expect_received(*engine->receive_matched(*message, describe(probed)), probed, pattern(small));
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(request.complete);
  engine->release(&request);
  expect_rest();
}

TEST_F(Ordinals, MatchedProbeOfALargeMessageIsReadLater) {
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read));
  EXPECT_EQ(engine->probe({context, MPI_ANY_SOURCE, tag})->bytes, large);
  engine::Message* message = engine->match_probe({context, MPI_ANY_SOURCE, tag});
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(engine->probe({context, MPI_ANY_SOURCE, tag}), nullptr);
  expect_nothing();
  Bytes buffer(large);
  auto& request = *engine->receive_matched(*message, describe(buffer));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

class Bounded : public OneEngine {
 protected:
  Bounded() {
    base::Settings wanted;
    wanted.tags_per_peer = 2;
    start(wanted);
  }
  // Whether a message is counted, so that an announcement could be used.
  bool counts(std::uint64_t of, int with_tag) {
    SendRequest* request =
        engine->send(engine->peer(other), {of, 0, with_tag}, describe(data), SendMode::standard);
    const auto offer = expect<wire::SenderReady>(wire::Kind::sender_ready);
    feed(fin_to_sender(offer.send_id));
    engine->release(request);
    return offer.counted;
  }

  const Bytes data = pattern(large);
  const engine::RankMap all{0, 1, 4};
};

TEST_F(Bounded, PastTheBoundNothingIsAnnouncedOrUsed) {
  Bytes buffers[3] = {Bytes(large), Bytes(large), Bytes(large)};
  ReceiveRequest* requests[3];
  for (int i = 0; i < 3; ++i)
    requests[i] = &receive(buffers[i], other, i);
  std::uint64_t ids[2];
  for (int i = 0; i < 2; ++i)
    ids[i] = expect_announcement(0, buffers[i]).receive_id;
  expect_nothing(); // the third tag

  feed(announcement(0, 900, large, 2));
  EXPECT_EQ(engine->counters().announcements_dropped, 1u);
  SendRequest* request = send(data, 2);
  const auto offer = expect<wire::SenderReady>(wire::Kind::sender_ready);
  EXPECT_FALSE(offer.counted); // so that an announced receive does not wait for nothing
  feed(fin_to_sender(offer.send_id));
  engine->release(request);

  // The known tags go on as before, and an uncounted message reaches an uncounted receive.
  for (int i = 0; i < 2; ++i)
    feed(fin_to_receiver(ids[i], large));
  auto third = offer_of(data, wire::Offer::read, 88, true);
  third.tag = 2;
  feed(third);
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(88);
  for (ReceiveRequest* each : requests) {
    EXPECT_TRUE(each->complete);
    engine->release(each);
  }
  expect_rest();
}

TEST_F(Bounded, AnAnnouncedReceiveAnswersASenderThatDoesNotCount) {
  Bytes buffer(large);
  auto& request = receive(buffer);
  expect_announcement(0, buffer);
  feed(offer_of(data, wire::Offer::read, 77, false));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Bounded, FallsBackUntilItsCommunicatorIsFreed) {
  constexpr std::uint64_t neighbour = context + 4, later = context + 8;
  EXPECT_TRUE(counts(context, 0));
  EXPECT_TRUE(counts(neighbour, 0));
  EXPECT_EQ(engine->counters().uncounted, 0u);
  EXPECT_FALSE(counts(context, 1));
  EXPECT_GT(engine->counters().uncounted, 0u);
  // Room again, but one tag has sent an uncounted message: it must never be counted.
  engine->drop_contexts(neighbour, 1, all);
  EXPECT_FALSE(counts(context, 1));
  EXPECT_FALSE(counts(context, 2));
  EXPECT_TRUE(counts(context, 0));
  EXPECT_TRUE(counts(later, 1));
  EXPECT_FALSE(counts(later, 2));
  engine->drop_contexts(context, 1, all);
  engine->drop_contexts(later, 1, all);
  EXPECT_TRUE(counts(later + 4, 1));
  EXPECT_TRUE(counts(later + 4, 2));
  expect_rest();
}

TEST_F(Bounded, ATagThatIsNotUsedAgainMakesRoom) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(counts(context, i));
    engine->drop_channel(context, i, all);
  }
  EXPECT_EQ(engine->counters().uncounted, 0u);
  expect_rest();
}

// Of a communicator's contexts and of its processes, and of no others.
TEST_F(Bounded, WhatIsDroppedIsWhatWasFreed) {
  EXPECT_TRUE(counts(context, 0));
  EXPECT_TRUE(counts(context + 1, 0));
  engine->drop_contexts(context + 2, 2, all);
  engine->drop_contexts(context, 2, engine::RankMap(0, 1, 1));
  EXPECT_FALSE(counts(context + 4, 0));
  engine->drop_contexts(context, 2, all);
  EXPECT_TRUE(counts(context + 8, 0));
  EXPECT_TRUE(counts(context + 8, 1));
  EXPECT_FALSE(counts(context + 8, 2));
  expect_rest();
}

TEST_F(Bounded, TagsOfTheLibraryAreNotAmongTheUsers) {
  for (int i = 0; i < 6; ++i) {
    const int with_tag = i < 4 ? -10 - i : i;
    SendRequest* request = send(data, with_tag);
    const auto offer = expect<wire::SenderReady>(wire::Kind::sender_ready);
    EXPECT_TRUE(offer.counted) << "tag " << with_tag;
    feed(fin_to_sender(offer.send_id));
    engine->release(request);
  }
  expect_rest();
}

} // namespace
} // namespace macadam::test
