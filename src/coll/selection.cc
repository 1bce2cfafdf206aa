// SPDX-License-Identifier: BSD-3-Clause
#include "coll/selection.h"

#include <fmt/format.h>

#include <array>
#include <climits>

namespace macadam::coll {
namespace {

constexpr int any = INT_MAX;
constexpr std::uint64_t all = UINT64_MAX;

// A direct exchange has the shortest critical path, one message, and every rank has to be scheduled
// only once, which decides where ranks share cores. Its cost is the number of messages, and of
// connections where they are made on demand: there, what everybody tells everybody goes by
// recursive doubling, log2(n) partners a rank, unless the data themselves have to go straight (Wu
// et al., Table 2). Dissemination and Bruck's allgather, which need no fold, have twice as many,
// but on a power of two.
constexpr Among near = Among::connected;
// What a few ranks save by a direct exchange pays for their connections once they have called a
// hundred or so; a barrier of more then costs a partner or two more (barrier_pairs()).
constexpr Among often = Among::frequent;
constexpr Among sharing = Among::sharing;
constexpr Among copying_once = Among::single_copy;
// On two levels, messages between machines are fewer by the ranks of a machine; with few of them
// the steps inside cost more than those that are saved (docs/tuning.md). These are as `macadam tune
// --network ndr` finds them, where nobody has run that for another network.
constexpr Among machines = Among::machines;
// Halving moves more between machines of several ranks than a ring does.
constexpr Among few = Among::few;
constexpr std::array table = {
    Rule{Kind::barrier, 64, all, Algorithm::shared, sharing},
    Rule{Kind::barrier, any, all, Algorithm::leaders, machines, 4},
    Rule{Kind::barrier, 8, all, Algorithm::direct, often},
    Rule{Kind::barrier, any, all, Algorithm::dissemination, near},
    Rule{Kind::barrier, any, all, Algorithm::pairs, often},
    Rule{Kind::barrier, any, all, Algorithm::recursive_doubling},

    Rule{Kind::bcast, 64, all, Algorithm::shared, sharing},
    Rule{Kind::bcast, any, 4 << 10, Algorithm::leaders, machines},
    Rule{Kind::bcast, any, all, Algorithm::leaders, machines, 4},
    Rule{Kind::bcast, 2, all, Algorithm::direct},
    Rule{Kind::bcast, 4, 32 << 10, Algorithm::direct},
    Rule{Kind::bcast, any, 1 << 10, Algorithm::binomial},
    Rule{Kind::bcast, 16, 8 << 10, Algorithm::pieces, often},
    Rule{Kind::bcast, any, 32 << 10, Algorithm::binomial},
    Rule{Kind::bcast, 16, 4 << 20, Algorithm::pieces, often},
    Rule{Kind::bcast, 4, 1 << 20, Algorithm::direct},
    // A chain passes m bytes once, but a segment to each rank after the other.
    Rule{Kind::bcast, 16, 4 << 20, Algorithm::scatter_allgather},
    Rule{Kind::bcast, 16, all, Algorithm::chain},
    Rule{Kind::bcast, 128, 16 << 20, Algorithm::scatter_allgather},
    Rule{Kind::bcast, 128, all, Algorithm::chain},
    Rule{Kind::bcast, any, 64 << 20, Algorithm::scatter_allgather},
    Rule{Kind::bcast, any, all, Algorithm::chain},

    Rule{Kind::reduce, 64, all, Algorithm::shared, sharing},
    Rule{Kind::reduce, any, 256, Algorithm::leaders, machines},
    Rule{Kind::reduce, any, 16 << 10, Algorithm::slices, machines},
    Rule{Kind::reduce, any, 64 << 10, Algorithm::slices, machines, 4},
    Rule{Kind::reduce, any, all, Algorithm::slices, machines, 16},
    Rule{Kind::reduce, 8, 1 << 10, Algorithm::direct, often},
    Rule{Kind::reduce, 4, 2 << 10, Algorithm::direct},
    Rule{Kind::reduce, any, 512, Algorithm::binomial},
    Rule{Kind::reduce, 2, 16 << 10, Algorithm::rabenseifner},
    Rule{Kind::reduce, 16, 16 << 10, Algorithm::pieces, often},
    Rule{Kind::reduce, any, 8 << 10, Algorithm::binomial},
    Rule{Kind::reduce, any, all, Algorithm::rabenseifner},
    Rule{Kind::reduce, any, all, Algorithm::binomial},

    Rule{Kind::allreduce, 64, all, Algorithm::shared, sharing},
    Rule{Kind::allreduce, any, 256, Algorithm::leaders, machines},
    Rule{Kind::allreduce, any, 64 << 10, Algorithm::slices, machines},
    Rule{Kind::allreduce, any, all, Algorithm::slices, machines, 4},
    Rule{Kind::allreduce, 8, 1 << 10, Algorithm::direct, often},
    Rule{Kind::allreduce, any, 1 << 10, Algorithm::recursive_doubling},
    Rule{Kind::allreduce, 2, 4 << 10, Algorithm::recursive_doubling},
    Rule{Kind::allreduce, 2, 16 << 10, Algorithm::rabenseifner},
    Rule{Kind::allreduce, 16, 16 << 10, Algorithm::pieces, often},
    Rule{Kind::allreduce, any, 8 << 10, Algorithm::recursive_doubling},
    Rule{Kind::allreduce, any, 256 << 10, Algorithm::rabenseifner},
    Rule{Kind::allreduce, any, all, Algorithm::rabenseifner, few, 3},
    Rule{Kind::allreduce, any, all, Algorithm::ring},
    Rule{Kind::allreduce, any, all, Algorithm::recursive_doubling},

    // Of two ranks, the root takes out while the other still writes.
    Rule{Kind::gather, 2, 1 << 20, Algorithm::shared, sharing},
    Rule{Kind::gather, 64, 256 << 10, Algorithm::shared, sharing},
    Rule{Kind::gather, 64, all, Algorithm::single_copy, copying_once},
    Rule{Kind::gather, 64, all, Algorithm::shared, sharing},
    Rule{Kind::gather, any, 1 << 10, Algorithm::leaders, machines},
    Rule{Kind::gather, any, 16 << 10, Algorithm::leaders, machines, 8},
    Rule{Kind::gather, 16, all, Algorithm::direct, often},
    Rule{Kind::gather, any, 1 << 10, Algorithm::binomial},
    Rule{Kind::gather, any, all, Algorithm::direct},

    Rule{Kind::scatter, 64, 32 << 10, Algorithm::shared, sharing},
    Rule{Kind::scatter, 64, all, Algorithm::single_copy, copying_once},
    Rule{Kind::scatter, 64, all, Algorithm::shared, sharing},
    Rule{Kind::scatter, any, 1 << 10, Algorithm::leaders, machines},
    Rule{Kind::scatter, any, all, Algorithm::leaders, machines, 4},
    Rule{Kind::scatter, 16, all, Algorithm::direct, often},
    Rule{Kind::scatter, any, 1 << 10, Algorithm::binomial},
    Rule{Kind::scatter, any, all, Algorithm::direct},

    Rule{Kind::allgather, 64, all, Algorithm::shared, sharing},
    Rule{Kind::allgather, any, 256, Algorithm::slices, machines},
    Rule{Kind::allgather, any, all, Algorithm::slices, machines, 4},
    Rule{Kind::allgather, 8, 4 << 10, Algorithm::direct, often},
    Rule{Kind::allgather, 16, 256 << 10, Algorithm::direct, often},
    Rule{Kind::allgather, any, 4 << 10, Algorithm::bruck, near},
    Rule{Kind::allgather, any, 4 << 10, Algorithm::recursive_doubling},
    Rule{Kind::allgather, any, 64 << 10, Algorithm::bruck, few, 3},
    Rule{Kind::allgather, any, all, Algorithm::bruck, few, 0},
    Rule{Kind::allgather, any, all, Algorithm::ring},

    Rule{Kind::alltoall, 2, all, Algorithm::shared, sharing}, // see Board::data()
    Rule{Kind::alltoall, 64, 128 << 10, Algorithm::shared, sharing},
    Rule{Kind::alltoall, 64, all, Algorithm::single_copy, copying_once},
    Rule{Kind::alltoall, 64, all, Algorithm::shared, sharing},
    Rule{Kind::alltoall, any, 256, Algorithm::slices, machines},
    Rule{Kind::alltoall, 8, 4 << 10, Algorithm::direct, often},
    Rule{Kind::alltoall, any, 256, Algorithm::bruck},
    Rule{Kind::alltoall, 8, 4 << 10, Algorithm::direct},
    Rule{Kind::alltoall, any, all, Algorithm::pairwise},

    Rule{Kind::reduce_scatter, 64, all, Algorithm::shared, sharing},
    Rule{Kind::reduce_scatter, any, 16 << 10, Algorithm::slices, machines},
    Rule{Kind::reduce_scatter, any, 256 << 10, Algorithm::slices, machines, 4},
    Rule{Kind::reduce_scatter, any, all, Algorithm::slices, machines, 8},
    Rule{Kind::reduce_scatter, 8, 8 << 10, Algorithm::direct, often},
    Rule{Kind::reduce_scatter, 2, all, Algorithm::pairwise},
    Rule{Kind::reduce_scatter, any, 64 << 10, Algorithm::recursive_halving},
    Rule{Kind::reduce_scatter, any, 1 << 20, Algorithm::recursive_halving, few, 0},
    Rule{Kind::reduce_scatter, any, all, Algorithm::pairwise},
    Rule{Kind::reduce_scatter, any, all, Algorithm::direct},

    Rule{Kind::scan, 8, 1 << 10, Algorithm::direct, often},
    Rule{Kind::scan, any, all, Algorithm::recursive_doubling},
};

struct Row {
  const char* name;
  std::array<Algorithm, 8> algorithms;
  std::size_t count;
};

constexpr std::array<Row, kinds> rows = {{
    {"barrier",
     {Algorithm::shared, Algorithm::direct, Algorithm::dissemination, Algorithm::recursive_doubling,
      Algorithm::leaders, Algorithm::pairs},
     6},
    {"bcast",
     {Algorithm::shared, Algorithm::direct, Algorithm::pieces, Algorithm::binomial,
      Algorithm::scatter_allgather, Algorithm::chain, Algorithm::leaders},
     7},
    {"reduce",
     {Algorithm::shared, Algorithm::direct, Algorithm::pieces, Algorithm::binomial,
      Algorithm::rabenseifner, Algorithm::leaders, Algorithm::slices},
     7},
    {"allreduce",
     {Algorithm::shared, Algorithm::direct, Algorithm::pieces, Algorithm::recursive_doubling,
      Algorithm::rabenseifner, Algorithm::ring, Algorithm::leaders, Algorithm::slices},
     8},
    {"gather",
     {Algorithm::shared, Algorithm::single_copy, Algorithm::direct, Algorithm::binomial,
      Algorithm::leaders},
     5},
    {"scatter",
     {Algorithm::shared, Algorithm::single_copy, Algorithm::direct, Algorithm::binomial,
      Algorithm::leaders},
     5},
    {"allgather",
     {Algorithm::shared, Algorithm::direct, Algorithm::bruck, Algorithm::recursive_doubling,
      Algorithm::ring, Algorithm::slices},
     6},
    {"alltoall",
     {Algorithm::shared, Algorithm::single_copy, Algorithm::direct, Algorithm::bruck,
      Algorithm::pairwise, Algorithm::slices},
     6},
    {"reduce_scatter",
     {Algorithm::shared, Algorithm::direct, Algorithm::recursive_halving, Algorithm::pairwise,
      Algorithm::slices},
     5},
    {"scan", {Algorithm::direct, Algorithm::recursive_doubling}, 2},
}};

std::string where(const Rule& rule) {
  switch (rule.among) {
  case Among::sharing:
    return " (in one machine)";
  case Among::single_copy:
    return " (in one machine whose kernel may and can copy fast from rank to rank)";
  case Among::frequent:
    return " (after many on the communicator, or if none has to be connected first)";
  case Among::connected:
    return " (if none has to be connected first)";
  case Among::machines:
    return fmt::format(" (on several machines of {} ranks or more)", rule.per_machine);
  case Among::few:
    return rule.per_machine < 2
               ? " (in one machine, or with one each)"
               : fmt::format(" (on machines of {} ranks at most)", rule.per_machine);
  default:
    return "";
  }
}

bool serves(const Rule& rule, Among among, int per_machine) {
  if (rule.among == Among::machines) return per_machine >= rule.per_machine;
  if (rule.among == Among::few) return per_machine != uneven && per_machine <= rule.per_machine;
  return rule.among <= among;
}

} // namespace

const Rules& default_rules() {
  static constexpr Rules rules = [] {
    Rules of;
    for (const Rule& rule : table) {
      std::span<const Rule>& its = of[static_cast<std::size_t>(rule.kind)];
      its = {its.empty() ? &rule : its.data(), its.size() + 1};
    }
    return of;
  }();
  return rules;
}

Algorithm select(const Rules& rules, Kind kind, int ranks, Among among, int per_machine,
                 std::uint64_t bytes, bool ordered) {
  for (const Rule& rule : rules[static_cast<std::size_t>(kind)]) {
    if (ranks > rule.ranks || bytes > rule.bytes) continue;
    if (!serves(rule, among, per_machine)) continue;
    if (ordered && !keeps_order(kind, rule.algorithm)) continue;
    return rule.algorithm;
  }
  return Algorithm::direct;
}

std::span<const Algorithm> algorithms_of(Kind kind) {
  const Row& row = rows[static_cast<std::size_t>(kind)];
  return {row.algorithms.data(), row.count};
}

bool keeps_order(Kind kind, Algorithm algorithm) {
  switch (kind) {
  case Kind::reduce:
  case Kind::allreduce:
    return algorithm != Algorithm::rabenseifner && algorithm != Algorithm::ring;
  case Kind::reduce_scatter:
    return algorithm == Algorithm::direct || algorithm == Algorithm::shared;
  default:
    return true;
  }
}

// FNV-1a over the fields.
std::uint32_t digest(const Rules& rules) {
  std::uint64_t mixed = 0xcbf29ce484222325u;
  const auto mix = [&](std::uint64_t field) {
    for (int shift = 0; shift < 64; shift += 8)
      mixed = (mixed ^ ((field >> shift) & 0xff)) * 0x100000001b3u;
  };
  for (const std::span<const Rule> its : rules) {
    for (const Rule& rule : its) {
      mix(static_cast<std::uint64_t>(rule.kind));
      mix(static_cast<std::uint64_t>(rule.ranks));
      mix(rule.bytes);
      mix(static_cast<std::uint64_t>(rule.algorithm));
      mix(static_cast<std::uint64_t>(rule.among));
      mix(static_cast<std::uint64_t>(rule.per_machine));
    }
  }
  return static_cast<std::uint32_t>(mixed ^ (mixed >> 32));
}

std::string describe(const Rules& rules) {
  std::string text;
  for (const std::span<const Rule> its : rules) {
    for (const Rule& rule : its) {
      const std::string ranks = rule.ranks == any ? "any" : fmt::format("up to {}", rule.ranks);
      const std::string bytes = rule.bytes == all ? "any" : fmt::format("up to {}", rule.bytes);
      text +=
          fmt::format("  {:<16}{:<12}{:<16}{}{}{}\n", &rule == its.data() ? name(rule.kind) : "",
                      ranks, bytes, name(rule.algorithm), where(rule),
                      keeps_order(rule.kind, rule.algorithm) ? "" : " (if the operation commutes)");
    }
  }
  return text;
}

const char* name(Kind kind) {
  return rows[static_cast<std::size_t>(kind)].name;
}

const char* name(Algorithm algorithm) {
  constexpr std::array names = {"shared",
                                "direct",
                                "dissemination",
                                "binomial",
                                "chain",
                                "scatter_allgather",
                                "recursive_doubling",
                                "recursive_halving",
                                "rabenseifner",
                                "pieces",
                                "ring",
                                "bruck",
                                "pairwise",
                                "leaders",
                                "slices",
                                "pairs",
                                "single_copy"};
  return names[static_cast<std::size_t>(algorithm)];
}

} // namespace macadam::coll
