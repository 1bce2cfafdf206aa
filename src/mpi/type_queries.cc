// SPDX-License-Identifier: BSD-3-Clause
// What MPI tells about datatypes, and about the data in a status.
#include "mpi/calls.h"
#include "mpi/names.h"
#include "mpi/process.h"
#include "mpi/status.h"
#include "mpi/types.h"

#include <algorithm>

namespace macadam::mpi {

using datatype::Contents;
using datatype::Type;

void type_size(Library&, const Type& type, MPI_Count* size) {
  *size = type.size();
}

void type_get_extent(Library&, const Type& type, MPI_Count* lb, MPI_Count* extent) {
  *lb = type.lb();
  *extent = type.extent();
}

void type_get_true_extent(Library&, const Type& type, MPI_Count* true_lb, MPI_Count* true_extent) {
  *true_lb = type.true_lb();
  *true_extent = type.true_extent();
}

void type_set_name(Library&, const Type& type, const char* type_name) {
  const_cast<Type&>(type).name = kept_name(type_name);
}

void type_get_name(Library& self, MPI_Datatype datatype, char* type_name, int* resultlen) {
  // The null handle has a name, too.
  const auto* type = self.find<Type>(datatype, base::ObjectKind::datatype);
  if (type == nullptr && datatype != MPI_DATATYPE_NULL) {
    base::fail(MPI_ERR_TYPE, "datatype is no datatype, or one that was freed");
  }
  hand_out_name(type != nullptr ? type->name : "MPI_DATATYPE_NULL", type_name, resultlen);
}

// --- How a type was made
// ---------------------------------------------------------------------------

namespace {

// The int forms cannot give back counts that only MPI_Count holds.
void check_form(const Contents& contents, bool large, const char* remedy) {
  if (large || contents.counts.empty()) return;
  base::fail(MPI_ERR_TYPE, "the datatype was made with large counts; {} gives them back", remedy);
}

void check_room(const char* name, MPI_Count room, std::size_t needed) {
  if (room < static_cast<MPI_Count>(needed)) {
    base::fail(MPI_ERR_ARG, "{} is {}; {} are needed, as MPI_Type_get_envelope says", name, room,
               needed);
  }
}

} // namespace

void type_get_envelope(Library&, const Type& type, MPI_Count* num_integers,
                       MPI_Count* num_addresses, MPI_Count* num_large_counts,
                       MPI_Count* num_datatypes, int* combiner) {
  const Contents& contents = type.contents();
  const bool large = num_large_counts != nullptr;
  check_form(contents, large, "MPI_Type_get_envelope_c");
  *num_integers = static_cast<MPI_Count>(contents.integers.size());
  *num_addresses = static_cast<MPI_Count>(contents.addresses.size());
  if (large) *num_large_counts = static_cast<MPI_Count>(contents.counts.size());
  *num_datatypes = static_cast<MPI_Count>(contents.types.size());
  *combiner = type.combiner();
}

void type_get_contents(Library&, const Type& type, MPI_Count max_integers, MPI_Count max_addresses,
                       MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[],
                       MPI_Aint addresses[], MPI_Count large_counts[], MPI_Datatype datatypes[]) {
  if (type.combiner() == MPI_COMBINER_NAMED) {
    base::fail(MPI_ERR_TYPE, "{} is predefined; it was not made from other types", describe(type));
  }
  const Contents& contents = type.contents();
  check_form(contents, large_counts != nullptr || max_large_counts > 0, "MPI_Type_get_contents_c");
  check_room("max_integers", max_integers, contents.integers.size());
  check_room("max_addresses", max_addresses, contents.addresses.size());
  check_room("max_large_counts", max_large_counts, contents.counts.size());
  check_room("max_datatypes", max_datatypes, contents.types.size());
  std::ranges::copy(contents.integers, integers);
  std::ranges::copy(contents.addresses, addresses);
  std::ranges::copy(contents.counts, large_counts);
  // Derived types are handed out as new references, which the caller frees.
  for (const datatype::TypeRef& inner : contents.types) {
    datatype::TypeRef copy = inner;
    ++inner->handles;
    *datatypes++ = copy.release()->handle();
  }
}

// --- Statuses
// ----------------------------------------------------------------------------------------

void get_count(Library&, const MPI_Status* status, const Type& type, MPI_Count* count) {
  const auto received = static_cast<MPI_Count>(bytes(*status));
  const MPI_Count size = type.size();
  *count = MPI_UNDEFINED;
  if (size == 0 ? received == 0 : received % size == 0) *count = size == 0 ? 0 : received / size;
}

void get_elements(Library&, const MPI_Status* status, const Type& type, MPI_Count* count) {
  *count = datatype::elements_in(type, static_cast<MPI_Count>(bytes(*status)));
}

void status_set_elements(Library&, MPI_Status* status, const Type& type, MPI_Count count) {
  set_bytes(*status, static_cast<std::uint64_t>(datatype::bytes_of_first(type, count)));
}

void status_set_cancelled(Library&, MPI_Status* status, int flag) {
  set_cancelled(*status, flag != 0);
}
void status_set_source(Library&, MPI_Status* status, int source) {
  status->MPI_SOURCE = source;
}
void status_set_tag(Library&, MPI_Status* status, int tag) {
  status->MPI_TAG = tag;
}
void status_set_error(Library&, MPI_Status* status, int error) {
  status->MPI_ERROR = error;
}
void status_get_source(Library&, const MPI_Status* status, int* source) {
  *source = status->MPI_SOURCE;
}
void status_get_tag(Library&, const MPI_Status* status, int* tag) {
  *tag = status->MPI_TAG;
}
void status_get_error(Library&, const MPI_Status* status, int* error) {
  *error = status->MPI_ERROR;
}

} // namespace macadam::mpi
