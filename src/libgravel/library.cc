// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/library.h"

#include "boot/configuration.h"
#include "net/rdma/ibverbs/device.h"
#include "net/rdma/transport.h"
#include "net/shm/transport.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace macadam::libgravel {

using gravel::Code;
using gravel::fail;
using gravel::Rank;

Library::Library(MPI_Comm comm) : exchange_(comm) {
  Greeting own;
  keep_trouble(own.trouble, [&] {
    const boot::Configuration configuration = boot::read_configuration();
    settings_ = configuration.settings;
    if (exchange_.rank() == 0)
      for (const std::string& warning : configuration.warnings)
        std::fprintf(stderr, "gravel: warning: %s\n", warning.c_str());
    own.network = static_cast<std::uint32_t>(settings_.network);
    own.machine = this_machine();
    if (getrandom(own.secret.data(), own.secret.size(), 0) !=
        static_cast<ssize_t>(own.secret.size()))
      fail(Code::system, "getrandom for the job's secret failed: {}", std::strerror(errno));
    neighbours_.emplace();
    neighbours_->describe(own);
  });
  greetings_ = exchange_.allgather(own);
  EndpointAddress endpoint_address;
  keep_trouble(endpoint_address.trouble, [&] {
    make_networks();
    if (shm_) endpoint_address.shm_ledgers = driver_->core().ledgers(0);
    if (rdma_) endpoint_address.rdma_ledgers = driver_->core().ledgers(shm_ ? 1 : 0);
    endpoint_address.endpoint = endpoint_;
  });
  endpoint_addresses_ = exchange_.allgather(endpoint_address);
}

void Library::make_networks() {
  for (Rank rank = 0; rank < greetings_.size(); ++rank) {
    const Greeting& peer = greetings_[rank];
    if (peer.version != Greeting::this_version)
      fail(Code::system, "rank {} has version {} of Gravel's start, this one {}", rank,
           peer.version, Greeting::this_version);
    if (peer.network != static_cast<std::uint32_t>(settings_.network))
      fail(Code::system, "rank {} has another MACADAM_NETWORK; all ranks need the same", rank);
  }
  const bool only_rdma = settings_.network == base::NetworkChoice::rdma && exchange_.size() > 1;
  if (!only_rdma) neighbours_->meet(exchange_.rank(), greetings_);
  const bool one_machine = !only_rdma && neighbours_->local_size() == exchange_.size();
  if (!one_machine && settings_.network == base::NetworkChoice::shm)
    fail(Code::system,
         "MACADAM_NETWORK=shm, but only {} of the {} ranks are on this machine (in one process "
         "namespace); leave MACADAM_NETWORK at automatic",
         neighbours_->local_size(), exchange_.size());
  std::vector<engine::Transport*> nearest_first;
  if (!only_rdma && (one_machine || neighbours_->local_size() > 1)) {
    shm_ = std::make_unique<net::shm::Transport>(*neighbours_, settings_);
    nearest_first.push_back(shm_.get());
  }
  if (!one_machine) {
    device_ = net::rdma::ibverbs::open_device(settings_.rdma_device);
    // Registration is explicit, so nothing watches the program's memory.
    net::rdma::Directory& addresses = *this;
    rdma_ = std::make_unique<net::rdma::RdmaTransport>(*device_, addresses, settings_, nullptr,
                                                       shm_.get(), false);
    nearest_first.push_back(rdma_.get());
  }
  const gravel::Directory& directory = *this;
  driver_.emplace(engine::Networks(std::move(nearest_first)), directory, slots);
}

// Counts those on this machine itself: where only RDMA is used, neighbours do not meet.
bool Library::oversubscribed() const {
  const auto here = std::ranges::count(greetings_, greetings_[rank()].machine, &Greeting::machine);
  return static_cast<unsigned>(here) > neighbours_->cores();
}

gravel::RemoteMemory Library::ledgers(Rank peer) const {
  return is_near(peer) ? endpoint_addresses_[peer].shm_ledgers
                       : endpoint_addresses_[peer].rdma_ledgers;
}

} // namespace macadam::libgravel
