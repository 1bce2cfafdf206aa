// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/hang_watch.h"

#include "tools/mpiexec/stacks.h"

#include <algorithm>
#include <utility>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_answer = 1s;
constexpr auto time_between_looks = 200ms; // at ranks that seem to stand; longer than they sleep

// The ranks of a job, with where they are in their programs.
std::vector<RankStatus> look_with_stacks(const RunningJob& job) {
  std::vector<RankStatus> ranks = look_at(job.memory());
  std::map<pid_t, int> processes;
  std::vector<pid_t> list;
  for (const int rank : ranks_to_show(ranks)) {
    const pid_t process = job.memory().row(rank).pid;
    if (process > 0 && processes.emplace(process, rank).second) list.push_back(process);
  }
  for (auto& [process, stack] : stacks_of(list))
    ranks[static_cast<std::size_t>(processes.at(process))].stack = stack;
  return ranks;
}

} // namespace

void HangWatch::ask(const Jobs& jobs) {
  if (!is_asking()) look(jobs);
}

void HangWatch::look(const Jobs& jobs) {
  for (const auto& job : jobs)
    job->ask_for_reports();
  answers_until_ = Clock::now() + time_to_answer;
}

std::optional<std::string> HangWatch::on_time(const Jobs& jobs) {
  const auto now = Clock::now();
  if (look_again_ && now >= *look_again_) {
    look_again_.reset();
    look(jobs);
  }
  const auto has_answered = [](const auto& job) { return job->all_have_answered(); };
  if (!answers_until_ || (now < *answers_until_ && !std::ranges::all_of(jobs, has_answered)))
    return std::nullopt;
  answers_until_.reset();
  if (needs_second_look(jobs)) {
    look_again_ = now + time_between_looks;
    return std::nullopt;
  }
  return pages(jobs);
}

// Ranks that seem to wait in a circle are looked at twice.
bool HangWatch::needs_second_look(const Jobs& jobs) {
  if (!earlier_.empty()) return false;
  bool circle = false;
  for (const auto& job : jobs) {
    std::vector<RankStatus> seen = look_at(job->memory());
    circle = circle || shows_circle(seen);
    earlier_.emplace(job->number(), std::move(seen));
  }
  if (!circle) earlier_.clear();
  return circle;
}

std::string HangWatch::pages(const Jobs& jobs) {
  std::string pages;
  for (const auto& job : jobs)
    pages += hang_report(job->memory().own_node().host.data(), look_with_stacks(*job),
                         earlier_[job->number()], job->of_job());
  earlier_.clear();
  answers_until_.reset();
  look_again_.reset();
  return pages;
}

} // namespace macadam::tools
