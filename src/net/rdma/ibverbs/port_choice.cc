// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/port_choice.h"

#include "base/error.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <set>

namespace macadam::net::rdma::ibverbs {
namespace {

constexpr const char* variable = "MACADAM_RDMA_DEVICE";

// ::ffff:a.b.c.d
bool is_ipv4(const Gid& gid) {
  constexpr std::array<std::uint8_t, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(mapped.begin(), mapped.end(), gid.bytes.begin());
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

// The first of the requests that allows it, null if none does.
const PortRequest* find_request(const PortFacts& port, std::span<const PortRequest> requests) {
  for (const PortRequest& request : requests)
    if (request.device == port.device && (!request.port || *request.port == port.number))
      return &request;
  return nullptr;
}

bool is_wanted(const PortFacts& port, std::span<const PortRequest> requests) {
  return requests.empty() || find_request(port, requests) != nullptr;
}

[[noreturn]] void refuse_port_request(std::string_view text) {
  base::fail(
      MPI_ERR_ARG,
      "{}: found '{}', needed an adapter's name, then if wanted its port and the index of an "
      "address: name[:port[:gid index]], as in mlx5_0:1:3; several of these are separated by "
      "commas; `macadam info` lists them",
      variable, text);
}

PortRequest parse_port_request(std::string_view text) {
  PortRequest request;
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

// ---- Which ports reach each other, and how near they are

bool share_bits(const Gid& a, const Gid& b, unsigned bits) {
  for (unsigned bit = 0; bit < bits; ++bit)
    if (((a.bytes[bit / 8] ^ b.bytes[bit / 8]) >> (7 - bit % 8) & 1) != 0) return false;
  return true;
}

// A port with its address. That they do is taken for known only in one subnet: of InfiniBand by the
// prefix that its manager gives, of Ethernet by the network interfaces' addresses.
struct Candidate {
  std::size_t index = 0;
  const PortFacts* port = nullptr;
  Gid gid;
};
bool reach_each_other(const Candidate& a, const Candidate& b) {
  constexpr unsigned prefix_bits = 64;
  if (a.port->layer != b.port->layer || a.gid.kind != b.gid.kind) return false;
  if (a.port->layer == LinkLayer::infiniband) return share_bits(a.gid, b.gid, prefix_bits);
  return a.gid.subnet_bits == b.gid.subnet_bits && share_bits(a.gid, b.gid, a.gid.subnet_bits);
}

// The prefix that InfiniBand's managers come with: two networks that have both kept it look like
// one.
bool has_default_prefix(const Candidate& c) {
  constexpr std::array<std::uint8_t, 8> prefix = {0xfe, 0x80};
  return c.port->layer == LinkLayer::infiniband &&
         std::ranges::equal(prefix, std::span(c.gid.bytes).first<8>());
}

bool intersect(const Threads& a, const Threads& b) {
  return std::ranges::any_of(a, [&](unsigned one) { return std::ranges::binary_search(b, one); });
}

// Of the process's nearest core to the adapter, as the kernel counts.
constexpr unsigned least_distance = 10;
constexpr unsigned most_distance = 255;
unsigned distance_to(const PortFacts& port, const Seat& seat) {
  if (port.near.empty() || seat.threads.empty() || intersect(port.near, seat.threads))
    return least_distance;
  const auto home = std::ranges::find(seat.nodes, port.node, &NumaNode::number);
  const auto at = static_cast<std::size_t>(home - seat.nodes.begin());
  unsigned distance = most_distance;
  for (const NumaNode& node : seat.nodes)
    if (at < node.distances.size() && intersect(node.threads, seat.threads))
      distance = std::min(distance, node.distances[at]);
  return distance;
}

// Ranks of a machine that sit near the same ports take them in turn. Which ranks these are is not
// known, as launchers fill one part of a machine after the other, or all in turn: this is even in
// both cases. `parts` of the machine have ports of their own.
std::size_t turn_of(unsigned local_rank, std::size_t parts) {
  return local_rank / parts + local_rank % parts;
}

std::size_t count_parts(const std::vector<Candidate>& candidates) {
  std::set<Threads> parts;
  for (const Candidate& candidate : candidates)
    parts.insert(candidate.port->near);
  return parts.size();
}

std::string names_of(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& candidate : candidates)
    text += (text.empty() ? "" : ", ") + candidate.port->name();
  return text;
}

// Ranks of a machine take the first ports of the list in turn, and the next ones as second ports.
// If only some of `fast` are near, what others take is not known.
void choose_second(const std::vector<Candidate>& fast, const std::vector<Candidate>& nearest,
                   const Candidate& taken, const Seat& seat, PortChoice& choice) {
  const auto set = [&](const Candidate& second) {
    choice.second = second.index;
    choice.second_gid = second.gid;
    choice.others[second.index] =
        fmt::format("beside {} for half of long data, as no other rank of this machine takes it",
                    taken.port->name());
  };
  if (fast.size() < 2 || seat.local_ranks == 0) return;
  if (fast.size() <= seat.local_ranks) {
    choice.why_alone = "this machine has no port for it that no other rank takes";
  } else if (seat.local_ranks == 1) {
    const auto& from = nearest.size() > 1 ? nearest : fast;
    set(*std::ranges::find_if(from, [&](const Candidate& c) { return c.index != taken.index; }));
  } else if (nearest.size() < fast.size()) {
    choice.why_alone = "not all ports are as near to all ranks of this machine";
  } else if (const std::size_t next = seat.local_rank + seat.local_ranks; next < nearest.size()) {
    set(nearest[next]);
  } else {
    choice.why_alone = "other ranks of this machine take the ports that are left";
  }
}

[[noreturn]] void fail_without_port(std::span<const PortFacts> ports,
                                    std::span<const PortRequest> requests) {
  if (ports.empty()) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: libibverbs finds no RDMA adapter on this machine; load the adapter's driver, "
               "make a software one (rdma link add rxe0 type rxe netdev eth0), or leave "
               "MACADAM_NETWORK at automatic");
  }
  std::string refusals, there, named;
  for (const PortFacts& port : ports) {
    there += (there.empty() ? "" : ", ") + port.name();
    if (is_wanted(port, requests))
      refusals += fmt::format("; {}: {}", port.name(), judge(port, requests).refusal);
  }
  if (!refusals.empty()) base::fail(MPI_ERR_OTHER, "RDMA: no port can be used{}", refusals);
  for (const PortRequest& request : requests)
    named += fmt::format("{}{}{}", named.empty() ? "" : ", ", request.device,
                         request.port ? fmt::format(":{}", *request.port) : "");
  base::fail(MPI_ERR_OTHER, "RDMA: {} names {}, which is not there; this machine has {}", variable,
             named, there);
}

} // namespace

