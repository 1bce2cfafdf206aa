// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "tools/mpiexec/questioned.h"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace macadam::tools {

// Asks the ranks of all jobs what they wait for, and makes the pages about it (hang_report.h).
class HangWatch {
 public:
  using Jobs = std::span<Questioned* const>;
  using Clock = std::chrono::steady_clock;

  // Begins, unless that is under way.
  void ask(Jobs jobs);
  // From now on the pages say where ranks are in their programs, too. It takes seconds and stops
  // the ranks: for jobs that end anyway.
  void show_stacks() { shows_stacks_ = true; }
  [[nodiscard]] bool shows_stacks() const { return shows_stacks_; }
  [[nodiscard]] bool is_asking() const { return answers_until_ || look_again_ || awaits_stacks_; }
  // Answers are looked for now and then.
  [[nodiscard]] bool awaits_answers() const { return answers_until_ || awaits_stacks_; }
  // When on_time() has something to do at the latest.
  [[nodiscard]] std::optional<Clock::time_point> look_again() const { return look_again_; }

  // The pages, once all have answered that will.
  std::optional<std::string> on_time(Jobs jobs);
  // The pages as it stands.
  std::string pages(Jobs jobs);

 private:
  void look(Jobs jobs);
  void see(Jobs jobs);
  [[nodiscard]] bool needs_second_look(Jobs jobs);

  bool shows_stacks_ = false;
  bool awaits_stacks_ = false;
  std::optional<Clock::time_point> answers_until_;
  std::optional<Clock::time_point> look_again_;    // when they will be asked a second time
  std::map<int, std::vector<RankStatus>> earlier_; // the first of two looks, by job
  std::map<int, std::vector<RankStatus>> seen_;    // what the pages will show, by job
};

} // namespace macadam::tools
