// SPDX-License-Identifier: BSD-3-Clause
#include "net/shm/segment.h"

#include "base/addresses.h"
#include "base/error.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace macadam::net::shm {
namespace {

// Extents from this size on begin at a multiple of it, so that the system can use its huge pages.
constexpr std::uint64_t huge = std::uint64_t{2} << 20;

// Bytes that one who shares them with nobody may have: a bound for sums.
constexpr std::uint64_t most_alone = std::uint64_t{1} << 47;

constexpr std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::byte* map(std::uint64_t bytes, int flags, int fd, std::uint64_t offset,
               void* where = nullptr) {
  void* memory = mmap(where, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) {
    const int error = errno;
    base::fail(MPI_ERR_NO_MEM, "shared memory: mapping {} KiB failed: {}; {}", bytes >> 10,
               std::strerror(error), base::limit_on_addresses());
  }
  return static_cast<std::byte*>(memory);
}

} // namespace

Mapping::Mapping(const SharedMemory& memory, Extent extent)
    : base_(memory.here != nullptr
                ? memory.here + extent.offset
                : map(extent.bytes, MAP_SHARED, memory.fd, memory.offset + extent.offset)),
      extent_(extent), shared_(true), ours_(memory.here == nullptr) {}

Mapping::Mapping(Extent extent)
    : base_(map(extent.bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)), extent_(extent) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(extent_, other.extent_);
  std::swap(shared_, other.shared_);
  std::swap(ours_, other.ours_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr && ours_) munmap(base_, extent_.bytes);
}

// Pages that nobody has touched are not taken.
void Mapping::share(const SharedMemory& memory) {
  if (shared_) return;
  if (memory.here != nullptr)
    base::fail(MPI_ERR_INTERN, "memory without a descriptor cannot take the place of other memory");
  const Mapping file(memory, extent_);
  constexpr std::uint64_t piece = 4096;
  static constexpr std::array<std::byte, piece> zeros = {};
  for (std::uint64_t at = 0; at < extent_.bytes; at += piece)
    if (std::memcmp(base_ + at, zeros.data(), piece) != 0)
      std::memcpy(file.base_ + at, base_ + at, sizeof zeros);
  map(extent_.bytes, MAP_SHARED | MAP_FIXED, memory.fd, memory.offset + extent_.offset, base_);
  shared_ = true;
}

void Mapping::discard() {
  // Private memory goes when it is unmapped.
  madvise(base_, extent_.bytes, MADV_REMOVE);
}

Segment::Segment(boot::Job& job, std::uint64_t front) : job_(job), shared_(job.shares_memory()) {
  if (add(front) == nullptr)
    base::fail(
        MPI_ERR_NO_MEM,
        "shared memory: no room for the receive queue and the chunks of rank {}, {} KiB: {}; "
        "or lower MACADAM_SHM_QUEUE",
        job.rank(), front >> 10, why_not_);
}

Segment::~Segment() {
  for (const auto& [offset, mapping] : by_offset_)
    job_.withdraw(mapping.extent().bytes);
}

void Segment::share() {
  if (shared_) return;
  by_offset_.begin()->second.share(job_.own_memory());
  shared_ = true;
}

// The lowest that is free, so that peers unmap what was there before.
std::uint64_t Segment::find_room(std::uint64_t bytes) const {
  const std::uint64_t unit = bytes >= huge ? huge : Extent::grain;
  std::uint64_t room = 0;
  for (const auto& [offset, mapping] : by_offset_) {
    if (room <= offset && bytes <= offset - room) break;
    room = up(mapping.extent().end(), unit);
  }
  return room;
}

const Mapping* Segment::add(std::uint64_t bytes) {
  std::uint64_t promised = 0;
  try {
    const SharedMemory memory = shared_ ? job_.own_memory() : SharedMemory{};
    const std::uint64_t capacity = shared_ ? memory.capacity : most_alone;
    const Extent extent{find_room(bytes), up(std::min(bytes, capacity), Extent::grain)};
    if (bytes > capacity || extent.end() > capacity)
      base::fail(MPI_ERR_NO_MEM, "{} KiB are more than is left of the {} KiB that a rank can share",
                 bytes >> 10, capacity >> 10);
    why_not_ = job_.promise(extent.bytes);
    if (!why_not_.empty()) return nullptr;
    promised = extent.bytes;
    Mapping mapping = shared_ ? Mapping(memory, extent) : Mapping(extent);
    const auto [at, added] = by_offset_.emplace(extent.offset, std::move(mapping));
    by_base_.emplace(at->second.base(), &at->second);
    return &at->second;
  } catch (const base::Error& error) {
    job_.withdraw(promised);
    why_not_ = error.text;
    return nullptr;
  }
}

void Segment::remove(const Mapping& mapping) {
  const Extent extent = mapping.extent();
  const auto at = by_offset_.find(extent.offset);
  at->second.discard();
  by_base_.erase(at->second.base());
  by_offset_.erase(at);
  job_.withdraw(extent.bytes);
}

const Mapping* Segment::find(const void* memory, std::size_t bytes) const {
  const auto* const start = static_cast<const std::byte*>(memory);
  auto at = by_base_.upper_bound(start);
  if (at == by_base_.begin()) return nullptr;
  const Mapping& mapping = *(--at)->second;
  const auto within = static_cast<std::uint64_t>(start - mapping.base());
  const std::uint64_t all = mapping.extent().bytes;
  return within < all && bytes <= all - within ? &mapping : nullptr;
}

const Mapping* Segment::find(std::uint64_t address, std::size_t bytes) const {
  auto at = by_offset_.upper_bound(address);
  if (at == by_offset_.begin()) return nullptr;
  const Mapping& mapping = (--at)->second;
  return mapping.extent().holds(address, bytes) ? &mapping : nullptr;
}

const Mapping* Mappings::find(std::uint64_t key) const {
  const auto at = std::ranges::lower_bound(sorted_, key, {},
                                           [](const Mapping& each) { return each.extent().key(); });
  return at != sorted_.end() && at->extent().key() == key ? &*at : nullptr;
}

const Mapping& Mappings::add(Mapping mapping) {
  const Extent extent = mapping.extent();
  std::erase_if(sorted_, [&](const Mapping& each) { return each.extent().overlaps(extent); });
  const auto after = std::ranges::upper_bound(
      sorted_, extent.key(), {}, [](const Mapping& each) { return each.extent().key(); });
  return *sorted_.insert(after, std::move(mapping));
}

std::optional<Mapping> Mappings::take(std::uint64_t key) {
  const auto at =
      std::ranges::find(sorted_, key, [](const Mapping& each) { return each.extent().key(); });
  if (at == sorted_.end()) return std::nullopt;
  std::optional<Mapping> taken(std::move(*at));
  sorted_.erase(at);
  return taken;
}

} // namespace macadam::net::shm
