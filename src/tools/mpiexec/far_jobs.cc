// SPDX-License-Identifier: BSD-3-Clause
#include "tools/mpiexec/far_jobs.h"

#include "base/error.h"
#include "boot/machine.h"

#include <array>

namespace macadam::tools {

using boot::PacketReader;
using boot::PacketWriter;
using boot::RankState;
using boot::Request;
using boot::RequestHead;

void FarJobs::meet(Id client, const boot::Secret& secret, Relay::Machine machine) {
  const auto [found, is_new] = jobs_.try_emplace(secret, Job{machine, {}, {}, {}});
  Job& job = found->second;
  if (job.memory) {
    server_.answer(client, {}, job.memory->fd());
    return;
  }
  job.clients.push_back(client);
  if (!is_new) return;
  PacketWriter request;
  request.value(RequestHead{.request = Request::describe, .job = secret});
  relay_.ask(machine, request, [this, secret](PacketReader* answer, const base::Error* error) {
    describe(secret, answer, error);
  });
}

void FarJobs::describe(const boot::Secret& secret, PacketReader* answer, const base::Error* error) {
  const auto found = jobs_.find(secret);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  std::optional<base::Error> failed;
  if (error != nullptr) failed = *error;
  try {
    if (answer != nullptr) {
      const auto ranks = answer->value<std::uint32_t>();
      const std::string host = relay_.hosts().at(job.machine);
      job.memory.emplace(boot::JobMemory::create({{boot::host_name(), 0}, {host, ranks}}, 0,
                                                 boot::usable_cores(), {},
                                                 std::vector<std::uint32_t>(ranks, 1)));
      job.memory->header().secret = secret;
      job.memory->hold();
    }
  } catch (...) {
    failed = base::caught("for the description of a job");
  }
  for (const Id client : job.clients)
    failed ? server_.refuse(client, *failed) : server_.answer(client, {}, job.memory->fd());
  job.clients.clear();
  if (failed) jobs_.erase(found);
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
  PacketWriter request;
  request.value(RequestHead{.request = Request::address, .job = secret});
  request.value(rank);
  const auto take = [this, secret, rank](PacketReader* answer, const base::Error* error) {
    const auto found = jobs_.find(secret);
    if (found == jobs_.end() || !found->second.memory) return;
    boot::RankRow& row = found->second.memory->row(static_cast<int>(rank));
    if (error != nullptr) return row.state.store(RankState::gone, std::memory_order_release);
    row.endpoint_address_used = answer->value<std::uint32_t>();
    row.endpoint_address = answer->value<decltype(row.endpoint_address)>();
    row.published.store(1, std::memory_order_release);
  };
  relay_.ask(jobs_.at(secret).machine, request, take);
}

// Those that have its memory see it.
void FarJobs::on_ended(const boot::Secret& secret) {
  const auto found = jobs_.find(secret);
  if (found == jobs_.end() || !found->second.memory) return; // the answer will tell
  for (int rank = 0; rank < found->second.memory->size(); ++rank)
    found->second.memory->row(rank).state.store(RankState::gone, std::memory_order_release);
  jobs_.erase(found);
}

} // namespace macadam::tools
