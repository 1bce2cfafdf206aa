// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"
#include "tools/mpiexec/hang_watch.h"
#include "tools/mpiexec/options.h"
#include "tools/mpiexec/output.h"
#include "tools/mpiexec/placement.h"
#include "tools/mpiexec/questioned.h"
#include "tools/mpiexec/remote_machine.h"
#include "tools/mpiexec/signals.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace macadam::tools {

// A job on several machines, in the mpiexec that the user has started: connects with a proxy on
// each machine (this one too, if it has ranks), of many machines with most through others, tells it
// what to start, passes on what they have to know of each other, and is to the user what a
// Supervisor is for one machine: one thread, one poll(), one exit status, one line about the first
// failure.
class Cluster final : private Questioned {
 public:
  // `options` outlives it. Throws std::runtime_error.
  Cluster(const Options& options, Placement placement);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Returns mpiexec's exit status. Throws std::runtime_error before a rank is started.
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  using Deadline = std::optional<Clock::time_point>;
  using Machine = std::uint32_t; // index

  // Of one machine, beside what RemoteMachine has.
  struct Account {
    std::uint32_t arrived = 0;              // rounds of the barrier
    std::uint32_t others = 0;               // ranks of spawned jobs that run there
    std::array<std::size_t, 2> unwritten{}; // bytes of output that were not said to be taken
  };

  [[nodiscard]] std::chrono::duration<double> silence() const {
    return std::chrono::duration<double>(options_.silence_seconds);
  }
  void connect();
  void connect_with(std::vector<Machine> those);
  void connect_around_branches();
  [[nodiscard]] std::vector<Machine> reached_by(const Path& path) const;
  void start_ranks();
  void check_machines() const;
  [[nodiscard]] Options options_for(Machine machine) const;

  [[nodiscard]] bool goes_on() const;
  void wait_for_events();
  [[nodiscard]] Clock::duration longest_wait() const;
  void on_deadlines();
  void beat();
  void take_signals();
  void on_signal(int number);
  void reap();

  void take(Path& path);
  void hear(Machine machine, Frame frame);
  void hear_branch(Path& path, Frame frame);
  void on_frame(Machine machine, Frame frame);
  void let_go(Machine machine);
  void on_row(boot::PacketReader& body);
  void on_arrival(Machine machine, std::uint32_t round);
  void on_want(Machine machine, std::uint32_t rank);
  void on_address(boot::PacketReader& body);
  void on_output(Machine machine, boot::PacketReader& body);
  void on_failure(boot::PacketReader& body);
  void on_statuses(Machine machine, boot::PacketReader& body);
  void on_stacks(Machine machine, boot::PacketReader& body);
  void look_for_absent_ranks();

  void on_request(Machine from, boot::PacketReader& body);
  void request(Machine from, std::uint64_t id, Machine to, std::uint32_t number,
               const std::string& packet);
  void pass_on(Machine from, FrameKind kind, boot::PacketReader& body);
  void refuse(Machine from, std::uint64_t id, Machine to);
  void refuse_all(Machine to);
  void on_ended(Machine from, boot::PacketReader& body);
  void on_outside(Machine from, boot::PacketReader& body);
  void on_linked(Machine from, boot::PacketReader& body, bool linked);
  [[nodiscard]] Machine choose_link(Machine asker, const std::string& mpiexec,
                                    const std::string& host) const;
  [[nodiscard]] Machine roomiest(Machine first) const;
  [[nodiscard]] std::uint32_t running_on(Machine machine) const;
  [[nodiscard]] RemoteMachine* find(Machine machine) const;

  // The first failure decides the exit status and is told; later ones follow from it.
  void fail(const std::string& sentence, int status);
  void fail_late(const std::string& state);
  [[nodiscard]] std::string silent_hosts() const;
  void lose(const std::vector<Machine>& those, const std::string& why);
  void lose_silent(Machine machine);
  void end_all();
  void send_all(FrameKind kind, const boot::PacketWriter& body = {});
  [[nodiscard]] bool is_alive(std::size_t rank) const;
  // ... how many are, but for this one.
  [[nodiscard]] int alive(int but = -1) const;

  [[nodiscard]] bool may_read_input() const;
  void pass_input();
  void confirm_output();
  void take_look();
  void print_report();
  void flush();
  void say(const std::string& sentence) { error_.append("mpiexec: " + sentence + "\n"); }

  [[nodiscard]] int number() const override { return 1; }
  [[nodiscard]] const std::string& of_job() const override { return of_job_; }
  [[nodiscard]] std::string where() const override;
  void ask_for_reports() override;
  [[nodiscard]] bool all_have_answered() const override;
  [[nodiscard]] std::vector<RankStatus> look() const override { return statuses_; }
  void ask_for_stacks(const std::vector<int>& ranks) override;
  [[nodiscard]] bool stacks_are_known() override;
  [[nodiscard]] std::map<int, std::string> stacks() const override { return stacks_; }

  const Options& options_;
  const Placement placement_;
  const std::string of_job_;
  const Signals signals_;
  Outlet out_{1}, error_{2};

  RemoteShell shell_;
  std::vector<std::unique_ptr<Path>> paths_;
  std::vector<std::unique_ptr<RemoteMachine>> machines_; // as in placement_
  std::vector<Account> accounts_;                        // by machine
  bool started_ = false;
  std::uint32_t round_ = 0;       // of the barrier
  std::uint32_t last_number_ = 1; // of a job
  // Requests from one machine, by that and id, to another one that has not answered.
  std::map<std::pair<Machine, std::uint64_t>, Machine> unanswered_;
  std::map<std::string, Machine> links_; // by other mpiexecs: who is linked with them

  std::vector<boot::RankState> states_; // by rank,
  std::vector<bool> joined_;            // ... and whether a process has taken it
  std::map<std::uint32_t, std::vector<Machine>> wanted_by_; // ranks whose addresses are awaited
  std::map<std::uint32_t, boot::PacketWriter> addresses_;   // those that have come

  std::size_t input_room_;
  bool input_ended_ = false;

  bool absent_ = false; // a rank has ended without MPI_Init
  bool lost_output_told_ = false;
  bool failed_ = false;
  bool ending_ = false;
  int status_ = 0;
  int interrupts_ = 0;
  Deadline timeout_, start_, direct_, end_, beat_;
  HangWatch hang_watch_;
  std::vector<RankStatus> statuses_;   // answers, by rank
  std::map<int, std::string> stacks_;  // by rank
  std::map<int, std::string> reports_; // by rank
};

} // namespace macadam::tools
