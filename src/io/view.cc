// SPDX-License-Identifier: BSD-3-Clause
#include "io/view.h"

#include "base/error.h"
#include "datatype/layout.h"

#include <algorithm>

namespace macadam::io {

using datatype::PackCursor;
using datatype::Type;

namespace {

// A cursor walks memory; here its buffer is the file, whose first byte has address 0.
const void* at(MPI_Offset offset) {
  return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(offset));
}

MPI_Offset offset_of(const datatype::Segment& segment) {
  return static_cast<MPI_Offset>(reinterpret_cast<std::uintptr_t>(segment.data));
}

// Enough copies of the filetype for so many bytes.
MPI_Count copies_for(const Type& in_file, MPI_Count bytes) {
  return in_file.size() == 0 ? 0 : bytes / in_file.size() + (bytes % in_file.size() != 0 ? 1 : 0);
}

// MPI wants filetypes that ascend, on which the order of pieces and the search in them rest.
void check_ascends(const Type& in_file) {
  if (in_file.size() == 0) return;
  if (in_file.extent() < 0 || (in_file.extent() == 0 && in_file.true_extent() > 0))
    base::fail(MPI_ERR_ARG,
               "filetype has an extent of {} bytes; its copies must ascend in the file",
               in_file.extent());
  PackCursor cursor(in_file, at(0), 1);
  MPI_Offset last = 0;
  for (datatype::Segment piece = cursor.next_segment(); piece.bytes != 0;
       piece = cursor.next_segment()) {
    const MPI_Offset offset = offset_of(piece);
    if (offset < last)
      base::fail(MPI_ERR_ARG,
                 "filetype has data at displacement {} behind or below displacement {}; those of a "
                 "filetype must not be negative, nor descend",
                 offset, last);
    last = offset;
  }
}

} // namespace

View::View(MPI_Offset displacement, const Type& etype, const Type& filetype,
           std::shared_ptr<const Representation> representation, const Type& byte)
    : displacement_(displacement), etype_(etype), filetype_(filetype),
      representation_(std::move(representation)),
      in_file_(representation_->type_in_file(filetype, byte)),
      unit_(representation_->type_in_file(etype, byte)->size()) {
  if (etype.size() == 0) base::fail(MPI_ERR_ARG, "etype has no data; give a type that has");
  if (filetype.size() % etype.size() != 0)
    base::fail(MPI_ERR_ARG, "filetype has {} bytes of data, which are no whole etypes of {} bytes",
               filetype.size(), etype.size());
  const Type* const of_etype = etype.elementary();
  if (of_etype != nullptr && filetype.size() != 0 && filetype.elementary() != of_etype)
    base::fail(MPI_ERR_ARG, "filetype, {}, does not consist of etypes, {}", describe(filetype),
               describe(etype));
  if (in_file_->true_lb() < 0)
    base::fail(MPI_ERR_ARG, "filetype has data at displacement {}; none may be negative",
               in_file_->true_lb());
  check_ascends(*in_file_);
}

MPI_Offset View::offset_of(MPI_Count position) const {
  if (!has_data()) return displacement_;
  PackCursor cursor(*in_file_, at(displacement_), copies_for(*in_file_, position + 1));
  cursor.seek(position);
  return io::offset_of(cursor.next_segment(1));
}

MPI_Count View::data_before(MPI_Offset end) const {
  const MPI_Offset first = displacement_ + in_file_->true_lb();
  if (!has_data() || end <= first) return 0;
  if (in_file_->extent() == 0) return data_before_in_tile(end);
  // Whole copies, as far as all of their data are below; and a part of the next one.
  const MPI_Offset span = end - displacement_ - in_file_->true_ub();
  const MPI_Count copies = span < 0 ? 0 : span / in_file_->extent() + 1;
  return copies * in_file_->size() + data_before_in_tile(end - copies * in_file_->extent());
}

// Of the first copy: by halving, as offsets ascend with positions.
MPI_Count View::data_before_in_tile(MPI_Offset end) const {
  PackCursor cursor(*in_file_, at(displacement_), 1);
  MPI_Count below = 0, beyond = in_file_->size();
  while (below < beyond) {
    const MPI_Count middle = below + (beyond - below) / 2;
    cursor.seek(middle);
    if (io::offset_of(cursor.next_segment(1)) < end)
      below = middle + 1;
    else
      beyond = middle;
  }
  return below;
}

Pieces::Pieces(const View& view, MPI_Count position, MPI_Count bytes)
    : cursor_(view.in_file(), at(view.displacement()),
              copies_for(view.in_file(), position + bytes)),
      end_(view.has_data() ? position + bytes : position) {
  seek(position);
}

void Pieces::seek(MPI_Count position) {
  unread_ = end_ - position;
  next_ = ahead_ = {0, 0};
  if (unread_ != 0) cursor_.seek(position);
  fetch();
}

// The piece that was read ahead, joined with what touches it.
void Pieces::fetch() {
  next_ = ahead_;
  ahead_ = {0, 0};
  while (unread_ != 0) {
    const datatype::Segment segment = cursor_.next_segment(unread_);
    unread_ -= segment.bytes;
    const Piece piece{offset_of(segment), segment.bytes};
    if (next_.bytes == 0) {
      next_ = piece;
    } else if (next_.end() == piece.offset) {
      next_.bytes += piece.bytes;
    } else {
      ahead_ = piece;
      return;
    }
  }
}

Piece Pieces::next(MPI_Count most, MPI_Offset end) {
  if (next_.bytes == 0 || next_.offset >= end) return {next_.offset, 0};
  const Piece piece{next_.offset, std::min({next_.bytes, most, end - next_.offset})};
  next_.offset += piece.bytes;
  next_.bytes -= piece.bytes;
  if (next_.bytes == 0) fetch();
  return piece;
}

} // namespace macadam::io
