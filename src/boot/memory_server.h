// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/descriptor.h"
#include "boot/job_memory.h"

#include <string>
#include <thread>

namespace macadam::boot {

// Hands the memory of a machine's ranks to the others there: a thread that ends once all have it.
class MemoryServer {
 public:
  // For so many processes of this user. Throws MPI_ERR_OTHER.
  MemoryServer(const JobMemory& memory, std::uint32_t others);
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;
  ~MemoryServer();

  // The name of its socket.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  void serve(std::uint32_t others) const;

  std::string name_;
  base::Descriptor socket_;
  base::Descriptor memory_; // its own
  std::thread thread_;
};

// The memory from the server of that name. Throws MPI_ERR_OTHER.
JobMemory fetch_memory(const std::string& name);

} // namespace macadam::boot
