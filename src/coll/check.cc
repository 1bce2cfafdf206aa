// SPDX-License-Identifier: BSD-3-Clause
#include "coll/check.h"

#include "coll/batch.h"
#include "coll/operations.h"
#include "datatype/signature.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace macadam::coll {
namespace {

// One rank's call, as it travels.
struct Call {
  std::uint64_t digest = 0, types = 0; // as in Saying
  std::int32_t rank = -1;              // none
  std::int32_t group = 0;              // of an intercommunicator; 1: the remote one
  std::int32_t root = MPI_PROC_NULL;   // the rank that it names as the root
  std::int32_t place = 0;              // see place_of()
  std::array<char, 160> text = {};     // "called ..."

  [[nodiscard]] bool known() const { return rank >= 0; }
  // A root's packing unit comes first, as the others, which are measured by it, may differ in their
  // types; other packing units last, so that those whose types are known are measured by one.
  static std::int32_t place_of(const Saying& saying) {
    return saying.types != 0 ? 1 : saying.of_root ? 0 : 2;
  }
  [[nodiscard]] bool before(const Call& other) const {
    return std::tuple(place, group, rank) < std::tuple(other.place, other.group, other.rank);
  }
  [[nodiscard]] bool agrees(const Call& other) const {
    return digest == other.digest && (types == other.types || types == 0 || other.types == 0);
  }
};
static_assert(std::has_unique_object_representations_v<Call>, "all of it is sent");

// What a rank has heard of: the first of all calls, and the first that differs from that. Two of
// them joined in any order, any number of times, say the same.
struct Heard {
  Call first, other;

  void join(const Call& call) {
    if (!call.known()) return;
    if (!first.known() || call.before(first)) {
      const Call displaced = std::exchange(first, call);
      if (other.known() && other.agrees(first)) other = Call{};
      join(displaced);
    } else if (!call.agrees(first) && (!other.known() || call.before(other))) {
      other = call;
    }
  }
  void join(const Heard& more) {
    join(more.first);
    join(more.other);
  }
};

struct Block {
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  std::uint64_t hash = 0;
  std::uint64_t packed = 0;

