// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/memory.h"

#include "gravel/error.h"

#include <iterator>
#include <limits>

namespace macadam::gravel {

MemoryTable::MemoryTable(std::vector<engine::Transport*> networks)
    : networks_(std::move(networks)) {}

MemoryTable::~MemoryTable() {
  for (const auto& [begin, region] : regions_)
    release(region);
}

void MemoryTable::release(const Region& region) {
  for (std::size_t i = 0; i < region.remote_memory.size(); ++i)
    networks_[i]->release_cached(region.remote_memory[i]);
}

void MemoryTable::add(void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == nullptr || bytes == 0 || bytes > std::numeric_limits<std::uintptr_t>::max() - begin)
    fail(Code::argument, "{} bytes at {} are no memory to register", bytes, fmt::ptr(memory));
  const auto next = regions_.lower_bound(begin + bytes);
  if (next != regions_.begin()) {
    const Region& before = std::prev(next)->second;
    if (before.begin + before.bytes > begin)
      fail(Code::memory,
           "{} bytes at {} overlap the {} bytes at {:#x} that are registered; register the whole "
           "array once, any part of it may then be used",
           bytes, fmt::ptr(memory), before.bytes, before.begin);
  }
  Region region{begin, bytes, {}, 0};
  try {
    for (engine::Transport* const network : networks_)
      region.remote_memory.push_back(network->register_cached(memory, bytes));
  } catch (...) {
    release(region);
    throw;
  }
  regions_.emplace(begin, std::move(region));
}

void MemoryTable::remove(const void* memory) {
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == regions_.end())
    fail(Code::memory, "no registered memory begins at {}", fmt::ptr(memory));
  if (found->second.uses != 0)
    fail(Code::memory,
         "the {} bytes at {} are in use by {} operations; wait for these requests first",
         found->second.bytes, fmt::ptr(memory), found->second.uses);
  release(found->second);
  regions_.erase(found);
}

Region* MemoryTable::find(const void* memory, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = regions_.upper_bound(address);
  if (after != regions_.begin()) {
    Region& region = std::prev(after)->second;
    const std::uintptr_t offset = address - region.begin;
    if (offset < region.bytes && bytes <= region.bytes - offset) return &region;
    if (offset < region.bytes)
      fail(Code::memory, "{} bytes at {} reach beyond the registered memory, {} bytes at {:#x}",
           bytes, fmt::ptr(memory), region.bytes, region.begin);
  }
  fail(Code::memory,
       "{} bytes at {} are not registered; call gravel_register() for the array they are in (a "
       "compiler that passes a copy of an array section also leads here)",
       bytes, fmt::ptr(memory));
}

} // namespace macadam::gravel
