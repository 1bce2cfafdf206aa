// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"
#include "engine/engine.h"
#include "prove/oracle.h"
#include "prove/partitions.h"
#include "prove/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace macadam::prove {

// The datatypes of programs; one for each thread, as their reference counts are not shared.
struct Types {
  Types();
  datatype::PredefinedTypes predefined;
  datatype::TypeRef noncontiguous; // four bytes in six: xx..xx
};

// The processes of a program: real engines on whatever network they are given, held against the
// oracle at every match and completion. Whoever drives it says who takes a step, and tells what the
// network delivers before an engine is given it.
class Job {
 public:
  // All outlive the job.
  Job(const Program& program, const Types& types, const base::Settings& settings);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  // Makes the engine of a process. The transports outlive the job.
  void start(int rank, engine::Networks networks);
  // Ends it, at rest.
  void stop(int rank) { processes_[index(rank)].engine.reset(); }
  [[nodiscard]] bool is_dead(int rank) const { return processes_[index(rank)].dead; }
  [[nodiscard]] engine::Engine& engine(int rank) const { return *processes_[index(rank)].engine; }

  // The process's next step can be taken now (it is there, and it need not wait).
  [[nodiscard]] bool may_call(int rank) const;
  void call(int rank);
  // The step that a process takes next.
  [[nodiscard]] std::size_t next(int rank) const { return processes_[index(rank)].next; }

  // Why the engine of a process cannot go on with anybody; null if it can, or has ended.
  [[nodiscard]] const base::Error* failure(int rank) const {
    const auto& engine = processes_[index(rank)].engine;
    return engine == nullptr ? nullptr : engine->failure();
  }

  // What the network is about to deliver to process `at`: a message (its first `bytes`, of `all`),
  // the notification of a put, the news that a peer has failed.
  void sees(int at, int from, const std::byte* packet, std::size_t all);
  void sees_notification(int at, int from, std::uint32_t notification, std::size_t bytes);
  void loses(int at, int from);
  // The process disappears. Its engine, as it stands, for who still has its stack.
  std::unique_ptr<engine::Engine> die(int rank);
  // Its engine cannot go on with anybody.
  void breaks_down(int rank);
  // A poll of this process has ended.
  void polled(int rank);

  // Sends of which a waiting process may leave copies behind, by their numbers; and one does so.
  [[nodiscard]] std::vector<std::size_t> may_leave(int rank) const;
  void leave(int rank, std::size_t send);

  // Receives that are being cancelled wait for no other process, unless it has sent a message for
  // them.
  void check_cancels(int rank);

  // The end, each with the network coming to rest in between. What must be complete is complete;
  // then each process takes back the receives that are left, and receives what is unexpected (true
  // if there was any); then nothing may be left.
  void check_rest();
  // Nothing waits for a process to look but short messages of a burst, and these not behind a look.
  void check_held(int rank, bool has_looked);
  void take_back(int rank);
  bool receive_rest(int rank);
  void check_end();
  // Each time that there was no memory for something one message may be lost, one call refused, or
  // one process broken down.
  void check_harm(unsigned times_without_memory);

  // The first violation so far, empty if there is none.
  [[nodiscard]] const std::string& wrong() const { return wrong_; }
  void say(std::string what) {
    if (wrong_.empty()) wrong_ = std::move(what);
  }

 private:
  friend class Execution;
  friend class StateHash;

  // A send or receive, from its call on. Numbers and names, never addresses, go into keys.
  struct Operation {
    Job* job = nullptr;
    Step step;
    int rank = 0;
    int number = 0; // send: the oracle's message; receive: the oracle's receive
    bool receive = false;
    bool cancelling = false;
    engine::Request* request = nullptr; // null once it is complete
    std::uint64_t send_id = 0;          // of a send to be cancelled, also after its process's end
    std::vector<unsigned char> memory;  // the user's, with gaps where the type has some
  };
  // What a process had counted when it last polled.
  struct Sending {
    std::uint64_t receiver_early = 0, last_byte = 0;
  };
  struct Process {
    std::unique_ptr<engine::Engine> engine;
    engine::Limits limits;
    std::size_t next = 0;
    std::vector<std::unique_ptr<Operation>> operations; // in the order of the calls
    std::vector<Operation*> receives;                   // as the oracle numbers them
    std::vector<Operation*> sends;
    std::vector<std::unique_ptr<PartitionedOperation>> partitioned; // in the order of the calls
    engine::Message* probed = nullptr;                              // by the last matched probe
    int probed_message = Oracle::none;
    std::vector<std::uint64_t> freed; // contexts
    bool dead = false;
    std::vector<int> lost;      // peers that have failed, as the process was told
    Sending* sending = nullptr; // the call of send that is under way
    int posting = Oracle::none; // the receive that is

    [[nodiscard]] bool has_freed(std::uint64_t context) const {
      return std::find(freed.begin(), freed.end(), context) != freed.end();
    }
    [[nodiscard]] bool has_lost(int peer) const {
      return std::find(lost.begin(), lost.end(), peer) != lost.end();
    }
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  static std::string name_of(const Operation& operation);
  void send(int rank, const Step& step);
  void receive(int rank, const Step& step);
  void probe(int rank, const Step& step);
  bool match_probe(int rank, const Step& step);
  void receive_matched(int rank, const Step& step);
  void cancel(Operation& operation);
  void withdraw(Operation& operation);
  void sees_withdraw(int at, int from, std::uint64_t send_id);
  static bool is_leaving(const Operation& send);
  void free_context(int rank, int context);
  Operation& begin(int rank, const Step& step);
  engine::Data describe(Operation& operation) const;
  void watch(Operation& operation, engine::Request* request);
  void completed(Operation& operation, engine::Status status); // a copy: the request goes
  void failed(Operation& operation);
  void count_refused_call(int rank);
  void lost_for_want_of_memory(Operation& operation);
  [[nodiscard]] bool has_broken_down(int rank) const { return failure(rank) != nullptr; }
  void check_message(const Operation& operation, const engine::Status& status);
  template <class Is>
  void sees_end(int at, int from, std::uint64_t bytes, Is&& is);
  void arrive_silently(int from, int at);
  void check_channels();

  // partitions.cc
  void make_partitioned(int rank, const Step& step);
  void start_round(int rank, int number);
  void mark_partition(int rank, const Step& step);
  void ended_round(PartitionedOperation& operation, const engine::Status& status);
  void check_inactive(PartitionedOperation& operation);
  void check_partitions(int rank);
  void check_partitions_at_rest();
  [[nodiscard]] PartitionedOperation* other_side(const PartitionedOperation& operation) const;
  void release_partitioned();
  void check_channel(int rank, const engine::Peer& peer, const engine::Channel& channel);

  const Program& program_;
  const Types& types_;
  const base::Settings& settings_;
  Oracle oracle_;
  std::vector<Process> processes_;
  std::vector<std::pair<int, int>> broken_off_; // operations that failed: process and peer
  std::set<int> harmed_;                        // messages that memory lacked for, on either side
  unsigned refused_calls_ = 0;                  // ... and calls
  unsigned breakdowns_ = 0;
  std::string wrong_;
};

} // namespace macadam::prove