  [[nodiscard]] bool matches(const Block& other) const {
    const bool alike = elements == other.elements && hash == other.hash;
    return alike || (bytes == other.bytes && (packed != 0 || other.packed != 0));
  }
};

Block block_of(const Data& data) {
  if (data.count == 0) return {};
  const datatype::Signature signature = data.count * data.type->signature();
  return {data.count * data.type->size(), signature.elements, signature.hash, is_packed(data)};
}

// In step k a rank hears from the one 2^k before it, which knows of as many.
Task tell_all(Comm& comm, std::span<Heard> heard) {
  const int n = comm.size();
  Batch batch(comm);
  std::vector<Heard> told(heard.size()), news(heard.size());
  for (int distance = 1; distance < n; distance *= 2) {
    std::ranges::copy(heard, told.begin());
    batch.send((comm.rank() + distance) % n, comm.bytes(told.data(), heard.size_bytes()));
    batch.receive((comm.rank() + n - distance) % n, comm.bytes(news.data(), heard.size_bytes()));
    co_await batch;
    for (std::size_t i = 0; i < heard.size(); ++i)
      heard[i].join(news[i]);
  }
}

// The two groups of an intercommunicator: each among itself, the first of both with one another,
// and each among itself again. What ranks say of their own group comes first, of the other one
// last.
Task tell_both_groups(Collective& self, std::span<Heard> heard) {
  Comm inside(*self.shared, *self.arguments.inside, self.tag);
  co_await tell_all(inside, heard);
  if (self.rank() == 0) {
    const std::vector<Heard> told(heard.begin(), heard.end());
    std::vector<Heard> news(heard.size());
    Batch batch(self);
    batch.send(0, self.bytes(told.data(), heard.size_bytes()));
    batch.receive(0, self.bytes(news.data(), heard.size_bytes()));
    co_await batch;
    std::ranges::reverse(news);
    for (std::size_t i = 0; i < heard.size(); ++i) {
      for (Call* call : {&news[i].first, &news[i].other})
        call->group = 1;
      heard[i].join(news[i]);
    }
  }
  co_await tell_all(inside, heard);
}

// Whom this rank sends blocks to and receives blocks from, by the places of these.
struct Partners {
  std::vector<std::pair<int, Data>> to, from;
};

Partners partners_of(const Collective& self) {
  const Arguments& a = self.arguments;
  const bool inter = a.inside != nullptr;
  const int ranks = inter ? self.team->peers->size() : self.size();
  Partners result;
  const auto add = [](auto& list, int rank, const Data& data) {
    if (rank != MPI_PROC_NULL) list.emplace_back(rank, data);
  };
  const bool root = a.root == (inter ? MPI_ROOT : self.rank());
  const bool to_itself = !inter && !a.in_place;
  const bool gathers = a.check->run == &allgather;
  const bool spreads = a.check->run == &neighbor_allgather || a.check->run == &neighbor_allgatherv;
  switch (a.check->pairs) {
  case Pairs::none:
    break;
  case Pairs::to_root:
    if (!root || to_itself) add(result.to, a.root, a.send[0]);
    for (int rank = 0; root && rank < ranks; ++rank)
      if (rank != a.root || to_itself) add(result.from, rank, a.receive[rank]);
    break;
  case Pairs::from_root:
    for (int rank = 0; root && rank < ranks; ++rank)
      if (rank != a.root || to_itself) add(result.to, rank, a.send[rank]);
    if (!root || to_itself) add(result.from, a.root, a.receive[0]);
    break;
  case Pairs::all:
    for (int rank = 0; rank < ranks; ++rank) {
      add(result.to, rank, !a.in_place ? a.send[rank] : a.receive[gathers ? self.rank() : rank]);
      add(result.from, rank, a.receive[rank]);
    }
    break;
  case Pairs::neighbors: {
    // What a rank has for itself it copies.
    const auto elsewhere = [&](int rank) { return rank == self.rank() ? MPI_PROC_NULL : rank; };
    a.destinations->for_each_rank([&](int rank, std::span<const int> edges) {
      for (const int i : edges)
        add(result.to, elsewhere(rank), a.send[spreads ? 0 : i]);
    });
    a.sources->for_each_rank([&](int rank, std::span<const int> edges) {
      for (const int i : edges)
        add(result.from, elsewhere(rank), a.receive[i]);
    });
    break;
  }
  }
  return result;
}

// Names a rank of the remote group in a text that both groups read, where "other" would mean two.
const char* opposite(const Collective& self) {
  return self.arguments.inside == nullptr ? "" : " opposite";
}

// The blocks that each rank sends against those that the other expects. Ends with what this rank
// has found; a neighbour may have found more.
Task compare_blocks(Collective& self, std::string& difference) {
  const Partners partners = partners_of(self);
  std::vector<Block> sent(partners.to.size()), expected(partners.from.size());
  Batch batch(self);
  for (std::size_t i = 0; i < partners.from.size(); ++i)
    batch.receive(partners.from[i].first, self.bytes(&expected[i], sizeof(Block)));
  for (std::size_t i = 0; i < partners.to.size(); ++i) {
    sent[i] = block_of(partners.to[i].second);
    batch.send(partners.to[i].first, self.bytes(&sent[i], sizeof(Block)));
  }
  co_await batch;
  for (std::size_t i = 0; i < partners.from.size() && difference.empty(); ++i) {
    const auto& [rank, data] = partners.from[i];
    const Block mine = block_of(data);
    if (mine.matches(expected[i])) continue;
    difference = fmt::format("rank {}{} sends it {} basic elements, it expects {} of {}{}", rank,
                             opposite(self), expected[i].elements, data.count,
                             datatype::describe(*data.type),
                             expected[i].elements == mine.elements ? ", of other types" : "");
  }
}

Call call_of(const Collective& self, const std::string& text, const Saying& saying) {
  const int root = self.arguments.root;
  Call call{.digest = saying.digest,
            .types = saying.types,
            .rank = self.rank(),
            .root = root == MPI_ROOT ? self.rank() : root,
            .place = Call::place_of(saying)};
  constexpr std::string_view cut = "...";
  const std::size_t room = call.text.size() - 1;
  const auto end = std::copy_n(text.begin(), std::min(text.size(), room), call.text.begin());
  if (text.size() > room) std::ranges::copy(cut, end - cut.size());
  return call;
}

std::string show(const Call& call) {
  return fmt::format("rank {}{} {}", call.rank, call.group == 0 ? "" : " of the other group",
                     call.text.data());
}

constexpr const char* data_needed =
    "all must make the same calls in the same order with data that match";
constexpr const char* roots_needed =
    "one rank of one group must give MPI_ROOT and the others of that group MPI_PROC_NULL, and the "
    "other group names that rank";

[[noreturn]] void refuse(const Collective& self, const std::string& difference,
                         const char* needed) {
  base::fail(MPI_ERR_ARG, "ranks differ in a collective on {}: {}; {}", self.arguments.check->where,
             difference, needed);
}

void refuse_difference(const Collective& self, const Heard& heard) {
  if (heard.other.known())
    refuse(self, show(heard.first) + ", and " + show(heard.other), data_needed);
}

Task tell(Collective& self, std::span<Heard> heard) {
  if (self.arguments.inside != nullptr)
    co_await tell_both_groups(self, heard);
  else
    co_await tell_all(self, heard);
}

// Fails on all ranks if one of them has found a difference; the first of these is named.
Task refuse_found(Collective& self, std::string difference, const char* needed) {
  Heard heard;
  if (!difference.empty()) heard.join(call_of(self, difference, {}));
  co_await tell(self, {&heard, 1});
  if (heard.first.known()) refuse(self, show(heard.first), needed);
}

// A rank that gives MPI_PROC_NULL is neither the root nor in the group that names one.
std::string misses_root(const Collective& self, const Heard& ours, const Heard& theirs) {
  const std::string& call = self.arguments.check->call;
  if (self.arguments.root != MPI_PROC_NULL) return {};
  if (theirs.first.known())
    return fmt::format("called {}, and rank {} opposite is the root", call, theirs.first.root);
  if (ours.first.known() && ours.first.root == self.rank())
    return fmt::format("called {}, and the group opposite names it as the root", call);
  return {};
}

// `ours`, `theirs`: who has said that the root is in this group, or in the other one.
Task compare_roots(Collective& self, const Heard& ours, const Heard& theirs) {
  if (ours.first.known() && theirs.first.known())
    refuse(self, show(ours.first) + ", and " + show(theirs.first), roots_needed);
  if (!ours.first.known() && !theirs.first.known())
    refuse(self, "all ranks called " + self.arguments.check->call, roots_needed);
  co_await refuse_found(self, misses_root(self, ours, theirs), roots_needed);
}

Task compare_calls(Collective& self) {
  const Check& check = *self.arguments.check;
  const bool inter = self.arguments.inside != nullptr;
  std::array<Heard, 3> heard; // of their own group, of all ranks, and of the other group
  Heard &ours = heard[0], &all = heard[1], &theirs = heard[2];
  const std::string text = "called " + check.call;
  all.join(call_of(self, text, check.all));
  if (check.ours.digest != 0) ours.join(call_of(self, text, check.ours));
  if (check.theirs.digest != 0) theirs.join(call_of(self, text, check.theirs));
  co_await tell(self, inter ? std::span<Heard>(heard) : std::span<Heard>(&all, 1));
  for (const Heard* one : {&all, &ours, &theirs})
    refuse_difference(self, *one);
  if (inter && check.rooted) co_await compare_roots(self, ours, theirs);
}

} // namespace

bool is_packed(const Data& data) {
  const datatype::Type* const element = data.type->elementary();
  return element != nullptr && element->handle() == MPI_PACKED;
}

bool match(const Data& one, const Data& other) {
  return block_of(one).matches(block_of(other));
}

Task checked(Collective& self) {
  const Check& check = *self.arguments.check;
  co_await compare_calls(self);
  if (check.pairs != Pairs::none) {
    std::string difference;
    co_await compare_blocks(self, difference);
    if (!difference.empty())
      difference = fmt::format("called {}, where {}", check.function, difference);
    co_await refuse_found(self, difference, data_needed);
  }
  co_await check.run(self);
}

} // namespace macadam::coll
