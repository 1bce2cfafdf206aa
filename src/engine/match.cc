// SPDX-License-Identifier: BSD-3-Clause
#include "engine/match.h"

namespace macadam::engine {

// The oldest wildcard that takes this message, if it was posted before `specific`.
ReceiveRequest* Matcher::older_wildcard(Envelope message, ReceiveRequest* specific) const {
  for (ReceiveRequest& receive : wildcards_[bucket(message.context)]) {
    if (specific != nullptr && receive.sequence > specific->sequence) break;
    if (matches(receive.envelope, message)) return &receive;
  }
  return specific;
}

bool Matcher::wildcard_before(const Envelope& message, std::uint64_t sequence) const {
  for (const ReceiveRequest& receive : wildcards_[bucket(message.context)]) {
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

Message* Matcher::find_sent(const Envelope& envelope, const Peer& peer,
                            std::uint64_t send_id) const {
  for (Message& message : unexpected_[bucket(envelope)]) {
    if (message.peer == &peer && message.send_id == send_id) return &message;
  }
  return nullptr;
}

Message* Matcher::search_unexpected(const Envelope& wanted) const {
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
