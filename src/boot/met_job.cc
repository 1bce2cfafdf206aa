// SPDX-License-Identifier: BSD-3-Clause
#include "boot/met_job.h"

#include "base/error.h"

#include <algorithm>
#include <chrono>

namespace macadam::boot {

MetJob::MetJob(JobMemory memory)
    : memory_(std::move(memory)), use_(is_far() ? memory_.use() : -1) {}

// A job that nobody has entered yet will have its first one.
std::uint32_t MetJob::generation() const {
  return std::max(1u, static_cast<std::uint32_t>(memory_.header().generation.load() >> 32));
}

void MetJob::publish(std::span<const std::byte> /*endpoint_address*/) {
  base::fail(MPI_ERR_INTERN, "a process has no endpoint address in a job that is not its own");
}

std::optional<std::span<const std::byte>> MetJob::fetch(int rank) const {
  const auto address = memory_.fetch(rank, generation());
  if (!address && !memory_.is_local(rank)) memory_.want(rank);
  return address;
}

SharedMemory MetJob::memory_of(int rank) const {
  return {memory_.fd(), memory_.segment_offset(rank), segment_capacity};
}

// A wait asks in a loop, so the system is asked each millisecond only.
Life MetJob::life(int rank) const {
  const Life life = memory_.life(rank, generation());
  if (life != Life::running) return life;
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  constexpr std::int64_t interval = 1'000'000;
  if (now - looked_.load(std::memory_order_relaxed) < interval) return life;
  if (!memory_.is_held()) return Life::failed;
  looked_.store(now, std::memory_order_relaxed);
  return life;
}

Door* MetJob::door(std::uint32_t rank) const {
  const auto its = static_cast<int>(rank);
  const bool here = rank < memory_.header().size && memory_.is_local(its);
  return here && life(its) == Life::running ? &memory_.door(its) : nullptr;
}

bool MetJob::has_ended() const {
  for (int rank = 0; rank < size(); ++rank)
    if (life(rank) == Life::running) return false;
  return true;
}

} // namespace macadam::boot
