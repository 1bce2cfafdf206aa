! SPDX-License-Identifier: BSD-3-Clause
! Module mpi in MPICH's ABI, without interfaces of the procedures.
module mpi
  implicit none
  include 'mpif.h'
end module
