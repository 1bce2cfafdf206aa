// SPDX-License-Identifier: BSD-3-Clause
// Table 1 of Small & Yuan, row by row, from the sender's side, which decides: size of the message
// and early party give the protocol. "Both" means that the announcement was under way when the send
// began.
#include "one_engine.h"

namespace macadam::test {
namespace {

enum class Early { sender, receiver, both };

struct Row {
  const char* name;
  std::size_t bytes;
  Early early;
  enum { eager, hybrid, send_rndv, recv_rndv } protocol;
};

class Table1 : public OneEngine, public testing::WithParamInterface<Row> {};

TEST_P(Table1, Sender) {
  const Row row = GetParam();
  const Bytes data = pattern(row.bytes);
  const auto ready = announcement(0);
  if (row.early == Early::receiver) feed(ready);
  SendRequest* request = send(data);
  if (row.early == Early::both) feed(ready);

  switch (row.protocol) {
  case Row::eager:
    EXPECT_EQ(request, nullptr);
    EXPECT_EQ(expect_eager(), data);
    break;
  case Row::hybrid: {
    EXPECT_EQ(request, nullptr); // the sender leaves at once
    const auto offer = expect_offer(wire::Offer::hybrid);
    EXPECT_EQ(offer.bytes, data.size());
    EXPECT_NE(offer.memory.address, reinterpret_cast<std::uintptr_t>(data.data()));
    EXPECT_FALSE(engine->quiet()); // the copy is still to be read
    feed(fin_to_sender(offer.send_id));
    break;
  }
  case Row::send_rndv: {
    ASSERT_NE(request, nullptr);
    const auto offer = expect_offer(wire::Offer::read);
    EXPECT_EQ(offer.memory.address, reinterpret_cast<std::uintptr_t>(data.data()));
    EXPECT_FALSE(request->complete);
    feed(fin_to_sender(offer.send_id));
    break;
  }
  case Row::recv_rndv:
    if (row.early == Early::both) expect_offer(wire::Offer::read);
    expect_put(data, ready.memory);
    expect_fin_to_receiver(ready.receive_id, data.size());
    break;
  }
  if (request != nullptr) {
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }

  const auto& count = engine->counters();
  EXPECT_EQ(count.eager_sent, row.protocol == Row::eager ? 1u : 0u);
  EXPECT_EQ(count.hybrid_sent, row.protocol == Row::hybrid ? 1u : 0u);
  EXPECT_EQ(count.send_rndv_read, row.protocol == Row::send_rndv ? 1u : 0u);
  EXPECT_EQ(count.recv_rndv, row.protocol == Row::recv_rndv ? 1u : 0u);
  if (row.protocol != Row::eager) {
    const bool crossed = row.early == Early::both && row.protocol == Row::recv_rndv;
    EXPECT_EQ(count.receiver_early, row.early == Early::receiver ? 1u : 0u);
    EXPECT_EQ(count.both, crossed ? 1u : 0u);
    EXPECT_EQ(count.sender_early, row.early != Early::receiver && !crossed ? 1u : 0u);
  }
  expect_rest();
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Table1,
    testing::Values(Row{"SmallSenderEarly", 1024, Early::sender, Row::eager},
                    Row{"SmallReceiverEarly", 1024, Early::receiver, Row::eager},
                    Row{"SmallBoth", 1024, Early::both, Row::eager},
                    Row{"MediumSenderEarly", 1025, Early::sender, Row::hybrid},
                    Row{"MediumReceiverEarly", 1025, Early::receiver, Row::recv_rndv},
                    Row{"MediumBoth", 1025, Early::both, Row::hybrid},
                    Row{"LongestMediumSenderEarly", 4096, Early::sender, Row::hybrid},
                    Row{"LongestMediumReceiverEarly", 4096, Early::receiver, Row::recv_rndv},
                    Row{"LongestMediumBoth", 4096, Early::both, Row::hybrid},
                    Row{"LargeSenderEarly", 4097, Early::sender, Row::send_rndv},
                    Row{"LargeReceiverEarly", 4097, Early::receiver, Row::recv_rndv},
                    Row{"LargeBoth", 4097, Early::both, Row::recv_rndv}),
    [](const auto& row) { return row.param.name; });

// The receiver's side of the same rows: what it does when it comes first, and when it comes late.
class Receiver : public OneEngine {};

TEST_F(Receiver, AnnouncesEverythingLongerThanEager) {
  Bytes short_buffer(net.eager), medium_buffer(net.eager + 1), large_buffer(large);
  engine->release(&receive(short_buffer));
  expect_nothing();
  auto& medium_receive = receive(medium_buffer);
  auto& large_receive = receive(large_buffer);
  const auto second = expect_announcement(1, medium_buffer);
  const auto third = expect_announcement(2, large_buffer);
  feed_eager(pattern(8));
  expect_nothing();
  // The sender writes; FIN says that all is there.
  std::memcpy(medium_buffer.data(), pattern(1025).data(), 1025);
  feed(fin_to_receiver(second.receive_id, 1025));
  expect_received(medium_receive, medium_buffer, pattern(1025));
  std::memcpy(large_buffer.data(), pattern(5000).data(), 5000);
  feed(fin_to_receiver(third.receive_id, 5000));
  expect_received(large_receive, large_buffer, pattern(5000));
  expect_rest();
}

TEST_F(Receiver, LateForHybridReadsAndThanks) {
  const Bytes data = pattern(medium);
  feed(offer_of(data, wire::Offer::hybrid));
  Bytes buffer(medium);
  auto& request = receive(buffer);
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, medium);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Receiver, LateForLargeReads) {
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::read));
  Bytes buffer(large);
  net.gets = Posted::pending;
  auto& request = receive(buffer);
  const Operation get = expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, large);
  EXPECT_FALSE(request.complete);
  expect_nothing(); // no FIN before the data are here
  net.fetch(get);
  feed_completion(get.cookie);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Receiver, LateForLargeAnswersInTheWriteForm) {
  const Bytes data = pattern(large);
  feed(offer_of(data, wire::Offer::write));
  Bytes buffer(large);
  auto& request = receive(buffer);
  const auto answer = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
  EXPECT_EQ(answer.send_id, 77u);
  EXPECT_EQ(answer.capacity, large);
  EXPECT_EQ(answer.memory.address, reinterpret_cast<std::uintptr_t>(buffer.data()));
  std::memcpy(buffer.data(), data.data(), data.size());
  feed(fin_to_receiver(answer.receive_id, large));
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Receiver, BothWithHybridReadsAndForgetsItsAnnouncement) {
  const Bytes data = pattern(medium);
  Bytes buffer(large);
  auto& request = receive(buffer);
  const auto announced = expect_announcement(0, buffer);
  feed(offer_of(data, wire::Offer::hybrid));
  expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, medium);
  expect_fin_to_sender(77);
  expect_received(request, buffer, data);
  feed(fin_to_receiver(announced.receive_id, medium)); // names nothing any more
  expect_rest();
}

