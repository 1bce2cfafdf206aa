// SPDX-License-Identifier: BSD-3-Clause
#include "coll/check.h"

#include "coll/batch.h"
#include "coll/operations.h"
#include "datatype/signature.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

namespace macadam::coll {
namespace {

// One rank's call, as it travels.
struct Call {
  std::uint64_t digest = 0;
  std::int32_t rank = -1;            // none
  std::int32_t group = 0;            // of an intercommunicator; 1: the remote one
  std::int32_t root = MPI_PROC_NULL; // the rank that it names as the root
  std::array<char, 156> text = {};

  [[nodiscard]] bool known() const { return rank >= 0; }
  [[nodiscard]] bool before(const Call& other) const {
    return std::pair(group, rank) < std::pair(other.group, other.rank);
  }
};

// What a rank has heard of: the first of all calls, and the first that differs from that. Two of
// them joined in any order, any number of times, say the same.
struct Heard {
  Call first, other;

  void join(const Call& call) {
    if (!call.known()) return;
    if (!first.known() || call.before(first)) {
      const Call displaced = std::exchange(first, call);
      if (other.known() && other.digest == first.digest) other = Call{};
      join(displaced);
    } else if (call.digest != first.digest && (!other.known() || call.before(other))) {
      other = call;
    }
  }
  void join(const Heard& more) {
    join(more.first);
    join(more.other);
  }
};

struct Block {
  std::int64_t elements = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const Block&, const Block&) = default;
};

Block block_of(const Data& data) {
  if (data.count == 0) return {};
  const datatype::Signature signature = data.count * data.type->signature();
  return {signature.elements, signature.hash};
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
// and each among itself again. What is said of the own group comes first, and for the other last.
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
  const bool spreads = a.check->run == &neighbor_allgather;
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
    const auto sources = a.neighbors.sources, destinations = a.neighbors.destinations;
    for (std::size_t i = 0; i < destinations.size(); ++i)
      add(result.to, elsewhere(destinations[i]), a.send[spreads ? 0 : static_cast<int>(i)]);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const int place = a.neighbors.source_at(static_cast<int>(i));
      add(result.from, elsewhere(sources[static_cast<std::size_t>(place)]), a.receive[place]);
    }
    break;
  }
  }
  return result;
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
    if (mine == expected[i]) continue;
    difference = fmt::format(" (rank {}{} sends it {} basic elements, it expects {} of {}{})", rank,
                             self.arguments.inside == nullptr ? "" : " of the other group",
                             expected[i].elements, data.count, datatype::describe(*data.type),
                             expected[i].elements == mine.elements ? ", of other types" : "");
  }
}

Call call_of(const Collective& self, const std::string& text, std::uint64_t digest) {
  const int root = self.arguments.root;
  Call call{digest, self.rank(), 0, root == MPI_ROOT ? self.rank() : root, {}};
  const std::size_t length = std::min(text.size(), call.text.size() - 1);
  std::copy_n(text.begin(), length, call.text.begin());
  return call;
}

std::string show(const Call& call) {
  return fmt::format("rank {}{} called {}", call.rank, call.group == 0 ? "" : " of the other group",
                     call.text.data());
}

void refuse_difference(const Collective& self, const Heard& heard) {
  if (heard.other.known())
    base::fail(MPI_ERR_ARG,
               "ranks differ in a collective on {}: {}, and {}; all must make the same "
               "calls in the same order with data that match",
               self.arguments.check->where, show(heard.first), show(heard.other));
}

// Fails on all ranks, those of both groups, if the calls that they know of differ.
Task compare(Collective& self, std::span<Heard> heard) {
  if (self.arguments.inside != nullptr)
    co_await tell_both_groups(self, heard);
  else
    co_await tell_all(self, heard);
  for (const Heard& one : heard)
    refuse_difference(self, one);
}

// Fails on all ranks if one of them has found a difference.
Task refuse_found(Collective& self, const std::string& difference) {
  Heard heard;
  heard.join(call_of(self, self.arguments.check->call + difference,
                     difference.empty() ? 0 : static_cast<std::uint64_t>(self.rank()) + 1));
  co_await compare(self, {&heard, 1});
}

// What a rank that gave MPI_PROC_NULL, as it is neither root nor in the group that names one, sees
// in what others say of the root.
const char* contradiction(const Collective& self, const Heard& ours, const Heard& theirs) {
  if (self.arguments.root != MPI_PROC_NULL) return "";
  if (theirs.first.known()) return " (the root is in the other group)";
  const bool named = ours.first.known() && ours.first.root == self.rank();
  return named ? " (the other group names this rank as the root)" : "";
}

// What the ranks of each group say of their own and of the other: data, or who is the root.
Task compare_groups(Collective& self) {
  const Check& check = *self.arguments.check;
  std::array<Heard, 2> heard;
  Heard &ours = heard[0], &theirs = heard[1];
  if (check.ours != 0) ours.join(call_of(self, check.call, check.ours));
  if (check.theirs != 0) theirs.join(call_of(self, check.call, check.theirs));
  co_await compare(self, heard);
  if (!check.rooted) co_return;
  if (ours.first.known() && theirs.first.known())
    refuse_difference(self, Heard{ours.first, theirs.first});
  co_await refuse_found(self, contradiction(self, ours, theirs));
}

} // namespace

Task checked(Collective& self) {
  const Check& check = *self.arguments.check;
  Heard heard;
  heard.join(call_of(self, check.call, check.digest));
  co_await compare(self, {&heard, 1});
  if (self.arguments.inside != nullptr) co_await compare_groups(self);
  if (check.pairs != Pairs::none) {
    std::string difference;
    co_await compare_blocks(self, difference);
    co_await refuse_found(self, difference);
  }
  co_await check.run(self);
}

} // namespace macadam::coll
