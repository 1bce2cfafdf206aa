// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/selection.h"
#include "engine/transport.h"

#include <array>
#include <string>
#include <vector>

namespace macadam::coll {

// The library's own over TCP, as measured: docs/tuning.md.
inline constexpr const char* levels_over_tcp =
    "barrier leaders any 2, bcast leaders any 2, reduce leaders any 2, allreduce leaders any 2, "
    "allgather slices 32K 2, alltoall slices 16K 2";

// The rules of the library, of which those for several machines may be others: as a text says,
// which `macadam tune` writes for a network.
class RuleTable {
 public:
  // "allreduce leaders 4K 4, allreduce slices any 2, barrier leaders any 4": collective, algorithm,
  // up to so many bytes, from so many ranks of a machine on, in the order of choice. What is not
  // named has one level. "none": all have; empty: the library's rules. Over TCP, what saves steps
  // by more messages does not pay, and is left out. Throws base::Error (MPI_ERR_ARG) with the words
  // that were found and what is needed.
  explicit RuleTable(const std::string& levels = {},
                     engine::MessagesBy by = engine::MessagesBy::adapter);

  [[nodiscard]] Rules rules() const;

 private:
  std::array<std::vector<Rule>, kinds> own_; // empty: as by default
};

// Throws what RuleTable does of a text that is none.
void read_levels(const std::string& levels);

} // namespace macadam::coll
