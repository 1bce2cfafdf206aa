// SPDX-License-Identifier: BSD-3-Clause
// The rules of datagrams.
#include "devices.h"

#include <algorithm>

namespace macadam::test {
namespace {

struct Datagrams : Pair {
  explicit Datagrams(const Faults& faults = {}, std::uint64_t seed = 1) : Pair({}, faults, seed) {
    QueuePairOptions of_a = options(a), of_b = options(b);
    of_a.datagrams = of_b.datagrams = true;
    of_a.qkey = of_b.qkey = 0x1234;
    qa = a.device.make_queue_pair(of_a);
    qb = b.device.make_queue_pair(of_b);
    to = a.device.make_address_handle(b.device.address());
  }
  SendWork datagram(std::span<const Segment> segments, std::uint32_t immediate = 0) {
    SendWork result = work(Operation::send_immediate, 1, segments);
    result.immediate = immediate;
    result.to = to.get();
    result.remote_number = qb->number();
    result.remote_qkey = 0x1234;
    return result;
  }
  // Sends `count` datagrams one by one; the immediates in the order of their arrival.
  std::vector<std::uint32_t> exchange(std::uint32_t count) {
    std::vector<std::uint32_t> result;
    const auto collect = [&] {
      for (const Completion& each : Node::poll(*b.receives)) {
        result.push_back(each.immediate);
        EXPECT_TRUE(post_receive(1, b.at(0, 64)));
      }
    };
    for (int i = 0; i < 16; ++i)
      EXPECT_TRUE(post_receive(1, b.at(0, 64)));
    for (std::uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(post(datagram({}, i)), 1u);
      run(5 * sim::microsecond);
      EXPECT_EQ(Node::poll(*a.sends).size(), 1u);
      collect();
    }
    run();
    collect();
    return result;
  }
  std::unique_ptr<AddressHandle> to;
};

TEST(Datagram, arrives_behind_the_route_header) {
  Datagrams pair;
  pair.a.put(0, "request");
  ASSERT_TRUE(pair.post_receive(9, pair.b.at(0, 100)));
  const std::array from{pair.a.at(0, 7)};
  EXPECT_EQ(pair.post(pair.datagram(from)), 1u);
  pair.a.put(0, "changed"); // allowed once the send has completed; the copy was made before
  pair.run();
  const auto received = Node::poll(*pair.b.receives);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].id, 9u);
  EXPECT_EQ(received[0].bytes, datagram_header + 7);
  EXPECT_EQ(pair.b.get(datagram_header, 7), "request");
  EXPECT_EQ(Node::poll(*pair.a.sends).size(), 1u);
}

TEST(Datagram, without_a_receive_it_is_dropped_in_silence) {
  Datagrams pair;
  pair.post(pair.datagram({}));
  pair.run();
  EXPECT_EQ(Node::poll(*pair.a.sends).at(0).status, WorkStatus::ok);
  EXPECT_EQ(pair.fabric.counters.datagrams_dropped, 1u);
}

TEST(Datagram, a_wrong_key_or_number_or_port_reaches_nobody) {
  Datagrams pair;
  ASSERT_TRUE(pair.post_receive(9, pair.b.at(0, 100)));
  SendWork wrong_key = pair.datagram({});
  wrong_key.remote_qkey = 1;
  SendWork wrong_number = pair.datagram({});
  wrong_number.remote_number += 1;
  SendWork wrong_port = pair.datagram({});
  const auto nowhere = pair.a.device.make_address_handle({{}, 77});
  wrong_port.to = nowhere.get();
  const std::array all{wrong_key, wrong_number, wrong_port};
  EXPECT_EQ(pair.qa->post(all), 3u);
  pair.run();
  EXPECT_TRUE(Node::poll(*pair.b.receives).empty());
  EXPECT_EQ(pair.fabric.counters.datagrams_dropped, 3u);
}

TEST(Datagram, longer_than_the_mtu_is_refused) {
  Datagrams pair;
  const std::array from{pair.a.at(0, 2049)};
  EXPECT_NE(error_of([&] { pair.post(pair.datagram(from)); }).find("2049 bytes, the most are 2048"),
            std::string::npos);
}

TEST(Datagram, some_are_lost_by_chance) {
  Faults faults;
  faults.datagram_loss = 0.3;
  Datagrams pair(faults);
  const auto arrived = pair.exchange(300);
  EXPECT_EQ(arrived.size() + pair.fabric.counters.datagrams_lost, 300u);
  EXPECT_GT(pair.fabric.counters.datagrams_lost, 60u);
  EXPECT_LT(pair.fabric.counters.datagrams_lost, 120u);
  EXPECT_TRUE(std::is_sorted(arrived.begin(), arrived.end()));
}

TEST(Datagram, some_come_twice) {
  Faults faults;
  faults.datagram_duplication = 0.3;
  Datagrams pair(faults);
  const auto arrived = pair.exchange(300);
  EXPECT_EQ(arrived.size(), 300 + pair.fabric.counters.datagrams_duplicated);
  EXPECT_GT(pair.fabric.counters.datagrams_duplicated, 60u);
}

TEST(Datagram, some_are_overtaken) {
  Faults faults;
  faults.datagram_reordering = 0.3;
  Datagrams pair(faults);
  auto arrived = pair.exchange(300);
  EXPECT_EQ(arrived.size(), 300u);
  EXPECT_FALSE(std::is_sorted(arrived.begin(), arrived.end()));
  std::sort(arrived.begin(), arrived.end());
  EXPECT_EQ(std::unique(arrived.begin(), arrived.end()), arrived.end());
}

} // namespace
} // namespace macadam::test
