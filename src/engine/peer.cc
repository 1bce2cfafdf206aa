// SPDX-License-Identifier: BSD-3-Clause
#include "engine/peer.h"

#include <algorithm>

namespace macadam::engine {
namespace {

std::size_t hash(std::uint64_t context, std::int32_t tag) {
  const std::uint64_t mixed =
      (context ^ (std::uint64_t{static_cast<std::uint32_t>(tag)} << 32)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::size_t>(mixed >> 32);
}

// Puts a channel into an open-addressed table that has room for it.
void insert(std::vector<std::unique_ptr<Channel>>& table, std::unique_ptr<Channel> channel) {
  const std::size_t mask = table.size() - 1;
  std::size_t at = hash(channel->context, channel->tag) & mask;
  while (table[at])
    at = (at + 1) & mask;
  table[at] = std::move(channel);
}

} // namespace

Channel* Channels::find(std::uint64_t context, std::int32_t tag) const {
  if (table_.empty()) return nullptr;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = hash(context, tag) & mask; table_[at]; at = (at + 1) & mask) {
    Channel& channel = *table_[at];
    if (channel.tag == tag && channel.context == context) return &channel;
  }
  return nullptr;
}

Channel* Channels::find_or_make(std::uint64_t context, std::int32_t tag, std::size_t bound) {
  if (Channel* known = find(context, tag)) return last_ = known;
  // A tag that was refused once has sent or received uncounted messages: it must never be counted
  // later, so its context is given nothing new any more.
  const bool of_user = tag >= 0;
  if (of_user && std::ranges::find(refused_, context) != refused_.end()) return nullptr;
  if (of_user && users_ >= bound) {
    refused_.push_back(context);
    return nullptr;
  }
  if (table_.size() < 2 * (used_ + 1)) resize(std::max<std::size_t>(4, 2 * table_.size()));
  auto channel = std::make_unique<Channel>();
  channel->context = context;
  channel->tag = tag;
  last_ = channel.get();
  insert(table_, std::move(channel));
  ++used_;
  if (of_user) ++users_;
  return last_;
}

void Channels::resize(std::size_t slots) {
  std::vector<std::unique_ptr<Channel>> old(slots);
  old.swap(table_);
  for (auto& channel : old) {
    if (channel) insert(table_, std::move(channel));
  }
}

void Channels::drop(std::uint64_t context) {
  last_ = nullptr;
  std::erase(refused_, context);
  bool dropped = false;
  for (auto& channel : table_) {
    if (!channel || channel->context != context) continue;
    if (channel->pending != 0 || !channel->waiting.empty()) continue; // still in use
    if (channel->tag >= 0) --users_;
    channel.reset();
    --used_;
    dropped = true;
  }
  if (dropped) resize(table_.size()); // closes the gaps in the probe sequences
}

Peer& PeerTable::make(Rank rank) {
  auto& page = pages_[rank / page_peers];
  if (!page) page = std::make_unique<Page>();
  auto& peer = (*page)[rank % page_peers];
  peer = std::make_unique<Peer>();
  peer->rank = rank;
  return *peer;
}

} // namespace macadam::engine
