// SPDX-License-Identifier: BSD-3-Clause
// What the ranks that call a collective must agree on, by function.
#include "mpi/collective_check.h"

#include "coll/operations.h"
#include "mpi/process.h"

#include <algorithm>
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
    empty_ = false;
    // FNV-1a, by bytes.
    for (int byte = 0; byte < 8; ++byte, word >>= 8)
      hash_ = (hash_ ^ (word & 0xff)) * 0x100000001b3;
  }
  [[nodiscard]] bool empty() const { return empty_; }
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  bool empty_ = true;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

// A coll::Saying as it grows.
class Statement {
 public:
  void add(std::uint64_t word) { digest_.add(word); }
  void add(std::string_view text) {
    for (const char c : text)
      add(static_cast<std::uint64_t>(static_cast<unsigned char>(c)));
  }
  void add(const Data& data) {
    const datatype::Signature signature = data.count * data.type->signature();
    add(static_cast<std::uint64_t>(data.count * data.type->size()));
    packed_ = packed_ || coll::is_packed(data);
    types_.add(static_cast<std::uint64_t>(signature.elements));
    if (signature.elements > 0) types_.add(signature.hash);
  }
  [[nodiscard]] coll::Saying said() const {
    return digest_.empty() ? coll::Saying{}
                           : coll::Saying{digest_.value(), packed_ ? 0 : types_.value(), of_root};
  }
  bool of_root = false;

 private:
  Digest digest_, types_;
  bool packed_ = false;
};

// Which of the functions has a root, and data that all ranks describe or only pairs of them.
struct Rule {
  coll::Collective::Run run;
  enum class What { nothing, vector, to_root, from_root, all, counts, neighbors } what;
  bool rooted = false;
  Pairs pairs = Pairs::none; // of a rooted one
};

constexpr std::array rules = {
    Rule{&coll::barrier, Rule::What::nothing},
    Rule{&coll::bcast, Rule::What::vector, true},
    Rule{&coll::reduce, Rule::What::vector, true},
    Rule{&coll::allreduce, Rule::What::vector},
    Rule{&coll::scan, Rule::What::vector},
    Rule{&coll::exscan, Rule::What::vector},
    Rule{&coll::gather, Rule::What::to_root, true},
    Rule{&coll::gatherv, Rule::What::to_root, true, Pairs::to_root},
    Rule{&coll::scatter, Rule::What::from_root, true},
    Rule{&coll::scatterv, Rule::What::from_root, true, Pairs::from_root},
    Rule{&coll::allgather, Rule::What::all},
    Rule{&coll::alltoall, Rule::What::all},
    Rule{&coll::alltoallv, Rule::What::all},
    Rule{&coll::reduce_scatter, Rule::What::counts},
    Rule{&coll::neighbor_allgather, Rule::What::neighbors},
    Rule{&coll::neighbor_allgatherv, Rule::What::neighbors},
    Rule{&coll::neighbor_alltoall, Rule::What::neighbors},
    Rule{&coll::neighbor_alltoallv, Rule::What::neighbors},
};

constexpr std::size_t longest_detail = 48; // the rest would push others out of the text

// The check of one call as it grows.
struct Draft {
  Statement all, ours, theirs; // as in coll::Check
  std::string details;
  Pairs pairs = Pairs::none;

  void detail(std::string text) {
    if (text.size() > longest_detail) text.replace(longest_detail - 3, std::string::npos, "...");
    details += (details.empty() ? " (" : ", ") + text;
  }
  void same(const Data& data) { same(data, all); }
  void same(const Data& data, Statement& statement) {
    statement.add(data);
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
    // What others receive is measured by what is sent.
    const bool sends = !a.in_place && a.send.regular();
    const bool packs = sends && (coll::is_packed(a.send[0]) || coll::is_packed(a.receive[0]));
    draft.same(packs ? a.send[0] : a.receive[0]);
    if (a.in_place || (sends && coll::match(a.send[0], a.receive[0]))) return;
    draft.detail("sending " + describe(a.send[0]));
    draft.all.add(a.send[0]);
    return;
  }
  draft.by_pairs(Pairs::all, a.in_place || !a.send.regular()
                                 ? "a block for each rank"
                                 : fmt::format("sending {}", describe(a.send[rank])));
}

// The same between two groups, each of which sends blocks of its own kind.
void add_all_between(Draft& draft, const Arguments& a) {
  if (!a.send.regular()) return draft.by_pairs(Pairs::all, "a block for each rank");
  if (!a.receive.regular()) return draft.by_pairs(Pairs::all, "sending " + describe(a.send[0]));
  draft.ours.add(a.send[0]);
  draft.theirs.add(a.receive[0]);
  draft.detail("sending " + describe(a.send[0]));
  draft.detail("receiving " + describe(a.receive[0]));
}

