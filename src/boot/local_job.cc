// SPDX-License-Identifier: BSD-3-Clause
#include "boot/local_job.h"

#include "base/error.h"
#include "boot/futex.h"
#include "boot/hang/time_limit.h"
#include "boot/job_report.h"
#include "boot/launcher.h"
#include "boot/launcher_client.h"
#include "boot/local_universe.h"
#include "boot/machine.h"
#include "boot/packet.h"
#include "boot/streams.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace macadam::boot {
namespace {

constexpr const char* alone_word = "alone"; // in the variable
// Less than this is promised without a look at the machine.
constexpr std::uint64_t least_asked_for = std::uint64_t{4} << 20;
constexpr int nap_ms = 5; // how long barrier() sleeps between two looks around

struct Invitation {
  int fd;
  int rank;
};

Invitation parse_invitation(std::string_view text) {
  Invitation result{};
  const char* end = text.data() + text.size();
  const auto fd = std::from_chars(text.data(), end, result.fd);
  if (fd.ec == std::errc() && fd.ptr != end && *fd.ptr == ':') {
    const auto rank = std::from_chars(fd.ptr + 1, end, result.rank);
    if (rank.ec == std::errc() && rank.ptr == end && result.fd >= 0 && result.rank >= 0)
      return result;
  }
  base::fail(MPI_ERR_OTHER,
             "{}=\"{}\" is not what mpiexec writes there (DESCRIPTOR:RANK, two numbers); set it to "
             "\"alone\" to run this program alone",
             job_variable, text);
}

struct Place {
  JobMemory* job;
  int rank;
};

// Which rank this process is, where the environment that would say so was cleared (env -i): that of
// the nearest process, from this one upwards, that an mpiexec has started.
std::optional<Place> find_place(std::span<JobMemory> jobs) {
  for (pid_t pid = getpid(); pid > 1; pid = parent_of(pid))
    for (JobMemory& job : jobs)
      for (const std::uint32_t rank : job.members())
        if (job.row(static_cast<int>(rank)).child == pid)
          return Place{&job, static_cast<int>(rank)};
  return std::nullopt;
}

// The memory of the job that `pid` has under this descriptor; -1 if it is none or not to be had.
int open_job_of(pid_t pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  std::array<char, 64> target{};
  if (readlink(path.c_str(), target.data(), target.size() - 1) < 0 ||
      !std::string_view(target.data()).starts_with("/memfd:macadam-job"))
    return -1;
  const int low = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const int own = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, first_job_descriptor);
  if (low >= 0) close(low);
  return own;
}

// The jobs of the nearest process above this one that has any.
std::vector<JobMemory> jobs_above() {
  std::vector<JobMemory> jobs;
  for (pid_t pid = parent_of(getpid()); pid > 1 && jobs.empty(); pid = parent_of(pid))
    for (int i = 0; i < job_descriptors; ++i)
      if (const int fd = open_job_of(pid, first_job_descriptor + i); fd >= 0)
        jobs.push_back(JobMemory::attach(fd));
  return jobs;
}

[[noreturn]] void refuse_to_guess() {
  base::fail(MPI_ERR_OTHER,
             "mpiexec has left the memory of its job to this program, but {} is not in the "
             "environment, and no process above this one is a rank that mpiexec has started; pass "
             "the variable on, or set {}={} to run this program alone",
             job_variable, job_variable, alone_word);
}

std::vector<std::string> values_of(const std::map<int, std::string>& reports) {
  std::vector<std::string> texts;
  for (const auto& [rank, text] : reports)
    texts.push_back(text);
  return texts;
}

} // namespace

LocalJob::LocalJob(JobMemory memory, int rank, bool alone)
    : memory_(std::move(memory)), rank_(rank), alone_(alone) {}
LocalJob::LocalJob(LocalJob&&) noexcept = default;
LocalJob::~LocalJob() = default;

Universe* LocalJob::universe() {
  if (client_) return nullptr;
  if (!universe_) universe_ = std::make_unique<LocalUniverse>(*this, memory_);
  return universe_.get();
}

LocalJob LocalJob::take(JobMemory memory, int rank) {
  RankRow& row = memory.row(rank);
  RankState expected = RankState::starting;
  if (!row.state.compare_exchange_strong(expected, RankState::finalized))
    base::fail(MPI_ERR_OTHER,
               "rank {} of this job is taken by process {} already; mpiexec starts one MPI "
               "program for each rank: set {}={} to run this one alone",
               rank, row.pid, job_variable, alone_word);
  row.pid = getpid();
  // Programs that this one starts are jobs of their own.
  unsetenv(job_variable);
  return {std::move(memory), rank, false};
}

