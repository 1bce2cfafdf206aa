// SPDX-License-Identifier: BSD-3-Clause
#include "sim/world.h"

#include "base/error.h"
#include "boot/hang/hang_report.h"
#include "mpi/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace macadam::sim {
namespace {

// A rank has so many ways to wait that a longer page would help nobody.
constexpr std::size_t most_ranks_in_report = 64;
constexpr unsigned turns_of_progress = 1 << 14;

boot::RankStatus status_of(Rank& rank) {
  using Status = boot::RankStatus;
  mpi::Process* const process = rank.process();
  Status status{Status::Kind::not_in_mpi, {}};
  if (rank.state().phase == RankState::Phase::ended) {
    status.kind = Status::Kind::ended;
  } else if (process != nullptr && process->world.phase == mpi::World::Phase::finalized) {
    status.kind = Status::Kind::finalized;
  } else if (process != nullptr && process->instance) {
    status.kind = Status::Kind::answered;
    status.json = mpi::hang_report(*process);
  }
  return status;
}

} // namespace

World::World(WorldOptions options)
    : options_(std::move(options)),
      scheduler_(options_.seed,
                 options_.faults.shuffle ? Scheduler::Ties::shuffled : Scheduler::Ties::in_order),
      fabric_(scheduler_, options_.model, options_.faults, options_.seed),
      secrets_(scramble(options_.seed)),
      exchange_(
          scheduler_, from_ns(options_.model.address_lookup_ns),
          [this](const auto& programs, const auto& ranks, const boot::Met& parent) {
            return spawn(programs, ranks, parent);
          },
          [this](int job) { end(job); }) {
  exchange_.room = options_.room;
  if (options_.one_node) node_ = std::make_shared<Node>(0);
  for (int job = 0; job < options_.jobs; ++job)
    add_job(options_.ranks, std::nullopt);
}

int World::add_job(int ranks, std::optional<boot::Met> parent) {
  const auto job = static_cast<int>(launchers_.size());
  const int first =
      environments_.empty() ? 0 : environments_.back().first + environments_.back().size;
  const int per_node = options_.one_node ? ranks : options_.ranks_per_node;
  launchers_.push_back(options_.one_node ? std::make_unique<Launcher>(ranks, node_)
                                         : std::make_unique<Launcher>(ranks, per_node, nodes_));
  nodes_ += (ranks + per_node - 1) / per_node;
  launchers_.back()->running = ranks;
  for (std::uint8_t& byte : launchers_.back()->secret)
    byte = static_cast<std::uint8_t>(secrets_.next());
  environments_.push_back({scheduler_, fabric_, launchers_, job, *launchers_.back(), standing_,
                           exchange_, options_.settings ? &*options_.settings : nullptr,
                           options_.stack_bytes, first, ranks, per_node, options_.ports,
                           std::move(parent), options_.compute_times,
                           options_.dealt && !options_.one_node, options_.one_node});
  return job;
}

// Begins at random within the time that ranks take to start.
void World::start(int job, int number, int app_number, std::function<int()> body) {
  ranks_.push_back(std::make_unique<Rank>(environments_[static_cast<std::size_t>(job)], number,
                                          app_number, std::move(body)));
  ++left_;
  ++exchange_.running;
  const double late = fabric_.random().fraction() * options_.model.start_spread_ns;
  scheduler_.at(scheduler_.now() + from_ns(late), [rank = ranks_.back().get()] { rank->start(); });
}

int World::spawn(const std::vector<boot::SpawnProgram>& programs, const std::vector<int>& ranks,
                 const boot::Met& parent) {
  std::vector<Program> found; // before anything is started
  for (const boot::SpawnProgram& program : programs) {
    if (!options_.find_program)
      base::fail(MPI_ERR_SPAWN, "there is no program {}", program.command.front());
    found.push_back(options_.find_program(program));
  }
  const int job = add_job(std::accumulate(ranks.begin(), ranks.end(), 0), parent);
  int number = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const int end = number + ranks[i]; number < end; ++number)
      start(job, number, static_cast<int>(i),
            [program = found[i], number] { return program(number); });
  return job;
}

void World::end(int job) {
  for (const auto& rank : ranks_)
    if (rank->job() == job) rank->kill_at(scheduler_.now());
}

World::~World() {
  // One rank after the other, each whole: no rank reaches into another's memory while it goes.
  for (auto& rank : ranks_)
    rank->destroy();
}

// Only timers of ranks that wait are left, and have been for long.
bool World::hung() const {
  return standing_.computing == 0 &&
         seconds(scheduler_.now() - scheduler_.last_touch()) > options_.quiet_s;
}

void World::destroy_ended() {
  for (; !standing_.ended.empty(); --left_) {
    Rank* rank = standing_.ended.back();
    standing_.ended.pop_back();
    scheduler_.touch();
    if (on_end) on_end(*rank);
    rank->destroy();
    --exchange_.running;
  }
}

// A page for each job of which ranks are left.
std::string World::hang_report() {
  std::vector<std::vector<boot::RankStatus>> jobs(launchers_.size());
  std::size_t shown = 0, left = 0;
  for (const auto& rank : ranks_) {
    const auto job = static_cast<std::size_t>(rank->job());
    if (launchers_[job]->running == 0) continue;
    if (shown == most_ranks_in_report) {
      ++left;
      continue;
    }
    jobs[job].push_back(status_of(*rank));
    ++shown;
  }
  std::string page;
  for (std::size_t job = 0; job < jobs.size(); ++job)
    if (!jobs[job].empty()) // nothing moves: a second look would show the same
      page += boot::hang_report("simulated", jobs[job], jobs[job],
                                jobs.size() > 1 ? fmt::format(" of job {}", job + 1) : "");
  if (left > 0) page += fmt::format("\n  and {} ranks more\n", left);
  return page;
}

Outcome World::run(const Program& program) {
  for (int i = 0; i < options_.jobs * options_.ranks; ++i) {
    const int number = i % options_.ranks;
    start(i / options_.ranks, number, 0, [&program, number] { return program(number); });
  }
  Outcome outcome;
  for (unsigned turn = 1; left_ > 0 && !standing_.abort; ++turn) {
    if (on_progress && turn % turns_of_progress == 0) on_progress();
    if (hung() || !scheduler_.step()) {
      outcome.end = Outcome::End::hung;
      outcome.exit_code = 1;
      outcome.text = hang_report();
      break;
    }
    destroy_ended();
  }
  if (standing_.abort) {
    outcome.end = Outcome::End::aborted;
    outcome.exit_code = standing_.abort->code;
    outcome.text = standing_.abort->who + ' ' + standing_.abort->text;
  }
  if (left_ > 0) outcome.time = scheduler_.last_touch(); // of ranks that have not ended
  for (const auto& rank : ranks_) {
    outcome.time = std::max(outcome.time, rank->state().ended_at);
    if (outcome.exit_code == 0) outcome.exit_code = rank->state().exit_code;
  }
  outcome.trace = scheduler_.trace_hash();
  return outcome;
}

} // namespace macadam::sim
