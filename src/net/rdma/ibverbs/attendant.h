// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/queues.h"

#include <optional>
#include <string>
#include <thread>

namespace macadam::net::rdma::ibverbs {

// The thread that sleeps in the kernel and wakes for what cannot wait until the application polls:
// a shared receive queue that runs low, completions of attended queues, news of the port. Runs from
// construction to destruction, with all signals blocked, so that the application's handlers run on
// its own threads.
class Attendant {
 public:
  // `attended`: where attended completion queues put their events. Throws base::Error if there is
  // no thread to be had.
  Attendant(Port& port, CompletionChannel& attended, EventSink& sink);
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;
  // Waits for a call of the sink under way.
  ~Attendant();

 private:
  void run();
  void read_adapter_events();
  void on_adapter_event(ibv_event_type type, int port, std::uint32_t queue_pair,
                        SharedReceiveQueue* shared);
  [[nodiscard]] int patience_ms() const;
  void look_at_port();

  Port& port_;
  CompletionChannel& attended_;
  EventSink& sink_;
  const Event stop_;
  std::optional<double> down_since_; // the port; seconds
  std::thread thread_;
};

} // namespace macadam::net::rdma::ibverbs