LocalJob LocalJob::join() {
  const char* const text = std::getenv(job_variable);
  if (text != nullptr && std::string_view(text) != alone_word) {
    const Invitation invitation = parse_invitation(text);
    JobMemory memory = JobMemory::attach(invitation.fd);
    if (invitation.rank >= memory.size() || !memory.is_local(invitation.rank))
      base::fail(MPI_ERR_OTHER, "{}=\"{}\" names rank {}, but the ranks of the job here are {}",
                 job_variable, text, invitation.rank, fmt::join(memory.members(), ", "));
    return take(std::move(memory), invitation.rank);
  }
  if (text == nullptr) {
    if (std::vector<JobMemory> jobs = JobMemory::inherited(); !jobs.empty()) {
      const auto place = find_place(jobs);
      if (!place) refuse_to_guess();
      return take(std::move(*place->job), place->rank);
    }
    // The descriptor may have been closed besides. A program that was started by a rank which is in
    // MPI already is no rank itself.
    std::vector<JobMemory> jobs = jobs_above();
    const auto place = find_place(jobs);
    if (place && place->job->row(place->rank).state.load() == RankState::starting)
      return take(std::move(*place->job), place->rank);
  }
  if (text == nullptr)
    if (std::optional<LocalJob> job = join_by_client()) return std::move(*job);
  if (const std::string refusal = refuse_foreign_launcher(); !refusal.empty())
    throw base::Error(MPI_ERR_OTHER, refusal);
  JobMemory memory = JobMemory::alone(usable_cores(), host_name());
  memory.header().universe = static_cast<std::int32_t>(memory.header().cores);
  memory.row(0).state = RankState::finalized;
  memory.row(0).pid = getpid();
  return {std::move(memory), 0, true};
}

std::optional<LocalJob> LocalJob::join_by_client() {
  std::unique_ptr<LauncherClient> client = connect_with_launcher();
  if (!client) return std::nullopt;
  JobMemory memory = client->make_memory();
  LocalJob job = take(std::move(memory), client->rank());
  job.client_ = std::move(client);
  return job;
}

int LocalJob::ranks_of_program() const {
  if (client_) return 0; // which tells of this rank alone
  // They are numbered program by program.
  const auto same = std::ranges::equal_range(std::views::iota(0, size()), app_number(), {},
                                             [&](int rank) { return memory_.row(rank).app; });
  return static_cast<int>(same.size());
}

std::vector<ProcessSet> LocalJob::process_sets() const {
  std::vector<ProcessSet> sets;
  for (const SetRow& row : memory_.sets()) {
    auto set = std::ranges::find(sets, std::string_view(row.name.data()), &ProcessSet::name);
    if (set == sets.end()) set = sets.insert(set, {row.name.data(), {}});
    for (std::uint32_t i = 0; i < row.ranks; ++i)
      set->ranks.push_back(row.first + i);
  }
  return sets;
}

std::uint32_t LocalJob::enter() {
  if (has_other_machines() && parted_)
    base::fail(MPI_ERR_OTHER,
               "MPI can not start again after MPI_Finalize in a job on several machines; keep a "
               "session open across MPI_Finalize");
  JobHeader& header = memory_.header();
  if (client_) client_->enter(memory_);
  if (client_ && header.timeout_ms != 0 && local_rank() == 0)
    time_limit_ = std::make_unique<TimeLimit>(memory_, *client_, start_);
  if (!has_other_machines()) {
    // The generation, and how many are in it.
    std::uint64_t word = header.generation.load();
    std::uint64_t next = 0;
    do {
      const bool first = static_cast<std::uint32_t>(word) == 0;
      next = word + 1 + (first ? std::uint64_t{1} << 32 : 0);
    } while (!header.generation.compare_exchange_weak(word, next));
    generation_ = static_cast<std::uint32_t>(next >> 32);
  }
  own_row().state.store(RankState::running, std::memory_order_release);
  // An absent rank was no failure until now.
  if (header.absent.load() != 0) memory_.tell_launcher();
  return generation_;
}

void LocalJob::leave() {
  if (!has_other_machines()) memory_.header().generation.fetch_sub(1);
}

bool LocalJob::is_over(std::uint32_t generation) const {
  if (has_other_machines()) return parted_;
  const std::uint64_t word = memory_.header().generation.load();
  return static_cast<std::uint32_t>(word >> 32) != generation ||
         static_cast<std::uint32_t>(word) == 0;
}

