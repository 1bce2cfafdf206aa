// SPDX-License-Identifier: BSD-3-Clause
#include "engine/team.h"

#include <algorithm>

namespace macadam::engine {
namespace {

bool regular(const std::vector<Rank>& members) {
  if (members.size() < 2) return true;
  const Rank step = members[1] - members[0]; // modulo 2^32, as the differences compared with it
  if (step == 0) return false;
  for (std::size_t i = 2; i < members.size(); ++i) {
    if (members[i] - members[i - 1] != step) return false;
  }
  return true;
}

} // namespace

RankMap::RankMap(std::vector<Rank> members) : size_(static_cast<int>(members.size())) {
  if (!regular(members)) {
    list_ = std::move(members);
    list_.shrink_to_fit();
    return;
  }
  if (size_ > 0) first_ = members[0];
  if (size_ > 1) stride_ = static_cast<std::int32_t>(members[1] - members[0]);
}

int RankMap::find(Rank rank) const {
  if (!list_.empty()) {
    const auto found = std::ranges::find(list_, rank);
    return found == list_.end() ? -1 : static_cast<int>(found - list_.begin());
  }
  const auto distance = static_cast<std::int64_t>(rank) - static_cast<std::int64_t>(first_);
  if (size_ == 0 || distance % stride_ != 0) return -1;
  const std::int64_t place = distance / stride_;
  return place >= 0 && place < size_ ? static_cast<int>(place) : -1;
}

Places::Places(const RankMap& map) : map_(map) {
  if (map.memory_bytes() == 0 || map.size() < 16) return;
  table_.reserve(static_cast<std::size_t>(map.size()));
  for (int i = 0; i < map.size(); ++i)
    table_.emplace(map[i], i);
}

} // namespace macadam::engine
