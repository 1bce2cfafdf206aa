// SPDX-License-Identifier: BSD-3-Clause
#include "boot/processes.h"

#include "base/error.h"

namespace macadam::boot {
namespace {

constexpr std::uint64_t most_processes = std::uint64_t{1} << 31;

} // namespace

Processes::Processes(Job& own) : own_(own), size_(static_cast<Index>(own.size())) {
  first_.job = &own;
  first_.count = size_;
}

Processes::~Processes() {
  for (const Known* known = first_.next; known != nullptr;) {
    const std::unique_ptr<const Known> gone(known);
    known = gone->next;
  }
}

Processes::Index Processes::add(const Job& other) {
  Known* last = &first_;
  for (Known* known = last; known != nullptr; known = known->next) {
    if (known->job == &other) return known->first;
    if (known->job->number() == other.number())
      base::fail(MPI_ERR_OTHER,
                 "a job on host {} has the number {:#x}, as one that this process knows already; "
                 "start one of the two again",
                 other.host(), other.number());
    last = known;
  }
  const Index size = size_;
  const auto count = static_cast<Index>(other.size());
  if (std::uint64_t{size} + count > most_processes)
    base::fail(MPI_ERR_OTHER, "{} processes more are too many for this one, which knows {}", count,
               size);
  auto made = std::make_unique<Known>();
  made->job = &other;
  made->first = size;
  made->count = count;
  last->next.store(made.release(), std::memory_order_release);
  size_.store(size + count, std::memory_order_release);
  return size;
}

ProcessName Processes::name(Index process) const {
  const Known& known = its(process);
  return {known.job->number(), process - known.first};
}

std::optional<Processes::Index> Processes::find(const ProcessName& name) const {
  for (const Known* known = &first_; known != nullptr;
       known = known->next.load(std::memory_order_acquire)) {
    if (known->job->number() != name.job) continue;
    if (name.rank < known->count) return known->first + name.rank;
    break;
  }
  return std::nullopt;
}

std::optional<std::string> Processes::why_never(Index process) const {
  const Life now = life(process);
  // It may have published between the two looks, and then ended.
  if (now == Life::unknown || now == Life::running || fetch(process)) return std::nullopt;
  return fmt::format("rank {} on host {} has ended and can not be reached", name(process).rank,
                     host_of(process));
}

} // namespace macadam::boot
