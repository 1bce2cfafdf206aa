// SPDX-License-Identifier: BSD-3-Clause
// What the ranks that call a collective must agree on, by function.
#include "mpi/collective_check.h"

#include "coll/operations.h"
#include "mpi/process.h"

#include <array>
#include <string_view>

namespace macadam::mpi {
namespace {

using coll::Arguments;
using coll::Data;
using coll::Pairs;

class Digest {
 public:
  void add(std::uint64_t word) {
    // FNV-1a, by bytes.
    for (int byte = 0; byte < 8; ++byte, word >>= 8)
      hash_ = (hash_ ^ (word & 0xff)) * 0x100000001b3;
  }
  void add(std::string_view text) {
    for (const char c : text)
      add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  void add(const Data& data) {
    const datatype::Signature signature = data.count * data.type->signature();
    add(static_cast<std::uint64_t>(signature.elements));
    if (signature.elements > 0) add(signature.hash);
  }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

bool alike(const Data& a, const Data& b) {
  return a.count * a.type->signature() == b.count * b.type->signature();
}

// Which of the functions has a root, an operation, and data that all ranks describe.
struct Rule {
  coll::Collective::Run run;
  enum class What { nothing, vector, to_root, from_root, all, counts, neighbors } what;
  bool rooted = false;
};

constexpr std::array rules = {
    Rule{&coll::barrier, Rule::What::nothing},
    Rule{&coll::bcast, Rule::What::vector, true},
    Rule{&coll::reduce, Rule::What::vector, true},
    Rule{&coll::allreduce, Rule::What::vector},
    Rule{&coll::scan, Rule::What::vector},
    Rule{&coll::exscan, Rule::What::vector},
    Rule{&coll::gather, Rule::What::to_root, true},
    Rule{&coll::gatherv, Rule::What::to_root, true},
    Rule{&coll::scatter, Rule::What::from_root, true},
    Rule{&coll::scatterv, Rule::What::from_root, true},
    Rule{&coll::allgather, Rule::What::all},
    Rule{&coll::alltoall, Rule::What::all},
    Rule{&coll::alltoallv, Rule::What::all},
    Rule{&coll::reduce_scatter, Rule::What::counts},
    Rule{&coll::neighbor_allgather, Rule::What::neighbors},
    Rule{&coll::neighbor_alltoall, Rule::What::neighbors},
};

// The check of one call as it grows.
struct Draft {
  Digest digest;
  std::string details;
  Pairs pairs = Pairs::none;

  void detail(const std::string& text) { details += (details.empty() ? " (" : ", ") + text; }
  void same(const Data& data) {
    digest.add(data);
    detail(describe(data));
  }
  void by_pairs(Pairs which, std::string text) {
    pairs = which;
    detail(std::move(text));
  }
};

// Blocks that all ranks know, of which each also sends its own or one to each.
void add_all(Draft& draft, const Arguments& a, int rank) {
  if (a.receive.regular()) {
    draft.same(a.receive[0]);
    if (a.in_place || (a.send.regular() && alike(a.send[0], a.receive[0]))) return;
    draft.detail("sending " + describe(a.send[0]));
    draft.digest.add(a.send[0]);
    return;
  }
  draft.by_pairs(Pairs::all, a.in_place || !a.send.regular()
                                 ? "a block for each rank"
                                 : fmt::format("sending {}", describe(a.send[rank])));
}

void add_data(Draft& draft, const Rule& rule, const Arguments& a, int rank) {
  using enum Rule::What;
  const bool root = rank == a.root;
  switch (rule.what) {
  case nothing:
    return;
  case vector:
    return draft.same(a.receive[0]);
  case counts: {
    draft.digest.add(a.receive.type->signature().hash);
    if (a.send.regular()) return draft.same(a.receive[0]);
    for (int i = 0; i < a.send.counts.length; ++i)
      draft.digest.add(static_cast<std::uint64_t>(a.send.counts[i]));
    return draft.detail(
        fmt::format("{} to rank 0, ...", describe({nullptr, a.send.counts[0], a.send.type})));
  }
  case to_root:
    if (rule.run == &coll::gather) return draft.same(root ? a.receive[0] : a.send[0]);
    return draft.by_pairs(Pairs::to_root, root ? "a block of each rank" : describe(a.send[0]));
  case from_root:
    if (rule.run == &coll::scatter) return draft.same(root ? a.send[0] : a.receive[0]);
    return draft.by_pairs(Pairs::from_root,
                          root ? "a block for each rank" : describe(a.receive[0]));
  case all:
    return add_all(draft, a, rank);
  case neighbors:
    return draft.by_pairs(Pairs::neighbors, "blocks of neighbours");
  }
}

// "MPI_Bcast" of MPI_Bcast_c too: the two match.
std::string_view function_of(const Process& self) {
  std::string_view name = self.function;
  if (name.ends_with("_c")) name.remove_suffix(2);
  return name;
}

} // namespace

void add_check(Process& self, const Communicator& comm, CollectiveCall& call,
               std::uint32_t number) {
  const std::string_view function = function_of(self);
  const Arguments& a = call.arguments;
  Draft draft;
  draft.digest.add(function);
  for (const Rule& rule : rules) {
    if (rule.run != call.run) continue;
    if (rule.rooted && !comm.inter()) {
      draft.digest.add(static_cast<std::uint64_t>(a.root));
      draft.detail(fmt::format("root {}", a.root));
    }
    if (!comm.inter() && number != 0) add_data(draft, rule, a, comm.rank());
    if (a.op != nullptr && !(rule.rooted && comm.inter())) {
      draft.digest.add(a.op->name());
      draft.detail(std::string(a.op->name()));
    }
  }
  if (!draft.details.empty()) draft.details += ")";
  const std::string which =
      number == 0 ? describe(comm) : fmt::format("{}, number {} there", describe(comm), number);
  call.check = std::make_unique<coll::Check>(coll::Check{
      call.run, std::string(function) + draft.details, which, draft.digest.value(), draft.pairs});
  call.arguments.check = call.check.get();
  call.run = &coll::checked;
}

} // namespace macadam::mpi
