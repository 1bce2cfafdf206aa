// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/spawner.h"

#include "base/error.h"
#include "tools/mpiexec/program_file.h"
#include "tools/mpiexec/proxy_order.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <optional>
#include <system_error>
#include <unistd.h>

namespace macadam::tools {
namespace {

// Both ends are closed on exec, and at the end of this.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::generic_category(), "making a pipe");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  [[nodiscard]] int reading_end() const { return ends_[0]; }
  [[nodiscard]] int writing_end() const { return ends_[1]; }
  int release_reading_end() { return std::exchange(ends_[0], -1); }

 private:
  int ends_[2];
};

// The next smaller number of processes that is acceptable, of the last command that has one. False:
// there is none.
bool reduce(std::vector<int>& counts, const std::vector<boot::SpawnProgram>& programs) {
  for (std::size_t i = programs.size(); i-- > 0;) {
    const auto smaller = std::ranges::lower_bound(programs[i].counts, counts[i]);
    if (smaller == programs[i].counts.begin()) continue;
    counts[i] = *std::prev(smaller);
    return true;
  }
  return false;
}

} // namespace

void write(boot::PacketWriter& packet, const SpawnParent& parent) {
  packet.value(parent.ticket);
  packet.value(parent.job);
  packet.value(parent.rank);
  write(packet, parent.environment);
}

SpawnParent read_parent(boot::PacketReader& packet) {
  SpawnParent parent;
  parent.ticket = packet.value<boot::JobTicket>();
  parent.job = packet.value<std::int32_t>();
  parent.rank = packet.value<std::int32_t>();
  parent.environment = read_variables(packet);
  return parent;
}

Spawner::~Spawner() {
  for (const Start& start : starts_)
    if (start.pipe >= 0) close(start.pipe);
}

void Spawner::begin(Id id, const SpawnParent& parent, int number,
                    const std::vector<boot::SpawnProgram>& programs) {
  std::vector<Program> made;
  std::vector<int> counts;
  for (const boot::SpawnProgram& each : programs) {
    Program& program = made.emplace_back();
    program.command = each.command;
    program.environment = parent.environment;
    program.folder = each.folder;
    program.path = each.path;
    static_cast<void>(find_program(program, launcher_.variable(program, "PATH")));
    counts.push_back(each.counts.back());
  }
  for (;;) {
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i].ranks = counts[i];
    try {
      return launch(id, parent, number, made);
    } catch (const std::exception& error) {
      if (reduce(counts, programs)) continue;
      base::fail(MPI_ERR_SPAWN, "{} processes cannot be started: {}",
                 std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), error.what());
    }
  }
}

void Spawner::launch(Id id, const SpawnParent& parent, int number,
                     const std::vector<Program>& programs) {
  Pipe gate, started;
  RunningJob& job = launcher_.launch(
      programs, parent, number, {gate.reading_end(), gate.writing_end(), started.writing_end()});
  job.is_starting = true;
  starts_.push_back({id, job.number(), started.release_reading_end(), counts_of(programs)});
}

void Spawner::list(std::vector<pollfd>& polled) {
  for (const Start& start : starts_)
    polled.push_back({start.pipe, POLLIN, 0});
}

void Spawner::take(const pollfd* first) {
  for (Start& start : starts_)
    if ((first++)->revents != 0) finish(start);
  std::erase_if(starts_, [](const Start& start) { return start.id == 0; });
}

// All processes have become their programs, or have ended.
void Spawner::finish(Start& start) {
  close(std::exchange(start.pipe, -1));
  RunningJob* const job = launcher_.find_job(start.job);
  const Id id = start.id;
  if (job == nullptr || job->is_abandoned()) {
    drop(start);
    server_.refuse(id, base::Error(MPI_ERR_SPAWN, "the job has ended before it was started"));
    return;
  }
  job->is_starting = false;
  for (const std::uint32_t member : job->memory().members()) {
    const auto rank = static_cast<int>(member);
    const boot::RankRow& row = job->memory().row(rank);
    if (row.start_error == 0) continue;
    job->abandon();
    drop(start);
    server_.refuse(id, base::Error(MPI_ERR_SPAWN, launcher_.why_not_started(*job, rank)));
    return;
  }
  boot::Spawned spawned;
  const boot::JobHeader& header = job->memory().header();
  spawned.job =
      boot::make_ticket(header.secret, header.socket.data(), job->memory().own_node().host.data());
  spawned.ranks = start.counts;
  boot::PacketWriter packet;
  boot::write_spawned(packet, spawned);
  if (server_.answer(id, packet, job->memory().fd(), ControlServer::Then::await_confirmation))
    return;
  job->abandon();
  drop(start);
}

void Spawner::drop(Start& start) {
  start.id = 0;
  launcher_.settle(start.job, false);
}

void Spawner::on_confirmed(Id id) {
  const auto found = std::ranges::find(starts_, id, &Start::id);
  if (found == starts_.end()) return;
  const int job = found->job;
  starts_.erase(found);
  launcher_.settle(job, true);
}

bool Spawner::is_unconfirmed(int job) const {
  return std::ranges::find(starts_, job, &Start::job) != starts_.end();
}

bool Spawner::on_gone(Id id) {
  const auto found = std::ranges::find(starts_, id, &Start::id);
  if (found == starts_.end()) return false;
  if (RunningJob* const job = launcher_.find_job(found->job); job != nullptr) job->abandon();
  if (found->pipe >= 0) close(found->pipe);
  const int gone = found->job;
  starts_.erase(found);
  launcher_.settle(gone, false);
  return true;
}

} // namespace macadam::tools
