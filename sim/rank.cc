// SPDX-License-Identifier: BSD-3-Clause
#include "sim/rank.h"

#include "base/error.h"
#include "sim/charges.h"

#include <fmt/format.h>

#include <algorithm>
#include <dlfcn.h>
#include <utility>

namespace macadam::sim {
namespace {

Rank* current_rank = nullptr; // the simulator runs on one thread

constexpr unsigned nap_us = 5000;           // between two looks around in the launcher's barrier
constexpr unsigned descriptor_nap_us = 100; // ... at a descriptor

} // namespace

// The job as MPI sees it from inside the simulator.
class Rank::Job final : public boot::LaunchedJob {
 public:
  explicit Job(Rank& rank) : rank_(rank), host_(rank.host()) {}

  [[nodiscard]] int rank() const override { return rank_.number_; }
  [[nodiscard]] int size() const override { return rank_.environment_.size; }
  [[nodiscard]] bool alone() const override { return false; }
  [[nodiscard]] int app_number() const override { return rank_.app_number_; }
  [[nodiscard]] boot::Universe* universe() override {
    if (universe_ == nullptr)
      universe_ = make_universe(rank_, rank_.environment_.exchange, rank_.environment_.parent);
    return universe_.get();
  }
  [[nodiscard]] std::string_view host() const override { return host_; }
  [[nodiscard]] int node(int rank) const override { return rank_.node_of(rank); }
  [[nodiscard]] boot::Secret secret() const override { return launcher().secret; }
  [[nodiscard]] std::uint32_t generation() const override { return launcher().generation; }
  std::uint32_t enter() override {
    if (launcher().in_mpi++ == 0) {
      ++launcher().generation;
      for (Launcher::Address& address : launcher().addresses)
        address.published = false;
    }
    return launcher().generation;
  }
  void leave() override { --launcher().in_mpi; }
  [[nodiscard]] bool is_over(std::uint32_t generation) const override {
    return launcher().generation != generation || launcher().in_mpi == 0;
  }
  void publish(std::span<const std::byte> address) override { rank_.publish(address, agreement()); }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    return rank_.fetch(launcher(), rank);
  }
  [[nodiscard]] std::optional<boot::Agreement> agreement_of(int rank) const override {
    return launcher().agreement_of(rank);
  }
  // Each has a processor of its own, and none sees how the others stand.
  [[nodiscard]] int cores() const override { return rank_.environment_.ranks_per_node; }
  [[nodiscard]] int local_size() const override {
    if (!rank_.environment_.dealt) return std::min(cores(), size() - neighbour(0));
    return (size() - node(rank()) + nodes() - 1) / nodes();
  }
  [[nodiscard]] int local_rank() const override { return rank_.index_on_node(rank()); }
  [[nodiscard]] int neighbour(int index) const override {
    const int own = node(rank());
    return rank_.environment_.dealt ? own + index * nodes() : own * cores() + index;
  }
  [[nodiscard]] bool is_local(int rank) const override { return node(rank) == node(this->rank()); }
  [[nodiscard]] boot::SharedMemory own_memory() override { return memory_of(rank()); }
  [[nodiscard]] boot::SharedMemory memory_of(int rank) const override {
    return rank_.node().memory(rank_.place_on_node(rank));
  }
  // What others are to see could not come into that memory later: it is here already.
  [[nodiscard]] bool shares_memory() const override { return true; }
  [[nodiscard]] pid_t pid(int rank) const override { return Node::pid(rank_.place_on_node(rank)); }
  void barrier(const std::function<void()>& idle) override { rank_.barrier(idle); }
  void finalize() override {}
  [[nodiscard]] bool report_wanted() const override { return false; }
  void write_report(std::string_view) const override {}
  void write_final_report(std::string_view json) override {
    launcher().final_reports.emplace_back(json);
  }

 private:
  void end_job(int code, std::string_view text, boot::Blame) override {
    auto& abort = rank_.environment_.standing.abort;
    const int status = code >= 1 && code <= 255 ? code : 1;
    if (!abort) abort = {rank_.name(), status, std::string(text)};
    rank_.exit(status);
  }
  [[nodiscard]] Launcher& launcher() const { return rank_.environment_.launcher; }
  [[nodiscard]] int nodes() const { return static_cast<int>(launcher().nodes.size()); }

  Rank& rank_;
  std::string host_;
  std::unique_ptr<boot::Universe> universe_;
};

// Another job of the world, as a rank sees it that talks to it.
class Rank::OtherJob final : public boot::Job {
 public:
  OtherJob(Rank& rank, Launcher& launcher) : rank_(rank), launcher_(launcher) {}

