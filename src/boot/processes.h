// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace macadam::boot {

// The processes that this one knows, numbered as it has met them: first its own job's, by rank,
// then those of each other job that it is told of. The number is this process's own (an index of
// its tables, engine::Rank); what travels to others is a ProcessName. Nothing is kept for a single
// process: a job takes numbers in a row, which another may have once it is removed.
//
// add(), hide() and remove() are for one thread, the other functions are for any at any time.
class Processes {
 public:
  using Index = std::uint32_t;

  // The jobs outlive the object, or are removed.
  explicit Processes(Job& own);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // Lets this process talk to another job. Returns the number of its rank 0; what it was if the job
  // is known. Throws MPI_ERR_OTHER if another job has the same number.
  Index add(const Job& other);
  // find() finds its processes no more: what still comes from there is nobody's.
  void hide(const Job& other);
  // Nobody asks for its processes any more.
  void remove(const Job& other);

  [[nodiscard]] Job& job() const { return own_; }
  [[nodiscard]] Index own() const { return static_cast<Index>(own_.rank()); }
  // Above all numbers that there are.
  [[nodiscard]] Index size() const { return size_.load(std::memory_order_acquire); }
  // Whether there have ever been any of other jobs.
  [[nodiscard]] bool has_met() const { return size() > own_job_.count; }
  [[nodiscard]] ProcessName own_name() const { return {own_.number(), own()}; }
  // Numbers of the other jobs.
  [[nodiscard]] std::vector<std::uint32_t> others() const;

  [[nodiscard]] ProcessName name(Index process) const;
  // Its number; nothing if this process does not know it.
  [[nodiscard]] std::optional<Index> find(const ProcessName& name) const;

  // As Job has them of its ranks.
  [[nodiscard]] Secret secret(Index process) const {
    const Job& job = *its(process).job;
    return secret_of(job.secret(), job.generation());
  }
  [[nodiscard]] auto host_of(Index process) const { return ask(process, &Job::host_of); }
  [[nodiscard]] auto is_local(Index process) const { return ask(process, &Job::is_local); }
  [[nodiscard]] auto memory_of(Index process) const { return ask(process, &Job::memory_of); }
  [[nodiscard]] auto pid(Index process) const { return ask(process, &Job::pid); }
  [[nodiscard]] auto life(Index process) const { return ask(process, &Job::life); }
  [[nodiscard]] auto fetch(Index process) const { return ask(process, &Job::fetch); }
  [[nodiscard]] auto agreement_of(Index process) const { return ask(process, &Job::agreement_of); }
  // fetch() for a network: that of another job's process may be opened later than it publishes.
  [[nodiscard]] std::optional<std::span<const std::byte>> endpoint(Index process) const;
  // Whether it can be fetched no more: it has ended, and has left no address. Says so.
  [[nodiscard]] std::optional<std::string> why_never(Index process) const;
  // Of one that a network does not reach, for a reason, or not any more: a sentence.
  [[nodiscard]] std::string describe_unreached(Index process, bool was_reached,
                                               std::string_view reason) const;

 private:
  struct Known {
    const Job* job = nullptr;
    Index first = 0;
    Index count = 0;
    bool hidden = false;
  };
  // A process of this one's own job is found without a lock.
  [[nodiscard]] Known its(Index process) const {
    return process < own_job_.count ? own_job_ : other(process);
  }
  [[nodiscard]] Known other(Index process) const;
  template <class Answer>
  Answer ask(Index process, Answer (Job::*what)(int rank) const) const {
    const Known known = its(process);
    return (known.job->*what)(static_cast<int>(process - known.first));
  }

  Job& own_;
  const Known own_job_;
  mutable std::shared_mutex lock_;
  std::vector<Known> others_; // by number
  std::atomic<Index> size_;
};

} // namespace macadam::boot
