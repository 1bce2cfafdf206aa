// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>

namespace macadam::mem {

inline constexpr std::size_t page = 4096; // bytes: what is registered, and the grain of it

constexpr std::size_t round_up(std::size_t bytes, std::size_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

// The system's pages themselves: an allocator would add a page to each block, and keep freed ones.
struct FreePages {
  std::size_t bytes = 0;
  void operator()(std::byte* memory) const;
};
using PageMemory = std::unique_ptr<std::byte[], FreePages>;

// Whole pages from the system, not touched, to be registered. Throws MPI_ERR_NO_MEM, naming
// `purpose`.
PageMemory allocate_pages(std::size_t bytes, const char* purpose);

} // namespace macadam::mem
