// SPDX-License-Identifier: BSD-3-Clause
// How a function of MPICH's ABI is declared. mpi.h has functions of the same names with the types
// of the standard ABI; so ours get their names from the assembler.
#pragma once

// PMPI_`name`, and MPI_`name` as a weak second name of it, which a tool may take.
#define MPICH_ENTRY(result, name, parameters)                                                      \
  extern "C" [[gnu::visibility("default")]] result mpich_##name parameters __asm__("PMPI_" #name); \
  extern "C"                                                                                       \
      [[gnu::weak, gnu::alias("PMPI_" #name),                                                      \
        gnu::visibility("default")]] result mpich_weak_##name parameters __asm__("MPI_" #name);    \
  extern "C" result mpich_##name parameters
