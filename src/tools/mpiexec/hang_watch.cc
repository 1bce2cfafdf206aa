// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/hang_watch.h"

#include <algorithm>
#include <utility>

namespace macadam::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto time_to_answer = 1s;
constexpr auto time_between_looks = 200ms; // at ranks that seem to stand; longer than they sleep

} // namespace

void HangWatch::ask(Jobs jobs) {
  if (!is_asking()) look(jobs);
}

void HangWatch::look(Jobs jobs) {
  for (Questioned* const job : jobs)
    job->ask_for_reports();
  answers_until_ = Clock::now() + time_to_answer;
}

std::optional<std::string> HangWatch::on_time(Jobs jobs) {
  const auto now = Clock::now();
  if (look_again_ && now >= *look_again_) {
    look_again_.reset();
    look(jobs);
  }
  const auto has_answered = [](const Questioned* job) { return job->all_have_answered(); };
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
bool HangWatch::needs_second_look(Jobs jobs) {
  if (!earlier_.empty()) return false;
  bool circle = false;
  for (Questioned* const job : jobs) {
    std::vector<RankStatus> seen = job->look();
    circle = circle || shows_circle(seen);
    earlier_.emplace(job->number(), std::move(seen));
  }
  if (!circle) earlier_.clear();
  return circle;
}

std::string HangWatch::pages(Jobs jobs) {
  std::string pages;
  for (Questioned* const job : jobs)
    pages += hang_report(job->where(), shows_stacks_ ? job->look_with_stacks() : job->look(),
                         earlier_[job->number()], job->of_job());
  earlier_.clear();
  answers_until_.reset();
  look_again_.reset();
  return pages;
}

} // namespace macadam::tools
