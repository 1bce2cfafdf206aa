// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/collective.h"

#include <cstdint>
#include <string>

namespace macadam::coll {

// Whose blocks are compared one by one, as no digest tells what two ranks agree on.
enum class Pairs : std::uint8_t { none, to_root, from_root, all, neighbors };

// What a rank says of its call, to be compared with what others say.
struct Saying {
  std::uint64_t digest = 0; // of all but types, the lengths of data among them; 0: nothing is said
  std::uint64_t types = 0;  // of its data; 0: of a packing unit, which goes with any
  bool of_root = false;     // by which the others are measured
};

// Of MPI_PACKED, which matches any types of as many bytes.
[[nodiscard]] bool is_packed(const Data& data);
[[nodiscard]] bool match(const Data& one, const Data& other);

// What a rank calls, for the ranks to compare before a collective begins (MACADAM_CHECK). Made by
// the layer above; outlives the operation.
struct Check {
  Collective::Run run;  // the collective itself
  std::string function; // "MPI_Bcast"
  std::string call;     // "MPI_Bcast (root 2, 8 of MPI_INT)", cut where too long
  std::string where;    // "communicator MPI_COMM_WORLD, number 7 there"
  Saying all;           // what must be the same on all ranks
  Pairs pairs = Pairs::none;
  // Of an intercommunicator's calls: what this rank says of its own group and of the other one,
  // what it sends or which of its ranks is the root.
  Saying ours = {};
  Saying theirs = {};
  bool rooted = false; // one rank is the root
};

// Runs arguments.check->run once all ranks are known to have made the same call with data that
// match. If not, it fails on all of them with MPI_ERR_ARG, and the text names two that differ.
// Synchronises the ranks, those of both groups of an intercommunicator too.
Task checked(Collective& self);

} // namespace macadam::coll
