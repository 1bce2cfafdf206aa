// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/messages/shared_queue.h"

#include <atomic>

namespace macadam::net::shm {

// An access of this process, or of the kernel for it, to memory of another one: a copy of what the
// other has offered, or into what it has offered for that.
//
// A process whose operations end before their time gives their memory back to its program, though
// peers know where it is. So it first bars a peer that has failed, or closes its memory to all if
// it communicates no more, and waits for an access that has begun. The peer says in its seat that
// it accesses, and then looks whether it may: of the two at least one sees the other.
class Access {
 public:
  // `seat` is this process's in the owner's segment, which begins with `owner`. They outlive it.
  Access(Seat& seat, const SegmentHeader& owner) : seat_(seat), owner_(owner) {
    seat_.accesses_.store(true, std::memory_order_seq_cst);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  ~Access() { seat_.accesses_.store(false, std::memory_order_release); }

  // Asked before: whether it must not be. Asked behind it: whether what was read may be other data.
  [[nodiscard]] bool is_barred() const {
    return owner_.closed.load(std::memory_order_seq_cst) != 0 ||
           seat_.barred_.load(std::memory_order_seq_cst);
  }

 private:
  Seat& seat_;
  const SegmentHeader& owner_;
};

} // namespace macadam::net::shm
