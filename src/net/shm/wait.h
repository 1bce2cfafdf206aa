// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/shm/segment.h"
#include "net/shm/system.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace macadam::net::shm {

// What SegmentHeader::waiting says of its process: 0, or 1 + its core, and in a pause this bit.
struct Waiting {
  static constexpr std::uint32_t pause_bit = 1u << 31;
  bool is = false;     // it does nothing but poll, or will soon
  bool pauses = false; // ... and not now
  unsigned core = 0;
};

// The cores that the processes of a job share on a machine, where it has more processes than cores.
struct SharedCores {
  unsigned cores = 0; // 0: each process has one
  unsigned processes = 0;
  // Processes for a core, at most, if they are spread evenly.
  [[nodiscard]] unsigned each() const { return cores == 0 ? 1 : (processes + cores - 1) / cores; }
};

// Whether yields are worth their time. Where the others on a core are processes of this job that
// wait too, a yield costs a microsecond. Where another program computes there, it gives the core
// away for a slice of the scheduler's, milliseconds; who sleeps instead is let in at once when it
// is woken. So if other programs took slices for much of the last while, there are no yields for
// some time. A clock costs a tenth of a yield, so one in eight is measured, and for a while all
// once a slice was seen. Any thread.
class YieldCost {
 public:
  // Whether the next yield is to be measured, and what it then took, seconds.
  [[nodiscard]] bool is_due() {
    const unsigned closely = closely_.load(std::memory_order_relaxed);
    if (closely != 0) closely_.store(closely - 1, std::memory_order_relaxed);
    const unsigned yields = yields_.load(std::memory_order_relaxed) + 1;
    yields_.store(yields, std::memory_order_relaxed);
    return closely != 0 || yields % sampled == 0;
  }
  // True if slices took much of the last while; if other programs did, avoid() more.
  [[nodiscard]] bool add(double before, double after) {
    return after - before >= slice && add_slice(before, after);
  }
  void avoid(double now) { too_high_until_.store(now + time_without, std::memory_order_relaxed); }

  // `now` gives the time.
  template <class Now>
  [[nodiscard]] bool is_too_high(Now&& now) const {
    const double until = too_high_until_.load(std::memory_order_relaxed);
    return until != 0 && now() < until;
  }

 private:
  static constexpr unsigned sampled = 8, measured_closely = 1000;
  static constexpr double slice = 0.5e-3;   // longer than processes that wait take turns
  static constexpr double window = 50e-3;   // in which ...
  static constexpr double most_lost = 8e-3; // ... so much may be lost
  static constexpr double time_without = 100e-3;
  [[nodiscard]] bool add_slice(double before, double after);

  std::atomic<unsigned> yields_ = 0;
  std::atomic<unsigned> closely_ = 0; // so many of the next are all measured
  std::atomic<double> began_ = 0;     // the window, with the first slice's end
  std::atomic<double> lost_ = 0;      // ... since
  std::atomic<double> too_high_until_ = 0;
};

// How a process waits: spins, then yields, then sleeps on the doorbell in its segment. A long wait
// that keeps others from a core sleeps sooner.
//
// Two that wait for each other on one core stay there, since each gives it to the other before the
// scheduler has a reason to part them, and so do three beside one that has a core alone; so those
// that have the highest ranks leave a core with more than its share, if no other program wants one.
// While yields cost too much there are none (YieldCost).
//
// A sender publishes a message and then looks whether the receiver sleeps, without a fence between
// the two. So the receiver, once it has announced its sleep, makes every other process pass a
// barrier (membarrier) and polls once more: either that poll finds the message or the sender sees
// the sleep.
class Waiter {
 public:
  // `spin_us`: microseconds before the first yield, -1: decide. With more processes than cores a
  // wait yields at once, as another process needs the core.
  Waiter(System& system, SegmentHeader& own, SharedCores shared, std::int64_t spin_us);

  // Not: others need the core that this process waits on.
  [[nodiscard]] bool has_core() const { return spin_seconds_ > 0 || !oversubscribed(); }

  // See engine::Transport. Any thread. `in_transfer`: long data were under way just now.
  bool idle(unsigned fruitless, unsigned longest_us, bool in_transfer = false);
  void begin_wait();
  void give_turn();
  void resume();
  void pause(); // engine::Transport::pause_wait()
  // Gives the core to those that share it, unless that costs too much.
  void pass_core();

  // See engine::Transport.
  void sleep_sooner() { longest_yielding_.store(few_polls, std::memory_order_relaxed); }

