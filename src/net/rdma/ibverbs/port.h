// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "net/rdma/device.h"
#include "net/rdma/ibverbs/adapters.h"
#include "net/rdma/ibverbs/library.h"
#include "net/rdma/ibverbs/loss.h"

#include <cstdint>
#include <memory>
#include <string>

namespace macadam::net::rdma::ibverbs {

// An object of verbs and the function that ends it.
template <class T>
using Owned = std::unique_ptr<T, int (*)(T*)>;

// The opened port that everything else stands on. Outlives all objects made of it.
struct Port {
  Port(const Library& loaded, OpenPort open, const Gid& address);
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  // How packets get to another port: by its LID on InfiniBand, by its GID where that is needed.
  [[nodiscard]] ibv_ah_attr route_to(const PortAddress& to) const;

  // Throws base::Error (MPI_ERR_NO_MEM) when verbs has refused to make `what` with `error`: says
  // what limits may be the reason, and the remedy.
  [[noreturn]] void refuse_object(const std::string& what, int error) const;
  // The driver takes no more `what`: nothing can be done here any more.
  [[gnu::cold]] void tell_refused(const char* what, int error);
  // What verbs needs pinned counts against the limit of locked memory.
  [[nodiscard]] static std::string locked_memory_limit();

  const Library library;
  const std::shared_ptr<ibv_context> context;
  const PortFacts facts;
  const Gid gid;
  const std::string name; // "mlx5_0:1"
  const Owned<ibv_pd> domain;
  DeviceLimits limits;
  PortAddress address;
  Loss loss;
};

} // namespace macadam::net::rdma::ibverbs
