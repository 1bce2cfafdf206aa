// SPDX-License-Identifier: BSD-3-Clause
// Ports and links: who shares one, and when a message arrives that has to wait.
#include "devices.h"

namespace macadam::test {
namespace {

constexpr std::uint64_t bytes = 100000;

struct Machines {
  Machines() {
    fabric.put_into(0, 0, a.device.lid());
    fabric.put_into(0, 0, b.device.lid());
    fabric.put_into(0, 1, c.device.lid());
    fabric.put_into(1, 0, d.device.lid());
    fabric.put_into(2, 0, e.device.lid());
  }
  sim::Time sent(Node& from, Node& to) {
    return fabric.transmit(from.device.lid(), to.device.lid(), bytes).sent;
  }
  sim::Time arrived(Node& from, Node& to) {
    return fabric.transmit(from.device.lid(), to.device.lid(), bytes).arrived;
  }
  Model model;
  sim::Scheduler scheduler{1};
  sim::Fabric fabric{scheduler, model};
  Node a{scheduler, fabric}, b{scheduler, fabric}, c{scheduler, fabric}, d{scheduler, fabric},
      e{scheduler, fabric};
  const sim::Time wire = sim::transfer_time(bytes, model.bandwidth_mb_per_s);
};

TEST(Fabric, ranks_of_a_machine_send_one_after_the_other_over_a_port_that_they_share) {
  Machines of;
  EXPECT_EQ(of.sent(of.a, of.d), of.wire);
  EXPECT_EQ(of.sent(of.b, of.e), 2 * of.wire);
  EXPECT_EQ(of.sent(of.c, of.d), of.wire); // by the other port
}

TEST(Fabric, a_port_takes_in_one_message_at_a_time) {
  Machines of;
  const sim::Time first = of.arrived(of.d, of.a);
  EXPECT_EQ(of.arrived(of.e, of.b), first + of.wire);
  EXPECT_EQ(of.arrived(of.e, of.c), first + of.wire); // the second that e sends
}

// What a sender will only send later keeps nobody out before.
TEST(Fabric, a_port_is_free_until_the_first_message_comes) {
  Machines of;
  const sim::Time first = of.arrived(of.d, of.e);
  of.arrived(of.d, of.e);
  const sim::Time third = of.arrived(of.d, of.a);
  EXPECT_EQ(third, first + 2 * of.wire);
  EXPECT_EQ(of.arrived(of.e, of.a), first);
  EXPECT_EQ(of.arrived(of.c, of.b), first + of.wire); // the gap before the third
  EXPECT_EQ(of.arrived(of.c, of.b), third + of.wire); // there is none left
}

TEST(Fabric, bytes_are_counted_between_machines_only) {
  Machines of;
  of.arrived(of.a, of.b);
  EXPECT_EQ(of.fabric.counters.bytes_between_nodes, 0u);
  of.arrived(of.a, of.d);
  EXPECT_EQ(of.fabric.counters.bytes_between_nodes, bytes);
}

} // namespace
} // namespace macadam::test
