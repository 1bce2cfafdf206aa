// SPDX-License-Identifier: BSD-3-Clause
#include "torture/run.h"

#include "fmt/format.h"

#include <algorithm>
#include <array>
#include <exception>

namespace macadam::torture {
namespace {

using namespace net::rdma;

constexpr std::size_t stack_bytes = 256 << 10;
constexpr unsigned hour_us = 3'600'000'000;
// Virtual time in which nothing is sent or called until all is at rest: longer than anybody
// computes, and than packets of a connection being made take to be sent again.
constexpr sim::Time quiet = 300'000 * sim::microsecond;
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

} // namespace

class Run::Rank final : public boot::Job {
 public:
  Rank(Run& run, int number, std::uint64_t seed)
      : run_(run), number_(number), random_(seed), processor_(run.scheduler_),
        fiber_(stack_bytes, [this] { live(); }), device_(run.fabric_, processor_), memory_(~seed) {
    processor_.run_in(&fiber_);
  }

  void resume() { fiber_.resume(); }
  // Something to be done by this rank, as soon as it has nothing else to do.
  void give(std::function<bool(Rank&)> task) {
    task_ = std::move(task);
    device_.wake();
  }
  [[nodiscard]] bool ended() const { return fiber_.ended(); }
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool has_transport() const { return transport_ != nullptr; }
  [[nodiscard]] RdmaTransport& transport() { return *transport_; }
  [[nodiscard]] sim::SimulatedDevice& device() { return device_; }
  void finish() { transport_.reset(); }

  // boot::Job
  [[nodiscard]] int rank() const override { return number_; }
  [[nodiscard]] int size() const override { return run_.ranks(); }
  [[nodiscard]] boot::Secret secret() const override { return {7, 7, 7}; }
  [[nodiscard]] int cores() const override { return size(); }
  void publish(std::span<const std::byte>) override { endpoint_ = transport_->endpoint(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override {
    const auto& its = run_.ranks_[static_cast<std::size_t>(rank)]->endpoint_;
    if (!its) return std::nullopt;
    return std::as_bytes(std::span(&*its, 1));
  }

 private:
  void live() {
    try {
      processes_.emplace(*this);
      transport_ =
          std::make_unique<RdmaTransport>(device_, *processes_, run_.setup_.settings, &memory_);
      publish({});
      witness_.emplace(*transport_, *run_.job_, number_, run_.setup_.notifications);
      run_.job_->start(number_, *witness_);
      for (unsigned fruitless = 0; !transport_->connect_at_start();)
        if (!progress()) transport_->idle(++fruitless, 50);
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
          transport_->idle(++fruitless, 50);
      }
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
        run_.found_ = std::exchange(task_, nullptr)(*this) || run_.found_;
        fruitless = 0;
      } else if (progress()) {
        fruitless = 0;
      } else if (!transport_->sleeps() && fruitless > 50) {
        compute(1000); // such waits do not sleep, and would take long to simulate
      } else {
        transport_->idle(++fruitless, hour_us);
      }
    }
  }

  bool progress() { return run_.job_->engine(number_).progress(); }
  void compute(int microseconds) {
    const bool slow = run_.setup_.faults.slow_rank == number_;
    device_.compute((slow ? 10 : 1) * microseconds * sim::microsecond);
  }

  Run& run_;
  const int number_;
  prove::Random random_;
  sim::Processor processor_;
  sim::Fiber fiber_; // early: objects on its stack may be linked in the others
  sim::SimulatedDevice device_;
  Suspicious memory_;
  std::optional<boot::Processes> processes_;
  std::optional<wire::Endpoint> endpoint_; // published
  std::unique_ptr<RdmaTransport> transport_;
  std::optional<Witness> witness_;
  std::function<bool(Rank&)> task_;
};

Run::Run(const Setup& setup, const prove::Types& types, std::uint64_t seed)
    : setup_(setup), scheduler_(seed, setup.faults.shuffle ? sim::Scheduler::Ties::shuffled
                                                           : sim::Scheduler::Ties::in_order),
      fabric_(scheduler_, setup.model, setup.faults, seed),
      job_(std::make_unique<prove::Job>(setup.program, types, setup.settings)) {
  for (std::size_t rank = 0; rank < setup.program.ranks.size(); ++rank)
    ranks_.push_back(std::make_unique<Rank>(*this, static_cast<int>(rank), seed + (rank << 32)));
}

// Engines go before the transports that they use.
Run::~Run() {
  job_.reset();
}

// Lets happen what happens by itself, until nothing does.
void Run::settle() {
  while (job_->wrong().empty() && scheduler_.next() != sim::never &&
         scheduler_.next() - scheduler_.last_touch() < quiet) {
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
  settle();
  check_steps();
  if (!wrong()) job_->check_rest();
  each([this](Rank& rank) {
    job_->take_back(rank.number());
    return false;
  });
  repeat([this](Rank& rank) { return job_->receive_rest(rank.number()); }, "messages come");
  job_->check_end();
  repeat([](Rank& rank) { return !rank.transport().drain(); }, "transports are drained");
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
    if (!rank->has_transport()) continue;
    base::CounterList counters;
    rank->transport().list_counters(counters);
    for (const base::Counter& counter : counters.rows()) {
      if (*counter.value != 0) text += fmt::format(" {}={}", counter.name, *counter.value);
    }
  }
  return text;
}

void Run::check_steps() {
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::size_t steps = setup_.program.ranks[static_cast<std::size_t>(rank)].size();
    if (job_->next(rank) != steps)
      say(fmt::format("rank {} stands still in its step {}", rank, job_->next(rank)));
  }
}

// All is at rest: nothing is in use but what waits for messages.
void Run::check_transports() {
  std::size_t credits = 0, connections = 0;
  for (const auto& rank : ranks_) {
    const RdmaTransport::InUse now = rank->transport().in_use();
    if (now.buffers + now.transfers + now.registrations != 0)
      say(fmt::format("rank {} keeps {} buffers of sends, {} transfers, {} registrations",
                      rank->number(), now.buffers, now.transfers, now.registrations));
    std::vector<std::string> lowered;
    const model::Shape shape = model::shape_of(setup_.settings, rank->device().limits(), lowered);
    if (now.receives < shape.shared && !setup_.breaks)
      say(fmt::format("rank {} has {} shared receives left of {}", rank->number(), now.receives,
                      shape.shared));
    if (rank->transport().fallbacks().size() != lowered.size() && !setup_.breaks)
      say(fmt::format("rank {} tells: {}", rank->number(), rank->transport().fallbacks().back()));
    credits += now.credits;
    connections += shape.window * rank->transport().connections();
  }
  if (credits != connections && !setup_.breaks)
    say(fmt::format("{} credits are there, {} were given", credits, connections));
  if (fabric_.counters.refused != 0 && !setup_.breaks)
    say(fmt::format("{} accesses to memory were refused", fabric_.counters.refused));
}

// The processes have ended: nothing is left of them.
void Run::check_devices() {
  for (const auto& rank : ranks_) {
    if (!rank->ended()) return say(fmt::format("rank {} does not end", rank->number()));
    job_->stop(rank->number());
    rank->finish();
    const sim::SimulatedDevice& device = rank->device();
    if (device.queue_pair_count() != 0 || device.regions.count() != 0)
      say(fmt::format("rank {} leaves {} queue pairs, {} regions", rank->number(),
                      device.queue_pair_count(), device.regions.count()));
  }
}

} // namespace macadam::torture
