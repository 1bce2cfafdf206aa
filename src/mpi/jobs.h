// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/universe.h"
#include "engine/request.h"
#include "engine/team.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace macadam::mpi {

class Process;

// Another job that this process knows, since they have, or had, a communicator in common.
struct KnownJob {
  const boot::Job* job = nullptr; // the universe owns it
  boot::JobTicket ticket = {};    // for those that this process introduces to it
  engine::Rank first = 0;         // index of its rank 0, see boot::Processes
  std::uint32_t size = 0;
  std::uint64_t uses = 0; // its processes in the groups of this one
  bool leaving = false;   // a thread is forgetting it

  [[nodiscard]] bool has(engine::Rank process) const { return process - first < size; }
};

// All of them. Those of communicators are met together, by joint.h.
class Jobs {
 public:
  [[nodiscard]] bool empty() const { return known_.empty(); }
  // Null if it is not known.
  [[nodiscard]] KnownJob* find(std::uint32_t number);
  [[nodiscard]] KnownJob* of(engine::Rank process);
  void add(const KnownJob& job) { known_.emplace(job.first, job); }
  void erase(std::uint32_t number);
  // The numbers of those that satisfy this.
  template <class Wanted>
  [[nodiscard]] std::vector<std::uint32_t> list(Wanted&& wanted) const {
    std::vector<std::uint32_t> numbers;
    for (const auto& [first, job] : known_)
      if (wanted(job)) numbers.push_back(job.job->number());
    return numbers;
  }

  // What was on its way to leaders of other groups when this one gave up: they may still read it.
  struct Unfinished {
    engine::SendRequest* sent;
    std::unique_ptr<std::byte[]> data;
  };
  std::vector<Unfinished> unfinished;

  // A group of these processes is made, or gone.
  void hold(const engine::RankMap& ranks) { count(ranks, +1); }
  void release(const engine::RankMap& ranks) { count(ranks, -1); }

 private:
  void count(const engine::RankMap& ranks, int change);

  std::map<engine::Rank, KnownJob> known_; // by their first processes
};

} // namespace macadam::mpi
