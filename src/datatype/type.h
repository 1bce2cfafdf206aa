// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/object.h"
#include "datatype/basic.h"
#include "datatype/signature.h"

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace macadam::datatype {

struct Layout;
class Type;

// A counted reference to a Type. The count is not part of a type's value, so a reference can be
// taken of a const Type: a pending request does that, so that MPI_Type_free may come first.
class TypeRef {
 public:
  TypeRef() = default;
  explicit TypeRef(const Type& type) : type_(const_cast<Type*>(&type)) { retain(); }
  TypeRef(const TypeRef& other) : type_(other.type_) {
    if (type_ != nullptr) retain();
  }
  TypeRef(TypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
  TypeRef& operator=(TypeRef other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~TypeRef() {
    if (type_ != nullptr) [[unlikely]]
      drop();
  }

  // Takes over a reference that release() gave away, such as the one behind a user's handle.
  [[nodiscard]] static TypeRef adopt(Type& type);
  // Gives the reference away; the caller answers for it. The way to a user's handle:
  // `*newtype = ref.release()->handle()`.
  [[nodiscard]] Type* release() { return std::exchange(type_, nullptr); }

  [[nodiscard]] Type* get() const { return type_; }
  Type& operator*() const { return *type_; }
  Type* operator->() const { return type_; }
  explicit operator bool() const { return type_ != nullptr; }

 private:
  void retain();
  void drop();

  Type* type_ = nullptr;
};

// The arguments of the constructor call, as MPI_Type_get_contents gives them back.
struct Contents {
  std::vector<int> integers;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Count> counts; // only if the large-count form made the type
  std::vector<TypeRef> types;
};

// `length` elements of `type`, one extent apart, the first at `displacement` bytes.
struct Part {
  MPI_Count displacement;
  MPI_Count length;
  TypeRef type;
};

// What every derived type comes down to: its parts in order, `repeat` times, `stride` bytes apart.
struct Shape {
  MPI_Count repeat = 1;
  MPI_Count stride = 0;
  std::vector<Part> parts;
};

// An MPI datatype: a node of the tree that the type constructors build. All sizes in bytes.
// Changes after construction: commit, name, attributes, handles; each under the library's lock.
class Type final : public base::Object {
 public:
  // Bytes of data in one element.
  [[nodiscard]] MPI_Count size() const { return size_; }
  // The data of n elements is one block of n * size() bytes that starts at the buffer's address.
  // Known from commit on; false before.
  [[nodiscard]] bool contiguous() const { return contiguous_; }
  [[nodiscard]] bool committed() const { return committed_; }

  [[nodiscard]] MPI_Count lb() const { return lb_; }
  [[nodiscard]] MPI_Count ub() const { return lb_ + extent_; }
  [[nodiscard]] MPI_Count extent() const { return extent_; }
  [[nodiscard]] MPI_Count true_lb() const { return true_lb_; }
  [[nodiscard]] MPI_Count true_ub() const { return true_ub_; }
  [[nodiscard]] MPI_Count true_extent() const { return true_ub_ - true_lb_; }
  // Strictest alignment of the basic types inside; 1 if there are none.
  [[nodiscard]] MPI_Count alignment() const { return alignment_; }

  // A power of two of which the size of any whole number of basic elements inside is a multiple.
  [[nodiscard]] unsigned granule() const { return granule_; }

  // Bytes of data in one element as external32 (external.h) has it: never more than size().
  [[nodiscard]] MPI_Count external_size() const { return external_size_; }

  // Facts of a predefined type; null for a derived one.
  [[nodiscard]] const Basic* basic() const { return basic_; }
  [[nodiscard]] bool predefined() const { return basic_ != nullptr; }
  // The one predefined type that all data is made of; null if mixed or empty. A predefined type
  // (pairs too) is its own.
  [[nodiscard]] const Type* elementary() const { return elementary_; }
  // Basic elements in one element, as MPI_Get_elements counts them: a pair counts two.
  [[nodiscard]] MPI_Count elements() const { return signature_.elements; }
  // Sequence of basic types in packing order, for comparison.
  [[nodiscard]] const Signature& signature() const { return signature_; }

  // The constant of a predefined type, the address of a derived one.
  [[nodiscard]] MPI_Datatype handle() const {
    return basic_ ? basic_->handle() : reinterpret_cast<MPI_Datatype>(const_cast<Type*>(this));
  }

  [[nodiscard]] int combiner() const { return combiner_; } // MPI_COMBINER_*
  [[nodiscard]] const Contents& contents() const { return contents_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }

  // Flattens the type for packing. Doing it again changes nothing.
  void commit();
  // The flattened form; the type must be committed.
  [[nodiscard]] const Layout& layout() const { return *layout_; }
  // The same of a type that need not be committed; made on first use.
  [[nodiscard]] const std::shared_ptr<const Layout>& flattened();

  std::string name;           // as MPI_Type_set_name left it
  void* attributes = nullptr; // owned by the mpi layer
  // Handles that the user holds: the constructor's, and one from each MPI_Type_get_contents. With
  // the last go the attributes, though the type may live on in others and get handles again.
  std::uint32_t handles = 1;

  // For the constructors (constructors.h): computes size and bounds from `shape`.
  // `bounds` replaces the bounds that follow from the parts (MPI_Type_create_resized).
  // Throws MPI_ERR_TYPE if a size or a bound passes 2^63 - 1 bytes.
  struct Bounds {
    MPI_Count lb, extent;
  };
  [[nodiscard]] static TypeRef make(int combiner, Contents contents, Shape shape,
                                    const Bounds* bounds = nullptr);

 private:
  friend class TypeRef;
  friend class PredefinedTypes;

  Type(const Basic& basic, Shape shape);
  Type(int combiner, Contents contents, Shape shape, const Bounds* bounds);
  ~Type();
  void measure(const Bounds* bounds);

  // What a send looks at, first.
  bool contiguous_ = false;
  bool committed_ = false;
  std::uint8_t granule_ = 1;
  bool explicit_bounds_ = false; // resized, or has a resized part: the data do not set its bounds
  MPI_Count size_ = 0;
  MPI_Count extent_ = 0;
  std::shared_ptr<const Layout> layout_; // null until needed
  MPI_Count lb_ = 0;
  MPI_Count true_lb_ = 0;
  MPI_Count true_ub_ = 0;
  MPI_Count alignment_ = 1;
  MPI_Count external_size_ = 0;
  const Basic* basic_ = nullptr;
  const Type* elementary_ = nullptr;
  int combiner_;
  Signature signature_;
  Shape shape_;
  Contents contents_;
  Type* next_dead_ = nullptr; // that TypeRef::drop() deletes after it
};

// The predefined datatypes: one instance in a process (or in a simulated rank).
class PredefinedTypes {
 public:
  PredefinedTypes();
  // The type behind a handle constant; null if the value is none of them (MPI_DATATYPE_NULL too).
  [[nodiscard]] Type* find(MPI_Datatype handle) const {
    const auto code = reinterpret_cast<std::uintptr_t>(handle) - first_basic_code;
    return code < basic_codes ? types_[code].get() : nullptr;
  }
  // The same for a constant known to be right, such as MPI_INT.
  [[nodiscard]] Type& operator[](MPI_Datatype handle) const { return *find(handle); }

 private:
  std::array<TypeRef, basic_codes> types_;
};

// Bytes that `count` elements pack into; MPI_ERR_COUNT if more than 2^63 - 1.
[[nodiscard]] MPI_Count packed_size(const Type& type, MPI_Count count);

// The number of basic elements in the first `bytes` bytes of packed elements of `type`, or
// MPI_UNDEFINED if a basic element is cut in two (MPI_Get_elements).
[[nodiscard]] MPI_Count elements_in(const Type& type, MPI_Count bytes);

// The inverse: the bytes that the first `elements` basic elements pack into; 0 if `type` is empty.
// MPI_ERR_COUNT if more than 2^63 - 1.
[[nodiscard]] MPI_Count bytes_of_first(const Type& type, MPI_Count elements);

// Of the first `elements` basic elements of `count` elements of `type`, which has as many.
[[nodiscard]] Signature signature_of_first(const Type& type, MPI_Count count, MPI_Count elements);

// For messages: the type's name, or what made it: "a type made by MPI_Type_vector".
[[nodiscard]] std::string describe(const Type& type);

} // namespace macadam::datatype
