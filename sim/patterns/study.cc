// SPDX-License-Identifier: BSD-3-Clause
#include "sim/patterns/study.h"

#include "base/error.h"

#include <mpi.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <unistd.h>

namespace macadam::sim {
namespace {

double resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long total = 0, resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &total, &resident);
  std::fclose(file);
  return read == 2 ? static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE))
                   : 0;
}

struct Named {
  const char* name;
  Spread Study::*spread;
};
constexpr std::array spreads = {
    Named{"connections", &Study::connections},
    Named{"init_us", &Study::init_us},
    Named{"pattern_us", &Study::pattern_us},
    Named{"transport_bytes", &Study::transport_bytes},
    Named{"engine_bytes", &Study::engine_bytes},
    Named{"registered_bytes", &Study::registered_bytes},
};

// A rank's program: the pattern between MPI_Init and MPI_Finalize.
int run_rank(Study& study, const Pattern& pattern, const Parameters& parameters, int ranks) {
  Rank& rank = *Rank::current();
  const Time began = rank.now();
  MPI_Init(nullptr, nullptr);
  const Time initialized = rank.now();
  Context context{rank.number(), ranks, parameters, study.rows};
  if (pattern.ranks != 0 && ranks != pattern.ranks)
    base::fail(MPI_ERR_ARG, "{} runs on {} ranks, not on {}", pattern.name, pattern.ranks, ranks);
  pattern.run(context);
  context.parameters.all_known();
  const Time done = rank.now();
  const net::rdma::RdmaTransport* const adapter = rank.transport();
  const net::shm::Transport* const neighbors = rank.neighbors();
  study.connections.add(adapter != nullptr ? static_cast<double>(adapter->connections()) : 0);
  study.init_us.add(seconds(initialized - began) * 1e6);
  study.pattern_us.add(seconds(done - initialized) * 1e6);
  study.transport_bytes.add(
      static_cast<double>((adapter != nullptr ? adapter->memory_bytes() : 0) +
                          (neighbors != nullptr ? neighbors->memory_bytes() : 0)));
  study.engine_bytes.add(static_cast<double>(rank.process()->instance->engine->memory_bytes()));
  study.registered_bytes.add(static_cast<double>(rank.device()->registered_bytes()));
  study.stack_bytes_most =
      std::max(study.stack_bytes_most, static_cast<double>(rank.stack_touched()));
  if (study.connections.ranks == static_cast<std::uint64_t>(ranks))
    study.resident_bytes_per_rank = resident_bytes() / ranks;
  MPI_Finalize();
  return 0;
}

} // namespace

void Spread::add(double value) {
  least = ranks == 0 ? value : std::min(least, value);
  most = ranks == 0 ? value : std::max(most, value);
  sum += value;
  ++ranks;
}

Study run_pattern(World& world, const Pattern& pattern, std::span<const std::string> words) {
  Study study;
  const Parameters parameters(words);
  study.outcome =
      world.run([&](int) { return run_rank(study, pattern, parameters, world.size()); });
  return study;
}

std::string as_table(const Study& study) {
  std::string page;
  for (const Row& row : study.rows) {
    page += fmt::format("{:<24}", row.what);
    for (const auto& [name, value] : row.values)
      page += fmt::format("{:>16.2f} {}", value, name);
    page += '\n';
  }
  page += fmt::format("{:<24}{:>16}{:>16}{:>16}\n", "per process", "mean", "least", "most");
  for (const Named& named : spreads) {
    const Spread& spread = study.*named.spread;
    page += fmt::format("{:<24}{:>16.2f}{:>16.2f}{:>16.2f}\n", named.name, spread.mean(),
                        spread.least, spread.most);
  }
  return page;
}

std::string as_json(const Study& study) {
  nlohmann::json json;
  for (const Named& named : spreads) {
    const Spread& spread = study.*named.spread;
    json[named.name] = {{"mean", spread.mean()}, {"least", spread.least}, {"most", spread.most}};
  }
  json["rows"] = nlohmann::json::array();
  for (const Row& row : study.rows) {
    nlohmann::json values = row.values;
    values["what"] = row.what;
    json["rows"].push_back(std::move(values));
  }
  json["ranks"] = study.connections.ranks;
  json["virtual_s"] = seconds(study.outcome.time);
  json["resident_bytes_per_rank"] = study.resident_bytes_per_rank;
  json["stack_bytes_most"] = study.stack_bytes_most;
  json["trace"] = fmt::format("{:016x}", study.outcome.trace);
  return json.dump(2) + "\n";
}

} // namespace macadam::sim
