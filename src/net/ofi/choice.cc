// SPDX-License-Identifier: BSD-3-Clause
#include "net/ofi/choice.h"

#include "base/error.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdlib>
#include <memory>
#include <netdb.h>
#include <string_view>
#include <sys/socket.h>
#include <tuple>
#include <unistd.h>

namespace macadam::net::ofi {
namespace {

// Fastest first. What is not here comes last: it is offered only if the user asks for it
// (FI_PROVIDER), or if there is nothing else.
constexpr std::array<std::string_view, 8> providers = {
    "cxi", "efa", "psm3", "opx", "psm2", "verbs;ofi_rxm", "tcp", "tcp;ofi_rxm"};

std::size_t place_of(const std::string& provider) {
  return static_cast<std::size_t>(std::ranges::find(providers, provider) - providers.begin());
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

bool is_link_local(const std::string& address) {
  return address.starts_with("fe80:") || address.starts_with("169.254.");
}

bool is_ipv6(const std::string& address) {
  return address.find(':') != std::string::npos;
}

bool fits(const Offer& offer, const Wish& wish) {
  if (!wish.interface.empty())
    return offer.domain == wish.interface || offer.address == wish.interface;
  if (offer.address.empty()) return wish.one_machine || offer.provider != "shm";
  // Adapters have no loopback address; theirs are in a space of ports of their own.
  if (wish.one_machine && !offer.provider.starts_with("verbs")) return is_loopback(offer.address);
  if (is_loopback(offer.address) || is_link_local(offer.address)) return false;
  return wish.source.empty() || offer.address == wish.source;
}

} // namespace

Wish wish_of(const boot::Job& job, const base::Settings& settings, const std::string& other_host) {
  Wish wish = {.one_machine = true, .interface = settings.net_interface, .source = {}};
  for (int rank = 0; rank < job.size() && wish.one_machine; ++rank) {
    if (job.is_local(rank)) continue;
    wish.one_machine = false;
    wish.source = source_address(std::string(job.host_of(rank)));
  }
  if (wish.one_machine && !other_host.empty()) {
    wish.one_machine = false;
    wish.source = source_address(other_host);
  }
  return wish;
}

std::size_t choose(std::span<const Offer> offers, const Wish& wish) {
  const auto worth = [&](const Offer& offer) {
    // Over RoCE only IP addresses lead to a peer, and `verbs` offers others before them.
    return std::tuple(!fits(offer, wish), place_of(offer.provider), offer.address.empty(),
                      is_ipv6(offer.address));
  };
  const auto best = std::ranges::min_element(offers, {}, worth);
  if (best != offers.end() && fits(*best, wish))
    return static_cast<std::size_t>(best - offers.begin());
  std::string all;
  for (const Offer& offer : offers) {
    const std::string row = fmt::format("{} on {}{}{}", offer.provider, offer.domain,
                                        offer.address.empty() ? "" : " ", offer.address);
    if (all.find(row) == std::string::npos) all += (all.empty() ? "" : ", ") + row;
  }
  const char* const named = std::getenv("FI_PROVIDER");
  if (all.empty() && named != nullptr) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: FI_PROVIDER is '{}', found no such provider with reliable datagrams "
               "(FI_EP_RDM), puts and gets; unset it, or name one that `fi_info -t FI_EP_RDM` "
               "shows without it",
               named);
  }
  if (!wish.interface.empty()) {
    base::fail(MPI_ERR_OTHER,
               "libfabric: MACADAM_NET_INTERFACE is '{}', found {}; name one of them",
               wish.interface, all.empty() ? "none" : all);
  }
  base::fail(MPI_ERR_OTHER,
             "libfabric: no provider reaches {}, found {}; name the interface that does in "
             "MACADAM_NET_INTERFACE",
             wish.one_machine ? "the ranks of this machine alone" : "the other machines",
             all.empty() ? "none" : all);
}

std::string source_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    // Of a datagram socket: looks up the route and sends nothing.
    const bool routed = ::connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
                        getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0;
    close(fd);
    std::array<char, NI_MAXHOST> text;
    if (!routed || getnameinfo(reinterpret_cast<sockaddr*>(&own), bytes, text.data(), text.size(),
                               nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    return text.data();
  }
  return {};
}

} // namespace macadam::net::ofi
