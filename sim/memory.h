// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace macadam::sim {

// The memory regions of one device: which bytes may be reached by which key. A key that was given
// back is never given out again, so its late use is always found.
class RegionTable {
 public:
  struct Region {
    std::uint64_t address;
    std::uint64_t bytes;
    net::rdma::Access access;
  };

  // Returns the key, both local and remote.
  std::uint32_t add(void* memory, std::size_t bytes, net::rdma::Access access) {
    next_key_ += 2;
    regions_[next_key_] = {reinterpret_cast<std::uint64_t>(memory), bytes, access};
    bytes_ += bytes;
    return next_key_;
  }
  void remove(std::uint32_t key) {
    const auto found = regions_.find(key);
    bytes_ -= found->second.bytes;
    regions_.erase(found);
  }

  // Whether `key` opens these bytes: to the device itself (local), or to others (remote).
  [[nodiscard]] bool allows(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                            net::rdma::Access by) const {
    const auto found = regions_.find(key);
    if (found == regions_.end()) return false;
    const Region& region = found->second;
    if (by == net::rdma::Access::remote && region.access != net::rdma::Access::remote) return false;
    return address >= region.address && bytes <= region.bytes &&
           address - region.address <= region.bytes - bytes;
  }

  [[nodiscard]] std::size_t count() const { return regions_.size(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::unordered_map<std::uint32_t, Region> regions_;
  std::uint64_t bytes_ = 0;
  std::uint32_t next_key_ = 0x1001; // odd, and not 0 or 1, which uninitialised keys are
};

} // namespace macadam::sim
