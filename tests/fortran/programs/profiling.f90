! SPDX-License-Identifier: BSD-3-Clause
! Tools: one in C sees the sends of all three interfaces once each and PMPI_Send never; one in Fortran
! replaces MPI_Barrier of mpif.h and module mpi, and its own calls of PMPI_Barrier come through.

module counts
  implicit none
  integer :: barriers = 0
  interface
    integer function sends_seen() bind(C)
    end function
  end interface
end module

subroutine MPI_Barrier(comm, ierror)
  use counts
  implicit none
  include 'mpif.h'
  integer :: comm, ierror
  barriers = barriers + 1
  call PMPI_Barrier(comm, ierror)
end subroutine

subroutine with_file(rank)
  implicit none
  include 'mpif.h'
  integer :: rank, ierror
  call MPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)
  call PMPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
end subroutine

subroutine with_module(rank)
  use mpi
  implicit none
  integer :: rank, ierror
  call MPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)
  call PMPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
end subroutine

program profiling
  use mpi_f08, only: MPI_Init, MPI_Finalize, MPI_Send, PMPI_Send, MPI_COMM_WORLD, MPI_INTEGER, &
                     MPI_PROC_NULL
  use counts
  use checks
  implicit none
  integer :: rank
  rank = 0
  call MPI_Init()
  call with_file(rank)
  call with_module(rank)
  call MPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call PMPI_Send(rank, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
  call check(sends_seen() == 3, 'a tool in C sees each send once')
  call check(barriers == 2, 'a tool in Fortran sees each barrier once')
  call MPI_Finalize()
end program
