# SPDX-License-Identifier: BSD-3-Clause
"""Writes MPI in Fortran: mpif.h, the modules mpi and mpi_f08, and the glue below them."""
