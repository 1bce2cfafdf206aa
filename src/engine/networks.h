// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/team.h"
#include "engine/transport.h"

#include <utility>
#include <vector>

namespace macadam::engine {

// The networks of one process, nearest first; usually one. A peer is talked to over the first that
// reaches it, and over no other, so what a transport promises about order holds for the peer.
//
// A list for the engine, rather than one more Transport that forwards: what is best for a message
// (Limits), and which network registers its memory, depends on the peer.
class Networks {
 public:
  // The transports outlive the object and its copies.
  Networks(Transport& only) : list_{&only} {}
  explicit Networks(std::vector<Transport*> nearest_first) : list_(std::move(nearest_first)) {}

  [[nodiscard]] Transport& nearest() const { return *list_.front(); }
  // Connects any two ranks of the job, neighbours too.
  [[nodiscard]] Transport& farthest() const { return *list_.back(); }
  // Throws MPI_ERR_OTHER if no network reaches the rank.
  [[nodiscard]] Transport& reaching(Rank rank) const;
  [[nodiscard]] auto begin() const { return list_.begin(); }
  [[nodiscard]] auto end() const { return list_.end(); }

  // Whether none of a group, of which rank `own` is this process, has to be connected before it is
  // talked to.
  [[nodiscard]] bool connects_none(const RankMap& group, int own) const;

  // Whether all of a group have mapped what nearest() allocates.
  [[nodiscard]] bool maps_all(const RankMap& group) const;

  // As in Transport, for all of them.
  bool poll(Sink& sink) const {
    if (list_.size() == 1) [[likely]]
      return nearest().poll(sink);
    bool moved = false;
    for (Transport* const network : list_)
      moved = network->poll(sink) || moved;
    return moved;
  }
  [[nodiscard]] bool connect_at_start() const;
  [[nodiscard]] bool drain() const;
  [[nodiscard]] bool leave() const;
  // The nearest waits for all; before it sleeps the others are armed.
  void idle(unsigned fruitless, unsigned longest_us) const {
    if (list_.size() == 1)
      nearest().idle(fruitless, longest_us);
    else
      idle_with_others(fruitless, longest_us);
  }
  void begin_wait() const { nearest().begin_wait(); }
  void resume() const { nearest().resume(); }

 private:
  void idle_with_others(unsigned fruitless, unsigned longest_us) const;

  std::vector<Transport*> list_;
};

} // namespace macadam::engine