bool is_link_local(const Gid& gid) {
  return gid.bytes[0] == 0xfe && (gid.bytes[1] & 0xc0) == 0x80;
}

std::string PortFacts::name() const {
  return fmt::format("{}:{}", device, number);
}

std::vector<PortRequest> parse_port_requests(std::string_view text) {
  std::vector<PortRequest> requests;
  if (text.empty()) return requests;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    const std::size_t comma = text.find(',', at);
    requests.push_back(parse_port_request(text.substr(at, comma - at)));
    at = comma == std::string_view::npos ? comma : comma + 1;
  }
  return requests;
}

Verdict judge(const PortFacts& port, std::span<const PortRequest> requests) {
  const auto refuse = [](std::string why) { return Verdict{std::move(why), {}}; };
  if (!is_wanted(port, requests)) return refuse(fmt::format("{} names another", variable));
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
  const PortRequest* const request = find_request(port, requests);
  if (request != nullptr && request->gid) {
    const auto found = std::ranges::find(port.gids, *request->gid, &Gid::index);
    if (found != port.gids.end()) return {{}, *found};
    return refuse(
        fmt::format("it has no GID of index {}; there are: {}", *request->gid, list_of(port.gids)));
  }
  if (const std::optional<Gid> gid = best_gid(port)) return {{}, *gid};
  if (port.layer == LinkLayer::infiniband && !port.global) return {};
  return refuse(fmt::format("it has no GID of type RoCE v2, found: {}; give its network interface "
                            "an IP address, or name a GID by {}={}:{}:INDEX",
                            list_of(port.gids), variable, port.device, port.number));
}

PortChoice choose_port(std::span<const PortFacts> ports, std::span<const PortRequest> requests,
                       const Seat& seat) {
  std::vector<Candidate> usable;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (const Verdict verdict = judge(ports[i], requests); verdict.refusal.empty())
      usable.push_back({i, &ports[i], verdict.gid});
  if (usable.empty()) fail_without_port(ports, requests);
  // The first of the fastest is the same for all ranks of a machine. What does not reach it is
  // another network, which ranks elsewhere may not be on.
  const Candidate best =
      *std::ranges::max_element(usable, {}, [](const Candidate& c) { return c.port->gigabits; });
  PortChoice choice;
  choice.others.resize(ports.size());
  std::vector<Candidate> fast;
  for (const Candidate& candidate : usable) {
    std::string& why_not = choice.others[candidate.index];
    if (candidate.index == best.index)
      fast.push_back(candidate);
    else if (candidate.port->gigabits < best.port->gigabits)
      why_not = "slower";
    else if (!reach_each_other(candidate, best))
      why_not =
          fmt::format("in another network than {}, or in no subnet with it", best.port->name());
    else if (has_default_prefix(candidate) && requests.empty())
      why_not = fmt::format(
          "in a subnet with the prefix that networks come with, as {} is, so perhaps in another "
          "network; both are used if {} names them",
          best.port->name(), variable);
    else if (candidate.port->software && requests.empty())
      why_not = fmt::format("the kernel's software as {} is; several of these are used if {} names "
                            "them",
                            best.port->name(), variable);
    else
      fast.push_back(candidate);
  }
  unsigned least = most_distance;
  for (const Candidate& candidate : fast)
    least = std::min(least, distance_to(*candidate.port, seat));
  std::vector<Candidate> nearest;
  for (const Candidate& candidate : fast) {
    const unsigned distance = distance_to(*candidate.port, seat);
    if (distance == least)
      nearest.push_back(candidate);
    else
      choice.others[candidate.index] =
          fmt::format("farther from this rank's cores: NUMA distance {}, not {}", distance, least);
  }
  const std::size_t parts = nearest.size() == fast.size() ? 1 : count_parts(fast);
  const Candidate& taken = nearest[turn_of(seat.local_rank, parts) % nearest.size()];
  for (const Candidate& candidate : nearest)
    if (candidate.index != taken.index)
      choice.others[candidate.index] = "as good: other ranks of this machine take it";
  choice.port = taken.index;
  choice.gid = taken.gid;
  choice.several = usable.size() > 1;
  choose_second(fast, nearest, taken, seat, choice);
  if (nearest.size() > 1)
    choice.why = fmt::format("in turn one of {}", names_of(nearest));
  else if (fast.size() > 1)
    choice.why = "the nearest to the rank's cores";
  else
    choice.why = usable.size() > 1 ? "the best port" : "the only port that can be used";
  return choice;
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
