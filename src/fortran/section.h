// SPDX-License-Identifier: BSD-3-Clause
// The choice buffers of mpi_f08: C descriptors (Fortran 2018, section 18.5), which may be of an
// array section whose elements lie apart.
#pragma once

#include "fortran/glue.h"

#include <ISO_Fortran_binding.h>

#include <vector>

namespace macadam::fortran {

// Whether the elements follow each other: true of scalars and of arrays of unknown size.
bool is_contiguous(const CFI_cdesc_t* array);

// The datatype of the first `count` elements of `type` in a section. MPI_DATATYPE_NULL, with an
// explanation on stderr, if there is none. The caller frees it.
MPI_Datatype section_type(const CFI_cdesc_t* section, MPI_Count count, MPI_Datatype type);

// A buffer with count and datatype, as C gets it: a section is one element of a datatype of its
// own.
template <class Count>
class Section {
 public:
  Section(const CFI_cdesc_t* array, Count elements, MPI_Datatype datatype)
      : address(c_address(array)), count(elements), type(datatype) {
    if (elements > 0 && !is_contiguous(array)) [[unlikely]] {
      type = made_ = section_type(array, elements, datatype);
      count = 1;
    }
  }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  // Operations under way keep the datatype (MPI 5.0, section 5.1.9).
  ~Section() {
    if (made_ != MPI_DATATYPE_NULL) PMPI_Type_free(&made_);
  }

  void* address;
  Count count;
  MPI_Datatype type;

 private:
  MPI_Datatype made_ = MPI_DATATYPE_NULL;
};

// The datatype for a partitioned call: its partitions are filled one by one, so a section cannot be
// described or copied.
MPI_Datatype partitioned_type(const CFI_cdesc_t* array, MPI_Count count, MPI_Datatype type);

// A section with its elements gathered in memory of ours. What MPI has not written there is not put
// back: a part that is not significant may be the user's all the time.
class Copy {
 public:
  Copy(const CFI_cdesc_t* section, bool back);
  void* data() { return elements_.data(); }
  // Takes the elements of the section once more.
  void fill();
  // Puts back what has been written since.
  void finish();

 private:
  template <class Move>
  void each_run(Move move);

  char* base_;
  std::size_t element_;
  std::vector<CFI_dim_t> dimensions_;
  std::vector<char> elements_;
  std::vector<char> before_; // as they were filled; empty if the call writes none
};

// The copies made for one call.
class Copies {
 public:
  Copies() = default;
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies() { finish(); }

  void* in(const CFI_cdesc_t* array) { return contiguous(array, false); }
  void* inout(const CFI_cdesc_t* array) { return contiguous(array, true); }

  // After a nonblocking call that returned `code`: keeps them until the request is complete.
  int until(int code, Fint request);
  // After a call that made a persistent request: keeps them until it is freed. They are filled when
  // it is started, and put back when it is complete.
  int each_start(int code, Fint request);

 private:
  void* contiguous(const CFI_cdesc_t* array, bool back) {
    if (is_contiguous(array)) return c_address(array);
    return add(array, back);
  }
  void* add(const CFI_cdesc_t* array, bool back);
  void finish();

  int keep(int code, Fint request, bool active);

  std::vector<Copy> copies_;
};

} // namespace macadam::fortran
