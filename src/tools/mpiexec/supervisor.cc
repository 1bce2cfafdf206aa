// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/supervisor.h"

#include "boot/job_report.h"
#include "boot/limits.h"
#include "boot/machine.h"
#include "tools/mpiexec/binding.h"
#include "tools/mpiexec/hang_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace macadam::tools {

using namespace std::chrono_literals;
using boot::RankRow;
using boot::RankState;

namespace {

constexpr int timeout_status = 124;         // as timeout(1) has it
constexpr auto time_to_flush = 200ms;       // before SIGTERM
constexpr auto time_to_end = 500ms;         // between SIGTERM and SIGKILL
constexpr auto time_to_answer = 1s;         // for the hang report
constexpr auto time_to_blame = 250ms;       // for the end of a rank that others have noticed
constexpr auto time_to_blame_afar = 1500ms; // ... if it may be on another machine
constexpr auto pause_between_polls = 10ms;  // while answers come in
constexpr auto time_between_looks = 200ms;  // at ranks that seem to stand; longer than they sleep
constexpr auto pause_in_background = 200ms; // until the terminal may be ours again

constexpr int heeded_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

std::string plural(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// A shell, too, finds a program of this folder by its path only.
std::string hint_for_path(const Program& program, int error) {
  const std::string& name = program.command.front();
  if (error != ENOENT || name.find('/') != std::string::npos) return {};
  const std::string here = (program.folder.empty() ? "." : program.folder) + "/" + name;
  if (access(here.c_str(), X_OK) != 0) return {};
  return "; the folder has one of this name, which is started as ./" + name;
}

// An exception that nobody caught has been printed; what ends the job at once is not known to many.
std::string hint_for_python(const Program& program, int status) {
  const std::string name = std::filesystem::path(program.command.front()).filename();
  const bool by_mpi4py = std::ranges::find(program.command, "mpi4py") != program.command.end();
  if (!name.starts_with("python") || WEXITSTATUS(status) != 1 || by_mpi4py) return {};
  return " (with python -m mpi4py an uncaught exception calls MPI_Abort)";
}

} // namespace

Supervisor::Supervisor(const Options& options, boot::JobMemory memory, Neighbours* neighbours)
    : options_(options), memory_(std::move(memory)), neighbours_(neighbours) {
  sigemptyset(&passed_on_);
  block_signals();
}

Supervisor::~Supervisor() {
  close(signals_);
}

// From here on signals are read from a descriptor. One that mpiexec was told to ignore (nohup) it
// ignores still.
void Supervisor::block_signals() {
  sigemptyset(&heeded_);
  sigaddset(&heeded_, SIGCHLD);
  for (int number : heeded_signals) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN) sigaddset(&heeded_, number);
  }
  sigset_t blocked = heeded_;
  sigaddset(&blocked, SIGPIPE); // a write fails instead
  sigprocmask(SIG_BLOCK, &blocked, &original_mask_);
  signal(SIGCHLD, SIG_DFL); // were it ignored, children would leave no status
  signals_ = signalfd(-1, &heeded_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals_ < 0) throw std::runtime_error(boot::explain_failure("signalfd", errno));
}

std::string Supervisor::hint_for_memory(int signal) const {
  if (signal != SIGKILL || boot::ends_for_want_of_memory() == ends_before_) return {};
  return ", by the kernel, as the memory of the control group was used up: run fewer ranks, or "
         "raise "
         "its memory.max (docker run --memory, srun --mem)";
}

int Supervisor::run() {
  if (options_.timeout_seconds > 0)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(options_.timeout_seconds));
  start_ranks();
  exchange();
  // Neighbours may still tell whose end the ranks here have noticed.
  while (alive_ > 0 || (neighbours_ != nullptr && blame_)) {
    wait_for_events();
    on_deadlines();
  }
  if (follower_) fail_by_abort(*follower_);
  exchange();
  watchdog_.reset();  // ends what ranks have left running,
  descendants_.end(); // and what of it has left the group
  output_.drain();
  if (is_reporting()) print_hang_report();
  print_job_report();
  flush();
  if (status_ == 0 && (out_.error() != 0 || error_.error() != 0)) status_ = 1;
  return status_;
}

