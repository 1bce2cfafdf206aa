// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/library.h"
#include "net/rdma/ibverbs/port_choice.h"

#include <memory>
#include <vector>

namespace macadam::net::rdma::ibverbs {

// A port, and its adapter opened for this process; null if that failed (PortFacts::trouble).
struct OpenPort {
  PortFacts facts;
  std::shared_ptr<ibv_context> context;
};

// All ports of this machine's adapters, in the library's order. Throws base::Error.
std::vector<OpenPort> list_ports(const Library& library);

// What the functions of verbs return or leave in errno: "Cannot allocate memory".
std::string text_of_errno(int error);

} // namespace macadam::net::rdma::ibverbs
