// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/acquaintances.h"
#include "boot/call.h"
#include "boot/door.h"
#include "boot/universe.h"

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace macadam::boot {

// Of a process, by its threads: one of them may accept at its door, and one knock elsewhere.
struct DoorUse {
  bool accepts = false;
  bool knocks = false;
};

class Flagged {
 public:
  explicit Flagged(bool& flag) : flag_(flag) { flag_ = true; }
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;
  ~Flagged() { flag_ = false; }

 private:
  bool& flag_;
};

// Accepts at this process's door, as `Side` of an AtPort.
class AcceptingSide {
 public:
  AcceptingSide(Door& own, PortMark port, Acquaintances& known, DoorUse& use)
      : own_(own), known_(known), use_(use.accepts), accepting_(own, port) {}

  AtDoor look(bool late);
  [[nodiscard]] const Met& met() const { return met_; }

 private:
  Met met_;
  Door& own_;
  Acquaintances& known_;
  Flagged use_;
  Accepting accepting_;
};

// Knocks at another's.
class KnockingSide {
 public:
  // `theirs` is the door of rank `rank` of `job`; `self` is this process's name.
  KnockingSide(Door& own, Door& theirs, const PortKey& port, ProcessName self,
               const Acquaintances::Acquaintance& job, std::uint32_t rank, DoorUse& use);

  AtDoor look(bool late) { return late ? knocking_.leave() : knocking_.look(); }
  [[nodiscard]] const Met& met() const { return met_; }

 private:
  Flagged use_;
  const std::shared_ptr<const MetJob> job_; // whose memory the door is in
  const Met met_;
  Knocking knocking_;
};

// Waits at a port: for a moment at the door, and then with mpiexec, which is asked by `ask`.
template <class Side, class Clock = std::chrono::steady_clock>
class AtPort final : public Pending<Met> {
 public:
  using Ask = std::function<PendingResult<Met>()>;
  template <class... Arguments>
  explicit AtPort(Ask ask, Arguments&&... arguments)
      : ask_(std::move(ask)), side_(std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] bool done() noexcept override {
    if (asked_) return asked_->done();
    const AtDoor at = side_.look(Clock::now() >= until_);
    if (at == AtDoor::elsewhere) asked_ = ask_();
    return at == AtDoor::met;
  }
  Met take() override { return asked_ ? asked_->take() : side_.met(); }

 private:
  // What it takes mpiexec to bring two processes together, about: waiting for as long at most
  // doubles the time.
  static constexpr std::chrono::microseconds moment{100};

  const Ask ask_;
  const typename Clock::time_point until_ = Clock::now() + moment;
  Side side_;
  PendingResult<Met> asked_; // null: at the door
};

// Connects with mpiexec, which may introduce this process to the port's owner and that to this one:
// then either of them answers.
class AwaitingOwner final : public Pending<Met> {
 public:
  // Both know the job from then on.
  using Read = std::function<Met(Call& call, PacketReader packet)>;
  AwaitingOwner(Call::Whom whom, PacketWriter request, std::optional<double> longest, Door& own,
                const PortKey& port, std::uint32_t meeting, DoorUse& use, Read read_introduction,
                Read read)
      : use_(use.knocks), asking_(own, PortMark::of(port), meeting),
        call_(std::move(whom), std::move(request), longest),
        read_introduction_(std::move(read_introduction)), read_(std::move(read)) {}

  [[nodiscard]] bool done() noexcept override;
  Met take() override;

 private:
  Flagged use_;
  Asking asking_; // before mpiexec knows
  Call call_;
  const Read read_introduction_, read_;
  std::optional<Met> owner_; // once introduced
  std::optional<base::Error> error_;
};

} // namespace macadam::boot
