// SPDX-License-Identifier: BSD-3-Clause
#include "boot/met_job.h"

#include "base/error.h"

#include <algorithm>

namespace macadam::boot {

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

Life MetJob::life(int rank) const {
  const Life life = memory_.life(rank, generation());
  return life == Life::running && !memory_.is_held() ? Life::failed : life;
}

} // namespace macadam::boot
