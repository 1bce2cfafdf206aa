// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace macadam::coll {

// What a user calls; the v and w forms go with their regular form.
enum class Kind : std::uint8_t {
  barrier,
  bcast,
  reduce,
  allreduce,
  gather,
  scatter,
  allgather,
  alltoall,
  reduce_scatter,
  scan,
};
inline constexpr int kinds = 10;

// How it is done. Each collective has some of these (algorithms_of()).
enum class Algorithm : std::uint8_t {
  shared, // no messages: each reads what the others have written in memory of the machine
  direct, // everyone who has to do with another talks to it at once
  dissemination,
  binomial,
  chain,
  scatter_allgather,
  recursive_doubling,
  recursive_halving,
  rabenseifner,
  pieces, // each rank gets a piece straight, combines it in reductions, and passes it on straight
  ring,
  bruck,
  pairwise,
  // On two levels (levels.h):
  leaders,     // inside each machine, and between their first ranks
  slices,      // as many ranks of each machine as there are in all take part across machines
  pairs,       // pairs in ceil(log2(n)) steps, for any even n
  single_copy, // each block once, from the memory of one rank to that of another
               // (single_copy.h)
};

// Who may take a rule: all who are at least this near.
enum class Among : std::uint8_t {
  all,
  frequent,    // ranks whose communicator has had many blocking collectives (Comm::frequent)
  connected,   // ranks of whom none has to be connected to another first (Team::connected)
  sharing,     // ranks that have a board (board.h), which are connected, too
  single_copy, // ... and of which each can copy from and to the others' memory
               // (Board::single_copy())
  // However near, and placed as the algorithms on two levels need it (Machines::serve()):
  machines, // on several machines, so many ranks on each at least
  few,      // ... at most; blocks, if any, are of one length
};

// One line of the choice: taken for at most `ranks` ranks and `bytes` bytes (of the whole vector
// for bcast and reductions, of one rank's block elsewhere; v and w forms count an average block),
// for so many ranks a machine, see Among.
struct Rule {
  Kind kind;
  int ranks;
  std::uint64_t bytes;
  Algorithm algorithm;
  Among among = Among::all;
  int per_machine = 2;
};

// The rules of each collective, in order; the first one that fits is taken. The last one fits
// everything.
using Rules = std::array<std::span<const Rule>, kinds>;

[[nodiscard]] const Rules& default_rules();

// The algorithm for a call among ranks that are so near, `per_machine` of them on each of several
// machines, on the average, 0 where each has one of its own, or one has all; or `uneven`, which
// neither Among::machines nor Among::few fits. The same on all ranks. `ordered`: the reduction must
// not change the order of its operands, so algorithms that would are passed over.
inline constexpr int uneven = -1;
[[nodiscard]] Algorithm select(const Rules& rules, Kind kind, int ranks, Among among,
                               int per_machine, std::uint64_t bytes, bool ordered = false);

// The algorithms that a collective has, for tests and tuning.
[[nodiscard]] std::span<const Algorithm> algorithms_of(Kind kind);
// Whether it is for ranks of one machine that share memory.
[[nodiscard]] constexpr bool is_shared(Among among) {
  return among == Among::sharing || among == Among::single_copy;
}
// Whether it is one on two levels (levels.h).
[[nodiscard]] constexpr bool is_on_levels(Algorithm algorithm) {
  return algorithm == Algorithm::leaders || algorithm == Algorithm::slices;
}
[[nodiscard]] constexpr bool is_reduction(Kind kind) {
  return kind == Kind::reduce || kind == Kind::allreduce || kind == Kind::reduce_scatter ||
         kind == Kind::scan;
}
// False for algorithms that combine ranks out of order.
[[nodiscard]] bool keeps_order(Kind kind, Algorithm algorithm);

// Equal for equal rules.
[[nodiscard]] std::uint32_t digest(const Rules& rules);

// The rules as a table for people, a line each.
[[nodiscard]] std::string describe(const Rules& rules);

[[nodiscard]] const char* name(Kind kind);
[[nodiscard]] const char* name(Algorithm algorithm);

} // namespace macadam::coll
