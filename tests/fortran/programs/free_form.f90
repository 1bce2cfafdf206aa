! SPDX-License-Identifier: BSD-3-Clause
! mpif.h in free form, beside IMPLICIT NONE in a module procedure.
module sums
  implicit none
contains
  integer function everywhere(value)
    include 'mpif.h'
    integer, intent(in) :: value
    integer :: ierr
    call MPI_Allreduce(value, everywhere, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  end function
end module

program free_form
  use sums
  implicit none
  include 'mpif.h'
  integer :: ierr, ranks
  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  if (everywhere(1) /= ranks) stop 1
  call MPI_Finalize(ierr)
end program
