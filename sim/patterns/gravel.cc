// SPDX-License-Identifier: BSD-3-Clause
// The micro-benchmarks of Danalis et al. 2008 (section 3, Figure 4), as bench/gravel/patterns.f90:
// a 1-D ring and a 2-D wavefront whose computation is a copy into and out of the message. On MPI,
// and on Gravel over an adapter of its own, to which the receivers promise their buffers, except
// where these are announced each; plain, in strips, and in strips with one handshake.
#include "base/error.h"
#include "boot/processes.h"
#include "gravel/driver.h"
#include "net/rdma/measure.h"
#include "net/rdma/transport.h"
#include "sim/charges.h"
#include "sim/patterns/pattern.h"
#include "sim/rank.h"

#include <mpi.h>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace macadam::sim {
namespace {

// The processes of the job, which tell each other through MPI where they are.
class GravelJob final : public boot::Job {
 public:
  explicit GravelJob(const Context& context) : rank_(context.rank), size_(context.size) {}

  // Collective: what each rank has published, and where its ledgers are.
  void exchange(gravel::RemoteMemory ledgers) {
    const EndpointAddress own{ledgers, own_};
    std::vector<EndpointAddress> all(static_cast<std::size_t>(size_));
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    endpoint_addresses_ = std::move(all);
  }
  [[nodiscard]] gravel::RemoteMemory ledgers(gravel::Rank peer) const {
    return endpoint_addresses_[peer].ledgers;
  }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] boot::Secret secret() const override { return {1}; }
  [[nodiscard]] int cores() const override { return size_; }
  void publish(std::span<const std::byte> address) override {
    std::memcpy(&own_, address.data(), sizeof own_);
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    if (endpoint_addresses_.empty()) return std::nullopt;
    return std::as_bytes(
        std::span(&endpoint_addresses_[static_cast<std::size_t>(rank)].endpoint, 1));
  }

 private:
  struct EndpointAddress {
    gravel::RemoteMemory ledgers;
    net::rdma::wire::Endpoint endpoint;
  };

  const int rank_, size_;
  net::rdma::wire::Endpoint own_;
  std::vector<EndpointAddress> endpoint_addresses_; // by rank
};

// Gravel in this process, started through MPI as libgravel does.
class Gravel final {
 public:
  explicit Gravel(const Context& context)
      : adapter(Rank::current()->make_adapter()), settings_(Rank::current()->process()->settings),
        job_(context), processes_(job_) {
    const double message_s = net::rdma::measure_message(*adapter);
    transport_ = std::make_unique<Charged<net::rdma::RdmaTransport>>(
        *adapter, processes_, settings_, nullptr, nullptr, false);
    transport_->set_message_cost(message_s);
    driver_.emplace(
        engine::Networks(*transport_), job_,
        [this](gravel::Rank peer) { return job_.ledgers(peer); }, slots);
    const net::rdma::wire::Endpoint own = transport_->endpoint();
    job_.publish(std::as_bytes(std::span(&own, 1)));
    job_.exchange(driver_->core().ledgers(0));
  }
  ~Gravel() { driver_->leave(); }
  Gravel(const Gravel&) = delete;
  Gravel& operator=(const Gravel&) = delete;

  [[nodiscard]] gravel::Core& core() { return driver_->core(); }

  // Each of these is a call of Gravel, and charged as one of MPI.
  gravel::RequestId begun(gravel::RequestId request) {
    const Call call(__builtin_return_address(0));
    driver_->push();
    return request;
  }
  gravel::BufferId wait_for_receive_buffer(int consumer) {
    const Call call(__builtin_return_address(0));
    return driver_->wait_for(consumer, [&] { return core().take_receive_buffer(consumer, tag); });
  }
  gravel::BufferId wait_for_send_buffer(int producer) {
    const Call call(__builtin_return_address(0));
    return driver_->wait_for(producer, [&] { return core().take_send_buffer(producer, tag); });
  }
  // A fragment whose request is the FIN's.
  void moved(gravel::RequestId) {
    const Call call(__builtin_return_address(0));
    driver_->push();
  }
  void wait(std::vector<gravel::RequestId>& requests) {
    const Call call(__builtin_return_address(0));
    for (const gravel::RequestId id : requests)
      driver_->finish(id);
    requests.clear();
  }

  static constexpr int tag = 1;

 private:
  static constexpr std::uint32_t slots = 16; // as libgravel

 public:
  const std::unique_ptr<SimulatedDevice> adapter; // computes, when Gravel is measured

 private:
  const base::Settings settings_;
  GravelJob job_;
  const boot::Processes processes_;
  std::unique_ptr<net::rdma::RdmaTransport> transport_;
  std::optional<gravel::Driver> driver_;
};

