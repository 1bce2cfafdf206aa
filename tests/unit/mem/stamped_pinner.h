// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mem/registration_cache.h"

#include <atomic>
#include <cstdint>
#include <memory>

namespace macadam::mem {

// A device that notes when it pinned: a registration is stale if the memory at its addresses is
// younger. Time is a count that goes up with every look.
class StampedPinner final : public Pinner {
 public:
  struct Pin final : Pinned {
    std::uint64_t time = 0;
  };

  std::uint64_t now() { return ++clock_; }

  std::unique_ptr<Pinned> pin(const Range&) override {
    auto made = std::make_unique<Pin>();
    made->remote_key = made->local_key = ++last_key_;
    made->time = now();
    return made;
  }

  static std::uint64_t time_of(const Registration& registration) {
    return static_cast<const Pin&>(*registration.pinned).time;
  }

 private:
  std::atomic<std::uint64_t> clock_ = 0;
  std::uint32_t last_key_ = 0;
};

} // namespace macadam::mem
