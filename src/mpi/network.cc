// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/network.h"

#include "base/error.h"
#include "boot/local_job.h"
#include "boot/processes.h"
#include "mem/userfault.h"
#include "mpi/process.h"
#include "net/ofi/transport.h"
#include "net/rdma/ibverbs/device.h"
#include "net/rdma/transport.h"
#include "net/shm/transport.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace macadam::mpi {
namespace {

namespace rdma = net::rdma;

using List = std::vector<std::unique_ptr<engine::Transport>>;

class RealRuntime final : public Runtime {
 public:
  std::unique_ptr<boot::LaunchedJob> join() override {
    auto job = std::make_unique<boot::LocalJob>(boot::LocalJob::join());
    job_ = job.get();
    processes_ = std::make_unique<boot::Processes>(*job);
    return job;
  }

  // The transports stand on what this object keeps.
  List make_transports(const base::Settings& settings) override {
    if (std::exchange(keeps_memory_, false)) job_->clear_memory();
    const bool one_host = job_->local_size() == job_->size();
    const bool shm_only = settings.network == base::NetworkChoice::shm;
    if (!one_host && shm_only) {
      base::fail(MPI_ERR_OTHER,
                 "MACADAM_NETWORK=shm, but {} of the {} ranks are on other hosts than {}, which "
                 "shared memory does not reach; leave MACADAM_NETWORK at automatic",
                 job_->size() - job_->local_size(), job_->size(), job_->host());
    }
    // A job of one that meets no others talks to nobody: no network is opened for it.
    const bool talks = job_->size() > 1 || job_->universe() != nullptr;
    const bool nothing_else = talks && (settings.network == base::NetworkChoice::rdma ||
                                        settings.network == base::NetworkChoice::ofi);
    const bool use_network = nothing_else || !one_host;
    const bool use_shm = !nothing_else && (one_host || job_->local_size() > 1);
    List made;
    if (use_shm) made.push_back(std::make_unique<net::shm::Transport>(*processes_, settings));
    if (use_network)
      made.push_back(make_network(settings, use_shm ? made.front().get() : nullptr,
                                  std::string(job_->other_host())));
    else
      job_->publish({});
    return made;
  }

  std::unique_ptr<engine::Transport> open_network(const base::Settings& settings,
                                                  engine::Transport& nearest,
                                                  const boot::Job& job) override {
    int far = 0;
    while (job.is_local(far))
      ++far;
    const std::string host(job.host_of(far));
    if (settings.network == base::NetworkChoice::shm)
      base::fail(MPI_ERR_OTHER,
                 "MACADAM_NETWORK=shm, but rank {} of the other job is on host {}, which shared "
                 "memory does not reach; leave MACADAM_NETWORK at automatic",
                 far, host);
    if (scope_ == Scope::this_machine)
      base::fail(
          MPI_ERR_OTHER,
          "the network that MACADAM_NETWORK=ofi has opened is for this machine alone, as the "
          "job is on no other, and rank {} of the other job is on host {}; leave "
          "MACADAM_NETWORK at automatic, or name an interface in MACADAM_NET_INTERFACE",
          far, host);
    if (scope_ == Scope::all_machines) return nullptr;
    return make_network(settings, &nearest, host);
  }

  void close() override {
    scope_ = Scope::none;
    changes_.reset();
    ports_ = {};
    // Processes of other jobs may still read what stands there, until they forget this one's job.
    keeps_memory_ = processes_->has_met();
    if (!keeps_memory_) job_->clear_memory();
  }

  [[nodiscard]] boot::Processes& processes() override { return *processes_; }

 private:
  // Whom the network reaches that is open besides shared memory.
  enum class Scope { none, this_machine, all_machines };

  // `beside`: the network of this host's ranks, where the process sleeps; null if there is none.
  // `host` is another one that is to be reached, beside those of the job; empty: there is none.
  std::unique_ptr<engine::Transport>
  make_network(const base::Settings& settings, engine::Transport* beside, const std::string& host) {
    if (settings.network == base::NetworkChoice::rdma) return make_rdma(settings, beside);
    if (settings.network == base::NetworkChoice::ofi) return make_ofi(settings, beside, host, {});
    std::string no_rdma;
    try {
      return make_rdma(settings, beside);
    } catch (const base::Error& error) {
      no_rdma = error.text;
      ports_ = {};
    }
    try {
      return make_ofi(settings, beside, host, no_rdma);
    } catch (const base::Error& error) {
      base::fail(error.error_class, "no network reaches the other hosts: {}; {}", no_rdma,
                 error.text);
    }
  }

  std::unique_ptr<engine::Transport> make_ofi(const base::Settings& settings,
                                              engine::Transport* beside, const std::string& host,
                                              const std::string& no_rdma) {
    changes_.emplace();
    const net::ofi::Wish wish = net::ofi::wish_of(*job_, settings, host);
    auto transport =
        std::make_unique<net::ofi::OfiTransport>(*processes_, settings, wish, &*changes_, beside);
    const bool is_narrow = wish.one_machine && wish.interface.empty();
    if (!no_rdma.empty()) transport->add_note("ofi: no RDMA adapter is used: " + no_rdma);
    job_->publish(std::as_bytes(std::span(&transport->endpoint(), 1)));
    if (is_narrow) job_->refuse_strangers();
    scope_ = is_narrow ? Scope::this_machine : Scope::all_machines;
    return transport;
  }

  std::unique_ptr<engine::Transport> make_rdma(const base::Settings& settings,
                                               engine::Transport* beside) {
    ports_ =
        rdma::ibverbs::open_ports(settings.rdma_device, job_->local_rank(), job_->local_size());
    changes_.emplace();
    auto transport = std::make_unique<rdma::RdmaTransport>(
        *ports_.first, *processes_, settings, &*changes_, beside, true, ports_.second.get());
    scope_ = Scope::all_machines;
    const rdma::wire::Endpoint own = transport->endpoint();
    job_->publish(std::as_bytes(std::span(&own, 1)));
    return transport;
  }

  boot::LocalJob* job_ = nullptr; // once joined
  std::unique_ptr<boot::Processes> processes_;
  rdma::ibverbs::Ports ports_;
  std::optional<mem::Userfault> changes_; // of the program's memory
  Scope scope_ = Scope::none;
  bool keeps_memory_ = false; // after the end, for other jobs
};

} // namespace

std::unique_ptr<Runtime> real_runtime() {
  return std::make_unique<RealRuntime>();
}

} // namespace macadam::mpi
