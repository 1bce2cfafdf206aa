// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/supervisor.h"

#include "base/error.h"
#include "boot/limits.h"
#include "boot/machine.h"
#include "tools/mpiexec/binding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <system_error>
#include <tuple>
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
constexpr auto time_to_blame = 250ms;       // for the end of a rank that others have noticed
constexpr auto time_to_blame_afar = 1500ms; // ... if it may be on another machine
constexpr auto pause_between_polls = 10ms;  // while answers come in
constexpr auto pause_in_background = 200ms; // until the terminal may be ours again

constexpr int heeded_signals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                  SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_; // -1: none
};

std::string plural(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// An exception that nobody caught has been printed; what ends the job at once is not known to many.
std::string hint_for_python(const std::vector<std::string>& command, int status) {
  const std::string name = std::filesystem::path(command.front()).filename();
  const bool by_mpi4py = std::ranges::find(command, "mpi4py") != command.end();
  if (!name.starts_with("python") || WEXITSTATUS(status) != 1 || by_mpi4py) return {};
  return " (with python -m mpi4py an uncaught exception calls MPI_Abort)";
}

} // namespace

Supervisor::Supervisor(const Options& options, boot::JobMemory memory, Neighbours* neighbours)
    : options_(options), neighbours_(neighbours) {
  jobs_.push_back(std::make_unique<RunningJob>(1, options.programs, std::move(memory)));
  begin();
}

Supervisor::Supervisor(const Options& options, boot::JobMemory memory, pid_t pid, int process)
    : options_(options), neighbours_(nullptr) {
  jobs_.push_back(std::make_unique<RunningJob>(std::move(memory), pid, process));
  begin();
}

Supervisor::~Supervisor() {
  close(signals_);
}

void Supervisor::begin() {
  sigemptyset(&passed_on_);
  block_signals();
  describe(first_job().memory());
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

// What its ranks learn of mpiexec.
void Supervisor::describe(boot::JobMemory& memory) {
  boot::JobHeader& header = memory.header();
  header.universe = options_.universe_size > 0
                        ? options_.universe_size
                        : std::max(static_cast<int>(boot::usable_cores()), memory.size());
  if (header.nodes == 1)
    services_.socket_name().copy(header.socket.data(), boot::longest_socket_name);
  header.file = memory.fd();
  header.launcher = getpid();
}

int Supervisor::run() {
  if (options_.timeout_seconds > 0)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(options_.timeout_seconds));
  start_first_job();
  exchange();
  // Neighbours may still tell whose end the ranks here have noticed.
  while (alive() > 0 || (neighbours_ != nullptr && blame_)) {
    wait_for_events();
    on_deadlines();
    forget_ended_jobs();
  }
  fail_by_follower();
  exchange();
  watchdog_.reset();  // ends what ranks have left running,
  descendants_.end(); // and what of it has left the group
  output_.drain();
  if (hang_watch_.is_asking()) error_.append(hang_watch_.pages(jobs_));
  print_job_reports();
  flush();
  if (status_ == 0 && (out_.error() != 0 || error_.error() != 0)) status_ = 1;
  return status_;
}

int Supervisor::alive() const {
  return std::accumulate(jobs_.begin(), jobs_.end(), 0,
                         [](int sum, const auto& job) { return sum + job->alive(); });
}

void Supervisor::start_first_job() {
  watchdog_.emplace();
  if (first_job().is_lone()) return;
  const std::vector<cpu_set_t> core_sets = bind_ranks(options_.binding, options_.ranks());
  if (options_.report_bindings) error_.append(describe_bindings(core_sets, options_.ranks()));
  start_ranks(first_job(), core_sets, {});
}

void Supervisor::start_ranks(RunningJob& job, const std::vector<cpu_set_t>& core_sets,
                             const Gate& gate) {
  const Start start{options_.environment,
                    job.memory(),
                    first_job().memory().fd(),
                    *watchdog_,
                    original_mask_,
                    core_sets,
                    gate};
  const Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (std::size_t app = 0; app < job.programs().size(); ++app) {
    const Program& program = job.programs()[app];
    for (int i = 0; i < program.ranks; ++i) {
      const int rank = job.first() + job.started();
      const bool reads = &job == &first_job() && rank == 0;
      job.memory().row(rank).app = static_cast<std::int32_t>(app);
      Streams streams;
      streams.in = reads ? input_.reading_end() : nothing.get();
      if (options_.label) output_.add(job.label(rank), streams);
      streams.files = name_files(options_.output_files, job.label(rank),
                                 std::string(job.memory().host_of(rank)));
      const Descriptor out(streams.out), error(streams.error); // the rank has copies
      job.add(start_rank(start, program, rank, streams));
      if (reads) input_.forget_reading_end();
    }
  }
}

