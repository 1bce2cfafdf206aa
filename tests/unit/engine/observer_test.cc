// SPDX-License-Identifier: BSD-3-Clause
// What an observer of an engine is told, for each protocol and for both ends of a message.
#include "one_engine.h"

#include <tuple>

namespace macadam::test {
namespace {

using engine::Protocol;
using engine::Step;
using Kind = Step::Kind;

class Recording final : public engine::Observer {
 public:
  void on_step(const Step& step) noexcept override { steps.push_back(step); }
  std::vector<Step> steps;
};

class Observed : public OneEngine {
 protected:
  Observed() {
    engine.reset();
    engine = std::make_unique<engine::Engine>(net, Rank{4}, settings, &observer);
  }
  ~Observed() override { engine.reset(); }

  void expect_steps(const std::vector<std::tuple<Kind, Protocol, std::uint64_t>>& expected) {
    std::vector<std::tuple<Kind, Protocol, std::uint64_t>> seen;
    for (const Step& step : observer.steps) {
      EXPECT_EQ(step.peer, other);
      if (step.kind == Kind::connecting || step.kind == Kind::connected) continue;
      seen.emplace_back(step.kind, step.protocol, step.bytes);
      EXPECT_EQ(step.context, context);
      EXPECT_EQ(step.tag, tag);
    }
    EXPECT_EQ(seen, expected);
  }

  Recording observer;
};

TEST_F(Observed, EveryProtocolOfASender) {
  EXPECT_EQ(send(pattern(small)), nullptr);
  EXPECT_EQ(expect_eager().size(), small);
  EXPECT_EQ(send(pattern(medium)), nullptr);
  const auto copy = expect_offer(wire::Offer::hybrid);
  SendRequest* const offered = send(pattern(large));
  const auto ready = expect_offer(wire::Offer::read);
  feed(fin_to_sender(copy.send_id)); // its sender has gone on long ago
  feed(fin_to_sender(ready.send_id));
  EXPECT_TRUE(offered->complete);
  engine->release(offered);
  feed(announcement(3));
  EXPECT_EQ(send(pattern(large)), nullptr);
  net.done.clear(); // the put and its FIN
  expect_steps({{Kind::sent, Protocol::eager, small},
                {Kind::sent, Protocol::hybrid, medium},
                {Kind::sent, Protocol::send_rndv, large},
                {Kind::fin_arrived, Protocol::eager, medium},
                {Kind::finished, Protocol::eager, medium},
                {Kind::fin_arrived, Protocol::eager, large},
                {Kind::released, Protocol::eager, large},
                {Kind::finished, Protocol::eager, large},
                {Kind::announcement, Protocol::recv_rndv, large},
                {Kind::sent, Protocol::recv_rndv, large},
                {Kind::data, Protocol::eager, large},
                {Kind::fin_sent, Protocol::eager, large},
                {Kind::finished, Protocol::eager, large}});
  EXPECT_EQ(observer.steps.back().ordinal, 3u);
}

TEST_F(Observed, AnAnnouncementThatCrosses) {
  SendRequest* const request = send(pattern(large));
  expect_offer(wire::Offer::read);
  feed(announcement(0));
  EXPECT_TRUE(request->complete);
  engine->release(request);
  net.done.clear();
  expect_steps({{Kind::sent, Protocol::send_rndv, large},
                {Kind::announcement, Protocol::recv_rndv, large},
                {Kind::crossed, Protocol::recv_rndv, large},
                {Kind::data, Protocol::eager, large},
                {Kind::fin_sent, Protocol::eager, large},
                {Kind::finished, Protocol::eager, large}});
}

TEST_F(Observed, MessagesBeforeAndAfterTheirReceive) {
  feed_eager(pattern(small));
  Bytes to(small);
  ReceiveRequest& late = receive(to);
  EXPECT_TRUE(late.complete);
  engine->release(&late);
  ReceiveRequest& early = receive(to);
  feed_eager(pattern(small));
  EXPECT_TRUE(early.complete);
  EXPECT_EQ(to, pattern(small));
  engine->release(&early);
  expect_steps({{Kind::kept, Protocol::eager, small},
                {Kind::taken, Protocol::eager, small},
                {Kind::matched, Protocol::eager, small}});
  const auto ordinal = [&](std::size_t from_the_end) {
    return observer.steps[observer.steps.size() - from_the_end].ordinal;
  };
  EXPECT_EQ(ordinal(3), Step::uncounted);
  EXPECT_EQ(ordinal(2), 0u);
  EXPECT_EQ(ordinal(1), 1u);
}

TEST_F(Observed, AWriteToAnAnnouncedReceive) {
  Bytes to(large);
  ReceiveRequest& request = receive(to);
  const auto ready = expect<wire::ReceiverReady>(wire::Kind::receiver_ready);
  feed(fin_to_receiver(ready.receive_id, large));
  EXPECT_TRUE(request.complete);
  engine->release(&request);
  expect_steps({{Kind::announced, Protocol::recv_rndv, large},
                {Kind::fin_arrived, Protocol::eager, 0},
                {Kind::matched, Protocol::recv_rndv, large},
                {Kind::finished, Protocol::eager, large}});
}

TEST_F(Observed, ShortPathsMayBeOpen) {
  EXPECT_EQ(send(pattern(small)), nullptr);
  engine->observe_short(false);
  EXPECT_EQ(send(pattern(small)), nullptr);
  feed_eager(pattern(small));
  net.done.clear();
  EXPECT_EQ(send(pattern(medium)), nullptr);
  const auto copy = expect_offer(wire::Offer::hybrid);
  engine->observe_short(true);
  EXPECT_EQ(send(pattern(small)), nullptr);
  net.done.clear();
  expect_steps({{Kind::sent, Protocol::eager, small},
                {Kind::sent, Protocol::hybrid, medium},
                {Kind::sent, Protocol::eager, small}});
  EXPECT_EQ(observer.steps.back().ordinal, 3u); // all are counted
  feed(fin_to_sender(copy.send_id));            // for its copy
}

} // namespace
} // namespace macadam::test
