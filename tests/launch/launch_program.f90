! SPDX-License-Identifier: BSD-3-Clause
! All ranks print; rank 1 calls MPI_Abort while the others wait for it: for the launch tests.
program launch_program
  use mpi_f08
  implicit none
  integer :: rank, nothing
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  print '(a, i0)', 'printed by ', rank
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 1) call MPI_Abort(MPI_COMM_WORLD, 3)
  call MPI_Recv(nothing, 1, MPI_INTEGER, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
end program
