// SPDX-License-Identifier: BSD-3-Clause
// EAGER messages that the transport delivers in fragments (engine/fragments.cc).
#include "one_engine.h"

namespace macadam::test {
namespace {

class InParts : public OneEngine {
 protected:
  // Header and the first `first` bytes of the payload.
  template <class Header>
  void feed_first(const Header& header, const Bytes& data, std::size_t first, Rank from = other) {
    const auto* start = reinterpret_cast<const std::byte*>(&header);
    Bytes fragment(start, start + sizeof header);
    fragment.insert(fragment.end(), data.begin(),
                    data.begin() + static_cast<std::ptrdiff_t>(first));
    net.incoming.push_back([=, rest = data.size() - first](engine::Sink& sink) {
      sink.on_first_fragment(from, fragment.data(), fragment.size(), rest);
    });
    progress();
  }
  void feed_first(const Bytes& data, std::size_t first, Rank from = other) {
    feed_first(eager_header(tag, from), data, first, from);
  }
  void feed_next(const Bytes& data, std::size_t begin, std::size_t end, Rank from = other) {
    const Bytes fragment(data.begin() + static_cast<std::ptrdiff_t>(begin),
                         data.begin() + static_cast<std::ptrdiff_t>(end));
    net.incoming.push_back(
        [=](engine::Sink& sink) { sink.on_next_fragment(from, fragment.data(), fragment.size()); });
    progress();
  }
};

TEST_F(InParts, ReceiverEarly) {
  const Bytes data = pattern(900);
  Bytes buffer(900);
  auto& request = receive(buffer);
  feed_first(data, 300);
  EXPECT_FALSE(request.complete);
  feed_next(data, 300, 600);
  EXPECT_FALSE(request.complete);
  feed_next(data, 600, 900);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(InParts, ReceivePostedBetweenTheParts) {
  const Bytes data = pattern(900);
  feed_first(data, 300);
  feed_next(data, 300, 600);
  Bytes buffer(900);
  auto& request = receive(buffer);
  EXPECT_FALSE(request.complete);
  feed_next(data, 600, 900);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(InParts, SenderEarly) {
  const Bytes data = pattern(900);
  feed_first(data, 300);
  feed_next(data, 300, 900);
  EXPECT_EQ(engine->counters().unexpected, 1u);
  Bytes buffer(900);
  expect_received(receive(buffer), buffer, data);
  expect_rest();
}

TEST_F(InParts, MatchedProbeBetweenTheParts) {
  const Bytes data = pattern(900);
  feed_first(data, 300);
  engine::Message* message = engine->match_probe({context, other, tag});
  ASSERT_NE(message, nullptr);
  EXPECT_EQ(message->bytes, 900u);
  feed_next(data, 300, 500);
  Bytes buffer(900);
  auto& request = *engine->receive_matched(*message, describe(buffer));
  EXPECT_FALSE(request.complete);
  feed_next(data, 500, 900);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(InParts, MatchedProbeReceivedAfterTheLastPart) {
  const Bytes data = pattern(900);
  feed_first(data, 300);
  engine::Message* message = engine->match_probe({context, other, tag});
  ASSERT_NE(message, nullptr);
  feed_next(data, 300, 900);
  Bytes buffer(900);
  expect_received(*engine->receive_matched(*message, describe(buffer)), buffer, data);
  expect_rest();
}

TEST_F(InParts, TruncatedInsideAPart) {
  const Bytes data = pattern(900);
  Bytes buffer(500);
  auto& request = receive(buffer);
  feed_first(data, 300);
  feed_next(data, 300, 600);
  feed_next(data, 600, 900);
  EXPECT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
  EXPECT_EQ(request.status.bytes, 500u);
  EXPECT_EQ(buffer, Bytes(data.begin(), data.begin() + 500));
  engine->release(&request);
  expect_rest();
}

TEST_F(InParts, SynchronousIsAcknowledgedOnceMatched) {
  const Bytes data = pattern(900);
  const wire::EagerSynchronous header{.eager = {.kind = wire::Kind::eager_synchronous,
                                                .tag = tag,
                                                .source = static_cast<std::int32_t>(other),
                                                .context_low = context},
                                      .send_id_low = 42,
                                      .send_id_high = 1};
  feed_first(header, data, 300);
  expect_rest();
  Bytes buffer(900);
  auto& request = receive(buffer);
  EXPECT_EQ(expect<wire::Fin>(wire::Kind::fin_to_sender).id, std::uint64_t{1} << 32 | 42);
  feed_next(data, 300, 900);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(InParts, OfTwoPeersAtOnce) {
  const Bytes one = pattern(900, 1), two = pattern(700, 2);
  Bytes buffer_one(900), buffer_two(700);
  auto& request_two = receive(buffer_two, 2);
  feed_first(one, 300, 1);
  feed_first(two, 100, 2);
  feed_next(one, 300, 600, 1);
  auto& request_one = receive(buffer_one, 1);
  feed_next(two, 100, 700, 2);
  EXPECT_TRUE(request_two.complete);
  EXPECT_EQ(request_two.status.source, 2);
  EXPECT_EQ(buffer_two, two);
  engine->release(&request_two);
  feed_next(one, 600, 900, 1);
  expect_received(request_one, buffer_one, one);
  expect_rest();
}

TEST_F(InParts, TooLateToCancel) {
  const Bytes data = pattern(900);
  Bytes buffer(900);
  auto& request = receive(buffer);
  feed_first(data, 300);
  engine->cancel(request);
  EXPECT_FALSE(request.complete);
  feed_next(data, 300, 900);
  EXPECT_FALSE(request.status.cancelled);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(InParts, PeerFailsInBetween) {
  const Bytes data = pattern(900);
  Bytes buffer(900);
  auto& request = receive(buffer);
  feed_first(data, 300);
  feed_first(data, 300, 2);
  engine::Message* message = engine->match_probe({context, 2, tag});
  ASSERT_NE(message, nullptr);
  feed_state(other, PeerState::failed);
  EXPECT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_PROC_ABORTED);
  engine->release(&request);
  feed_state(2, PeerState::failed);
  auto& late = *engine->receive_matched(*message, describe(buffer));
  EXPECT_TRUE(late.complete);
  EXPECT_EQ(late.status.error, MPI_ERR_PROC_ABORTED);
  engine->release(&late);
  expect_rest();
}

} // namespace
} // namespace macadam::test
