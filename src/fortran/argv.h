// SPDX-License-Identifier: BSD-3-Clause
// Command lines of the processes that a program starts, without the blanks around each word (MPI
// 5.0, section 11.8.2).
#pragma once

#include "fortran/arguments.h"

#include <vector>

namespace macadam::fortran {

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

} // namespace macadam::fortran