  // A process that this one talks to, at most once each. Its header outlives the waits.
  void meet(const SegmentHeader& neighbour, bool of_lower_rank);

  // Whether this process does nothing but poll.
  [[nodiscard]] bool waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // What others see of a process.
  [[nodiscard]] static Waiting seen(const SegmentHeader& process) {
    const std::uint32_t word = process.waiting.load(std::memory_order_relaxed);
    return {word != 0, (word & Waiting::pause_bit) != 0, (word & ~Waiting::pause_bit) - 1};
  }
  // Tells peers that this process is occupied, until told otherwise.
  void set_waiting(bool waiting) {
    waiting_.store(waiting, std::memory_order_relaxed);
    own_.waiting.store(waiting ? 1 + system_.core() : 0, std::memory_order_release);
  }

  // What the process had stored before is there to be read then.
  [[nodiscard]] static bool sleeps(const SegmentHeader& process) {
    return process.asleep.load(std::memory_order_acquire) != 0;
  }
  // After a message was written: wakes the receiver if it sleeps. True if it did.
  bool wake(SegmentHeader& receiver) const {
    if (receiver.asleep.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    return ring_bell(receiver);
  }
  // After a successful poll: another thread of ours that sleeps should look again.
  void rouse() {
    if (own_.asleep.load(std::memory_order_relaxed) != 0) [[unlikely]]
      rouse_sleepers();
  }

  // Whether a sleep has ended since this was asked last.
  bool has_slept() { return slept_.load(std::memory_order_relaxed) && slept_.exchange(false); }

  // Whether a sleep lasts until a message comes; if not, it is cut at a millisecond.
  [[nodiscard]] bool has_barrier() const { return has_barrier_; }
  [[nodiscard]] bool oversubscribed() const { return shared_.cores != 0; }

  // Counted for users; relaxed, by any thread.
  struct Counts {
    std::uint64_t yields = 0;
    std::uint64_t sleeps = 0;
    std::uint64_t cores_left = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  bool ring_bell(SegmentHeader& receiver) const;
  void rouse_sleepers();
  // What a wait does before it sleeps, of a process that has a core and of one that shares it.
  // False: it is time to sleep.
  bool spin_or_yield(unsigned fruitless);
  bool yield_to_others(unsigned fruitless, bool in_transfer);
  bool yield_unless_costly();
  bool is_within(double seconds);
  void learn();
  [[nodiscard]] bool is_crowded(double now);
  [[nodiscard]] bool others_want_a_core();
  [[nodiscard]] bool others_keep_wanting(double now);
  void leave_crowded_core();
  void yield();
  void announce_sleep();
  void sleep(unsigned longest_us);

  System& system_;
  SegmentHeader& own_;
  const SharedCores shared_;
  std::atomic<bool> waiting_ = false;
  YieldCost cost_;
  const double spin_seconds_;
  bool has_barrier_ = false;
  // Where they share cores: a yield lets the others run; if so many did not help, the message is
  // not near. With another network to poll, turns are so long that many who yield let hardly
  // anybody work: an alltoall of 8 ranks on 2 cores, half of them on another machine, takes 60 us
  // with 8 yields, and 60 or 350 with 40.
  static constexpr unsigned many_polls = 40, few_polls = 8;
  std::atomic<unsigned> longest_yielding_ = many_polls;
  std::atomic<double> began_ = 0;    // when the present wait first looked at the clock; 0: not yet
  std::atomic<unsigned> yields_ = 0; // in the present wait
  std::atomic<bool> yields_help_ = false; // see learn()
  std::atomic<double> looked_ = 0;        // when is_crowded() last asked the system ...
  std::atomic<bool> crowded_ = false;     // ... and its answer
  std::atomic<unsigned> wanted_ = 0;      // answers of others_want_a_core(), yes less no, to yields
  std::atomic<double> wanted_at_ = 0;     // when the last yes was
  std::atomic<double> left_ = 0;          // when this process last left a core, or thought of it
  // Those met, as many as there is room for.
  struct Neighbour {
    const SegmentHeader* header = nullptr;
    bool of_lower_rank = false;
  };
  static constexpr unsigned most_neighbours = 63;
  std::array<Neighbour, most_neighbours> neighbours_;
  std::atomic<unsigned> met_ = 0;           // of these; those before are not changed any more
  std::atomic<std::uint32_t> sleepers_ = 0; // our threads that sleep
  std::atomic<bool> slept_ = false;
  Counts counts_;
};

} // namespace macadam::net::shm
