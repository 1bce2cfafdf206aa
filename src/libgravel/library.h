// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "gravel/core.h"
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

  [[nodiscard]] gravel::Core& core() { return *core_; }

  // Makes progress until done() is true. `on`: the peer it depends on, or gravel::any_source;
  // whether that one has ended is looked at now and then.
  template <class Done>
  void wait(int on, Done&& done) {
    unsigned fruitless = 0;
    while (!done()) {
      if (core_->progress()) {
        fruitless = 0;
        continue;
      }
      if (++fruitless > patient_polls) [[unlikely]]
        watch(on);
      core_->networks().idle(fruitless, longest_sleep_us);
    }
    if (fruitless != 0) core_->networks().resume();
  }
  // After something was begun: it leaves now if it can. A connection is waited for, as nobody could
  // say when the program calls again.
  void push();
  // Until all that was begun has arrived.
  void drain();

 private:
  static constexpr std::uint32_t slots = 16; // of a ledger
  static constexpr unsigned patient_polls = 32;
  static constexpr unsigned longest_sleep_us = 100'000;

  void watch(int on);
  void watch_peer(gravel::Rank peer);
  void make_networks();

  // gravel::Directory, net::rdma::Directory
  [[nodiscard]] gravel::Rank rank() const override { return exchange_.rank(); }
  [[nodiscard]] gravel::Rank size() const override { return exchange_.size(); }
  [[nodiscard]] gravel::RemoteMemory ledgers(gravel::Rank peer) const override;
  [[nodiscard]] std::array<std::uint8_t, 16> secret() const override {
    return greetings_[0].secret;
  }
  [[nodiscard]] bool serves(gravel::Rank peer) const override { return !by_shm(peer); }
  void publish(const net::rdma::wire::Endpoint& own) override { endpoint_ = own; }
  net::rdma::wire::Endpoint find(gravel::Rank peer) override { return cards_[peer].endpoint; }
  [[nodiscard]] bool knows(gravel::Rank) const override { return !cards_.empty(); }

  [[nodiscard]] bool by_shm(gravel::Rank peer) const {
    return shm_ != nullptr && neighbours_->is_local(peer);
  }

  Exchange exchange_; // its communicator is not used after the constructor
  base::Settings settings_;
  std::vector<Greeting> greetings_;
  std::vector<Card> cards_;
  net::rdma::wire::Endpoint endpoint_;
  std::optional<Neighbours> neighbours_;
  std::unique_ptr<net::rdma::Device> device_;
  std::unique_ptr<engine::Transport> shm_, rdma_;
  std::optional<gravel::Core> core_;
  double watched_ = 0;
};

} // namespace macadam::libgravel
