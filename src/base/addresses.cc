// SPDX-License-Identifier: BSD-3-Clause
#include "base/addresses.h"

#include <fmt/format.h>

#include <sys/resource.h>

namespace macadam::base {

std::string limit_on_addresses() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return "this process has no limit on virtual memory, so the machine has none left (see "
           "/proc/sys/vm/overcommit_memory and max_map_count)";
  return fmt::format("the limit on virtual memory is {} KiB; raise it (ulimit -v)",
                     limit.rlim_cur >> 10);
}

} // namespace macadam::base
