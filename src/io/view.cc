// SPDX-License-Identifier: BSD-3-Clause
#include "io/view.h"

#include "base/error.h"

#include <algorithm>

namespace macadam::io {

using datatype::PackCursor;
using datatype::Type;
using datatype::Wide;

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
  if (unit_ == 0)
    base::fail(MPI_ERR_CONVERSION,
               "etype has {} bytes in memory and none in a file of the data representation {}; its "
               "extent function must give more than 0",
               etype.size(), representation_->name());
  if (in_file_->true_lb() < 0)
    base::fail(MPI_ERR_ARG, "filetype has data at displacement {}; none may be negative",
               in_file_->true_lb());
  look_through();
}

// MPI wants filetypes that ascend, on which the order of pieces and the search in them rest. On the
// way it counts the pieces of one copy.
void View::look_through() {
  const Type& type = *in_file_;
  if (!has_data()) return;
  if (type.extent() < 0)
    base::fail(MPI_ERR_ARG, "filetype has an extent of {} bytes; its copies must not descend",
               type.extent());
  PackCursor cursor(type, at(0), 1);
  Piece last{0, 0};
  MPI_Count holes = 0;
  for (datatype::Segment segment = cursor.next_segment(); segment.bytes != 0;
       segment = cursor.next_segment()) {
    const Piece piece{io::offset_of(segment), segment.bytes};
    if (piece.offset < last.offset)
      base::fail(MPI_ERR_ARG,
                 "filetype has data at displacement {} behind displacement {}; those of a filetype "
                 "must not descend",
                 piece.offset, last.offset);
    overlaps_ = overlaps_ || piece.offset < last.end();
    if (last.bytes != 0 && piece.offset != last.end()) ++holes;
    last = piece;
  }
  // From the last piece of a copy to the first of the next one.
  if (type.true_lb() + type.extent() != last.end()) ++holes;
  if (holes != 0) piece_ = std::max<MPI_Count>(type.size() / holes, 1);
}

// Where in the file a byte of the stream is, or would be if files could be so long.
Wide View::place(MPI_Count position) const {
  if (!has_data()) return displacement_;
  PackCursor cursor(*in_file_, at(0), 1);
  cursor.seek(position % in_file_->size());
  return Wide{position / in_file_->size()} * in_file_->extent() + displacement_ +
         io::offset_of(cursor.next_segment(1));
}

MPI_Count View::position_of(MPI_Offset etypes, Wide bytes) const {
  if (etypes < 0) base::fail(MPI_ERR_ARG, "offset is {}, needed: 0 or more", etypes);
  const Wide position = Wide{etypes} * unit_, end = position + bytes;
  // In the file: the end of the copy that has the last byte; of no data, where they would begin.
  const auto reach = [&]() -> Wide {
    if (bytes == 0 || !has_data()) return place(static_cast<MPI_Count>(position));
    return (end - 1) / in_file_->size() * in_file_->extent() + displacement_ + in_file_->true_ub();
  };
  if (end > INT64_MAX || reach() > INT64_MAX)
    base::fail(MPI_ERR_ARG,
               "{} bytes from etype {} of the view on go beyond 2^63 - 1 bytes, and no file is so "
               "long",
               bytes, etypes);
  return static_cast<MPI_Count>(position);
}

MPI_Offset View::offset_of(MPI_Count position) const {
  return static_cast<MPI_Offset>(place(position));
}

Piece View::span_of(MPI_Count position, MPI_Count bytes) const {
  if (in_order(position, bytes)) {
    const MPI_Offset first = offset_of(position);
    return {first, offset_of(position + bytes - 1) + 1 - first};
  }
  const MPI_Count copy = position / in_file_->size();
  const MPI_Count last = (position + bytes - 1) / in_file_->size();
  return {displacement_ + copy * in_file_->extent() + in_file_->true_lb(),
          (last - copy) * in_file_->extent() + in_file_->true_extent()};
}

// Whole copies, as far as all of their data are below; and a part of the next one.
MPI_Count View::data_before(MPI_Offset end) const {
  if (!has_data() || end <= displacement_ || end - displacement_ <= in_file_->true_lb()) return 0;
  const MPI_Offset span = end - displacement_ - in_file_->true_ub();
  const MPI_Count extent = std::max<MPI_Count>(in_file_->extent(), 1);
  const MPI_Count copies = span < 0 ? 0 : span / extent + 1;
  const auto in_first = static_cast<MPI_Offset>(end - Wide{copies} * extent);
  return copies * in_file_->size() + first_from(in_first, 0, in_file_->size());
}

// By halving, as offsets ascend with positions. (Where pieces overlap they do not quite, and the
// answer is near; it serves MPI_SEEK_END alone then.)
MPI_Count View::first_from(MPI_Offset offset, MPI_Count position, MPI_Count bytes) const {
  MPI_Count below = position, beyond = position + bytes;
  while (below < beyond) {
    const MPI_Count middle = below + (beyond - below) / 2;
    if (place(middle) < offset)
      below = middle + 1;
    else
      beyond = middle;
  }
  return below;
}

Pieces::Pieces(const View& view, MPI_Count position, MPI_Count bytes)
    : cursor_(view.in_file(), at(view.displacement()),
              copies_for(view.in_file(), position + bytes)),
      unread_(view.has_data() ? bytes : 0) {
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
