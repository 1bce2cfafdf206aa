// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace macadam::mem {

enum class Access : std::uint8_t { local, remote }; // who may use a region: peers, too

// Memory that a network may reach. Unregistered when destroyed.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  std::uint32_t local_key = 0;
  std::uint64_t remote_key = 0; // unique among the regions that peers may use; of verbs 32 bits
};

// What registers memory with a network: an adapter, or a provider of libfabric.
class Registrar {
 public:
  [[nodiscard]] virtual const std::string& name() const = 0; // "mlx5_0:1"
  // Throws base::Error, with the reason, if it registers no more, or if part of this is no memory.
  virtual std::unique_ptr<MemoryRegion> register_memory(void* memory, std::size_t bytes,
                                                        Access access) = 0;

 protected:
  ~Registrar() = default;
};

} // namespace macadam::mem
