// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/supervisor.h"

#include "base/descriptor.h"
#include "base/error.h"
#include "boot/limits.h"
#include "boot/machine.h"
#include "tools/mpiexec/binding.h"
#include "tools/mpiexec/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <numeric>
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
constexpr auto time_to_write = 500ms;       // what nobody reads, when mpiexec was told to end
constexpr auto time_to_answer = 800ms;      // when the head asks; less than it waits
constexpr auto pause_between_polls = 10ms;  // while answers come in
constexpr auto pause_in_background = 200ms; // until the terminal may be ours again

} // namespace

Supervisor::Supervisor(const Options& options, boot::JobMemory memory, Head* head,
                       const std::string& socket)
    : options_(options), head_(head), out_(make_outlet(1)), error_(make_outlet(2)),
      services_(*this, socket) {
  jobs_.push_back(std::make_unique<RunningJob>(1, options.programs, std::move(memory)));
  if (head_ != nullptr) services_.join(*head_, first_job().memory());
  begin();
}

Supervisor::Supervisor(const Options& options, boot::JobMemory memory, pid_t pid, int process)
    : options_(options), head_(nullptr), out_(1), error_(2), services_(*this, {}) {
  jobs_.push_back(std::make_unique<RunningJob>(std::move(memory), pid, process));
  begin();
}

Outlet Supervisor::make_outlet(int stream) const {
  return head_ != nullptr ? Outlet(*head_, stream) : Outlet(stream);
}

void Supervisor::begin() {
  sigemptyset(&passed_on_);
  describe(first_job().memory());
}

// What its ranks learn of mpiexec.
void Supervisor::describe(boot::JobMemory& memory) {
  boot::JobHeader& header = memory.header();
  const boot::JobMemory& first = first_job().memory();
  header.universe = options_.universe_size > 0
                        ? options_.universe_size
                        : std::max(static_cast<int>(first.header().cores), memory.size());
  services_.socket_name().copy(header.socket.data(), boot::longest_socket_name);
  if (const boot::JobHeader& all = first.header(); all.nodes > 1)
    header.other_host = first.node(all.node == 0 ? 1 : 0).host;
  header.file = memory.fd();
  header.launcher = getpid();
}

int Supervisor::run() {
  if (options_.timeout_seconds > 0)
    timeout_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(options_.timeout_seconds));
  start_first_job();
  ends_before_ = boot::ends_for_want_of_memory(); // while the ranks start
  exchange();
  // The head may still tell whose end the ranks here have noticed.
  while (alive() > 0 || (head_ != nullptr && blame_)) {
    wait_for_events();
    on_deadlines();
    forget_ended_jobs();
  }
  fail_by_follower();
  exchange();
  services_.finish();
  watchdog_.reset();  // ends what ranks have left running,
  descendants_.end(); // and what of it has left the group
  output_.drain();
  if (hang_watch_.is_asking()) error_.append(hang_watch_.pages(questioned()));
  give_job_reports();
  flush();
  if (head_ != nullptr) head_->finish();
  if (status_ == 0 && (out_.error() != 0 || error_.error() != 0)) status_ = 1;
  return status_;
}

std::vector<Questioned*> Supervisor::questioned() const {
  std::vector<Questioned*> jobs;
  for (const auto& job : jobs_)
    if (head_ == nullptr || job->number() > 1) jobs.push_back(job.get()); // the head asks the first
  return jobs;
}

int Supervisor::alive() const {
  return std::accumulate(jobs_.begin(), jobs_.end(), 0,
                         [](int sum, const auto& job) { return sum + job->alive(); });
}

void Supervisor::start_first_job() {
  watchdog_.emplace();
  if (first_job().is_lone()) return;
  const std::vector<base::Threads> core_sets = bind_ranks(options_.binding, options_.ranks());
  if (options_.report_bindings) {
    const std::string where = head_ != nullptr ? " on " + first_job().where() : "";
    error_.append(describe_bindings(core_sets, first_job().memory().members(), where));
  }
  start_ranks(first_job(), core_sets, {});
}

void Supervisor::start_ranks(RunningJob& job, const std::vector<base::Threads>& core_sets,
                             const Gate& gate) {
  const Start start{options_.environment,
                    job.memory(),
                    first_job().memory().fd(),
                    *watchdog_,
                    signals_.original_mask(),
                    core_sets,
                    gate};
  const base::Descriptor nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  while (job.started() < job.count()) {
    const int rank = job.rank_at(job.started());
    const bool reads = &job == &first_job() && rank == 0;
    Streams streams;
    if (reads && head_ != nullptr) head_->input().open();
    InputPipe& input = head_ != nullptr ? head_->input() : input_.pipe();
    streams.in = reads ? input.reading_end() : nothing.get();
    if (options_.label || head_ != nullptr)
      output_.add(options_.label ? job.label(rank) : "", streams);
    streams.files = files_of(job, rank);
    empty(streams.files);
    const base::Descriptor out(streams.out), error(streams.error); // the rank has copies
    job.add(start_rank(start, job.program_of(rank), rank, streams));
    if (reads) input.forget_reading_end();
  }
}

