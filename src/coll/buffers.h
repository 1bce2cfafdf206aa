// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll/comm.h"

#include <mpi.h>

#include <array>
#include <cstddef>

namespace macadam::coll {

// `count` elements of `data`, from element `first` on.
[[nodiscard]] inline Data slice(const Data& data, MPI_Count first, MPI_Count count) {
  return {static_cast<std::byte*>(data.address) + first * data.type->extent(), count, data.type};
}

// Whether elements lie one behind the other and fill their memory, from the address on.
[[nodiscard]] inline bool is_dense(const datatype::Type& type) {
  return type.contiguous() && type.extent() == type.size();
}

// An array of counts or displacements: int or MPI_Count. Null: there is none. Algorithms know how
// many entries they read; `length` is for the layers above, 0 where no entry is significant.
struct Counts {
  [[nodiscard]] MPI_Count operator[](int i) const {
    const auto at = static_cast<std::size_t>(i);
    return large ? static_cast<const MPI_Count*>(array)[at] : static_cast<const int*>(array)[at];
  }
  const void* array = nullptr;
  bool large = false;
  int length = 0;
};

// A buffer with one block for each rank. Regular: blocks of `count` elements in a row. Else
// `counts[i]` elements at `displacements[i]`, counted in extents of `type`; or, with `types` (one a
// rank), in bytes.
struct Blocks {
  void* address = nullptr;
  MPI_Count count = 0;
  const datatype::Type* type = nullptr;
  Counts counts;
  Counts displacements;
  const datatype::Type* const* types = nullptr;

  [[nodiscard]] Data operator[](int rank) const {
    auto* base = static_cast<std::byte*>(address);
    if (counts.array == nullptr) return {base + rank * count * type->extent(), count, type};
    if (types != nullptr) return {base + displacements[rank], counts[rank], types[rank]};
    return {base + displacements[rank] * type->extent(), counts[rank], type};
  }
  [[nodiscard]] bool regular() const { return counts.array == nullptr; }
  // Blocks `first` to `first + n - 1` as one; regular only.
  [[nodiscard]] Data range(int first, int n) const {
    return {static_cast<std::byte*>(address) + first * count * type->extent(), n * count, type};
  }
};

// What a rank sends to itself must be as long as what it receives: throws MPI_ERR_TRUNCATE.
void check_own(const Data& from, const Data& to);
// Copies local data. Both describe the same number of bytes, see above; they do not overlap.
void copy(const Data& from, const Data& to);

// Memory of the library's for `count` elements of a type, for as long as the object lives. Small
// ones lie in the object itself (the coroutine's frame).
class Scratch {
 public:
  // Elements laid out as in a user's buffer.
  Scratch(const Comm& comm, const datatype::Type& type, MPI_Count count);
  // Plain bytes.
  Scratch(const Comm& comm, std::size_t bytes);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (address_ != small_.data()) shared_.scratch.give(address_, bytes_);
  }

  [[nodiscard]] std::byte* bytes() const { return address_; }
  [[nodiscard]] const Data& data() const { return data_; }

 private:
  void take(std::size_t bytes);

  Resources& shared_;
  std::byte* address_ = nullptr;
  std::size_t bytes_ = 0;
  Data data_;
  alignas(16) std::array<std::byte, 64> small_;
};

// User data as contiguous bytes: the user's own memory where it is contiguous, else a packed copy.
class Packed {
 public:
  Packed(const Comm& comm, const Data& data);

  // Fills the copy from the user's data, and back.
  void pack();
  void unpack();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Data bytes(std::size_t first, std::size_t count) const {
    return comm_.bytes(start_ + first, count);
  }

 private:
  const Comm& comm_;
  Data data_;
  std::size_t size_;
  Scratch copy_;
  std::byte* start_;
};

} // namespace macadam::coll
