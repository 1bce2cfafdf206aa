// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace macadam::mem {

// Bytes that the kernel says this process has in memory (/proc/self/smaps): its own, touched ones,
// and what drivers of RDMA adapters have mapped. 0 where the kernel does not tell.
std::size_t resident_bytes();

} // namespace macadam::mem