void LocalJob::publish(std::span<const std::byte> endpoint_address) {
  if (endpoint_address.size() > endpoint_address_bytes)
    base::fail(MPI_ERR_INTERN, "an endpoint address of {} bytes does not fit into {}",
               endpoint_address.size(), endpoint_address_bytes);
  RankRow& row = own_row();
  row.refuses_strangers.store(0);
  row.address.agreement = agreement();
  std::copy(endpoint_address.begin(), endpoint_address.end(), row.address.endpoint.begin());
  row.endpoint_used.store(static_cast<std::uint32_t>(endpoint_address.size()),
                          std::memory_order_release);
  row.published.store(generation_, std::memory_order_release);
  if (client_) {
    if (has_other_machines()) client_->publish(row.address.bytes(endpoint_address.size()));
  } else if (has_other_machines() || !endpoint_address.empty()) {
    memory_.tell_launcher();
  }
}

void LocalJob::refuse_strangers() {
  own_row().refuses_strangers.store(generation_, std::memory_order_release);
  memory_.tell_launcher();
}

std::optional<std::span<const std::byte>> LocalJob::fetch(int rank) const {
  auto address = memory_.fetch(rank, generation_);
  if (!address && !is_local(rank)) client_ ? client_->fetch(memory_, rank) : memory_.want(rank);
  return address;
}

unsigned LocalJob::failures() const {
  if (client_) client_->look_for_ended(memory_);
  return memory_.header().failed.load(std::memory_order_acquire);
}

void LocalJob::give_up() {
  own_row().given_up.store(generation_ + 1);
  memory_.header().failed.fetch_add(1, std::memory_order_release);
}

SharedMemory LocalJob::own_memory() {
  memory_.share();
  return memory_of(rank_);
}

SharedMemory LocalJob::memory_of(int rank) const {
  if (!is_local(rank))
    base::fail(MPI_ERR_INTERN, "rank {} is on host {}, its memory cannot be mapped on host {}",
               rank, host_of(rank), host());
  return {memory_.fd(), memory_.segment_offset(rank), segment_capacity};
}

void LocalJob::clear_memory() {
  if (!memory_.shared()) return;
  const SharedMemory own = own_memory();
  fallocate(own.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(own.offset),
            static_cast<off_t>(own.capacity));
}

std::string LocalJob::promise(std::uint64_t bytes) {
  std::atomic<std::uint64_t>& promised = memory_.header().promised;
  const std::uint64_t all = promised.fetch_add(bytes) + bytes;
  if (bytes < least_asked_for) return {};
  const FreeMemory free = free_memory();
  // What a rank without neighbours has touched is not known; it is in memory of its own.
  const std::uint64_t touched = local_size() > 1 ? memory_.resident() : all - bytes;
  const std::uint64_t untouched = all - std::min(all - bytes, touched);
  if (untouched <= free.bytes) return {};
  promised.fetch_sub(bytes);
  return fmt::format(
      "{} MiB are needed; {} has {} MiB free, of which {} MiB are promised to windows "
      "already; free some of it or ask for less{}",
      bytes >> 20, free.whose, free.bytes >> 20, (untouched - bytes) >> 20, free.remedy);
}

void LocalJob::barrier(const std::function<void()>& idle) {
  const bool one_machine = memory_.header().nodes == 1;
  if (client_ && !one_machine) return wait_for_all_nodes(idle);
  wait_for_ranks(idle);
  // What `idle` writes to a rank that went on would hit memory that is in use for something else
  // by then. Jobs on several machines do not use it again.
  if (one_machine) wait_for_ranks({});
  parted_ = true;
}

void LocalJob::wait_for_ranks(const std::function<void()>& idle) {
  JobHeader& header = memory_.header();
  const std::uint32_t round = header.barrier_round.load(std::memory_order_acquire);
  const auto ranks = static_cast<std::uint32_t>(local_size());
  if (header.barrier_arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks) {
    if (header.nodes == 1) return memory_.open_barrier();
    memory_.tell_launcher(); // which opens it when the last node has come
  }
  for (;;) {
    futex_wait(header.barrier_round, round, nap_ms);
    if (header.barrier_round.load(std::memory_order_acquire) != round) return;
    if (idle)
      idle(); // MPI knows more to report
    else
      report_waiting("MPI_Finalize", "the other ranks");
  }
}

void LocalJob::wait_for_all_nodes(const std::function<void()>& idle) {
  client_->begin_fence(memory_);
  while (!client_->fence_is_over(memory_)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(nap_ms));
    if (idle) idle();
  }
  parted_ = true;
}

void LocalJob::finalize() {
  own_row().state.store(RankState::finalized, std::memory_order_release);
  if (universe_) universe_->rest();
  time_limit_.reset();
  if (merges_reports() && parted_) merge_reports();
  if (client_) client_->leave();
}

