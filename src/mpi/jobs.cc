// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/jobs.h"

#include <algorithm>

namespace macadam::mpi {

KnownJob* Jobs::find(std::uint32_t number) {
  const auto found =
      std::ranges::find(known_, number, [](const KnownJob& each) { return each.job->number(); });
  return found == known_.end() ? nullptr : &*found;
}

void Jobs::erase(std::uint32_t number) {
  std::erase_if(known_, [&](const KnownJob& each) { return each.job->number() == number; });
}

KnownJob* Jobs::of(engine::Rank process) {
  const auto found =
      std::ranges::find_if(known_, [&](const auto& job) { return job.has(process); });
  return found == known_.end() ? nullptr : &*found;
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
