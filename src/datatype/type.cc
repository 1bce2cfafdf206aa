// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/type.h"

#include "base/error.h"
#include "datatype/layout.h"
#include "datatype/wide.h"

#include <algorithm>
#include <functional>
#include <type_traits>

namespace macadam::datatype {

void TypeRef::retain() {
  ++type_->references;
}

void TypeRef::drop() {
  if (--type_->references != 0) return;
  // What is inside may go with it; without recursion, for nesting may be deeper than the stack.
  Type* dead = type_;
  const auto let_go = [&dead](TypeRef& inner) {
    Type* const type = inner.release();
    if (--type->references == 0) type->next_dead_ = std::exchange(dead, type);
  };
  while (dead != nullptr) {
    Type* const type = std::exchange(dead, dead->next_dead_);
    for (Part& part : type->shape_.parts)
      let_go(part.type);
    for (TypeRef& inner : type->contents_.types)
      let_go(inner);
    delete type;
  }
}

TypeRef TypeRef::adopt(Type& type) {
  TypeRef ref;
  ref.type_ = &type;
  return ref;
}

namespace {

// First and last byte + 1 of a set of entries; grows as entries are added.
struct Interval {
  bool empty = true;
  Wide low = 0;
  Wide high = 0;

  // Adds [low, high) and its copies up to `reach` bytes away, to whichever side.
  void add(Wide new_low, Wide new_high, Wide reach) {
    new_low += std::min(reach, Wide{0});
    new_high += std::max(reach, Wide{0});
    low = empty ? new_low : std::min(low, new_low);
    high = empty ? new_high : std::max(high, new_high);
    empty = false;
  }

