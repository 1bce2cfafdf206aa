// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/surroundings.h"

#include "base/line.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <ifaddrs.h>
#include <memory>
#include <netinet/in.h>
#include <sstream>
#include <system_error>

namespace macadam::net::rdma::ibverbs {
namespace {

namespace fs = std::filesystem;
using base::read_line;

// "0-3,8"
Threads read_threads(const std::string& path) {
  Threads threads;
  std::istringstream list(read_line(path));
  for (std::string range; std::getline(list, range, ',');) {
    std::istringstream text(range);
    unsigned first = 0, last = 0;
    char dash = 0;
    if (!(text >> first)) return {};
    if (!(text >> dash >> last)) last = first;
    for (unsigned thread = first; thread <= last; ++thread)
      threads.push_back(thread);
  }
  return threads;
}

// An address of an interface and its mask, as a GID has addresses.
struct Subnet {
  std::array<std::uint8_t, 16> address = {};
  unsigned bits = 0;
};

Subnet make_subnet(const sockaddr& address, const sockaddr& mask) {
  Subnet subnet;
  std::array<std::uint8_t, 16> set = {};
  if (address.sa_family == AF_INET) {
    constexpr unsigned before = 12; // ::ffff:a.b.c.d
    subnet.address[10] = subnet.address[11] = 0xff;
    std::memcpy(subnet.address.data() + before,
                &reinterpret_cast<const sockaddr_in&>(address).sin_addr, 4);
    std::memcpy(set.data(), &reinterpret_cast<const sockaddr_in&>(mask).sin_addr, 4);
    subnet.bits = 8 * before;
  } else {
    std::memcpy(subnet.address.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr,
                16);
    std::memcpy(set.data(), &reinterpret_cast<const sockaddr_in6&>(mask).sin6_addr, 16);
  }
  for (const std::uint8_t byte : set)
    subnet.bits += static_cast<unsigned>(std::popcount(byte));
  return subnet;
}

std::vector<Subnet> list_subnets() {
  std::vector<Subnet> subnets;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return subnets;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(first, freeifaddrs);
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    const bool known = at->ifa_addr != nullptr && at->ifa_netmask != nullptr &&
                       (at->ifa_addr->sa_family == AF_INET || at->ifa_addr->sa_family == AF_INET6);
    if (known) subnets.push_back(make_subnet(*at->ifa_addr, *at->ifa_netmask));
  }
  return subnets;
}

} // namespace

void read_surroundings(PortFacts& port, const std::string& root) {
  const std::string adapter = root + "/sys/class/infiniband/" + port.device;
  const std::string device = adapter + "/device";
  std::error_code error;
  port.software = fs::exists(adapter, error) && !fs::exists(device, error);
  // What is part of an adapter, as a subfunction is, leaves it to that to say where it is.
  for (const std::string& folder : {device, device + "/.."}) {
    port.near = read_threads(folder + "/local_cpulist");
    if (port.near.empty()) continue;
    std::istringstream(read_line(folder + "/numa_node")) >> port.node;
    break;
  }
  if (port.layer != LinkLayer::ethernet) return;
  const std::vector<Subnet> subnets = list_subnets();
  for (Gid& gid : port.gids) {
    const auto own = std::ranges::find(subnets, gid.bytes, &Subnet::address);
    // Link-local ones all have the same prefix, on whatever link they are: no subnet is known.
    if (own != subnets.end() && !is_link_local(gid)) gid.subnet_bits = own->bits;
  }
}

Seat read_seat(unsigned local_rank, Threads threads, const std::string& root) {
  Seat seat{.local_rank = local_rank, .threads = std::move(threads), .nodes = {}};
  const fs::path folder = root + "/sys/devices/system/node";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    constexpr std::size_t prefix = 4; // "node"
    if (!name.starts_with("node") || name.size() == prefix ||
        std::isdigit(static_cast<unsigned char>(name[prefix])) == 0)
      continue;
    NumaNode node{.number = std::stoi(name.substr(prefix)),
                  .threads = read_threads(entry.path() / "cpulist"),
                  .distances = {}};
    std::istringstream distances(read_line(entry.path() / "distance"));
    for (unsigned distance = 0; distances >> distance;)
      node.distances.push_back(distance);
    seat.nodes.push_back(std::move(node));
  }
  std::ranges::sort(seat.nodes, {}, &NumaNode::number); // the order of the distances
  return seat;
}

} // namespace macadam::net::rdma::ibverbs