void Supervisor::start_ranks() {
  std::vector<cpu_set_t> core_sets;
  if (options_.binding == Binding::core) {
    core_sets = usable_core_sets();
    if (static_cast<int>(core_sets.size()) < options_.ranks())
      throw std::runtime_error(plural(options_.ranks(), "rank") + " cannot be bound to " +
                               plural(static_cast<int>(core_sets.size()), "core") +
                               ", which is what mpiexec may use here; leave --bind-to out");
  }
  watchdog_.emplace();
  const Start start{options_, memory_, *watchdog_, original_mask_, core_sets};
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (std::size_t app = 0; app < options_.programs.size(); ++app) {
    const Program& program = options_.programs[app];
    for (int i = 0; i < program.ranks; ++i) {
      const int rank = first() + static_cast<int>(pids_.size());
      memory_.row(rank).app = static_cast<std::int32_t>(app);
      Streams streams;
      streams.in = rank == 0 ? input_.reading_end() : nothing;
      if (options_.label) output_.add(rank, streams);
      pids_.push_back(start_rank(start, program, rank, streams));
      ++alive_;
      if (rank == 0) input_.forget_reading_end();
      if (options_.label) {
        close(streams.out);
        close(streams.error);
      }
    }
  }
  close(nothing);
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> polled{{signals_, POLLIN, 0}};
  polled.push_back(out_.polled());
  polled.push_back(error_.polled());
  input_.list(polled);
  output_.list(polled);

  Clock::duration longest = 1h;
  if (timeout_ && !is_reporting()) longest = std::min(longest, *timeout_ - Clock::now());
  for (const Deadline& deadline : {kill_, blame_, exchange_, look_again_})
    if (deadline) longest = std::min(longest, *deadline - Clock::now());
  if (report_ || terminate_) longest = std::min<Clock::duration>(longest, pause_between_polls);
  if (input_.must_look_again()) longest = std::min<Clock::duration>(longest, pause_in_background);
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(longest).count();
  if (poll(polled.data(), polled.size(), static_cast<int>(std::max<long>(0, ms))) <= 0) return;

  out_.write_some();
  error_.write_some();
  output_.take(polled.data() + 4);
  input_.take(polled[3]);
  look_for_lost_output();
  if (polled[0].revents) take_signals();
}

void Supervisor::on_deadlines() {
  const auto now = Clock::now();
  if (exchange_ && now >= *exchange_) exchange();
  if (timeout_ && now >= *timeout_) ask_for_reports();
  if (look_again_ && now >= *look_again_) {
    look_again_.reset();
    look_at_ranks();
  }
  if (report_ && (all_have_answered() || now >= *report_)) take_look();
  if (blame_ && now >= *blame_) {
    blame_.reset();
    fail_by_abort(*follower_);
  }
  if (terminate_ && (all_have_answered() || now >= *terminate_)) {
    terminate_.reset();
    terminate_ranks();
  }
  if (kill_ && now >= *kill_) {
    kill_.reset();
    watchdog_->signal_group(SIGKILL);
    for (const pid_t rank : pids_)
      if (rank != 0) kill(rank, SIGKILL); // it may have left the group
  }
}

void Supervisor::take_signals() {
  signalfd_siginfo info;
  bool child = false;
  while (read(signals_, &info, sizeof info) == ssize_t{sizeof info}) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD)
      child = true;
    else
      on_signal(number);
  }
  if (child) {
    reap();
    look_for_aborts();
    exchange();
    look_for_absent_ranks();
  }
}

void Supervisor::on_signal(int number) {
  if (number == SIGUSR1) return ask_for_reports();
  sigaddset(&passed_on_, number);
  if (watchdog_) watchdog_->signal_group(number);
  if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
    end_signal_ = number;
  if (number == SIGTSTP) raise(SIGSTOP); // and our shell sees the job stopped
  // A user that asks twice will not wait for programs that do not heed the first time.
  if ((number == SIGINT || number == SIGTERM) && ++interrupts_ == 2) {
    if (!failed_) status_ = 128 + number;
    failed_ = true;
    end_ranks(std::string("mpiexec on host ") + memory_.own_node().host.data() +
              " was told twice to end the job");
  }
}

void Supervisor::reap() {
  std::vector<std::pair<int, int>> ended; // rank, status
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto found = std::find(pids_.begin(), pids_.end(), pid);
    if (found == pids_.end()) continue; // the watchdog, or a child from before mpiexec was executed
    *found = 0;
    --alive_;
    ended.emplace_back(first() + static_cast<int>(found - pids_.begin()), status);
  }
  // Of ranks seen at once, one that a signal killed is a cause rather than a consequence.
  std::ranges::stable_partition(ended, [](const auto& end) { return WIFSIGNALED(end.second); });
  for (const auto& [rank, end] : ended)
    on_end(rank, end);
}

