// SPDX-License-Identifier: BSD-3-Clause
#include "boot/processes.h"

#include "base/error.h"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace macadam::boot {
namespace {

constexpr std::uint64_t most_processes = std::uint64_t{1} << 31;

} // namespace

Processes::Processes(Job& own)
    : own_(own), own_job_{&own, 0, static_cast<Index>(own.size()), false}, size_(own_job_.count) {}

Processes::Index Processes::add(const Job& other) {
  if (&other == &own_) return 0;
  const std::unique_lock guard(lock_);
  const auto count = static_cast<Index>(other.size());
  const auto clash = [&](const Job& known) {
    if (known.number() != other.number()) return;
    base::fail(MPI_ERR_OTHER,
               "a job on host {} has the number {:#x}, as one that this process knows already; "
               "start one of the two again",
               other.host(), other.number());
  };
  clash(own_);
  // The first numbers in a row that no job has.
  Index first = own_job_.count;
  auto before = others_.begin();
  for (auto at = others_.begin(); at != others_.end(); ++at) {
    if (at->job == &other) {
      at->hidden = false;
      return at->first;
    }
    clash(*at->job);
    if (at != before || at->first - first >= count) continue;
    first = at->first + at->count;
    before = std::next(at);
  }
  if (std::uint64_t{first} + count > most_processes)
    base::fail(MPI_ERR_OTHER, "{} processes more are too many for this one, which knows {}", count,
               first);
  others_.insert(before, {&other, first, count, false});
  size_.store(std::max(size_.load(), first + count), std::memory_order_release);
  return first;
}

void Processes::hide(const Job& other) {
  const std::unique_lock guard(lock_);
  for (Known& known : others_)
    if (known.job == &other) known.hidden = true;
}

void Processes::remove(const Job& other) {
  const std::unique_lock guard(lock_);
  std::erase_if(others_, [&](const Known& known) { return known.job == &other; });
}

Processes::Known Processes::other(Index process) const {
  const std::shared_lock guard(lock_);
  const auto behind = std::ranges::upper_bound(others_, process, {}, &Known::first);
  if (behind != others_.begin()) {
    const Known& known = *std::prev(behind);
    if (process - known.first < known.count) return known;
  }
  base::fail(MPI_ERR_INTERN, "process {} is of no job that this process knows", process);
}

std::vector<std::uint32_t> Processes::others() const {
  const std::shared_lock guard(lock_);
  std::vector<std::uint32_t> numbers;
  for (const Known& known : others_)
    numbers.push_back(known.job->number());
  return numbers;
}

ProcessName Processes::name(Index process) const {
  const Known known = its(process);
  return {known.job->number(), process - known.first};
}

std::optional<Processes::Index> Processes::find(const ProcessName& name) const {
  const auto place = [&](const Known& known) {
    return name.rank < known.count ? std::optional(known.first + name.rank) : std::nullopt;
  };
  if (name.job == own_.number()) return place(own_job_);
  const std::shared_lock guard(lock_);
  for (const Known& known : others_)
    if (known.job->number() == name.job && !known.hidden) return place(known);
  return std::nullopt;
}

std::optional<std::span<const std::byte>> Processes::endpoint(Index process) const {
  const auto address = fetch(process);
  const bool may_come = process >= own_job_.count;
  return may_come && address && address->empty() ? std::nullopt : address;
}

std::optional<std::string> Processes::why_never(Index process) const {
  const Life now = life(process);
  // It may have published between the two looks, and then ended.
  if (now == Life::unknown || now == Life::running || endpoint(process)) return std::nullopt;
  return fmt::format("rank {} on host {} has ended, or has no network, and can not be reached",
                     name(process).rank, host_of(process));
}

std::string Processes::describe_unreached(Index process, bool was_reached,
                                          std::string_view reason) const {
  return fmt::format("rank {} on host {} {}: {}", name(process).rank, host_of(process),
                     was_reached ? "is not reached any more" : "cannot be reached", reason);
}

} // namespace macadam::boot
