// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "net/rdma/device.h"
#include "net/rdma/model.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

namespace macadam::net::rdma {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using PageMemory = std::unique_ptr<std::byte[], FreeMemory>;

// Whole pages from the system, not touched. Throws MPI_ERR_NO_MEM, naming `purpose`.
PageMemory allocate_pages(std::size_t bytes, const char* purpose);

// A message buffer, registered for our own use. It never moves: a work request's id is its address.
struct Buffer {
  std::byte* memory = nullptr;
  Buffer* next = nullptr;
  std::uint32_t local_key = 0;
};

// Buffers of one size for sends and receives (Sur et al., section 2.2, "Buffer Pool"). Registered
// in chunks as they are first wanted, never returned. Any thread: the attendant takes receives
// from it while the application sends.
class BufferPool {
 public:
  // Made of `buffer_bytes`-long buffers, at most `limit` of them.
  BufferPool(Device& device, std::size_t buffer_bytes, std::size_t limit)
      : device_(device), buffer_bytes_(buffer_bytes), limit_(limit) {}
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer for a send. Null if all are in use. Throws base::Error if no memory can be had for the
  // very first ones.
  Buffer* take();
  // Takes up to `count` buffers in one go, as a list; how many. For receives: they hold them for
  // long, so some are left for sends even if the device registers no more. If there are too few, so
  // many are registered at once, or as many as it takes; with 0 none.
  std::size_t take(std::size_t count, std::vector<Buffer*>& buffers, std::size_t registering);
  // Registers, unless it is, what take() of so many for receives needs, so that it is quick.
  void reserve(std::size_t count);
  void give(Buffer* buffer);
  void give(const std::vector<Buffer*>& buffers);

  // Raises (or lowers) the limit by buffers that belong to a connection.
  void resize_limit(std::ptrdiff_t by);

  [[nodiscard]] std::size_t buffer_bytes() const { return buffer_bytes_; }
  // Where a message may land in a buffer: behind model::landing bytes.
  [[nodiscard]] Segment landing_in(const Buffer& buffer) const {
    return {buffer.memory + model::landing,
            static_cast<std::uint32_t>(buffer_bytes_ - model::landing), buffer.local_key};
  }
  [[nodiscard]] std::size_t bytes() const; // registered
  [[nodiscard]] std::size_t taken() const;

 private:
  struct Chunk {
    PageMemory memory;
    std::unique_ptr<MemoryRegion> region;
    std::unique_ptr<Buffer[]> buffers;
  };
  Buffer* take_locked(std::size_t wanted, std::size_t to_leave);
  bool grow(std::size_t wanted);

  Device& device_;
  const std::size_t buffer_bytes_;
  mutable std::mutex lock_;
  std::size_t limit_;
  std::size_t made_ = 0;
  std::size_t taken_ = 0;
  Buffer* free_ = nullptr;
  std::vector<Chunk> chunks_;
};

} // namespace macadam::net::rdma
