// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/copy.h"
#include "base/object.h"
#include "datatype/type.h"

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace macadam::datatype {

// Combines `count` contiguous elements: out[i] = left[i] op right[i]. `out` may be `right`;
// otherwise the arrays never overlap.
using Kernel = void (*)(const void* left, const void* right, void* out, std::size_t count);
using KernelTable = std::array<Kernel, static_cast<std::size_t>(Storage::count_)>;

// A reduction operation, predefined or the user's. Made with `new`; the mpi layer counts it.
class Op final : public base::Object {
 public:
  // How a user's function is called: runs call(argument) and deals with what comes out of it.
  using Guard = void (*)(void (*call)(void* argument), void* argument);
  Op(MPI_User_function* function, bool commutative, Guard guard);
  Op(MPI_User_function_c* function, bool commutative, Guard guard);

  // inout[i] = in[i] op inout[i] for `count` elements of `type`, one extent apart.
  // The two buffers must not overlap and must be aligned as the type asks. Throws as check() does.
  void apply(const void* in, void* inout, MPI_Count count, const Type& type) const {
    combine(in, inout, inout, count, type);
  }
  // out[i] = left[i] op right[i], likewise; `out` may be `right`. Of a type with gaps, where `out`
  // is not `right`, the gaps are copied too.
  void combine(const void* left, const void* right, void* out, MPI_Count count,
               const Type& type) const {
    if (type.basic() != nullptr) [[likely]] {
      if (const Kernel all = kernel(*type.basic())) [[likely]] {
        all(left, right, out, static_cast<std::size_t>(count));
        base::touched(static_cast<std::size_t>(count * type.extent()));
        return;
      }
    }
    combine_otherwise(left, right, out, count, type);
  }

  // Throws MPI_ERR_OP, naming both, unless apply() can be used with `type`.
  void check(const Type& type) const;
  [[nodiscard]] bool accepts(const Type& type) const;
  // The loop for elements of a predefined type; null if there is none: MPI_REPLACE, MPI_NO_OP, a
  // user's operation, or check() would throw.
  [[nodiscard]] Kernel kernel(const Basic& type) const {
    if (kernels_ == nullptr || (classes_ >> static_cast<unsigned>(type.type_class) & 1) == 0)
      return nullptr;
    return (*kernels_)[static_cast<std::size_t>(type.storage)];
  }

  [[nodiscard]] bool commutative() const { return commutative_; }
  [[nodiscard]] bool predefined() const { return code_ != 0; }
  // MPI_REPLACE and MPI_NO_OP, which reductions must refuse.
  [[nodiscard]] bool accumulate_only() const { return accumulate_only_; }
  [[nodiscard]] std::string_view name() const { return name_; } // "MPI_SUM"; "a user operation"
  // The constant of a predefined operation, the address of a user's.
  [[nodiscard]] MPI_Op handle() const {
    return code_ ? reinterpret_cast<MPI_Op>(static_cast<std::uintptr_t>(code_))
                 : reinterpret_cast<MPI_Op>(const_cast<Op*>(this));
  }

 private:
  friend class PredefinedOps;
  Op() : base::Object(base::ObjectKind::op) {}
  void combine_otherwise(const void* left, const void* right, void* out, MPI_Count count,
                         const Type& type) const;
  [[nodiscard]] Kernel kernel(const Type& type) const;

  std::string_view name_;
  const KernelTable* kernels_ = nullptr; // null entries: no such combination
  std::uint32_t classes_ = 0;            // allowed BasicClasses, a bit each
  std::uint16_t code_ = 0;               // value of the handle constant; 0: the user's
  bool commutative_ = true;
  bool accumulate_only_ = false;
  MPI_User_function* function_ = nullptr;
  MPI_User_function_c* function_c_ = nullptr;
  Guard guard_ = nullptr;
};

// The predefined operations: one instance in a process (or in a simulated rank).
class PredefinedOps {
 public:
  PredefinedOps();
  // The operation behind a handle constant; null if the value is none of them (MPI_OP_NULL too).
  [[nodiscard]] Op* find(MPI_Op handle) const {
    const auto code = reinterpret_cast<std::uintptr_t>(handle) - first_code;
    return code < codes ? ops_[code].get() : nullptr;
  }
  // The same for a constant known to be right, such as MPI_SUM.
  [[nodiscard]] Op& operator[](MPI_Op handle) const { return *find(handle); }

 private:
  static constexpr std::uintptr_t first_code = 0x20;
  static constexpr std::size_t codes = 0x20;
  std::array<std::unique_ptr<Op>, codes> ops_;
};

} // namespace macadam::datatype
