// SPDX-License-Identifier: BSD-3-Clause
#include "torture/run.h"

#include "torture/starvation.h"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <exception>

namespace macadam::torture {
namespace {

using namespace net::rdma;

constexpr std::size_t stack_bytes = 256 << 10;
constexpr unsigned hour_us = 3'600'000'000;
// Nobody wakes a process when another one is killed: it has to look.
constexpr unsigned nap_us = 100'000;
// From when all have started: programs take about as long.
constexpr double longest_life_ns = 2e6;
// Virtual time in which nothing is sent or called until all is at rest: longer than anybody
// computes, and than packets of a connection being made take to be sent again.
constexpr sim::Time quiet = 300'000 * sim::microsecond;
// Where peers of a process that talks to nobody any more ask it for connections in vain.
constexpr sim::Time long_quiet = 30 * 1'000'000 * sim::microsecond;
constexpr int most_rounds = 1000; // of what is asked for until it is done
// A run that has more events or takes longer never comes to rest.
constexpr std::uint64_t most_events = 1'000'000;
constexpr sim::Time longest_run = 1'000'000'000 * sim::microsecond;

// Now and then tells that registered memory, or part of it, has gone away, also while it is in use,
// which a source may do; and does not watch some of it at all. The simulated adapter reads and
// writes memory by its address, so the data stay right whatever is told.
class Suspicious final : public mem::InvalidationSource {
 public:
  explicit Suspicious(std::uint64_t seed) : random_(seed) {}
  bool watch(const mem::Range& range) override {
    if (random_.chance(5)) return false;
    watched_.push_back(range);
    return true;
  }
  bool take(mem::Range& gone) override {
    if (watched_.empty() || !random_.chance(5)) return false;
    gone = watched_[random_.choose(static_cast<unsigned>(watched_.size()))];
    if (random_.chance(50)) gone.end = gone.begin + (gone.end - gone.begin + 1) / 2;
    return true;
  }

 private:
  prove::Random random_;
  std::vector<mem::Range> watched_;
};

// What of the library a rank is in goes with it.
class RankFiber final : public sim::Fiber {
 public:
  using Fiber::Fiber;

 private:
  void switching_in() override { in_library_ = prove::InLibrary::set(in_library_); }
  void switching_out() override { in_library_ = prove::InLibrary::set(in_library_); }
  bool in_library_ = false;
};

} // namespace

class Run::Rank final : public boot::Job {
 public:
  Rank(Run& run, int number, std::uint64_t seed)
      : run_(run), number_(number), random_(seed), processor_(run.scheduler_),
        fiber_(stack_bytes, [this] { live(); }), device_(run.fabric_, processor_), memory_(~seed),
        system_(node(), place(), device_, processor_) {
    processor_.run_in(&fiber_);
    if (!run.setup_.rails) return;
    second_device_.emplace(run.fabric_, processor_);
    second_device_->stand_beside(device_);
  }

  void resume() {
    if (!killed_) fiber_.resume();
  }
  // Ends where it stands, as by SIGKILL: nothing of it runs any more, not even destructors, so what
  // it shared stays as it is.
  void kill() {
    if (engine_made_ && !ended()) {
      killed_ = true;
      processor_.stop();
      node().fail(place());
      static_cast<void>(run_.job_->die(number_).release());
      run_.scheduler_.touch();
    }
  }
  void forbid_copies() { system_.forbid_copies(); }
  // Something to be done by this rank, as soon as it has nothing else to do.
  void give(std::function<bool(Rank&)> task) {
    task_ = std::move(task);
    device_.wake();
    if (networks_) networks_->nearest().wake();
  }
  [[nodiscard]] bool killed() const { return killed_; }
  [[nodiscard]] bool ended() const { return killed_ || fiber_.ended(); }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool drain() const { return networks_->drain(); }
  // Null where it has none.
  [[nodiscard]] RdmaTransport* rdma() { return rdma_.get(); }
  [[nodiscard]] sim::SimulatedNeighbors* neighbors() { return neighbors_.get(); }
  [[nodiscard]] std::vector<const sim::SimulatedDevice*> devices() const {
    if (!second_device_) return {&device_};
    return {&device_, &*second_device_};
  }
  void finish() {
    rdma_.reset();
    neighbors_.reset();
  }

