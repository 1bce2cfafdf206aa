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
  set_rails(random, setup);
  prove::add_bursts(setup.program, random);
  return setup;
}

// Small numbers, so that everything of shared memory is met soon.
void set_neighbors(Random& random, int ranks, Setup& setup) {
  base::Settings& settings = setup.settings;
  setup.ranks_per_node = random.chance(50) ? ranks : one_of(random, {2, 3, 4});
  setup.cores = random.chance(70) ? ranks : 1;
  settings.last_byte = setup.program.conditions.last_byte = false; // not in any order of bytes
  settings.shm_eager = one_of(random, {64, 1 << 10, 6 << 10, 16 << 10});
  settings.shm_hybrid = one_of(random, {0, 512, 8 << 10, 128 << 10});
  settings.shm_copy = one_of(random, {base::CopyPath::automatic, base::CopyPath::automatic,
                                      base::CopyPath::cma, base::CopyPath::pipeline});
  settings.shm_queue = one_of(random, {0, 256 << 10});
  settings.shm_ring = one_of(random, {0, 256 << 10});
  settings.shm_rings = one_of(random, {0, 1, 8});
  settings.shm_ring_after = one_of(random, {1, 2, 16});
  setup.faults.core_loss = one_of(random, {0.0, 0.01, 0.1});
  setup.faults.cut_copies = one_of(random, {0.0, 0.3});
  setup.forbids = random.chance(15);
  if (setup.ranks_per_node < ranks) {
    // Rings that are polled in memory wake nobody who sleeps for both networks: not covered yet.
    if (settings.rdma_receive == base::ReceiveMode::ring)
      settings.rdma_receive = base::ReceiveMode::shared;
    return;
  }
  setup.program.conditions.scarce = 0;
  setup.deaths = random.chance(30);
  if (setup.deaths) setup.program.conditions.deaths = 1;
}

Setup random_neighbors(std::uint64_t seed) {
  Random random(seed);
  Setup setup;
  setup.program.conditions = random_protocols(random);
  setup.program.conditions.last_byte = false;
  setup.settings = prove::settings_for(setup.program.conditions);
  const int ranks = prove::random_ranks(random);
  set_limits(random, ranks, setup.settings);
  if (set_device(random, setup)) setup.program.conditions.scarce = 1;
  set_faults(random, ranks, setup);
  set_neighbors(random, ranks, setup);
  setup.notifications = random.chance(70);
  const auto eager = static_cast<std::size_t>(setup.settings.shm_eager);
  const std::array<std::size_t, 9> sizes = {
      0,     4,         1024,
      eager, eager + 4, static_cast<std::size_t>(setup.settings.shm_hybrid) + 4,
      8192,  20000,     100'000};
  prove::add_random_steps(setup.program, random, ranks, sizes);
  set_order(random, setup);
  return setup;
}

std::string show(const Setup& setup) {
  return show(static_cast<const Network&>(setup)) +
         fmt::format("notifications: {}, {} ranks on a node with {} cores{}{}\nprogram: {}\n",
                     setup.notifications, setup.ranks_per_node, setup.cores,
                     setup.deaths ? ", one is killed" : "",
                     setup.forbids ? ", one may not copy" : "", prove::show(setup.program));
}

} // namespace macadam::torture
