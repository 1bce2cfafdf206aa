// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gravel/wire.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::gravel {

// Memory that the user has registered, wherever it is from.
struct Region {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::vector<RemoteMemory> remote_memory; // by network
  std::uint32_t uses = 0;                  // requests and transfers under way

  [[nodiscard]] bool holds(const void* memory, std::size_t length) const {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(memory) - begin;
    return length != 0 && offset < bytes && length <= bytes - offset;
  }
  // What peers of a network call a part of it.
  [[nodiscard]] RemoteMemory part(const void* memory, std::size_t network) const {
    RemoteMemory name = remote_memory[network];
    name.address += reinterpret_cast<std::uintptr_t>(memory) - begin;
    return name;
  }
};

// What is registered in a process.
class MemoryTable {
 public:
  // The networks outlive the table.
  explicit MemoryTable(std::vector<engine::Transport*> networks);
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;
  ~MemoryTable();

  // Throws Code::memory if part of it is registered already, Code::argument for no memory at all,
  // and what the networks throw.
  void add(void* memory, std::size_t bytes);
  // By its first byte. Throws Code::memory if it is not registered, or in use.
  void remove(const void* memory);

  // The registered memory in which this lies as a whole; null for no bytes. Throws Code::memory.
  Region* find(const void* memory, std::size_t bytes);

  [[nodiscard]] std::size_t size() const { return regions_.size(); }

 private:
  using Regions = std::vector<std::unique_ptr<Region>>;
  // The first region that begins behind an address.
  [[nodiscard]] Regions::iterator behind(std::uintptr_t address);
  void release(const Region& region);

  std::vector<engine::Transport*> networks_;
  Regions regions_; // by their begin: looked up in every call, and seldom changed
};

} // namespace macadam::gravel
