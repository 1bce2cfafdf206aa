// SPDX-License-Identifier: BSD-3-Clause
// Collectives over several machines on one level and on two, against the least that the network
// allows.
#include "base/error.h"
#include "mpi/instance.h"
#include "mpi/process.h"
#include "sim/device.h"
#include "sim/patterns/pattern.h"
#include "sim/rank.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace macadam::sim {
namespace {

// The rules without those for several machines.
coll::Rules one_level() {
  static const coll::RuleTable table("none");
  return table.rules();
}

struct Case {
  const char* name;
  const char* what;
  std::int64_t bytes; // of the vector, or of a block
  void (*call)(int bytes, std::byte* out, std::byte* in);
  double moved;  // bytes through a machine's ports at the least, in `bytes`; alltoall: see there
  double copied; // bytes that the slowest rank copies and reduces at the least, in the same unit
};

constexpr std::array cases = {
    Case{"barrier", "barrier", 0, [](int, std::byte*, std::byte*) { MPI_Barrier(MPI_COMM_WORLD); },
         0, 0},
    Case{"allreduce8", "allreduce 8 B", 8,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2, 3},
    Case{"allreduce64K", "allreduce 64 KiB", 64 << 10,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2, 3},
    Case{"allreduce16M", "allreduce 16 MiB", 16 << 20,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2, 3},
    Case{"alltoall64", "alltoall 64 B", 64,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
         },
         1, 2},
    Case{"bcast1M", "bcast 1 MiB", 1 << 20,
         [](int bytes, std::byte*, std::byte* in) {
           MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
         },
         2, 1},
};

bool is_alltoall(const Case& one) {
  return one.name == std::string("alltoall64");
}

// The least that a case can take, in microseconds.
struct Bound {
  double network; // log2(n) latencies, and the bytes between machines at the bandwidth of the ports
  double memory;  // the same, where what the ranks copy takes longer than those bytes
};

// Of memory: ranks of a machine cannot read each other's buffers. So what one gives to others is
// copied once, by it or by another, and what it takes from others, too; a reduction reads besides
// what is given. All in r - 1 rths, of r ranks on a machine. In a broadcast both happen at once.
Bound bound_us(const Case& one, int ranks, const Rank& rank) {
  const Model& model = rank.model();
  const double n = ranks;
  const double per_machine = std::min(rank.ranks_per_node(), ranks);
  const double machines = std::ceil(n / per_machine);
  const double blocks = is_alltoall(one) ? n : 1;
  const auto bytes = static_cast<double>(one.bytes);
  const double through = is_alltoall(one) ? per_machine * (n - per_machine) * bytes
                                          : one.moved * bytes * (machines - 1) / machines;
  const double network = through / (std::min<double>(rank.ports(), per_machine) *
                                    static_cast<double>(model.bandwidth_mb_per_s));
  const double memory = one.copied * blocks * bytes * (per_machine - 1) / per_machine /
                        static_cast<double>(model.copy_mb_per_s);
  const double steps = std::ceil(std::log2(n)) * static_cast<double>(model.latency_ns) / 1e3;
  return {steps + network, steps + std::max(network, memory)};
}

// Of one run, over all ranks, which are in one process.
struct Measure {
  Time first = 0; // when the last rank came
  Time last = 0;  // when the last rank was done
  double us = 0;
  double between = 0; // bytes between machines
};

// What is on its way of anything else has arrived.
void calm() {
  Rank::current()->compute(2000 * microsecond);
}

template <class Call>
Measure measure(const Context& context, const Call& call, const coll::Rules& rules) {
  static Measure all;
  Rank& rank = *Rank::current();
  coll::Resources& resources = *rank.process()->instance->coll;
  resources.rules = rules;
  call(); // connects, and makes the boards
  MPI_Barrier(MPI_COMM_WORLD);
  calm();
  const auto before = static_cast<double>(rank.device()->fabric().counters.bytes_between_nodes);
  if (context.rank == 0) all = {};
  calm();
  all.first = std::max(all.first, rank.now());
  call();
  all.last = std::max(all.last, rank.now());
  calm();
  const auto after = static_cast<double>(rank.device()->fabric().counters.bytes_between_nodes);
  MPI_Barrier(MPI_COMM_WORLD);
  Measure found = all;
  found.us = seconds(found.last - found.first) * 1e6;
  found.between = after - before;
  resources.rules = resources.table.rules();
  calm();
  return found;
}

