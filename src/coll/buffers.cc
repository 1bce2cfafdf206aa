// SPDX-License-Identifier: BSD-3-Clause
#include "coll/buffers.h"

#include "base/copy.h"
#include "base/error.h"
#include "datatype/cursor.h"

#include <algorithm>

namespace macadam::coll {

void check_own(const Data& from, const Data& to) {
  if (from.bytes() == to.bytes()) return;
  base::fail(MPI_ERR_TRUNCATE,
             "a rank's own data: {} bytes are sent, {} received: counts and types must describe "
             "the same data",
             from.bytes(), to.bytes());
}

void copy(const Data& from, const Data& to) {
  check_own(from, to);
  const std::size_t bytes = from.bytes();
  if (bytes == 0) return;
  if (from.type->contiguous() && to.type->contiguous()) {
    base::copy(to.address, from.address, bytes);
  } else if (to.type->contiguous()) {
    datatype::PackCursor(*from.type, from.address, from.count).pack(to.address, bytes);
  } else {
    datatype::PackCursor source(*from.type, from.address, from.count);
    datatype::PackCursor target(*to.type, to.address, to.count);
    while (!target.done()) {
      const datatype::Segment piece = target.next_segment();
      source.pack(piece.data, static_cast<std::size_t>(piece.bytes));
    }
  }
}

Scratch::Scratch(const Comm& comm, const datatype::Type& type, MPI_Count count)
    : shared_(*comm.shared) {
  // The first and last byte of the data, seen from the buffer's address, which is aligned for what
  // users' operations find there. An extent may be negative.
  constexpr MPI_Count aligned = ~MPI_Count{15};
  const MPI_Count last = count > 0 ? (count - 1) * type.extent() : 0;
  const MPI_Count low = (std::min<MPI_Count>(last, 0) + type.true_lb()) & aligned;
  const MPI_Count high = std::max<MPI_Count>(last, 0) + type.true_ub();
  take(count > 0 ? static_cast<std::size_t>(high - low) : 0);
  data_ = {address_ - low, count, &type};
}

Scratch::Scratch(const Comm& comm, std::size_t bytes) : shared_(*comm.shared) {
  take(bytes);
  data_ = comm.bytes(address_, bytes);
}

void Scratch::take(std::size_t bytes) {
  bytes_ = bytes;
  address_ = bytes <= small_.size() ? small_.data() : shared_.scratch.take(bytes);
}

Packed::Packed(const Comm& comm, const Data& data)
    : comm_(comm), data_(data), size_(data.bytes()),
      copy_(comm, data.type->contiguous() ? 0 : size_),
      start_(data.type->contiguous() ? static_cast<std::byte*>(data.address) : copy_.bytes()) {}

void Packed::pack() {
  if (start_ == copy_.bytes()) copy(data_, bytes(0, size_));
}

void Packed::unpack() {
  if (start_ == copy_.bytes()) copy(bytes(0, size_), data_);
}

} // namespace macadam::coll
