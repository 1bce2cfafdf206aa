// SPDX-License-Identifier: BSD-3-Clause
#include "boot/launcher_client.h"

#include "base/load.h"
#include "base/settings.h"
#include "boot/launcher.h"
#include "boot/machine.h"
#include "boot/pmi2/client.h"
#include "boot/pmix/client.h"
#include "boot/streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace macadam::boot {
namespace {

// Hardware threads that the ranks of this machine may use together. A launcher may have bound each
// rank to a few; then the others have as many.
std::uint32_t cores_of_all(std::uint32_t ranks) {
  return std::min<std::uint32_t>(base::online_cores(), ranks * usable_cores());
}

void (*goodbye)(int exit_status) = nullptr;
pid_t joined = 0;
int exit_status_of_rank = 0;

// Of the library, which goes behind the program.
[[gnu::destructor]] void end_rank() {
  if (goodbye != nullptr && getpid() == joined) goodbye(exit_status_of_rank);
}

} // namespace

void at_end_of_rank(void (*say_goodbye)(int exit_status)) {
  goodbye = say_goodbye;
  joined = getpid();
  on_exit([](int status, void*) { exit_status_of_rank = status; }, nullptr);
}

std::string no_finalize(int rank) {
  return fmt::format("rank {} on host {} has ended without MPI_Finalize", rank, host_name());
}

std::string say_no_finalize(int rank) {
  flush_streams(); // the launcher may end this process before its C library does
  const std::string text = no_finalize(rank);
  std::fputs(("macadam: " + text + "\n").c_str(), stderr);
  return text;
}

std::unique_ptr<LauncherClient> connect_with_launcher() {
  if (pmix::is_started_by_server()) return std::make_unique<pmix::Client>();
  if (pmi2::is_started_by_server()) return std::make_unique<pmi2::Client>();
  return nullptr;
}

JobMemory create_for_machine(std::vector<Node> nodes, const std::vector<std::uint32_t>& machines,
                             int rank, std::uint32_t universe,
                             const std::vector<NamedRanks>& sets) {
  const std::uint32_t own = machines.at(static_cast<std::size_t>(rank));
  nodes[own].host = host_name();
  JobMemory memory = JobMemory::create(nodes, own, cores_of_all(nodes[own].ranks), sets, machines);
  memory.header().launcher = 0; // no mpiexec
  memory.header().universe =
      static_cast<std::int32_t>(std::max(static_cast<std::uint32_t>(machines.size()), universe));
  return memory;
}

JobWord make_word(const Secret& secret) {
  base::Settings settings;
  base::read_environment(settings, environ, {});
  return {secret, base::is_report_wanted(settings),
          static_cast<std::uint32_t>(std::ceil(timeout_of_environment() * 1e3))};
}

void take_word(JobHeader& header, const JobWord& word) {
  header.secret = word.secret;
  header.merges_reports = header.nodes > 1 ? word.report : 0;
  header.timeout_ms = word.timeout_ms;
}

bool note_end(const JobMemory& memory, int rank) {
  RankState expected = RankState::running;
  if (!memory.row(rank).state.compare_exchange_strong(expected, RankState::dead)) return false;
  memory.header().failed.fetch_add(1, std::memory_order_release);
  return true;
}

} // namespace macadam::boot