void Supervisor::on_end(int rank, int status) {
  RankRow& row = memory_.row(rank);
  const RankState state = row.state.load(std::memory_order_acquire);
  if (state == RankState::starting) memory_.header().absent.fetch_add(1);
  if (state == RankState::aborted) return on_abort(rank);
  if (state == RankState::finalized) {
    row.state.store(RankState::gone, std::memory_order_release);
  } else {
    row.state.store(RankState::dead, std::memory_order_release);
    memory_.header().failed.fetch_add(1, std::memory_order_release);
  }
  const bool in_mpi = state == RankState::running;

  if (row.start_error != 0) {
    const Program& program = options_.programs[static_cast<std::size_t>(row.app)];
    fail(rank,
         (row.failed_step == boot::StartStep::execute
              ? "could not start " + program.command.front()
              : "could not enter the folder " + program.folder) +
             ": " + std::strerror(row.start_error) + hint_for_path(program, row.start_error),
         127, true);
  } else if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* description = sigdescr_np(number);
    fail(rank,
         "was killed by signal " + std::to_string(number) + " (" +
             (description ? description : "unknown") + ")" + hint_for_memory(number),
         128 + number, state != RankState::finalized);
  } else if (WEXITSTATUS(status) != 0) {
    const Program& program = options_.programs[static_cast<std::size_t>(row.app)];
    fail(rank,
         "exited with status " + std::to_string(WEXITSTATUS(status)) +
             (in_mpi ? " without calling MPI_Finalize" + hint_for_python(program, status) : ""),
         WEXITSTATUS(status), state != RankState::finalized);
  } else if (in_mpi) {
    fail(rank, "exited without calling MPI_Finalize", 1, true);
  }
}

// MPI_Abort, also before the process has ended: it takes a moment to flush its output.
void Supervisor::look_for_aborts() {
  for (int rank = first(); rank < end() && !failed_; ++rank)
    if (memory_.row(rank).state.load(std::memory_order_acquire) == RankState::aborted)
      on_abort(rank);
}

// A rank sees that another one's memory is gone before the system tells us of its end.
void Supervisor::on_abort(int rank) {
  if (memory_.row(rank).blame == boot::Blame::self) return fail_by_abort(rank);
  if (follower_) return;
  follower_ = rank;
  blame_ = Clock::now() + (neighbours_ == nullptr ? time_to_blame : time_to_blame_afar);
}

void Supervisor::fail_by_abort(int rank) {
  const RankRow& row = memory_.row(rank);
  fail(rank, row.text.data(), row.code >= 1 && row.code <= 255 ? row.code : 1, true);
}

// A rank that has ended without MPI_Init, which is its right, while others are in MPI: they would
// wait for it. A rank that joins when one is absent wakes us with SIGCHLD.
void Supervisor::look_for_absent_ranks() {
  if (failed_ || memory_.header().absent.load() == 0) return;
  for (int rank = 0; rank < memory_.size(); ++rank) {
    if (memory_.row(rank).state.load() != RankState::running) continue;
    for (int other = 0; other < memory_.size(); ++other)
      if (memory_.row(other).state.load() == RankState::dead && memory_.row(other).pid == 0)
        return fail(other,
                    "ended without calling MPI_Init, which rank " + std::to_string(rank) +
                        " has called",
                    1, true);
  }
}

void Supervisor::fail(int rank, const std::string& cause, int status, bool ends_job) {
  if (failed_) return;
  const int others = alive_ - (memory_.is_local(rank) && pid(rank) != 0 ? 1 : 0);
  const bool asked_for = status > 128 && sigismember(&passed_on_, status - 128) == 1;
  const std::string why = name(rank) + " " + cause;
  std::string sentence = why;
  failed_ = true;
  status_ = status;
  if (ends_job && others > 0)
    sentence += "; ending the other " + (others == 1 ? "rank" : plural(others, "rank"));
  if (!asked_for) say(sentence);
  if (ends_job) end_ranks(why);
}

// Tells the other machines what has changed here and learns what has changed there.
void Supervisor::exchange() {
  if (neighbours_ == nullptr) return;
  exchange_ = Clock::now() + neighbours_->exchange(memory_);
  const auto& failure = neighbours_->failure();
  if (!failure || failed_) return;
  blame_.reset();
  failed_ = true;
  status_ = failure->status;
  std::string sentence = failure->sentence;
  if (alive_ > 0)
    sentence += "; ending " + plural(alive_, "rank") + " on host " + memory_.own_node().host.data();
  say(sentence);
  end_ranks(failure->sentence);
}

