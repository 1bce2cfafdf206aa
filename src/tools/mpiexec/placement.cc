// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/placement.h"

#include "boot/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <stdexcept>

namespace macadam::tools {
namespace {

// How many ranks of a program each of its hosts gets; `room` is how many it can have before others
// are filled too, and `again` in each further round.
std::vector<int> counts_by_slot(int ranks, std::vector<int> room, const std::vector<int>& again) {
  std::vector<int> counts(room.size());
  for (int left = ranks; left > 0; room = again)
    for (std::size_t i = 0; i < room.size(); ++i) {
      const int taken = std::min(left, room[i]);
      counts[i] += taken;
      left -= taken;
    }
  return counts;
}

std::vector<int> counts_by_node(int ranks, std::vector<int> room, const std::vector<int>& again) {
  std::vector<int> counts(room.size());
  for (int left = ranks; left > 0;) {
    if (std::ranges::all_of(room, [](int slots) { return slots == 0; })) room = again;
    for (std::size_t i = 0; i < room.size() && left > 0; ++i) {
      if (room[i] == 0) continue;
      ++counts[i];
      --room[i];
      --left;
    }
  }
  return counts;
}

// The hosts of a program's ranks in their order.
std::vector<std::size_t> order(std::vector<int> counts, Order by) {
  std::vector<std::size_t> hosts;
  const auto left = [&] { return std::accumulate(counts.begin(), counts.end(), 0) > 0; };
  while (left())
    for (std::size_t i = 0; i < counts.size(); ++i)
      for (int taken = by == Order::node ? std::min(1, counts[i]) : counts[i]; taken > 0; --taken) {
        hosts.push_back(i);
        --counts[i];
      }
  return hosts;
}

class Placer {
 public:
  void add(const Program& program) {
    const std::vector<Host>& hosts = program.hosts.empty()
                                         ? std::vector<Host>{{boot::host_name(), program.ranks}}
                                         : program.hosts;
    std::vector<int> room, again;
    for (const Host& host : hosts) {
      const int all = program.per_host != 0 ? program.per_host : host.slots;
      const int used = program.per_host != 0 ? 0 : static_cast<int>(placed_on(host.name));
      room.push_back(std::max(0, all - used));
      again.push_back(all);
    }
    const auto counts = program.map_by == Order::node
                            ? counts_by_node(program.ranks, std::move(room), again)
                            : counts_by_slot(program.ranks, std::move(room), again);
    for (const std::size_t host : order(counts, program.rank_by.value_or(program.map_by)))
      placement_.machines.push_back(machine(hosts[host].name));
  }

  Placement take() { return std::move(placement_); }

 private:
  std::uint32_t machine(const std::string& host) {
    const auto found = std::ranges::find(placement_.hosts, host);
    const auto index = static_cast<std::uint32_t>(found - placement_.hosts.begin());
    if (found == placement_.hosts.end()) placement_.hosts.push_back(host);
    return index;
  }
  [[nodiscard]] std::uint32_t placed_on(const std::string& host) const {
    const auto found = std::ranges::find(placement_.hosts, host);
    return placement_.ranks_on(static_cast<std::uint32_t>(found - placement_.hosts.begin()));
  }

  Placement placement_;
};

} // namespace

std::uint32_t Placement::ranks_on(std::uint32_t machine) const {
  return static_cast<std::uint32_t>(std::ranges::count(machines, machine));
}

std::string Placement::map() const {
  std::string text;
  for (std::uint32_t machine = 0; machine < hosts.size(); ++machine) {
    std::string ranks;
    for (std::size_t rank = 0; rank < machines.size(); ++rank) {
      if (machines[rank] != machine) continue;
      const std::size_t first = rank;
      while (rank + 1 < machines.size() && machines[rank + 1] == machine)
        ++rank;
      ranks += ranks.empty() ? "" : ", ";
      ranks += first == rank ? std::to_string(rank) : fmt::format("{} to {}", first, rank);
    }
    text += fmt::format("host {}: rank{} {}\n", hosts[machine], ranks_on(machine) == 1 ? "" : "s",
                        ranks);
  }
  return text;
}

Placement place(const Options& options) {
  Placer placer;
  for (const Program& program : options.programs)
    placer.add(program);
  Placement placement = placer.take();
  for (std::uint32_t machine = 0; machine < placement.hosts.size(); ++machine)
    if (placement.ranks_on(machine) > most_ranks)
      throw std::runtime_error(fmt::format("{} ranks on host {} are more than the {} that one "
                                           "machine can have",
                                           placement.ranks_on(machine), placement.hosts[machine],
                                           most_ranks));
  return placement;
}

} // namespace macadam::tools
