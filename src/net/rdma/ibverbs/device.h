// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "net/rdma/ibverbs/port_choice.h"

#include <memory>
#include <string>
#include <vector>

// The device of real adapters: InfiniBand, RoCE, and the kernel's software RoCE.
namespace macadam::net::rdma::ibverbs {

// Opens the best port (choose_port()) of those that `request` names (parse_port_requests()), for
// the rank of a job that has this number among those of this machine. Throws base::Error: that
// there is no library, no adapter, no port that can be used and why not each of them.
std::unique_ptr<Device> open_device(const std::string& request, int local_rank = 0);

// The same, and a second port beside it if the choice has one, for one of `local_ranks`; else null.
struct Ports {
  std::unique_ptr<Device> first;
  std::unique_ptr<Device> second;
};
Ports open_ports(const std::string& request, int local_rank, int local_ranks);

// What `macadam info` shows of this machine: what a rank would take that is alone on it.
struct Survey {
  struct Port {
    PortFacts facts;
    std::string refusal; // empty: it can be used
    Gid gid;             // ... by this address
    bool chosen = false;
    bool second = false; // ... beside that one
    std::string remark;  // why it is chosen, or is not
  };
  std::string trouble; // why no port can be used; empty: one is chosen
  std::vector<Port> ports;
  DeviceLimits limits; // of the chosen one
};
Survey survey(const std::string& request);

} // namespace macadam::net::rdma::ibverbs
