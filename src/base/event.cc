// SPDX-License-Identifier: BSD-3-Clause
#include "base/event.h"

#include "base/error.h"

#include <cerrno>
#include <cstdint>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace macadam::base {

Event::Event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) {
    fail(MPI_ERR_OTHER, "no descriptor for events: {}; raise the limit of open files (ulimit -n)",
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

} // namespace macadam::base
