// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"
#include "boot/job_memory.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

namespace macadam::boot {

// Hands the memory of a machine's ranks to the others there: a thread that ends once all have it.
// A process has one at most.
class MemoryServer {
 public:
  // For so many processes of this user. Throws MPI_ERR_OTHER.
  MemoryServer(const JobMemory& memory, std::uint32_t others);
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;
  ~MemoryServer();

  // The name of its socket.
  [[nodiscard]] const std::string& name() const { return name_; }
  // Waits until all have it, for a while at most.
  void finish() const;

 private:
  void serve();

  std::string name_;
  base::Descriptor socket_;
  base::Descriptor memory_;           // its own
  std::atomic<std::uint32_t> others_; // that do not have it yet
  std::thread thread_;
};

// The memory from the server of that name. Throws MPI_ERR_OTHER.
JobMemory fetch_memory(const std::string& name);

// At the end of a process that has left MPI: what it serves, if it does, it serves to the last. An
// MPI_Finalize has waited for all; a session has not.
void finish_serving();

} // namespace macadam::boot
