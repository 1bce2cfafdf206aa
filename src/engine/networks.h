// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/team.h"
#include "engine/transport.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

namespace macadam::engine {

// The networks of one process, nearest first; usually one, at most two. A peer is talked to over
// the first that reaches it, and over no other, so what a transport promises about order holds for
// the peer.
//
// A list for the engine, rather than one more Transport that forwards: what is best for a message
// (Limits), and which network registers its memory, depends on the peer.
class Networks {
 public:
  // The transports outlive the object and its copies.
  Networks(Transport& only) : list_{&only, nullptr}, size_(1), from_start_(1) {}
  explicit Networks(const std::vector<Transport*>& nearest_first);
  Networks(const Networks& other);
  Networks& operator=(const Networks&) = delete;

  // One more, for processes that the one which there is does not reach. Other threads may be in
  // idle().
  void add(Transport& farthest);

  [[nodiscard]] Transport& nearest() const { return *list_.front(); }
  // Connects any two of a group, neighbours too. The same at all of the group, of whom some may
  // have added a network for the sake of others.
  [[nodiscard]] Transport& farthest(const RankMap& group) const;
  // Throws MPI_ERR_OTHER if no network reaches the rank.
  [[nodiscard]] Transport& reaching(Rank rank) const;
  [[nodiscard]] Transport* const* begin() const { return list_.data(); }
  [[nodiscard]] Transport* const* end() const { return list_.data() + size(); }

  // Whether none of a group, of which rank `own` is this process, has to be connected before it is
  // talked to.
  [[nodiscard]] bool connects_none(const RankMap& group, int own) const;

  // Limits::messages_by of the one that has most moved by the kernel.
  [[nodiscard]] MessagesBy messages_by() const;

  // Whether all of a group have mapped what nearest() allocates.
  [[nodiscard]] bool maps_all(const RankMap& group) const;

  // As in Transport, for all of them.
  bool poll(Sink& sink) const {
    if (size() == 1) [[likely]]
      return nearest().poll(sink);
    bool moved = false;
    for (Transport* const network : *this)
      moved = network->poll(sink) || moved;
    return moved;
  }
  [[nodiscard]] bool connect_at_start() const;
  [[nodiscard]] bool drain() const;
  [[nodiscard]] bool leave() const;
  // The nearest waits for all; before it sleeps the others are armed.
  void idle(unsigned fruitless, unsigned longest_us) const {
    if (size() == 1)
      nearest().idle(fruitless, longest_us);
    else
      idle_with_others(fruitless, longest_us);
  }
  void begin_wait() const { nearest().begin_wait(); }
  void give_turn() const { nearest().give_turn(); }
  void resume() const { nearest().resume(); }
  void pause_wait() const { nearest().pause_wait(); }

 private:
  void idle_with_others(unsigned fruitless, unsigned longest_us) const;

  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_acquire); }

  std::array<Transport*, 2> list_{};
  std::atomic<std::size_t> size_;
  std::size_t from_start_; // so many have not been added
};

} // namespace macadam::engine