  [[nodiscard]] int rank() const override { return MPI_UNDEFINED; } // none of it
  [[nodiscard]] int size() const override { return static_cast<int>(launcher_.addresses.size()); }
  [[nodiscard]] boot::Secret secret() const override { return launcher_.secret; }
  [[nodiscard]] std::uint32_t generation() const override { return launcher_.generation; }
  [[nodiscard]] int cores() const override { return 1; }
  // If a node has all jobs.
  [[nodiscard]] bool is_local(int) const override {
    return launcher_.nodes.front() == rank_.environment_.launcher.nodes.front();
  }
  [[nodiscard]] boot::SharedMemory memory_of(int rank) const override {
    return launcher_.nodes.front()->memory(launcher_.first_place + rank);
  }
  [[nodiscard]] pid_t pid(int rank) const override {
    return Node::pid(launcher_.first_place + rank);
  }
  void publish(std::span<const std::byte>) override {}
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    return rank_.fetch(launcher_, rank, !is_local(rank));
  }
  [[nodiscard]] std::optional<boot::Agreement> agreement_of(int rank) const override {
    return launcher_.agreement_of(rank);
  }
  [[nodiscard]] boot::Life life(int rank) const override {
    const auto& lives = launcher_.lives;
    return lives.empty() ? boot::Life::running : lives[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Launcher& launcher() const { return launcher_; }

 private:
  Rank& rank_;
  Launcher& launcher_;
};

void Rank::RankFiber::switching_in() {
  current_rank = &rank_;
  mpi::running = rank_.running_;
  mpi::standing = rank_.process_.get();
  rank_.folder_.go_there();
}

void Rank::RankFiber::switching_out() {
  rank_.folder_.go_back();
  rank_.running_ = mpi::running.exchange(nullptr);
  mpi::standing = nullptr;
  current_rank = nullptr;
}

Rank::Rank(const Environment& environment, int number, int app_number, std::function<int()> body)
    : environment_(environment), number_(number), app_number_(app_number), body_(std::move(body)),
      processor_(environment.scheduler) {}

Rank::~Rank() = default;

std::string Rank::name() const {
  return environment_.launchers.size() > 1
             ? fmt::format("rank {} of job {}", number_, environment_.job + 1)
             : fmt::format("rank {}", number_);
}

std::string Rank::host() const {
  return fmt::format("node{}", environment_.launcher.first_node + node_of(number_));
}

Rank* Rank::current() {
  return current_rank;
}

void Rank::start() {
  state_.phase = RankState::Phase::running;
  process_ = std::make_unique<mpi::Process>();
  process_->runtime = this;
  if (environment_.settings != nullptr) {
    process_->settings = *environment_.settings;
    process_->settings_read = true;
  }
  fiber_ = std::make_unique<RankFiber>(*this, environment_.stack_bytes, [this] {
    int code = 0;
    if (environment_.compute_times != nullptr) computes_since_ = ComputeTimes::now();
    end_if_killed();
    try {
      code = body_();
    } catch (const std::exception& error) {
      auto& abort = environment_.standing.abort;
      if (!abort) abort = {name(), 1, fmt::format("threw an exception: {}", error.what())};
      code = 1;
    }
    exit(code);
  });
  processor_.run_in(fiber_.get());
  fiber_->resume();
}

void Rank::exit(int code) {
  // A spawned process that ends before it has come to MPI fails its spawn, and nothing else.
  const bool has_come = !environment_.parent || device_ != nullptr;
  state_.exit_code = has_come ? code : 0;
  state_.ended_at = processor_.now();
  state_.phase = RankState::Phase::ended;
  environment_.standing.ended.push_back(this);
  Launcher& launcher = environment_.launcher;
  --launcher.running;
  launcher.lives.resize(launcher.addresses.size(), boot::Life::running);
  launcher.lives[static_cast<std::size_t>(number_)] =
      process_->users > 0 ? boot::Life::failed : boot::Life::over;
  environment_.exchange.end_of(*this);
  Fiber::leave();
}

void Rank::destroy() {
  process_.reset();
  processes_.reset();
  others_.clear();
  system_.reset();
  second_device_.reset();
  device_.reset();
  fiber_.reset();
  body_ = nullptr;
}

void Rank::compute(Time duration) {
  const Faults& faults = environment_.fabric.faults();
  Random& random = environment_.fabric.random();
  double factor = 1 + faults.compute_jitter * random.fraction();
  if (faults.slow_rank == environment_.first + number_) factor *= faults.slowness;
  const auto time = static_cast<Time>(static_cast<double>(duration) * factor);
  ++environment_.standing.computing;
  if (device_)
    device_->compute(time);
  else
    processor_.compute(time);
  --environment_.standing.computing;
  environment_.scheduler.touch();
  end_if_killed();
}

void Rank::charge(Time cost) {
  if (device_)
    device_->spend(cost);
  else
    processor_.spend(cost);
}

void Rank::copied_to(const void* place) {
  if (system_ && system_->shares(place) && Fiber::current() != nullptr)
    device_->let_catch_up(from_ns(model().latency_ns));
}

// Where it is in its file: each rank may have a copy of its own.
static std::uint64_t offset_of(const void* place) {
  Dl_info info;
  const void* const base = ::dladdr(place, &info) != 0 ? info.dli_fbase : nullptr;
  return static_cast<std::uint64_t>(static_cast<const char*>(place) -
                                    static_cast<const char*>(base));
}

void Rank::leave_program(const void* place) {
  ComputeTimes* const times = environment_.compute_times;
  if (times == nullptr || away_++ > 0) return;
  static const Time cost = ComputeTimes::cost_of_now();
  const Time measured =
      times->measures() ? std::max<Time>(ComputeTimes::now() - computes_since_ - cost, 0) : 0;
  const std::uint64_t from = std::exchange(place_, offset_of(place));
  const Time took = times->between(environment_.first + number_, from, place_, measured);
  if (took > 0) compute(static_cast<Time>(static_cast<double>(took) * model().compute_factor));
}

void Rank::enter_program() {
  if (environment_.compute_times == nullptr || --away_ > 0) return;
  if (environment_.compute_times->measures()) computes_since_ = ComputeTimes::now();
}

std::unique_ptr<SimulatedDevice> Rank::make_adapter() {
  return std::make_unique<SimulatedDevice>(environment_.fabric, processor_,
                                           fmt::format("sim2:1 of rank {}", number_));
}

void Rank::tick() {
  const Model& model = environment_.fabric.model();
  environment_.scheduler.touch();
  processor_.spend(from_ns(model.clock_ns));
  // As in a poll: others need not catch up at every look at the clock.
  if (processor_.now() - environment_.scheduler.now() < from_ns(model.latency_ns / 4)) return;
  if (device_)
    device_->compute(0);
  else
    processor_.synchronize();
}

void Rank::nap() {
  if (device_)
    device_->wait(descriptor_nap_us);
  else
    processor_.compute(descriptor_nap_us * microsecond);
  end_if_killed();
}

// ------------------------------------------------------------------ start-up and end

std::unique_ptr<boot::LaunchedJob> Rank::join() {
  device_ = std::make_unique<SimulatedDevice>(environment_.fabric, processor_,
                                              fmt::format("sim0:1 of rank {}", number_));
  const int node_number = environment_.launcher.first_node + node_of(number_);
  const int index = index_on_node(number_);
  environment_.fabric.put_into(node_number, index % environment_.ports, device_->lid());
  auto job = std::make_unique<Job>(*this);
  // As ibverbs/port_choice.h has it: a port that no other rank of the node takes.
  if (const int beside = index + job->local_size(); beside < environment_.ports) {
    second_device_ = std::make_unique<SimulatedDevice>(environment_.fabric, processor_,
                                                       fmt::format("sim1:1 of rank {}", number_));
    second_device_->stand_beside(*device_);
    environment_.fabric.put_into(node_number, beside, second_device_->lid());
  }
  processes_.emplace(*job);
  if (job->local_size() > 1 || environment_.one_node)
    system_.emplace(node(), place_on_node(number_), *device_, processor_);
  return job;
}

Node& Rank::node() const {
  return *environment_.launcher.nodes[static_cast<std::size_t>(node_of(number_))];
}

int Rank::node_of(int rank) const {
  const auto nodes = static_cast<int>(environment_.launcher.nodes.size());
  return environment_.dealt ? rank % nodes : rank / environment_.ranks_per_node;
}

int Rank::index_on_node(int rank) const {
  const auto nodes = static_cast<int>(environment_.launcher.nodes.size());
  return environment_.dealt ? rank / nodes : rank % environment_.ranks_per_node;
}

int Rank::place_on_node(int rank) const {
  return environment_.launcher.first_place + index_on_node(rank);
}

// As for a real process (mpi/network.cc), but that one which is alone on its node has its adapter.
std::vector<std::unique_ptr<engine::Transport>>
Rank::make_transports(const base::Settings& settings) {
  std::vector<std::unique_ptr<engine::Transport>> transports;
  const bool one_node = environment_.size <= environment_.ranks_per_node;
  if (settings.network == base::NetworkChoice::shm && !one_node)
    base::fail(MPI_ERR_OTHER,
               "MACADAM_NETWORK=shm, but {} ranks with {} on a node are on several nodes; leave it "
               "at automatic",
               environment_.size, environment_.ranks_per_node);
  if (settings.network == base::NetworkChoice::ofi)
    base::fail(MPI_ERR_OTHER, "MACADAM_NETWORK=ofi, but libfabric is not simulated; leave it at "
                              "automatic, or take rdma");
  if (std::exchange(keeps_memory_, false)) clear_memory();
  neighbors_ = nullptr;
  transport_ = nullptr;
  if (system_ && settings.network != base::NetworkChoice::rdma) {
    auto neighbors = std::make_unique<Charged<SimulatedNeighbors>>(*processes_, settings, *system_);
    neighbors_ = neighbors.get();
    transports.push_back(std::move(neighbors));
    if (one_node) {
      processes_->job().publish({});
      return transports;
    }
  }
  transports.push_back(make_network(settings));
  return transports;
}

std::unique_ptr<engine::Transport> Rank::make_network(const base::Settings& settings) {
  auto transport = std::make_unique<Charged<net::rdma::RdmaTransport>>(
      *device_, *processes_, settings, &invalidation_, neighbors_, true, second_device_.get());
  transport_ = transport.get();
  const net::rdma::wire::Endpoint own = transport->endpoint();
  processes_->job().publish(std::as_bytes(std::span(&own, 1)));
  return transport;
}

std::unique_ptr<engine::Transport> Rank::open_network(const base::Settings& settings,
                                                      engine::Transport&, const boot::Job&) {
  return transport_ == nullptr ? make_network(settings) : nullptr;
}

void Rank::clear_memory() {
  if (system_) node().clear(place_on_node(number_));
}

// Processes of other jobs may still read what stands in its memory.
void Rank::close() {
  keeps_memory_ = processes_->has_met();
  if (!keeps_memory_) clear_memory();
}

void Rank::publish(std::span<const std::byte> address, const boot::Agreement& agreement) {
  Launcher::Address& own = environment_.launcher.addresses[static_cast<std::size_t>(number_)];
  own.bytes.assign(address.begin(), address.end());
  own.agreement = agreement;
  own.published = true;
  for (Rank* waiting : std::exchange(own.waiting, {}))
    if (waiting->device_) waiting->device_->wake();
}

// A rank that finds nothing is woken once there is something: an adapter's address for one on
// another node.
std::optional<std::span<const std::byte>> Rank::fetch(Launcher& launcher, int rank, bool is_far) {
  Launcher::Address& its = launcher.addresses.at(static_cast<std::size_t>(rank));
  if (!its.published || (is_far && its.bytes.empty())) {
    if (std::ranges::find(its.waiting, this) == its.waiting.end()) its.waiting.push_back(this);
    return std::nullopt;
  }
  device_->spend(from_ns(environment_.fabric.model().address_lookup_ns));
  return its.bytes;
}

const boot::Job& Rank::look_at(int job) {
  if (job == environment_.job) return processes_->job();
  Launcher& launcher = *environment_.launchers.at(static_cast<std::size_t>(job));
  for (const auto& known : others_)
    if (&known->launcher() == &launcher) return *known;
  return *others_.emplace_back(std::make_unique<OtherJob>(*this, launcher));
}

void Rank::look_away(const boot::Job& job) {
  const auto* const known = static_cast<const OtherJob*>(&job);
  for (Launcher::Address& address : known->launcher().addresses)
    std::erase(address.waiting, this);
  std::erase_if(others_, [&](const auto& each) { return each.get() == known; });
}

void Rank::kill_at(Time time) {
  environment_.scheduler.at(time, [this] {
    killed_ = true;
    wake();
  });
}

void Rank::wake() {
  if (device_) device_->wake();
}

engine::Rank Rank::meet(int job) {
  process_->instance->reach(look_at(job));
  const engine::Rank first = processes_->add(look_at(job));
  process_->instance->engine->know(processes_->size());
  return first;
}

void Rank::barrier(const std::function<void()>& idle) {
  wait_for_all(idle);
  wait_for_all({}); // until none is in `idle` any more
}

void Rank::wait_for_all(const std::function<void()>& idle) {
  Launcher& launcher = environment_.launcher;
  const std::uint32_t round = launcher.barrier_round;
  launcher.in_barrier.push_back(this);
  if (launcher.in_barrier.size() == static_cast<std::size_t>(environment_.size)) {
    device_->compute(from_ns(environment_.fabric.model().barrier_ns));
    ++launcher.barrier_round;
    for (Rank* waiting : std::exchange(launcher.in_barrier, {}))
      waiting->device_->wake();
    return;
  }
  for (;;) {
    device_->wait(nap_us);
    if (launcher.barrier_round != round) return;
    if (idle) idle();
  }
}

} // namespace macadam::sim
