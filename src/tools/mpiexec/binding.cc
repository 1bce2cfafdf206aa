// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/binding.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace macadam::tools {
namespace {

std::string folder_of(int cpu) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/", cpu);
}

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The NUMA node of a hardware thread is a link in its folder.
std::string node_of(int cpu) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(cpu), error))
    if (const std::string name = entry.path().filename(); name.starts_with("node")) return name;
  return {};
}

// The threads that share this thread's cache of the third level.
std::string cache_of(int cpu) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder_of(cpu) + fmt::format("cache/index{}/", index);
    if (read_line(cache + "level") == "3") return read_line(cache + "shared_cpu_list");
  }
  return {};
}

// A name for the part of the machine that a hardware thread belongs to: one read or two, as a
// topology library would take longer to load than the whole job takes to start. Where the system
// hides its topology every thread is taken for a core, and the whole for one of the larger parts.
std::string part_of(int cpu, Binding binding) {
  const std::string topology = folder_of(cpu) + "topology/";
  const std::string package = read_line(topology + "physical_package_id");
  switch (binding) {
  case Binding::none:
    break;
  case Binding::core: {
    const std::string core = read_line(topology + "core_id");
    return core.empty() ? fmt::format("thread {}", cpu) : package + " " + core;
  }
  case Binding::l3cache:
    return cache_of(cpu);
  case Binding::numa:
    return node_of(cpu);
  case Binding::socket:
    return package;
  }
  return {};
}

cpu_set_t usable_threads() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0)
    throw std::runtime_error(std::string("reading the affinity mask failed: ") +
                             std::strerror(errno));
  return usable;
}

// In the order of their first thread.
std::vector<cpu_set_t> parts_of_machine(Binding binding) {
  const cpu_set_t usable = usable_threads();
  std::vector<cpu_set_t> parts;
  std::map<std::string, std::size_t> place; // by name, in `parts`
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable)) continue;
    const auto [found, is_new] = place.try_emplace(part_of(cpu, binding), parts.size());
    if (is_new) CPU_ZERO(&parts.emplace_back());
    CPU_SET(cpu, &parts[found->second]);
  }
  return parts;
}

// "0 to 3, 8".
std::string show(const cpu_set_t& set) {
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
      ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", cpu);
    if (last > cpu) text += fmt::format(" to {}", last);
    cpu = last;
  }
  return text;
}

} // namespace

std::vector<cpu_set_t> bind_ranks(Binding binding, int ranks) {
  if (binding == Binding::none) return {};
  const std::vector<cpu_set_t> parts = parts_of_machine(binding);
  const auto wanted = static_cast<std::size_t>(ranks);
  if (binding == Binding::core && parts.size() < wanted)
    throw std::runtime_error(fmt::format(
        "{} rank{} cannot be bound to {} core{}, which is what mpiexec may use here; leave "
        "--bind-to out",
        ranks, ranks == 1 ? "" : "s", parts.size(), parts.size() == 1 ? "" : "s"));
  std::vector<cpu_set_t> sets;
  for (std::size_t rank = 0; rank < wanted; ++rank)
    sets.push_back(parts[wanted <= parts.size() ? rank : rank * parts.size() / wanted]);
  return sets;
}

std::string describe_bindings(const std::vector<cpu_set_t>& sets,
                              std::span<const std::uint32_t> ranks, const std::string& where) {
  if (sets.empty())
    return fmt::format("mpiexec: {} on any of the hardware threads {}{}\n",
                       ranks.size() == 1 ? "the rank runs"
                                         : fmt::format("all {} ranks run", ranks.size()),
                       show(usable_threads()), where);
  std::string text;
  for (std::size_t place = 0; place < sets.size(); ++place) {
    const bool one = CPU_COUNT(&sets[place]) == 1;
    text += fmt::format("mpiexec: rank {} runs on hardware thread{} {}{}\n", ranks[place],
                        one ? "" : "s", show(sets[place]), where);
  }
  return text;
}

} // namespace macadam::tools
