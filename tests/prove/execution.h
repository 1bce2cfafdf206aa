// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "prove/job.h"
#include "prove/network.h"
#include "prove/program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace macadam::prove {

// What can happen next in a run.
struct Event {
  enum class What {
    call,     // the process takes its next step
    deliver,  // the process polls and is given `delivery`
    land,     // an ordered put from `delivery.peer` reaches the process's memory
    progress, // the process polls, nothing has come: what waits for room is tried again
    leave,    // the process waits for its send `number`: it leaves a copy behind
    die,      // the process disappears
  } what;
  int at;
  Delivery delivery{};
  std::size_t number = 0; // among the sends of the process
};
std::string show(const Event& event, const Program& program, std::size_t step);

// A hash of everything in a run that its future depends on.
struct StateKey {
  std::uint64_t first = 0, second = 0;
  bool operator==(const StateKey&) const = default;
};

// The settings of the engines of a program.
base::Settings settings_for(const Conditions& conditions);

// One run of a program on the network whose every step is somebody's decision.
class Execution {
 public:
  // All outlive the execution.
  Execution(const Program& program, const Types& types, Decider& decider);

  [[nodiscard]] const std::vector<Event>& possible();
  void happen(const Event& event);
  // The first violation so far, empty if there is none.
  [[nodiscard]] const std::string& wrong() const {
    return job_.wrong().empty() ? network_.wrong() : job_.wrong();
  }
  // Nothing can happen any more: takes back and receives what is left and looks whether all is in
  // order. See wrong().
  void finish();
  // The run's state, if its engines' steps are the same for equal keys (state.cc).
  [[nodiscard]] StateKey key() const;
  // The step that a process takes next.
  [[nodiscard]] std::size_t next(int rank) const { return job_.next(rank); }

 private:
  friend class StateHash;

  [[nodiscard]] int ranks() const { return static_cast<int>(program_.ranks.size()); }
  [[nodiscard]] bool may_poll(int rank) const;
  void kill(int rank);
  void settle();

  const Program& program_;
  base::Settings settings_;
  Allocations allocations_;
  Network network_;
  Job job_;
  // More than the longest random program needs by far.
  static constexpr std::uint64_t endless = 1'000'000;
  std::uint64_t events_so_far_ = 0;
  unsigned deaths_left_;
  std::vector<Event> events_;
  std::vector<Delivery> deliveries_;
};

} // namespace macadam::prove
