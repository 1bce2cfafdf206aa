// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/transport.h"
#include "prove/job.h"
#include "prove/random_program.h"
#include "sim/device.h"
#include "sim/fiber.h"
#include "sim/neighbors.h"
#include "torture/setup.h"
#include "torture/witness.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace macadam::torture {

// One random program: real engines over the library's transports, RDMA's on simulated devices and
// shared memory's on simulated nodes, each rank in a
// fiber with a processor of its own, in virtual time. Ranks that have nothing to do sleep for ever,
// so that a wake-up which is lost is a program that hangs.
class Run {
 public:
  // `setup` and `types` outlive the run.
  Run(const Setup& setup, const prove::Types& types, std::uint64_t seed);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  // To the end. Says what was wrong, empty if nothing.
  std::string execute();
  [[nodiscard]] const sim::Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const sim::Fabric& fabric() const { return fabric_; }

 private:
  class Rank;

  [[nodiscard]] int ranks() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] bool wrong() const { return !job_->wrong().empty(); }
  void say(std::string what) { job_->say(std::move(what)); }
  void settle(bool patient = false);
  [[nodiscard]] bool any_broken_down() const;
  void each(const std::function<bool(Rank&)>& task);
  void repeat(const std::function<bool(Rank&)>& task, const char* what);
  void check_steps();
  void check_transports();
  void check_neighbors(Rank& rank);
  void check_devices();
  [[nodiscard]] std::string where_it_stands() const;

  const Setup& setup_;
  sim::Scheduler scheduler_;
  sim::Fabric fabric_;
  std::vector<std::unique_ptr<sim::Node>> nodes_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::unique_ptr<prove::Job> job_;
  unsigned given_up_ = 0; // ranks that talk to nobody any more, by boot::Job
  bool over_ = false;
  bool found_ = false; // by a task of each()
};

} // namespace macadam::torture
