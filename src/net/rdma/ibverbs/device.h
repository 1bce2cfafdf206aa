// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "net/rdma/ibverbs/port_choice.h"

#include <memory>
#include <string>
#include <vector>

// The device of real adapters: InfiniBand, RoCE, and the kernel's software RoCE.
namespace macadam::net::rdma::ibverbs {

// Opens the port that `request` names (parse_port_request()), or the best one. Throws base::Error:
// that there is no library, no adapter, no port that can be used and why not each of them.
std::unique_ptr<Device> open_device(const std::string& request);

// What `macadam info` shows of this machine.
struct Survey {
  struct Port {
    PortFacts facts;
    std::string refusal; // empty: it can be used
    Gid gid;             // ... by this address
    bool chosen = false;
  };
  std::string trouble; // why no port can be used; empty: one is chosen
  std::vector<Port> ports;
  DeviceLimits limits; // of the chosen one
};
Survey survey(const std::string& request);

} // namespace macadam::net::rdma::ibverbs
