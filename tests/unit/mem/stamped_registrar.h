// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/registrar.h"
#include "mem/registration_cache.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace macadam::mem {

// A device that notes when it registered: a registration is stale if the memory at its addresses is
// younger. Time is a count that goes up with every look.
class StampedRegistrar final : public Registrar {
 public:
  struct Region final : MemoryRegion {
    std::uint64_t time = 0;
  };

  std::uint64_t now() { return ++clock_; }

  [[nodiscard]] const std::string& name() const override { return name_; }
  std::unique_ptr<MemoryRegion> register_memory(void*, std::size_t, Access) override {
    auto made = std::make_unique<Region>();
    made->remote_key = made->local_key = ++last_key_;
    made->time = now();
    return made;
  }

  static std::uint64_t time_of(const Registration& registration) {
    return static_cast<const Region&>(*registration.region).time;
  }

 private:
  const std::string name_ = "stamped";
  std::atomic<std::uint64_t> clock_ = 0;
  std::uint32_t last_key_ = 0;
};

} // namespace macadam::mem