TEST_F(Receiver, BothWithLargeIgnoresTheOffer) {
  for (const auto how : {wire::Offer::read, wire::Offer::write}) {
    const Bytes data = pattern(large);
    Bytes buffer(large);
    auto& request = receive(buffer);
    const auto announced = expect_announcement(how == wire::Offer::read ? 0 : 1, buffer);
    feed(offer_of(data, how));
    expect_nothing(); // the sender will use the announcement
    EXPECT_FALSE(request.complete);
    std::memcpy(buffer.data(), data.data(), data.size());
    feed(fin_to_receiver(announced.receive_id, large));
    expect_received(request, buffer, data);
  }
  expect_rest();
}

// The traditional pair: nothing but EAGER and sender-initiated rendezvous.
class Sender : public OneEngine {
 protected:
  Sender() {
    base::Settings wanted;
    wanted.protocols = base::Protocols::sender;
    start(wanted);
  }
};

TEST_F(Sender, SettingMeansNoAnnouncementsAndNoHybrid) {
  Bytes buffer(large);
  auto& posted = receive(buffer);
  expect_nothing();
  feed(announcement(0)); // a peer that has the other setting
  for (const std::size_t bytes : {medium, large}) {
    const Bytes data = pattern(bytes);
    SendRequest* request = send(data);
    ASSERT_NE(request, nullptr);
    const auto offer = expect_offer(wire::Offer::read);
    EXPECT_FALSE(offer.counted);
    feed(fin_to_sender(offer.send_id));
    EXPECT_TRUE(request->complete);
    engine->release(request);
  }
  feed_eager(pattern(small));
  expect_received(posted, buffer, pattern(small));
  expect_rest();
}

} // namespace
} // namespace macadam::test