// Who sends to whom.
struct Neighbours {
  std::vector<int> from, to;
};

Neighbours ring(const Context& context) {
  return {{(context.rank + context.size - 1) % context.size}, {(context.rank + 1) % context.size}};
}

// From north and west, to south and east.
Neighbours wavefront(const Context& context) {
  int rows = static_cast<int>(std::sqrt(context.size));
  while (context.size % rows != 0)
    --rows;
  const int columns = context.size / rows, rank = context.rank;
  Neighbours found;
  if (rank >= columns) found.from.push_back(rank - columns);
  if (rank % columns != 0) found.from.push_back(rank - 1);
  if (rank + columns < context.size) found.to.push_back(rank + columns);
  if ((rank + 1) % columns != 0) found.to.push_back(rank + 1);
  return found;
}

// One process's part in all variants.
class Exchange {
 public:
  Exchange(Gravel& gravel, Neighbours neighbours, std::size_t bytes, std::size_t strips)
      : gravel_(gravel), of_(std::move(neighbours)), bytes_(bytes), strips_(strips),
        in_(of_.from.size() * bytes), out_(of_.to.size() * bytes) {
    if (!in_.empty()) gravel_.core().register_memory(in_.data(), in_.size());
    if (!out_.empty()) gravel_.core().register_memory(out_.data(), out_.size());
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (!in_.empty()) gravel_.core().unregister_memory(in_.data());
    if (!out_.empty()) gravel_.core().unregister_memory(out_.data());
  }

  // The computation alone.
  void nothing() {
    on_mpi_ = true;
    for (std::size_t j = 0; j < of_.to.size(); ++j)
      compute(bytes_);
    use();
  }

