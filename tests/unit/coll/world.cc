// SPDX-License-Identifier: BSD-3-Clause
#include "world.h"

#include "../support/sanitized.h"

#include <algorithm>
#include <numeric>

namespace macadam::test {

const datatype::PredefinedTypes& types() {
  static const datatype::PredefinedTypes all;
  return all;
}

const std::vector<int>& every_rank_count() {
  static const std::vector<int> counts =
      sanitized ? std::vector{1, 2, 3, 5, 8} : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 16};
  return counts;
}

LoopbackOptions calm() {
  LoopbackOptions options;
  options.limits = {"loopback", 512, 64, 256, false};
  return options;
}

LoopbackOptions rough(std::uint64_t seed) {
  LoopbackOptions options = LoopbackOptions::rough(seed);
  options.limits = {"loopback", 512, 64, 256, false};
  options.limits.shares_cores = true;
  return options;
}

LoopbackOptions sharing(LoopbackOptions options) {
  options.limits.maps = true;
  return options;
}

World::Rank::Rank(World& world, int rank)
    : engine(world.network_.transport(rank), static_cast<engine::Rank>(world.network_.size()),
             world.settings_),
      resources(engine, types()[MPI_BYTE]) {
  const bool inter = world.second_.size() > 0;
  const bool second = rank >= world.first_.size();
  team.context = 5;
  team.shares = !inter && engine.networks().maps_all(world.first_);
  team.rank = second ? rank - world.first_.size() : rank;
  team.local = second ? &world.second_ : &world.first_;
  team.peers = second || !inter ? &world.first_ : &world.second_;
  inside = team;
  inside.context = 7;
  inside.peers = team.local;
}

World::World(int ranks, const LoopbackOptions& options, int remote)
    : random(options.seed), network_(ranks + remote, options), first_(0, 1, ranks),
      second_(static_cast<engine::Rank>(ranks), 1, remote) {
  for (int rank = 0; rank < ranks + remote; ++rank)
    ranks_.push_back(std::make_unique<Rank>(*this, rank));
}

void World::place(const std::vector<int>& machines) {
  for (auto& rank : ranks_) {
    rank->resources.node_of = [machines](engine::Rank of) { return machines[of]; };
    rank->team.shares = false;
    rank->machines.context = 9;
  }
}

std::vector<int> any_placement(int ranks, std::mt19937_64& random) {
  const auto kind = random() % 4;
  const int machines = 2 + static_cast<int>(random() % 3);
  const int each = (ranks + machines - 1) / machines;
  std::vector<int> placement;
  for (int rank = 0; rank < ranks; ++rank) {
    const int at = static_cast<int>(random() % static_cast<unsigned>(machines));
    const int before = placement.empty() ? 40 : placement.back();
    placement.push_back(kind == 0   ? rank / each
                        : kind == 1 ? 7 - rank % machines
                        : kind == 2 ? before - static_cast<int>(random() % 3 == 0) // in order
                                    : at);
  }
  return placement;
}

void World::force(coll::Kind kind, coll::Algorithm algorithm) {
  const coll::Among among = algorithm == coll::Algorithm::shared        ? coll::Among::sharing
                            : algorithm == coll::Algorithm::single_copy ? coll::Among::single_copy
                            : on_levels(algorithm)                      ? coll::Among::machines
                                                                        : coll::Among::all;
  rules_ = {{kind, 1 << 30, UINT64_MAX, algorithm, among, 1}};
  if (on_levels(algorithm)) {
    place(any_placement(size(), random));
    for (const coll::Rule& rule : coll::default_rules()[static_cast<std::size_t>(kind)]) {
      if (rule.among != coll::Among::machines) rules_.push_back(rule); // for the teams
    }
  }
  coll::Segments segments;
  if (random() % 2 != 0)
    for (std::size_t* const bytes : {&segments.slice, &segments.bcast, &segments.alltoall,
                                     &segments.allgather, &segments.combined})
      *bytes = 1 + random() % 64;
  for (auto& rank : ranks_) {
    rank->resources.rules[static_cast<std::size_t>(kind)] = rules_;
    rank->resources.segments = segments;
    if (random() % 2 != 0) rank->resources.segments.exchange = 1 + random() % 400; // each its own
  }
}

bool World::run_until(const std::function<bool()>& done) {
  int fruitless = 0;
  while (!done()) {
    const auto rank = random() % ranks_.size();
    if (ranks_[rank]->engine.progress())
      fruitless = 0;
    else if (++fruitless > 400 * size())
      return false;
  }
  return true;
}

std::vector<std::string> World::run(coll::Collective::Run what_to_run,
                                    const std::function<coll::Arguments(int)>& arguments) {
  const auto n = static_cast<std::size_t>(size());
  std::vector<std::unique_ptr<Operation>> operations(n);
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const int rank : order) {
    auto& operation = operations[static_cast<std::size_t>(rank)];
    coll::Arguments given = arguments(rank);
    if (second_.size() > 0) given.inside = &at(rank).inside;
    operation = std::make_unique<Operation>(resources(rank), team(rank), boards(rank),
                                            machines(rank), what_to_run, given);
    sequence(rank).start_blocking(*operation);
    for (auto moves = random() % 4; moves > 0; --moves)
      at(rank).engine.progress();
  }
  const bool ended = run_until([&] {
    return std::all_of(operations.begin(), operations.end(), [](auto& o) { return o->complete(); });
  });
  std::vector<std::string> errors(n);
  for (std::size_t i = 0; i < n; ++i) {
    errors[i] = operations[i]->complete() ? what(operations[i]->error()) : "hangs";
    if (!ended) static_cast<void>(operations[i].release()); // the network may still write to it
  }
  return errors;
}

bool World::at_rest() {
  const bool quiet = run_until([&] {
    return network_.quiet() && std::all_of(ranks_.begin(), ranks_.end(),
                                           [](auto& rank) { return rank->engine.quiet(); });
  });
  return quiet && std::none_of(ranks_.begin(), ranks_.end(),
                               [](auto& rank) { return rank->engine.matcher().any_unexpected(); });
}

std::string what(const std::exception_ptr& error) {
  if (!error) return "";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  }
}

} // namespace macadam::test
