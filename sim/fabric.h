// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/slab.h"
#include "sim/model.h"
#include "sim/random.h"
#include "sim/scheduler.h"
#include "sim/work.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
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
// bottleneck. A port sends and receives one message at a time, at the model's bandwidth. The
// devices of several ranks may share one.
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
  // Says which node a device is in, and at which of its ports, whose link it shares with all others
  // there. One of which this is not said has a link of its own, and is in no other's node.
  void put_into(int node, int port, std::uint32_t lid);
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
  // What a port is plugged into, both ways.
  struct Link {
    Time sends_until = 0; // busy
    // Busy from, until: messages of several senders are not known in the order in which they come.
    std::map<Time, Time> receives;
    // The end of the first time of this length that is free, and ends at `earliest` or later.
    Time take_in(Time now, Time earliest, Time length);
  };
  struct Port {
    SimulatedDevice* device = nullptr;
    std::size_t link = 0;
    int connections = 0;
    int node = -1;
  };
  Port& port(std::uint32_t lid) { return ports_.at(lid - 1); }

  Scheduler& scheduler_;
  Model model_;
  Faults faults_;
  Random random_;
  std::vector<Port> ports_; // by lid, one for each device
  std::vector<Link> links_;
  std::map<std::pair<int, int>, std::size_t> links_of_nodes_; // by node and port
  base::List<Datagram> datagrams_;
};

} // namespace macadam::sim
