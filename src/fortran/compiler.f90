! SPDX-License-Identifier: BSD-3-Clause
! What the C library and the glue are told of this compiler.
module macadam_fortran_compiler
  use, intrinsic :: iso_fortran_env, only: integer_kinds, logical_kinds, real_kinds
  implicit none
  private

  ! The ABI has INTEGER and LOGICAL of C's int: a compiler or option that makes them longer is
  ! refused here, by a kind that does not exist.
  integer, parameter :: integer_of_32_bits = merge(kind(1), -1, storage_size(1) == 32)
  integer, parameter :: logical_of_32_bits = merge(kind(1), -1, storage_size(.true.) == 32)
  integer(integer_of_32_bits), parameter :: refused_if_not_32_bits = 0
  integer(logical_of_32_bits), parameter :: refused_if_not_32_bits_either = 0

  logical, bind(C, name="macadam_fortran_logicals"), public :: logicals(2) = [.true., .false.]

  integer :: i
  integer, bind(C, name="macadam_fortran_types"), public :: types(23) = [ &
    storage_size(.true.) / 8, storage_size(1) / 8, storage_size(1.0) / 8, storage_size(1.0d0) / 8, &
    (merge(1, 0, any(logical_kinds == 2**i)), i = 0, 4), &
    (merge(1, 0, any(integer_kinds == 2**i)), i = 0, 4), &
    (merge(1, 0, any(real_kinds == 2**i)), i = 1, 4), &
    (merge(1, 0, any(real_kinds == 2**i)), i = 1, 4), 1]
end module macadam_fortran_compiler
