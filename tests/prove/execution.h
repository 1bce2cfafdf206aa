// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"
#include "engine/engine.h"
#include "prove/network.h"
#include "prove/oracle.h"
#include "prove/program.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace macadam::prove {

// The datatypes of programs; one for each thread, as their reference counts are not shared.
struct Types {
  Types();
  datatype::PredefinedTypes predefined;
  datatype::TypeRef gaps; // four bytes in six: xx..xx
};

// What can happen next in a run.
struct Event {
  enum class What {
    call,     // the process takes its next step
    deliver,  // the process polls and is given `delivery`
    land,     // an ordered put from `delivery.peer` reaches the process's memory
    progress, // the process polls, nothing has come: what waits for room is tried again
  } what;
  int at;
  Delivery delivery{};
};
std::string show(const Event& event, const Program& program, std::size_t step);

// A hash of everything in a run that its future depends on.
struct StateKey {
  std::uint64_t first = 0, second = 0;
  bool operator==(const StateKey&) const = default;
};

// One run of a program on real engines, held against the oracle at every match and completion.
class Execution {
 public:
  // All outlive the execution.
  Execution(const Program& program, const Types& types, Decider& decider);
  ~Execution();

  [[nodiscard]] const std::vector<Event>& possible();
  void happen(const Event& event);
  // The first violation so far, empty if there is none.
  [[nodiscard]] const std::string& wrong() const {
    return wrong_.empty() ? network_.wrong() : wrong_;
  }
  // Nothing can happen any more: takes back and receives what is left and looks whether all is in
  // order. See wrong().
  void finish();
  // The run's state, if its engines' steps are the same for equal keys (state.cc).
  [[nodiscard]] StateKey key() const;
  // The step that a process takes next.
  [[nodiscard]] std::size_t next(int rank) const { return processes_[index(rank)].next; }

 private:
  friend class StateHash;

  // A send or receive, from its call on. Numbers and names, never addresses, go into keys.
  struct Operation {
    Execution* run = nullptr;
    Step step;
    int rank = 0;
    int number = 0; // send: the oracle's message; receive: the oracle's receive
    bool receive = false;
    bool cancelling = false;
    engine::Request* request = nullptr; // null once it is complete
    std::vector<unsigned char> memory;  // the user's, with gaps where the type has some
  };
  struct Process {
    std::unique_ptr<engine::Engine> engine;
    std::size_t next = 0;
    std::vector<std::unique_ptr<Operation>> operations; // in the order of the calls
    std::vector<Operation*> receives;                   // as the oracle numbers them
    engine::Message* probed = nullptr;                  // by the last matched probe
    int probed_message = Oracle::none;
    std::vector<std::uint64_t> freed; // contexts

    [[nodiscard]] bool has_freed(std::uint64_t context) const {
      return std::find(freed.begin(), freed.end(), context) != freed.end();
    }
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] bool may_call(int rank) const;
  [[nodiscard]] bool may_poll(int rank) const;
  void call(int rank);
  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  void probe(int rank, const Step& step);
  bool match_probe(int rank, const Step& step);
  void receive_matched(int rank, const Step& step);
  void cancel(Operation& operation);
  void free_context(int rank, int context);
  Operation& begin(int rank, const Step& step);
  engine::Data describe(Operation& operation) const;
  void watch(Operation& operation, engine::Request* request);
  void completed(Operation& operation, const engine::Status& status);
  void check_message(const Operation& operation, const engine::Status& status);
  void begins(int from, int to, const Network::Transfer& put);
  void sees(int at, int from, const Network::Bytes& message);
  void sees_notice(int at, int from, const Network::Transfer& put);
  template <class Is>
  void sees_end(int at, int from, std::uint64_t bytes, Is&& is);
  void arrive_silently(int from, int at);
  void settle();
  void drain();
  void check_rest();
  void check_channels();
  void say(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

  const Program& program_;
  const Types& types_;
  base::Settings settings_;
  Network network_;
  Oracle oracle_;
  std::vector<Process> processes_;
  // The call of send that is under way: its message, and EngineCounters::receiver_early before it.
  struct Sending {
    int message;
    std::uint64_t early;
  };
  const Sending* sending_ = nullptr;
  std::vector<Event> events_;
  std::vector<Delivery> deliveries_;
  std::string wrong_;
};

} // namespace macadam::prove
