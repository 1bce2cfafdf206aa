// SPDX-License-Identifier: BSD-3-Clause
#include "io/access.h"

#include "datatype/cursor.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace macadam::io {

using datatype::PackCursor;

namespace {

// Of data that go through memory of the library's: less than a cache of a core holds.
constexpr MPI_Count staging_bytes = 256 << 10;
// Bytes of a hole and the piece behind it that are read along with what is before them, the piece
// to be copied once more: a system call takes longer. What is written has no holes: others may
// write there at the same time.
constexpr MPI_Count read_along = 4 << 10;

// The lock of an atomic access, on all that lies between its first and its last byte.
class RangeLock {
 public:
  RangeLock(const Access& access, DiskFile::Sharing how) {
    if (!access.atomic) return;
    const Piece all = access.view->span_of(access.position, access.bytes());
    lock_.emplace(*access.file, how, all.offset, all.end());
  }

 private:
  std::optional<DiskFile::Locked> lock_;
};

// The memory of an access, as a stream.
class Memory {
 public:
  explicit Memory(const Data& data)
      : cursor_(*data.type, data.address, data.count),
        straight_(data.type->contiguous() ? static_cast<std::byte*>(data.address) : nullptr) {}

  // The most that next() may be asked for at a time.
  [[nodiscard]] MPI_Count most() const { return is_straight() ? INT64_MAX : staging_bytes; }
  [[nodiscard]] bool is_straight() const { return straight_ != nullptr; }
  // Where the stream goes on, of memory that is contiguous.
  [[nodiscard]] std::byte* here() const { return straight_ + cursor_.position(); }
  void skip(MPI_Count bytes) { cursor_.seek(cursor_.position() + bytes); }
  std::byte* staging() {
    if (!staging_) staging_ = std::make_unique_for_overwrite<std::byte[]>(staging_bytes);
    return staging_.get();
  }
  void put(const std::byte* from, MPI_Count bytes) {
    cursor_.unpack(from, static_cast<std::size_t>(bytes));
  }
  // The next bytes of the stream, where they are or copied.
  const std::byte* next(MPI_Count bytes) {
    if (!is_straight()) {
      cursor_.pack(staging(), static_cast<std::size_t>(bytes));
      return staging();
    }
    const std::byte* const at = here();
    skip(bytes);
    return at;
  }
  [[nodiscard]] std::size_t moved() const { return static_cast<std::size_t>(cursor_.position()); }

 private:
  PackCursor cursor_;
  std::byte* straight_;
  std::unique_ptr<std::byte[]> staging_;
};

// Pieces that are read at once.
struct Group {
  std::vector<Piece> pieces;
  MPI_Offset end = 0; // of all: they may overlap
  [[nodiscard]] MPI_Offset begin() const { return pieces.front().offset; }
};

// Those of the next pieces that follow each other closely, the first of no more than `most` bytes.
void collect(Pieces& pieces, MPI_Count most, Group& group) {
  group.pieces.assign(1, pieces.next(most));
  group.end = group.pieces.front().end();
  for (;;) {
    const Piece& following = pieces.peek();
    const bool joins = following.bytes != 0 && following.offset >= group.pieces.back().offset &&
                       following.end() - group.end <= read_along &&
                       following.end() - group.begin() <= staging_bytes;
    if (!joins) return;
    group.end = std::max(group.end, following.end());
    group.pieces.push_back(pieces.next());
  }
}

// Both false at the end of the file.
bool read_straight(const DiskFile& file, const Piece& piece, Memory& memory) {
  const auto got = static_cast<MPI_Count>(
      file.read(memory.here(), static_cast<std::size_t>(piece.bytes), piece.offset));
  memory.skip(got);
  return got == piece.bytes;
}
bool read_together(const DiskFile& file, const Group& group, Memory& memory) {
  const MPI_Offset first = group.begin();
  const auto span = static_cast<std::size_t>(group.end - first);
  const auto end = first + static_cast<MPI_Offset>(file.read(memory.staging(), span, first));
  for (const Piece& piece : group.pieces) {
    const MPI_Count there = std::clamp<MPI_Count>(end - piece.offset, 0, piece.bytes);
    memory.put(memory.staging() + (piece.offset - first), there);
    if (there != piece.bytes) return false;
  }
  return true;
}

} // namespace

std::size_t read(const Access& access) {
  if (access.bytes() == 0) return 0;
  const RangeLock lock(access, DiskFile::Sharing::shared);
  Pieces pieces(*access.view, access.position, access.bytes());
  Memory memory(access.memory);
  Group group;
  bool more = true;
  while (more && pieces.left() != 0) {
    collect(pieces, memory.most(), group);
    more = memory.is_straight() && group.pieces.size() == 1
               ? read_straight(*access.file, group.pieces.front(), memory)
               : read_together(*access.file, group, memory);
  }
  return memory.moved();
}

std::size_t write(const Access& access) {
  if (access.bytes() == 0) return 0;
  const RangeLock lock(access, DiskFile::Sharing::exclusive);
  Pieces pieces(*access.view, access.position, access.bytes());
  Memory memory(access.memory);
  while (pieces.left() != 0) {
    const Piece piece = pieces.next(memory.most());
    access.file->write(memory.next(piece.bytes), static_cast<std::size_t>(piece.bytes),
                       piece.offset);
  }
  return memory.moved();
}

Converted::Converted(const View& view, const Data& user, const datatype::Type& byte)
    : representation_(view.representation()), user_(user), stream_(user) {
  if (!representation_.converts() || user.count == 0) return;
  const datatype::TypeRef in_file = representation_.type_in_file(*user.type, byte);
  element_ = in_file->size();
  stream_ = {nullptr, datatype::packed_size(*in_file, user.count), &byte};
  copy_ = std::make_unique_for_overwrite<std::byte[]>(stream_.bytes());
  stream_.address = copy_.get();
}

void Converted::to_file() {
  if (copy_) representation_.to_file(*user_.type, user_.address, user_.count, copy_.get());
}

MPI_Count Converted::from_file(MPI_Count read) {
  if (!copy_ || element_ == 0) return read;
  const MPI_Count elements = read / element_ + (read % element_ != 0 ? 1 : 0);
  return representation_.from_file(*user_.type, copy_.get(), read, elements, user_.address);
}

} // namespace macadam::io
