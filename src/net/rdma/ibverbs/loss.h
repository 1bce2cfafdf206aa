// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/event.h"

#include <mutex>
#include <string>

namespace macadam::net::rdma::ibverbs {

// That the adapter cannot be used any more, and why. Any thread.
class Loss {
 public:
  // The first one stays.
  void tell(std::string reason);
  [[nodiscard]] std::string reason() const; // empty: it can be used
  // Readable once told; clear() it when that was heard.
  base::Event event;

 private:
  mutable std::mutex lock_;
  std::string reason_;
};

} // namespace macadam::net::rdma::ibverbs
