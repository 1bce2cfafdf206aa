// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"
#include "boot/job.h"
#include "libgravel/exchange.h"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace macadam::libgravel {

// This machine, in this process's view.
Machine this_machine();

// The processes of the communicator that Gravel was started on, as they have told each other in two
// rounds (exchange.h).
//
// Those on this machine share memory. They are not children of one launcher of ours, so no
// descriptor was inherited: each makes a segment of its own (a memfd: it has no name, and nothing
// is left behind) and opens those of the others through /proc/PID/fd, which the kernel allows to
// the same user. All are opened at the start, while all are known to be there. As long as a process
// takes part it has its segment locked, so its end, and that of Gravel in it, cost no message.
class Job final : public boot::Job {
 public:
  Job(std::uint32_t rank, std::uint32_t size);

  // The first round: what peers must know to open this process's segment, and what all have told.
  void describe(Greeting& own) const;
  void meet(std::vector<Greeting> all);
  // Opens the segments of all on this machine. Throws gravel::Error naming who and why not.
  void open_segments();
  // The second round: what was published here, and by all.
  [[nodiscard]] const Published& published() const { return own_endpoint_; }
  void learn(std::vector<Published> all) { endpoints_ = std::move(all); }

  // boot::Job
  [[nodiscard]] int rank() const override { return static_cast<int>(rank_); }
  [[nodiscard]] int size() const override { return static_cast<int>(size_); }
  [[nodiscard]] boot::Secret secret() const override { return greetings_[0].secret; }
  void publish(std::span<const std::byte> address) override;
  [[nodiscard]] std::optional<std::span<const std::byte>> fetch(int rank) const override;
  [[nodiscard]] int local_size() const override { return static_cast<int>(neighbours_.size()); }
  [[nodiscard]] int local_rank() const override { return local_rank_; }
  [[nodiscard]] int neighbour(int index) const override { return neighbours_[at(index)]; }
  [[nodiscard]] bool is_local(int rank) const override {
    return greetings_[at(rank)].machine == greetings_[rank_].machine;
  }
  [[nodiscard]] int cores() const override;
  [[nodiscard]] boot::SharedMemory own_memory() override { return {own_.get(), 0, capacity}; }
  [[nodiscard]] boot::SharedMemory memory_of(int rank) const override {
    return {opened_.at(rank).get(), 0, capacity};
  }
  [[nodiscard]] pid_t pid(int rank) const override { return greetings_[at(rank)].process; }
  [[nodiscard]] boot::Life life(int rank) const override;
  [[nodiscard]] unsigned failures() const override;

 private:
  // Room in the sparse file, which is neither memory nor address space.
  static constexpr std::uint64_t capacity = std::uint64_t{1} << 32;

  static base::Descriptor open_segment(int rank, const Greeting& peer);
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  const std::uint32_t rank_, size_;
  base::Descriptor own_;
  std::vector<Greeting> greetings_;  // by rank
  std::vector<Published> endpoints_; // by rank, once all have told
  Published own_endpoint_;
  std::vector<int> neighbours_; // on this machine, and this process
  int local_rank_ = 0;
  std::map<int, base::Descriptor> opened_; // segments of the neighbours, if they share memory
};

} // namespace macadam::libgravel
