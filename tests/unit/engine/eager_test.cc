// SPDX-License-Identifier: BSD-3-Clause
// EAGER (Small & Yuan, Figure 1): small messages, whoever is early.
#include "one_engine.h"

namespace macadam::test {
namespace {

class Eager : public OneEngine {};

TEST_F(Eager, SendLeavesAtOnceUpToTheThreshold) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, net.eager}) {
    const Bytes data = pattern(bytes);
    EXPECT_EQ(send(data), nullptr);
    EXPECT_EQ(expect_eager(), data);
  }
  EXPECT_EQ(engine->counters().eager_sent, 3u);
  expect_rest();
}

TEST_F(Eager, OneByteMoreIsNotEager) {
  const Bytes data = pattern(net.eager + 1);
  EXPECT_EQ(send(data), nullptr);
  const auto ready = expect_offer(wire::Offer::hybrid);
  feed(fin_to_sender(ready.send_id));
  expect_rest();
}

TEST_F(Eager, ReceiverEarly) {
  const Bytes data = pattern(small);
  Bytes buffer(small);
  auto& request = receive(buffer);
  EXPECT_FALSE(request.complete);
  feed_eager(data);
  expect_received(request, buffer, data);
  expect_rest();
}

TEST_F(Eager, SenderEarly) {
  const Bytes data = pattern(small);
  feed_eager(data);
  EXPECT_EQ(engine->counters().unexpected, 1u);
  Bytes buffer(small);
  expect_received(receive(buffer), buffer, data);
  expect_rest();
}

TEST_F(Eager, NoData) {
  Bytes buffer;
  auto& early = receive(buffer);
  feed_eager({});
  expect_received(early, buffer, {});
  feed_eager({});
  expect_received(receive(buffer), buffer, {});
  expect_rest();
}

