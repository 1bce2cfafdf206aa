// SPDX-License-Identifier: BSD-3-Clause
#include "torture/setup.h"

#include "fmt/format.h"
#include "prove/execution.h"
#include "prove/random_program.h"

#include <algorithm>
#include <array>
#include <variant>

namespace macadam::torture {
namespace {

using base::ConnectMode;
using base::ReceiveMode;
using prove::Random;

template <class Value>
Value one_of(Random& random, std::initializer_list<Value> values) {
  return values.begin()[random.choose(static_cast<unsigned>(values.size()))];
}

// What the engine does.
prove::Conditions random_protocols(Random& random) {
  prove::Conditions c;
  c.rendezvous = random.chance(50) ? base::Rendezvous::read : base::Rendezvous::write;
  if (random.chance(15)) c.protocols = base::Protocols::sender;
  c.demote = random.chance(15);
  c.last_byte = random.chance(15);
  if (random.chance(20)) c.tags = 2; // fewer than there are: falls back
  return c;
}

// Small numbers, so that every limit is met soon.
void set_limits(Random& random, int ranks, base::Settings& settings) {
  settings.rdma_eager = one_of(random, {64, 256, 1024});
  settings.rdma_hybrid = 8 * settings.rdma_eager;
  settings.rdma_receive =
      one_of(random, {ReceiveMode::shared, ReceiveMode::credit, ReceiveMode::ring});
  settings.rdma_shared = one_of(random, {8, 32});
  settings.rdma_watermark = one_of(random, {0, 2, 6});
  settings.rdma_buffers = one_of(random, {24, 64, 256});
  settings.rdma_window = one_of(random, {2, 3, 8});
  settings.rdma_send_depth = one_of(random, {4, 16});
  settings.rdma_cache = one_of(random, {0, 16 << 10, 1 << 30});
  settings.spin = one_of(random, {0, 2, 20});
  if (random.chance(30) && ranks <= 32)
    settings.rdma_connections = one_of(random, {ConnectMode::all, ConnectMode::serial});
  else if (random.chance(30)) // connections take turns
    settings.rdma_queue_pairs = 2 + ranks / 8 + random.pick(4);
}

void set_faults(Random& random, int ranks, Setup& setup) {
  sim::Faults& faults = setup.faults;
  faults.jitter = one_of(random, {0.0, 0.5, 3.0});
  faults.split_writes = random.chance(50);
  faults.shuffle = random.chance(50);
  if (random.chance(50)) faults.attendant_jitter_ns = 20000;
  if (random.chance(30)) faults.slow_rank = random.pick(ranks);
  const bool on_demand = setup.settings.rdma_connections == ConnectMode::on_demand;
  if (on_demand && random.chance(15)) {
    setup.breaks = true;
    faults.queue_pair_break = 0.004;
  } else if (on_demand && setup.settings.rdma_receive == ReceiveMode::shared && random.chance(5)) {
    setup.breaks = true; // who computes for too long without a receive counts as gone
    setup.settings.rdma_watermark = 0;
    setup.settings.rdma_rnr_retries = 1;
  } else if (random.chance(50)) {
    // Not with connections that fail: a peer that only waits learns of that by datagrams.
    faults.datagram_loss = one_of(random, {0.0, 0.2});
    faults.datagram_duplication = one_of(random, {0.0, 0.3});
    faults.datagram_reordering = one_of(random, {0.0, 0.3});
    faults.reordering_ns = one_of(random, {20e3, 2e6});
  }
}

void set_device(Random& random, Setup& setup) {
  sim::Model& model = setup.model;
  model.inline_bytes = one_of(random, {0, 64, 256});
  model.outstanding_reads = one_of(random, {1, 4});
  model.completion_depth = one_of(random, {256, 131072});
  model.orders_bytes = true;
  // Few for the program's memory; a ring needs one for each connection.
  if (setup.settings.rdma_receive == ReceiveMode::shared && random.chance(30)) {
    model.regions = 4 + random.pick(8);
    setup.program.conditions.scarce = 1;
  }
  model.start_spread_ns = one_of(random, {0.0, 1e6});
}

// Around the limits of the protocols.
std::array<std::size_t, 9> sizes_for(const base::Settings& settings) {
  const auto eager = static_cast<std::size_t>(settings.rdma_eager);
  const auto hybrid = static_cast<std::size_t>(settings.rdma_hybrid);
  return {0, 4, eager, eager, eager + 4, hybrid, hybrid + 4, 2 * hybrid, 20000};
}

template <class Object, class Value>
std::string show_values(const char* what, const Object& object,
                        std::span<const sim::Key<Value>> keys) {
  std::string text;
  for (const sim::Key<Value>& key : keys) {
    std::visit(
        [&](auto member) {
          if (object.*member != Object{}.*member)
            text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.name, object.*member);
        },
        key.value);
  }
  return fmt::format("{}: {}\n", what, text);
}

} // namespace

Setup random_setup(std::uint64_t seed) {
  Random random(seed);
  Setup setup;
  setup.program.conditions = random_protocols(random);
  setup.settings = prove::settings_for(setup.program.conditions);
  const int ranks = prove::random_ranks(random);
  set_limits(random, ranks, setup.settings);
  set_device(random, setup);
  set_faults(random, ranks, setup);
  setup.notices = random.chance(70);
  prove::add_random_steps(setup.program, random, ranks, sizes_for(setup.settings));
  return setup;
}

std::string show(const Setup& setup) {
  std::string text = "settings:";
  for (const base::SettingRow& row : base::setting_rows()) {
    const std::string value = base::show(setup.settings, row);
    if (value != base::show({}, row)) text += fmt::format(" {}={}", row.name, value);
  }
  text += '\n' + show_values("model", setup.model, sim::model_keys());
  text += show_values("faults", setup.faults, sim::fault_keys());
  text += fmt::format("notices: {}, breaks: {}\n", setup.notices, setup.breaks);
  return text + "program: " + prove::show(setup.program) + "\n";
}

} // namespace macadam::torture
