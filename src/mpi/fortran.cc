// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/fortran.h"

#include "base/copy.h"
#include "mpi/calls.h"
#include "mpi/process.h"

#include <string_view>

namespace macadam::mpi {

using base::fail;

namespace {

constexpr int longest_logical = 16;

void check_size(int bytes) {
  if (bytes < 1 || bytes > longest_logical || (bytes & (bytes - 1)) != 0) {
    fail(MPI_ERR_ARG, "logical_size is {}; a LOGICAL has 1, 2, 4, 8 or 16 bytes", bytes);
  }
}

std::int64_t read(const void* logical, int bytes) {
  std::int64_t value = 0;
  const int read_bytes = bytes < 8 ? bytes : 8; // little endian: the rest is the sign
  base::copy(&value, logical, static_cast<std::size_t>(read_bytes));
  const int above = 64 - 8 * read_bytes;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << above) >> above;
}

void write(std::int64_t value, void* logical, int bytes) {
  std::int64_t words[2] = {value, value < 0 ? -1 : 0};
  base::copy(logical, words, static_cast<std::size_t>(bytes));
}

// The sizes that the predefined datatypes have here (datatype/basic.cc).
constexpr std::pair<std::string_view, std::string_view> sizes[] = {
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"}};

} // namespace

void abi_set_fortran_booleans(Library& self, int logical_size, void* logical_true,
                              void* logical_false) {
  check_size(logical_size);
  if (self.fortran.booleans) {
    fail(MPI_ERR_ABI, "the values of Fortran's .TRUE. and .FALSE. have been set before; "
                      "MPI_Abi_get_fortran_booleans tells them");
  }
  if (logical_true == nullptr || logical_false == nullptr) {
    fail(MPI_ERR_ARG, "logical_true or logical_false is a null pointer");
  }
  const FortranFacts::Booleans given{read(logical_true, logical_size),
                                     read(logical_false, logical_size)};
  // Reductions take 0 for false and answer 1 for true, of which the compilers look at the lowest
  // bit or at all bits.
  if (given.no != 0 || (given.yes & 1) == 0) {
    fail(MPI_ERR_ABI,
         "a compiler whose .TRUE. is {} and .FALSE. is {} is not supported; they must be an odd "
         "number and 0, as option -fpscomp logicals or -standard-semantics of some compilers says",
         given.yes, given.no);
  }
  self.fortran.booleans = given;
}

void abi_get_fortran_booleans(Library& self, int logical_size, void* logical_true,
                              void* logical_false, int* is_set) {
  check_size(logical_size);
  *is_set = self.fortran.booleans ? 1 : 0;
  if (!self.fortran.booleans) return;
  if (logical_true != nullptr) write(self.fortran.booleans->yes, logical_true, logical_size);
  if (logical_false != nullptr) write(self.fortran.booleans->no, logical_false, logical_size);
}

void abi_set_fortran_info(Library& self, Info* info) {
  if (self.fortran.info) {
    fail(MPI_ERR_ABI, "the properties of the Fortran compiler have been set before; "
                      "MPI_Abi_get_fortran_info tells them");
  }
  if (info == nullptr) fail(MPI_ERR_INFO, "info is MPI_INFO_NULL");
  for (const auto& [key, needed] : sizes) {
    const std::string* given = info->find(std::string(key).c_str());
    if (given != nullptr && *given != needed) {
      fail(MPI_ERR_ABI,
           "{} is {}, but the predefined datatypes of this library are made for {}; compile the "
           "Fortran sources without options that change the default kinds",
           key, *given, needed);
    }
  }
  self.fortran.info = info->entries;
}

void abi_get_fortran_info(Library& self, MPI_Info* info) {
  *info = self.fortran.info ? make_info(self, *self.fortran.info) : MPI_INFO_NULL;
}

} // namespace macadam::mpi
