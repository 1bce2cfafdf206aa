// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "sim/scheduler.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace macadam::sim {

class SimulatedDevice;

// First in, first out, of bounded length; takes memory only while something is in it.
template <class T>
class Fifo {
 public:
  [[nodiscard]] std::size_t size() const { return items_.size() - first_; }
  [[nodiscard]] bool empty() const { return size() == 0; }
  void push(const T& item) { items_.push_back(item); }
  T pop() {
    T item = items_[first_++];
    if (first_ == items_.size()) {
      items_.clear();
      if (items_.capacity() > keep) items_.shrink_to_fit();
      first_ = 0;
    } else if (first_ > items_.size() / 2 && first_ > keep) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    return item;
  }
  template <class Condition>
  void erase_if(Condition&& condition) {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    std::erase_if(items_, condition);
  }

 private:
  static constexpr std::size_t keep = 16;
  std::vector<T> items_;
  std::size_t first_ = 0;
};

class SimulatedCompletionQueue final : public net::rdma::CompletionQueue {
 public:
  SimulatedCompletionQueue(SimulatedDevice& device, std::uint32_t depth, bool async);
  ~SimulatedCompletionQueue() override;

  std::size_t poll(std::span<net::rdma::Completion> completions) override;
  void arm() override;

  // `released`: places of the queue pair's send queue that are free once this has been polled.
  void push(const net::rdma::Completion& completion, std::uint32_t released);
  // Forgets what has not been polled of a queue pair that goes away.
  void forget(std::uint32_t queue_pair);

  // Connections' receives complete here: a process that polls it lets the progress thread in. (One
  // with neighbours has asynchronous queues, and does so where it looks at their memory.)
  void serve_connections() { admits_progress_thread_ = !async_; }

 private:
  struct Entry {
    net::rdma::Completion completion;
    std::uint32_t released;
  };
  SimulatedDevice& device_;
  Fifo<Entry> entries_;
  std::uint64_t id_; // for events on the way to the progress thread
  std::uint32_t depth_;
  bool async_;
  bool armed_ = false;
  bool admits_progress_thread_ = false;
};

// Receives, in order: of one queue pair, or shared.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(std::uint32_t depth) : depth_(depth) {}
  bool post(std::span<const net::rdma::ReceiveWork> work) {
    if (posted_.size() + work.size() > depth_) return false;
    for (const net::rdma::ReceiveWork& each : work)
      posted_.push(each);
    return true;
  }
  [[nodiscard]] std::size_t size() const { return posted_.size(); }
  [[nodiscard]] std::size_t room() const { return depth_ - posted_.size(); }
  std::optional<net::rdma::ReceiveWork> pop() {
    if (posted_.empty()) return std::nullopt;
    return posted_.pop();
  }

 private:
  Fifo<net::rdma::ReceiveWork> posted_;
  std::uint32_t depth_;
};

// What is posted serves from the moment at which whoever posts it has got so far, the progress
// thread or the application: not before the memory of a refill is registered and the work of
// posting is done.
class SimulatedSharedReceiveQueue final : public net::rdma::SharedReceiveQueue {
 public:
  SimulatedSharedReceiveQueue(SimulatedDevice& device, std::uint32_t depth);
  ~SimulatedSharedReceiveQueue() override;

  std::size_t post(std::span<const net::rdma::ReceiveWork> work) override;
  void arm_limit(std::uint32_t watermark) override;

  std::optional<net::rdma::ReceiveWork> pop();
  // What has been posted up to now is there.
  void catch_up();

 private:
  struct Coming {
    Time when;
    net::rdma::ReceiveWork work;
  };
  void at_its_time();
  void check_limit();

  SimulatedDevice& device_;
  ReceiveQueue queue_;
  std::vector<Coming> coming_;
  std::uint64_t id_;
  std::uint32_t watermark_ = 0;
  std::uint32_t armed_ = 0; // the watermark from `armed_at_` on, if not 0
  Time armed_at_ = 0;
};

} // namespace macadam::sim
