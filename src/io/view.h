// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/cursor.h"
#include "datatype/type.h"
#include "datatype/wide.h"
#include "io/representation.h"

#include <mpi.h>

#include <memory>

namespace macadam::io {

// A piece of the file, in bytes.
struct Piece {
  MPI_Offset offset;
  MPI_Count bytes;
  [[nodiscard]] MPI_Offset end() const { return offset + bytes; }
};

// What a process sees of a file (MPI 5.0, section 14.3): copies of the filetype, one behind the
// other from the displacement on. The data in them, without holes, are a stream of bytes, in which
// positions here are counted; the user counts in etypes. Positions and pieces ascend together
// within a copy, and beyond it unless copies lie between each other.
class View {
 public:
  // Keeps references to the types, which are committed. Throws MPI_ERR_ARG if the filetype is no
  // whole number of etypes, has negative displacements or a negative extent, or does not ascend.
  // MPI_ERR_CONVERSION if an etype takes no bytes in the file. `byte` is MPI_BYTE.
  View(MPI_Offset displacement, const datatype::Type& etype, const datatype::Type& filetype,
       std::shared_ptr<const Representation> representation, const datatype::Type& byte);

  [[nodiscard]] MPI_Offset displacement() const { return displacement_; }
  [[nodiscard]] const datatype::Type& etype() const { return *etype_; }
  [[nodiscard]] const datatype::Type& filetype() const { return *filetype_; }
  [[nodiscard]] const Representation& representation() const { return *representation_; }
  // Bytes of an etype in the stream.
  [[nodiscard]] MPI_Count unit() const { return unit_; }
  // The filetype has data: else there is nothing to read or write.
  [[nodiscard]] bool has_data() const { return in_file_->size() != 0; }
  // Pieces of a copy overlap, which MPI allows where nobody writes.
  [[nodiscard]] bool overlaps() const { return overlaps_; }
  // Whether the pieces of these bytes of the stream ascend and do not overlap.
  [[nodiscard]] bool in_order(MPI_Count position, MPI_Count bytes) const {
    if (overlaps_) return false;
    return in_file_->extent() >= in_file_->true_extent() ||
           position / in_file_->size() == (position + bytes - 1) / in_file_->size();
  }
  // From the first to the last of them, if there are any, in the file.
  [[nodiscard]] Piece span_of(MPI_Count position, MPI_Count bytes) const;
  // Bytes of a piece of the file between two holes, on average; INT64_MAX: there are no holes.
  [[nodiscard]] MPI_Count piece() const { return piece_; }

  // Where in the stream an etype begins. Throws MPI_ERR_ARG if it is negative, or if it or the end
  // of `bytes` bytes from there on is farther than a file can be long.
  [[nodiscard]] MPI_Count position_of(MPI_Offset etypes, datatype::Wide bytes = 0) const;
  // Etypes that have their begin in the first `bytes` bytes of the stream.
  [[nodiscard]] MPI_Offset etypes_in(MPI_Count bytes) const {
    return bytes / unit_ + (bytes % unit_ != 0 ? 1 : 0);
  }
  // Where in the file byte `position` of the stream is.
  [[nodiscard]] MPI_Offset offset_of(MPI_Count position) const;
  // Bytes of the stream before the first at `end` or beyond.
  [[nodiscard]] MPI_Count data_before(MPI_Offset end) const;
  // The first of these bytes, which are in order, at `offset` or beyond; their end if none is.
  [[nodiscard]] MPI_Count first_from(MPI_Offset offset, MPI_Count position, MPI_Count bytes) const;

  // The filetype, as it lies in the file.
  [[nodiscard]] const datatype::Type& in_file() const { return *in_file_; }

 private:
  void look_through();
  [[nodiscard]] datatype::Wide place(MPI_Count position) const;

  MPI_Offset displacement_;
  datatype::TypeRef etype_;
  datatype::TypeRef filetype_;
  std::shared_ptr<const Representation> representation_;
  datatype::TypeRef in_file_;
  MPI_Count unit_;
  MPI_Count piece_ = INT64_MAX;
  bool overlaps_ = false;
};

// The pieces of the file that hold `bytes` bytes of the stream from `position` on. Neighbours that
// touch are one piece.
class Pieces {
 public:
  Pieces(const View& view, MPI_Count position, MPI_Count bytes);

  // The next one, or what is below `end` of it, no more than `most` bytes; of no bytes at the end
  // of all, and if the next lies at or beyond `end`.
  Piece next(MPI_Count most = INT64_MAX, MPI_Offset end = INT64_MAX);
  // The same, without its limits; it stays the next one.
  [[nodiscard]] const Piece& peek() const { return next_; }
  // Bytes of the stream that have not been asked for.
  [[nodiscard]] MPI_Count left() const { return unread_ + ahead_.bytes + next_.bytes; }

 private:
  void fetch();

  datatype::PackCursor cursor_;
  MPI_Count unread_; // bytes that the cursor has not come to
  Piece next_{0, 0};
  Piece ahead_{0, 0}; // does not touch it
};

} // namespace macadam::io
