// SPDX-License-Identifier: BSD-3-Clause
#include "engine/peer.h"

#include <algorithm>
#include <new>

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

std::size_t Channels::place_of(std::uint64_t context, std::int32_t tag) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash(context, tag) & mask;
  while (table_[at] && (table_[at]->tag != tag || table_[at]->context != context))
    at = (at + 1) & mask;
  return at;
}

// A channel that was refused once has sent or received uncounted messages: it must never be counted
// later, so its context is given nothing new any more.
Channel* Channels::find_or_make(std::uint64_t context, std::int32_t tag,
                                std::size_t bound) noexcept {
  if (Channel* known = find(context, tag)) return last_ = known;
  const bool of_user = tag >= 0;
  if (refuses_all_ != 0 || (of_user && refuses_users_ != 0)) return nullptr;
  if (of_user && std::ranges::find(refused_, context) != refused_.end()) return nullptr;
  if (of_user && bound == 0) { // as it will be, probably: no context needs a place in memory
    refuses_users_ = 1;
    return nullptr;
  }
  try {
    if (!of_user || users_ < bound) return last_ = make(context, tag);
    refused_.push_back(context);
  } catch (const std::bad_alloc&) {
    refuses_all_ = 1;
  }
  return nullptr;
}

Channel* Channels::make(std::uint64_t context, std::int32_t tag) {
  auto channel = std::make_unique<Channel>();
  if (table_.size() < 2 * (used_ + 1)) {
    std::vector<std::unique_ptr<Channel>> old(std::max<std::size_t>(4, 2 * table_.size()));
    old.swap(table_);
    for (auto& known : old) {
      if (known) insert(table_, std::move(known));
    }
  }
  channel->context = context;
  channel->tag = tag;
  Channel* const made = channel.get();
  insert(table_, std::move(channel));
  ++used_;
  if (tag >= 0) ++users_;
  return made;
}

void Channels::drop_all(std::uint64_t first_context, std::uint64_t contexts) noexcept {
  const auto goes = [&](std::uint64_t context) { return context - first_context < contexts; };
  std::erase_if(refused_, goes);
  for (std::size_t at = 0; at < table_.size(); ++at) {
    while (table_[at] && goes(table_[at]->context) && idle(*table_[at]))
      erase(at);
  }
}

void Channels::drop(std::uint64_t context, std::int32_t tag) noexcept {
  const Channel* const channel = find(context, tag);
  if (channel != nullptr && idle(*channel)) erase(place_of(context, tag));
}

// Moves up the channels behind it that the gap would hide.
void Channels::erase(std::size_t gap) noexcept {
  last_ = nullptr;
  if (table_[gap]->tag >= 0) --users_;
  --used_;
  table_[gap].reset();
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = (gap + 1) & mask; table_[at]; at = (at + 1) & mask) {
    const std::size_t home = hash(table_[at]->context, table_[at]->tag) & mask;
    if (((at - home) & mask) < ((at - gap) & mask)) continue;
    table_[gap] = std::move(table_[at]);
    gap = at;
  }
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
