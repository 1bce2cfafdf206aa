// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/cluster.h"

#include "boot/control.h"
#include "boot/job_report.h"
#include "boot/limits.h"
#include "boot/machine.h"
#include "tools/mpiexec/head.h"
#include "tools/mpiexec/proxy.h"
#include "tools/mpiexec/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

namespace macadam::tools {

using namespace std::chrono_literals;
using boot::PacketReader;
using boot::PacketWriter;
using boot::RankState;

namespace {

constexpr int timeout_status = 124;         // as timeout(1) has it
constexpr auto time_to_start = 30s;         // until all machines have answered, beside a silence
constexpr auto time_to_branch = 10s;        // ... those that are not connected with us directly
constexpr auto time_to_end = 3s;            // for the ranks of all machines, once they are told
constexpr auto time_to_write = 500ms;       // what nobody reads, at the end of a job that failed
constexpr auto pause_between_polls = 10ms;  // while answers come in
constexpr auto pause_in_background = 200ms; // until the terminal may be ours again

} // namespace

Cluster::Cluster(const Options& options, Placement placement)
    : options_(options), placement_(std::move(placement)), accounts_(placement_.hosts.size()),
      states_(placement_.machines.size(), RankState::starting),
      joined_(placement_.machines.size(), false), input_room_(Head::input_window) {}

int Cluster::run() {
  if (options_.timeout_seconds > 0)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(options_.timeout_seconds));
  const std::chrono::duration<double> longest = time_to_start + silence();
  start_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(longest);
  beat_ = Clock::now() + Silence::interval;
  direct_ = Clock::now() + time_to_branch;
  shell_ = choose_shell(options_.starter);
  connect();
  while (goes_on()) {
    wait_for_events();
    on_deadlines();
  }
  if (hang_watch_.is_asking()) {
    Questioned* const self = this;
    error_.append(hang_watch_.pages({&self, 1}));
  }
  print_report();
  flush();
  if (status_ == 0 && (out_.error() != 0 || error_.error() != 0)) status_ = 1;
  paths_.clear();
  return status_;
}

// A job that has failed before all its ranks were started leaves those behind that were not.
bool Cluster::goes_on() const {
  return std::ranges::any_of(machines_, [&](const auto& machine) {
    return machine->is_there() && !(ending_ && !machine->started);
  });
}

// All machines have answered.
void Cluster::start_ranks() {
  check_machines();
  ProxyOrder order;
  order.machines = placement_.machines;
  order.counts = counts_of(options_.programs);
  order.sets = options_.process_sets();
  order.secret = boot::random_secret();
  order.mpiexec = boot::random_socket_name();
  order.environment = environment_of_ranks();
  std::array<char, PATH_MAX> folder{};
  if (getcwd(folder.data(), folder.size()) == nullptr)
    throw std::runtime_error(
        fmt::format("the folder that mpiexec runs in is not known: {}", std::strerror(errno)));
  order.folder = folder.data();
  for (Machine machine = 0; machine < machines_.size(); ++machine)
    order.nodes.push_back({machines_[machine]->hello->host, placement_.ranks_on(machine)});
  for (Machine machine = 0; machine < machines_.size(); ++machine) {
    order.own = machine;
    order.options = options_for(machine);
    PacketWriter body;
    write(body, order);
    machines_[machine]->send(FrameKind::start, body);
    machines_[machine]->started = true;
  }
  started_ = true;
}

// Two names of one machine would be two machines whose ranks share no memory.
void Cluster::check_machines() const {
  std::map<std::string, std::string> names;
  for (const auto& machine : machines_) {
    const auto [known, is_new] = names.emplace(machine->hello->machine, machine->name);
    if (!is_new)
      throw std::runtime_error(fmt::format("{} and {} are one machine, {}: name it by one name",
                                           known->second, machine->name, machine->hello->host));
  }
}

Options Cluster::options_for(Machine machine) const {
  Options options = options_;
  std::size_t rank = 0;
  for (Program& program : options.programs) {
    const auto begin = placement_.machines.begin() + static_cast<std::ptrdiff_t>(rank);
    rank += static_cast<std::size_t>(program.ranks);
    program.ranks = static_cast<int>(std::count(begin, begin + program.ranks, machine));
  }
  if (options.universe_size == 0)
    options.universe_size =
        std::accumulate(machines_.begin(), machines_.end(), 0, [](int sum, const auto& each) {
          return sum + static_cast<int>(each->hello->cores);
        });
  options.universe_size = std::max(options.universe_size, options_.ranks());
  return options;
}

