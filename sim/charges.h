// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/transport.h"

// What the library's own work costs a simulated rank, beside what its device charges: its copies
// (base/copy.h), its messages and its calls.
namespace macadam::sim {

class Rank;

// The program that runs is in a function of the process's, called at an address of the program:
// between two of them it computes, which is measured or repeated where that is asked for
// (ComputeTimes).
class Away {
 public:
  explicit Away(const void* place);
  ~Away();
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 protected:
  Rank* rank_;
};

// One call of MPI or Gravel, which costs Model::call_ns.
class Call : Away {
 public:
  explicit Call(const void* place);
};

// The RDMA transport of a rank: each message that it delivers costs Model::matching_ns.
class ChargedTransport final : public net::rdma::RdmaTransport {
 public:
  using RdmaTransport::RdmaTransport;
  bool poll(engine::Sink& sink) noexcept override;
  bool idle(unsigned fruitless, unsigned longest_us) override;
};

} // namespace macadam::sim
