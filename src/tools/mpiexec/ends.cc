// SPDX-License-Identifier: BSD-3-Clause
// How ranks end, and what follows from it.
#include "tools/mpiexec/program_file.h"
#include "tools/mpiexec/supervisor.h"
#include "tools/mpiexec/words.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/wait.h>
#include <tuple>
#include <utility>
#include <vector>

namespace macadam::tools {

using namespace std::chrono_literals;
using boot::RankRow;
using boot::RankState;

namespace {

constexpr auto time_to_end = 500ms;         // between SIGTERM and SIGKILL
constexpr auto time_to_blame = 250ms;       // for the end of a rank that others have noticed
constexpr auto time_to_blame_afar = 1500ms; // ... if it may be on another machine

// An exception that nobody caught has been printed; what ends the job at once is not known to many.
std::string hint_for_python(const std::vector<std::string>& command, int status) {
  const std::string name = std::filesystem::path(command.front()).filename();
  const bool by_mpi4py = std::ranges::find(command, "mpi4py") != command.end();
  if (!name.starts_with("python") || WEXITSTATUS(status) != 1 || by_mpi4py) return {};
  return " (with python -m mpi4py an uncaught exception calls MPI_Abort)";
}

} // namespace

std::string Supervisor::hint_for_memory(int signal) const {
  if (signal != SIGKILL || boot::ends_for_want_of_memory() == ends_before_) return {};
  const boot::GroupLimit limit = boot::memory_limit();
  if (limit.file.empty())
    return ", by the kernel, as the memory of the control group was used up: run fewer ranks, or "
           "raise its memory.max (docker run --memory, srun --mem)";
  return fmt::format(
      ", by the kernel, as the memory of the control group, {} MiB, was used up: run "
      "fewer ranks, or raise it with \"echo {}M >{}\" (docker run --memory, srun "
      "--mem)",
      limit.most >> 20, limit.most >> 19, limit.file);
}

std::string Supervisor::why_not_started(const RunningJob& job, int rank) const {
  const RankRow& row = job.memory().row(rank);
  const Program& program = job.program_of(rank);
  const auto failed = [&](const std::string& what) {
    return "could not " + what + ": " + std::strerror(row.start_error);
  };
  switch (row.failed_step) {
  case boot::StartStep::open_output:
    return failed("open the file of its output, " + files_of(job, rank).out);
  case boot::StartStep::open_errors:
    return failed("open the file of its output, " + files_of(job, rank).error);
  case boot::StartStep::enter_folder:
    return failed("enter the folder " + program.folder) + hint_for_path(program, row.start_error);
  case boot::StartStep::execute:
    break;
  }
  return failed("start " + program.command.front()) + hint_for_path(program, row.start_error);
}

void Supervisor::reap() {
  std::vector<std::tuple<RunningJob*, int, int>> ended; // job, rank, status
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (services_.note_end(pid, status)) continue;
    for (const auto& job : jobs_) // or the watchdog, or a child from before mpiexec was executed
      if (const auto rank = job->is_lone() ? std::nullopt : job->note_end(pid))
        ended.emplace_back(job.get(), *rank, status);
  }
  // If several are seen at once, one that a signal killed is a cause rather than a consequence.
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
  const bool has_begun = row.published.load() != 0; // at some time

  if (row.start_error != 0) {
    fail(job, rank, why_not_started(job, rank), 127, true);
  } else if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    const char* description = sigdescr_np(number);
    fail(job, rank,
         "was killed by signal " + std::to_string(number) + " (" +
             (description ? description : "unknown") + ")" + hint_for_memory(number),
         128 + number, state != RankState::finalized || !has_begun); // the others may wait for it
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
  const RankState state = row.state.load(std::memory_order_acquire);
  if (state == RankState::finalized) row.state.store(RankState::gone, std::memory_order_release);
  if (state == RankState::running || state == RankState::starting) {
    row.state.store(RankState::dead, std::memory_order_release);
    job.memory().header().failed.fetch_add(1, std::memory_order_release);
  }
  services_.on_end(job.memory());
  if (state == RankState::aborted) { // and has said so
    failed_ = true;
    end_ranks();
  } else if (row.state.load() == RankState::dead && alive() > 0) {
    fail(job, 0, "has ended without calling MPI_Finalize", 1, true);
  }
}