OutputFiles Supervisor::files_of(const RunningJob& job, int rank) const {
  return name_files(options_.output_files, job.label(rank),
                    std::string(job.memory().host_of(rank)));
}

// Once, before the first rank that writes there.
void Supervisor::empty(const OutputFiles& files) {
  for (const std::string& name : {files.out, files.error}) {
    std::error_code error; // a rank says why it cannot have its file
    if (emptied_.insert(name).second) std::filesystem::resize_file(name, 0, error);
  }
}

RunningJob& Supervisor::launch(std::vector<Program> programs, const SpawnParent& parent, int number,
                               const Gate& gate) {
  std::int64_t ranks = 0;
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
      {{first_job().memory().own_node().host.data(), static_cast<std::uint32_t>(ranks)}}, 0,
      static_cast<std::uint32_t>(cores));
  describe(memory);
  number_programs(memory, counts_of(programs));
  boot::JobHeader& header = memory.header();
  header.has_parent = 1;
  header.parent_rank = static_cast<std::uint32_t>(parent.rank);
  header.parent = parent.ticket;
  jobs_.push_back(std::make_unique<RunningJob>(number != 0 ? number : last_number_ + 1,
                                               std::move(programs), std::move(memory),
                                               RunningJob::Parent{parent.job, parent.rank}));
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

Links::Own Supervisor::link_settings() const {
  return {first_job().memory().own_node().host.data(), options_.silence_seconds,
          signals_.original_mask()};
}

