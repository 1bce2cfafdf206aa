// SPDX-License-Identifier: BSD-3-Clause
#include "sim/world.h"

#include "base/error.h"
#include "mpi/report.h"
#include "tools/mpiexec/hang_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace macadam::sim {
namespace {

// A rank has so many ways to wait that a longer page would help nobody.
constexpr std::size_t most_ranks_in_report = 64;
constexpr unsigned turns_of_progress = 1 << 14;

} // namespace

World::World(WorldOptions options)
    : options_(std::move(options)),
      scheduler_(options_.seed,
                 options_.faults.shuffle ? Scheduler::Ties::shuffled : Scheduler::Ties::in_order),
      fabric_(scheduler_, options_.model, options_.faults, options_.seed),
      secrets_(scramble(options_.seed)),
      exchange_(
          scheduler_, from_ns(options_.model.address_lookup_ns),
          [this](const auto& commands, const auto& ranks, const boot::Met& parent) {
            return spawn(commands, ranks, parent);
          },
          [this](int job) { end(job); }) {
  exchange_.room = options_.room;
  exchange_.knows = [this](const std::string& program) {
    return options_.programs.contains(program);
  };
  if (options_.one_node) node_ = std::make_shared<Node>(0);
  for (int job = 0; job < options_.jobs; ++job)
    add_job(options_.ranks, std::nullopt);
}

int World::add_job(int ranks, std::optional<boot::Met> parent) {
  const auto job = static_cast<int>(launchers_.size());
  const int per_node = options_.one_node ? ranks : options_.ranks_per_node;
  launchers_.push_back(options_.one_node ? std::make_unique<Launcher>(ranks, node_)
                                         : std::make_unique<Launcher>(ranks, per_node, nodes_));
  nodes_ += (ranks + per_node - 1) / per_node;
  launchers_.back()->running = ranks;
  for (std::uint8_t& byte : launchers_.back()->secret)
    byte = static_cast<std::uint8_t>(secrets_.next());
  environments_.push_back({scheduler_, fabric_, launchers_, job, *launchers_.back(), standing_,
                           exchange_, options_.settings ? &*options_.settings : nullptr,
                           options_.stack_bytes, ranks, per_node, options_.ports, std::move(parent),
                           options_.compute_times, options_.dealt && !options_.one_node});
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

int World::spawn(const std::vector<boot::SpawnCommand>& commands, const std::vector<int>& ranks,
                 const boot::Met& parent) {
  int all = 0;
  for (const int count : ranks)
    all += count;
  const int job = add_job(all, parent);
  int number = 0;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    for (const int end = number + ranks[i]; number < end; ++number)
      start(job, number, static_cast<int>(i),
            [&program = options_.programs.at(commands[i].program), number,
             arguments = commands[i].arguments] { return program(number, arguments); });
  }
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

std::string World::hang_report() {
  using Status = tools::RankStatus;
  std::vector<Status> ranks;
  for (const auto& rank : ranks_) {
    if (ranks.size() == most_ranks_in_report) break;
    Status& status = ranks.emplace_back(Status{Status::Kind::not_in_mpi, {}});
    mpi::Process* process = rank->process();
    if (rank->state().phase == RankState::Phase::ended) {
      status.kind = Status::Kind::ended;
    } else if (process != nullptr && process->world.phase == mpi::World::Phase::finalized) {
      status.kind = Status::Kind::finalized;
    } else if (process != nullptr && process->instance) {
      status.kind = Status::Kind::answered;
      status.json = mpi::hang_report(*process);
    }
  }
  // Nothing moves: a second look would show the same.
  std::string page = tools::hang_report("simulated", ranks, ranks);
  if (ranks.size() < ranks_.size())
    page += fmt::format("\n  and {} ranks more\n", ranks_.size() - ranks.size());
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
    outcome.text = fmt::format("rank {} {}", standing_.abort->rank, standing_.abort->text);
  }
  for (const auto& rank : ranks_) {
    outcome.time = std::max(outcome.time, rank->state().ended_at);
    if (outcome.exit_code == 0) outcome.exit_code = rank->state().exit_code;
  }
  outcome.trace = scheduler_.trace_hash();
  return outcome;
}

} // namespace macadam::sim
