// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/id_table.h"
#include "net/rdma/device.h"
#include "sim/fabric.h"
#include "sim/memory.h"
#include "sim/processor.h"
#include "sim/queues.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace macadam::sim {

class SimulatedQueuePair;

// What one device was asked to do and what it holds.
struct DeviceCounters {
  std::uint64_t queue_pairs_most = 0; // at once
  std::uint64_t connections = 0;      // reliable queue pairs that were connected
  std::uint64_t registrations = 0;
  std::uint64_t progress_thread_calls = 0;
  std::uint64_t sleeps = 0; // wait() that did sleep
};

// One simulated port: verbs' rules without verbs' hardware. All costs of the model are charged to
// the process's processor, or, inside an EventSink, to the progress thread. What verbs leaves to
// the user to see to (completion queues overrun, memory posted that is not registered) throws
// base::Error (MPI_ERR_INTERN), so that a mistake is found where it is made.
//
// No call gives way to other processes, except poll(), wait() and yield(). The progress thread is
// called only in wait(), in yield(), in poll() of a completion queue of connections' receives,
// where the process looks at its neighbours' memory, and while it computes.
class SimulatedDevice final : public net::rdma::Device {
 public:
  // `fabric` and `processor` outlive the device.
  SimulatedDevice(Fabric& fabric, Processor& processor, std::string name = "sim0:1");
  ~SimulatedDevice() override;

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] const net::rdma::DeviceLimits& limits() const noexcept override { return limits_; }
  [[nodiscard]] const net::rdma::PortAddress& address() const override { return address_; }

  std::unique_ptr<net::rdma::MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                           net::rdma::Access access) override;
  std::unique_ptr<net::rdma::CompletionQueue> make_completion_queue(std::uint32_t depth,
                                                                    bool async) override;
  std::unique_ptr<net::rdma::SharedReceiveQueue>
  make_shared_receive_queue(std::uint32_t depth) override;
  std::unique_ptr<net::rdma::QueuePair>
  make_queue_pair(const net::rdma::QueuePairOptions& options) override;
  std::unique_ptr<net::rdma::AddressHandle>
  make_address_handle(const net::rdma::PortAddress& to) override;

  void set_event_sink(net::rdma::EventSink* sink) override;
  void wait(unsigned longest_us) override;
  void wake() override;
  void yield() override;
  void before_look(std::size_t places) override;
  [[nodiscard]] double now() const override;

  // The progress thread will hear that the adapter is gone for good.
  void lose(std::string reason);
  // The process computes for so long; the progress thread may interrupt it.
  void compute(Time duration);
  // As yield(), for another time at most.
  void spin(Time longest);
  // The process is where its progress thread may interrupt it: also where it waits for something
  // else than this device.
  class Interruptible {
   public:
    explicit Interruptible(SimulatedDevice& device);
    ~Interruptible();
    Interruptible(const Interruptible&) = delete;
    Interruptible& operator=(const Interruptible&) = delete;

   private:
    SimulatedDevice& device_;
  };

  // Another device of the same process, which outlives this one: where this one's progress thread
  // may interrupt the process, the other's may too, and what comes there ends a spin here.
  void stand_beside(SimulatedDevice& other) {
    beside_ = &other;
    other.beside_ = this;
  }

  [[nodiscard]] Fabric& fabric() const { return fabric_; }
  [[nodiscard]] std::uint32_t lid() const { return address_.lid; }
  [[nodiscard]] const DeviceCounters& counters() const { return counters_; }
  [[nodiscard]] std::size_t registered_bytes() const { return regions.bytes(); }
  [[nodiscard]] std::size_t queue_pair_count() const { return queue_pairs_.size(); }

  // For the objects made by this device.

  struct Event {
    enum class Kind : std::uint8_t { limit, completions, loss } kind;
    std::uint64_t id; // of the queue
  };
  // Makes the progress thread wake up.
  void notify(Event event);
  // Something came that a spinning process would see; an armed completion queue has an event.
  void on_activity();
  void on_event();

  [[nodiscard]] Time time() const;
  void spend(Time cost) const;
  // What it takes to post so many receives at once.
  void spend_posting(std::size_t receives) const;
  void enter_poll(bool may_run_progress_thread);
  // If the process is so far ahead of the others, lets them catch up.
  void let_catch_up(Time distance);
  void release_places(std::uint32_t queue_pair, std::uint32_t places);
  // Throws if memory of a receive is not registered.
  void check_receives(std::span<const net::rdma::ReceiveWork> work) const;
  [[nodiscard]] bool allows(const net::rdma::Segment& segment) const;

  [[nodiscard]] SimulatedQueuePair* find_queue_pair(std::uint32_t number) const;
  void remove_queue_pair(std::uint32_t number);
  void count_connection() { ++counters_.connections; }

  RegionTable regions;
  base::IdTable<SimulatedCompletionQueue> completion_queues;
  base::IdTable<SimulatedSharedReceiveQueue> shared_queues;

 private:
  // Of the process's devices the one whose progress thread is running; null: none is.
  [[nodiscard]] const SimulatedDevice* interrupting() const {
    if (in_progress_thread_) return this;
    return beside_ != nullptr && beside_->in_progress_thread_ ? beside_ : nullptr;
  }
  void run_progress_thread();
  void run_progress_threads() {
    run_progress_thread();
    if (beside_ != nullptr) beside_->run_progress_thread();
  }

  Fabric& fabric_;
  Processor& processor_;
  const Time glance_; // how far the process may run ahead before a poll lets the others catch up
  std::string name_;
  net::rdma::DeviceLimits limits_;
  net::rdma::PortAddress address_;
  std::vector<std::pair<std::uint32_t, SimulatedQueuePair*>> queue_pairs_; // by number
  std::uint32_t next_number_;
  net::rdma::EventSink* sink_ = nullptr;
  SimulatedDevice* beside_ = nullptr; // of the same process
  Fifo<Event> due_;                   // for the progress thread, which is awake
  mutable Time progress_thread_time_ = 0;
  bool in_progress_thread_ = false;
  bool interruptible_ = false;
  bool event_ = false;    // wait() need not sleep
  bool activity_ = false; // since the last poll
  bool wakes_on_activity_ = false;
  std::string loss_; // why it was lost
  DeviceCounters counters_;
};

} // namespace macadam::sim
