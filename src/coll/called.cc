// SPDX-License-Identifier: BSD-3-Clause
#include "coll/called.h"

#include "base/error.h"

#include <fmt/format.h>
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

void fail_different(const Comm& comm, int from, Called its, Called mine) {
  base::fail(its.is_like(mine) ? MPI_ERR_TRUNCATE : MPI_ERR_ARG,
             "ranks differ in a collective: rank {} called {}{}, and rank {} called {}; all must "
             "make the same calls in the same order with data that match (MACADAM_CHECK=1 names "
             "their types too)",
             from, comm.tag == 0 ? "" : "a nonblocking or persistent ", its.show(), comm.rank(),
             mine.show());
}

} // namespace macadam::coll
