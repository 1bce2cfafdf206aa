// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/settings.h"
#include "net/rdma/device.h"
#include "net/rdma/model.h"

#include <cstddef>
#include <string>
#include <vector>

namespace macadam::tools {

// What `macadam model` is asked for.
struct ModelQuestion {
  std::vector<std::size_t> ranks = {16, 64, 256, 1024, 4096, 16000, 65536};
  std::vector<std::string> receive = {"ring", "credit", "shared"};
  std::size_t sends = 0;   // message buffers in use for sends at the busiest moment
  std::size_t buffers = 0; // ... for sends and receives together, if that is known to be more
  // The adapter, which this machine need not have: a present-day one.
  net::rdma::DeviceLimits adapter = {.queue_pairs = 131072,
                                     .send_depth = 32768,
                                     .receive_depth = 32768,
                                     .shared_depth = 32768,
                                     .completion_depth = 4194304,
                                     .inline_bytes = 220};
  std::string driver;   // what its driver holds, as --measure tells; empty: as tuned, or estimated
  bool measure = false; // the adapter of this machine instead, and what its driver holds
  int peers = 0;        // over libfabric: measured with so many; 0: over verbs
  bool json = false;
};

// `macadam model`: the bytes that the RDMA transport of one process holds when it is connected to
// all others, for each number of ranks and each way to receive (Sur et al., Figure 9). Throws
// base::Error for settings that no adapter could follow. Over libfabric, what its provider holds.
std::string model_page(ModelQuestion question, base::Settings settings);

// What the driver of this device holds, for queues as these settings have them.
net::rdma::model::Driver measure_driver(net::rdma::Device& device, base::Settings settings);

} // namespace macadam::tools
