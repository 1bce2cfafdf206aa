// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fabric.h"

#include <algorithm>

namespace macadam::sim {

Fabric::Fabric(Scheduler& scheduler, const Model& model, const Faults& faults, std::uint64_t seed)
    : scheduler_(scheduler), model_(model), faults_(faults), random_(seed) {}

Fabric::~Fabric() {
  while (!datagrams_.empty())
    drop(&datagrams_.front());
}

Datagram* Fabric::make_datagram() {
  auto* datagram = new Datagram;
  datagrams_.push_back(*datagram);
  return datagram;
}

Datagram* Fabric::copy(const Datagram& datagram) {
  Datagram* twin = make_datagram();
  twin->id = datagram.id;
  twin->port = datagram.port;
  twin->number = datagram.number;
  twin->qkey = datagram.qkey;
  twin->immediate = datagram.immediate;
  twin->operation = datagram.operation;
  twin->data = datagram.data;
  return twin;
}

void Fabric::drop(Datagram* datagram) {
  datagram->unlink();
  delete datagram;
}

std::uint32_t Fabric::attach(SimulatedDevice& device) {
  ports_.push_back({.device = &device});
  return static_cast<std::uint32_t>(ports_.size());
}

Fabric::Trip Fabric::transmit(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
  const Time wire = transfer_time(bytes, model_.bandwidth_mb_per_s);
  Port& source = port(from);
  // Wu et al., section 1: on Berkeley VIA each open connection slows every message.
  const double gap = model_.message_gap_ns + model_.gap_per_queue_pair_ns * source.connections;
  source.sends_until =
      std::max(scheduler_.now(), source.sends_until) + std::max(from_ns(gap), wire);
  Time arrived = source.sends_until + latency();
  if (to - 1 < ports_.size()) {
    Port& target = port(to);
    if (source.node != target.node || source.node < 0) counters.bytes_between_nodes += bytes;
    const Time taking_in =
        model_.incoming_mb_per_s > 0 ? transfer_time(bytes, model_.incoming_mb_per_s) : wire;
    arrived = std::max(arrived, target.receives_until + taking_in);
    target.receives_until = arrived;
  }
  return {source.sends_until, arrived};
}

} // namespace macadam::sim
