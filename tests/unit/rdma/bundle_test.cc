// SPDX-License-Identifier: BSD-3-Clause
// Short messages of a burst: a few go at once, the others wait for the next look for arrivals and
// travel together then.
#include "world.h"

namespace macadam::test {
namespace {

class Bundles : public testing::TestWithParam<ReceiveMode> {};
INSTANTIATE_TEST_SUITE_P(All, Bundles,
                         testing::Values(ReceiveMode::shared, ReceiveMode::credit,
                                         ReceiveMode::ring, ReceiveMode::mixed));

Posted send(World& world, const std::string& what, bool more) {
  engine::Transport& transport = *world[0].transport;
  return more ? transport.send_more(world[0].link(1), what.data(), what.size(), nullptr, 0)
              : transport.send(world[0].link(1), what.data(), what.size(), nullptr, 0);
}

// Of all lengths, so that bundles end where they are full, before what is too long for one, and
// where nothing follows.
std::string text(unsigned n) {
  std::string what = message(n);
  if (n % 23 == 22) what.resize(1500, '-');
  if (n % 7 == 6) what.resize(what.size() + 3 * n % 400, '.');
  return what;
}

TEST_P(Bundles, arrive_in_order_among_other_messages) {
  constexpr unsigned count = 2000;
  Settings settings = small_settings(GetParam());
  settings.rdma_eager = 4096;
  World world(2, settings);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  unsigned sent = 0;
  const auto push = [&] {
    while (sent < count && send(world, text(sent), sent % 40 != 39) == Posted::done)
      ++sent;
    return sent == count;
  };
  ASSERT_TRUE(world.until([&] { return push() && world[1].received[0].size() == count; }));
  for (unsigned n = 0; n < count; ++n)
    ASSERT_EQ(world[1].received[0][n], text(n)) << "message " << n;
  EXPECT_GT(world[0].counter("bundled"), count / 2);
  EXPECT_EQ(world[0].counter("rdma_sent"), count);
}

TEST_P(Bundles, what_follows_a_few_waits_for_the_next_look) {
  World world(2, small_settings(GetParam()));
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  const auto at_once = [&] {
    unsigned sent = 0;
    while (sent < 100 && send(world, message(sent), false) == Posted::done)
      ++sent;
    return sent;
  };
  world.until([&] { return world[0].transport->drain(); });
  const unsigned first = at_once();
  EXPECT_GE(first, 1u);
  EXPECT_LT(first, 10u);
  world.run(50);
  EXPECT_EQ(at_once(), first);
  world.run(50);
  EXPECT_EQ(world[1].received[0].size(), 2 * first);
  EXPECT_EQ(world[0].counter("bundled"), 0u);
}

// Nothing has followed after all: it goes before anything else, or in the next look.
TEST_P(Bundles, wait_for_nothing_that_does_not_come) {
  Settings settings = small_settings(GetParam());
  settings.rdma_eager = 4096;
  World world(2, settings);
  world.start();
  ASSERT_TRUE(world.until([&] { return world[0].up(1); }));
  ASSERT_EQ(send(world, message(0), true), Posted::done);
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 1; }));
  ASSERT_EQ(send(world, message(1), true), Posted::done);
  ASSERT_EQ(send(world, std::string(1200, 'x'), false), Posted::done);
  ASSERT_TRUE(world.until([&] { return world[1].received[0].size() == 3; }));
  EXPECT_EQ(world[1].received[0][1], message(1));
  ASSERT_TRUE(world.until([&] { return world[0].transport->drain(); }));
  EXPECT_EQ(world[0].transport->in_use().buffers, 0u);
}

} // namespace
} // namespace macadam::test