RunningJob& Supervisor::launch(std::vector<Program> programs, const RunningJob& parent, int rank,
                               const Gate& gate) {
  int ranks = 0;
  for (const Program& program : programs)
    ranks += program.ranks;
  if (ending_) base::fail(MPI_ERR_SPAWN, "the job is being ended");
  if (ranks == 0) base::fail(MPI_ERR_SPAWN, "a job needs a process");
  const int others = alive();
  if (ranks + others > most_ranks)
    base::fail(MPI_ERR_SPAWN,
               "with the {} that there are, they are more than the {} that one "
               "machine can have",
               others, most_ranks);
  const int cores = std::max(1, static_cast<int>(boot::usable_cores()) - others);
  boot::JobMemory memory = boot::JobMemory::create(
      {{parent.memory().own_node().host.data(), static_cast<std::uint32_t>(ranks)}}, 0,
      static_cast<std::uint32_t>(cores));
  describe(memory);
  boot::JobHeader& header = memory.header();
  header.has_parent = 1;
  header.parent_rank = static_cast<std::uint32_t>(rank);
  header.parent = boot::make_ticket(parent.memory().header().secret, services_.socket_name(),
                                    parent.memory().own_node().host.data());
  jobs_.push_back(std::make_unique<RunningJob>(last_number_ + 1, std::move(programs),
                                               std::move(memory),
                                               RunningJob::Parent{parent.number(), rank}));
  RunningJob& job = *jobs_.back();
  try {
    start_ranks(job, {}, gate);
  } catch (...) {
    job.abandon_and_reap();
    jobs_.pop_back();
    throw;
  }
  ++last_number_;
  return job;
}

RunningJob* Supervisor::find_job(int number) {
  const auto found =
      std::ranges::find(jobs_, number, [](const auto& job) { return job->number(); });
  return found == jobs_.end() ? nullptr : found->get();
}

RunningJob* Supervisor::find_job(const boot::Secret& secret) {
  const auto found = std::ranges::find_if(jobs_, [&](const auto& job) {
    return job->memory().header().secret == secret && job->alive() > 0 && !job->is_abandoned();
  });
  return found == jobs_.end() ? nullptr : found->get();
}

std::string Supervisor::variable(const Program& program, const char* name) const {
  for (const auto* variables : {&program.environment, &options_.environment}) {
    const auto found = std::find_if(variables->rbegin(), variables->rend(),
                                    [&](const Variable& each) { return each.first == name; });
    if (found != variables->rend()) return found->second;
  }
  const char* const inherited = std::getenv(name);
  return inherited != nullptr ? inherited : "";
}

// Jobs that were spawned, so that their number is not bounded.
void Supervisor::forget_ended_jobs() {
  for (std::size_t i = 1; i < jobs_.size(); ++i) {
    const RunningJob& job = *jobs_[i];
    if (job.alive() > 0 || job.is_starting) continue;
    services_.on_end(job.memory().header().secret);
    reports_ += job.report();
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(i--));
  }
}

Supervisor::Clock::duration Supervisor::longest_wait() const {
  const auto now = Clock::now();
  Clock::duration longest = 1h;
  const auto until = [&](const Deadline& deadline) {
    if (deadline) longest = std::min(longest, *deadline - now);
  };
  if (!hang_watch_.is_asking()) until(timeout_);
  for (const Deadline& deadline : {kill_, blame_, exchange_, hang_watch_.look_again()})
    until(deadline);
  until(services_.must_look_at());
  if (hang_watch_.awaits_answers() || terminate_)
    longest = std::min<Clock::duration>(longest, pause_between_polls);
  if (input_.must_look_again()) longest = std::min<Clock::duration>(longest, pause_in_background);
  return std::max<Clock::duration>(longest, 0s);
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> polled{{signals_, POLLIN, 0},
                             out_.polled(),
                             error_.polled(),
                             {first_job().alive() > 0 ? first_job().process() : -1, POLLIN, 0}};
  input_.list(polled);
  const std::size_t outputs = polled.size();
  output_.list(polled);
  const std::size_t services = polled.size();
  services_.list(polled);

  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(longest_wait()).count();
  if (poll(polled.data(), polled.size(), static_cast<int>(ms)) < 0) return;

  out_.write_some();
  error_.write_some();
  output_.take(polled.data() + outputs);
  input_.take(polled[4]);
  look_for_lost_output();
  if (polled[0].revents) take_signals();
  if (polled[3].revents) on_end_of_lone_program();
  services_.take(polled.data() + services);
}

