// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/library.h"

#include "boot/configuration.h"
#include "net/ofi/transport.h"
#include "net/rdma/ibverbs/device.h"
#include "net/rdma/measure.h"
#include "net/rdma/transport.h"

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

namespace {

// Seconds; 0 if it cannot be measured, and then promised buffers are announced when they are
// posted.
double message_cost(net::rdma::Device& device) {
  try {
    return net::rdma::measure_message(device);
  } catch (const base::Error&) {
    return 0;
  }
}

} // namespace

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
    if (far_) endpoint_address.far_ledgers = driver_->core().ledgers(shm_ ? 1 : 0);
    endpoint_address.endpoint = job_->published();
  });
  endpoint_addresses_ = exchange_.allgather(endpoint_address);
  std::vector<Published> endpoints;
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
  const bool one_network = job_->size() > 1 && (settings_.network == base::NetworkChoice::rdma ||
                                                settings_.network == base::NetworkChoice::ofi);
  if (!one_network) job_->open_segments();
  const bool one_machine = !one_network && job_->local_size() == job_->size();
  if (!one_machine && settings_.network == base::NetworkChoice::shm)
    fail(Code::system,
         "MACADAM_NETWORK=shm, but only {} of the {} ranks are on this machine (in one process "
         "namespace); leave MACADAM_NETWORK at automatic",
         job_->local_size(), job_->size());
  processes_.emplace(*job_);
  std::vector<engine::Transport*> nearest_first;
  if (!one_network && (one_machine || job_->local_size() > 1)) {
    shm_ = std::make_unique<net::shm::Transport>(*processes_, settings_);
    nearest_first.push_back(shm_.get());
  }
  if (!one_machine) {
    make_far_network();
    nearest_first.push_back(far_.get());
  }
  driver_.emplace(
      engine::Networks(std::move(nearest_first)), *job_,
      [this](Rank peer) { return ledgers_of(peer); }, slots);
}

// As for MPI: an RDMA adapter, or else what libfabric has.
void Library::make_far_network() {
  if (settings_.network == base::NetworkChoice::rdma) return open_rdma();
  if (settings_.network == base::NetworkChoice::ofi) return open_libfabric();
  std::string no_rdma;
  try {
    return open_rdma();
  } catch (const base::Error& error) {
    no_rdma = error.text;
  }
  try {
    open_libfabric();
  } catch (const base::Error& error) {
    fail(Code::system, "no network reaches the other machines: {}; {}", no_rdma, error.text);
  }
}

// Registration is explicit, so nothing watches the program's memory.
void Library::open_rdma() {
  device_ = net::rdma::ibverbs::open_device(settings_.rdma_device, job_->local_rank());
  const double message_s = message_cost(*device_);
  auto transport = std::make_unique<net::rdma::RdmaTransport>(*device_, *processes_, settings_,
                                                              nullptr, shm_.get(), false);
  transport->set_message_cost(message_s);
  const net::rdma::wire::Endpoint own = transport->endpoint();
  job_->publish(std::as_bytes(std::span(&own, 1)));
  far_ = std::move(transport);
}

void Library::open_libfabric() {
  auto transport = std::make_unique<net::ofi::OfiTransport>(
      *processes_, settings_, net::ofi::wish_of(*job_, settings_), nullptr, shm_.get());
  job_->publish(std::as_bytes(std::span(&transport->endpoint(), 1)));
  far_ = std::move(transport);
}

gravel::RemoteMemory Library::ledgers_of(Rank peer) const {
  return shm_ && shm_->reaches(peer) ? endpoint_addresses_[peer].shm_ledgers
                                     : endpoint_addresses_[peer].far_ledgers;
}

} // namespace macadam::libgravel
