// SPDX-License-Identifier: BSD-3-Clause
// What the engine does when the network can register no more memory.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Unregistered : public OneEngine {
 protected:
  Unregistered() { net.unregistered = true; }
};

TEST_F(Unregistered, ReceiveDoesNotAnnounceItself) {
  Bytes buffer(large);
  ReceiveRequest& request = receive(buffer);
  expect_nothing();
  EXPECT_EQ(engine->counters().announcements, 0u);
  EXPECT_EQ(engine->counters().unregistered, 1u);
  // The offered data are fetched, which needs no name.
  const Bytes data = pattern(large);
  net.gets = Posted::done;
  feed(offer_of(data, wire::Offer::read));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Unregistered, SendIsOfferedInTheWriteForm) {
  const Bytes data = pattern(large);
  SendRequest* const request = send(data);
  const auto offer = expect_offer(wire::Offer::write);
  EXPECT_EQ(engine->counters().send_rndv_write, 1u);
  feed(wire::ReceiverReady{.answers = true,
                           .tag = tag,
                           .context = context,
                           .receive_id = 500,
                           .send_id = offer.send_id,
                           .capacity = large,
                           .memory = {0x1000, 6}});
  expect_put(data, {0x1000, 6});
  expect_fin_to_receiver(500, large);
  ASSERT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Unregistered, ReceiverPullsFragments) {
  const Bytes data = pattern(large);
  Bytes buffer(large + 10);
  ReceiveRequest& request = receive(buffer);
  feed(offer_of(data, wire::Offer::write));
  std::size_t at = 0;
  for (const std::size_t bytes : {std::size_t{4000}, large - 4000 - 1, std::size_t{1}}) {
    const auto pull = expect<wire::Pull>(wire::Kind::pull);
    EXPECT_EQ(pull.send_id, 77u);
    EXPECT_EQ(pull.offset, at);
    EXPECT_FALSE(request.complete);
    const auto from = data.begin() + static_cast<std::ptrdiff_t>(at);
    feed(wire::Fragment{.receive_id = pull.receive_id},
         Bytes(from, from + static_cast<std::ptrdiff_t>(bytes)));
    at += bytes;
  }
  expect_fin_to_sender(77);
  EXPECT_EQ(engine->counters().pulled, 1u);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Unregistered, PulledMessageIsTruncated) {
  const Bytes data = pattern(large);
  Bytes buffer(5000);
  ReceiveRequest& request = receive(buffer);
  feed(offer_of(data, wire::Offer::write));
  const auto first = expect<wire::Pull>(wire::Kind::pull);
  feed(wire::Fragment{.receive_id = first.receive_id}, Bytes(data.begin(), data.begin() + 4000));
  EXPECT_EQ(expect<wire::Pull>(wire::Kind::pull).offset, 4000u);
  feed(wire::Fragment{.receive_id = first.receive_id}, Bytes(data.begin() + 4000, data.end()));
  expect_fin_to_sender(77);
  ASSERT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
  EXPECT_EQ(buffer, Bytes(data.begin(), data.begin() + 5000));
  engine->release(&request);
  expect_rest();
}

TEST_F(Unregistered, SenderAnswersWithAsMuchAsAMessageTakes) {
  const Bytes data = pattern(large);
  SendRequest* const request = send(data);
  const auto offer = expect_offer(wire::Offer::write);
  Bytes got;
  while (got.size() < large && !HasFailure()) {
    feed(wire::Pull{.send_id = offer.send_id, .receive_id = 500, .offset = got.size()});
    Bytes fragment;
    EXPECT_EQ(expect<wire::Fragment>(wire::Kind::fragment, other, &fragment).receive_id, 500u);
    EXPECT_EQ(fragment.size(),
              std::min(large - got.size(), net.limits().message - sizeof(wire::Fragment)));
    got.insert(got.end(), fragment.begin(), fragment.end());
  }
  EXPECT_EQ(got, data);
  EXPECT_FALSE(request->complete);
  feed(fin_to_sender(offer.send_id));
  ASSERT_TRUE(request->complete);
  engine->release(request);
  feed(wire::Pull{.send_id = offer.send_id, .receive_id = 500, .offset = 0}); // names nothing
  expect_rest();
}

TEST_F(Unregistered, FragmentWaitsForRoom) {
  const Bytes data = pattern(large);
  SendRequest* const request = send(data);
  const auto offer = expect_offer(wire::Offer::write);
  net.busy = true;
  feed(wire::Pull{.send_id = offer.send_id, .receive_id = 500, .offset = 8990});
  expect_nothing();
  net.busy = false;
  progress();
  Bytes fragment;
  expect<wire::Fragment>(wire::Kind::fragment, other, &fragment);
  EXPECT_EQ(fragment, Bytes(data.begin() + 8990, data.end()));
  feed(fin_to_sender(offer.send_id));
  engine->release(request);
  expect_rest();
}

TEST_F(Unregistered, PeerFailsWhileItsMessageIsPulled) {
  Bytes buffer(large);
  ReceiveRequest& request = receive(buffer);
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::write));
  const auto pull = expect<wire::Pull>(wire::Kind::pull);
  feed_state(other, PeerState::failed);
  ASSERT_TRUE(request.complete);
  EXPECT_EQ(request.status.error, MPI_ERR_PROC_ABORTED);
  engine->release(&request);
  feed(wire::Fragment{.receive_id = pull.receive_id}, Bytes(10)); // names nothing
  expect_rest();
}

} // namespace
} // namespace macadam::test
