// SPDX-License-Identifier: BSD-3-Clause
#include "gravel/memory.h"

#include "gravel/error.h"

#include <algorithm>
#include <limits>

namespace macadam::gravel {

MemoryTable::MemoryTable(std::vector<engine::Transport*> networks)
    : networks_(std::move(networks)) {}

MemoryTable::~MemoryTable() {
  for (const auto& region : regions_)
    release(*region);
}

void MemoryTable::release(const Region& region) {
  for (std::size_t i = 0; i < region.remote_memory.size(); ++i)
    networks_[i]->release_cached(region.remote_memory[i]);
}

void MemoryTable::add(void* memory, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (memory == nullptr || bytes == 0 || bytes > std::numeric_limits<std::uintptr_t>::max() - begin)
    fail(Code::argument, "{} bytes at {} are no memory to register", bytes, fmt::ptr(memory));
  const auto next = behind(begin + bytes - 1);
  if (next != regions_.begin()) {
    const Region& before = **(next - 1);
    if (before.begin + before.bytes > begin)
      fail(Code::memory,
           "{} bytes at {} overlap the {} bytes at {:#x} that are registered; register the whole "
           "array once, any part of it may then be used",
           bytes, fmt::ptr(memory), before.bytes, before.begin);
  }
  const auto added = regions_.insert(
      next, std::make_unique<Region>(Region{.begin = begin, .bytes = bytes, .remote_memory = {}}));
  try {
    for (engine::Transport* const network : networks_)
      (*added)->remote_memory.push_back(network->register_cached(memory, bytes));
  } catch (...) {
    release(**added);
    regions_.erase(added);
    throw;
  }
}

void MemoryTable::remove(const void* memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const auto next = behind(begin);
  if (next == regions_.begin() || (*(next - 1))->begin != begin)
    fail(Code::memory, "no registered memory begins at {}", fmt::ptr(memory));
  const Region& region = **(next - 1);
  if (region.uses != 0)
    fail(Code::memory,
         "the {} bytes at {} are in use by {} operations; wait for these requests first",
         region.bytes, fmt::ptr(memory), region.uses);
  release(region);
  regions_.erase(next - 1);
}

MemoryTable::Regions::iterator MemoryTable::behind(std::uintptr_t address) {
  return std::ranges::upper_bound(regions_, address, {},
                                  [](const auto& region) { return region->begin; });
}

Region* MemoryTable::find(const void* memory, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto after = behind(address);
  if (after != regions_.begin()) {
    Region& region = **(after - 1);
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
