// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/library.h"

#include "boot/configuration.h"
#include "net/rdma/ibverbs/device.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

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
    job_.emplace(exchange_.rank(), exchange_.size());
    job_->describe(own);
  });
  std::vector<Greeting> greetings = exchange_.allgather(own);
  EndpointAddress endpoint_address;
  keep_trouble(endpoint_address.trouble, [&] {
    check_same(greetings);
    job_->meet(std::move(greetings));
    make_networks();
    if (shm_) endpoint_address.shm_ledgers = driver_->core().ledgers(0);
    if (rdma_) endpoint_address.rdma_ledgers = driver_->core().ledgers(shm_ ? 1 : 0);
    endpoint_address.endpoint = job_->published();
  });
  endpoint_addresses_ = exchange_.allgather(endpoint_address);
  std::vector<net::rdma::wire::Endpoint> endpoints;
  for (const EndpointAddress& its : endpoint_addresses_)
    endpoints.push_back(its.endpoint);
  job_->learn(std::move(endpoints));
}

void Library::check_same(const std::vector<Greeting>& greetings) const {
  for (Rank rank = 0; rank < greetings.size(); ++rank) {
    const Greeting& peer = greetings[rank];
    if (peer.version != Greeting::this_version)
      fail(Code::system, "rank {} has version {} of Gravel's start, this one {}", rank,
           peer.version, Greeting::this_version);
    if (peer.network != static_cast<std::uint32_t>(settings_.network))
      fail(Code::system, "rank {} has another MACADAM_NETWORK; all ranks need the same", rank);
  }
}

void Library::make_networks() {
  const bool only_rdma = settings_.network == base::NetworkChoice::rdma && job_->size() > 1;
  if (!only_rdma) job_->open_segments();
  const bool one_machine = !only_rdma && job_->local_size() == job_->size();
  if (!one_machine && settings_.network == base::NetworkChoice::shm)
    fail(Code::system,
         "MACADAM_NETWORK=shm, but only {} of the {} ranks are on this machine (in one process "
         "namespace); leave MACADAM_NETWORK at automatic",
         job_->local_size(), job_->size());
  processes_.emplace(*job_);
  std::vector<engine::Transport*> nearest_first;
  if (!only_rdma && (one_machine || job_->local_size() > 1)) {
    shm_ = std::make_unique<net::shm::Transport>(*processes_, settings_);
    nearest_first.push_back(shm_.get());
  }
  if (!one_machine) {
    device_ = net::rdma::ibverbs::open_device(settings_.rdma_device);
    // Registration is explicit, so nothing watches the program's memory.
    rdma_ = std::make_unique<net::rdma::RdmaTransport>(*device_, *processes_, settings_, nullptr,
                                                       shm_.get(), false);
    nearest_first.push_back(rdma_.get());
    const net::rdma::wire::Endpoint own = rdma_->endpoint();
    job_->publish(std::as_bytes(std::span(&own, 1)));
  }
  driver_.emplace(
      engine::Networks(std::move(nearest_first)), *job_,
      [this](Rank peer) { return ledgers_of(peer); }, slots);
}

gravel::RemoteMemory Library::ledgers_of(Rank peer) const {
  return shm_ && shm_->reaches(peer) ? endpoint_addresses_[peer].shm_ledgers
                                     : endpoint_addresses_[peer].rdma_ledgers;
}

} // namespace macadam::libgravel
