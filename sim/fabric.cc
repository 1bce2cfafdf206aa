// SPDX-License-Identifier: BSD-3-Clause
#include "sim/fabric.h"

#include <algorithm>
#include <iterator>

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
  ports_.push_back({.device = &device, .link = links_.size()});
  links_.emplace_back();
  return static_cast<std::uint32_t>(ports_.size());
}

void Fabric::put_into(int node, int number, std::uint32_t lid) {
  Port& its = port(lid);
  its.node = node;
  its.link = links_of_nodes_.try_emplace({node, number}, its.link).first->second;
}

Time Fabric::Link::take_in(Time now, Time earliest, Time length) {
  while (!receives.empty() && receives.begin()->second <= now - length)
    receives.erase(receives.begin());
  Time begin = earliest - length;
  auto next = receives.upper_bound(begin);
  if (next != receives.begin()) begin = std::max(begin, std::prev(next)->second);
  for (; next != receives.end() && next->first < begin + length; ++next)
    begin = std::max(begin, next->second);
  const Time end = begin + length;
  // Joined with those that it touches.
  auto own = receives.emplace_hint(next, begin, end);
  if (next != receives.end() && next->first == end) {
    own->second = next->second;
    receives.erase(next);
  }
  if (own != receives.begin() && std::prev(own)->second == begin) {
    std::prev(own)->second = own->second;
    receives.erase(own);
  }
  return end;
}

Fabric::Trip Fabric::transmit(std::uint32_t from, std::uint32_t to, std::uint64_t bytes) {
  const Time wire = transfer_time(bytes, model_.bandwidth_mb_per_s);
  Port& source = port(from);
  Link& out = links_[source.link];
  // Wu et al., section 1: on Berkeley VIA each open connection slows every message.
  const double gap = model_.message_gap_ns + model_.gap_per_queue_pair_ns * source.connections;
  out.sends_until = std::max(scheduler_.now(), out.sends_until) + std::max(from_ns(gap), wire);
  Time arrived = out.sends_until + latency();
  if (to - 1 < ports_.size()) {
    const Port& target = port(to);
    if (source.node != target.node || source.node < 0) counters.bytes_between_nodes += bytes;
    const Time taking_in =
        model_.incoming_mb_per_s > 0 ? transfer_time(bytes, model_.incoming_mb_per_s) : wire;
    arrived = links_[target.link].take_in(scheduler_.now(), arrived, taking_in);
  }
  return {out.sends_until, arrived};
}

} // namespace macadam::sim