  // boot::Job
  [[nodiscard]] int rank() const override { return number_; }
  [[nodiscard]] int size() const override { return run_.ranks(); }
  [[nodiscard]] boot::Secret secret() const override { return {7, 7, 7}; }
  [[nodiscard]] int cores() const override { return run_.setup_.cores; }
  void publish(std::span<const std::byte> endpoint) override {
    endpoint_.emplace(endpoint.begin(), endpoint.end());
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    const auto& its = other(rank).endpoint_;
    if (!its) return std::nullopt;
    return std::span<const std::byte>(*its);
  }
  [[nodiscard]] int node(int rank) const override { return rank / per_node(); }
  [[nodiscard]] int local_rank() const override { return place(); }
  [[nodiscard]] int neighbour(int index) const override { return number_ - place() + index; }
  [[nodiscard]] int local_size() const override {
    return std::min(per_node(), size() - neighbour(0));
  }
  [[nodiscard]] bool is_local(int rank) const override { return node(rank) == node(number_); }
  [[nodiscard]] boot::SharedMemory own_memory() override { return memory_of(number_); }
  [[nodiscard]] boot::SharedMemory memory_of(int rank) const override {
    return node().memory(other(rank).place());
  }
  [[nodiscard]] pid_t pid(int rank) const override { return sim::Node::pid(other(rank).place()); }
  [[nodiscard]] boot::Life life(int rank) const override {
    const Rank& its = other(rank);
    return its.killed_ || its.gave_up_ ? boot::Life::failed : boot::Life::unknown;
  }
  [[nodiscard]] unsigned failures() const override { return node().failures() + run_.given_up_; }
  void give_up() override {
    gave_up_ = true;
    ++run_.given_up_;
  }

 private:
  void live() {
    try {
      make_networks();
      run_.job_->start(number_, *networks_);
      engine_made_ = true;
      for (unsigned fruitless = 0; !networks_->connect_at_start();)
        if (!progress()) networks_->idle(++fruitless, 50);
      networks_->resume();
      const auto& steps = run_.setup_.program.ranks[static_cast<std::size_t>(number_)];
      while (run_.job_->next(number_) < steps.size() && run_.job_->may_call(number_)) {
        pass_time();
        run_.scheduler_.touch();
        run_.job_->call(number_);
      }
      serve();
    } catch (const std::exception& error) {
      run_.job_->say(fmt::format("rank {} throws: {}", number_, error.what()));
    }
  }

  // Shared memory where there are neighbours, RDMA where there are others.
  void make_networks() {
    const base::Settings& settings = run_.setup_.settings;
    processes_.emplace(*this);
    std::vector<engine::Transport*> networks;
    const auto add = [&](engine::Transport& transport) {
      witnesses_.push_back(
          std::make_unique<Witness>(transport, *run_.job_, number_, run_.setup_.notifications));
      networks.push_back(witnesses_.back().get());
    };
    if (local_size() > 1) {
      neighbors_ = std::make_unique<sim::SimulatedNeighbors>(*processes_, settings, system_);
      add(*neighbors_);
    }
    wire::Endpoint endpoint{};
    if (local_size() < size()) {
      rdma_ = std::make_unique<RdmaTransport>(device_, *processes_, settings, &memory_,
                                              neighbors_.get(), true,
                                              second_device_ ? &*second_device_ : nullptr);
      add(*rdma_);
      endpoint = rdma_->endpoint();
    }
    networks_.emplace(std::move(networks));
    publish(std::as_bytes(std::span(&endpoint, 1)));
  }

