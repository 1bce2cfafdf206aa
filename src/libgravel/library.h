// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "gravel/driver.h"
#include "libgravel/exchange.h"
#include "libgravel/neighbours.h"
#include "net/rdma/device.h"
#include "net/rdma/directory.h"

#include <memory>
#include <optional>
#include <vector>

namespace macadam::libgravel {

// Everything between gravel_init() and gravel_finalize(): the networks, made as the settings ask
// (MACADAM_NETWORK and others, as for Macadam itself), and the core on them.
class Library final : gravel::Directory, net::rdma::Directory {
 public:
  // Collective over the communicator. Throws gravel::Error or base::Error.
  explicit Library(MPI_Comm comm);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() override = default;

  [[nodiscard]] gravel::Driver& driver() { return *driver_; }

 private:
  static constexpr std::uint32_t slots = 16; // of a ledger

  void make_networks();

  // gravel::Directory, net::rdma::Directory
  [[nodiscard]] gravel::Rank rank() const override { return exchange_.rank(); }
  [[nodiscard]] gravel::Rank size() const override { return exchange_.size(); }
  [[nodiscard]] gravel::RemoteMemory ledgers(gravel::Rank peer) const override;
  [[nodiscard]] bool is_near(gravel::Rank peer) const override {
    return shm_ != nullptr && neighbours_->is_local(peer);
  }
  [[nodiscard]] bool has_ended(gravel::Rank peer) const override {
    return neighbours_->has_ended(peer);
  }
  [[nodiscard]] std::array<std::uint8_t, 16> secret() const override {
    return greetings_[0].secret;
  }
  [[nodiscard]] bool serves(gravel::Rank peer) const override { return !is_near(peer); }
  [[nodiscard]] bool oversubscribed() const override;
  void publish(const net::rdma::wire::Endpoint& own) override { endpoint_ = own; }
  net::rdma::wire::Endpoint find(gravel::Rank peer) override {
    return endpoint_addresses_[peer].endpoint;
  }
  [[nodiscard]] bool knows(gravel::Rank) const override { return !endpoint_addresses_.empty(); }

  Exchange exchange_; // its communicator is not used after the constructor
  base::Settings settings_;
  std::vector<Greeting> greetings_;
  std::vector<EndpointAddress> endpoint_addresses_;
  net::rdma::wire::Endpoint endpoint_;
  std::optional<Neighbours> neighbours_;
  std::unique_ptr<net::rdma::Device> device_;
  std::unique_ptr<engine::Transport> shm_, rdma_;
  std::optional<gravel::Driver> driver_;
};

} // namespace macadam::libgravel
