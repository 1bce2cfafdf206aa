// SPDX-License-Identifier: BSD-3-Clause
#include "coll/check.h"

#include "coll/batch.h"
#include "coll/operations.h"
#include "datatype/signature.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace macadam::coll {
namespace {

// One rank's call, as it travels.
struct Call {
  std::int32_t rank = -1; // none
  std::int32_t group = 0; // of an intercommunicator; 1: the remote one
  std::uint64_t digest = 0;
  std::array<char, 160> text = {};

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
Task tell_all(Comm& comm, Heard& heard) {
  const int n = comm.size();
  Batch batch(comm);
  for (int distance = 1; distance < n; distance *= 2) {
    const Heard told = heard;
    Heard news;
    batch.send((comm.rank() + distance) % n, comm.bytes(&told, sizeof told));
    batch.receive((comm.rank() + n - distance) % n, comm.bytes(&news, sizeof news));
    co_await batch;
    heard.join(news);
  }
}

// The two groups of an intercommunicator: each among itself, the first of both with one another,
// and each among itself again.
Task tell_both_groups(Collective& self, Heard& heard) {
  Comm inside(*self.shared, *self.arguments.inside, self.tag);
  co_await tell_all(inside, heard);
  if (self.rank() == 0) {
    const Heard told = heard;
    Heard news;
    Batch batch(self);
    batch.send(0, self.bytes(&told, sizeof told));
    batch.receive(0, self.bytes(&news, sizeof news));
    co_await batch;
    for (Call* call : {&news.first, &news.other})
      call->group = 1;
    heard.join(news);
  }
  co_await tell_all(inside, heard);
}

// Whom this rank sends blocks to and receives blocks from, by the places of these.
struct Partners {
  std::vector<std::pair<int, Data>> to, from;
};

Partners partners_of(const Collective& self) {
  const Arguments& a = self.arguments;
  Partners result;
  const auto add = [](auto& list, int rank, const Data& data) {
    if (rank != MPI_PROC_NULL) list.emplace_back(rank, data);
  };
  const bool root = self.rank() == a.root;
  const bool gathers = a.check->run == &allgather;
  const bool spreads = a.check->run == &neighbor_allgather;
  switch (a.check->pairs) {
  case Pairs::none:
    break;
  case Pairs::to_root:
    if (!root || !a.in_place) add(result.to, a.root, a.send[0]);
    for (int rank = 0; root && rank < self.size(); ++rank)
      if (rank != a.root || !a.in_place) add(result.from, rank, a.receive[rank]);
    break;
  case Pairs::from_root:
    for (int rank = 0; root && rank < self.size(); ++rank)
      if (rank != a.root || !a.in_place) add(result.to, rank, a.send[rank]);
    if (!root || !a.in_place) add(result.from, a.root, a.receive[0]);
    break;
  case Pairs::all:
    for (int rank = 0; rank < self.size(); ++rank) {
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
    difference = fmt::format(" (rank {} sends it {} basic elements, it expects {} of {}{})", rank,
                             expected[i].elements, data.count, datatype::describe(*data.type),
                             expected[i].elements == mine.elements ? ", of other types" : "");
  }
}

Call call_of(const Collective& self, const std::string& text, std::uint64_t digest) {
  Call call{self.rank(), 0, digest, {}};
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

} // namespace

Task checked(Collective& self) {
  const Check& check = *self.arguments.check;
  Heard heard;
  heard.join(call_of(self, check.call, check.digest));
  if (self.arguments.inside != nullptr) {
    co_await tell_both_groups(self, heard);
    refuse_difference(self, heard);
  } else {
    co_await tell_all(self, heard);
    refuse_difference(self, heard);
    if (check.pairs != Pairs::none) {
      std::string difference;
      co_await compare_blocks(self, difference);
      heard = Heard{};
      heard.join(call_of(self, check.call + difference,
                         difference.empty() ? 0 : static_cast<std::uint64_t>(self.rank()) + 1));
      co_await tell_all(self, heard);
      refuse_difference(self, heard);
    }
  }
  co_await check.run(self);
}

} // namespace macadam::coll
