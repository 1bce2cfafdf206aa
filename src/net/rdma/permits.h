// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "engine/transport.h"
#include "mem/pages.h"
#include "net/rdma/device.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace macadam::net::rdma {

// A permit lies with the peer that may use it, where the issuer reaches it by RDMA: to use one
// costs nothing on the network, and to revoke one takes the peer's adapter, not its process. The
// peer writes that it is about to use the permit, then looks whether it was revoked; the issuer
// writes that it is revoked, then reads whether it was used. So one of the two sees the other, and
// if both do the peer yields.
struct PermitWord {
  std::uint64_t used = 0;    // written by the peer: twice the number of the permit, and 1 while it
                             // looks at the other word
  std::uint64_t revoked = 0; // written by the issuer: the highest number
};
static_assert(sizeof(PermitWord) == 16);

// Those of one pair of processes, both ways. Once there was one they are kept as long as the
// connection's record: either process may hold permits while they are not connected.
struct Permits {
  static constexpr unsigned most = 16; // open at a time
  using Row = std::array<PermitWord, most>;
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  engine::RemoteMemory ours;   // the row of the peer's permits for us
  engine::RemoteMemory theirs; // ... and of ours, at the peer
  std::uint64_t last = 0;      // number given to a permit of ours
  std::uint32_t open = 0;      // a bit for each word of theirs
  std::uint32_t asked = 0;
  std::unique_ptr<std::uint64_t[]> found; // in `used`, once that was read; from the first time on

  [[nodiscard]] Row& row() const { return *reinterpret_cast<Row*>(ours.address); }
  // 0: too many are open.
  std::uint64_t issue();
  bool use(std::uint64_t permit);
  void discard(std::uint64_t permit);
  // There never was one, in either direction.
  [[nodiscard]] bool unused() const;

  static unsigned place(std::uint64_t permit) { return static_cast<unsigned>(permit % most); }
  static std::uint64_t number(std::uint64_t permit) { return permit / most; }
};

// Memory for rows, registered together.
class PermitRows {
 public:
  static constexpr std::size_t arena_bytes = 64 * sizeof(Permits::Row);

  // Has the first ones: later the device may have no region left.
  explicit PermitRows(Device& device) : device_(device) { grow(); }
  std::unique_ptr<Permits> make();
  void give(std::unique_ptr<Permits> closed);
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Arena {
    mem::PageMemory memory;
    std::unique_ptr<MemoryRegion> region;
  };
  void grow();

  Device& device_;
  std::vector<Arena> arenas_;
  std::vector<engine::RemoteMemory> free_;
  std::size_t made_ = 0;
};

} // namespace macadam::net::rdma
