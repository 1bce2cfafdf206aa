// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"
#include "boot/job_memory.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace macadam::boot {

// Another job, as a process sees it that has its memory: that of its ranks on this machine, or, if
// it has none here, what mpiexec has made to tell of those on another one.
class MetJob final : public Job {
 public:
  // Throws MPI_ERR_OTHER.
  explicit MetJob(JobMemory memory);
  MetJob(const MetJob&) = delete;
  MetJob& operator=(const MetJob&) = delete;

  [[nodiscard]] int rank() const override { return -1; } // this process has none there
  [[nodiscard]] int size() const override { return memory_.size(); }
  [[nodiscard]] Secret secret() const override { return memory_.header().secret; }
  [[nodiscard]] std::uint32_t generation() const override;
  [[nodiscard]] int node(int rank) const override {
    return static_cast<int>(memory_.node_of(rank));
  }
  [[nodiscard]] std::string_view host() const override { return memory_.own_node().host.data(); }
  [[nodiscard]] std::string_view host_of(int rank) const override { return memory_.host_of(rank); }

  // Throws: this process is none of its ranks.
  void publish(std::span<const std::byte> endpoint_address) override;
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override;
  [[nodiscard]] std::optional<Agreement> agreement_of(int rank) const override {
    return memory_.agreement_of(rank, generation());
  }

  [[nodiscard]] int local_size() const override {
    return static_cast<int>(memory_.own_node().ranks);
  }
  [[nodiscard]] int local_rank() const override { return -1; }
  [[nodiscard]] int neighbour(int index) const override {
    return static_cast<int>(memory_.members()[static_cast<std::size_t>(index)]);
  }
  // Whether they share memory. A rank of a job on several machines that is alone on its own has
  // opened the network only (mpi/network.cc).
  [[nodiscard]] bool is_local(int rank) const override {
    return memory_.is_local(rank) && (memory_.header().nodes == 1 || local_size() > 1);
  }
  [[nodiscard]] int cores() const override { return static_cast<int>(memory_.header().cores); }
  [[nodiscard]] SharedMemory memory_of(int rank) const override;
  [[nodiscard]] pid_t pid(int rank) const override { return memory_.row(rank).pid; }

  // As its mpiexec has seen; all have failed once that has ended before them.
  [[nodiscard]] Life life(int rank) const override;
  [[nodiscard]] unsigned failures() const override {
    return memory_.header().failed.load(std::memory_order_acquire);
  }
  // Where a rank is met that runs, on this machine; null if it does not.
  [[nodiscard]] Door* door(std::uint32_t rank) const;
  // It has no rank on this machine: what is known of it comes over the network.
  [[nodiscard]] bool is_far() const { return local_size() == 0; }
  // No rank runs any more.
  [[nodiscard]] bool has_ended() const;

 private:
  JobMemory memory_;
  base::Descriptor use_; // tells mpiexec that this process knows a far job; none: it is not far
  mutable std::atomic<std::int64_t> looked_{0}; // when life() asked the system last, in ns
};

} // namespace macadam::boot
