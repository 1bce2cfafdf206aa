// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "boot/processes.h"
#include "gravel/driver.h"
#include "libgravel/exchange.h"
#include "libgravel/job.h"
#include "net/rdma/device.h"
#include "net/shm/transport.h"

#include <memory>
#include <optional>
#include <vector>

namespace macadam::libgravel {

// Everything between gravel_init() and gravel_finalize(): the networks, made as the settings ask
// (MACADAM_NETWORK and others, as for Macadam itself), and the core on them.
class Library final {
 public:
  // Collective over the communicator. Throws gravel::Error or base::Error.
  explicit Library(MPI_Comm comm);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] gravel::Driver& driver() { return *driver_; }

 private:
  static constexpr std::uint32_t slots = 16; // of a ledger

  void check_same(const std::vector<Greeting>& greetings) const;
  void make_networks();
  void make_far_network();
  void open_rdma();
  void open_libfabric();
  [[nodiscard]] gravel::RemoteMemory ledgers_of(gravel::Rank peer) const;

  Exchange exchange_; // its communicator is not used after the constructor
  base::Settings settings_;
  std::optional<Job> job_;
  std::optional<boot::Processes> processes_;
  std::vector<EndpointAddress> endpoint_addresses_; // by rank
  std::unique_ptr<net::rdma::Device> device_;
  std::unique_ptr<net::shm::Transport> shm_;
  std::unique_ptr<engine::Transport> far_; // between machines
  std::optional<gravel::Driver> driver_;
};

} // namespace macadam::libgravel
