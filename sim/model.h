// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "sim/scheduler.h"

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace macadam::sim {

inline constexpr int most_segments = 16; // that a work request of the simulated device may have

// What everything costs on the hardware that is simulated, and what that hardware can do: the
// numbers of one file of sim/presets. Costs of the network follow LogGP (latency, overhead, gap,
// gap per byte); every member is one key of the file and has its unit in its name.
struct Model {
  // The network.
  double latency_ns = 1000;         // from the last byte on the wire to memory on the other side
  double message_gap_ns = 100;      // that an adapter needs between two messages
  double gap_per_queue_pair_ns = 0; // more of it for every connected queue pair of the adapter
  double bandwidth_mb_per_s = 1000; // of a port, each way (10^6 bytes)
  double incoming_mb_per_s = 0;     // if it takes in more than one sender gives; 0: as much

  // The processor's work on one side of a message.
  double post_ns = 100;        // to post one work request, or a list of receives
  double segment_ns = 25;      // more for each piece of a gather list beyond the first
  double receive_ns = 20;      // more for each receive of such a list
  double poll_ns = 50;         // to find a completion queue empty
  double look_ns = 5;          // to look at a place in memory that the adapter writes to
  double completion_ns = 50;   // to take one completion
  double call_ns = 50;         // of a call of MPI or Gravel, beside all else: arguments, requests
  double matching_ns = 50;     // to receive one message, beside all else: header and matching
  double copy_mb_per_s = 1000; // of whatever the library copies, packs or reduces
  double spin_ns = 5000;       // how long a spinning wait looks elsewhere at most (Device::yield)
  double wake_ns = 10000;      // from a completion to a process that sleeps in wait()
  double progress_thread_ns = 12000; // from an event to the thread that handles the device's events
  double interrupt_ns = 3000;        // of the computing process's time that such an event takes
  double clock_ns = 20;              // to read the clock
  double line_ns = 100;              // to hand a message to a neighbour, in shared memory
  double kernel_copy_ns = 500; // of a copy by the kernel (cross-memory attach), beside the bytes
  double compute_factor = 1;   // what a program computes takes so many times what it took here

  // Things made and unmade.
  double registration_ns = 10000;
  double registration_page_ns = 250; // more for each page of 4096 bytes
  double deregistration_ns = 5000;
  double queue_pair_create_ns = 100000;
  double queue_pair_connect_ns = 50000; // for each of the two steps, accept and establish

  // The start and the end of a job.
  double start_spread_ns = 1000000; // the ranks begin at random within this time
  double address_lookup_ns = 50000; // to ask the launcher for another rank's address
  double barrier_ns = 100000;       // of the launcher, after the last rank has come

  // Limits, as a process finds them.
  std::int64_t queue_pairs = 65536;
  std::int64_t regions = 131072;
  std::int64_t registered_mb = 0; // 10^6 bytes that may be pinned; 0: no bound
  std::int64_t send_depth = 16384;
  std::int64_t receive_depth = 16384;
  std::int64_t shared_depth = 16384; // 0: the device has no shared receive queues
  std::int64_t completion_depth = 131072;
  std::int64_t segments = 4;
  std::int64_t inline_bytes = 128;
  std::int64_t outstanding_reads = 4;
  std::int64_t mtu_bytes = 2048;
  std::int64_t message_mb = 1000; // longest message, in 10^6 bytes
  bool atomics = true;
  bool orders_bytes = true;
  bool orders_writes = true;   // if not, a write is placed up to latency_ns after it has arrived
  bool orders_arrivals = true; // ... and what is told of later ones may come before that

  std::string name;
  std::string description;
};

// What goes wrong, by chance that follows from the seed. None of it by default.
struct Faults {
  double datagram_loss = 0; // probabilities
  double datagram_duplication = 0;
  double datagram_reordering = 0; // the datagram takes up to `reordering_ns` longer
  double reordering_ns = 20000;
  double jitter = 0;                    // a message takes up to this part of the latency longer
  double queue_pair_break = 0;          // that a message breaks its connection
  double progress_thread_jitter_ns = 0; // the progress thread wakes up to this much later
  double compute_jitter = 0;            // a rank's computations take up to this part longer
  std::int64_t slow_rank = -1;          // whose own work takes `slowness` times as long
  double slowness = 10;
  bool split_writes = false; // part of a write is seen before the rest
  bool shuffle = false;      // events of the same moment happen in random order
  // Among the processes of a node: probability that one loses its core where it calls the system or
  // the transport, and for how long at most; that the kernel ends a copy early.
  double core_loss = 0;
  double core_loss_ns = 50000;
  double cut_copies = 0;
};

using ModelValue = std::variant<double Model::*, std::int64_t Model::*, bool Model::*>;
using FaultValue = std::variant<double Faults::*, std::int64_t Faults::*, bool Faults::*>;
template <class Value>
struct Key {
  const char* name;
  Value value;
  double least;
  double most;
};
std::span<const Key<ModelValue>> model_keys();
std::span<const Key<FaultValue>> fault_keys();

// Reads a model from the text of a JSON file; what a key leaves out keeps its default above.
// "sources" says where the numbers are from: texts, each with a list of keys. Throws
// base::Error (MPI_ERR_ARG) naming `where`, the key, what was found and what is needed; an unknown
// key with the nearest one.
Model read_model(const std::string& json, const std::string& where);

// Changes some of a model: "copy_mb_per_s=9000,latency_ns=1200". Throws as read_model() does.
void change_model(Model& model, const std::string& text);

// "datagram_loss=0.1,shuffle=yes": throws as read_model() does.
Faults read_faults(const std::string& text);

// The facts that a device of this model tells about itself.
net::rdma::DeviceLimits device_limits(const Model& model);

inline Time from_ns(double ns) {
  return static_cast<Time>(ns * nanosecond);
}
// Time that so many bytes take at a rate of 10^6 bytes a second: picoseconds per byte.
inline Time transfer_time(std::uint64_t bytes, double mb_per_s) {
  return static_cast<Time>(static_cast<double>(bytes) * 1e6 / mb_per_s);
}

} // namespace macadam::sim
