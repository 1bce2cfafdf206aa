// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/ibverbs/queues.h"

#include <optional>
#include <string>
#include <thread>

namespace macadam::net::rdma::ibverbs {

// The thread that sleeps in the kernel and wakes for what cannot wait until the application polls:
// a shared receive queue that runs low, completions of asynchronous queues, changes of the port.
// Runs from construction to destruction, with all signals blocked, so that the application's
// handlers run on its own threads.
class ProgressThread {
 public:
  // `async`: where asynchronous completion queues put their events. Throws base::Error if there is
  // no thread to be had.
  ProgressThread(Port& port, CompletionChannel& async, EventSink& sink);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  // Waits for a call of the sink under way.
  ~ProgressThread();

 private:
  void run();
  void read_adapter_events();
  void on_adapter_event(ibv_event_type type, int port, std::uint32_t queue_pair,
                        SharedReceiveQueue* shared);
  [[nodiscard]] int patience_ms() const;
  void look_at_port();

  Port& port_;
  CompletionChannel& async_;
  EventSink& sink_;
  const base::Event stop_;
  std::optional<double> down_since_; // the port; seconds
  std::thread thread_;
};

} // namespace macadam::net::rdma::ibverbs