// Jobs that were spawned, so that their number is not bounded.
void Supervisor::forget_ended_jobs() {
  if (first_job().alive() == 0 && !std::exchange(first_job_ended_, true))
    services_.on_end(first_job().memory());
  for (std::size_t i = 1; i < jobs_.size(); ++i) {
    const RunningJob& job = *jobs_[i];
    if (job.alive() > 0 || job.is_starting) continue;
    services_.on_end(job.memory());
    services_.tell_ended(job.memory().header().secret);
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
  for (const Deadline& deadline : {kill_, blame_, hang_watch_.look_again()})
    until(deadline);
  for (const auto& job : jobs_)
    until(job->kill_at());
  if (head_ != nullptr) until(head_->due());
  until(output_.due());
  until(services_.must_look_at());
  if (hang_watch_.awaits_answers() || answer_until_ || locating_ || terminate_)
    longest = std::min<Clock::duration>(longest, pause_between_polls);
  if (input_.must_look_again()) longest = std::min<Clock::duration>(longest, pause_in_background);
  return std::max<Clock::duration>(longest, 0s);
}

void Supervisor::wait_for_events() {
  std::vector<pollfd> polled{signals_.polled(),
                             out_.polled(),
                             error_.polled(),
                             {first_job().alive() > 0 ? first_job().process() : -1, POLLIN, 0}};
  input_.list(polled);
  const std::size_t outputs = polled.size();
  output_.list(polled);
  const std::size_t services = polled.size();
  services_.list(polled);
  const std::size_t head = polled.size();
  if (head_ != nullptr) head_->list(polled);

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
  if (head_ == nullptr) return;
  head_->tell_others(static_cast<std::uint32_t>(alive_spawned()));
  take_orders(polled.data() + head);
}

// What the head has said; or that it says nothing any more, which ends the ranks here.
void Supervisor::take_orders(const pollfd* polled) {
  head_->take(polled, first_job().memory());
  services_.exchange(); // addresses may have come
  while (std::optional<Frame> frame = head_->next_relayed())
    services_.take(std::move(*frame));
  while (const std::optional<Head::Order> order = head_->next_order()) {
    switch (order->kind) {
    case Head::Order::Kind::signal:
      on_signal(order->signal, true);
      break;
    case Head::Order::Kind::ask:
      first_job().ask_for_reports();
      answer_until_ = Clock::now() + time_to_answer;
      if (order->with_stacks) hang_watch_.show_stacks();
      if (jobs_.size() > 1) hang_watch_.ask(questioned());
      break;
    case Head::Order::Kind::locate:
      first_job().ask_for_stacks(order->ranks);
      locating_ = true;
      break;
    case Head::Order::Kind::end:
      end_for_head();
      break;
    }
  }
  if (!head_->is_gone() || ending_) return;
  // Should it only have stood still, it learns why its job has ended.
  head_->tell({-1,
               std::string("host ") + first_job().memory().own_node().host.data() +
                   " has not heard of mpiexec for " +
                   fmt::format("{} s", head_->silence().allowed_seconds()),
               1, true, false});
  end_for_head();
}

void Supervisor::end_for_head() {
  failed_ = true;
  blame_.reset();
  follower_.reset();
  end_ranks();
}

void Supervisor::on_deadlines() {
  const auto now = Clock::now();
  if (timeout_ && now >= *timeout_) {
    hang_watch_.show_stacks();
    hang_watch_.ask(questioned());
  }
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
  for (const auto& job : jobs_)
    if (job->kill_at() && now >= *job->kill_at()) job->kill_abandoned();
  if (kill_ && now >= *kill_) {
    kill_.reset();
    watchdog_->signal_group(SIGKILL);
    for (const auto& job : jobs_)
      job->signal_all(SIGKILL); // they may have left the group
  }
}

void Supervisor::take_signals() {
  bool child = false;
  while (const std::optional<int> number = signals_.next()) {
    if (*number == SIGCHLD)
      child = true;
    else
      on_signal(*number, head_ == nullptr);
  }
  if (child) {
    reap();
    look_for_aborts();
    exchange();
    look_for_absent_ranks();
  }
}

// What somebody sends to a machine's part of mpiexec alone is news to the user.
void Supervisor::on_signal(int number, bool is_users) {
  if (number == SIGUSR1) return hang_watch_.ask(questioned());
  if (is_users) sigaddset(&passed_on_, number);
  if (watchdog_) watchdog_->signal_group(number);
  if (ends_programs(number)) end_signal_ = number;
  if (number == SIGCONT || (number == SIGTSTP && head_ == nullptr)) services_.tell_signal(number);
  if (number == SIGTSTP && head_ == nullptr) raise(SIGSTOP); // and our shell sees the job stopped
  // A user that asks twice will not wait for programs that do not heed the first time.
  if (is_users && ends_programs(number) && ++interrupts_ >= 2 && is_urgent(number)) {
    if (!failed_) status_ = 128 + number;
    failed_ = true;
    end_ranks();
  }
}

// Tells the head what has changed here.
void Supervisor::exchange() {
  if (head_ != nullptr) {
    head_->exchange(first_job().memory());
    head_->tell_others(static_cast<std::uint32_t>(alive_spawned())); // before it hears of a spawn
  }
  services_.exchange();
}

void Supervisor::say(const std::string& sentence) {
  error_.append("mpiexec: " + sentence + "\n");
}

void Supervisor::flush() {
  Deadline end;
  while (head_ == nullptr || !head_->is_gone()) {
    look_for_lost_output();
    if (!out_.has_pending() && !error_.has_pending()) return;
    int ms = -1;
    if (end_signal_ != 0) {
      if (!end) end = Clock::now() + time_to_write;
      ms = static_cast<int>(
          std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count());
      if (ms <= 0) break;
    }
    std::vector<pollfd> polled{signals_.polled(), out_.polled(), error_.polled()};
    if (head_ != nullptr) {
      head_->list(polled);
      ms = static_cast<int>(Silence::interval.count());
    }
    poll(polled.data(), polled.size(), ms);
    if (head_ != nullptr) take_orders(polled.data() + 3);
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
  if (answer_until_ && (Clock::now() >= *answer_until_ || first_job().all_have_answered())) {
    answer_until_.reset();
    head_->tell(first_job().memory(), first_job().look());
  }
  const std::optional<std::string> pages = hang_watch_.on_time(questioned());
  if (pages) {
    error_.append(*pages);
    error_.write_some();
  }
  // Behind the pages about other jobs here: the head may end all then.
  if (locating_ && first_job().stacks_are_known() && !hang_watch_.is_asking()) {
    locating_ = false;
    head_->tell(first_job().stacks());
  }
  if (!pages) return;
  if (!timeout_ || Clock::now() < *timeout_) return;
  timeout_.reset();
  const std::string cause =
      fmt::format("the job has not ended within {} s", options_.timeout_seconds);
  if (!failed_) {
    say(cause + "; ending " + plural(alive(), "rank"));
    failed_ = true;
    status_ = timeout_status;
  }
  end_ranks();
}

void Supervisor::give_job_reports() {
  if (head_ != nullptr) {
    for (const auto& [rank, text] : first_job().final_reports())
      head_->tell_report(rank, text);
  }
  std::string own = head_ == nullptr ? first_job().report() : "";
  for (std::size_t i = 1; i < jobs_.size(); ++i)
    reports_ += jobs_[i]->report();
  own += reports_;
  if (!own.empty()) error_.append(own);
}

} // namespace macadam::tools
