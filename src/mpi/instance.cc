// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/instance.h"

#include "mpi/agreement.h"
#include "mpi/buffered.h"
#include "mpi/callback.h"
#include "mpi/context.h"
#include "mpi/joint.h"
#include "mpi/process.h"
#include "mpi/report.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

namespace macadam::mpi {
namespace {

using engine::Rank;

void print_warnings(Library& self) {
  const std::vector<std::string> warnings = std::exchange(self.settings_warnings, {});
  if (self.job->rank() != 0) return;
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "macadam: warning: %s\n", warning.c_str());
}

// Those that there are already may be in use by the very call that needs an instance.
void begin_observers(Process& self) {
  if (self.profile)
    self.profile->forget();
  else if (is_report_wanted(self.settings))
    self.profile = std::make_unique<Profile>();
  if (!self.trace && !self.settings.trace.empty())
    self.trace = std::make_unique<Trace>(
        self, std::filesystem::absolute(self.settings.trace).string(),
        self.runtime->has_real_time() ? std::make_unique<Alarm>(self.entry_does_more) : nullptr);
}

engine::Networks networks_of(const Transports& transports) {
  std::vector<engine::Transport*> list;
  for (const auto& transport : transports)
    list.push_back(transport.get());
  return engine::Networks(std::move(list));
}

} // namespace

Instance::Instance(Process& process, std::uint32_t entered)
    : generation(entered), transports(*process.runtime, process.settings), process_(process),
      observers_(process.profile.get(), process.trace.get()) {
  engine =
      std::make_unique<engine::Engine>(networks_of(transports), process.runtime->processes().size(),
                                       process.settings, observers_.observer());
  engine->know(process.runtime->processes().size());
  coll =
      std::make_unique<coll::Resources>(*engine, process.types[MPI_BYTE], process.settings.levels);
  coll->reproducible = process.settings.reproducible;
  coll->observer = process.profile.get();
  coll->node_of = [&process](engine::Rank rank) {
    return process.job->node(static_cast<int>(rank));
  };
  polls_before_idle_ = nearest().limits().polls_before_idle;
  shares_cores_ = nearest().limits().shares_cores;
  engine->partitioned().keep_left_in(process.left_partitions);

  engine->list_counters(process.counters);
  coll->panels.list(process.counters);
  windows.counters.list(process.counters);
  files.counters.list(process.counters);
  for (const auto& transport : transports)
    transport->list_counters(process.counters);
}

Instance::~Instance() {
  process_.counters.keep_totals(); // for the tool interface, which outlives the engine
}

// If it fails, who waits for this process's address is told that there will be none.
void Instance::reach(const boot::Job& job) {
  bool all_here = true;
  for (int rank = 0; rank < job.size(); ++rank)
    all_here = all_here && job.is_local(rank);
  if (all_here) return;
  try {
    std::unique_ptr<engine::Transport> opened =
        process_.runtime->open_network(process_.settings, nearest(), job);
    if (!opened) return;
    engine::Transport& network = transports.add(std::move(opened));
    engine->add_network(network);
    engine->know(process_.runtime->processes().size());
    network.list_counters(process_.counters);
  } catch (...) {
    process_.job->refuse_strangers();
    throw;
  }
}

std::uint64_t Instance::new_context(bool joint) {
  const auto rank = static_cast<std::uint32_t>(process_.job->rank());
  if (joint) {
    if (joint_contexts_ == most_joint_contexts || rank >= most_joint_leaders)
      base::fail(MPI_ERR_OTHER,
                 "rank {} has offered to lead {} communicators with processes of other jobs; there "
                 "can be {}, of ranks below {}",
                 rank, joint_contexts_ - 1, most_joint_contexts - 1, most_joint_leaders);
    return joint_context_of({process_.job->number(), rank}, joint_contexts_++);
  }
  if (contexts_ == most_contexts) {
    base::fail(MPI_ERR_OTHER,
               "this rank has offered to lead {} new communicators, the most there can be; free "
               "communicators do not give their place back",
               most_contexts);
  }
  return context_of(rank, contexts_++);
}

void start(Process& self) {
  const Held held(self);
  while (self.ending) { // another thread is in MPI_Finalize
    const LetGo let_go(self);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (running == &self) return;
  self.join_job();
  self.read_settings();
  print_warnings(self);
  self.settings_used = true;
  const std::uint32_t generation = self.job->enter();
  if (!self.instance || self.instance->generation != generation) {
    self.instance.reset();
    begin_observers(self);
    forget_all(self);
    try {
      const boot::Agreement own = agreement_of(self.settings);
      self.job->agree_on(own); // before the transports publish
      self.instance.emplace(self, generation);
      self.instance->engine->admit = [&self, own](engine::Rank peer,
                                                  const engine::Transport& network) {
        check_agreement(self.runtime->processes(), peer, network, own);
      };
    } catch (...) {
      self.job->leave();
      self.job->finalize();
      throw;
    }
  }
  if (self.profile) self.profile->start(self.instance->nearest());
  if (self.trace)
    self.trace->start(*self.instance->engine, self.instance->nearest(), !self.profile);
  self.update_entry();
  running = &self;
}

bool is_settled(Process& self) {
  return self.instance->engine->quiet() && self.instance->engine->networks().drain();
}

void settle(Process& self) {
  self.instance->wait_until([&] { return is_settled(self); });
}

void leave(Process& self) {
  coll::Panels& panels = self.instance->coll->panels;
  for (Communicator& comm : self.instance->live_communicators) {
    comm.boards.leave(panels);
    comm.machines.leave(panels);
  }
  running = nullptr;
  self.job->leave();
}

bool leave_if_last(Process& self) {
  const auto is_last = [&] { return self.users == 1 && running == &self; };
  if (!is_last()) return false;
  {
    // Below MPI_THREAD_MULTIPLE others would not take the lock.
    std::optional<KeptLock> kept;
    if (!self.thread_multiple) kept.emplace(self);
    self.instance->wait_until([&] { return !is_last() || is_settled(self); });
  }
  if (!is_last()) return false;            // others have come meanwhile
  drain(self.instance->requests.buffered); // whose sends have settled
  leave(self);
  return true;
}

void end(Process& self) {
  if (is_report_wanted(self.settings)) self.job->write_final_report(final_report(self));
  if (self.profile) self.profile->stop();
  if (self.trace) {
    self.trace->write();
    self.trace->stop();
  }
  self.marks_partitions.store(false, std::memory_order_relaxed);
  if (self.job->is_over(self.instance->generation)) {
    self.instance.reset();
    forget_all(self);
  }
  self.job->finalize();
}

} // namespace macadam::mpi
