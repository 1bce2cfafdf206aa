// SPDX-License-Identifier: BSD-3-Clause
#include "torture/network.h"

#include "fmt/format.h"

#include <span>
#include <variant>

namespace macadam::torture {
namespace {

using base::ConnectMode;
using base::ReceiveMode;

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

void set_faults(Random& random, int ranks, Network& network) {
  sim::Faults& faults = network.faults;
  faults.jitter = one_of(random, {0.0, 0.5, 3.0});
  faults.split_writes = random.chance(50);
  faults.shuffle = random.chance(50);
  if (random.chance(50)) faults.progress_thread_jitter_ns = 20000;
  if (random.chance(30)) faults.slow_rank = random.pick(ranks);
  const bool on_demand = network.settings.rdma_connections == ConnectMode::on_demand;
  if (on_demand && random.chance(15)) {
    network.breaks = true;
    faults.queue_pair_break = 0.004;
  } else if (on_demand && network.settings.rdma_receive == ReceiveMode::shared &&
             random.chance(5)) {
    network.breaks = true; // who computes for too long without a receive counts as gone
    network.settings.rdma_watermark = 0;
    network.settings.rdma_rnr_retries = 1;
  } else if (random.chance(50)) {
    // Not with connections that fail: a peer that only waits learns of that by datagrams.
    faults.datagram_loss = one_of(random, {0.0, 0.2});
    faults.datagram_duplication = one_of(random, {0.0, 0.3});
    faults.datagram_reordering = one_of(random, {0.0, 0.3});
    faults.reordering_ns = one_of(random, {20e3, 2e6});
  }
}

bool set_device(Random& random, Network& network) {
  sim::Model& model = network.model;
  model.inline_bytes = one_of(random, {0, 64, 256});
  model.outstanding_reads = one_of(random, {1, 4});
  model.completion_depth = one_of(random, {256, 131072});
  model.orders_bytes = true;
  // A ring needs one region for each connection.
  const bool scarce = network.settings.rdma_receive == ReceiveMode::shared && random.chance(30);
  if (scarce) model.regions = 4 + random.pick(8);
  model.start_spread_ns = one_of(random, {0.0, 1e6});
  return scarce;
}

void set_order(Random& random, Network& network) {
  network.model.orders_writes = random.chance(50);
  network.model.orders_arrivals =
      network.settings.last_byte || network.model.orders_writes || random.chance(50);
  // Last of all, so that seeds which found something are what they were.
  if (network.settings.rdma_receive == ReceiveMode::shared && network.model.orders_writes &&
      random.chance(60))
    network.settings.rdma_receive = ReceiveMode::mixed;
}

void set_rails(Random& random, Network& network) {
  network.rails = random.chance(30);
}

std::string show(const Network& network) {
  std::string text = "settings:";
  for (const base::SettingRow& row : base::setting_rows()) {
    const std::string value = base::show(network.settings, row);
    if (value != base::show({}, row)) text += fmt::format(" {}={}", row.name, value);
  }
  text += '\n' + show_values("model", network.model, sim::model_keys());
  text += show_values("faults", network.faults, sim::fault_keys());
  return text + fmt::format("breaks: {}, two ports: {}\n", network.breaks, network.rails);
}

} // namespace macadam::torture
