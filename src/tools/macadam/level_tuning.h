// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace macadam::tools {

// What a collective takes on several machines, in microseconds.
struct LevelTimes {
  std::string collective;
  int per_machine = 0; // ranks
  std::int64_t bytes = 0;
  double one_level = 0;
  std::map<std::string, double> two_levels; // by algorithm
};

// The rules that follow, as the setting `levels` has them (coll/level_rules.h): each line from so
// many ranks of a machine on that no measured number from there on, at no size up to its own, was
// slower than on one level. Of leaders and slices the faster one on the most ranks of a machine.
std::string choose_levels(std::span<const LevelTimes> times);

// Throws std::runtime_error if the simulator does not know the network, which says why.
void check_network(const std::string& network);

// Simulates 8 machines of that network. `change`: values of it that are known better, as `macadam
// simulate --change` takes them. Throws std::runtime_error.
std::vector<LevelTimes> measure_levels(const std::string& network, const std::string& change,
                                       bool quick);

// How fast a core of this machine copies memory, in 10^6 bytes a second.
double copy_mb_per_s();

} // namespace macadam::tools