// MPI_Abort, also before the process has ended: it takes a moment to flush its output.
void Supervisor::look_for_aborts() {
  for (const auto& job : jobs_)
    for (int place = 0; place < job->count() && !failed_; ++place)
      if (const int rank = job->rank_at(place);
          job->memory().row(rank).state.load(std::memory_order_acquire) == RankState::aborted &&
          !job->is_lone() && !job->is_abandoned())
        on_abort(*job, rank);
}

// A rank sees that another one's memory is gone before the system tells us of its end.
void Supervisor::on_abort(RunningJob& job, int rank) {
  if (job.memory().row(rank).blame == boot::Blame::self) return fail_by_abort(job, rank, "");
  if (follower_) return;
  follower_ = {job.number(), rank};
  blame_ = Clock::now() + (head_ == nullptr ? time_to_blame : time_to_blame_afar);
}

void Supervisor::fail_by_abort(RunningJob& job, int rank, const std::string& reason) {
  const RankRow& row = job.memory().row(rank);
  fail(job, rank, row.text.data() + (reason.empty() ? "" : "; " + reason),
       row.code >= 1 && row.code <= 255 ? row.code : 1, true);
}

void Supervisor::fail_by_follower() {
  const std::optional<Follower> follower = std::exchange(follower_, {});
  RunningJob* const job = follower ? find_job(follower->job) : nullptr;
  // The one that has ended may have been another mpiexec's.
  if (job != nullptr && !job->is_abandoned())
    fail_by_abort(*job, follower->rank, services_.last_loss());
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
  const std::string why = job.name(rank) + " " + cause;
  const bool asked_for = status > 128 && sigismember(&passed_on_, status - 128) == 1;
  if (ends_jobs && services_.is_unconfirmed(job.number())) {
    failed_in_spawn_.emplace(job.number(), Head::Failure{-1, why, status, true, asked_for});
    if (follower_ && follower_->job == job.number()) { // of what is known now
      follower_.reset();
      blame_.reset();
    }
    return job.abandon();
  }
  // One that ends nobody, as a spawned rank's after MPI_Finalize, is told and decides the status;
  // but a later one may still end the jobs.
  if (failed_ && (ending_ || !ends_jobs)) return;
  const int others = alive() - (job.memory().is_local(rank) && job.pid(rank) != 0 ? 1 : 0);
  const bool is_first = job.number() == 1;
  const bool counts = !is_first && job.pid(rank) != 0;
  fail({is_first ? rank : -1, why, status, ends_jobs, asked_for, counts}, others);
}

void Supervisor::fail(const Head::Failure& failure, int others) {
  if (!std::exchange(failed_, true)) status_ = failure.status;
  if (head_ != nullptr) {
    exchange();
    head_->tell(failure);
  } else if (!failure.quiet) {
    say(failure.ends_jobs ? failure.sentence + ending_others(others) : failure.sentence);
  }
  if (failure.ends_jobs) end_ranks();
}

// What has failed in a spawn is an error of that if it fails, and else one like any other.
void Supervisor::settle(int job, bool is_kept) {
  const auto found = failed_in_spawn_.extract(job);
  if (found.empty() || ending_) return; // it ended with the others
  const Head::Failure& failure = found.mapped();
  if (is_kept) {
    const RunningJob* const its = find_job(job); // its ranks end already
    fail(failure, alive() - (its != nullptr ? its->alive() : 0));
  } else if (!failure.quiet) {
    say(failure.sentence + "; it was being spawned, and the spawn fails");
  }
}

void Supervisor::end_ranks() {
  if (ending_) return;
  ending_ = true;
  for (const auto& job : jobs_) {
    job->memory().header().ending.store(1);
    job->ask_for_reports();
  }
  terminate_ = Clock::now() + time_to_flush;
}

void Supervisor::terminate_ranks() {
  kill_ = Clock::now() + time_to_end;
  for (const auto& job : jobs_) {
    for (int place = 0; place < job->started(); ++place) {
      const int rank = job->rank_at(place);
      if (job->memory().row(rank).state.load() == RankState::aborted) continue;
      job->signal(rank, SIGTERM);
      job->signal(rank, SIGCONT); // a stopped process would not see it
    }
  }
}

} // namespace macadam::tools
