// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/layout.h"

#include "datatype/type.h"
#include "datatype/wide.h"

#include <algorithm>

namespace macadam::datatype {

using Kind = Layout::Kind;

Layout repeat(const Layout& element, MPI_Count count, MPI_Count extent) {
  Layout result;
  if (count == 0 || element.size == 0) return result;
  result.origin = element.origin;
  result.size = count * element.size;
  if (element.kind == Kind::run && (count == 1 || extent == element.size)) return result;

  result.kind = Kind::loop;
  const bool continues =
      element.kind == Kind::loop && (count == 1 || extent == Wide{element.count} * element.stride);
  if (continues) {
    result.depth = element.depth;
    result.count = count * element.count;
    result.stride = element.stride;
    result.block = element.block;
    result.body = element.body;
  } else {
    result.depth = element.depth + 1;
    result.count = count;
    result.stride = extent;
    result.block = element.size;
    result.body = element.kind == Kind::run ? nullptr : &element;
  }
  return result;
}

namespace {

using Shared = std::shared_ptr<const Layout>;

// The same, keeping alive what it refers to.
Shared repeat_shared(const Shared& element, MPI_Count count, MPI_Count extent) {
  if (count == 1) return element;
  auto result = std::make_shared<Layout>(repeat(*element, count, extent));
  if (result->body == element.get()) {
    result->owned = {element};
  } else {
    result->owned = element->owned;
  }
  return result;
}

// Builds the layout of a sequence of pieces, given in packing order.
class ListBuilder {
 public:
  void add(MPI_Count displacement, const Shared& piece) {
    if (piece->size == 0) return;
    const MPI_Count offset = displacement + piece->origin;
    const bool run = piece->kind == Kind::run;
    if (run && ends_with_run_up_to(offset)) {
      size_ += piece->size;
      return;
    }
    pieces_.push_back({offset, size_, run ? nullptr : piece.get()});
    size_ += piece->size;
    if (run) return;
    depth_ = std::max(depth_, piece->depth);
    if (owned_.empty() || owned_.back() != piece) owned_.push_back(piece);
  }

  Shared finish() {
    if (pieces_.size() == 1 && pieces_[0].body) return moved(owned_[0], pieces_[0].offset);
    auto result = std::make_shared<Layout>();
    if (pieces_.empty()) return result;
    result->origin = pieces_[0].offset;
    result->size = size_;
    if (pieces_.size() == 1) return result;
    if (regular()) return moved(loop(), result->origin);

    for (Layout::Piece& piece : pieces_)
      piece.offset -= result->origin;
    pieces_.push_back({0, size_, nullptr});
    pieces_.shrink_to_fit();
    result->kind = Kind::list;
    result->depth = depth_ + 1;
    result->pieces = std::move(pieces_);
    result->owned = std::move(owned_);
    return result;
  }

 private:
  [[nodiscard]] bool ends_with_run_up_to(MPI_Count offset) const {
    return !pieces_.empty() && !pieces_.back().body &&
           pieces_.back().offset + (size_ - pieces_.back().start) == offset;
  }

  // All pieces alike and evenly spaced?
  [[nodiscard]] bool regular() const {
    const MPI_Count stride = pieces_[1].offset - pieces_[0].offset;
    const MPI_Count block = pieces_[1].start;
    for (std::size_t i = 1; i < pieces_.size(); ++i) {
      const MPI_Count end = i + 1 < pieces_.size() ? pieces_[i + 1].start : size_;
      if (pieces_[i].body != pieces_[0].body || end - pieces_[i].start != block ||
          pieces_[i].offset - pieces_[i - 1].offset != stride) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Shared loop() const {
    const auto count = static_cast<MPI_Count>(pieces_.size());
    const MPI_Count stride = pieces_[1].offset - pieces_[0].offset;
    if (pieces_[0].body) return repeat_shared(owned_[0], count, stride);
    auto run = std::make_shared<Layout>();
    run->size = pieces_[1].start;
    return repeat_shared(run, count, stride);
  }

  // The same node at another place.
  static Shared moved(const Shared& node, MPI_Count origin) {
    if (node->origin == origin) return node;
    auto copy = std::make_shared<Layout>(*node);
    copy->origin = origin;
    return copy;
  }

  std::vector<Layout::Piece> pieces_;
  std::vector<Shared> owned_;
  MPI_Count size_ = 0;
  int depth_ = 0;
};

} // namespace

Shared flatten(const Shape& shape) {
  ListBuilder list;
  const Part* previous = nullptr; // indexed types have many parts alike: share their layout
  Shared layout;
  for (const Part& part : shape.parts) {
    if (part.length == 0) continue;
    if (!previous || part.length != previous->length || part.type.get() != previous->type.get()) {
      layout = repeat_shared(part.type->flattened(), part.length, part.type->extent());
      previous = &part;
    }
    list.add(part.displacement, layout);
  }
  if (shape.repeat == 0) return std::make_shared<Layout>();
  return repeat_shared(list.finish(), shape.repeat, shape.stride);
}

} // namespace macadam::datatype