// "1 + 2 + 2 of MPI_INT"
std::string describe_counts(const coll::Blocks& blocks) {
  constexpr int shown = 8;
  std::string text;
  for (int i = 0; i < std::min(blocks.counts.length, shown); ++i)
    text += fmt::format("{}{}", i > 0 ? " + " : "", blocks.counts[i]);
  if (blocks.counts.length > shown) text += " + ...";
  return text + " of " + datatype::describe(*blocks.type);
}

// Between two groups, each has counts of its own, of the same sum.
void add_counts(Draft& draft, const Arguments& a, const Communicator& comm) {
  Data sum{nullptr, 0, a.send.type};
  for (int i = 0; i < comm.size(); ++i) {
    const MPI_Count count = a.send.regular() ? a.send.count : a.send.counts[i];
    (comm.inter() ? draft.ours : draft.all).add(static_cast<std::uint64_t>(count));
    sum.count += count;
  }
  draft.all.add(a.send.type->signature().hash);
  draft.all.add(sum);
  draft.detail(a.send.regular() ? describe(a.receive[0]) : describe_counts(a.send));
  if (comm.inter()) draft.detail(fmt::format("{} to {} ranks", sum.count, comm.size()));
}

// `compared`: the statement in which the root and the others must agree.
void add_data(Draft& draft, const Rule& rule, const Arguments& a, const Communicator& comm,
              Statement& compared) {
  using enum Rule::What;
  const bool root = a.root == (comm.inter() ? MPI_ROOT : comm.rank());
  compared.of_root = rule.rooted && root;
  switch (rule.what) {
  case nothing:
    return;
  case vector:
    return draft.same(a.receive[0], compared);
  case counts:
    return add_counts(draft, a, comm);
  case to_root:
    if (rule.pairs == Pairs::none) return draft.same(root ? a.receive[0] : a.send[0], compared);
    return draft.by_pairs(rule.pairs, root ? "a block of each rank" : describe(a.send[0]));
  case from_root:
    if (rule.pairs == Pairs::none) return draft.same(root ? a.send[0] : a.receive[0], compared);
    return draft.by_pairs(rule.pairs, root ? "a block for each rank" : describe(a.receive[0]));
  case all:
    return comm.inter() ? add_all_between(draft, a) : add_all(draft, a, comm.rank());
  case neighbors:
    return draft.by_pairs(Pairs::neighbors, "blocks of neighbours");
  }
}

// Of an intercommunicator's call, root and data are compared between one rank of a group, the root,
// and all of the other; the rest of its group says nothing but MPI_PROC_NULL.
void add_arguments(Draft& draft, const Rule& rule, const Arguments& a, const Communicator& comm,
                   bool with_data) {
  const bool between = rule.rooted && comm.inter();
  const bool here = between && a.root == MPI_ROOT;
  Statement& compared = !between ? draft.all : here ? draft.ours : draft.theirs;
  if (rule.rooted && with_data) draft.pairs = rule.pairs; // also of a rank that has no block
  if (between && a.root == MPI_PROC_NULL) return draft.detail("MPI_PROC_NULL");
  if (rule.rooted) {
    compared.add(static_cast<std::uint64_t>(here ? comm.rank() : a.root));
    draft.detail(here ? "MPI_ROOT" : fmt::format("root {}", a.root));
  }
  if (with_data) add_data(draft, rule, a, comm, compared);
  if (a.op != nullptr) {
    compared.add(a.op->name());
    draft.detail(std::string(a.op->name()));
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
  Draft draft;
  draft.all.add(function);
  draft.all.add(std::string_view(call.detail));
  if (*call.detail != 0) draft.detail(call.detail);
  const auto rule = std::ranges::find(rules, call.run, &Rule::run);
  if (rule != rules.end()) add_arguments(draft, *rule, call.arguments, comm, number != 0);
  if (!draft.details.empty()) draft.details += ")";
  const std::string of = describe(comm);
  const std::string which = number == 0 ? of : fmt::format("{}, number {} there", of, number);
  const std::string name(function);
  call.check = std::make_unique<coll::Check>(
      coll::Check{call.run, name, name + draft.details, which, draft.all.said(), draft.pairs,
                  draft.ours.said(), draft.theirs.said(), rule != rules.end() && rule->rooted});
  call.arguments.check = call.check.get();
  call.run = &coll::checked;
}

} // namespace macadam::mpi