void levels(Context& context) {
  const std::string only = context.parameters.text("only", "");
  const std::string without = context.parameters.text("two_levels_only", "");
  bool known = only.empty();
  // To try others than the library's.
  coll::Segments& segments = Rank::current()->process()->instance->coll->segments;
  for (const auto& [name, bytes] :
       {std::pair("slice", &segments.slice), std::pair("bcast", &segments.bcast),
        std::pair("alltoall", &segments.alltoall), std::pair("allgather", &segments.allgather),
        std::pair("combined", &segments.combined)})
    *bytes = static_cast<std::size_t>(std::max<std::int64_t>(
        context.parameters.number(name, static_cast<std::int64_t>(*bytes)), 1));
  // Nobody reads the data, so all ranks share them, and what the library copies them to.
  static std::vector<std::byte> out;
  static std::vector<std::byte> in;
  alignas(mem::Buffers::alignment) static std::array<std::byte, std::size_t{16} << 20> copies;
  Rank::current()->process()->instance->coll->scratch.alias_long(copies);
  for (const Case& one : cases) {
    if (!only.empty() && only != one.name) continue;
    known = true;
    const auto room = static_cast<std::size_t>(one.bytes) *
                      static_cast<std::size_t>(is_alltoall(one) ? context.size : 1);
    out.resize(std::max(out.size(), room));
    in.resize(std::max(in.size(), room));
    const auto call = [&] { one.call(static_cast<int>(one.bytes), out.data(), in.data()); };
    const Bound bound = bound_us(one, context.size, *Rank::current());
    Row row{one.what, {{"bound_us", bound.network}, {"bound_with_memory_us", bound.memory}}};
    if (without.find(one.name) == std::string::npos) {
      const Measure flat = measure(context, call, one_level());
      row.values["one_level_us"] = flat.us;
      row.values["one_level_bytes_between"] = flat.between;
    }
    const coll::Rules own = Rank::current()->process()->instance->coll->table.rules();
    const Measure two = measure(context, call, own);
    row.values["two_levels_us"] = two.us;
    row.values["two_levels_bytes_between"] = two.between;
    row.values["two_levels_by_bound"] = two.us / bound.network;
    row.values["two_levels_by_bound_with_memory"] = two.us / bound.memory;
    if (context.rank == 0) context.rows.push_back(row);
  }
  if (!known)
    base::fail(MPI_ERR_ARG,
               "parameter only: found '{}', needed barrier, allreduce8, allreduce64K, "
               "allreduce16M, alltoall64 or bcast1M",
               only);
}

// What rules for several machines choose between.
struct Choice {
  coll::Kind kind;
  std::vector<int> bytes; // as rules count them
  void (*call)(int bytes, std::byte* out, std::byte* in);
  bool blocks = false; // of so many bytes, for each rank
};

const std::vector<Choice>& choices() {
  using enum coll::Kind;
  static const std::vector<int> vectors = {8,        256,       1 << 10, 4 << 10, 16 << 10,
                                           64 << 10, 256 << 10, 1 << 20, 4 << 20};
  static const std::vector<int> long_vectors(vectors.begin() + 3, vectors.end());
  static const std::vector<int> blocks = {8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10};
  static const std::vector<Choice> all = {
      {barrier, {0}, [](int, std::byte*, std::byte*) { MPI_Barrier(MPI_COMM_WORLD); }},
      {bcast, vectors,
       [](int bytes, std::byte*, std::byte* in) {
         MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
       }},
      {reduce, vectors,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Reduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
       }},
      {allreduce, vectors,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
       }},
      {reduce_scatter, long_vectors, // of a number for each of 512 ranks at least
       [](int bytes, std::byte* out, std::byte* in) {
         int size = 0;
         MPI_Comm_size(MPI_COMM_WORLD, &size);
         MPI_Reduce_scatter_block(out, in, bytes / 8 / size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
       }},
      {gather, blocks,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Gather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
       },
       true},
      {scatter, blocks,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
       },
       true},
      {allgather, blocks,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
       },
       true},
      {alltoall, blocks,
       [](int bytes, std::byte* out, std::byte* in) {
         MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
       },
       true},
  };
  return all;
}

constexpr int often = 200;

// Each collective on one level and by each of its algorithms on two: for `macadam tune`.
void rules(Context& context) {
  const std::string only = context.parameters.text("only", "");
  static std::vector<std::byte> out;
  static std::vector<std::byte> in;
  for (int i = 0; i < often; ++i) // which lets short ones connect everybody
    MPI_Barrier(MPI_COMM_WORLD);
  for (const Choice& choice : choices()) {
    if (!only.empty() && only != name(choice.kind)) continue;
    for (const int bytes : choice.bytes) {
      const auto room = static_cast<std::size_t>(bytes) *
                        static_cast<std::size_t>(choice.blocks ? context.size : 1);
      out.resize(std::max(out.size(), room));
      in.resize(std::max(in.size(), room));
      const auto call = [&] { choice.call(bytes, out.data(), in.data()); };
      call(); // those who are late or early take other ways at first
      Row row{name(choice.kind), {{"bytes", bytes}}};
      row.values["one_level_us"] = measure(context, call, one_level()).us;
      for (const coll::Algorithm algorithm : algorithms_of(choice.kind)) {
        if (!is_on_levels(algorithm)) continue;
        const coll::RuleTable table(fmt::format("{} {} any 2", name(choice.kind), name(algorithm)));
        row.values[fmt::format("{}_us", name(algorithm))] =
            measure(context, call, table.rules()).us;
      }
      if (context.rank == 0) context.rows.push_back(row);
    }
  }
}

constexpr std::array all = {
    Pattern{"levels",
            "Collectives on one level and on two: give --ranks-per-node (only=CASE, "
            "two_levels_only=CASE:CASE)",
            levels},
    Pattern{
        "rules",
        "Collectives on one level and by each algorithm on two: give --ranks-per-node (only=NAME)",
        rules},
};

} // namespace

std::span<const Pattern> level_patterns() {
  return all;
}

} // namespace macadam::sim
