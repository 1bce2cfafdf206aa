// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <cstdint>

// Context ids: which communicator a message belongs to, the same on all its processes. A process
// never has two communicators of one id. The leader of a new one makes its id from its own name and
// a count; the lowest bits are left to the communicator's sub-contexts.
//
//   of one job     0 | leader's rank, 31 bits | count, 30 bits | sub-context, 2 bits
//   of several     1 | leader's job, 23 bits | its rank, 18 bits | count, 20 bits | the same
//
// The first kind never leaves its job, so another job may use the same one. Of the second, all
// processes know the leader's job, and no two jobs that they know have one number
// (boot::Processes).
namespace macadam::mpi {

inline constexpr unsigned sub_context_bits = 2;
inline constexpr std::uint64_t no_context = ~std::uint64_t{0};
inline constexpr std::uint32_t no_leader = (std::uint32_t{1} << 31) - 1; // more than any rank
inline constexpr std::uint32_t most_contexts = std::uint32_t{1} << 30;
inline constexpr std::uint32_t most_joint_leaders = std::uint32_t{1} << 18;
inline constexpr std::uint32_t most_joint_contexts = std::uint32_t{1} << 20;

// `count` is below most_contexts.
constexpr std::uint64_t context_of(std::uint32_t leader, std::uint32_t count) {
  return std::uint64_t{leader} << 32 | std::uint64_t{count} << sub_context_bits;
}

// The leader's rank is below most_joint_leaders, `count` below most_joint_contexts.
constexpr std::uint64_t joint_context_of(boot::ProcessName leader, std::uint32_t count) {
  static_assert(boot::job_number_bits + 18 + 20 + sub_context_bits == 63);
  return std::uint64_t{1} << 63 | std::uint64_t{leader.job} << 40 |
         std::uint64_t{leader.rank} << 22 | std::uint64_t{count} << sub_context_bits;
}

} // namespace macadam::mpi