  void repeat(Wide reach) {
    if (!empty) add(low, high, reach);
  }
};

} // namespace

Type::Type(const Basic& basic, Shape shape)
    : base::Object(base::ObjectKind::datatype), name(basic.name), basic_(&basic),
      combiner_(MPI_COMBINER_NAMED), shape_(std::move(shape)) {
  if (basic.type_class == BasicClass::pair) {
    measure(nullptr);
  } else {
    size_ = extent_ = true_ub_ = basic.extent;
    alignment_ = basic.alignment;
    granule_ = static_cast<std::uint8_t>(basic.extent & -basic.extent);
    external_size_ = basic.external_size;
    signature_ = Signature::of(basic.storage);
  }
  elementary_ = this;
  commit();
}

Type::Type(int combiner, Contents contents, Shape shape, const Bounds* bounds)
    : base::Object(base::ObjectKind::datatype), combiner_(combiner), shape_(std::move(shape)),
      contents_(std::move(contents)) {
  measure(bounds);
}

// A stale handle to this memory must not look alive; volatile, since the object's life ends here
// and the compiler would drop the store.
Type::~Type() {
  *const_cast<volatile base::ObjectKind*>(&kind) = base::ObjectKind::freed;
}

TypeRef Type::make(int combiner, Contents contents, Shape shape, const Bounds* bounds) {
  return TypeRef::adopt(*new Type(combiner, std::move(contents), std::move(shape), bounds));
}

// The bounds are those of the parts, unless some part was resized; then only what was resized
// counts. The standard's epsilon, which rounds an extent up to the strictest alignment, is added
// where a structure is described and nowhere else: vectors of misaligned data keep the extent that
// their strides give them, as in MPICH, and what nests them is a whole number of their extents.
void Type::measure(const Bounds* bounds) {
  Interval data;
  Interval hull;
  Interval marked;
  Wide size = 0;
  bool mixed = false;
  std::uint8_t granule = UINT8_MAX;
  for (const Part& part : shape_.parts) {
    const Type& child = *part.type;
    if (part.length == 0 || shape_.repeat == 0) continue;
    const Wide at = part.displacement;
    const Wide reach = Wide{part.length - 1} * child.extent_;
    if (child.explicit_bounds_) marked.add(at + child.lb_, at + child.ub(), reach);
    if (child.size_ == 0) continue;
    data.add(at + child.true_lb_, at + child.true_ub_, reach);
    hull.add(at + child.lb_, at + child.ub(), reach);
    size = narrow(size + Wide{part.length} * child.size_, "size");
    external_size_ += part.length * child.external_size_;
    alignment_ = std::max(alignment_, child.alignment_);
    granule = std::min(granule, child.granule_);
    if (elementary_ && elementary_ != child.elementary_) mixed = true;
    if (!child.elementary_) mixed = true;
    elementary_ = child.elementary_;
    signature_ = signature_ + part.length * child.signature_;
  }
  size_ = narrow(size * shape_.repeat, "size");
  external_size_ *= shape_.repeat;
  if (mixed) elementary_ = nullptr;
  if (size_ != 0) granule_ = granule;
  signature_ = shape_.repeat * signature_;

  const Wide reach = Wide{shape_.repeat - 1} * shape_.stride;
  data.repeat(reach);
  hull.repeat(reach);
  marked.repeat(reach);
  true_lb_ = narrow(data.low, "true lower bound");
  true_ub_ = narrow(data.high, "true upper bound");
  narrow(data.high - data.low, "true extent");

  explicit_bounds_ = bounds || !marked.empty;
  if (bounds) {
    marked = {.empty = false, .low = bounds->lb, .high = Wide{bounds->lb} + bounds->extent};
  } else if (marked.empty) {
    marked = hull;
    if (combiner_ == MPI_COMBINER_STRUCT || predefined()) {
      const Wide extent = hull.high - hull.low;
      marked.high = hull.low + (extent + alignment_ - 1) / alignment_ * alignment_;
    }
  }
  lb_ = narrow(marked.low, "lower bound");
  narrow(marked.high, "upper bound");
  extent_ = narrow(marked.high - marked.low, "extent");
}

void Type::commit() {
  if (committed_) return;
  const Layout& layout = *flattened();
  contiguous_ = layout.kind == Layout::Kind::run && layout.origin == 0 && size_ == extent_;
  committed_ = true;
}

const std::shared_ptr<const Layout>& Type::flattened() {
  // What is inside comes first; without recursion, for nesting may be deeper than the stack.
  std::vector<Type*> todo;
  if (!layout_) todo.push_back(this);
  while (!todo.empty()) {
    Type& type = *todo.back();
    if (type.layout_) {
      todo.pop_back();
      continue;
    }
    const std::size_t level = todo.size();
    for (const Part& part : type.shape_.parts) {
      if (!part.type->layout_) todo.push_back(part.type.get());
    }
    if (todo.size() > level) continue;
    if (type.shape_.parts.empty()) { // a basic type, or nothing at all
      auto run = std::make_shared<Layout>();
      run->size = type.size_;
      type.layout_ = std::move(run);
    } else {
      type.layout_ = flatten(type.shape_);
    }
  }
  return layout_;
}

PredefinedTypes::PredefinedTypes() {
  const auto at = [this](std::uint16_t code) -> TypeRef& {
    return types_[code - first_basic_code];
  };
  for (const Basic& basic : basics()) {
    Shape shape;
    if (basic.type_class == BasicClass::pair) {
      shape.parts = {{0, 1, at(basic.value_code)}, {basic.index_offset, 1, at(basic.index_code)}};
    }
    at(basic.code) = TypeRef::adopt(*new Type(basic, std::move(shape)));
  }
}

MPI_Count packed_size(const Type& type, MPI_Count count) {
  MPI_Count bytes = 0;
  if (__builtin_mul_overflow(type.size(), count, &bytes)) {
    base::fail(
        MPI_ERR_COUNT,
        "{} elements of {} ({} bytes each) are more than 2^63 - 1 bytes; use a smaller count",
        count, describe(type), type.size());
  }
  return bytes;
}

namespace {

// The worth of the first data of an element, and of as many elements before it: `amount`, counted
// by `measure`, of which what is left is inside a basic element. Goes into the element that is cut:
// at most one on each level of nesting.
template <class Measure, class Worth>
auto worth_of_first(const Type& type, MPI_Count& amount, Measure measure, Worth worth) {
  using Sum = std::remove_cvref_t<std::invoke_result_t<Worth, const Type&>>; // of data in order
  Sum sum{};
  for (const Type* cut = &type;;) {
    const MPI_Count whole = std::invoke(measure, *cut);
    sum = sum + amount / whole * std::invoke(worth, *cut);
    amount %= whole;
    const Shape& shape = cut->shape();
    if (amount == 0 || shape.parts.empty()) return sum;

    // The repetitions that are whole, then the parts.
    if (const MPI_Count repetition = whole / shape.repeat; amount >= repetition) {
      Sum of_one{};
      for (const Part& part : shape.parts)
        of_one = of_one + part.length * std::invoke(worth, *part.type);
      sum = sum + amount / repetition * of_one;
      amount %= repetition;
    }
    for (const Part& part : shape.parts) {
      cut = part.type.get();
      const MPI_Count in_part = part.length * std::invoke(measure, *cut);
      if (amount < in_part) break;
      amount -= in_part;
      sum = sum + part.length * std::invoke(worth, *cut);
    }
  }
}

} // namespace

MPI_Count elements_in(const Type& type, MPI_Count bytes) {
  if (bytes == 0) return 0;
  if (type.size() == 0) return MPI_UNDEFINED;
  const MPI_Count elements = worth_of_first(type, bytes, &Type::size, &Type::elements);
  if (bytes != 0) return MPI_UNDEFINED; // inside a basic element
  return elements;
}

MPI_Count bytes_of_first(const Type& type, MPI_Count elements) {
  if (type.elements() == 0) return 0;
  MPI_Count bytes = packed_size(type, elements / type.elements());
  MPI_Count rest = elements % type.elements();
  const MPI_Count bytes_of_rest = worth_of_first(type, rest, &Type::elements, &Type::size);
  if (__builtin_add_overflow(bytes, bytes_of_rest, &bytes)) {
    base::fail(MPI_ERR_COUNT,
               "{} basic elements of {} are more than 2^63 - 1 bytes; use a smaller count",
               elements, describe(type));
  }
  return bytes;
}

Signature signature_of_first(const Type& type, MPI_Count count, MPI_Count elements) {
  if (elements == count * type.elements()) return count * type.signature();
  return worth_of_first(type, elements, &Type::elements, &Type::signature);
}

std::string describe(const Type& type) {
  if (!type.name.empty()) return type.name;
  switch (type.combiner()) {
  case MPI_COMBINER_DUP:
    return "a type made by MPI_Type_dup";
  case MPI_COMBINER_CONTIGUOUS:
    return "a type made by MPI_Type_contiguous";
  case MPI_COMBINER_VECTOR:
    return "a type made by MPI_Type_vector";
  case MPI_COMBINER_HVECTOR:
    return "a type made by MPI_Type_create_hvector";
  case MPI_COMBINER_INDEXED:
    return "a type made by MPI_Type_indexed";
  case MPI_COMBINER_HINDEXED:
    return "a type made by MPI_Type_create_hindexed";
  case MPI_COMBINER_INDEXED_BLOCK:
    return "a type made by MPI_Type_create_indexed_block";
  case MPI_COMBINER_HINDEXED_BLOCK:
    return "a type made by MPI_Type_create_hindexed_block";
  case MPI_COMBINER_STRUCT:
    return "a type made by MPI_Type_create_struct";
  case MPI_COMBINER_SUBARRAY:
    return "a type made by MPI_Type_create_subarray";
  case MPI_COMBINER_DARRAY:
    return "a type made by MPI_Type_create_darray";
  case MPI_COMBINER_RESIZED:
    return "a type made by MPI_Type_create_resized";
  default:
    return "an unnamed predefined type";
  }
}

} // namespace macadam::datatype
