// SPDX-License-Identifier: BSD-3-Clause
#include "base/copy.h"

namespace macadam::base {

[[gnu::weak]] void copy_many(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
}

[[gnu::weak]] void touched(std::size_t) {}

} // namespace macadam::base
