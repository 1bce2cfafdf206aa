// SPDX-License-Identifier: BSD-3-Clause
// What the kernel's files say of adapters: from folders made as it makes them.
#include "net/rdma/ibverbs/surroundings.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <filesystem>
#include <fstream>
#include <stdlib.h>

namespace macadam::test {
namespace {

using namespace macadam::net::rdma::ibverbs;
namespace fs = std::filesystem;

class Surroundings : public testing::Test {
 protected:
  Surroundings() {
    std::string name = testing::TempDir() + "surroundings_XXXXXX";
    root = mkdtemp(name.data());
  }
  ~Surroundings() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root + path).substr(0, (root + path).rfind('/')));
    std::ofstream(root + path) << text << '\n';
  }
  void link(const std::string& path, const std::string& to) const {
    fs::create_directories((root + path).substr(0, (root + path).rfind('/')));
    fs::create_directory_symlink(root + to, root + path);
  }
  [[nodiscard]] PortFacts facts_of(const std::string& device) const {
    PortFacts port;
    port.device = device;
    read_surroundings(port, root);
    return port;
  }
  std::string root;
};

TEST_F(Surroundings, an_adapter_is_where_its_slot_is) {
  const std::string slot = "/sys/devices/pci0000:80/0000:81:00.0";
  write(slot + "/local_cpulist", "8-11,24-25");
  write(slot + "/numa_node", "1");
  link("/sys/class/infiniband/mlx5_0/device", slot);
  const PortFacts port = facts_of("mlx5_0");
  EXPECT_EQ(port.near, (Threads{8, 9, 10, 11, 24, 25}));
  EXPECT_EQ(port.node, 1);
  EXPECT_FALSE(port.software);
}

TEST_F(Surroundings, a_part_of_an_adapter_is_where_that_is) {
  const std::string slot = "/sys/devices/pci0000:80/0000:81:00.0";
  write(slot + "/local_cpulist", "3");
  write(slot + "/numa_node", "0");
  fs::create_directories(root + slot + "/mlx5_core.sf.2");
  link("/sys/class/infiniband/mlx5_2/device", slot + "/mlx5_core.sf.2");
  EXPECT_EQ(facts_of("mlx5_2").near, (Threads{3}));
  EXPECT_EQ(facts_of("mlx5_2").node, 0);
}

TEST_F(Surroundings, what_has_no_slot_is_software) {
  fs::create_directories(root + "/sys/class/infiniband/rxe0");
  EXPECT_TRUE(facts_of("rxe0").software);
  EXPECT_TRUE(facts_of("rxe0").near.empty());
  EXPECT_EQ(facts_of("rxe0").node, -1);
  EXPECT_FALSE(facts_of("not_there").software); // nothing is known of it
}

TEST_F(Surroundings, an_ip_address_has_the_mask_of_its_interface) {
  PortFacts port;
  port.layer = LinkLayer::ethernet;
  Gid loopback, elsewhere;
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:127.0.0.1", loopback.bytes.data()), 1);
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:192.0.2.1", elsewhere.bytes.data()), 1);
  port.gids = {loopback, elsewhere};
  read_surroundings(port, root);
  EXPECT_EQ(port.gids[0].subnet_bits, 96u + 8u);
  EXPECT_EQ(port.gids[1].subnet_bits, 128u);
}

TEST_F(Surroundings, nodes_have_threads_and_distances) {
  write("/sys/devices/system/node/node10/cpulist", "2-3");
  write("/sys/devices/system/node/node10/distance", "21 10");
  write("/sys/devices/system/node/node2/cpulist", "0-1");
  write("/sys/devices/system/node/node2/distance", "10 21");
  write("/sys/devices/system/node/possible", "0-10");
  const Seat seat = read_seat(5, {1}, root);
  EXPECT_EQ(seat.local_rank, 5u);
  EXPECT_EQ(seat.threads, (Threads{1}));
  ASSERT_EQ(seat.nodes.size(), 2u);
  EXPECT_EQ(seat.nodes[0].number, 2);
  EXPECT_EQ(seat.nodes[0].threads, (Threads{0, 1}));
  EXPECT_EQ(seat.nodes[1].distances, (std::vector<unsigned>{21, 10}));
  EXPECT_TRUE(read_seat(0, {}, root + "/nowhere").nodes.empty());
}

} // namespace
} // namespace macadam::test
