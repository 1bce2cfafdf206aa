// SPDX-License-Identifier: BSD-3-Clause
#include "datatype/op.h"

#include "base/copy.h"
#include "base/error.h"
#include "datatype/op_kernels.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <string>

namespace macadam::datatype {
namespace {

using enum BasicClass;

template <class... Classes>
constexpr std::uint32_t set_of(Classes... classes) {
  return ((std::uint32_t{1} << static_cast<unsigned>(classes)) | ...);
}

// The standard's table of allowed operators, and logic on addresses, as other libraries have it.
constexpr std::uint32_t ordered = set_of(c_integer, fortran_integer, floating, multi_language);
constexpr std::uint32_t numeric = ordered | set_of(complex);
constexpr std::uint32_t truth = set_of(c_integer, logical, multi_language);
constexpr std::uint32_t bits = set_of(c_integer, fortran_integer, byte, multi_language);
constexpr std::uint32_t pairs = set_of(pair);
constexpr std::uint32_t all = ~std::uint32_t{0};

struct Row {
  MPI_Op handle;
  const char* name;
  std::uint32_t classes;
  const Kernels* kernels; // null for the two of accumulate
};

const Row table[] = {
    {MPI_MAX, "MPI_MAX", ordered, &kernels_of<Max>},
    {MPI_MIN, "MPI_MIN", ordered, &kernels_of<Min>},
    {MPI_SUM, "MPI_SUM", numeric, &kernels_of<Sum>},
    {MPI_PROD, "MPI_PROD", numeric, &kernels_of<Product>},
    {MPI_LAND, "MPI_LAND", truth, &kernels_of<LogicalAnd>},
    {MPI_LOR, "MPI_LOR", truth, &kernels_of<LogicalOr>},
    {MPI_LXOR, "MPI_LXOR", truth, &kernels_of<LogicalXor>},
    {MPI_BAND, "MPI_BAND", bits, &kernels_of<BitAnd>},
    {MPI_BOR, "MPI_BOR", bits, &kernels_of<BitOr>},
    {MPI_BXOR, "MPI_BXOR", bits, &kernels_of<BitXor>},
    {MPI_MINLOC, "MPI_MINLOC", pairs, &kernels_of<MinLocation>},
    {MPI_MAXLOC, "MPI_MAXLOC", pairs, &kernels_of<MaxLocation>},
    {MPI_REPLACE, "MPI_REPLACE", all, nullptr},
    {MPI_NO_OP, "MPI_NO_OP", all, nullptr},
};

// "C integer, logical"
std::string class_names(std::uint32_t classes) {
  std::string names;
  for (auto type_class = c_integer; type_class <= packed;
       type_class = static_cast<BasicClass>(static_cast<int>(type_class) + 1)) {
    if (!(classes & set_of(type_class))) continue;
    if (!names.empty()) names += ", ";
    names += class_name(type_class);
  }
  return names;
}

// The basic type that an operation sees: predefined types and those that stand for one of them
// (MPI_Type_create_f90_real and the like). Null for derived types.
const Basic* operand(const Type& type) {
  switch (type.combiner()) {
  case MPI_COMBINER_NAMED:
    return type.basic();
  case MPI_COMBINER_F90_INTEGER:
  case MPI_COMBINER_F90_REAL:
  case MPI_COMBINER_F90_COMPLEX:
    return type.elementary()->basic();
  default:
    return nullptr;
  }
}

// A user's function, at most `limit` elements a call: the small form counts with an int.
template <class Count, class Function>
void call_user(Function* function, Op::Guard guard, const void* in, void* inout, MPI_Count count,
               const Type& type) {
  constexpr MPI_Count limit = std::numeric_limits<Count>::max();
  auto* left = static_cast<std::byte*>(const_cast<void*>(in));
  auto* right = static_cast<std::byte*>(inout);
  while (count > 0) {
    auto length = static_cast<Count>(std::min(count, limit));
    count -= length;
    const MPI_Count step = MPI_Count{length} * type.extent();
    MPI_Datatype handle = type.handle();
    auto call = [&] { function(left, right, &length, &handle); };
    guard([](void* bound) { (*static_cast<decltype(call)*>(bound))(); }, &call);
    if (count == 0) break;
    left += step;
    right += step;
  }
}

} // namespace

Op::Op(MPI_User_function* function, bool commutative, Guard guard)
    : base::Object(base::ObjectKind::op), name_("a user operation"), commutative_(commutative),
      function_(function), guard_(guard) {}

Op::Op(MPI_User_function_c* function, bool commutative, Guard guard)
    : base::Object(base::ObjectKind::op), name_("a user operation"), commutative_(commutative),
      function_c_(function), guard_(guard) {}

// What is no predefined operation of a predefined type.
void Op::combine_otherwise(const void* left, const void* right, void* out, MPI_Count count,
                           const Type& type) const {
  const auto bytes = static_cast<std::size_t>(count * type.extent());
  if (predefined() && !accumulate_only_) {
    const Kernel all = kernel(type);
    if (!all) [[unlikely]]
      check(type);
    all(left, right, out, static_cast<std::size_t>(count));
    base::touched(bytes);
    return;
  }
  if (out != right) base::copy(out, right, bytes);
  if (function_) return call_user<int>(function_, guard_, left, out, count, type);
  if (function_c_) return call_user<MPI_Count>(function_c_, guard_, left, out, count, type);
  check(type);
  if (handle() == MPI_REPLACE) base::copy(out, left, bytes);
}

Kernel Op::kernel(const Type& type) const {
  const Basic* basic = operand(type);
  return basic ? kernel(*basic) : nullptr;
}

bool Op::accepts(const Type& type) const {
  if (!predefined()) return true;
  if (accumulate_only_) return operand(type) != nullptr;
  return kernel(type) != nullptr;
}

void Op::check(const Type& type) const {
  if (accepts(type)) return;
  const Basic* basic = operand(type);
  if (!basic) {
    base::fail(MPI_ERR_OP,
               "{} cannot combine {}: predefined operations take predefined datatypes only; make "
               "an operation for this type with MPI_Op_create",
               name_, describe(type));
  }
  base::fail(MPI_ERR_OP, "{} cannot combine {} ({}), needed: a datatype of class {}", name_,
             describe(type), class_name(basic->type_class), class_names(classes_));
}

PredefinedOps::PredefinedOps() {
  for (const Row& row : table) {
    const auto code = reinterpret_cast<std::uintptr_t>(row.handle);
    ops_[code - first_code].reset(new Op);
    Op& op = *ops_[code - first_code];
    op.code_ = static_cast<std::uint16_t>(code);
    op.name_ = row.name;
    op.classes_ = row.classes;
    if (row.kernels != nullptr) op.kernels_ = row.kernels->for_this_processor();
    op.accumulate_only_ = row.kernels == nullptr;
    // MPI_REPLACE: the order of the operands is all that matters to it.
    op.commutative_ = row.handle != MPI_REPLACE && row.handle != MPI_NO_OP;
  }
}

} // namespace macadam::datatype