// Within the time of a test; not if each that is taken down looked at all that are left.
TEST_F(Eager, ManyReceivesMayBeLeftAtTheEnd) {
  Bytes buffer(small);
  for (int i = 0; i < 100'000; ++i)
    receive(buffer, other, i);
  engine.reset();
}

TEST_F(Eager, MessagesOfOneSenderMatchInOrder) {
  for (int i = 0; i < 3; ++i)
    feed_eager(pattern(small, i));
  for (int i = 0; i < 3; ++i) {
    Bytes buffer(small);
    expect_received(receive(buffer), buffer, pattern(small, i));
  }
  expect_rest();
}

TEST_F(Eager, TagAndContextSelect) {
  Bytes first(small), second(small);
  auto& wrong_tag = receive(first, other, tag + 1);
  feed_eager(pattern(small));
  EXPECT_FALSE(wrong_tag.complete);
  wire::Eager elsewhere = eager_header(tag + 1);
  elsewhere.context_high = 1;
  feed(elsewhere, pattern(small));
  EXPECT_FALSE(wrong_tag.complete);
  expect_received(receive(second), second, pattern(small));
  feed_eager(pattern(small, 2), tag + 1);
  expect_received(wrong_tag, first, pattern(small, 2));
  expect_rest();
}

TEST_F(Eager, SynchronousSendWaitsForItsMatch) {
  const Bytes data = pattern(small);
  SendRequest* request = send(data, tag, SendMode::synchronous);
  ASSERT_NE(request, nullptr);
  Bytes payload;
  const auto header =
      expect<wire::EagerSynchronous>(wire::Kind::eager_synchronous, other, &payload);
  EXPECT_EQ(payload, data);
  EXPECT_FALSE(request->complete);
  feed(fin_to_sender(std::uint64_t{header.send_id_high} << 32 | header.send_id_low));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  expect_rest();
}

TEST_F(Eager, SynchronousMessageIsAcknowledgedWhenMatched) {
  wire::EagerSynchronous header{.eager = eager_header(), .send_id_low = 3, .send_id_high = 1};
  header.eager.kind = wire::Kind::eager_synchronous;
  const Bytes data = pattern(small);
  Bytes buffer(small);
  auto& early = receive(buffer);
  feed(header, data);
  expect_fin_to_sender(std::uint64_t{1} << 32 | 3);
  expect_received(early, buffer, data);

  feed(header, data);
  expect_nothing(); // not yet matched
  auto& late = receive(buffer);
  expect_fin_to_sender(std::uint64_t{1} << 32 | 3);
  expect_received(late, buffer, data);
  expect_rest();
}

TEST_F(Eager, LongerThanTheReceive) {
  const Bytes data = pattern(small);
  for (const bool receiver_early : {true, false}) {
    Bytes memory(small, std::byte{0xee});
    const engine::Data room{memory.data(), 40, &types[MPI_BYTE]};
    if (!receiver_early) feed_eager(data);
    auto& request = *engine->receive(&engine->peer(other), {context, other, tag}, room);
    if (receiver_early) feed_eager(data);
    ASSERT_TRUE(request.complete);
    EXPECT_EQ(request.status.error, MPI_ERR_TRUNCATE);
    EXPECT_EQ(request.status.bytes, 40u);
    EXPECT_EQ(Bytes(memory.begin(), memory.begin() + 40), Bytes(data.begin(), data.begin() + 40));
    EXPECT_EQ(Bytes(memory.begin() + 40, memory.end()), Bytes(60, std::byte{0xee}));
    engine->release(&request);
  }
  expect_rest();
}

// 2 of every 4 bytes.
class Noncontiguous : public OneEngine {
 protected:
  Noncontiguous() {
    pairs = datatype::resized(*datatype::contiguous(2, types[MPI_BYTE]), 0, 4);
    pairs->commit();
  }
  static Bytes spread(const Bytes& data) {
    Bytes memory(2 * data.size(), std::byte{0xee});
    for (std::size_t i = 0; i < data.size(); ++i)
      memory[i / 2 * 4 + i % 2] = data[i];
    return memory;
  }
  engine::Data describe_noncontiguous(Bytes& memory) {
    return {memory.data(), static_cast<MPI_Count>(memory.size() / 4), pairs.get()};
  }
  datatype::TypeRef pairs;
};

TEST_F(Noncontiguous, ArePackedAndUnpackedInEveryProtocol) {
  for (const std::size_t bytes : {small, medium, large}) {
    const Bytes data = pattern(bytes);
    Bytes memory = spread(data);
    SendRequest* request = engine->send(engine->peer(other), {context, 0, tag},
                                        describe_noncontiguous(memory), SendMode::standard);
    if (bytes == small) {
      EXPECT_EQ(expect_eager(), data);
    } else {
      const auto ready = expect_offer(bytes == medium ? wire::Offer::hybrid : wire::Offer::read);
      EXPECT_EQ(std::memcmp(reinterpret_cast<const void*>(ready.memory.address), data.data(),
                            data.size()),
                0);
      feed(fin_to_sender(ready.send_id));
    }
    if (request != nullptr) {
      EXPECT_TRUE(request->complete);
      engine->release(request);
    }

    const Bytes untouched = spread(data);
    memory.assign(memory.size(), std::byte{0xee});
    if (bytes == small)
      feed_eager(data);
    else
      feed(offer_of(data, wire::Offer::read));
    auto& got = *engine->receive(&engine->peer(other), {context, other, tag},
                                 describe_noncontiguous(memory));
    if (bytes != small) {
      expect_get({reinterpret_cast<std::uintptr_t>(data.data()), 5}, bytes);
      expect_fin_to_sender(77);
    }
    ASSERT_TRUE(got.complete);
    EXPECT_EQ(memory, untouched);
    engine->release(&got);
  }
  expect_rest();
}

// Data that cannot be kept are lost: the receive that matches them says so, and those behind are
// received.
TEST_F(Eager, MessageWithoutMemoryIsAnErrorOfItsReceive) {
  const auto header = eager_header();
  net.incoming.push_back([&](engine::Sink& sink) {
    sink.on_first_fragment(other, reinterpret_cast<const std::byte*>(&header), sizeof header,
                           std::size_t{1} << 60);
  });
  progress();
  net.incoming.push_back([&](engine::Sink& sink) { // nobody looks at its data
    sink.on_next_fragment(other, nullptr, std::size_t{1} << 60);
  });
  progress();
  const Bytes data = pattern(small);
  feed_eager(data);
  Bytes buffers[] = {Bytes(small), Bytes(small)};
  ReceiveRequest& lost = receive(buffers[0]);
  ASSERT_TRUE(lost.complete);
  EXPECT_EQ(lost.status.error, MPI_ERR_NO_MEM);
  engine->release(&lost);
  expect_received(receive(buffers[1]), buffers[1], data);
  EXPECT_EQ(engine->failure(), nullptr);
  expect_rest();
}

} // namespace
} // namespace macadam::test
