// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "boot/job.h"

#include <cstddef>
#include <span>
#include <string>

namespace macadam::net::ofi {

// One of the endpoints that libfabric offers, as far as the choice goes.
struct Offer {
  std::string provider; // "tcp;ofi_rxm"
  std::string domain;   // "eth0", "mlx5_0"
  std::string address;  // an IP address as text; empty: the provider has addresses of its own
};

// What is wanted of it.
struct Wish {
  bool one_machine = false; // all of the job are here: strangers must not reach us
  std::string interface;    // MACADAM_NET_INTERFACE: a domain or an IP address; empty: the best
  // The address from which this machine reaches another one of the job; empty: not known.
  std::string source;
};

// That of a job's processes, under these settings. `other_host` is one besides that is to be
// reached; empty: there is none.
[[nodiscard]] Wish wish_of(const boot::Job& job, const base::Settings& settings,
                           const std::string& other_host = {});

// The place of the best offer: the fastest provider, on the interface that the others can reach, or
// on loopback if there are none. Throws base::Error (MPI_ERR_OTHER), with all offers, if none does.
[[nodiscard]] std::size_t choose(std::span<const Offer> offers, const Wish& wish);

// The IP address of this machine from which packets to `host` (a name or an address) leave, as the
// kernel routes them; nothing is sent. Empty if the name is not known or there is no way.
[[nodiscard]] std::string source_address(const std::string& host);

} // namespace macadam::net::ofi
