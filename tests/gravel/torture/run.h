// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/torture/program.h"
#include "sim/fabric.h"
#include "sim/scheduler.h"

#include <memory>
#include <string>
#include <vector>

namespace macadam::gravel::torture {

// One random program: Gravel's core and its waiting over the RDMA transport on simulated devices,
// each rank in a fiber with a processor of its own, in virtual time.
//
// The oracle knows which exchange each call is for. Every byte of an exchange has its own value;
// whoever may change memory does so at once, and the byte behind each end stays as it is. A call
// may fail only if the peer has died, or if connections break.
class Run {
 public:
  Run(const Setup& setup, std::uint64_t seed); // `setup` outlives the run
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  // To the end. Says what was wrong, empty if nothing.
  std::string execute();
  [[nodiscard]] const sim::Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const sim::Fabric& fabric() const { return fabric_; }
  // Over all ranks, to see that the programs meet what they are for.
  struct Seen {
    std::uint64_t failures = 0;    // calls that failed because the peer was gone
    std::uint64_t refused = 0;     // registrations
    std::uint64_t ledger_full = 0; // entries that had to wait
    std::uint64_t copied = 0;      // promised buffers
    std::uint64_t finished = 0;    // exchanges whose data have arrived
    std::uint64_t given_up = 0;    // connections to those who had ended, when their rank ended
  };
  [[nodiscard]] const Seen& seen() const { return seen_; }

 private:
  class Rank;

  void say(std::string what);
  [[nodiscard]] std::string where_it_stands() const;

  const Setup& setup_;
  sim::Scheduler scheduler_;
  sim::Fabric fabric_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::string wrong_;
  Seen seen_;
};

} // namespace macadam::gravel::torture