void Supervisor::on_deadlines() {
  const auto now = Clock::now();
  if (exchange_ && now >= *exchange_) exchange();
  if (timeout_ && now >= *timeout_) hang_watch_.ask(jobs_);
  take_look();
  if (blame_ && now >= *blame_) {
    blame_.reset();
    fail_by_follower();
  }
  const auto has_answered = [](const auto& job) { return job->all_have_answered(); };
  if (terminate_ && (now >= *terminate_ || std::ranges::all_of(jobs_, has_answered))) {
    terminate_.reset();
    terminate_ranks();
  }
  if (kill_ && now >= *kill_) {
    kill_.reset();
    watchdog_->signal_group(SIGKILL);
    for (const auto& job : jobs_)
      job->signal_all(SIGKILL); // they may have left the group
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
  if (number == SIGUSR1) return hang_watch_.ask(jobs_);
  sigaddset(&passed_on_, number);
  if (watchdog_) watchdog_->signal_group(number);
  if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
    end_signal_ = number;
  if (number == SIGTSTP) raise(SIGSTOP); // and our shell sees the job stopped
  // A user that asks twice will not wait for programs that do not heed the first time.
  if ((number == SIGINT || number == SIGTERM) && ++interrupts_ == 2) {
    if (!failed_) status_ = 128 + number;
    failed_ = true;
    end_ranks(std::string("mpiexec on host ") + first_job().memory().own_node().host.data() +
              " was told twice to end the job");
  }
}

void Supervisor::reap() {
  std::vector<std::tuple<RunningJob*, int, int>> ended; // job, rank, status
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (const auto& job : jobs_) // or the watchdog, or a child from before mpiexec was executed
      if (const auto rank = job->is_lone() ? std::nullopt : job->note_end(pid))
        ended.emplace_back(job.get(), *rank, status);
  // Of ranks seen at once, one that a signal killed is a cause rather than a consequence.
  std::ranges::stable_partition(ended, [](const auto& end) {
    const int how = std::get<2>(end);
    return WIFSIGNALED(how);
  });
  for (const auto& [job, rank, end] : ended)
    on_end(*job, rank, end);
}

void Supervisor::on_end(RunningJob& job, int rank, int status) {
  boot::JobMemory& memory = job.memory();
  RankRow& row = memory.row(rank);
  const RankState state = row.state.load(std::memory_order_acquire);
  if (state == RankState::starting) memory.header().absent.fetch_add(1);
  if (state == RankState::aborted && !job.is_abandoned()) return on_abort(job, rank);
  if (state == RankState::finalized) {
    row.state.store(RankState::gone, std::memory_order_release);
  } else {
    row.state.store(RankState::dead, std::memory_order_release);
    memory.header().failed.fetch_add(1, std::memory_order_release);
  }
  // What was called off, or could not be started for a rank that is told.
  if (job.is_abandoned() || (job.number() > 1 && row.start_error != 0)) return;
  const bool in_mpi = state == RankState::running;

  if (row.start_error != 0) {
    fail(job, rank, describe_start_failure(job.program_of(rank), row), 127, true);
  } else if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* description = sigdescr_np(number);
    fail(job, rank,
         "was killed by signal " + std::to_string(number) + " (" +
             (description ? description : "unknown") + ")" + hint_for_memory(number),
         128 + number, state != RankState::finalized);
  } else if (WEXITSTATUS(status) != 0) {
    fail(job, rank,
         "exited with status " + std::to_string(WEXITSTATUS(status)) +
             (in_mpi ? " without calling MPI_Finalize" +
                           hint_for_python(job.program_of(rank).command, status)
                     : ""),
         WEXITSTATUS(status), state != RankState::finalized);
  } else if (in_mpi) {
    fail(job, rank, "exited without calling MPI_Finalize", 1, true);
  }
}

// How it has ended only its parent learns.
void Supervisor::on_end_of_lone_program() {
  RunningJob& job = first_job();
  job.note_end(job.pid(0));
  RankRow& row = job.memory().row(0);
  services_.on_end(job.memory().header().secret);
  switch (row.state.load(std::memory_order_acquire)) {
  case RankState::finalized:
    row.state.store(RankState::gone, std::memory_order_release);
    return;
  case RankState::aborted: // and has said so
    failed_ = true;
    return end_ranks(job.name(0) + " " + row.text.data());
  default:
    row.state.store(RankState::dead, std::memory_order_release);
    job.memory().header().failed.fetch_add(1, std::memory_order_release);
    if (alive() > 0) fail(job, 0, "has ended without calling MPI_Finalize", 1, true);
  }
}

// MPI_Abort, also before the process has ended: it takes a moment to flush its output.
void Supervisor::look_for_aborts() {
  for (const auto& job : jobs_)
    for (int rank = job->first(); rank < job->end() && !failed_; ++rank)
      if (job->memory().row(rank).state.load(std::memory_order_acquire) == RankState::aborted &&
          !job->is_lone() && !job->is_abandoned())
        on_abort(*job, rank);
}

