// SPDX-License-Identifier: BSD-3-Clause
#include "mem/pages.h"

#include "base/addresses.h"
#include "base/error.h"

#include <sys/mman.h>

namespace macadam::mem {

void FreePages::operator()(std::byte* memory) const {
  munmap(memory, bytes);
}

PageMemory allocate_pages(std::size_t bytes, const char* purpose) {
  const std::size_t whole = round_up(bytes, page);
  void* const memory =
      mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    base::fail(MPI_ERR_NO_MEM,
               "the system has no {} bytes for {}: {}, or lower MACADAM_RDMA_BUFFERS, "
               "MACADAM_RDMA_EAGER or MACADAM_RDMA_WINDOW",
               whole, purpose, base::limit_on_addresses());
  }
  return {static_cast<std::byte*>(memory), FreePages{whole}};
}

} // namespace macadam::mem
