// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/segment.h"

#include "base/error.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace macadam::net::shm {
namespace {

std::byte* map(std::size_t bytes, int flags, int fd, std::uint64_t offset) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd,
                      static_cast<off_t>(offset));
  if (memory == MAP_FAILED) {
    base::fail(MPI_ERR_NO_MEM,
               "shared memory: mapping {} MiB of address space failed: {}; raise the limit on "
               "virtual memory (ulimit -v)",
               bytes >> 20, std::strerror(errno));
  }
  return static_cast<std::byte*>(memory);
}

} // namespace

Segment::Segment(const SharedMemory& memory)
    : base_(map(memory.capacity, MAP_SHARED, memory.fd, memory.offset)), capacity_(memory.capacity),
      fd_(memory.fd), file_offset_(memory.offset) {}

Segment Segment::anonymous(std::size_t capacity) {
  Segment segment;
  segment.base_ = map(capacity, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  segment.capacity_ = capacity;
  return segment;
}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(capacity_, other.capacity_);
  std::swap(fd_, other.fd_);
  std::swap(file_offset_, other.file_offset_);
  return *this;
}

Segment::~Segment() {
  if (base_ != nullptr) munmap(base_, capacity_);
}

int Segment::commit(std::uint64_t offset, std::size_t bytes) {
  if (fd_ < 0) return 0;
  int result = 0;
  do {
    result =
        fallocate(fd_, 0, static_cast<off_t>(file_offset_ + offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

void Segment::decommit(std::uint64_t offset, std::size_t bytes) {
  if (fd_ < 0) {
    madvise(base_ + offset, bytes, MADV_DONTNEED);
  } else {
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
              static_cast<off_t>(file_offset_ + offset), static_cast<off_t>(bytes));
  }
}

} // namespace macadam::net::shm
