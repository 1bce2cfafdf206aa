// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"

#include <atomic>
#include <bit>
#include <cstdint>

// A process that asks a peer to move data for it may want to do that itself after all, if the peer
// stops polling before it reads the request; and the peer might come back late. So a request names
// a claim, a word of the asking process's segment that holds a ticket. Whoever sets it to zero, the
// peer or the asking process, moves the data, and the other one never does.
namespace macadam::net::shm {

inline constexpr std::uint32_t no_claim = ~std::uint32_t{0};

// The claims of one process.
class Claims {
 public:
  // The segment outlives them.
  explicit Claims(SegmentHeader& own) : own_(own) {}

  // A claim that is free, no_claim if all are in use.
  std::uint32_t take() {
    const auto claim = static_cast<std::uint32_t>(std::countr_one(used_));
    if (claim >= SegmentHeader::claims) return no_claim;
    used_ |= 1u << claim;
    return claim;
  }
  void give_back(std::uint32_t claim) { used_ &= ~(1u << claim); }

  // Opens a claim for one request; returns its ticket.
  std::uint32_t offer(std::uint32_t claim) {
    if (++last_ticket_ == 0) ++last_ticket_;
    own_.claim[claim].store(last_ticket_, std::memory_order_release);
    return last_ticket_;
  }
  // True if the peer has not taken it, and now never will.
  bool take_back(std::uint32_t claim, std::uint32_t ticket) {
    return take_from(own_, claim, ticket);
  }
  // The peer's end: true if the data are this process's to move.
  static bool take_from(SegmentHeader& asking, std::uint32_t claim, std::uint32_t ticket) {
    return asking.claim[claim].compare_exchange_strong(ticket, 0, std::memory_order_acq_rel);
  }

  [[nodiscard]] unsigned in_use() const { return static_cast<unsigned>(std::popcount(used_)); }

 private:
  SegmentHeader& own_;
  std::uint32_t used_ = 0; // a bit for each
  std::uint32_t last_ticket_ = 0;
};
static_assert(SegmentHeader::claims < 32);

} // namespace macadam::net::shm
