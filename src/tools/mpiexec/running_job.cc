// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/running_job.h"

#include "boot/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace macadam::tools {

using boot::RankState;

void number_programs(const boot::JobMemory& memory, const std::vector<int>& counts) {
  int rank = 0;
  for (std::size_t app = 0; app < counts.size(); ++app)
    for (int left = counts[app]; left > 0; --left)
      memory.row(rank++).app = static_cast<std::int32_t>(app);
}

RunningJob::RunningJob(int number, std::vector<Program> programs, boot::JobMemory memory,
                       std::optional<Parent> parent)
    : number_(number), programs_(std::move(programs)), memory_(std::move(memory)) {
  memory_.hold();
  if (!parent) return;
  const std::string job = parent->job == 1 ? "" : fmt::format(" of job {}", parent->job);
  of_job_ = fmt::format(" of job {} (spawned by rank {}{})", number, parent->rank, job);
}

RunningJob::RunningJob(boot::JobMemory memory, pid_t pid, int process)
    : number_(1), programs_(1), memory_(std::move(memory)), pids_{pid}, alive_(1),
      process_(process) {
  memory_.hold();
}

RunningJob::~RunningJob() {
  if (process_ >= 0) close(process_);
}

std::string RunningJob::name(int rank) const {
  return fmt::format("rank {}{} on host {}", rank, of_job_, memory_.host_of(rank));
}

std::string RunningJob::where() const {
  return fmt::format("host {}", memory_.own_node().host.data());
}

std::string RunningJob::label(int rank) const {
  return number_ == 1 ? std::to_string(rank) : fmt::format("{}:{}", number_, rank);
}

void RunningJob::add(pid_t pid) {
  pids_.push_back(pid);
  ++alive_;
}

std::optional<int> RunningJob::note_end(pid_t pid) {
  const auto found = std::ranges::find(pids_, pid);
  if (found == pids_.end()) return std::nullopt;
  *found = 0;
  --alive_;
  return rank_at(static_cast<int>(found - pids_.begin()));
}

void RunningJob::signal(int rank, int number) const {
  if (pid(rank) == 0) return;
  if (is_lone()) // its number may be another's, as we do not reap it
    syscall(SYS_pidfd_send_signal, process_, number, nullptr, 0);
  else
    kill(pid(rank), number);
}

void RunningJob::signal_all(int number) const {
  for (int place = 0; place < started(); ++place)
    signal(rank_at(place), number);
}

void RunningJob::abandon() {
  abandoned_ = true;
  is_starting = false;
  for (int place = 0; place < started(); ++place) {
    const int rank = rank_at(place);
    if (memory_.row(rank).state.load(std::memory_order_acquire) != boot::RankState::aborted)
      signal(rank, SIGKILL);
    else if (!kill_at_ && pid(rank) != 0)
      kill_at_ = Clock::now() + time_to_flush;
  }
}

void RunningJob::kill_abandoned() {
  kill_at_.reset();
  signal_all(SIGKILL);
}

void RunningJob::abandon_and_reap() {
  abandon();
  kill_abandoned();
  for (pid_t& pid : pids_) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid = 0;
  }
  alive_ = 0;
}

void RunningJob::ask_for_reports() {
  boot::ask_for_reports(memory_);
}

bool RunningJob::all_have_answered() const {
  return boot::have_all_answered(memory_);
}

void RunningJob::ask_for_stacks(const std::vector<int>& ranks) {
  std::vector<pid_t> processes;
  for (const int rank : ranks)
    if (memory_.is_local(rank) && memory_.row(rank).pid > 0)
      processes.push_back(memory_.row(rank).pid);
  stacks_.emplace(processes);
}

std::map<int, std::string> RunningJob::stacks() const {
  std::map<int, std::string> stacks;
  if (!stacks_) return stacks;
  for (auto& [process, stack] : stacks_->by_process())
    for (const std::uint32_t rank : memory_.members())
      if (memory_.row(static_cast<int>(rank)).pid == process)
        stacks.emplace(static_cast<int>(rank), stack);
  return stacks;
}

std::map<int, std::string> RunningJob::final_reports() const {
  std::map<int, std::string> reports;
  for (const std::uint32_t member : memory_.members()) {
    const auto rank = static_cast<int>(member);
    const boot::ReportArea& area = memory_.report(rank);
    if (area.kind == static_cast<std::uint32_t>(boot::ReportKind::final))
      reports.emplace(
          rank, std::string(area.text.data(), std::min<std::size_t>(area.bytes, area.text.size())));
  }
  return reports;
}

std::string RunningJob::report() const {
  std::vector<std::string> reports;
  for (auto& [rank, text] : final_reports())
    reports.push_back(text);
  if (reports.empty() || is_lone()) return {}; // which prints its own
  if (number_ > 1)
    return boot::give_report(reports, fmt::format("job-{}", number_), of_job_.substr(4));
  return boot::give_report(reports, "");
}

} // namespace macadam::tools
