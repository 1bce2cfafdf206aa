// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/list.h"
#include "boot/trace_file.h"
#include "engine/engine.h"
#include "engine/observer.h"
#include "mpi/alarm.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace macadam::mpi {

class Process;

// The timeline of a process (MACADAM_TRACE): its calls and the steps of its messages, the latest
// million of them in a ring in memory, which goes to a file at the end.
//
// A record costs about two looks at the clock, as much as a short message. So the trace may take a
// hundredth of the time and no more: a process that does more than can be noted in that gets a
// pause of some milliseconds, in which its short messages take their short paths and the entry
// points look at nothing. Rendezvous are noted all the same. A pause is a record, which says how
// many messages went in it. Pauses end when the clock shows a multiple of their period: on all
// ranks of a machine together, which so see the same moments, and wait for each other's records
// once.
class Trace final : public engine::Observer {
 public:
  // A call that is under way: lives in its entry point.
  struct Call : base::ListNode<> {
    const char* function;
    double begun;         // below 0: before the clock
    std::uint16_t thread; // counted from 0
  };

  // `alarm` ends pauses; without one there are none, and all is noted.
  Trace(Process& process, std::string folder, std::unique_ptr<Alarm> alarm);

  // Time runs, by the clock of this transport, until stop(). The engine has this observer, alone or
  // beside one that must see all messages.
  void start(engine::Engine& engine, const engine::Transport& clock, bool alone);
  void stop();

  // In a pause, which is not over: nothing is to be noted.
  [[nodiscard]] bool rests() const noexcept { return resting_ && !alarm_->rang(); }
  void enter(Call& call, const char* function) noexcept;
  void leave(Call& call) noexcept;
  void on_step(const engine::Step& step) noexcept override;

  // The file, with all that was noted so far and the calls under way. Says on the standard error
  // what goes wrong.
  void write() noexcept;

 private:
  static constexpr std::size_t capacity = std::size_t{1} << 20; // records
  // Seconds that records may take at once, and the part of the time that they may take.
  static constexpr double burst = 200e-6;
  static constexpr double share = 1. / 100;
  static constexpr double period = burst / share; // of pauses

  boot::TraceRecord& add(double now) noexcept;
  void rest(double now) noexcept;
  void go_on(double now) noexcept;
  void name_context(std::uint64_t context) noexcept;
  std::uint16_t this_thread() noexcept;
  [[nodiscard]] double cost_of_record() const;
  [[nodiscard]] std::string header(std::size_t records,
                                   const std::vector<const char*>& functions) const;

  Process& process_;
  const std::string folder_;
  const std::unique_ptr<Alarm> alarm_;
  engine::Engine* engine_ = nullptr;
  const engine::Transport* clock_ = nullptr;
  bool alone_ = true;
  bool resting_ = false;
  double rests_since_ = 0;
  std::uint64_t sent_before_ = 0, bytes_before_ = 0; // the pause
  double cost_ = 0;                                  // of a record, seconds
  double left_ = burst;                              // that records may take
  double last_ = 0;                                  // record
  std::unique_ptr<boot::TraceRecord[]> ring_;
  std::uint64_t added_ = 0;
  base::List<Call> open_;
  std::vector<std::thread::id> threads_;
  std::uint64_t last_context_ = ~std::uint64_t{0};
  std::map<std::uint64_t, std::string> contexts_; // names of communicators
};

} // namespace macadam::mpi
