// SPDX-License-Identifier: BSD-3-Clause
#include "boot/at_port.h"

namespace macadam::boot {

// Whoever waits with mpiexec came first.
AtDoor AcceptingSide::look(bool late) {
  const auto door_of = [this](Visitor visitor) {
    const Acquaintances::Acquaintance* const known = known_.find(visitor.job);
    if (known == nullptr) return static_cast<Door*>(nullptr);
    met_ = {show_ticket(known->ticket), visitor.rank};
    return known->job->door(visitor.rank);
  };
  const bool leave = late || own_.awaited.load(std::memory_order_relaxed) != 0;
  const AtDoor at = leave ? accepting_.leave(door_of) : accepting_.look(door_of);
  met_.meeting = accepting_.meeting();
  return at;
}

KnockingSide::KnockingSide(Door& own, Door& theirs, const PortKey& port, ProcessName self,
                           const Acquaintances::Acquaintance& job, std::uint32_t rank, DoorUse& use)
    : use_(use.knocks), job_(job.job), met_{show_ticket(job.ticket), rank, random_meeting()},
      knocking_(own, theirs, PortMark::of(port), {self.job, self.rank}, met_.meeting) {}

bool AwaitingOwner::done() noexcept {
  const bool answered = call_.done();
  try {
    if (auto introduction = call_.take_introduction())
      owner_ = read_introduction_(call_, std::move(*introduction));
  } catch (...) {
    error_ = base::caught("for an introduction by mpiexec");
  }
  return answered || error_ || (owner_ && asking_.accepted());
}

// The owner is introduced after this process was, so whoever has accepted is known.
Met AwaitingOwner::take() {
  if (error_) throw std::move(*error_);
  if (!asking_.leave() && owner_) return *owner_;
  return read_(call_, call_.take());
}

} // namespace macadam::boot
