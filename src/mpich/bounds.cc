// SPDX-License-Identifier: BSD-3-Clause
// Structures whose bounds are set by MPI_LB and MPI_UB among their members, which were removed from
// the standard long ago. Old programs have them, above all in Fortran.
#include "mpich/glue.h"
#include "mpich/names.h"

#include <optional>
#include <type_traits>
#include <vector>

using namespace macadam::mpich;

namespace {

constexpr int lower_bound = 0x4c000010; // MPI_LB
constexpr int upper_bound = 0x4c000011; // MPI_UB

bool is_bound(int type) {
  return type == lower_bound || type == upper_bound;
}

// Calls `make` with the members that are no bounds, and sets these. Where MPI_UB is not given the
// type ends where its members do, with their padding, as MPICH has it.
template <class Count, class Displacement, class Make>
int make_struct(Count count, const Count lengths[], const Displacement displacements[],
                const int types[], MPI_Datatype* made, Make make) {
  if (types == nullptr || lengths == nullptr || displacements == nullptr || count <= 0 ||
      std::none_of(types, types + count, is_bound)) [[likely]]
    return make(count, lengths, displacements, types, made);
  std::vector<Count> their_lengths;
  std::vector<Displacement> their_displacements;
  std::vector<int> their_types;
  std::optional<MPI_Count> low, high;
  for (Count i = 0; i < count; ++i) {
    const MPI_Count place = displacements[i];
    if (!is_bound(types[i])) {
      their_lengths.push_back(lengths[i]);
      their_displacements.push_back(displacements[i]);
      their_types.push_back(types[i]);
    } else if (lengths[i] > 0 && types[i] == lower_bound) {
      low = std::min(low.value_or(place), place);
    } else if (lengths[i] > 0) {
      high = std::max(high.value_or(place), place);
    }
  }
  MPI_Datatype members = MPI_DATATYPE_NULL;
  int answer = make(static_cast<Count>(their_types.size()), their_lengths.data(),
                    their_displacements.data(), their_types.data(), &members);
  if (answer != MPI_SUCCESS) return answer;
  MPI_Count start = 0, extent = 0;
  standard.Type_get_extent_c(members, &start, &extent);
  const MPI_Count end = high.value_or(start + extent);
  start = low.value_or(start);
  if constexpr (std::is_same_v<Count, MPI_Count>)
    answer = standard.Type_create_resized_c(members, start, end - start, made);
  else
    answer = standard.Type_create_resized(members, start, end - start, made);
  standard.Type_free(&members);
  return answer;
}

} // namespace

#define STRUCT(Name)                                                                               \
  MPICH_ENTRY(int, Name,                                                                           \
              (int count, const int lengths[], const MPI_Aint displacements[], const int types[],  \
               int* made)) {                                                                       \
    return code(make_struct<int, MPI_Aint>(                                                        \
        count, lengths, displacements, types, Out<MPI_Datatype>(made),                             \
        [](int members, const int* of_lengths, const MPI_Aint* of_displacements,                   \
           const int* of_types, MPI_Datatype* type) {                                              \
          return standard.Name(members, of_lengths, of_displacements,                              \
                               InArray<MPI_Datatype>(of_types, members), type);                    \
        }));                                                                                       \
  }
STRUCT(Type_struct)
STRUCT(Type_create_struct)
#undef STRUCT

MPICH_ENTRY(int, Type_create_struct_c,
            (MPI_Count count, const MPI_Count lengths[], const MPI_Count displacements[],
             const int types[], int* made)) {
  return code(make_struct<MPI_Count, MPI_Count>(
      count, lengths, displacements, types, Out<MPI_Datatype>(made),
      [](MPI_Count members, const MPI_Count* of_lengths, const MPI_Count* of_displacements,
         const int* of_types, MPI_Datatype* type) {
        return standard.Type_create_struct_c(members, of_lengths, of_displacements,
                                             InArray<MPI_Datatype>(of_types, members), type);
      }));
}
