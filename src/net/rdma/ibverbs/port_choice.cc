// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/port_choice.h"

#include "base/error.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>

namespace macadam::net::rdma::ibverbs {
namespace {

constexpr const char* variable = "MACADAM_RDMA_DEVICE";

// ::ffff:a.b.c.d
bool is_ipv4(const Gid& gid) {
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), gid.bytes.begin());
}

bool is_link_local(const Gid& gid) {
  return gid.bytes[0] == 0xfe && (gid.bytes[1] & 0xc0) == 0x80;
}

// How well an address of an Ethernet port serves, 0: not at all. A link-local one is not routed,
// and RoCE v1 packets are not either, nor does every switch carry them: by the user's word only.
int rank_of(const Gid& gid) {
  if (gid.kind != GidKind::roce_v2) return 0;
  if (is_ipv4(gid)) return 3;
  return is_link_local(gid) ? 1 : 2;
}

std::optional<Gid> best_gid(const PortFacts& port) {
  if (port.layer == LinkLayer::infiniband) {
    if (port.gids.empty()) return std::nullopt;
    return port.gids.front();
  }
  const auto best = std::ranges::max_element(port.gids, {}, rank_of);
  if (best == port.gids.end() || rank_of(*best) == 0) return std::nullopt;
  return *best;
}

std::string list_of(const std::vector<Gid>& gids) {
  if (gids.empty()) return "none";
  std::string text;
  for (const Gid& gid : gids)
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", gid.index, text_of(gid.bytes),
                        text_of(gid.kind));
  return text;
}

bool is_wanted(const PortFacts& port, const PortRequest& request) {
  return (request.device.empty() || request.device == port.device) &&
         (!request.port || *request.port == port.number);
}

[[noreturn]] void refuse_port_request(std::string_view text) {
  base::fail(
      MPI_ERR_ARG,
      "{}: found '{}', needed an adapter's name, then if wanted its port and the index of an "
      "address: name[:port[:gid index]], as in mlx5_0:1:3; `macadam info` lists them",
      variable, text);
}

} // namespace

std::string PortFacts::name() const {
  return fmt::format("{}:{}", device, number);
}

PortRequest parse_port_request(std::string_view text) {
  PortRequest request;
  if (text.empty()) return request;
  std::string_view rest = text;
  const auto next_part = [&] {
    const std::size_t colon = rest.find(':');
    const std::string_view part = rest.substr(0, colon);
    rest = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    if (part.empty() || (colon != std::string_view::npos && rest.empty()))
      refuse_port_request(text);
    return part;
  };
  const auto number = [&](std::uint32_t least) {
    const std::string_view part = next_part();
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc{} || end != part.data() + part.size() || value < least || value > 255)
      refuse_port_request(text);
    return value;
  };
  request.device = next_part();
  if (!rest.empty()) request.port = number(1);
  if (!rest.empty()) request.gid = number(0);
  if (!rest.empty()) refuse_port_request(text);
  return request;
}

Verdict judge(const PortFacts& port, const PortRequest& request) {
  const auto refuse = [](std::string why) { return Verdict{std::move(why), {}}; };
  if (!is_wanted(port, request)) return refuse(fmt::format("{} names another", variable));
  if (!port.trouble.empty()) return refuse(port.trouble);
  if (!port.queue_pairs)
    return refuse("it has no reliable and datagram queue pairs: neither InfiniBand nor RoCE");
  if (!port.active) {
    return refuse(fmt::format("its state is {}, needed active; {}", port.state,
                              port.layer == LinkLayer::ethernet
                                  ? "set its network interface up, and look at the cable"
                                  : "look at the cable and the subnet manager"));
  }
  if (port.layer == LinkLayer::other) return refuse("its link is neither InfiniBand nor Ethernet");
  if (port.layer == LinkLayer::infiniband && port.lid == 0 && !port.global)
    return refuse("it has no LID: no subnet manager has given it one");
  if (request.gid) {
    const auto found = std::ranges::find(port.gids, *request.gid, &Gid::index);
    if (found != port.gids.end()) return {{}, *found};
    return refuse(
        fmt::format("it has no GID of index {}; there are: {}", *request.gid, list_of(port.gids)));
  }
  if (const std::optional<Gid> gid = best_gid(port)) return {{}, *gid};
  if (port.layer == LinkLayer::infiniband && !port.global) return {};
  return refuse(fmt::format("it has no GID of type RoCE v2, found: {}; give its network interface "
                            "an IP address, or name a GID by {}={}:{}:INDEX",
                            list_of(port.gids), variable, port.device, port.number));
}

PortChoice choose_port(std::span<const PortFacts> ports, const PortRequest& request) {
  std::optional<PortChoice> choice;
  std::string refusals;
  bool named = false;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    named = named || is_wanted(ports[i], request);
    const Verdict verdict = judge(ports[i], request);
    if (!verdict.refusal.empty()) {
      if (is_wanted(ports[i], request))
        refusals += fmt::format("; {}: {}", ports[i].name(), verdict.refusal);
    } else if (!choice || ports[i].gigabits > ports[choice->port].gigabits) {
      choice = {i, verdict.gid};
    }
  }
  if (choice) return *choice;
  if (ports.empty()) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: libibverbs finds no RDMA adapter on this machine; load the adapter's driver, "
               "make a software one (rdma link add rxe0 type rxe netdev eth0), or leave "
               "MACADAM_NETWORK at automatic");
  }
  if (!named) {
    std::string there;
    for (const PortFacts& port : ports)
      there += (there.empty() ? "" : ", ") + port.name();
    base::fail(MPI_ERR_OTHER, "RDMA: {} names {}{}, which is not there; this machine has {}",
               variable, request.device, request.port ? fmt::format(":{}", *request.port) : "",
               there);
  }
  base::fail(MPI_ERR_OTHER, "RDMA: no port can be used{}", refusals);
}

std::string text_of(const std::array<std::uint8_t, 16>& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  Gid address;
  address.bytes = gid;
  if (is_ipv4(address))
    inet_ntop(AF_INET, gid.data() + 12, text.data(), text.size());
  else
    inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
  return text.data();
}

const char* text_of(GidKind kind) {
  switch (kind) {
  case GidKind::infiniband:
    return "InfiniBand";
  case GidKind::roce_v1:
    return "RoCE v1";
  case GidKind::roce_v2:
    return "RoCE v2";
  }
  return "";
}

} // namespace macadam::net::rdma::ibverbs
