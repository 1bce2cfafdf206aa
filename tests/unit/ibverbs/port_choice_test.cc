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
  return facts;
}

std::string refusal(const PortFacts& port, const PortRequest& request = {}) {
  return judge(port, request).refusal;
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string error_of(const std::vector<PortFacts>& ports, const std::string& request = "") {
  try {
    choose_port(ports, parse_port_request(request));
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
  EXPECT_EQ(refusal(port, parse_port_request("mlx5_0:1:0")), "");
  port.gids.clear();
  EXPECT_TRUE(has(refusal(port), "found: none")) << refusal(port);
}

TEST(Gids, one_that_was_named_must_be_there) {
  const std::string why = refusal(roce("mlx5_0"), parse_port_request("mlx5_0:1:9"));
  EXPECT_TRUE(has(why, "no GID of index 9; there are: 0 fe80::1 (RoCE v1), 1 ")) << why;
  EXPECT_EQ(judge(roce("mlx5_0"), parse_port_request("mlx5_0:1:2")).gid.kind, GidKind::roce_v1);
}

TEST(Ports, the_fastest_active_one_is_taken) {
  std::vector<PortFacts> ports = {roce("rxe0", 10), infiniband("mlx5_0", 1, 200),
                                  infiniband("mlx5_0", 2, 200), roce("mlx5_1", 100)};
  EXPECT_EQ(choose_port(ports, {}).port, 1u); // of two equal ones the first
  ports[1].active = false;
  ports[1].state = "down";
  EXPECT_EQ(choose_port(ports, {}).port, 2u);
  ports[2].lid = 0;
  EXPECT_EQ(choose_port(ports, {}).port, 3u);
  EXPECT_EQ(choose_port(ports, parse_port_request("rxe0")).port, 0u);
  EXPECT_EQ(choose_port(ports, parse_port_request("mlx5_1:1")).gid.index, 3u);
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

TEST(PortRequest, has_up_to_three_parts) {
  EXPECT_EQ(parse_port_request("").device, "");
  const PortRequest request = parse_port_request("mlx5_0:2:11");
  EXPECT_EQ(request.device, "mlx5_0");
  EXPECT_EQ(request.port, 2u);
  EXPECT_EQ(request.gid, 11u);
  EXPECT_EQ(parse_port_request("rxe0").port, std::nullopt);
  for (const char* bad : {":", ":1", "rxe0:", "rxe0:0", "rxe0:x", "rxe0:1:", "rxe0:1:2:3",
                          "rxe0:-1", "rxe0:1:256", "rxe0:1 "}) {
    try {
      parse_port_request(bad);
      ADD_FAILURE() << bad;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.error_class, MPI_ERR_ARG);
      EXPECT_TRUE(has(error.text, fmt::format("found '{}'", bad))) << error.text;
      EXPECT_TRUE(has(error.text, "name[:port[:gid index]]")) << error.text;
    }
  }
}

} // namespace
} // namespace macadam::test
