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
      fabric_(scheduler_, options_.model, options_.faults, options_.seed) {
  const int nodes = (options_.ranks + options_.ranks_per_node - 1) / options_.ranks_per_node;
  Random random(scramble(options_.seed));
  for (int job = 0; job < options_.jobs; ++job) {
    launchers_.push_back(
        std::make_unique<Launcher>(options_.ranks, options_.ranks_per_node, job * nodes));
    for (std::uint8_t& byte : launchers_.back()->secret)
      byte = static_cast<std::uint8_t>(random.next());
    environments_.push_back({scheduler_, fabric_, launchers_, job, *launchers_.back(), standing_,
                             options_.settings ? &*options_.settings : nullptr,
                             options_.stack_bytes, options_.ranks, options_.ranks_per_node,
                             options_.compute_times});
  }
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

std::size_t World::destroy_ended() {
  std::size_t count = 0;
  for (; !standing_.ended.empty(); ++count) {
    Rank* rank = standing_.ended.back();
    standing_.ended.pop_back();
    scheduler_.touch();
    if (on_end) on_end(*rank);
    rank->destroy();
  }
  return count;
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
    const Rank::Environment& job = environments_[static_cast<std::size_t>(i / options_.ranks)];
    const int number = i % options_.ranks;
    ranks_.push_back(
        std::make_unique<Rank>(job, number, [&program, number] { return program(number); }));
    const double late = fabric_.random().fraction() * options_.model.start_spread_ns;
    scheduler_.at(from_ns(late), [rank = ranks_.back().get()] { rank->start(); });
  }
  Outcome outcome;
  std::size_t left = ranks_.size();
  for (unsigned turn = 1; left > 0 && !standing_.abort; ++turn) {
    if (on_progress && turn % turns_of_progress == 0) on_progress();
    if (hung() || !scheduler_.step()) {
      outcome.end = Outcome::End::hung;
      outcome.exit_code = 1;
      outcome.text = hang_report();
      break;
    }
    left -= destroy_ended();
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
