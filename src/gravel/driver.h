// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/relax.h"
#include "gravel/core.h"

namespace macadam::gravel {

// A core, and what it leaves to others: to wait, and to look meanwhile whether those that are
// waited for are still there. Its waits are the only calls of Gravel that block.
class Driver {
 public:
  // As for the core.
  Driver(engine::Networks networks, const boot::Job& job, LedgersOf ledgers_of, std::uint32_t slots)
      : job_(job), core_(std::move(networks), job, std::move(ledgers_of), slots),
        polls_before_idle_(looks_of(core_.networks().nearest().limits())) {}

  [[nodiscard]] Core& core() { return core_; }
  [[nodiscard]] const Core& core() const { return core_; }

  // Makes progress until done() is true. `on`: the peer it depends on, or any_source; whether that
  // one has ended is looked at now and then. Throws what done() throws.
  template <class Done>
  void wait(int on, Done&& done) {
    unsigned fruitless = 0, in_vain = 0; // polls: in a row, and in this wait
    Idling idling(core_.networks());
    while (!done()) {
      if (core_.progress()) {
        fruitless = 0;
        continue;
      }
      // Not those in a row: the looks of others who wait for us come in between, for ever.
      if (++in_vain > patient_polls) [[unlikely]]
        watch(on);
      if (++fruitless <= polls_before_idle_) {
        base::relax();
      } else {
        idling.idle(fruitless - polls_before_idle_);
      }
    }
  }
  // Makes progress for a program that tests whether what depends on `on` is there, and waits
  // elsewhere. True if anything moved.
  bool look(int on);
  // Waits for an announcement from `source`, which `take` takes from the core once it is there.
  template <class Take>
  auto wait_for(int source, Take&& take) {
    auto found = take();
    wait(source, [&] { return found.has_value() || (found = take()).has_value(); });
    return *found;
  }
  // Waits for a request, and finishes it. 0: nothing is to be waited for.
  void finish(RequestId id);
  void finish(Request& request);
  // After something was begun: it leaves now if it can. A connection is waited for, as nobody could
  // say when the program calls again.
  void push();
  // The end: until all that was begun has arrived, or those for whom it was have left as well. Then
  // the core may go, and the networks.
  void leave();

 private:
  // The idle calls of a wait, and its end, also by an exception.
  class Idling {
   public:
    explicit Idling(const engine::Networks& networks) : networks_(networks) {}
    Idling(const Idling&) = delete;
    Idling& operator=(const Idling&) = delete;
    // A program that moves data by explicit calls is soon back, and what peers leave meanwhile in
    // the segment costs them less than a copy by the kernel.
    ~Idling() {
      if (idled_) networks_.pause_wait();
    }
    void idle(unsigned fruitless) {
      idled_ = true;
      networks_.idle(fruitless, longest_sleep_us);
    }

   private:
    const engine::Networks& networks_;
    bool idled_ = false;
  };

  static constexpr int nobody = -2; // beside any_source
  static constexpr unsigned patient_polls = 32;
  static constexpr unsigned longest_sleep_us = 100'000;
  // Looks in vain between two of the clock; not a number of requests that are tested in turn.
  static constexpr unsigned looks_between_watches = 37;

  // Where others need the core, the producer may be one of them.
  static unsigned looks_of(const engine::Limits& network) {
    return network.shares_cores ? 0 : network.polls_before_idle;
  }
  void watch(int on);
  void watch_all();
  void watch_peer(int peer);

  const boot::Job& job_;
  Core core_;
  const unsigned polls_before_idle_;
  double watched_ = 0; // seconds
  unsigned looks_in_vain_ = 0;
};

} // namespace macadam::gravel
