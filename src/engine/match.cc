// SPDX-License-Identifier: BSD-3-Clause
#include "engine/match.h"

namespace macadam::engine {

void Matcher::post(ReceiveRequest& receive) {
  receive.sequence = next_sequence_++;
  if (wildcard(receive.envelope)) {
    wildcards_.push_back(receive);
    ++wildcard_count_;
  } else {
    posted_[bucket(receive.envelope)].push_back(receive);
  }
}

void Matcher::remove(ReceiveRequest& receive) {
  base::List<ReceiveRequest, InFlight>::erase(receive);
  if (wildcard(receive.envelope)) --wildcard_count_;
}

ReceiveRequest* Matcher::take_receive(const Envelope& message) {
  ReceiveRequest* found = nullptr;
  for (ReceiveRequest& receive : posted_[bucket(message)]) {
    if (same(receive.envelope, message)) {
      found = &receive;
      break;
    }
  }
  if (wildcard_count_ != 0) [[unlikely]] {
    for (ReceiveRequest& receive : wildcards_) {
      if (found != nullptr && receive.sequence > found->sequence) break;
      if (matches(receive.envelope, message)) {
        found = &receive;
        break;
      }
    }
  }
  if (found != nullptr) remove(*found);
  return found;
}

ReceiveRequest* Matcher::any_posted() const {
  ReceiveRequest* found = nullptr;
  for_each_posted([&](ReceiveRequest& receive) { found = &receive; });
  return found;
}

bool Matcher::wildcard_before(const Envelope& message, std::uint64_t sequence) const {
  for (const ReceiveRequest& receive : wildcards_) {
    if (receive.sequence >= sequence) return false;
    if (matches(receive.envelope, message)) return true;
  }
  return false;
}

void Matcher::add_unexpected(Message& message) {
  unexpected_[bucket(message.envelope)].push_back(message);
  arrivals_.push_back(message);
  ++unexpected_count_;
}

void Matcher::remove(Message& message) {
  base::List<Message, ByEnvelope>::erase(message);
  base::List<Message, ByArrival>::erase(message);
  --unexpected_count_;
}

Message* Matcher::find_unexpected(const Envelope& wanted) const {
  if (unexpected_count_ == 0) return nullptr;
  if (wildcard(wanted)) {
    for (Message& message : arrivals_) {
      if (matches(wanted, message.envelope)) return &message;
    }
    return nullptr;
  }
  for (Message& message : unexpected_[bucket(wanted)]) {
    if (same(wanted, message.envelope)) return &message;
  }
  return nullptr;
}

} // namespace macadam::engine
