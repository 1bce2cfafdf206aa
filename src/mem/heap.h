// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/pages.h"
#include "mem/registrar.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace macadam::mem {

// Memory registered once for peers to reach: the copies of HYBRID, and what MPI_Alloc_mem gives.
// Blocks in powers of two, kept for reuse; long ones go back to the system. Not thread safe.
class Heap {
 public:
  explicit Heap(Registrar& device) : device_(device) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Null if the limit is reached or the device refuses.
  void* allocate(std::size_t bytes);
  // Why the last allocation that failed did so, with the remedy.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  void free(void* memory);
  // The region that holds this memory; null if it is none of ours.
  [[nodiscard]] const MemoryRegion* find(const void* memory) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Arena {
    PageMemory memory;
    std::unique_ptr<MemoryRegion> region;
    std::size_t bytes = 0;
    unsigned size_class = 0;
  };
  struct FreeBlock {
    FreeBlock* next;
  };
  static constexpr std::size_t smallest = 4096;
  static constexpr unsigned classes = 9; // to 1 MiB
  static constexpr std::size_t arena_bytes = std::size_t{1} << 18;
  static constexpr std::size_t limit = std::size_t{256} << 20;

  Arena* grow(std::size_t bytes, unsigned size_class);
  [[nodiscard]] std::map<std::uintptr_t, Arena>::const_iterator arena_of(const void* memory) const;

  Registrar& device_;
  std::map<std::uintptr_t, Arena> arenas_; // by first address
  std::array<FreeBlock*, classes> free_ = {};
  std::size_t bytes_ = 0;
  std::string refusal_;
};

} // namespace macadam::mem