Cluster::Clock::duration Cluster::longest_wait() const {
  const auto now = Clock::now();
  Clock::duration longest = *beat_ - now;
  const auto until = [&](const Deadline& deadline) {
    if (deadline) longest = std::min(longest, *deadline - now);
  };
  if (!hang_watch_.is_asking()) until(timeout_);
  for (const Deadline& deadline : {start_, direct_, end_, hang_watch_.look_again()})
    until(deadline);
  if (hang_watch_.awaits_answers())
    longest = std::min<Clock::duration>(longest, pause_between_polls);
  return std::max<Clock::duration>(longest, 0s);
}

void Cluster::wait_for_events() {
  std::vector<pollfd> polled{
      signals_.polled(), out_.polled(), error_.polled(), {may_read_input() ? 0 : -1, POLLIN, 0}};
  const std::size_t first = polled.size();
  const std::size_t paths = paths_.size(); // others may come
  for (const auto& path : paths_) {
    path->connection.stream().list(polled);
    if (reached_by(*path).empty()) polled[polled.size() - 2].fd = -1;
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(longest_wait()).count();
  if (poll(polled.data(), polled.size(), static_cast<int>(ms)) < 0) return;
  out_.write_some();
  error_.write_some();
  confirm_output();
  if (polled[0].revents != 0) take_signals();
  if (polled[3].revents != 0) pass_input();
  for (std::size_t i = 0; i < paths; ++i) {
    paths_[i]->connection.stream().write_some();
    if (polled[first + 2 * i].revents != 0) take(*paths_[i]);
  }
}

void Cluster::on_deadlines() {
  const auto now = Clock::now();
  if (now >= *beat_) beat();
  Questioned* const self = this;
  if (timeout_ && now >= *timeout_) {
    hang_watch_.show_stacks();
    if (started_)
      hang_watch_.ask({&self, 1});
    else
      fail_late("no answer has come from " + silent_hosts());
  }
  take_look();
  const auto lose_all = [&](auto&& which, const std::string& why) {
    for (Machine machine = 0; machine < machines_.size(); ++machine)
      if (which(*machines_[machine]))
        lose({machine}, fmt::format(fmt::runtime(why), machines_[machine]->name));
  };
  if (direct_ && now >= *direct_) {
    direct_.reset();
    if (!ending_) connect_around_branches();
  }
  if (start_ && now >= *start_) {
    start_.reset();
    // Those that have answered wait for the others.
    lose_all(
        [&](const RemoteMachine& machine) {
          return started_ ? !machine.heard && !machine.done : !machine.hello;
        },
        fmt::format("host {{}} has not answered within {:.0f} s",
                    std::chrono::duration<double>(time_to_start + silence()).count()));
  }
  if (end_ && now >= *end_) {
    end_.reset();
    lose_all([](const RemoteMachine& machine) { return !machine.done; },
             "the ranks of host {} have not ended");
  }
}

void Cluster::take_signals() {
  while (const std::optional<int> number = signals_.next()) {
    if (*number == SIGCHLD)
      reap();
    else
      on_signal(*number);
  }
}

void Cluster::on_signal(int number) {
  if (number == SIGUSR1) {
    Questioned* const self = this;
    if (started_) hang_watch_.ask({&self, 1});
    return;
  }
  PacketWriter body;
  body.value(std::int32_t{number});
  send_all(FrameKind::signal, body);
  if (number == SIGTSTP) raise(SIGSTOP); // and our shell sees the job stopped
  if (!ends_programs(number) || failed_) return;
  // Before there are ranks, and for a user that asks twice.
  if (started_ && (++interrupts_ < 2 || !is_urgent(number))) return;
  failed_ = true;
  status_ = 128 + number;
  end_all();
}

void Cluster::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (const auto& path : paths_)
      if (path->connection.process() == pid) path->connection.note_end(status);
}

void Cluster::fail(const std::string& sentence, int status) {
  if (failed_) return;
  failed_ = true;
  status_ = status;
  say(sentence);
}

std::string Cluster::silent_hosts() const {
  std::vector<std::string> names;
  for (const auto& machine : machines_)
    if (!machine->hello) names.push_back(machine->name);
  return fmt::format("{} {}", names.size() == 1 ? "host" : "hosts", fmt::join(names, ", "));
}

// At the time limit.
void Cluster::fail_late(const std::string& state) {
  timeout_.reset();
  fail(fmt::format("the job has not ended within {} s; {}", options_.timeout_seconds, state),
       timeout_status);
  end_all();
}

