// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace macadam::engine {

// Bugs that the proof by exhaustion must find, or it proves nothing (tests/prove). The library has
// none of them: is_mutant() is false at compile time, except in the engine that the proof builds
// for itself with MACADAM_MUTANT.
enum class Mutant : std::uint8_t {
  none,
  announcing_wildcard,   // wildcards do not keep receives behind them from announcing themselves
  probe_without_ordinal, // a matched probe does not count as a match
  stale_ready,           // the sender uses an announcement of an earlier ordinal
  revoked_permit,        // ... and one that was taken back
  copied_while_read,     // a sender leaves a copy behind that its receiver did not need
  uncopied_is_done,      // a send is complete while its data are being sent
  partition_too_early,   // a partition is sent before the receiver has begun the round
  board_one_late,        // of a board, a slot is written when not all have passed it
  board_unwritten,       // ... and one is read when all but one have written theirs
  board_awaited_once,    // ... and one that has waited for all once is left asleep until all write
  board_reader_asleep,   // ... and one that reads what others combine is not woken
  single_copy_unawaited, // who shows its blocks does not wait until others have copied
};

#ifdef MACADAM_MUTANT
inline Mutant mutant = Mutant::none;
inline bool is_mutant(Mutant bug) {
  return mutant == bug;
}
#else
constexpr bool is_mutant(Mutant) {
  return false;
}
#endif

} // namespace macadam::engine