  void mpi(std::size_t fragments) {
    on_mpi_ = true;
    const std::size_t strip = bytes_ / fragments;
    std::vector<MPI_Request> requests;
    for (std::size_t j = 0; j < of_.from.size(); ++j) {
      for (std::size_t at = 0; at < bytes_; at += strip)
        MPI_Irecv(in(j, at), static_cast<int>(strip), MPI_BYTE, of_.from[j], 1, MPI_COMM_WORLD,
                  &requests.emplace_back());
    }
    for (std::size_t j = 0; j < of_.to.size(); ++j) {
      for (std::size_t at = 0; at < bytes_; at += strip) {
        compute(strip);
        MPI_Isend(out(j, at), static_cast<int>(strip), MPI_BYTE, of_.to[j], 1, MPI_COMM_WORLD,
                  &requests.emplace_back());
      }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    use();
  }

  // So many iterations of one of the next two will follow.
  void promise(std::size_t fragments, std::int64_t iterations) {
    for (const int producer : of_.from)
      gravel_.core().promise_receive_buffers(producer, bytes_ / fragments, Gravel::tag,
                                             fragments * static_cast<std::uint64_t>(iterations));
  }

  // Consumer-initiated writes, a handshake for each strip.
  void writes(std::size_t fragments) {
    on_mpi_ = false;
    const std::size_t strip = bytes_ / fragments;
    for (std::size_t j = 0; j < of_.from.size(); ++j) {
      for (std::size_t at = 0; at < bytes_; at += strip)
        announce(j, at, strip);
    }
    for (std::size_t j = 0; j < of_.to.size(); ++j) {
      for (std::size_t at = 0; at < bytes_; at += strip) {
        compute(strip);
        const gravel::BufferId buffer = gravel_.wait_for_receive_buffer(of_.to[j]);
        gravel_.moved(gravel_.core().put(buffer, out(j, at), strip, 0, gravel::Core::Asked::no));
        fin(buffer);
      }
    }
    finish();
  }

  // Figure 2 C.
  void one_handshake() {
    on_mpi_ = false;
    const std::size_t strip = bytes_ / strips_;
    for (std::size_t j = 0; j < of_.from.size(); ++j)
      announce(j, 0, bytes_);
    for (std::size_t j = 0; j < of_.to.size(); ++j) {
      gravel::BufferId buffer = 0;
      for (std::size_t at = 0; at < bytes_; at += strip) {
        compute(strip);
        if (at == 0) buffer = gravel_.wait_for_receive_buffer(of_.to[j]);
        gravel_.moved(gravel_.core().put(buffer, out(j, at), strip, at, gravel::Core::Asked::no));
      }
      fin(buffer);
    }
    finish();
  }

  // Producer-initiated reads.
  void reads() {
    on_mpi_ = false;
    for (std::size_t j = 0; j < of_.to.size(); ++j) {
      compute(bytes_);
      requests_.push_back(gravel_.begun(
          gravel_.core().post_send_buffer(of_.to[j], out(j, 0), bytes_, Gravel::tag)));
    }
    for (std::size_t j = 0; j < of_.from.size(); ++j) {
      const gravel::BufferId buffer = gravel_.wait_for_send_buffer(of_.from[j]);
      gravel_.moved(gravel_.core().get(buffer, in(j, 0), bytes_, 0, gravel::Core::Asked::no));
      fin(buffer);
    }
    finish();
  }

 private:
  std::byte* in(std::size_t j, std::size_t at) { return in_.data() + j * bytes_ + at; }
  std::byte* out(std::size_t j, std::size_t at) { return out_.data() + j * bytes_ + at; }
  void announce(std::size_t j, std::size_t at, std::size_t bytes) {
    requests_.push_back(gravel_.begun(
        gravel_.core().post_receive_buffer(of_.from[j], in(j, at), bytes, Gravel::tag)));
  }
  void fin(gravel::BufferId buffer) {
    requests_.push_back(gravel_.begun(gravel_.core().send_fin(buffer)));
  }
  void finish() {
    gravel_.wait(requests_);
    use();
  }
  // A copy. The progress thread of what is measured may interrupt it.
  void compute(std::size_t bytes) {
    const Time time = transfer_time(bytes, Rank::current()->model().copy_mb_per_s);
    if (on_mpi_)
      Rank::current()->compute(time);
    else
      gravel_.adapter->compute(time);
  }
  void use() {
    for (std::size_t j = 0; j < of_.from.size(); ++j)
      compute(bytes_);
  }

  Gravel& gravel_;
  const Neighbours of_;
  const std::size_t bytes_, strips_;
  std::vector<std::byte> in_, out_;
  std::vector<gravel::RequestId> requests_;
  bool on_mpi_ = true;
};

constexpr int warm_up = 3; // iterations

// Microseconds of the slowest rank for one iteration.
double us_per_iteration(std::int64_t iterations, const std::function<void()>& iteration) {
  Time start = 0;
  for (std::int64_t i = -warm_up; i < iterations; ++i) {
    if (i == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      start = Rank::current()->now();
    }
    iteration();
  }
  const double own = seconds(Rank::current()->now() - start) * 1e6;
  double slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest / static_cast<double>(iterations);
}

void danalis(Context& context) {
  const std::string shape = context.parameters.text("shape", "ring");
  const auto sizes = context.parameters.numbers("bytes", {8 << 10, 128 << 10, 2 << 20});
  const std::int64_t iterations = context.parameters.number("iterations", 100);
  const auto strips = static_cast<std::size_t>(context.parameters.number("strips", 4));
  if (shape != "ring" && shape != "wavefront")
    base::fail(MPI_ERR_ARG, "parameter shape: found '{}', needed ring or wavefront", shape);
  Gravel gravel(context);
  const Neighbours neighbours = shape == "ring" ? ring(context) : wavefront(context);
  for (const std::int64_t bytes : sizes) {
    if (strips == 0 || bytes == 0 || bytes % static_cast<std::int64_t>(strips) != 0)
      base::fail(MPI_ERR_ARG, "parameter strips: found {}, needed a divisor of {} bytes", strips,
                 bytes);
    Exchange exchange(gravel, neighbours, static_cast<std::size_t>(bytes), strips);
    const auto measure = [&](const std::function<void()>& iteration) {
      const double time = us_per_iteration(iterations, iteration);
      MPI_Barrier(MPI_COMM_WORLD);
      return time;
    };
    Row row{fmt::format("{} bytes", bytes), {}};
    row.values["none_us"] = measure([&] { exchange.nothing(); });
    row.values["mpi_us"] = measure([&] { exchange.mpi(1); });
    row.values["mpi_strips_us"] = measure([&] { exchange.mpi(strips); });
    row.values["gravel_announced_us"] = measure([&] { exchange.writes(1); });
    exchange.promise(1, warm_up + iterations);
    row.values["gravel_us"] = measure([&] { exchange.writes(1); });
    exchange.promise(strips, warm_up + iterations);
    row.values["gravel_strips_us"] = measure([&] { exchange.writes(strips); });
    exchange.promise(1, warm_up + iterations);
    row.values["gravel_one_us"] = measure([&] { exchange.one_handshake(); });
    row.values["gravel_read_us"] = measure([&] { exchange.reads(); });
    if (context.rank == 0) context.rows.push_back(std::move(row));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

constexpr Pattern all[] = {
    {"gravel",
     "Danalis et al., Figure 4: MPI and Gravel (shape=ring or wavefront, bytes, strips, "
     "iterations)",
     danalis},
};

} // namespace

std::span<const Pattern> gravel_patterns() {
  return all;
}

} // namespace macadam::sim