bool Cluster::is_alive(std::size_t rank) const {
  return states_[rank] != RankState::dead && states_[rank] != RankState::gone;
}

void Cluster::end_all() {
  if (ending_) return;
  ending_ = true;
  end_ = Clock::now() + time_to_end;
  send_all(FrameKind::end);
}

void Cluster::send_all(FrameKind kind, const PacketWriter& body) {
  for (const auto& machine : machines_) {
    if (!machine->started || !machine->is_there()) continue;
    machine->send(kind, body);
  }
}

// A terminal may be read by its foreground processes only.
bool Cluster::may_read_input() const {
  if (!started_ || input_ended_ || input_room_ == 0) return false;
  return !isatty(0) || TerminalInput::in_foreground();
}

void Cluster::pass_input() {
  std::array<char, 1 << 14> buffer;
  const ssize_t bytes = read(0, buffer.data(), std::min(buffer.size(), input_room_));
  if (bytes < 0 && (errno == EINTR || errno == EAGAIN)) return;
  const RemoteMachine& reader = *machines_[placement_.machines[0]];
  if (bytes <= 0) {
    input_ended_ = true;
    reader.send(FrameKind::input_end);
  } else {
    input_room_ -= static_cast<std::size_t>(bytes);
    PacketWriter body;
    body.text({buffer.data(), static_cast<std::size_t>(bytes)});
    reader.send(FrameKind::input, body);
  }
}

void Cluster::take_look() {
  Questioned* const self = this;
  const std::optional<std::string> page = hang_watch_.on_time({&self, 1});
  if (!page) return;
  error_.append(*page);
  if (!timeout_ || Clock::now() < *timeout_) return;
  fail_late("ending " + plural(alive(), "rank"));
}

std::string Cluster::where() const {
  return plural(static_cast<int>(machines_.size()), "host");
}

void Cluster::ask_for_reports() {
  using Kind = RankStatus::Kind;
  statuses_.clear();
  for (const RankState state : states_)
    statuses_.push_back({state == RankState::starting  ? Kind::not_in_mpi
                         : state == RankState::dead    ? Kind::ended
                         : state == RankState::aborted ? Kind::aborted
                         : state == RankState::running ? Kind::silent
                                                       : Kind::finalized,
                         {}});
  for (const auto& machine : machines_)
    machine->answered = false;
  PacketWriter body;
  body.value(hang_watch_.shows_stacks());
  send_all(FrameKind::ask, body);
}

bool Cluster::all_have_answered() const {
  return std::ranges::all_of(
      machines_, [](const auto& machine) { return machine->answered || !machine->is_there(); });
}

void Cluster::ask_for_stacks(const std::vector<int>& ranks) {
  std::map<Machine, std::vector<int>> by_machine;
  for (const int rank : ranks)
    by_machine[placement_.machines[static_cast<std::size_t>(rank)]].push_back(rank);
  for (Machine machine = 0; machine < accounts_.size(); ++machine) // answers behind its own pages
    if (accounts_[machine].others != 0) by_machine.try_emplace(machine);
  for (const auto& [machine, those] : by_machine) {
    RemoteMachine* const there = find(machine);
    if (there == nullptr) continue;
    PacketWriter body;
    body.value(static_cast<std::uint32_t>(those.size()));
    for (const int rank : those)
      body.value(static_cast<std::uint32_t>(rank));
    there->send(FrameKind::locate, body);
    there->locates = true;
  }
}

bool Cluster::stacks_are_known() {
  return std::ranges::none_of(
      machines_, [](const auto& machine) { return machine->locates && machine->is_there(); });
}

void Cluster::print_report() {
  std::vector<std::string> texts;
  for (auto& [rank, text] : reports_)
    texts.push_back(text);
  if (!texts.empty()) error_.append(boot::give_report(texts, ""));
}

void Cluster::flush() {
  Deadline end;
  if (failed_) end = Clock::now() + time_to_write;
  while (out_.has_pending() || error_.has_pending()) {
    if (end && Clock::now() >= *end) return;
    std::array polled{signals_.polled(), out_.polled(), error_.polled()};
    poll(polled.data(), polled.size(), static_cast<int>(Silence::interval.count()));
    out_.write_some();
    error_.write_some();
    take_signals();
    if (interrupts_ > 0 && !end) end = Clock::now() + time_to_write;
  }
}

} // namespace macadam::tools
