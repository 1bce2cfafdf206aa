// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/loss.h"

#include <utility>

namespace macadam::net::rdma::ibverbs {

void Loss::tell(std::string reason) {
  {
    const std::scoped_lock guard(lock_);
    if (!reason_.empty()) return;
    reason_ = std::move(reason);
  }
  event.ring();
}

std::string Loss::reason() const {
  const std::scoped_lock guard(lock_);
  return reason_;
}

} // namespace macadam::net::rdma::ibverbs
