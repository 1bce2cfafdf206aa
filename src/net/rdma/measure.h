// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "net/rdma/model.h"

#include <cstdint>

namespace macadam::net::rdma {

// What equation 5 of Sur et al. is made of.
struct ProgressThreadFigures {
  double wake_up =
      0; // seconds from a message to the progress thread's reaction; nine of ten are shorter
  double rate = 0; // smallest messages per second, as the adapter sends them to itself
};

// Measures them on a device that nobody uses, by two queue pairs connected to each other: their
// experiment of Figure 6, without the way back. Takes less than a second. Throws base::Error if the
// device lacks shared receive queues, or does not tell that one runs low.
ProgressThreadFigures measure_progress_thread(Device& device);

// The watermark that follows: the messages that can arrive while the progress thread wakes up.
std::uint32_t measured_watermark(const ProgressThreadFigures& figures);

// Seconds that a short message costs, sender and receiver together, where many are under way: on a
// device that nobody uses, which sends some to itself. Takes about as long as two connections.
// Throws base::Error if it lacks shared receive queues, or sends nothing to itself.
double measure_message(Device& device);

// The bytes that the driver holds for queues, on a device that nobody uses: makes some of each kind
// as the transport would for these shapes (a shared one, and `credit` or `ring`), and asks the
// kernel what the process has more. Throws base::Error if the device gives no more.
model::Driver measure_driver(Device& device, const model::Shape& shared,
                             const model::Shape& windowed);

} // namespace macadam::net::rdma
