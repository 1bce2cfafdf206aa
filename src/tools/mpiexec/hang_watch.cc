// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/hang_watch.h"

#include <algorithm>
#include <utility>

namespace macadam::tools {

void HangWatch::ask(Jobs jobs) {
  if (!is_asking()) look(jobs);
}

void HangWatch::look(Jobs jobs) {
  for (Questioned* const job : jobs)
    job->ask_for_reports();
  answers_until_ = Clock::now() + boot::answer_time;
}

std::optional<std::string> HangWatch::on_time(Jobs jobs) {
  const auto now = Clock::now();
  if (look_again_ && now >= *look_again_) {
    look_again_.reset();
    look(jobs);
  }
  if (awaits_stacks_) {
    const auto is_known = [](Questioned* job) { return job->stacks_are_known(); };
    if (!std::ranges::all_of(jobs, is_known)) return std::nullopt;
    return pages(jobs);
  }
  const auto has_answered = [](const Questioned* job) { return job->all_have_answered(); };
  if (!answers_until_ || (now < *answers_until_ && !std::ranges::all_of(jobs, has_answered)))
    return std::nullopt;
  answers_until_.reset();
  if (needs_second_look(jobs)) {
    look_again_ = now + boot::look_interval;
    return std::nullopt;
  }
  if (shows_stacks_) {
    see(jobs);
    for (Questioned* const job : jobs)
      job->ask_for_stacks(boot::ranks_to_show(seen_[job->number()]));
    awaits_stacks_ = true;
    return std::nullopt;
  }
  return pages(jobs);
}

void HangWatch::see(Jobs jobs) {
  for (Questioned* const job : jobs)
    seen_.try_emplace(job->number(), job->look());
}

// Ranks that seem to wait in a circle are looked at twice.
bool HangWatch::needs_second_look(Jobs jobs) {
  if (!earlier_.empty()) return false;
  bool circle = false;
  for (Questioned* const job : jobs) {
    std::vector<RankStatus> seen = job->look();
    circle = circle || boot::shows_circle(seen);
    earlier_.emplace(job->number(), std::move(seen));
  }
  if (!circle) earlier_.clear();
  return circle;
}

std::string HangWatch::pages(Jobs jobs) {
  std::string pages;
  see(jobs);
  for (Questioned* const job : jobs) {
    std::vector<RankStatus>& ranks = seen_[job->number()];
    if (awaits_stacks_)
      for (auto& [rank, stack] : job->stacks())
        ranks.at(static_cast<std::size_t>(rank)).stack = stack;
    pages += boot::hang_report(job->where(), ranks, earlier_[job->number()], job->of_job());
  }
  earlier_.clear();
  seen_.clear();
  awaits_stacks_ = false;
  answers_until_.reset();
  look_again_.reset();
  return pages;
}

} // namespace macadam::tools
