// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job.h"
#include "engine/transport.h"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace macadam::libgravel {

// A machine, as far as shared memory and process ids reach.
struct Machine {
  std::array<char, 40> boot = {};      // the kernel's id of this boot
  std::uint64_t process_namespace = 0; // in which process ids count
  bool operator==(const Machine&) const = default;
};

// What processes tell each other through the MPI that starts them, in two rounds. `trouble` is why
// one cannot go on: it still takes part, so that all know and none waits.
struct Greeting {
  static constexpr std::uint32_t this_version = 2;
  std::uint32_t version = this_version;
  std::uint32_t network = 0; // base::NetworkChoice
  Machine machine;
  boot::Secret secret = {}; // that of rank 0 is the job's
  std::int32_t process = 0;
  std::int32_t segment = -1; // descriptor in that process
  std::uint64_t device = 0;  // which file it is
  std::uint64_t file = 0;
  std::array<char, 200> trouble = {};
};

// What a network publishes: of no bytes if there is none.
struct Published {
  std::uint64_t bytes = 0;
  std::array<std::byte, boot::endpoint_address_bytes> address = {};
};

struct EndpointAddress {
  engine::RemoteMemory shm_ledgers;
  engine::RemoteMemory far_ledgers; // over the network between machines
  Published endpoint;
  std::array<char, 200> trouble = {};
};

// All that Gravel ever asks of an MPI.
class Exchange {
 public:
  // Throws gravel::Error if MPI is not running or refuses.
  explicit Exchange(MPI_Comm comm);

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }

  // What all processes give, by rank. Collective. Throws if one of them tells of trouble.
  template <class Words>
  std::vector<Words> allgather(const Words& own) {
    std::vector<Words> all(size_);
    gather(&own, all.data(), sizeof(Words));
    for (std::uint32_t rank = 0; rank < size_; ++rank) {
      if (all[rank].trouble[0] != '\0') refuse(rank, all[rank].trouble.data());
    }
    return all;
  }

 private:
  void gather(const void* own, void* all, std::size_t bytes);
  [[noreturn]] static void refuse(std::uint32_t rank, const char* trouble);

  MPI_Comm comm_;
  std::uint32_t rank_ = 0, size_ = 0;
};

// Runs a step that may throw, and keeps the reason in `trouble`.
template <class Step>
void keep_trouble(std::array<char, 200>& trouble, Step&& step) {
  try {
    step();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    text.copy(trouble.data(), trouble.size() - 1);
    if (text.empty()) trouble[0] = '?';
  }
}

} // namespace macadam::libgravel
