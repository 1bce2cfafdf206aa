// SPDX-License-Identifier: BSD-3-Clause
#include "net/rdma/ibverbs/event.h"

#include "base/error.h"

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace macadam::net::rdma::ibverbs {

Event::Event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) {
    base::fail(MPI_ERR_OTHER,
               "RDMA: no descriptor for events: {}; raise the limit of open files "
               "(ulimit -n)",
               std::generic_category().message(errno));
  }
}

Event::~Event() {
  close(descriptor_);
}

void Event::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof one);
}

void Event::clear() const {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(descriptor_, &count, sizeof count);
}

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
