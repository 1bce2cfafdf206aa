// SPDX-License-Identifier: BSD-3-Clause
// Collectives over several machines on one level and on two, against the least that the network
// allows.
#include "base/error.h"
#include "mpi/instance.h"
#include "mpi/process.h"
#include "sim/device.h"
#include "sim/patterns/pattern.h"
#include "sim/rank.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

namespace macadam::sim {
namespace {

// The rules without those for several machines.
const coll::Rules& one_level() {
  static std::array<std::vector<coll::Rule>, coll::kinds> tables;
  static const coll::Rules rules = [] {
    coll::Rules of;
    for (std::size_t kind = 0; kind < of.size(); ++kind) {
      std::ranges::copy_if(
          coll::default_rules()[kind], std::back_inserter(tables[kind]),
          [](const coll::Rule& rule) { return rule.among != coll::Among::machines; });
      of[kind] = tables[kind];
    }
    return of;
  }();
  return rules;
}

struct Case {
  const char* name;
  const char* what;
  std::int64_t bytes; // of the vector, or of a block
  void (*call)(int bytes, std::byte* out, std::byte* in);
  double moved; // bytes through a rank at the least, in n - 1 nths of `bytes`; alltoall: n times
};

constexpr std::array cases = {
    Case{"barrier", "barrier", 0, [](int, std::byte*, std::byte*) { MPI_Barrier(MPI_COMM_WORLD); },
         0},
    Case{"allreduce8", "allreduce 8 B", 8,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2},
    Case{"allreduce64K", "allreduce 64 KiB", 64 << 10,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2},
    Case{"allreduce16M", "allreduce 16 MiB", 16 << 20,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Allreduce(out, in, bytes / 8, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
         },
         2},
    Case{"alltoall64", "alltoall 64 B", 64,
         [](int bytes, std::byte* out, std::byte* in) {
           MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
         },
         1},
    Case{"bcast1M", "bcast 1 MiB", 1 << 20,
         [](int bytes, std::byte*, std::byte* in) {
           MPI_Bcast(in, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
         },
         2},
};

bool is_alltoall(const Case& one) {
  return one.name == std::string("alltoall64");
}

// log2(n) latencies, and the bytes at the bandwidth of a port.
double bound_us(const Case& one, int ranks, const Model& model) {
  const double n = ranks;
  const double steps = std::ceil(std::log2(n)) * static_cast<double>(model.latency_ns) / 1e3;
  const double bytes =
      one.moved * static_cast<double>(one.bytes) * (is_alltoall(one) ? n - 1 : (n - 1) / n);
  return steps + bytes / static_cast<double>(model.bandwidth_mb_per_s);
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

Measure measure(const Context& context, const Case& one, const coll::Rules& rules,
                std::vector<std::byte>& out, std::vector<std::byte>& in) {
  static Measure all;
  Rank& rank = *Rank::current();
  rank.process()->instance->coll->rules = rules;
  const auto call = [&] { one.call(static_cast<int>(one.bytes), out.data(), in.data()); };
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
  calm();
  return found;
}

void levels(Context& context) {
  const std::string only = context.parameters.text("only", "");
  const std::string without = context.parameters.text("two_levels_only", "");
  bool known = only.empty();
  // Nobody reads the data, so all ranks share them.
  static std::vector<std::byte> out;
  static std::vector<std::byte> in;
  for (const Case& one : cases) {
    if (!only.empty() && only != one.name) continue;
    known = true;
    const auto room = static_cast<std::size_t>(one.bytes) *
                      static_cast<std::size_t>(is_alltoall(one) ? context.size : 1);
    out.resize(std::max(out.size(), room));
    in.resize(std::max(in.size(), room));
    const double bound = bound_us(one, context.size, Rank::current()->model());
    Row row{one.what, {{"bound_us", bound}}};
    if (without.find(one.name) == std::string::npos) {
      const Measure flat = measure(context, one, one_level(), out, in);
      row.values["one_level_us"] = flat.us;
      row.values["one_level_bytes_between"] = flat.between;
    }
    const Measure two = measure(context, one, coll::default_rules(), out, in);
    row.values["two_levels_us"] = two.us;
    row.values["two_levels_bytes_between"] = two.between;
    row.values["two_levels_by_bound"] = two.us / bound;
    if (context.rank == 0) context.rows.push_back(row);
  }
  if (!known)
    base::fail(MPI_ERR_ARG,
               "parameter only: found '{}', needed barrier, allreduce8, allreduce64K, "
               "allreduce16M, alltoall64 or bcast1M",
               only);
}

constexpr std::array all = {
    Pattern{"levels",
            "Collectives on one level and on two: give --ranks-per-node (only=CASE, "
            "two_levels_only=CASE:CASE)",
            levels},
};

} // namespace

std::span<const Pattern> level_patterns() {
  return all;
}

} // namespace macadam::sim
