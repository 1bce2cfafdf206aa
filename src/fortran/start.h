// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "fortran/glue.h"

#include <vector>

namespace macadam::fortran {

// After a call that starts MPI and returned `code`, which it returns: tells the C library what it
// cannot know, unless it does: sizes of types and the values of .TRUE. and .FALSE. (MPI 5.0,
// section 20.3.1). Not earlier, since some libraries answer only then. Warns on stderr of a library
// that believes other values.
int started(int code);

// Whether this process is the root of a call on a communicator.
bool is_here(const Fint* comm, Fint root);

// Strings at equal distances, up to a blank one, as C's argument vector. None if `first` is null.
class Arguments {
 public:
  Arguments(const char* first, std::size_t length, std::size_t distance);
  operator char**() const { return const_cast<char**>(c_.empty() ? nullptr : c_.data()); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> c_;
};

// `number` strings one after the other.
class Commands {
 public:
  Commands(const char* first, std::size_t length, int number);
  operator char**() { return c_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> c_;
};

// The rows of a matrix of strings with `number` rows, each an argument vector.
class ArgumentLists {
 public:
  ArgumentLists(const char* first, std::size_t length, int number);
  operator char***() { return c_.empty() ? nullptr : c_.data(); }

 private:
  std::vector<Arguments> lists_;
  std::vector<char**> c_;
};

inline int* c_errcodes(Fint* fortran) {
  return fortran == fortran_errcodes_ignore ? MPI_ERRCODES_IGNORE : fortran;
}

} // namespace macadam::fortran
