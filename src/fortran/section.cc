// SPDX-License-Identifier: BSD-3-Clause
#include "fortran/section.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace macadam::fortran {

bool is_contiguous(const CFI_cdesc_t* array) {
  if (array->base_addr == nullptr) return true; // no bounds either, of an array not allocated
  CFI_index_t expected = static_cast<CFI_index_t>(array->elem_len);
  for (int i = 0; i < array->rank; ++i) {
    const CFI_dim_t& dimension = array->dim[i];
    if (dimension.extent < 0) return true; // an array of assumed size
    if (dimension.extent != 1 && dimension.sm != expected) return dimension.extent == 0;
    expected *= dimension.extent;
  }
  return true;
}

// --- Sections as datatypes.

namespace {

MPI_Count elements_of(const CFI_cdesc_t* array, int dimensions) {
  MPI_Count elements = 1;
  for (int i = 0; i < dimensions; ++i)
    elements *= array->dim[i].extent;
  return elements;
}

// A datatype in the making: frees itself unless it is released. Errors are the C library's, which
// calls the error handler of MPI_COMM_SELF.
class Type {
 public:
  Type() = default;
  Type(Type&& other) noexcept : handle(other.release()) {}
  Type& operator=(Type&& other) noexcept {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Type() {
    if (reinterpret_cast<std::uintptr_t>(handle) >= first_of_users) PMPI_Type_free(&handle);
  }
  MPI_Datatype release() { return std::exchange(handle, MPI_DATATYPE_NULL); }

  MPI_Datatype handle = MPI_DATATYPE_NULL;
};

// `first` and, `displacement` bytes behind its start, `second`.
Type both(const Type& first, const Type& second, MPI_Count displacement) {
  const MPI_Count lengths[] = {1, 1}, displacements[] = {0, displacement};
  const MPI_Datatype types[] = {first.handle, second.handle};
  Type type;
  PMPI_Type_create_struct_c(2, lengths, displacements, types, &type.handle);
  return type;
}

// The first `count` elements, in array order, of the leading dimensions of a section.
Type leading(const CFI_cdesc_t* section, int dimensions, MPI_Count count, MPI_Datatype element) {
  Type type;
  if (dimensions == 0) {
    PMPI_Type_dup(element, &type.handle);
    return type;
  }
  const MPI_Count slab = elements_of(section, dimensions - 1),
                  step = section->dim[dimensions - 1].sm;
  if (const MPI_Count whole = count / slab; whole > 0) {
    const Type one = leading(section, dimensions - 1, slab, element);
    PMPI_Type_create_hvector_c(whole, 1, step, one.handle, &type.handle);
    if (count % slab == 0) return type;
    return both(type, leading(section, dimensions - 1, count % slab, element), whole * step);
  }
  return leading(section, dimensions - 1, count, element);
}

// Where the element with this number in array order lies, in bytes from the first.
MPI_Count offset(const CFI_cdesc_t* section, MPI_Count number) {
  MPI_Count bytes = 0;
  for (int i = 0; i < section->rank; ++i) {
    bytes += number % section->dim[i].extent * section->dim[i].sm;
    number /= section->dim[i].extent;
  }
  return bytes;
}

// What `type` repeats side by side, as MPI_Type_contiguous and MPI_Type_dup make it; `count` is
// multiplied. Null if it is of another make.
Type repeated(MPI_Datatype type, MPI_Count& count) {
  MPI_Count integers = 0, addresses = 0, counts = 0, types = 0, large = 1;
  int combiner = 0, integer = 1;
  MPI_Aint unused = 0;
  Type inner;
  PMPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
  if (combiner != MPI_COMBINER_CONTIGUOUS && combiner != MPI_COMBINER_DUP) return inner;
  PMPI_Type_get_contents_c(type, integers, 0, counts, 1, &integer, &unused, &large, &inner.handle);
  count *= integer * large;
  return inner;
}

MPI_Datatype refused(const char* why, MPI_Count count) {
  std::fprintf(stderr,
               "MPI in Fortran: an array section as buffer with a count of %lld: %s. Pass an array "
               "without gaps, or describe the elements by a datatype and pass the first of them.\n",
               static_cast<long long>(count), why);
  return MPI_DATATYPE_NULL;
}

} // namespace

MPI_Datatype section_type(const CFI_cdesc_t* section, MPI_Count count, MPI_Datatype datatype) {
  if (datatype == MPI_DATATYPE_NULL) return MPI_DATATYPE_NULL; // C says so
  const MPI_Count length = static_cast<MPI_Count>(section->elem_len);
  MPI_Count lower = 0, extent = 0, elements = count;
  Type inside; // keeps `base`, if it is inside the caller's type
  MPI_Datatype base = datatype;
  while (true) {
    if (PMPI_Type_get_extent_c(base, &lower, &extent) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
    if (extent > 0 && length % extent == 0) break;
    Type next = repeated(base, elements);
    if (next.handle == MPI_DATATYPE_NULL) break;
    inside = std::move(next);
    base = inside.handle;
  }
  if (lower != 0 || extent <= 0 || length % extent != 0)
    return refused("the datatype spans several elements of the section", count);
  const MPI_Count per_element = length / extent, whole = elements / per_element,
                  rest = elements % per_element;
  if (whole + (rest > 0 ? 1 : 0) > elements_of(section, section->rank))
    return refused("the section has fewer elements", count);
  Type element, type;
  PMPI_Type_contiguous_c(per_element, base, &element.handle);
  if (whole > 0) type = leading(section, section->rank, whole, element.handle);
  if (rest > 0) {
    Type last;
    PMPI_Type_contiguous_c(rest, base, &last.handle);
    type = whole > 0 ? both(type, last, offset(section, whole)) : std::move(last);
  }
  if (PMPI_Type_commit(&type.handle) != MPI_SUCCESS) return MPI_DATATYPE_NULL;
  return type.release();
}

MPI_Datatype partitioned_type(const CFI_cdesc_t* array, MPI_Count count, MPI_Datatype type) {
  if (type == MPI_DATATYPE_NULL || count <= 0 || is_contiguous(array)) return type;
  return refused("partitions are filled one by one", count);
}

// --- Sections as copies.

Copy::Copy(const CFI_cdesc_t* section, bool back)
    : base_(static_cast<char*>(section->base_addr)), element_(section->elem_len),
      dimensions_(section->dim, section->dim + section->rank),
      elements_(static_cast<std::size_t>(elements_of(section, section->rank)) * section->elem_len),
      before_(back ? elements_.size() : 0) {
  fill();
}

void Copy::fill() {
  each_run(
      [this](char* user, std::size_t at) { std::memcpy(elements_.data() + at, user, element_); });
  if (!before_.empty()) before_ = elements_;
}

void Copy::finish() {
  if (before_.empty() || before_ == elements_) return;
  each_run([this](char* user, std::size_t at) {
    for (std::size_t i = 0; i < element_; ++i)
      if (elements_[at + i] != before_[at + i]) user[i] = elements_[at + i];
  });
}

template <class Move>
void Copy::each_run(Move move) {
  std::vector<CFI_index_t> at(dimensions_.size(), 0);
  char* user = base_;
  for (std::size_t done = 0; done < elements_.size(); done += element_) {
    move(user, done);
    for (std::size_t i = 0; i < at.size(); ++i) {
      user += dimensions_[i].sm;
      if (++at[i] < dimensions_[i].extent) break;
      user -= dimensions_[i].sm * dimensions_[i].extent;
      at[i] = 0;
    }
  }
}

namespace {

struct Kept {
  std::vector<Copy> copies;
  bool active = true; // not: a persistent request that is complete or not yet started

  void start() {
    for (Copy& copy : copies)
      copy.fill();
    active = true;
  }
  void finish() {
    if (!active) return;
    for (Copy& copy : copies)
      copy.finish();
    active = false;
  }
  void finish_if_complete(Fint request) {
    int complete = 0;
    if (active &&
        PMPI_Request_get_status(handle<MPI_Request>(&request), &complete, MPI_STATUS_IGNORE) ==
            MPI_SUCCESS &&
        complete != 0) {
      finish();
    }
  }
};

// Copies of calls under way, by the integers of their requests; and those that a call has taken
// which may complete its requests. Other threads may ask about these meanwhile.
struct Pending {
  using Table = std::unordered_map<Fint, Kept>;

  std::mutex mutex; // of all that is kept, too
  Table of;
  std::unordered_multimap<Fint, Kept*> taken;
  std::atomic<std::size_t> number{0}; // so that calls take no lock where there are none

  bool empty() const { return number.load(std::memory_order_acquire) == 0; }
  template <class Change>
  void change(Change how) {
    const std::lock_guard lock(mutex);
    how();
    number = of.size() + taken.size();
  }
};
Pending pending;

} // namespace

void* Copies::add(const CFI_cdesc_t* array, bool back) {
  return copies_.emplace_back(array, back).data();
}

void Copies::finish() {
  for (Copy& copy : copies_)
    copy.finish();
  copies_.clear();
}

int Copies::keep(int code, Fint request, bool active) {
  if (copies_.empty() || code != MPI_SUCCESS || request == number(MPI_REQUEST_NULL)) return code;
  pending.change([&] { pending.of[request] = {std::move(copies_), active}; });
  copies_.clear();
  return code;
}

int Copies::until(int code, Fint request) {
  return keep(code, request, true);
}

int Copies::each_start(int code, Fint request) {
  return keep(code, request, false);
}

void request_is_new(Fint request) {
  if (pending.empty()) return;
  // What was kept for an earlier request of this number, which C code has completed.
  pending.change([&] { pending.of.erase(request); });
}

void request_asked(Fint request) {
  if (pending.empty()) return;
  // Several threads may ask about a request, and one wait for it; it is put back for each of them.
  const std::lock_guard lock(pending.mutex);
  if (const auto row = pending.of.find(request); row != pending.of.end())
    return row->second.finish_if_complete(request);
  const auto [first, last] = pending.taken.equal_range(request);
  for (auto row = first; row != last; ++row)
    row->second->finish_if_complete(request);
}

struct Taken::One {
  std::size_t place; // in the list
  Pending::Table::node_type row;
};

Taken::Taken(const Fint* requests, std::size_t length) {
  if (pending.empty()) return;
  pending.change([&] {
    for (std::size_t i = 0; i < length; ++i)
      if (auto row = pending.of.extract(requests[i])) {
        pending.taken.emplace(row.key(), &row.mapped());
        all_.push_back({i, std::move(row)});
      }
  });
}

Taken::~Taken() = default;

void Taken::start() {
  if (all_.empty()) return;
  const std::lock_guard lock(pending.mutex);
  for (One& one : all_)
    one.row.mapped().start();
}

void Taken::end(const MPI_Request* requests) {
  if (all_.empty()) return;
  pending.change([&] {
    for (One& one : all_) {
      Kept& kept = one.row.mapped();
      const auto [first, last] = pending.taken.equal_range(one.row.key());
      pending.taken.erase(
          std::find_if(first, last, [&kept](const auto& row) { return row.second == &kept; }));
      if (requests[one.place] == MPI_REQUEST_NULL) {
        kept.finish();
      } else {
        kept.finish_if_complete(one.row.key());
        pending.of.insert(std::move(one.row));
      }
    }
  });
}

} // namespace macadam::fortran
