// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/allocation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace macadam::tools {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view found,
                         std::string_view needed) {
  throw std::runtime_error(
      fmt::format("{} has \"{}\", where {} is needed; -host and -hostfile name "
                  "machines too",
                  where, found, needed));
}

// Each machine has a rank.
void check_machines(std::size_t count, const std::string& where, std::string_view found) {
  if (count > static_cast<std::size_t>(most_ranks_of_job))
    refuse(where, found, fmt::format("a list of at most {} machines", most_ranks_of_job));
}

// The number that `text` begins with, which is taken off it.
bool take_number(std::string_view& text, int& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  return read.ec == std::errc() && number >= 0;
}

int read_slots(const std::string& word, const std::string& where) {
  std::string_view left = word;
  int slots = 0;
  if (!take_number(left, slots) || !left.empty() || slots == 0)
    refuse(where, word, "a number of slots above 0");
  return slots;
}

// Parts between commas that stand in no brackets.
std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// The numbers of "0-2,07" with their leading zeros.
std::vector<std::string> expand_range(const std::string& range) {
  std::vector<std::string> numbers;
  std::istringstream parts(range);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string_view left = part;
    int first = 0;
    if (!take_number(left, first)) refuse("the list of machines", range, "a list such as 0-2,07");
    const std::size_t width = part.size() - left.size();
    int last = first;
    if (left.starts_with('-')) {
      left.remove_prefix(1);
      if (!take_number(left, last) || last < first) left = part;
    }
    if (!left.empty()) refuse("the list of machines", range, "a list such as 0-2,07");
    check_machines(numbers.size() + static_cast<std::size_t>(last - first) + 1,
                   "the list of machines", range);
    for (int number = first; number <= last; ++number)
      numbers.push_back(fmt::format("{:0{}}", number, width));
  }
  return numbers;
}

// The hosts of one name, in which brackets may stand several times.
std::vector<std::string> expand_name(const std::string& name) {
  const std::size_t open = name.find('[');
  if (open == std::string::npos) return {name};
  const std::size_t close = name.find(']', open);
  if (close == std::string::npos) refuse("the list of machines", name, "a closing bracket");
  std::vector<std::string> names;
  const std::vector<std::string> ends = expand_name(name.substr(close + 1));
  const std::vector<std::string> numbers = expand_range(name.substr(open + 1, close - open - 1));
  check_machines(numbers.size() * ends.size(), "the list of machines", name);
  for (const std::string& number : numbers)
    for (const std::string& end : ends)
      names.push_back(name.substr(0, open) + number + end);
  return names;
}

const char* find_variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != 0 ? text : nullptr;
}

// Grid Engine's: "host slots queue processors" in each line.
void add_engine_file(std::vector<Host>& hosts, const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("PE_HOSTFILE, " + path + ", cannot be read: " + std::strerror(errno));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string host, slots;
    ++number;
    if (words >> host >> slots)
      add_host(hosts, {host, read_slots(slots, fmt::format("{}, line {}", path, number))});
  }
}

// LSF's: "a 2 b 4".
void add_pairs(std::vector<Host>& hosts, const std::string& text) {
  std::istringstream words(text);
  for (std::string host, slots; words >> host;) {
    if (!(words >> slots)) refuse("LSB_MCPU_HOSTS", text, "a number behind each host");
    add_host(hosts, {host, read_slots(slots, "LSB_MCPU_HOSTS")});
  }
}

std::vector<Host> hosts_of_slurm() {
  const char* const list = find_variable("SLURM_JOB_NODELIST");
  const char* counts = find_variable("SLURM_TASKS_PER_NODE");
  // In a step (srun --pty bash in a job of salloc) that is the step's, and the rest is the job's.
  const char* const of_step = find_variable("SLURM_STEP_TASKS_PER_NODE");
  int divisor = 1;
  if (counts == nullptr || (of_step != nullptr && std::string_view(of_step) == counts)) {
    counts = find_variable("SLURM_JOB_CPUS_PER_NODE");
    if (const char* const cpus = find_variable("SLURM_CPUS_PER_TASK"))
      divisor = read_slots(cpus, "SLURM_CPUS_PER_TASK");
  }
  if (list == nullptr || counts == nullptr) return {};
  const std::vector<std::string> names = expand_names(list);
  const std::vector<int> slots = expand_counts(counts);
  if (names.size() != slots.size())
    throw std::runtime_error(fmt::format("Slurm names {} machines ({}) and how many tasks {} have "
                                         "({}); -host and -hostfile name machines too",
                                         names.size(), list, slots.size(), counts));
  std::vector<Host> hosts;
  for (std::size_t i = 0; i < names.size(); ++i)
    add_host(hosts, {names[i], std::max(1, slots[i] / divisor)});
  return hosts;
}

// A step beside those that run, with all that the job has on the machine. What it writes is passed
// on as it comes.
const std::vector<std::string> srun = {"srun",         "--overlap",       "--nodes=1", "--ntasks=1",
                                       "--mpi=none",   "--cpu-bind=none", "--mem=0",   "--quiet",
                                       "--unbuffered", "--nodelist"};

} // namespace

std::vector<std::string> expand_names(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string& part : split_names(list))
    for (const std::string& name : expand_name(part))
      names.push_back(name);
  return names;
}

std::vector<int> expand_counts(const std::string& list) {
  std::vector<int> counts;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    std::string_view left = part;
    int count = 0, times = 1;
    bool good = take_number(left, count);
    if (good && left.starts_with("(x")) {
      left.remove_prefix(2);
      good = take_number(left, times) && left == ")";
    } else {
      good = good && left.empty();
    }
    good = good && count > 0;
    if (!good) refuse("the number of tasks of each machine", list, "a list such as 2(x3),1");
    check_machines(counts.size() + static_cast<std::size_t>(times),
                   "the number of tasks of each machine", list);
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
  }
  return counts;
}

Allocation find_allocation() {
  Allocation found;
  if (find_variable("SLURM_JOB_ID") != nullptr) {
    found.hosts = hosts_of_slurm();
    found.starter = srun;
  } else if (const char* const pbs = find_variable("PBS_NODEFILE")) {
    add_host_file(found.hosts, pbs);
  } else if (const char* const lsf = find_variable("LSB_DJOB_HOSTFILE")) {
    add_host_file(found.hosts, lsf);
  } else if (const char* const pairs = find_variable("LSB_MCPU_HOSTS")) {
    add_pairs(found.hosts, pairs);
  } else if (const char* const engine = find_variable("PE_HOSTFILE")) {
    add_engine_file(found.hosts, engine);
  }
  return found;
}

} // namespace macadam::tools
