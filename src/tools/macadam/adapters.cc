// SPDX-License-Identifier: BSD-3-Clause
#include "tools/macadam/adapters.h"

#include "base/error.h"
#include "net/ofi/fabric.h"
#include "net/rdma/ibverbs/device.h"

#include <fmt/format.h>

#include <sys/resource.h>

namespace macadam::tools {
namespace {

namespace ibverbs = net::rdma::ibverbs;
using Port = ibverbs::Survey::Port;

constexpr const char* indent = "            ";

std::string line(const std::string& text) {
  return indent + text + "\n";
}

// "RoCE v2, GID 1 = 10.0.2.15"; "InfiniBand, LID 7".
std::string route(const Port& port) {
  if (port.facts.layer == ibverbs::LinkLayer::infiniband && !port.facts.global)
    return fmt::format("InfiniBand, LID {}", port.facts.lid);
  return fmt::format("{}, GID {} = {}", text_of(port.gid.kind), port.gid.index,
                     ibverbs::text_of(port.gid.bytes));
}

std::string place_of(const ibverbs::PortFacts& port) {
  return port.node < 0 ? "" : fmt::format(", NUMA node {}", port.node);
}

std::string describe(const Port& port) {
  if (!port.refusal.empty()) return fmt::format("refused: {}", port.refusal);
  return fmt::format(
      "{}: {}, MTU {}, {:g} Gb/s{}; {}", port.chosen || port.second ? "used" : "could be used",
      route(port), 128u << port.facts.mtu, port.facts.gigabits, place_of(port.facts), port.remark);
}

std::string locked_memory() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "not limited (ulimit -l)";
  return fmt::format("at most {} KiB (ulimit -l)", limit.rlim_cur / 1024);
}

std::string describe(const net::rdma::DeviceLimits& limits) {
  return line(fmt::format("{} queue pairs, {} memory regions, completion queues of {}",
                          limits.queue_pairs, limits.regions, limits.completion_depth)) +
         line(fmt::format("{} requests in a queue, {} shared receives, {} bytes inline",
                          limits.send_depth, limits.shared_depth, limits.inline_bytes)) +
         line(fmt::format(
             "messages to {} bytes, {} reads at a time, atomics: {}, bytes of a write in order: {}",
             limits.message, limits.outstanding_reads, limits.atomics ? "yes" : "no",
             limits.orders_bytes ? "yes" : "no")) +
         line("locked memory " + locked_memory());
}

} // namespace

std::string rdma_section(const base::Settings& settings) {
  const ibverbs::Survey found = ibverbs::survey(settings.rdma_device);
  std::string text =
      fmt::format("  rdma      {}\n",
                  found.trouble.empty() ? "ranks on any machine; MACADAM_NETWORK=rdma: on this too"
                                        : "none: " + found.trouble);
  for (const Port& port : found.ports)
    text += line(fmt::format("{:<10}{}", port.facts.name(), describe(port)));
  return found.trouble.empty() ? text + describe(found.limits) : text;
}

std::string ofi_section(const base::Settings& settings) {
  try {
    const std::vector<net::ofi::Offer> offers = net::ofi::list_offers(net::ofi::load_library());
    const net::ofi::Wish wish = {
        .one_machine = false, .interface = settings.net_interface, .source = {}};
    const net::ofi::Offer& best = offers[net::ofi::choose(offers, wish)];
    return fmt::format("  ofi       ranks on any machine, where there is no RDMA adapter; "
                       "MACADAM_NETWORK=ofi: on this too\n{}",
                       line(fmt::format("libfabric's provider {} on {} {}", best.provider,
                                        best.domain, best.address)));
  } catch (const base::Error& error) {
    return fmt::format("  ofi       none: {}\n", error.text);
  }
}

} // namespace macadam::tools
