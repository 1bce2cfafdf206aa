// SPDX-License-Identifier: BSD-3-Clause
#include "torture/setup.h"

#include "fmt/format.h"
#include "prove/execution.h"
#include "prove/random_program.h"

#include <algorithm>
#include <array>

namespace macadam::torture {
namespace {

using prove::Random;

// What the engine does.
prove::Conditions random_protocols(Random& random) {
  prove::Conditions c;
  c.rendezvous = random.chance(50) ? base::Rendezvous::read : base::Rendezvous::write;
  if (random.chance(15)) c.protocols = base::Protocols::sender;
  c.throttle = random.chance(15);
  c.last_byte = random.chance(15);
  if (random.chance(20)) c.tags = 2; // fewer than there are: falls back
  return c;
}

// Around the limits of the protocols.
std::array<std::size_t, 9> sizes_for(const base::Settings& settings) {
  const auto eager = static_cast<std::size_t>(settings.rdma_eager);
  const auto hybrid = static_cast<std::size_t>(settings.rdma_hybrid);
  return {0, 4, eager, eager, eager + 4, hybrid, hybrid + 4, 2 * hybrid, 20000};
}

} // namespace

Setup random_setup(std::uint64_t seed) {
  Random random(seed);
  Setup setup;
  setup.program.conditions = random_protocols(random);
  setup.settings = prove::settings_for(setup.program.conditions);
  const int ranks = prove::random_ranks(random);
  set_limits(random, ranks, setup.settings);
  if (set_device(random, setup)) setup.program.conditions.scarce = 1;
  set_faults(random, ranks, setup);
  setup.notifications = random.chance(70);
  prove::add_random_steps(setup.program, random, ranks, sizes_for(setup.settings));
  set_order(random, setup);
  return setup;
}

std::string show(const Setup& setup) {
  return show(static_cast<const Network&>(setup)) + fmt::format("notifications: {}\nprogram: {}\n",
                                                                setup.notifications,
                                                                prove::show(setup.program));
}

} // namespace macadam::torture
