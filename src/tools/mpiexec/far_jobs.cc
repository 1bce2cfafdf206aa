// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/far_jobs.h"

#include "base/error.h"
#include "boot/machine.h"

#include <algorithm>
#include <utility>

namespace macadam::tools {

using namespace std::chrono_literals;
using boot::PacketReader;
using boot::PacketWriter;
using boot::RankState;
using boot::Request;
using boot::RequestHead;

namespace {

constexpr auto look_interval = 500ms;
constexpr auto time_to_use = 2s; // until a rank that was given a job's memory says that it has it

} // namespace

std::uint32_t generation_of(const boot::JobMemory& memory) {
  return std::max(1u, static_cast<std::uint32_t>(memory.header().generation.load() >> 32));
}

// Machines of ranks as runs: most jobs have few of them.
PacketWriter describe(const boot::JobMemory& memory) {
  PacketWriter packet;
  packet.value(generation_of(memory));
  packet.value(memory.header().nodes);
  for (std::uint32_t node = 0; node < memory.header().nodes; ++node)
    packet.text(memory.node(node).host.data());
  packet.value(memory.header().size);
  for (int rank = 0; rank < memory.size();) {
    const int first = rank;
    while (rank < memory.size() && memory.node_of(rank) == memory.node_of(first))
      ++rank;
    packet.value(memory.node_of(first));
    packet.value(static_cast<std::uint32_t>(rank - first));
  }
  return packet;
}

void FarJobs::meet(Id client, const boot::Secret& secret, const Place& place) {
  const auto [found, is_new] = jobs_.try_emplace(secret);
  Job& job = found->second;
  if (job.memory) return give(job, client);
  job.clients.push_back(client);
  if (!is_new) return;
  job.place = place;
  PacketWriter request;
  request.value(RequestHead{.request = Request::describe, .job = secret});
  afar_.ask(place, request, [this, secret](PacketReader* answer, const base::Error* error) {
    describe(secret, answer, error);
  });
}

void FarJobs::give(Job& job, Id client) {
  job.given = Clock::now();
  server_.answer(client, {}, job.memory->fd());
}

void FarJobs::describe(const boot::Secret& secret, PacketReader* answer, const base::Error* error) {
  const auto found = jobs_.find(secret);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  std::optional<base::Error> failed;
  if (error != nullptr) failed = *error;
  std::string elsewhere;
  try {
    if (answer != nullptr) elsewhere = make_memory(secret, job, *answer);
  } catch (...) {
    failed = base::caught("for the description of a job");
  }
  PacketWriter socket;
  socket.text(elsewhere);
  for (const Id client : std::exchange(job.clients, {})) {
    if (failed)
      server_.refuse(client, *failed);
    else if (!elsewhere.empty())
      server_.answer(client, socket);
    else
      give(job, client);
  }
  if (failed || !elsewhere.empty()) {
    jobs_.erase(found);
    return;
  }
  watch(secret, job);
  if (!look_) look_ = Clock::now() + look_interval;
}

std::string FarJobs::make_memory(const boot::Secret& secret, Job& job, PacketReader& answer) {
  const std::string own = boot::host_name();
  job.generation = answer.value<std::uint32_t>();
  std::vector<boot::Node> nodes(answer.value<std::uint32_t>());
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    nodes[i].host = answer.text();
    if (nodes[i].host == own) return boot::part_of(boot::read_part(job.place.socket).mpiexec, i);
  }
  std::vector<std::uint32_t> machines(answer.value<std::uint32_t>());
  for (std::size_t rank = 0; rank < machines.size();) {
    const auto machine = answer.value<std::uint32_t>();
    const std::size_t end = rank + answer.value<std::uint32_t>();
    if (machine >= nodes.size() || end > machines.size() || end == rank)
      base::fail(MPI_ERR_OTHER, "the description of a job on host {} is damaged", job.place.host);
    nodes[machine].ranks += static_cast<std::uint32_t>(end - rank);
    while (rank < end)
      machines[rank++] = machine;
  }
  nodes.push_back({own, 0});
  job.memory.emplace(boot::JobMemory::create(nodes, static_cast<std::uint32_t>(nodes.size() - 1),
                                             boot::usable_cores(), {}, machines));
  job.memory->header().secret = secret;
  job.memory->header().generation = std::uint64_t{job.generation} << 32;
  job.memory->hold();
  return {};
}

// The answer says whether the job has failed. Who cannot answer has, and its jobs.
void FarJobs::watch(const boot::Secret& secret, Job& job) {
  PacketWriter request;
  request.value(RequestHead{.request = Request::watch, .job = secret});
  request.value(job.generation);
  job.watch =
      afar_.ask(job.place, request, [this, secret](PacketReader* answer, const base::Error*) {
        const bool failed = answer == nullptr || answer->value<bool>();
        end(secret, failed ? RankState::dead : RankState::gone);
      });
}

void FarJobs::exchange() {
  for (auto& [secret, job] : jobs_) {
    if (!job.memory) continue;
    const auto wanted = job.memory->wanted();
    job.asked_for.resize(wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::uint64_t now = wanted[i].load(std::memory_order_acquire);
      for (std::uint64_t more = now & ~job.asked_for[i]; more != 0; more &= more - 1)
        ask_for(secret,
                static_cast<std::uint32_t>(64 * i + static_cast<unsigned>(__builtin_ctzll(more))));
      job.asked_for[i] = now;
    }
  }
}

void FarJobs::ask_for(const boot::Secret& secret, std::uint32_t rank) {
  const Job& job = jobs_.at(secret);
  PacketWriter request;
  request.value(RequestHead{.request = Request::address, .job = secret});
  request.value(job.generation);
  request.value(rank);
  const auto take = [this, secret, rank](PacketReader* answer, const base::Error* error) {
    const auto found = jobs_.find(secret);
    if (found == jobs_.end() || !found->second.memory) return;
    boot::RankRow& row = found->second.memory->row(static_cast<int>(rank));
    if (error != nullptr) return row.state.store(RankState::gone, std::memory_order_release);
    row.endpoint_used = answer->value<std::uint32_t>();
    row.address = answer->value<decltype(row.address)>();
    row.published.store(found->second.generation, std::memory_order_release);
  };
  afar_.ask(job.place, request, take);
}

// Those that have its memory see it.
void FarJobs::end(const boot::Secret& secret, RankState how) {
  const auto found = jobs_.find(secret);
  if (found == jobs_.end() || !found->second.memory) return;
  boot::JobMemory& memory = *found->second.memory;
  for (int rank = 0; rank < memory.size(); ++rank)
    memory.row(rank).state.store(how, std::memory_order_release);
  jobs_.erase(found);
}

void FarJobs::look() {
  const auto now = Clock::now();
  if (!look_ || now < *look_) return;
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    const auto job = at++;
    if (!job->second.memory || now - job->second.given < time_to_use ||
        job->second.memory->is_used())
      continue;
    const std::uint64_t watch = job->second.watch;
    jobs_.erase(job);
    afar_.call_off(watch);
  }
  look_.reset();
  if (!jobs_.empty()) look_ = now + look_interval;
}

} // namespace macadam::tools
