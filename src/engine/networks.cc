// SPDX-License-Identifier: BSD-3-Clause
#include "engine/networks.h"

#include <algorithm>

namespace macadam::engine {

Networks::Networks(const std::vector<Transport*>& nearest_first)
    : size_(nearest_first.size()), from_start_(nearest_first.size()) {
  std::ranges::copy(nearest_first, list_.begin());
}

Networks::Networks(const Networks& other)
    : list_(other.list_), size_(other.size()), from_start_(other.from_start_) {}

void Networks::add(Transport& farthest) {
  list_.at(size()) = &farthest;
  size_.store(size() + 1, std::memory_order_release);
}

Transport& Networks::farthest(const RankMap& group) const {
  Transport& first = *list_[from_start_ - 1];
  if (size() == from_start_) return first;
  for (int rank = 0; rank < group.size(); ++rank)
    if (!first.reaches(group[rank])) return *list_[size() - 1];
  return first;
}

Transport& Networks::reaching(Rank rank) const {
  for (Transport* const network : *this) {
    if (network->reaches(rank)) return *network;
  }
  base::fail(MPI_ERR_OTHER,
             "no network reaches rank {}: {} does not, and this process has opened no other one "
             "(macadam info tells why)",
             rank, list_[size() - 1]->limits().name);
}

bool Networks::connects_none(const RankMap& group, int own) const {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank != own && reaching(group[rank]).limits().connects) return false;
  }
  return true;
}

bool Networks::maps_all(const RankMap& group) const {
  if (!nearest().limits().maps) return false;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (!nearest().reaches(group[rank])) return false;
  }
  return true;
}

MessagesBy Networks::messages_by() const {
  auto by = MessagesBy::adapter;
  for (Transport* const network : *this)
    by = std::max(by, network->limits().messages_by);
  return by;
}

bool Networks::connect_at_start() const {
  bool connected = true;
  for (Transport* const network : *this)
    connected = network->connect_at_start() && connected;
  return connected;
}

bool Networks::drain() const {
  bool drained = true;
  for (Transport* const network : *this)
    drained = network->drain() && drained;
  return drained;
}

bool Networks::leave() const {
  bool quiet = true;
  for (Transport* const network : *this)
    quiet = network->leave() && quiet;
  return quiet;
}

// The order: the nearest says that it falls asleep; the others are armed in the next poll(), which
// also looks at all of them once more; then it sleeps. What came before that poll() was found by
// it, and what comes after ends the sleep.
void Networks::idle_with_others(unsigned fruitless, unsigned longest_us) const {
  for (Transport* const network : *this) {
    if (network != list_.front()) longest_us = std::min(longest_us, network->longest_sleep_us());
  }
  if (!nearest().idle(fruitless, longest_us)) return;
  for (Transport* const network : *this) {
    if (network != list_.front()) network->arm();
  }
}

} // namespace macadam::engine