  // What a program does between its calls.
  void pass_time() {
    switch (random_.pick(12)) {
    case 0:
    case 1:
      for (int polls = random_.pick(4); polls > 0; --polls)
        progress();
      return;
    case 2:
      return compute(random_.pick(20));
    case 3:
      return compute(random_.pick(500));
    case 4:
      if (random_.chance(20)) compute(10'000); // longer than a peer waits for a close
      return;
    case 5: { // as in MPI_Wait, which may sleep
      unsigned fruitless = 0;
      for (int times = random_.pick(20); times > 0; --times) {
        if (progress())
          fruitless = 0;
        else
          idle(++fruitless, 50);
      }
      networks_->resume();
      return;
    }
    default:
      return;
    }
  }

  // Waits, for whatever may come.
  void serve() {
    unsigned fruitless = 0;
    while (!run_.over_) {
      if (task_) {
        networks_->resume();
        run_.found_ = std::exchange(task_, nullptr)(*this) || run_.found_;
        fruitless = 0;
      } else if (progress()) {
        fruitless = 0;
      } else if (run_.job_->failure(number_) != nullptr) {
        // Nothing comes any more. Now and then the others get their turn, who may sleep for long.
        processor_.rest(processor_.now() + 1'000'000 * sim::microsecond);
      } else if (rdma_ != nullptr && !rdma_->sleeps() && fruitless > 50) {
        compute(1000); // such waits do not sleep, and would take long to simulate
        processor_.rest(processor_.now() + sim::microsecond); // if nobody else does anything
      } else {
        const bool may_end = run_.setup_.deaths || run_.setup_.program.conditions.starved != 0;
        idle(++fruitless, neighbors_ != nullptr && may_end ? nap_us : hour_us);
      }
    }
  }

  void idle(unsigned fruitless, unsigned longest_us) {
    constexpr unsigned patience = 4;
    if (fruitless == patience) {
      for (auto left = run_.job_->may_leave(number_); !left.empty();
           left = run_.job_->may_leave(number_))
        run_.job_->leave(number_, left.front());
    }
    networks_->idle(fruitless, longest_us);
  }

  bool progress() {
    const prove::InLibrary library;
    return run_.job_->engine(number_).progress();
  }
  void compute(int microseconds) {
    const bool slow = run_.setup_.faults.slow_rank == number_;
    device_.compute((slow ? 10 : 1) * microseconds * sim::microsecond);
  }

  [[nodiscard]] int per_node() const { return run_.setup_.ranks_per_node; }
  [[nodiscard]] int place() const { return number_ % per_node(); }
  [[nodiscard]] sim::Node& node() const {
    return *run_.nodes_[static_cast<std::size_t>(number_ / per_node())];
  }
  [[nodiscard]] const Rank& other(int rank) const {
    return *run_.ranks_[static_cast<std::size_t>(rank)];
  }

  Run& run_;
  const int number_;
  prove::Random random_;
  sim::Processor processor_;
  RankFiber fiber_; // early: objects on its stack may be linked in the others
  sim::SimulatedDevice device_;
  std::optional<sim::SimulatedDevice> second_device_;
  Suspicious memory_;
  sim::SimulatedSystem system_;
  std::optional<boot::Processes> processes_;
  std::optional<std::vector<std::byte>> endpoint_; // published
  std::unique_ptr<sim::SimulatedNeighbors> neighbors_;
  std::unique_ptr<RdmaTransport> rdma_;
  std::vector<std::unique_ptr<Witness>> witnesses_;
  std::optional<engine::Networks> networks_;
  bool engine_made_ = false;
  bool killed_ = false;
  bool gave_up_ = false;
  std::function<bool(Rank&)> task_;
};

Run::Run(const Setup& setup, const prove::Types& types, std::uint64_t seed)
    : setup_(setup), scheduler_(seed, setup.faults.shuffle ? sim::Scheduler::Ties::shuffled
                                                           : sim::Scheduler::Ties::in_order),
      fabric_(scheduler_, setup.model, setup.faults, seed),
      job_(std::make_unique<prove::Job>(setup.program, types, setup.settings)) {
  const auto ranks = static_cast<int>(setup.program.ranks.size());
  for (int first = 0; first < ranks; first += setup.ranks_per_node)
    nodes_.push_back(std::make_unique<sim::Node>(setup.ranks_per_node));
  for (std::size_t rank = 0; rank < setup.program.ranks.size(); ++rank)
    ranks_.push_back(std::make_unique<Rank>(*this, static_cast<int>(rank), seed + (rank << 32)));
}

// Engines go before the transports that they use.
Run::~Run() {
  job_.reset();
}

bool Run::any_broken_down() const {
  return std::ranges::any_of(
      ranks_, [this](const auto& rank) { return job_->failure(rank->number()) != nullptr; });
}

// Lets happen what happens by itself, until nothing does; `patient`: nor will.
void Run::settle(bool patient) {
  while (job_->wrong().empty() && scheduler_.next() != sim::never &&
         scheduler_.next() - scheduler_.last_touch() <
             (patient && any_broken_down() ? long_quiet : quiet)) {
    if (scheduler_.now() > longest_run || scheduler_.events() > most_events)
      return job_->say("the program does not come to rest");
    scheduler_.step();
  }
}

void Run::each(const std::function<bool(Rank&)>& task) {
  found_ = false;
  scheduler_.touch();
  for (const auto& rank : ranks_) {
    if (rank->ended()) continue;
    rank->give(task);
  }
  settle();
}

// Until no rank has anything left to do.
void Run::repeat(const std::function<bool(Rank&)>& task, const char* what) {
  for (int round = 0; round < most_rounds; ++round) {
    each(task);
    if (!found_ || wrong()) return;
  }
  say(std::string(what) + " without end");
}

std::string Run::execute() {
  for (const auto& rank : ranks_) {
    const double late = fabric_.random().fraction() * setup_.model.start_spread_ns;
    scheduler_.at(sim::from_ns(late), [its = rank.get()] { its->resume(); });
  }
  const auto in_between = [&](double until_ns, auto what) {
    const auto victim =
        static_cast<std::size_t>(fabric_.random().below(static_cast<std::uint64_t>(ranks())));
    const double when = setup_.model.start_spread_ns + fabric_.random().fraction() * until_ns;
    scheduler_.at(sim::from_ns(when), [its = ranks_[victim].get(), what] { what(*its); });
  };
  if (setup_.deaths) in_between(longest_life_ns, [](Rank& rank) { rank.kill(); });
  if (setup_.forbids) in_between(longest_life_ns, [](Rank& rank) { rank.forbid_copies(); });
  settle(true);
  Starvation::end();
  check_steps();
  if (!wrong()) job_->check_rest();
  each([this](Rank& rank) {
    job_->take_back(rank.number());
    return false;
  });
  repeat([this](Rank& rank) { return job_->receive_rest(rank.number()); }, "messages come");
  job_->check_end();
  if (setup_.program.conditions.starved != 0) job_->check_harm(1);
  repeat([this](Rank& rank) { return job_->failure(rank.number()) == nullptr && !rank.drain(); },
         "transports are drained");
  if (!wrong()) check_transports();
  over_ = true;
  each({});
  if (!wrong()) check_devices();
  return wrong() ? job_->wrong() + where_it_stands() : "";
}

// For a failure: how far each rank has come, and what its transport has counted. Takes no lock: a
// rank may stand where it holds one.
std::string Run::where_it_stands() const {
  std::string text = fmt::format(" (after {} s)", sim::seconds(scheduler_.now()));
  for (const auto& rank : ranks_) {
    text += fmt::format("\nrank {} at step {}", rank->number(), job_->next(rank->number()));
    if (rank->killed()) text += ", killed";
    if (const base::Error* const failure = job_->failure(rank->number()))
      text += fmt::format(", broken down: {}", failure->text);
    base::CounterList counters;
    if (rank->rdma() != nullptr) rank->rdma()->list_counters(counters);
    if (rank->neighbors() != nullptr) rank->neighbors()->list_counters(counters);
    for (const base::Counter& counter : counters.rows()) {
      if (*counter.value != 0) text += fmt::format(" {}={}", counter.name, *counter.value);
    }
  }
  return text;
}

void Run::check_steps() {
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::size_t steps = setup_.program.ranks[static_cast<std::size_t>(rank)].size();
    if (!ranks_[static_cast<std::size_t>(rank)]->killed() && job_->next(rank) != steps)
      say(fmt::format("rank {} stands still in its step {}", rank, job_->next(rank)));
  }
}

// All is at rest: nothing is in use but what waits for messages.
void Run::check_transports() {
  std::size_t credits = 0, given = 0;
  for (const auto& rank : ranks_) {
    if (job_->failure(rank->number()) != nullptr) continue; // nobody polls any more
    if (rank->neighbors() != nullptr && !rank->killed()) check_neighbors(*rank);
    if (rank->rdma() == nullptr) continue;
    const RdmaTransport::InUse now = rank->rdma()->in_use();
    if (now.buffers + now.transfers + now.registrations != 0)
      say(fmt::format("rank {} keeps {} buffers of sends, {} transfers, {} registrations",
                      rank->number(), now.buffers, now.transfers, now.registrations));
    std::vector<std::string> lowered;
    const model::Shape shape =
        model::shape_of(setup_.settings, rank->devices().front()->limits(), lowered);
    if (now.receives < shape.shared && !setup_.breaks)
      say(fmt::format("rank {} has {} shared receives left of {}", rank->number(), now.receives,
                      shape.shared));
    if (rank->rdma()->fallbacks().size() != lowered.size() && !setup_.breaks)
      say(fmt::format("rank {} tells: {}", rank->number(), rank->rdma()->fallbacks().back()));
    credits += now.credits;
    given += now.windows;
  }
  if (credits != given && !setup_.breaks)
    say(fmt::format("{} credits are there, {} were given", credits, given));
  if (fabric_.counters.refused != 0 && !setup_.breaks)
    say(fmt::format("{} accesses to memory were refused", fabric_.counters.refused));
}

// What a process that was killed held of another's is back, but for a claim that it may have taken.
void Run::check_neighbors(Rank& rank) {
  const net::shm::Transport::InUse now = rank.neighbors()->in_use();
  if (now.streams + now.gets + now.claims + now.permits + now.chunks != 0)
    say(fmt::format("rank {} keeps {} streams, {} gets, {} claims, {} permits, {} chunks",
                    rank.number(), now.streams, now.gets, now.claims, now.permits, now.chunks));
}

// The processes have ended: nothing is left of them.
void Run::check_devices() {
  for (const auto& rank : ranks_) {
    if (rank->killed()) continue;
    if (!rank->ended()) return say(fmt::format("rank {} does not end", rank->number()));
    job_->stop(rank->number());
    rank->finish();
    for (const sim::SimulatedDevice* device : rank->devices()) {
      if (device->queue_pair_count() != 0 || device->regions.count() != 0)
        say(fmt::format("rank {} leaves {} queue pairs, {} regions", rank->number(),
                        device->queue_pair_count(), device->regions.count()));
    }
  }
}

} // namespace macadam::torture