void Supervisor::end_ranks(const std::string& why) {
  if (ending_) return;
  ending_ = true;
  if (neighbours_ != nullptr) {
    neighbours_->tell_failure({why, status_});
    exchange_ = Clock::now();
  }
  memory_.header().ending.store(1);
  memory_.header().reports_wanted.fetch_add(1, std::memory_order_release);
  terminate_ = Clock::now() + time_to_flush;
}

void Supervisor::terminate_ranks() {
  kill_ = Clock::now() + time_to_end;
  for (int rank = first(); rank < first() + static_cast<int>(pids_.size()); ++rank) {
    const RankState state = memory_.row(rank).state.load();
    if (pid(rank) == 0 || state == RankState::aborted) continue;
    kill(pid(rank), SIGTERM);
    kill(pid(rank), SIGCONT); // a stopped process would not see it
  }
}

void Supervisor::say(const std::string& sentence) {
  error_.append("mpiexec: " + sentence + "\n");
}

void Supervisor::flush() {
  Deadline end;
  for (;;) {
    look_for_lost_output();
    if (!out_.has_pending() && !error_.has_pending()) return;
    int ms = -1;
    if (end_signal_ != 0) {
      if (!end) end = Clock::now() + time_to_end;
      ms = static_cast<int>(
          std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count());
      if (ms <= 0) break;
    }
    std::array polled{pollfd{signals_, POLLIN, 0}, out_.polled(), error_.polled()};
    poll(polled.data(), polled.size(), ms);
    out_.write_some();
    error_.write_some();
    take_signals();
  }
  if (status_ == 0) status_ = 128 + end_signal_; // what is lost nobody should miss unwarned
}

void Supervisor::look_for_lost_output() {
  if (out_.error() == 0 || lost_output_told_) return;
  lost_output_told_ = true;
  say(std::string("the ranks' standard output cannot be written: ") + std::strerror(out_.error()) +
      "; what does not go is lost");
}

std::string Supervisor::name(int rank) const {
  return "rank " + std::to_string(rank) + " on host " + memory_.host_of(rank);
}

void Supervisor::ask_for_reports() {
  if (!is_reporting()) look_at_ranks();
}

void Supervisor::look_at_ranks() {
  memory_.header().reports_wanted.fetch_add(1, std::memory_order_release);
  report_ = Clock::now() + time_to_answer;
}

bool Supervisor::all_have_answered() const {
  const std::uint32_t wanted = memory_.header().reports_wanted.load();
  for (int rank = first(); rank < end(); ++rank) {
    const RankRow& row = memory_.row(rank);
    if (row.state.load() == RankState::running &&
        row.report_answered.load(std::memory_order_acquire) != wanted)
      return false;
  }
  return true;
}

// All have answered that will. Ranks that seem to wait in a circle are looked at twice.
void Supervisor::take_look() {
  report_.reset();
  if (earlier_look_.empty()) {
    std::vector<RankStatus> look = look_at(memory_);
    if (shows_circle(look)) {
      earlier_look_ = std::move(look);
      look_again_ = Clock::now() + time_between_looks;
      return;
    }
  }
  print_hang_report();
  if (!timeout_ || Clock::now() < *timeout_) return;
  timeout_.reset();
  const std::string cause =
      fmt::format("the job has not ended within {} s", options_.timeout_seconds);
  if (!failed_) {
    say(cause + "; ending " + plural(alive_, "rank"));
    failed_ = true;
    status_ = timeout_status;
  }
  end_ranks(cause);
}

void Supervisor::print_hang_report() {
  error_.append(hang_report(memory_.own_node().host.data(), look_at(memory_), earlier_look_));
  earlier_look_.clear();
}

void Supervisor::print_job_report() {
  std::vector<std::string> reports;
  for (int rank = first(); rank < end(); ++rank) {
    const boot::ReportArea& area = memory_.report(rank);
    if (area.kind == static_cast<std::uint32_t>(boot::ReportKind::final))
      reports.emplace_back(area.text.data(), std::min<std::size_t>(area.bytes, area.text.size()));
  }
  if (reports.empty()) return;
  const bool is_part = memory_.header().nodes > 1;
  error_.append(boot::give_report(reports, is_part ? memory_.own_node().host.data() : ""));
}

} // namespace macadam::tools
