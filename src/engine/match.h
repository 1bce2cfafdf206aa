// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "engine/observer.h"
#include "engine/request.h"
#include "engine/wire.h"

#include <array>
#include <cstdint>

namespace macadam::engine {

struct ByEnvelope; // tag: a bucket of unexpected messages
struct ByArrival;  // tag: all unexpected messages, oldest first

// A message that came before its receive. EAGER data are kept in `data`; a SENDER_READY only says
// where they are. An MPI_Message handle is the address of one that a matched probe took.
struct Message : base::Object, base::ListNode<ByEnvelope>, base::ListNode<ByArrival> {
  Message() : base::Object(base::ObjectKind::message) {}
  Peer* peer = nullptr;
  Envelope envelope;
  std::uint64_t bytes = 0;
  std::byte* data = nullptr; // eager: owned by the engine's buffers
  bool lost = false;         // ... for which there was no memory
  std::uint64_t send_id = 0; // to acknowledge or to answer; 0: neither
  RemoteMemory memory;
  std::uint64_t permit = 0; // see wire::SenderReady
  wire::Offer offer = wire::Offer::write;
  bool rendezvous = false;
  bool counted = false;  // see wire::SenderReady
  void* owner = nullptr; // for the layer above
};

// As its receiver sees it, which may be offered what is written to its announcement after all.
inline Protocol protocol_of(wire::Offer offer) {
  return offer == wire::Offer::hybrid ? Protocol::hybrid : Protocol::send_rndv;
}
inline Protocol protocol_of(const Message& message) {
  return message.rendezvous ? protocol_of(message.offer) : Protocol::eager;
}

// MPI's matching rules: posted receives and unexpected messages, each hashed by (context, source,
// tag); receives with wildcards stand in lists of their own, hashed by context alone, and the order
// of posting decides between the two. Pure bookkeeping: it owns nothing and completes nothing.
class Matcher {
 public:
  // `envelope` is the receive's own; the caller has it in registers.
  void post(ReceiveRequest& receive, const Envelope& envelope) {
    receive.sequence = next_sequence_++;
    if (wildcard(envelope)) [[unlikely]] {
      wildcards_[bucket(envelope.context)].push_back(receive);
      ++wildcard_count_;
    } else {
      posted_[bucket(envelope)].push_back(receive);
    }
  }
  void remove(ReceiveRequest& receive) {
    base::List<ReceiveRequest, InFlight>::erase(receive);
    if (wildcard(receive.envelope)) [[unlikely]]
      --wildcard_count_;
  }
  // Takes out the receive that this message matches, or returns null.
  ReceiveRequest* take_receive(const Envelope& message) {
    ReceiveRequest* found = nullptr;
    for (ReceiveRequest& receive : posted_[bucket(message)]) {
      if (same(receive.envelope, message)) [[likely]] {
        found = &receive;
        break;
      }
    }
    if (wildcard_count_ != 0) [[unlikely]]
      found = older_wildcard(message, found);
    if (found != nullptr) remove(*found);
    return found;
  }
  // A wildcard receive, posted before `sequence`, that could take a message with this envelope.
  [[nodiscard]] bool wildcard_before(const Envelope& message, std::uint64_t sequence) const;

  void add_unexpected(Message& message);
  void remove(Message& message);
  // The oldest unexpected message that this receive or probe matches, left in place; or null.
  [[nodiscard]] Message* find_unexpected(const Envelope& wanted) const {
    return unexpected_count_ == 0 ? nullptr : search_unexpected(wanted);
  }

  // The unexpected message of this send, or null.
  [[nodiscard]] Message* find_sent(const Envelope& message, const Peer& peer,
                                   std::uint64_t send_id) const;

  // The bucket of receives that name source and tag, in order of posting; it holds those of other
  // envelopes too.
  [[nodiscard]] const base::List<ReceiveRequest, InFlight>& same_bucket(const Envelope& e) const {
    return posted_[bucket(e)];
  }
  static bool same(const Envelope& a, const Envelope& b) {
    return a.tag == b.tag && a.source == b.source && a.context == b.context;
  }
  // `visit` may remove what it is given.
  template <class Visit>
  void for_each_posted(Visit&& visit) const {
    const auto visit_all = [&](const auto& list) {
      for (auto at = list.begin(); at != list.end();) {
        ReceiveRequest& receive = *at;
        ++at;
        visit(receive);
      }
    };
    for (const auto& bucket : posted_)
      visit_all(bucket);
    for (const auto& bucket : wildcards_)
      visit_all(bucket);
  }
  // The first receive posted at `sequence` or later, of those that are `wanted`; or null. For loops
  // that may change anything meanwhile.
  template <class Wanted>
  [[nodiscard]] ReceiveRequest* next_posted(std::uint64_t sequence, Wanted&& wanted) const {
    ReceiveRequest* next = nullptr;
    for_each_posted([&](ReceiveRequest& receive) {
      if (receive.sequence >= sequence && (next == nullptr || receive.sequence < next->sequence) &&
          wanted(receive))
        next = &receive;
    });
    return next;
  }
  template <class Visit>
  void for_each_unexpected(Visit&& visit) const {
    for (Message& message : arrivals_)
      visit(message);
  }
  [[nodiscard]] std::uint64_t wildcards() const { return wildcard_count_; }
  [[nodiscard]] bool any_unexpected() const { return unexpected_count_ != 0; }
  [[nodiscard]] Message& oldest() const { return arrivals_.front(); }

  static bool wildcard(const Envelope& e) {
    return e.source == MPI_ANY_SOURCE || e.tag == MPI_ANY_TAG;
  }
  static bool matches(const Envelope& wanted, const Envelope& message) {
    return wanted.context == message.context &&
           (wanted.source == message.source || wanted.source == MPI_ANY_SOURCE) &&
           (wanted.tag == message.tag || wanted.tag == MPI_ANY_TAG);
  }

 private:
  [[nodiscard]] Message* search_unexpected(const Envelope& wanted) const;
  ReceiveRequest* older_wildcard(Envelope message, ReceiveRequest* specific) const;

  static constexpr std::size_t buckets = 256;
  static std::size_t bucket(std::uint64_t mixed) { return (mixed * 0x9e3779b97f4a7c15u) >> 56; }
  static std::size_t bucket(const Envelope& e) {
    return bucket(e.context ^ static_cast<std::uint64_t>(e.source) << 36 ^
                  static_cast<std::uint64_t>(e.tag) << 12);
  }

  std::array<base::List<ReceiveRequest, InFlight>, buckets> posted_;
  std::array<base::List<Message, ByEnvelope>, buckets> unexpected_;
  std::array<base::List<ReceiveRequest, InFlight>, buckets> wildcards_;
  base::List<Message, ByArrival> arrivals_;
  std::uint64_t next_sequence_ = 1;
  std::uint64_t wildcard_count_ = 0;
  std::uint64_t unexpected_count_ = 0;
};

} // namespace macadam::engine