void LocalJob::end_job(int code, std::string_view text, Blame blame) {
  RankRow& row = own_row();
  row.code = code;
  row.blame = blame;
  static_assert(std::tuple_size_v<decltype(row.text)> == longest_reason + 1);
  const std::size_t length = std::min(text.size(), longest_reason);
  std::copy_n(text.data(), length, row.text.data());
  row.text[length] = 0;
  row.state.store(RankState::aborted, std::memory_order_release);
  // Before the flush, which can hang when another thread holds a stream, and not left to the end of
  // this process, which a wrapper between us and mpiexec may outlive. Mpiexec gives us time to
  // flush.
  if (alone()) fmt::print(stderr, "macadam: this program {}\n", text);
  if (client_) fmt::print(stderr, "macadam: rank {} on host {} {}\n", rank_, host(), text);
  memory_.tell_launcher();
  flush_streams();
  if (client_) client_->abort(code, row.text.data());
  _exit(code >= 1 && code <= 255 ? code : 1);
}

void LocalJob::report_waiting(std::string_view function, std::string_view what) const {
  if (report_wanted())
    write_report(fmt::format(R"({{"waiting_in": "{}", "waiting_for": "{}"}})", function, what));
}

void LocalJob::put_report(ReportKind kind, std::string_view json) const {
  RankRow& row = own_row();
  ReportArea& area = memory_.report(rank_);
  const std::uint32_t asked = memory_.header().reports_wanted.load(std::memory_order_acquire);
  std::string too_long;
  if (json.size() > area.text.size()) {
    too_long = fmt::format(R"({{"error": "a report of {} bytes does not fit into {}"}})",
                           json.size(), area.text.size());
    json = too_long;
  }
  std::copy(json.begin(), json.end(), area.text.begin());
  area.bytes = static_cast<std::uint32_t>(json.size());
  area.kind = static_cast<std::uint32_t>(kind);
  if (is_ending()) flush_streams();
  row.report_answered.store(asked, std::memory_order_release);
}

void LocalJob::write_final_report(std::string_view json) {
  put_report(ReportKind::final, json);
  if (alone()) std::fputs(give_report({std::string(json)}, {}).c_str(), stderr);
  if (client_ && !merges_reports()) print_reports();
}

// The last rank of this machine prints the reports of all here.
void LocalJob::print_reports() const {
  if (memory_.header().reported.fetch_add(1) + 1 != memory_.own_node().ranks) return;
  const std::vector<std::string> texts = values_of(reports_here());
  const bool is_part = memory_.header().nodes > 1;
  std::fputs(give_report(texts, is_part ? std::string(host()) : "").c_str(), stderr);
}

std::map<int, std::string> LocalJob::reports_here() const {
  std::map<int, std::string> reports;
  for (const std::uint32_t member : memory_.members()) {
    const auto rank = static_cast<int>(member);
    const ReportArea& area = memory_.report(rank);
    if (area.kind == static_cast<std::uint32_t>(ReportKind::final))
      reports.emplace(
          rank, std::string(area.text.data(), std::min<std::size_t>(area.bytes, area.text.size())));
  }
  return reports;
}

// Those of a machine that cannot be had leave a text that says why.
std::map<int, std::string> LocalJob::reports_of(std::uint32_t node) {
  const auto first = static_cast<int>(memory_.members(node).front());
  std::map<int, std::string> reports;
  try {
    const std::string texts = client_->get_reports(first);
    const auto bytes = std::as_bytes(std::span(texts));
    PacketReader packet({bytes.begin(), bytes.end()});
    for (auto left = packet.value<std::uint32_t>(); left > 0; --left) {
      const auto rank = packet.value<std::int32_t>();
      reports[rank] = packet.text();
    }
  } catch (const base::Error& error) {
    reports[first] = fmt::format("of host {}: {}", host_of(first), error.text);
  }
  return reports;
}

// The first rank of each machine hands over what the ranks there have left, behind a fence; behind
// a second one rank 0 has it, and the servers of other machines may end.
void LocalJob::merge_reports() {
  JobHeader& header = memory_.header();
  const NodeRow& here = memory_.own_node();
  header.reported.fetch_add(1, std::memory_order_acq_rel);
  if (local_rank() == 0) {
    while (header.reported.load(std::memory_order_acquire) < here.ranks) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      client_->look_for_ended(memory_);
    }
    PacketWriter packet;
    const std::map<int, std::string> reports = reports_here();
    packet.value(static_cast<std::uint32_t>(reports.size()));
    for (const auto& [rank, text] : reports) {
      packet.value(std::int32_t{rank});
      packet.text(text);
    }
    if (rank_ != 0) client_->put_reports(packet.view());
  }
  wait_for_all_nodes({});
  std::map<int, std::string> all;
  if (rank_ == 0) {
    all = reports_here();
    for (std::uint32_t node = 0; node < header.nodes; ++node)
      if (node != header.node) all.merge(reports_of(node));
  }
  wait_for_all_nodes({});
  if (!all.empty()) std::fputs(give_report(values_of(all), "").c_str(), stderr);
}

} // namespace macadam::boot
