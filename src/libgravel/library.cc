// SPDX-License-Identifier: BSD-3-Clause
#include "libgravel/library.h"

#include "net/rdma/ibverbs/device.h"
#include "net/rdma/transport.h"
#include "net/shm/transport.h"

#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace macadam::libgravel {
namespace {

using gravel::Code;
using gravel::fail;
using gravel::Rank;

constexpr double watch_interval = 0.1; // seconds between two looks whether a peer is still there

} // namespace

Library::Library(MPI_Comm comm) : exchange_(comm) {
  Greeting own;
  keep_trouble(own.trouble, [&] {
    base::read_environment(settings_, environ, {});
    own.network = static_cast<std::uint32_t>(settings_.network);
    own.machine = this_machine();
    if (getrandom(own.secret.data(), own.secret.size(), 0) !=
        static_cast<ssize_t>(own.secret.size()))
      fail(Code::system, "getrandom for the job's secret failed: {}", std::strerror(errno));
    neighbours_.emplace();
    neighbours_->describe(own);
  });
  greetings_ = exchange_.allgather(own);
  Card card;
  keep_trouble(card.trouble, [&] {
    make_networks();
    if (shm_) card.shm_ledgers = core_->ledgers(0);
    if (rdma_) card.rdma_ledgers = core_->ledgers(shm_ ? 1 : 0);
    card.endpoint = endpoint_;
  });
  cards_ = exchange_.allgather(card);
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
                                                       shm_.get());
    nearest_first.push_back(rdma_.get());
  }
  const gravel::Directory& directory = *this;
  core_.emplace(engine::Networks(std::move(nearest_first)), directory, slots);
}

gravel::RemoteMemory Library::ledgers(Rank peer) const {
  return by_shm(peer) ? cards_[peer].shm_ledgers : cards_[peer].rdma_ledgers;
}

void Library::push() {
  if (core_->must_progress()) core_->progress();
  if (core_->is_connecting()) wait(gravel::any_source, [&] { return !core_->is_connecting(); });
}

void Library::drain() {
  wait(gravel::any_source, [&] { return core_->at_rest() && core_->networks().drain(); });
}

void Library::watch(int on) {
  const double now = core_->networks().nearest().now();
  if (watched_ == 0) watched_ = now;
  if (now - watched_ < watch_interval) return;
  watched_ = now;
  if (on != gravel::any_source) return watch_peer(static_cast<Rank>(on));
  for (Rank peer = 0; peer < exchange_.size(); ++peer)
    watch_peer(peer);
}

// In shared memory a process that has ended is seen by the system; over RDMA by writing to it.
void Library::watch_peer(Rank peer) {
  if (peer == exchange_.rank() || !core_->knows(peer)) return;
  if (!by_shm(peer)) return core_->probe(peer);
  if (!neighbours_->has_ended(peer)) return;
  while (core_->progress()) { // what it has still sent
  }
  core_->lose(peer);
}

} // namespace macadam::libgravel
