// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/request.h"
#include "engine/transport.h"
#include "engine/wire.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::engine {

// An announcement that has arrived and not been used (sender's side).
struct Announcement {
  std::uint64_t ordinal = 0;
  std::uint64_t receive_id = 0;
  std::uint64_t capacity = 0;
  std::uint64_t permit = 0; // to be used before anything is written; 0: that is done, or an answer
  RemoteMemory memory;
  bool watched = false;       // by its last byte, which was
  std::uint8_t last_byte = 0; // ... this
};

// The messages between this process and one peer with one (context, tag), counted in both
// directions (Small & Yuan, section 4.1, "Matching control messages").
struct Channel {
  std::uint64_t context = 0;
  std::int32_t tag = 0;
  std::int32_t source = 0;   // the peer's rank in the communicator, once a receive was posted
  bool revoking = false;     // no announcement leaves until it is known what was used
  bool uncounted = false;    // an announcement could not be kept: none is used any more
  std::uint32_t pending = 0; // receives posted for exactly this channel, not matched
  std::uint64_t sent = 0;    // messages sent: the next one's ordinal
  std::uint64_t matched = 0; // messages of the peer matched with a receive (or a matched probe)
  std::vector<Announcement> announcements; // of the peer, by ordinal; those below `sent` are stale
  std::vector<SendRequest*> waiting;       // large sends whose announcement may still come
};

// The channels of one peer: a hash table. A channel never moves. The user's are bounded; past the
// bound, or without memory, the communicator falls back on this pair until it is freed: channels
// that are not in the table are not counted, so nothing is announced on them and announcements for
// them are dropped.
// Tags below 0 are the library's own, which are few.
class Channels {
 public:
  // The channel, made if there is room for it; null if not.
  Channel* get(std::uint64_t context, std::int32_t tag, std::size_t bound) noexcept {
    if (last_ != nullptr && last_->tag == tag && last_->context == context) [[likely]]
      return last_;
    return find_or_make(context, tag, bound);
  }
  // The channel if it was made.
  [[nodiscard]] Channel* find(std::uint64_t context, std::int32_t tag) const {
    return table_.empty() ? nullptr : table_[place_of(context, tag)].get();
  }
  // Forgets the channels of a communicator that was freed, which has so many contexts in a row.
  void drop_all(std::uint64_t first_context, std::uint64_t contexts) noexcept;
  // Forgets a channel that is not used again.
  void drop(std::uint64_t context, std::int32_t tag) noexcept;
  [[nodiscard]] std::size_t size() const { return used_; }
  // The contexts that a channel was refused to.
  [[nodiscard]] const std::vector<std::uint64_t>& refused() const { return refused_; }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& channel : table_) {
      if (channel) visit(*channel);
    }
  }

 private:
  // Where it is in the table, which is not empty, or where the search for it ends.
  [[nodiscard]] std::size_t place_of(std::uint64_t context, std::int32_t tag) const;
  Channel* find_or_make(std::uint64_t context, std::int32_t tag, std::size_t bound) noexcept;
  Channel* make(std::uint64_t context, std::int32_t tag);
  // Nothing is under way on it.
  [[nodiscard]] static bool idle(const Channel& channel) {
    return channel.pending == 0 && channel.waiting.empty();
  }
  void erase(std::size_t at) noexcept;

  Channel* last_ = nullptr;
  std::vector<std::unique_ptr<Channel>> table_; // open addressing, a power of two
  std::vector<std::uint64_t> refused_;
  std::uint32_t used_ = 0;
  std::uint32_t users_ : 30 = 0;        // of these
  std::uint32_t refuses_users_ : 1 = 0; // as there was no bound for them once
  std::uint32_t refuses_all_ : 1 = 0;   // as there was no memory once
};

// Something for a peer that could not be handed to the transport yet. Order is kept: once one
// waits, everything after it waits behind.
struct Deferred : base::ListNode<> {
  enum class Type : std::uint8_t { control, eager, put, get } type = Type::control;
  std::uint8_t control_bytes = 0;
  // A put with a notification: the FIN that takes its place if it cannot tell its target after all.
  std::array<std::byte, wire::longest_control> control = {};
  const std::byte* payload = nullptr; // control: `bytes` of a send's data behind it
  SendRequest* send = nullptr;        // eager, put
  ReceiveRequest* receive = nullptr;  // get
  RemoteMemory remote;                // put, get
  std::uint32_t notification = 0;     // put: for the receiver
  std::size_t bytes = 0;
};

struct Backlogged; // tag of the engine's list of peers with a backlog

// An EAGER message of which fragments are still to come: for a receive, or kept for one.
struct Arriving {
  ReceiveRequest* receive = nullptr;
  struct Message* message = nullptr;
  std::size_t arrived = 0; // bytes of its payload
  bool lost = false;       // there is no memory for them
  std::size_t bytes = 0;   // of all of it
};

// Short messages to a peer that come fast one after the other (bundle.cc).
struct Burst {
  std::uint32_t count = 0;   // sent since the last look; or held,
  std::uint32_t bytes = 0;   // ... and their bytes
  double since = 0;          // by Transport::now(): the end of the last send; or of the hold
  std::uint32_t barred = 0;  // so many go singly, as some were held too long
  std::uint32_t penalty = 0; // how many went singly the last time
};

// A process we talk to; made at the first message to or from it.
struct Peer : base::ListNode<Backlogged> {
  // Payload bytes up to which a message may take the short path, -1 when it is forbidden: not
  // connected, a backlog, throttled, MACADAM_CHECK. One compare covers all of it.
  std::int64_t short_limit = -1;
  // The same of a receive: -1 with MACADAM_CHECK.
  std::int64_t short_receive_limit = -1;
  Link* link = nullptr;
  Transport* transport = nullptr; // the network that reaches it
  // Payload bytes up to which messages of a burst travel together, -1 if none do, and the look
  // since which such a message was sent.
  std::int32_t bundled = -1;
  std::uint32_t look = 0;
  Channels channels;               // what is looked up of them lies in the line of the limits
  std::size_t eager = 0;           // payload bytes up to which EAGER is best there,
  std::size_t hybrid = 0;          // ... and HYBRID
  std::size_t uncopied = SIZE_MAX; // ... and from which EAGER goes better uncopied
  Rank rank = 0;
  PeerState state = PeerState::connecting;
  bool throttled = false; // the peer asked for no eager data
  bool throttled_by_us = false;
  bool holds = false; // the backlog are messages of a burst, which leave with the next look
  Arriving arriving;
  Burst burst;
  base::List<Deferred> backlog;
};
// A process has one for each that it talks to.
static_assert(sizeof(Peer) <= 232);

// All peers: pages of pointers made on first contact, so that ranks nobody talks to cost nothing.
class PeerTable {
 public:
  explicit PeerTable(Rank processes) { grow(processes); }
  void grow(Rank processes) { pages_.resize((processes + page_peers - 1) / page_peers); }

  [[nodiscard]] Peer* find(Rank rank) const {
    const auto& page = pages_[rank / page_peers];
    return page ? (*page)[rank % page_peers].get() : nullptr;
  }
  Peer& make(Rank rank);
  void drop(Rank rank) { (*pages_[rank / page_peers])[rank % page_peers].reset(); }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& page : pages_) {
      if (!page) continue;
      for (const auto& peer : *page) {
        if (peer) visit(*peer);
      }
    }
  }

 private:
  static constexpr Rank page_peers = 64;
  using Page = std::array<std::unique_ptr<Peer>, page_peers>;
  std::vector<std::unique_ptr<Page>> pages_;
};

} // namespace macadam::engine
