// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/network.h"

#include "base/error.h"
#include "mem/userfault.h"
#include "mpi/process.h"
#include "net/rdma/ibverbs/device.h"
#include "net/rdma/transport.h"
#include "net/shm/transport.h"

#include <cstring>
#include <optional>

namespace macadam::mpi {
namespace {

using engine::Rank;
namespace rdma = net::rdma;
namespace shm = net::shm;

// The job as the shared-memory transport wants to see it.
class ShmDirectory final : public shm::Directory {
 public:
  // `alone`: RDMA, which has more to say, does not publish for both.
  ShmDirectory(boot::LocalJob& job, bool alone) : job_(job), alone_(alone) {}

  [[nodiscard]] Rank rank() const override { return static_cast<Rank>(job_.rank()); }
  [[nodiscard]] Rank size() const override { return static_cast<Rank>(job_.size()); }
  [[nodiscard]] unsigned local_size() const override {
    return static_cast<unsigned>(job_.local_size());
  }
  [[nodiscard]] bool is_local(Rank peer) const override {
    return job_.is_local(static_cast<int>(peer));
  }
  [[nodiscard]] unsigned local_index() const override {
    return static_cast<unsigned>(job_.local_rank());
  }
  [[nodiscard]] Rank neighbour(unsigned index) const override {
    return rank() - local_index() + index;
  }
  [[nodiscard]] unsigned cores() const override { return static_cast<unsigned>(job_.cores()); }
  shm::SharedMemory own_segment() override { return described(job_.my_segment()); }
  void publish() override {
    if (alone_) job_.publish({});
  }
  std::string promise(std::uint64_t bytes) override { return job_.promise(bytes); }
  void withdraw(std::uint64_t bytes) override { job_.withdraw(bytes); }
  shm::SharedMemory open_segment(Rank peer) override {
    const int rank = static_cast<int>(peer);
    static_cast<void>(job_.fetch(rank)); // waits until the peer has published
    return described(job_.open_segment(rank));
  }
  [[nodiscard]] pid_t pid(Rank peer) const override { return job_.pid(static_cast<int>(peer)); }
  [[nodiscard]] shm::Life life(Rank peer) const override {
    return job_.has_failed(static_cast<int>(peer)) ? shm::Life::failed : shm::Life::running;
  }
  [[nodiscard]] unsigned failures() const override { return job_.failures(); }

 private:
  static shm::SharedMemory described(const boot::Segment& segment) {
    return {segment.fd, segment.offset, segment.capacity};
  }
  boot::LocalJob& job_;
  const bool alone_;
};

// The job as the RDMA transport wants to see it.
class RdmaDirectory final : public rdma::Directory {
 public:
  // `alone`: it serves the ranks of this host too.
  RdmaDirectory(boot::LocalJob& job, bool alone) : job_(job), alone_(alone) {}

  [[nodiscard]] Rank rank() const override { return static_cast<Rank>(job_.rank()); }
  [[nodiscard]] Rank size() const override { return static_cast<Rank>(job_.size()); }
  [[nodiscard]] rdma::Secret secret() const override {
    rdma::Secret copy{};
    static_assert(sizeof copy == boot::secret_bytes);
    std::memcpy(copy.data(), job_.secret().data(), copy.size());
    return rdma::secret_of(copy, job_.generation());
  }
  [[nodiscard]] bool serves(Rank peer) const override {
    return alone_ || !job_.is_local(static_cast<int>(peer));
  }
  [[nodiscard]] bool oversubscribed() const override { return job_.local_size() > job_.cores(); }
  void publish(const rdma::wire::Endpoint& own) override {
    job_.publish(std::as_bytes(std::span(&own, 1)));
  }
  rdma::wire::Endpoint find(Rank peer) override {
    const std::span<const std::byte> endpoint_address = job_.fetch(static_cast<int>(peer));
    rdma::wire::Endpoint endpoint;
    if (endpoint_address.size() != sizeof endpoint) {
      base::fail(MPI_ERR_OTHER,
                 "RDMA: rank {} on host {} has published no address; all ranks of a job need the "
                 "same MACADAM_NETWORK",
                 peer, job_.host_of(static_cast<int>(peer)));
    }
    std::memcpy(&endpoint, endpoint_address.data(), sizeof endpoint);
    return endpoint;
  }
  [[nodiscard]] bool knows(Rank peer) const override {
    return job_.has_published(static_cast<int>(peer));
  }

 private:
  boot::LocalJob& job_;
  const bool alone_;
};

using List = std::vector<std::unique_ptr<engine::Transport>>;

class RealRuntime final : public Runtime {
 public:
  std::unique_ptr<boot::Job> join() override {
    auto job = std::make_unique<boot::LocalJob>(boot::LocalJob::join());
    job_ = job.get();
    return job;
  }

  // The transports stand on what this object keeps.
  List make_transports(const base::Settings& settings) override {
    const bool one_host = job_->local_size() == job_->size();
    if (!one_host && settings.network == base::NetworkChoice::shm) {
      base::fail(MPI_ERR_OTHER,
                 "MACADAM_NETWORK=shm, but {} of the {} ranks are on other hosts than {}, which "
                 "shared memory does not reach; leave MACADAM_NETWORK at automatic",
                 job_->size() - job_->local_size(), job_->size(), job_->host());
    }
    // A job of one talks to nobody: nothing of RDMA is opened for it.
    const bool nothing_else = settings.network == base::NetworkChoice::rdma && job_->size() > 1;
    const bool use_rdma = nothing_else || !one_host;
    const bool use_shm = !nothing_else && (one_host || job_->local_size() > 1);
    List made;
    if (use_shm) made.push_back(make_shm(settings, !use_rdma));
    if (use_rdma) made.push_back(make_rdma(settings, use_shm ? made.front().get() : nullptr));
    return made;
  }

  void close() override {
    rdma_directory_.reset();
    changes_.reset();
    device_.reset();
    shm_directory_.reset();
    job_->clear_segment();
  }

 private:
  std::unique_ptr<engine::Transport> make_shm(const base::Settings& settings, bool alone) {
    shm_directory_ = std::make_unique<ShmDirectory>(*job_, alone);
    return std::make_unique<shm::Transport>(*shm_directory_, settings);
  }
  // `beside`: the network of this host's ranks, where the process sleeps; null if there is none.
  std::unique_ptr<engine::Transport> make_rdma(const base::Settings& settings,
                                               engine::Transport* beside) {
    device_ = rdma::ibverbs::open_device(settings.rdma_device);
    rdma_directory_ = std::make_unique<RdmaDirectory>(*job_, beside == nullptr);
    changes_.emplace();
    auto transport = std::make_unique<rdma::RdmaTransport>(*device_, *rdma_directory_, settings,
                                                           &*changes_, beside);
    transport->connect_all();
    return transport;
  }

  boot::LocalJob* job_ = nullptr;
  std::unique_ptr<ShmDirectory> shm_directory_;
  std::unique_ptr<RdmaDirectory> rdma_directory_;
  std::unique_ptr<rdma::Device> device_;
  std::optional<mem::Userfault> changes_; // of the program's memory
};

} // namespace

std::unique_ptr<Runtime> real_runtime() {
  return std::make_unique<RealRuntime>();
}

} // namespace macadam::mpi
