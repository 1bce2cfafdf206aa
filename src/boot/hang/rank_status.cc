// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a running job stand, as their memory and the system tell.
#include "boot/hang/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <thread>

namespace macadam::boot {

using Kind = RankStatus::Kind;

namespace {

bool is_stopped(std::int32_t process) {
  std::ifstream stat(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(") "); // a name may hold anything
  return name_end != std::string::npos && (line[name_end + 2] == 'T' || line[name_end + 2] == 't');
}

} // namespace

void ask_for_reports(const JobMemory& memory) {
  memory.header().reports_wanted.fetch_add(1, std::memory_order_release);
}

bool have_all_answered(const JobMemory& memory) {
  const std::uint32_t wanted = memory.header().reports_wanted.load();
  return std::ranges::none_of(memory.members(), [&](std::uint32_t rank) {
    const RankRow& row = memory.row(static_cast<int>(rank));
    return row.state.load() == RankState::running &&
           row.report_answered.load(std::memory_order_acquire) != wanted;
  });
}

std::vector<RankStatus> look_at(const JobMemory& memory) {
  const JobHeader& header = memory.header();
  const std::uint32_t wanted = header.reports_wanted.load();
  std::vector<RankStatus> ranks;
  for (int rank = 0; rank < memory.size(); ++rank) {
    RankStatus& status = ranks.emplace_back();
    if (!memory.is_local(rank)) {
      status = {RankStatus::Kind::elsewhere, memory.host_of(rank)};
      continue;
    }
    const RankRow& row = memory.row(rank);
    const ReportArea& area = memory.report(rank);
    switch (row.state.load(std::memory_order_acquire)) {
    case RankState::starting:
      status.kind = Kind::not_in_mpi;
      break;
    case RankState::running:
      status.kind = Kind::silent;
      status.process = row.pid;
      if (row.report_answered.load(std::memory_order_acquire) != wanted) {
        if (is_stopped(row.pid)) status.kind = Kind::stopped;
        break;
      }
      status.kind = Kind::answered;
      status.json.assign(area.text.data(), std::min<std::size_t>(area.bytes, area.text.size()));
      break;
    case RankState::finalized:
    case RankState::gone:
      status.kind = Kind::finalized;
      break;
    case RankState::aborted:
      status.kind = Kind::aborted;
      break;
    case RankState::dead:
      status.kind = Kind::ended;
      break;
    }
  }
  return ranks;
}

std::vector<RankStatus> ask_ranks(const JobMemory& memory) {
  constexpr std::chrono::milliseconds pause{10};
  ask_for_reports(memory);
  const auto until = std::chrono::steady_clock::now() + answer_time;
  while (!have_all_answered(memory) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(pause);
  return look_at(memory);
}

} // namespace macadam::boot
