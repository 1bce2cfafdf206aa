// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/hang/hang_report.h"

#include <map>
#include <string>
#include <vector>

namespace macadam::tools {

using boot::RankStatus;

// Ranks of one job that can be asked what they wait for: those of this machine, or of all.
class Questioned {
 public:
  [[nodiscard]] virtual int number() const = 0; // of the job
  // "" for the first job, " of job 2 (spawned by rank 0)".
  [[nodiscard]] virtual const std::string& of_job() const = 0;
  // "host a", "2 hosts".
  [[nodiscard]] virtual std::string where() const = 0;
  virtual void ask_for_reports() = 0;
  [[nodiscard]] virtual bool all_have_answered() const = 0;
  // All ranks of the job, as they have answered or stand now.
  [[nodiscard]] virtual std::vector<RankStatus> look() const = 0;

  // Where these are in their programs (stacks.h): takes seconds, in which ranks are stopped.
  virtual void ask_for_stacks(const std::vector<int>& ranks) = 0;
  // No more will come.
  [[nodiscard]] virtual bool stacks_are_known() = 0;
  // By rank, those that could be had.
  [[nodiscard]] virtual std::map<int, std::string> stacks() const = 0;

 protected:
  ~Questioned() = default;
};

} // namespace macadam::tools
