// SPDX-License-Identifier: BSD-3-Clause
// The end of a write seen by its last byte (Small & Yuan, section 4.1, "Eliminating the FIN
// messages in common cases"): the receiver tells what the last byte of its buffer is and looks
// whether it changes. The sender leaves FIN out if its message is just as long and ends with
// another byte. Sound only where bytes are placed in order; a setting, for comparison, since a
// notification (put_notified) does the same without looking. Nothing ends a sleep, so such waits
// must not sleep.
#include "engine/engine.h"

#include <cstring>
#include <utility>

namespace macadam::engine {
namespace {

// Few messages end with it.
constexpr std::byte rare{0xe5};

std::uint8_t last_byte_of(const std::byte* data, std::size_t bytes) {
  return static_cast<std::uint8_t>(*static_cast<const volatile std::byte*>(data + bytes - 1));
}

} // namespace

void Engine::watch(ReceiveRequest& receive, wire::ReceiverReady& ready) noexcept {
  if (receive.capacity == 0) return;
  std::byte* const memory = destination(receive);
  if (receive.bounce != nullptr)
    memory[receive.capacity - 1] = rare; // not what lay there by chance
  receive.last_byte = last_byte_of(memory, receive.capacity);
  if (base::ListNode<Watched>& node = receive; !node.linked()) watched_.push_back(receive);
  ready.watched = true;
  ready.last_byte = receive.last_byte;
}

void Engine::stop_watching(ReceiveRequest& receive) noexcept {
  base::List<ReceiveRequest, Watched>::erase(receive);
}

bool Engine::is_seen_by_last_byte(const SendRequest& send, const Announcement& target) {
  return send.bytes == target.capacity && send.bytes != 0 &&
         last_byte_of(flat(send), send.bytes) != target.last_byte;
}

// Between the networks and the engine, where the setting is on: what comes finds the messages
// before it complete, if their end is seen in memory only.
class Engine::LastByteSink final : public Sink {
 public:
  explicit LastByteSink(Engine& engine) : engine_(engine) {}

  void on_message(Rank source, const std::byte* message, std::size_t bytes) noexcept override {
    engine_.finish_written_before(source, message);
    engine_.on_message(source, message, bytes);
  }
  void on_first_fragment(Rank source, const std::byte* fragment, std::size_t bytes,
                         std::size_t rest) noexcept override {
    engine_.finish_written_before(source, fragment);
    engine_.on_first_fragment(source, fragment, bytes, rest);
  }
  void on_put(Rank source, std::uint32_t notification, std::size_t bytes) noexcept override {
    engine_.finish_written_before(notification);
    engine_.on_put(source, notification, bytes);
  }
  // None of these ends a message that could be mistaken for another.
  void on_next_fragment(Rank source, const std::byte* fragment,
                        std::size_t bytes) noexcept override {
    engine_.on_next_fragment(source, fragment, bytes);
  }
  void on_complete(std::uint64_t cookie, bool ok) noexcept override {
    engine_.on_complete(cookie, ok);
  }
  void on_peer(Rank peer, PeerState state) noexcept override { engine_.on_peer(peer, state); }
  void on_failure(base::Error&& why) noexcept override { engine_.on_failure(std::move(why)); }

 private:
  Engine& engine_;
};

bool Engine::poll_and_look() noexcept {
  LastByteSink sink(*this);
  const bool moved = networks_.poll(sink);
  return look_at_last_bytes(moved) || moved;
}

// A poll that finds nothing has nothing left that was sent before what is seen in memory now, so
// the receives whose byte has changed are complete, in the order of their messages.
bool Engine::look_at_last_bytes(bool moved) noexcept {
  bool any = false;
  for (auto at = watched_.begin(); at != watched_.end();) {
    ReceiveRequest& receive = *at;
    ++at;
    if (!has_changed(receive)) continue;
    if (!moved && (receive.stage != ReceiveStage::posted || is_next(receive))) {
      finish_written(*receive.peer, receive, receive.envelope.source, receive.capacity);
      // Its completion may have started and ended others: the next poll goes on.
      return true;
    }
    any = true;
  }
  return any;
}

bool Engine::has_changed(const ReceiveRequest& receive) {
  return last_byte_of(destination(receive), receive.capacity) != receive.last_byte;
}

// All messages before its own have been matched.
bool Engine::is_next(const ReceiveRequest& receive) const {
  return ordinal_of(receive) == receive.channel->matched;
}

// A packet is about to be handled. Messages of its channel that were written before it was sent,
// and whose end is seen in memory only, come first: or it would get the receive of one of them.
void Engine::finish_written_before(Rank source, const std::byte* packet) noexcept {
  Peer* const peer = known(source);
  if (peer == nullptr) return;
  const auto header = [packet]<class Header>(Header copy) {
    std::memcpy(&copy, packet, sizeof copy);
    return copy;
  };
  switch (static_cast<wire::Kind>(packet[0])) {
  case wire::Kind::eager:
  case wire::Kind::eager_synchronous: {
    const auto eager = header(wire::Eager{});
    const std::uint64_t context = std::uint64_t{eager.context_high} << 32 | eager.context_low;
    return finish_written_before(peer->channels.find(context, eager.tag), nullptr, nullptr);
  }
  case wire::Kind::sender_ready: {
    const auto ready = header(wire::SenderReady{});
    return finish_written_before(peer->channels.find(ready.context, ready.tag), nullptr,
                                 ready.counted ? &ready.ordinal : nullptr);
  }
  case wire::Kind::fin_to_receiver: {
    const auto fin = header(wire::Fin{});
    const ReceiveRequest* const receive = receive_ids_.find(fin.id);
    if (receive == nullptr || receive->stage != ReceiveStage::posted) return;
    return finish_written_before(receive->channel, receive, nullptr);
  }
  default:
    return;
  }
}

// The same of a notification.
void Engine::finish_written_before(std::uint32_t notification) noexcept {
  if ((notification & PartitionedTable::notification_bit) != 0) return;
  const ReceiveRequest* const receive = receive_ids_.find_short(notification);
  if (receive != nullptr && receive->stage == ReceiveStage::posted)
    finish_written_before(receive->channel, receive, nullptr);
}

// ... up to the receive that the packet is for, or up to the message that it offers: a message may
// be offered first and then be written all the same (Figure 5 b).
void Engine::finish_written_before(Channel* counting, const ReceiveRequest* its,
                                   const std::uint32_t* offered) noexcept {
  while (counting != nullptr && counting->pending != 0) {
    if (offered != nullptr && static_cast<std::uint32_t>(counting->matched) == *offered) return;
    ReceiveRequest* next = nullptr;
    for_each_pending(*counting, [&](ReceiveRequest& receive) {
      if (next == nullptr) next = &receive;
    });
    if (next == nullptr || next == its) return;
    const base::ListNode<Watched>& node = *next;
    if (!node.linked() || !has_changed(*next)) return;
    finish_written(*next->peer, *next, next->envelope.source, next->capacity);
  }
}

} // namespace macadam::engine
