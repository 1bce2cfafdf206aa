// SPDX-License-Identifier: BSD-3-Clause
#include "coll/machines.h"

#include <algorithm>
#include <unordered_map>

namespace macadam::coll {
namespace {

// Numbers the machines of ranks that come in their order.
class Numbering {
 public:
  int of(int node) {
    if (node == last_node_ && !numbers.empty()) return last_;
    last_node_ = node;
    last_ = numbers.try_emplace(node, static_cast<int>(numbers.size())).first->second;
    return last_;
  }
  std::unordered_map<int, int> numbers;

 private:
  int last_node_ = 0;
  int last_ = 0;
};

} // namespace

int Comm::on_levels(Kind kind, bool ordered) const {
  if (machines->serve(*shared, *team, kind, ordered)) return size() / machines->count();
  return machines->apart() || !shared->node_of ? 0 : uneven;
}

bool Machines::serve(const Resources& shared, const engine::Team& team, Kind kind, bool ordered) {
  if (!found_) [[unlikely]]
    find(shared, team);
  if (!two_levels_ || (ordered && !in_order_)) return false;
  if (kind == Kind::reduce_scatter || kind == Kind::gather || kind == Kind::scatter)
    return even_ && in_order_;
  return even_ || (kind != Kind::allgather && kind != Kind::alltoall);
}

void Machines::find(const Resources& shared, const engine::Team& team) {
  const engine::RankMap& all = *team.local;
  const int n = all.size();
  if (context == 0 || !shared.node_of) {
    found_ = true;
    return;
  }
  const int own_node = shared.node_of(all[team.rank]);
  Numbering number;
  std::vector<int> sizes;
  int index = 0;
  bool in_order = true;
  for (int rank = 0; rank < n; ++rank) {
    const int node = shared.node_of(all[rank]);
    const auto machine = static_cast<std::size_t>(number.of(node));
    sizes.resize(number.numbers.size());
    in_order = in_order && machine + 1 == sizes.size();
    ++sizes[machine];
    if (node == own_node && rank < team.rank) ++index;
  }
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  const auto machines = static_cast<int>(sizes.size());
  if (machines == 1 || *most == 1) {
    found_ = true;
    return;
  }
  count_ = machines;
  slices_ = *least;
  in_order_ = in_order;
  index_ = index;
  own_ = number.of(own_node);
  machine_step_ = in_order ? *least : 1;
  index_step_ = in_order ? 1 : machines;
  even_ = *least == *most;

  std::vector<engine::Rank> inside;
  std::vector<engine::Rank> across(sizes.size());
  std::fill(sizes.begin(), sizes.end(), 0);
  for (int rank = 0; rank < n; ++rank) {
    const int machine = number.of(shared.node_of(all[rank]));
    const int at = sizes[static_cast<std::size_t>(machine)]++;
    if (machine == own_) inside.push_back(all[rank]);
    if (at == index_) across[static_cast<std::size_t>(machine)] = all[rank];
    even_ = even_ && rank == rank_at(machine, at);
  }
  if (!even_) {
    numbers_.assign(number.numbers.begin(), number.numbers.end());
    std::sort(numbers_.begin(), numbers_.end());
  }
  const engine::Networks& networks = shared.engine.networks();
  const auto team_of = [&](const engine::RankMap& ranks, int rank) {
    return engine::Team{context, rank, &ranks, &ranks, networks.connects_none(ranks, rank), false};
  };
  inside.shrink_to_fit();
  inside_ranks_ = engine::RankMap(std::move(inside));
  inside_ = team_of(inside_ranks_, index_);
  inside_.shares = inside_ranks_.size() > 1 && networks.maps_all(inside_ranks_);
  if (index_ < slices_) {
    across_ranks_ = engine::RankMap(std::move(across));
    across_ = team_of(across_ranks_, own_);
  }
  two_levels_ = true;
  found_ = true;
}

Comm Machines::inside(const Comm& comm) {
  Comm team(*comm.shared, inside_, inside_tag(comm.tag));
  team.frequent = comm.frequent;
  if (inside_.shares) {
    team.boards = &boards_;
    team.board = boards_.begin(team.tag);
  }
  return team;
}

void Machines::leave(std::int32_t tag, Resources& shared) noexcept {
  boards_.leave(inside_tag(tag), shared.panels);
  shared.engine.drop_channel(context, inside_tag(tag), inside_ranks_);
  shared.engine.drop_channel(context, across_tag(tag), across_ranks_);
}

Comm Machines::across(const Comm& comm) const {
  Comm team(*comm.shared, across_, across_tag(comm.tag));
  team.frequent = comm.frequent;
  return team;
}

int Machines::machine_of(const Comm& comm, int rank) const {
  if (even_) return in_order_ ? rank / machine_step_ : rank % index_step_;
  const int node = comm.shared->node_of((*comm.team->local)[rank]);
  return std::lower_bound(numbers_.begin(), numbers_.end(), std::pair(node, 0))->second;
}

int Machines::index_of(const Comm& comm, int rank) const {
  return inside_ranks_.find((*comm.team->local)[rank]);
}

} // namespace macadam::coll
