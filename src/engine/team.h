// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace macadam::engine {

// The ranks of a group, in order, as ranks in the job. Regular groups (all, a range, every n-th)
// take no memory for their members.
class RankMap {
 public:
  RankMap() = default;
  // first, first + stride, ... (`size` of them).
  RankMap(Rank first, std::int32_t stride, int size)
      : first_(first), stride_(stride), size_(size) {}
  // Any list; recognises a regular one.
  explicit RankMap(std::vector<Rank> members);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] Rank operator[](int rank) const {
    return list_.empty() ? first_ + static_cast<Rank>(rank * stride_)
                         : list_[static_cast<std::size_t>(rank)];
  }
  // The place of a rank of the job in this group, or -1. For many questions: Places.
  [[nodiscard]] int find(Rank rank) const;
  // Bytes held beyond the object itself.
  [[nodiscard]] std::size_t memory_bytes() const { return list_.capacity() * sizeof(Rank); }

 private:
  Rank first_ = 0;
  std::int32_t stride_ = 1;
  int size_ = 0;
  std::vector<Rank> list_;
};

// Places of ranks of the job in a group, for many questions: a table only where the group is
// irregular and large enough to be worth it.
class Places {
 public:
  // The map outlives the object.
  explicit Places(const RankMap& map);
  // -1 if it is not in the group.
  [[nodiscard]] int operator()(Rank rank) const {
    if (table_.empty()) return map_.find(rank);
    const auto found = table_.find(rank);
    return found == table_.end() ? -1 : found->second;
  }

 private:
  const RankMap& map_;
  std::unordered_map<Rank, int> table_;
};

// Who talks: what point-to-point and collective operations need to know of a communicator. For an
// intercommunicator `peers` is the remote group. The maps are owned by the communicator.
struct Team {
  std::uint64_t context = 0;
  int rank = 0; // of this process, in the local group
  const RankMap* local = nullptr;
  const RankMap* peers = nullptr;
  // It costs nothing to talk to one more of the local group: they share memory, or all were
  // connected at the start. The same on all its ranks.
  bool connected = false;
  // All of the local group have mapped what the nearest network allocates for any of them. The same
  // on all its ranks.
  bool shares = false;

  [[nodiscard]] int size() const { return local->size(); }
};

} // namespace macadam::engine
