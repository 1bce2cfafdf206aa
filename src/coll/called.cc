// SPDX-License-Identifier: BSD-3-Clause
#include "coll/called.h"

#include "base/error.h"
#include "coll/board.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>

namespace macadam::coll {
namespace {

// "MPI_Bcast"
std::string function_of(Kind kind) {
  std::string text = std::string("MPI_") + name(kind);
  text[4] = static_cast<char>(text[4] - 'a' + 'A');
  return text;
}

bool is_rooted(Kind kind) {
  return kind == Kind::bcast || kind == Kind::reduce || kind == Kind::gather ||
         kind == Kind::scatter;
}

} // namespace

std::string Called::show() const {
  const auto kind = static_cast<Kind>(word_ >> kind_at & 0xf);
  if (static_cast<std::size_t>(kind) >= kinds) return "nothing that there is"; // a peer wrote it
  std::string text = function_of(kind);
  if (kind == Kind::barrier) return text;
  text += " (";
  if (is_rooted(kind)) text += fmt::format("root {}, ", word_ >> root_at);
  if (const std::uint64_t op = word_ >> op_at & 0x1f; op != 0) {
    const datatype::PredefinedOps all;
    text += fmt::format("{}, ", all.find(reinterpret_cast<MPI_Op>(first_op + op))->name());
  }
  return text + fmt::format("{} bytes)", bytes());
}

namespace {

struct Difference {
  int one, other;
  Called ones, others;
  Position ago;
};

// The first pair of notes that differ at one position before this rank's present one, as far as
// they are still there. A note that is missing says nothing: not all ranks write one.
std::optional<Difference> earlier_difference(const Comm& comm) {
  const Board& board = *comm.board;
  const Position now = board.notes.position;
  for (Position ago = std::min<Position>(now, board.notes.slots - 1); ago > 0; --ago) {
    int one = -1;
    Called ones(0);
    for (int rank = 0; rank < comm.size(); ++rank) {
      const Slot& slot = board.slot(board.notes, rank, now - ago);
      if (slot.written.load() != now - ago + 1) continue;
      const Called its(slot.called);
      if (one >= 0 && !its.is_same_call(ones)) return Difference{one, rank, ones, its, ago};
      one = rank;
      ones = its;
    }
  }
  return {};
}

} // namespace

void fail_different(const Comm& comm, int from, Called its, Called mine) {
  constexpr const char* all_must = "all must make the same calls in the same order with data that "
                                   "match (MACADAM_CHECK=1 names their types too)";
  const char* const sort = comm.tag == 0 ? "" : "a nonblocking or persistent ";
  if (its.follows_same(mine))
    base::fail(its.is_like(mine) ? MPI_ERR_TRUNCATE : MPI_ERR_ARG,
               "ranks differ in a collective: rank {} called {}{}, and rank {} called {}; {}", from,
               sort, its.show(), comm.rank(), mine.show(), all_must);
  if (const auto found = earlier_difference(comm))
    base::fail(MPI_ERR_ARG,
               "ranks differ in a collective, {} before this one (those without data not counted): "
               "rank {} called {}{}, and rank {} called {}; {}",
               found->ago, found->one, sort, found->ones.show(), found->other, found->others.show(),
               all_must);
  base::fail(MPI_ERR_ARG,
             "ranks differ in a collective before this one, to which rank {} came with {}{} and "
             "rank {} with {}: another function, root or operation was called by one of them; {}",
             from, sort, its.show(), comm.rank(), mine.show(), all_must);
}

} // namespace macadam::coll
