// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace macadam::boot {

// The processes that this one knows, numbered as it has met them: first its own job's, by rank,
// then those of each other job that it is told of. The number is this process's own (an index of
// its tables, engine::Rank); what travels to others is a ProcessName. Nothing is kept for a single
// process: a job takes the next numbers in a row.
//
// add() is for one thread, the other functions are for any at any time.
class Processes {
 public:
  using Index = std::uint32_t;

  // The jobs outlive the object.
  explicit Processes(Job& own);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  // Lets this process talk to another job. Returns the number of its rank 0; what it was if the job
  // is known. Throws MPI_ERR_OTHER if another job has the same number.
  Index add(const Job& other);

  [[nodiscard]] Job& job() const { return own_; }
  [[nodiscard]] Index own() const { return static_cast<Index>(own_.rank()); }
  [[nodiscard]] Index size() const { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] ProcessName own_name() const { return {own_.number(), own()}; }

  [[nodiscard]] ProcessName name(Index process) const;
  // Processes in its job.
  [[nodiscard]] Index job_size(Index process) const { return its(process).count; }
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
  // Whether it can be fetched no more: it has ended, and has left no address. Says so.
  [[nodiscard]] std::optional<std::string> why_never(Index process) const;

 private:
  // Readers walk the list while a job is added at its end.
  struct Known {
    const Job* job = nullptr;
    Index first = 0;
    Index count = 0;
    std::atomic<Known*> next = nullptr;
  };
  [[nodiscard]] const Known& its(Index process) const {
    const Known* known = &first_;
    while (process - known->first >= known->count)
      known = known->next.load(std::memory_order_acquire);
    return *known;
  }
  template <class Answer>
  Answer ask(Index process, Answer (Job::*what)(int rank) const) const {
    const Known& known = its(process);
    return (known.job->*what)(static_cast<int>(process - known.first));
  }

  Job& own_;
  Known first_;
  std::atomic<Index> size_;
};

} // namespace macadam::boot