// A rank sees that another one's memory is gone before the system tells us of its end.
void Supervisor::on_abort(RunningJob& job, int rank) {
  if (job.memory().row(rank).blame == boot::Blame::self) return fail_by_abort(job, rank);
  if (follower_) return;
  follower_ = {job.number(), rank};
  blame_ = Clock::now() + (neighbours_ == nullptr ? time_to_blame : time_to_blame_afar);
}

void Supervisor::fail_by_abort(RunningJob& job, int rank) {
  const RankRow& row = job.memory().row(rank);
  fail(job, rank, row.text.data(), row.code >= 1 && row.code <= 255 ? row.code : 1, true);
}

void Supervisor::fail_by_follower() {
  if (!follower_) return;
  if (RunningJob* const job = find_job(follower_->job)) fail_by_abort(*job, follower_->rank);
}

// A rank that has ended without MPI_Init, which is its right, while others are in MPI: they would
// wait for it. A rank that joins when one is absent wakes us with SIGCHLD.
void Supervisor::look_for_absent_ranks() {
  for (const auto& job : jobs_)
    if (!failed_ && !job->is_abandoned() && job->memory().header().absent.load() != 0)
      look_for_absent_ranks(*job);
}

void Supervisor::look_for_absent_ranks(RunningJob& job) {
  const boot::JobMemory& memory = job.memory();
  for (int rank = 0; rank < memory.size(); ++rank) {
    if (memory.row(rank).state.load() != RankState::running) continue;
    for (int other = 0; other < memory.size(); ++other) {
      const RankRow& row = memory.row(other);
      if (row.state.load() == RankState::dead && row.pid == 0 && row.start_error == 0)
        return fail(job, other,
                    "ended without calling MPI_Init, which rank " + std::to_string(rank) +
                        " has called",
                    1, true);
    }
  }
}

void Supervisor::fail(RunningJob& job, int rank, const std::string& cause, int status,
                      bool ends_jobs) {
  if (failed_) return;
  const int others = alive() - (job.memory().is_local(rank) && job.pid(rank) != 0 ? 1 : 0);
  const bool asked_for = status > 128 && sigismember(&passed_on_, status - 128) == 1;
  const std::string why = job.name(rank) + " " + cause;
  std::string sentence = why;
  failed_ = true;
  status_ = status;
  if (ends_jobs && others > 0)
    sentence += "; ending the other " + (others == 1 ? "rank" : plural(others, "rank"));
  if (!asked_for) say(sentence);
  if (ends_jobs) end_ranks(why);
}

// Tells the other machines what has changed here and learns what has changed there.
void Supervisor::exchange() {
  if (neighbours_ == nullptr) return;
  exchange_ = Clock::now() + neighbours_->exchange(first_job().memory());
  const auto& failure = neighbours_->failure();
  if (!failure || failed_) return;
  blame_.reset();
  failed_ = true;
  status_ = failure->status;
  std::string sentence = failure->sentence;
  if (alive() > 0)
    sentence += "; ending " + plural(alive(), "rank") + " on host " +
                first_job().memory().own_node().host.data();
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
  for (const auto& job : jobs_) {
    job->memory().header().ending.store(1);
    job->ask_for_reports();
  }
  terminate_ = Clock::now() + time_to_flush;
}

void Supervisor::terminate_ranks() {
  kill_ = Clock::now() + time_to_end;
  for (const auto& job : jobs_) {
    for (int rank = job->first(); rank < job->first() + job->started(); ++rank) {
      if (job->memory().row(rank).state.load() == RankState::aborted) continue;
      job->signal(rank, SIGTERM);
      job->signal(rank, SIGCONT); // a stopped process would not see it
    }
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

// Prints what ranks wait for, once they were asked and have answered.
void Supervisor::take_look() {
  const std::optional<std::string> pages = hang_watch_.on_time(jobs_);
  if (!pages) return;
  error_.append(*pages);
  if (!timeout_ || Clock::now() < *timeout_) return;
  timeout_.reset();
  const std::string cause =
      fmt::format("the job has not ended within {} s", options_.timeout_seconds);
  if (!failed_) {
    say(cause + "; ending " + plural(alive(), "rank"));
    failed_ = true;
    status_ = timeout_status;
  }
  end_ranks(cause);
}

void Supervisor::print_job_reports() {
  std::string own = first_job().report();
  for (std::size_t i = 1; i < jobs_.size(); ++i)
    reports_ += jobs_[i]->report();
  own += reports_;
  if (!own.empty()) error_.append(own);
}

} // namespace macadam::tools
