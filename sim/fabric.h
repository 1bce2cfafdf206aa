// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/slab.h"
#include "sim/model.h"
#include "sim/random.h"
#include "sim/scheduler.h"
#include "sim/work.h"

#include <cstdint>
#include <vector>

namespace macadam::sim {

class SimulatedDevice;

// What happened on the network, for tests and reports.
struct FabricCounters {
  std::uint64_t messages = 0;            // of reliable connections, each transmission
  std::uint64_t bytes = 0;               // of data in them
  std::uint64_t bytes_between_nodes = 0; // of all packets, whose ports are in different nodes
  std::uint64_t datagrams = 0;
  std::uint64_t datagrams_lost = 0; // by chance
  std::uint64_t datagrams_duplicated = 0;
  std::uint64_t datagrams_reordered = 0;
  std::uint64_t datagrams_dropped = 0; // nobody there, no receive posted, wrong key
  std::uint64_t receiver_not_ready = 0;
  std::uint64_t resends = 0; // after no answer
  std::uint64_t refused = 0; // by the keys or the bounds of the target's memory
  std::uint64_t broken = 0;  // connections, by chance
};

// The network: ports and the links between them, one switch in the middle that is never the
// bottleneck. A port sends and receives one message at a time, at the model's bandwidth.
class Fabric {
 public:
  // `model` is copied; the scheduler outlives the fabric.
  Fabric(Scheduler& scheduler, const Model& model, const Faults& faults = {},
         std::uint64_t seed = 0);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  ~Fabric();

  [[nodiscard]] Scheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] const Model& model() const { return model_; }
  [[nodiscard]] const Faults& faults() const { return faults_; }
  [[nodiscard]] Random& random() { return random_; }
  FabricCounters counters;
  base::Slab<Work, 1024> works; // of all queue pairs

  // The address (lid) of a device's port, never used again after detach(). From 1 on.
  std::uint32_t attach(SimulatedDevice& device);
  void detach(std::uint32_t lid) { port(lid).device = nullptr; }
  // Says which node a port belongs to. One of which this is not said is in no other port's.
  void put_into(int node, std::uint32_t lid) { port(lid).node = node; }
  // Null if there is none.
  [[nodiscard]] SimulatedDevice* find(std::uint32_t lid) const {
    return lid - 1 < ports_.size() ? ports_[lid - 1].device : nullptr;
  }

  struct Trip {
    Time sent;    // the sender's adapter has finished with it
    Time arrived; // in the memory of the other side
  };
  // Occupies the two ports' links for a message that is ready to be sent now. No fault.
  Trip transmit(std::uint32_t from, std::uint32_t to, std::uint64_t bytes);
  // How long the way takes, without the sending: for answers, which are short.
  Time latency() { return from_ns(model_.latency_ns * (1 + faults_.jitter * random_.fraction())); }

  // Datagrams on their way; the fabric owns them.
  Datagram* make_datagram();
  Datagram* copy(const Datagram& datagram);
  static void drop(Datagram* datagram);

  // A queue pair of the port was connected (+1) or went away (-1).
  void count_connection(std::uint32_t lid, int change) { port(lid).connections += change; }

 private:
  struct Port {
    SimulatedDevice* device = nullptr;
    Time sends_until = 0;    // the outgoing link is busy
    Time receives_until = 0; // the incoming link is busy
    int connections = 0;
    int node = -1;
  };
  Port& port(std::uint32_t lid) { return ports_.at(lid - 1); }

  Scheduler& scheduler_;
  Model model_;
  Faults faults_;
  Random random_;
  std::vector<Port> ports_;
  base::List<Datagram> datagrams_;
};

} // namespace macadam::sim
