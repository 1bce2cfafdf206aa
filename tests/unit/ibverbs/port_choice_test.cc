// SPDX-License-Identifier: BSD-3-Clause
// Which port and which address: from lists of facts as machines have them.
#include "net/rdma/ibverbs/port_choice.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace macadam::test {
namespace {

using namespace macadam::net::rdma::ibverbs;

Gid gid(std::uint32_t index, GidKind kind, std::array<std::uint8_t, 16> bytes) {
  return {.index = index, .kind = kind, .bytes = bytes};
}
std::array<std::uint8_t, 16> ipv4(std::uint8_t last) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 2, last};
}
std::array<std::uint8_t, 16> link_local(std::uint8_t last) {
  return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}
std::array<std::uint8_t, 16> ipv6(std::uint8_t last) {
  return {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

PortFacts active(const std::string& device, double gigabits) {
  PortFacts facts;
  facts.device = device;
  facts.state = "active";
  facts.active = true;
  facts.mtu = 5;
  facts.message = 1 << 30;
  facts.gigabits = gigabits;
  return facts;
}

// As soft-RoCE or a RoCE adapter has it: both kinds, for its link-local and its IPv4 address.
PortFacts roce(const std::string& device, double gigabits = 100) {
  PortFacts port = active(device, gigabits);
  port.layer = LinkLayer::ethernet;
  port.global = true;
  port.gids = {gid(0, GidKind::roce_v1, link_local(1)), gid(1, GidKind::roce_v2, link_local(1)),
               gid(2, GidKind::roce_v1, ipv4(15)), gid(3, GidKind::roce_v2, ipv4(15))};
  return port;
}
PortFacts infiniband(const std::string& device, std::uint8_t port, double gigabits = 100) {
  PortFacts facts = active(device, gigabits);
  facts.number = port;
  facts.lid = 7;
  facts.gids = {gid(0, GidKind::infiniband, link_local(9))};
  facts.gids[0].bytes[6] = 3; // its manager has given the subnet a prefix
  return facts;
}

std::string refusal(const PortFacts& port, const std::string& request = "") {
  return judge(port, parse_port_requests(request)).refusal;
}
PortChoice choose(const std::vector<PortFacts>& ports, const std::string& request = "",
                  const Seat& seat = {}) {
  return choose_port(ports, parse_port_requests(request), seat);
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string error_of(const std::vector<PortFacts>& ports, const std::string& request = "") {
  try {
    choose_port(ports, parse_port_requests(request), {});
  } catch (const base::Error& error) {
    return error.text;
  }
  return "no error";
}

TEST(Gids, the_ipv4_one_of_roce_v2_is_preferred) {
  PortFacts port = roce("mlx5_0");
  EXPECT_EQ(judge(port, {}).gid.index, 3u);
  port.gids.pop_back();
  EXPECT_EQ(judge(port, {}).gid.index, 1u);
  port.gids.push_back(gid(5, GidKind::roce_v2, ipv6(1)));
  EXPECT_EQ(judge(port, {}).gid.index, 5u); // routed, as a link-local one is not
}

TEST(Gids, roce_v1_is_used_by_the_users_word_only) {
  PortFacts port = roce("mlx5_0");
  port.gids = {gid(0, GidKind::roce_v1, ipv4(15))};
  const std::string why = refusal(port);
  EXPECT_TRUE(has(why, "no GID of type RoCE v2")) << why;
  EXPECT_TRUE(has(why, "found: 0 10.0.2.15 (RoCE v1)")) << why;
  EXPECT_TRUE(has(why, "give its network interface an IP address")) << why;
  EXPECT_TRUE(has(why, "MACADAM_RDMA_DEVICE=mlx5_0:1:INDEX")) << why;
  EXPECT_EQ(refusal(port, "mlx5_0:1:0"), "");
  port.gids.clear();
  EXPECT_TRUE(has(refusal(port), "found: none")) << refusal(port);
}

TEST(Gids, one_that_was_named_must_be_there) {
  const std::string why = refusal(roce("mlx5_0"), "mlx5_0:1:9");
  EXPECT_TRUE(has(why, "no GID of index 9; there are: 0 fe80::1 (RoCE v1), 1 ")) << why;
  EXPECT_EQ(judge(roce("mlx5_0"), parse_port_requests("mlx5_0:1:2")).gid.kind, GidKind::roce_v1);
}

TEST(Ports, the_fastest_active_one_is_taken) {
  std::vector<PortFacts> ports = {roce("rxe0", 10), infiniband("mlx5_0", 1, 200),
                                  infiniband("mlx5_0", 2, 200), roce("mlx5_1", 100)};
  EXPECT_EQ(choose(ports).port, 1u); // of two equal ones the first
  ports[1].active = false;
  ports[1].state = "down";
  EXPECT_EQ(choose(ports).port, 2u);
  ports[2].lid = 0;
  EXPECT_EQ(choose(ports).port, 3u);
  EXPECT_EQ(choose(ports, "rxe0").port, 0u);
  EXPECT_EQ(choose(ports, "mlx5_1:1").gid.index, 3u);
}

TEST(Ports, infiniband_goes_by_lid_and_needs_one) {
  PortFacts port = infiniband("mlx5_0", 1);
  EXPECT_EQ(refusal(port), "");
  port.lid = 0;
  EXPECT_TRUE(has(refusal(port), "no LID")) << refusal(port);
  port.global = true; // reached by its GID
  EXPECT_EQ(refusal(port), "");
}

TEST(Ports, each_refusal_says_why_and_what_helps) {
  PortFacts down = roce("mlx5_0");
  down.active = false;
  down.state = "down";
  EXPECT_EQ(refusal(down), "its state is down, needed active; set its network interface up, and "
                           "look at the cable");
  PortFacts waiting = infiniband("mlx5_0", 1);
  waiting.active = false;
  waiting.state = "initialising";
  EXPECT_TRUE(has(refusal(waiting), "initialising, needed active; look at the cable and the "
                                    "subnet manager"));
  PortFacts iwarp = roce("cxgb4_0");
  iwarp.queue_pairs = false;
  EXPECT_TRUE(has(refusal(iwarp), "no reliable and datagram queue pairs"));
  PortFacts closed;
  closed.device = "mlx5_9";
  closed.trouble = "it cannot be opened: Permission denied";
  EXPECT_EQ(refusal(closed), closed.trouble);
}

TEST(Ports, with_none_left_the_error_has_every_reason) {
  PortFacts down = roce("mlx5_0");
  down.active = false;
  down.state = "down";
  PortFacts bare = roce("rxe0");
  bare.gids.clear();
  const std::string text = error_of({down, bare});
  EXPECT_TRUE(has(text, "no port can be used; mlx5_0:1: its state is down")) << text;
  EXPECT_TRUE(has(text, "; rxe0:1: it has no GID")) << text;
  EXPECT_TRUE(has(error_of({}), "finds no RDMA adapter")) << error_of({});
  EXPECT_TRUE(has(error_of({}), "rdma link add")) << error_of({});
  const std::string named = error_of({down, bare}, "mlx5_0");
  EXPECT_FALSE(has(named, "rxe0")) << named; // the user did not ask for it
  EXPECT_EQ(error_of({down, bare}, "mlx4_0:2"),
            "RDMA: MACADAM_RDMA_DEVICE names mlx4_0:2, which is "
            "not there; this machine has mlx5_0:1, rxe0:1");
}

// Two sockets, each with a node of 4 threads.
Seat seat(unsigned local_rank, Threads threads) {
  return {.local_rank = local_rank,
          .threads = std::move(threads),
          .nodes = {{0, {0, 1, 2, 3}, {10, 21}}, {1, {4, 5, 6, 7}, {21, 10}}}};
}
PortFacts at_node(PortFacts port, int node) {
  port.node = node;
  port.near = node == 0 ? Threads{0, 1, 2, 3} : Threads{4, 5, 6, 7};
  return port;
}

TEST(SeveralPorts, a_rank_takes_the_one_nearest_to_its_cores) {
  const std::vector<PortFacts> ports = {at_node(infiniband("mlx5_0", 1), 0),
                                        at_node(infiniband("mlx5_1", 1), 1)};
  for (unsigned rank = 0; rank < 4; ++rank) { // whatever its turn is
    EXPECT_EQ(choose(ports, "", seat(rank, {1})).port, 0u);
    EXPECT_EQ(choose(ports, "", seat(rank, {4, 5})).port, 1u);
  }
  const PortChoice choice = choose(ports, "", seat(0, {6}));
  EXPECT_EQ(choice.why, "the nearest to the rank's cores");
  EXPECT_EQ(choice.others[0], "farther from this rank's cores: NUMA distance 21, not 10");
  EXPECT_EQ(choice.others[1], "");
}

TEST(SeveralPorts, a_node_without_a_port_uses_the_nearest_that_has_one) {
  Seat far = seat(0, {8});
  far.nodes.push_back({2, {8}, {32, 12, 10}});
  for (NumaNode& node : far.nodes)
    if (node.number != 2) node.distances.push_back(node.number == 0 ? 32 : 12);
  const std::vector<PortFacts> ports = {at_node(infiniband("mlx5_0", 1), 0),
                                        at_node(infiniband("mlx5_1", 1), 1)};
  EXPECT_EQ(choose(ports, "", far).port, 1u);
}

TEST(SeveralPorts, equally_near_ones_are_taken_in_turn) {
  const std::vector<PortFacts> ports = {infiniband("mlx5_0", 1), infiniband("mlx5_1", 1),
                                        infiniband("mlx5_2", 1)};
  std::vector<std::size_t> taken;
  for (unsigned rank = 0; rank < 6; ++rank)
    taken.push_back(choose(ports, "", seat(rank, {0, 1, 2, 3, 4, 5, 6, 7})).port);
  EXPECT_EQ(taken, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
  const PortChoice choice = choose(ports, "", seat(1, {}));
  EXPECT_EQ(choice.why, "in turn one of mlx5_0:1, mlx5_1:1, mlx5_2:1");
  EXPECT_EQ(choice.others[2], "as good: other ranks of this machine take it");
}

// Whether a launcher fills one socket after the other or deals the ranks out to them.
TEST(SeveralPorts, near_each_socket_the_turns_are_even_however_ranks_are_placed) {
  const std::vector<PortFacts> ports = {
      at_node(infiniband("mlx5_0", 1), 0), at_node(infiniband("mlx5_1", 1), 0),
      at_node(infiniband("mlx5_2", 1), 1), at_node(infiniband("mlx5_3", 1), 1)};
  for (const bool dealt : {false, true}) {
    std::vector<int> ranks(ports.size());
    for (unsigned rank = 0; rank < 8; ++rank) {
      const unsigned thread = dealt ? rank / 2 + rank % 2 * 4 : rank;
      ++ranks[choose(ports, "", seat(rank, {thread})).port];
    }
    EXPECT_EQ(ranks, (std::vector<int>{2, 2, 2, 2})) << dealt;
  }
  EXPECT_NE(choose(ports, "", seat(0, {0})).port, choose(ports, "", seat(1, {1})).port);
}

TEST(SeveralPorts, speed_goes_before_nearness) {
  const std::vector<PortFacts> ports = {at_node(infiniband("mlx5_0", 1, 100), 0),
                                        at_node(infiniband("mlx5_1", 1, 400), 1)};
  const PortChoice choice = choose(ports, "", seat(0, {0}));
  EXPECT_EQ(choice.port, 1u);
  EXPECT_EQ(choice.why, "the best port");
  EXPECT_EQ(choice.others[0], "slower");
}

TEST(SeveralPorts, only_such_are_mixed_as_are_known_to_reach_each_other) {
  const auto second_is_used = [](const std::vector<PortFacts>& ports) {
    return choose(ports, "", seat(1, {})).port == 1;
  };
  PortFacts other = infiniband("mlx5_1", 1);
  EXPECT_TRUE(second_is_used({infiniband("mlx5_0", 1), other}));
  other.gids[0].bytes[7] = 1; // another prefix: another subnet
  EXPECT_FALSE(second_is_used({infiniband("mlx5_0", 1), other}));
  EXPECT_FALSE(second_is_used({infiniband("mlx5_0", 1), roce("mlx5_1")}));
  const auto unnamed = [](const char* device) {
    PortFacts port = infiniband(device, 1);
    port.gids[0].bytes = link_local(9);
    return port;
  };
  const std::vector<PortFacts> alike = {unnamed("mlx5_0"), unnamed("mlx5_1")};
  EXPECT_FALSE(second_is_used(alike));
  EXPECT_TRUE(has(choose(alike).others[1], "so perhaps in another network"));
  EXPECT_EQ(choose(alike, "mlx5_0,mlx5_1", seat(1, {})).port, 1u);

  PortFacts first = roce("mlx5_0");
  other = roce("mlx5_1");
  other.gids[3].bytes = ipv4(16);
  EXPECT_FALSE(second_is_used({first, other})); // no mask is known
  first.gids[3].subnet_bits = other.gids[3].subnet_bits = 96 + 24;
  EXPECT_TRUE(second_is_used({first, other}));
  other.gids[3].bytes[14] = 9; // 10.0.9.16
  EXPECT_FALSE(second_is_used({first, other}));
  EXPECT_TRUE(has(choose({first, other}).others[1], "in another network than mlx5_0:1"));
  first.gids[3].subnet_bits = other.gids[3].subnet_bits = 96 + 16;
  EXPECT_TRUE(second_is_used({first, other}));
  other.gids[3].subnet_bits = 96 + 20; // they do not agree
  EXPECT_FALSE(second_is_used({first, other}));
}

TEST(SeveralPorts, software_ones_are_mixed_by_the_users_word_only) {
  std::vector<PortFacts> ports = {roce("rxe0"), roce("rxe1")};
  for (PortFacts& port : ports) {
    port.software = true;
    port.gids[3].subnet_bits = 96 + 24;
  }
  EXPECT_EQ(choose(ports, "", seat(1, {})).port, 0u);
  EXPECT_TRUE(has(choose(ports).others[1], "software")) << choose(ports).others[1];
  EXPECT_EQ(choose(ports, "rxe0,rxe1", seat(1, {})).port, 1u);
}

Seat one_of(unsigned ranks, unsigned rank, Threads threads = {}) {
  Seat here = seat(rank, std::move(threads));
  here.local_ranks = ranks;
  return here;
}

// Each rank has its own port, as without one, and one of those that no rank's turn comes to.
TEST(SecondPort, is_one_that_no_other_rank_takes) {
  std::vector<PortFacts> ports;
  for (const char* const device : {"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4"}) {
    ports.push_back(infiniband(device, 1));
    for (unsigned ranks = 1; ranks <= 7; ++ranks) {
      std::vector<int> uses(ports.size());
      unsigned with_two = 0;
      for (unsigned rank = 0; rank < ranks; ++rank) {
        const PortChoice choice = choose(ports, "", one_of(ranks, rank));
        EXPECT_EQ(choice.port, choose(ports, "", seat(rank, {})).port);
        ++uses[choice.port];
        if (!choice.second) continue;
        ++with_two;
        ++uses[*choice.second];
        EXPECT_EQ(choice.why_alone, "");
        EXPECT_TRUE(has(choice.others[*choice.second], "for half of long data"));
      }
      const auto count = static_cast<unsigned>(ports.size());
      EXPECT_EQ(with_two, ranks < count ? std::min(ranks, count - ranks) : 0u);
      if (ranks <= count) {
        EXPECT_EQ(*std::ranges::max_element(uses), 1);
      }
    }
  }
  EXPECT_EQ(choose(ports, "", one_of(5, 0)).why_alone,
            "this machine has no port for it that no other rank takes");
  EXPECT_EQ(choose(ports, "", one_of(3, 2)).why_alone,
            "other ranks of this machine take the ports that are left");
  EXPECT_FALSE(choose(ports, "", seat(0, {})).second); // how many ranks there are is not known
}

TEST(SecondPort, may_be_farther_for_a_rank_that_is_alone) {
  const std::vector<PortFacts> ports = {at_node(infiniband("mlx5_0", 1), 0),
                                        at_node(infiniband("mlx5_1", 1), 1)};
  const PortChoice choice = choose(ports, "", one_of(1, 0, {6}));
  EXPECT_EQ(choice.port, 1u);
  EXPECT_EQ(choice.second, 0u);
  std::vector<PortFacts> more = ports;
  more.push_back(at_node(infiniband("mlx5_2", 1), 1));
  EXPECT_EQ(choose(more, "", one_of(1, 0, {6})).second, 2u);
  EXPECT_FALSE(choose(more, "", one_of(2, 0, {6})).second);
  EXPECT_EQ(choose(more, "", one_of(2, 0, {6})).why_alone,
            "not all ports are as near to all ranks of this machine");
}

// As what a rank's one port may be: as fast, in the same network, allowed.
TEST(SecondPort, is_like_the_first) {
  const auto second_of = [](const std::vector<PortFacts>& ports, const std::string& request = "") {
    return choose(ports, request, one_of(1, 0)).second;
  };
  const PortFacts first = infiniband("mlx5_0", 1);
  EXPECT_FALSE(second_of({first}));
  EXPECT_EQ(second_of({first, infiniband("mlx5_0", 2)}), 1u);
  EXPECT_FALSE(second_of({first, infiniband("mlx5_1", 1, 50)}));
  EXPECT_FALSE(second_of({first, roce("mlx5_1")}));
  EXPECT_FALSE(second_of({first, infiniband("mlx5_1", 1)}, "mlx5_0"));
  std::vector<PortFacts> software = {roce("rxe0"), roce("rxe1")};
  for (PortFacts& port : software) {
    port.software = true;
    port.gids[3].subnet_bits = 96 + 24;
  }
  EXPECT_FALSE(second_of(software));
  EXPECT_EQ(second_of(software, "rxe0,rxe1"), 1u);
}

TEST(SeveralPorts, a_list_restricts_them) {
  const std::vector<PortFacts> ports = {infiniband("mlx5_0", 1), infiniband("mlx5_1", 1),
                                        infiniband("mlx5_1", 2), infiniband("mlx5_2", 1)};
  const std::string list = "mlx5_1:2,mlx5_2";
  EXPECT_EQ(choose(ports, list, seat(0, {})).port, 2u);
  EXPECT_EQ(choose(ports, list, seat(1, {})).port, 3u);
  EXPECT_EQ(choose(ports, list, seat(2, {})).port, 2u);
  EXPECT_EQ(refusal(ports[1], list), "MACADAM_RDMA_DEVICE names another");
  EXPECT_TRUE(has(error_of({ports[0]}, list), "names mlx5_1:2, mlx5_2, which is not there"));
  const PortFacts other = roce("mlx5_3");
  EXPECT_EQ(judge(other, parse_port_requests("mlx5_2,mlx5_3:1:1")).gid.index, 1u);
}

TEST(PortRequest, has_up_to_three_parts) {
  EXPECT_TRUE(parse_port_requests("").empty());
  const PortRequest request = parse_port_requests("mlx5_0:2:11").at(0);
  EXPECT_EQ(request.device, "mlx5_0");
  EXPECT_EQ(request.port, 2u);
  EXPECT_EQ(request.gid, 11u);
  const std::vector<PortRequest> two = parse_port_requests("rxe0,rxe1:1");
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].port, std::nullopt);
  EXPECT_EQ(two[1].device, "rxe1");
  EXPECT_EQ(two[1].port, 1u);
  for (const char* bad : {":", ":1", "rxe0:", "rxe0:0", "rxe0:x", "rxe0:1:", "rxe0:1:2:3",
                          "rxe0:-1", "rxe0:1:256", "rxe0:1 "}) {
    try {
      parse_port_requests(bad);
      ADD_FAILURE() << bad;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_ARG);
      EXPECT_TRUE(has(error.text, fmt::format("found '{}'", bad))) << error.text;
      EXPECT_TRUE(has(error.text, "name[:port[:gid index]]")) << error.text;
    }
  }
  for (const char* bad : {",", "rxe0,", ",rxe0", "rxe0,,rxe1", "rxe0,rxe1:x"})
    EXPECT_THROW(parse_port_requests(bad), base::Error) << bad;
}

} // namespace
} // namespace macadam::test
