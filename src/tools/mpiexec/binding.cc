// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/binding.h"

#include "base/affinity.h"
#include "base/line.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace macadam::tools {
namespace {

using base::read_line;
using base::Threads;

std::string folder_of(unsigned cpu) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/", cpu);
}

// The NUMA node of a hardware thread is a link in its folder.
std::string node_of(unsigned cpu) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(cpu), error))
    if (const std::string name = entry.path().filename(); name.starts_with("node")) return name;
  return {};
}

// The threads that share this thread's cache of the third level.
std::string cache_of(unsigned cpu) {
  for (int index = 0; index < 8; ++index) {
    const std::string cache = folder_of(cpu) + fmt::format("cache/index{}/", index);
    if (read_line(cache + "level") == "3") return read_line(cache + "shared_cpu_list");
  }
  return {};
}

// A name for the part of the machine that a hardware thread belongs to: one read or two, as a
// topology library would take longer to load than the whole job takes to start. Where the system
// hides its topology every thread is taken for a core, and the whole for one of the larger parts.
std::string part_of(unsigned cpu, Binding binding) {
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

Threads usable_threads() {
  Threads usable = base::usable_threads();
  if (usable.empty())
    throw std::runtime_error("the system does not tell which hardware threads may be used");
  return usable;
}

// In the order of their first thread.
std::vector<Threads> parts_of_machine(Binding binding) {
  std::vector<Threads> parts;
  std::map<std::string, std::size_t> place; // by name, in `parts`
  for (const unsigned cpu : usable_threads()) {
    const auto [found, is_new] = place.try_emplace(part_of(cpu, binding), parts.size());
    if (is_new) parts.emplace_back();
    parts[found->second].push_back(cpu);
  }
  return parts;
}

// "0 to 3, 8".
std::string show(const Threads& threads) {
  std::string text;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < threads.size() && threads[i + 1] == threads[i] + 1)
      ++i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", threads[first]);
    if (i > first) text += fmt::format(" to {}", threads[i]);
  }
  return text;
}

} // namespace

std::vector<Threads> bind_ranks(Binding binding, int ranks) {
  if (binding == Binding::none) return {};
  const std::vector<Threads> parts = parts_of_machine(binding);
  const auto wanted = static_cast<std::size_t>(ranks);
  if (binding == Binding::core && parts.size() < wanted)
    throw std::runtime_error(fmt::format(
        "{} rank{} cannot be bound to {} core{}, which is what mpiexec may use here; leave "
        "--bind-to out",
        ranks, ranks == 1 ? "" : "s", parts.size(), parts.size() == 1 ? "" : "s"));
  std::vector<Threads> sets;
  for (std::size_t rank = 0; rank < wanted; ++rank)
    sets.push_back(parts[wanted <= parts.size() ? rank : rank * parts.size() / wanted]);
  return sets;
}

std::string describe_bindings(const std::vector<Threads>& sets,
                              std::span<const std::uint32_t> ranks, const std::string& where) {
  if (sets.empty())
    return fmt::format("mpiexec: {} on any of the hardware threads {}{}\n",
                       ranks.size() == 1 ? "the rank runs"
                                         : fmt::format("all {} ranks run", ranks.size()),
                       show(usable_threads()), where);
  std::string text;
  for (std::size_t place = 0; place < sets.size(); ++place) {
    const bool one = sets[place].size() == 1;
    text += fmt::format("mpiexec: rank {} runs on hardware thread{} {}{}\n", ranks[place],
                        one ? "" : "s", show(sets[place]), where);
  }
  return text;
}

} // namespace macadam::tools
