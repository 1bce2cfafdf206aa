! SPDX-License-Identifier: BSD-3-Clause
!
! The few calls of MPI that the examples need, on the C ABI, for a build without MPI's own modules.
module mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: MPI_COMM_WORLD = 257, MPI_SUM = 33, MPI_INTEGER = 537

  interface
    integer(c_int) function c_init(argc, argv) bind(C, name='MPI_Init')
      import
      type(c_ptr), value :: argc, argv
    end function
    integer(c_int) function c_rank(comm, rank) bind(C, name='MPI_Comm_rank')
      import
      integer(c_intptr_t), value :: comm
      integer(c_int) :: rank
    end function
    integer(c_int) function c_size(comm, size) bind(C, name='MPI_Comm_size')
      import
      integer(c_intptr_t), value :: comm
      integer(c_int) :: size
    end function
    integer(c_int) function c_reduce(send, receive, count, datatype, op, root, comm) &
        bind(C, name='MPI_Reduce')
      import
      integer(c_int) :: send, receive
      integer(c_int), value :: count, root
      integer(c_intptr_t), value :: datatype, op, comm
    end function
    integer(c_int) function c_finalize() bind(C, name='MPI_Finalize')
      import
    end function
  end interface

contains

  integer(c_intptr_t) function handle(number)
    integer, intent(in) :: number
    handle = number
  end function

  subroutine MPI_Init(ierror)
    integer, intent(out) :: ierror
    ierror = c_init(c_null_ptr, c_null_ptr)
  end subroutine

  subroutine MPI_Comm_rank(comm, rank, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: rank, ierror
    ierror = c_rank(handle(comm), rank)
  end subroutine

  subroutine MPI_Comm_size(comm, size, ierror)
    integer, intent(in) :: comm
    integer, intent(out) :: size, ierror
    ierror = c_size(handle(comm), size)
  end subroutine

  subroutine MPI_Reduce(send, receive, count, datatype, op, root, comm, ierror)
    integer, intent(in) :: send, count, datatype, op, root, comm
    integer, intent(out) :: receive, ierror
    integer :: copy
    copy = send
    ierror = c_reduce(copy, receive, count, handle(datatype), handle(op), root, handle(comm))
  end subroutine

  subroutine MPI_Finalize(ierror)
    integer, intent(out) :: ierror
    ierror = c_finalize()
  end subroutine
end module
