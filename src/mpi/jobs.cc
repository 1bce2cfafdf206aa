// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/jobs.h"

#include <algorithm>
#include <iterator>

namespace macadam::mpi {

KnownJob* Jobs::find(std::uint32_t number) {
  const auto found =
      std::ranges::find(known_, number, [](const auto& each) { return each.second.job->number(); });
  return found == known_.end() ? nullptr : &found->second;
}

void Jobs::erase(std::uint32_t number) {
  std::erase_if(known_, [&](const auto& each) { return each.second.job->number() == number; });
}

KnownJob* Jobs::of(engine::Rank process) {
  const auto behind = known_.upper_bound(process);
  if (behind == known_.begin()) return nullptr;
  KnownJob& job = std::prev(behind)->second;
  return job.has(process) ? &job : nullptr;
}

// A group that was made before there were other jobs has none of their processes: what it is not
// counted for is not taken back either.
void Jobs::count(const engine::RankMap& ranks, int change) {
  if (known_.empty()) return;
  for (int i = 0; i < ranks.size(); ++i) {
    if (KnownJob* const job = of(ranks[i])) job->uses += static_cast<std::uint64_t>(change);
  }
}

} // namespace macadam::mpi
