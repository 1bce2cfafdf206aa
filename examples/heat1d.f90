! SPDX-License-Identifier: BSD-3-Clause
! A rod cools from both ends: each rank has a piece of it and exchanges the temperatures at its ends
! with its neighbours. The result is compared with the same computation on one rank.
! Build and run: mpifort heat1d.f90 -o heat1d; mpiexec -n 4 ./heat1d
program heat1d
  use mpi_f08
  implicit none
  integer, parameter :: steps = 1000, points = 60
  double precision, parameter :: coefficient = 0.25d0
  double precision, allocatable :: piece(:), next(:)
  double precision :: rod(0:points + 1), difference, largest
  integer :: rank, ranks, left, right, first, last, i, step

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  ! Beyond the ends of the rod is nobody: messages to MPI_PROC_NULL go nowhere.
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
  first = rank * points / ranks + 1
  last = (rank + 1) * points / ranks
  allocate(piece(first - 1:last + 1), next(first - 1:last + 1))
  piece = [(warm(i), i = first - 1, last + 1)]
  next = piece

  do step = 1, steps
    call MPI_Sendrecv(piece(last), 1, MPI_DOUBLE_PRECISION, right, 0, &
                      piece(first - 1), 1, MPI_DOUBLE_PRECISION, left, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(piece(first), 1, MPI_DOUBLE_PRECISION, left, 1, &
                      piece(last + 1), 1, MPI_DOUBLE_PRECISION, right, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    next(first:last) = cooled(piece(first - 1:last + 1))
    piece(first:last) = next(first:last)
  end do

  rod = [(warm(i), i = 0, points + 1)]
  do step = 1, steps
    rod(1:points) = cooled(rod)
  end do
  difference = maxval(abs(piece(first:last) - rod(first:last)))
  call MPI_Reduce(difference, largest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD)
  if (rank == 0) print '(i0, a, f6.2, a, es8.1)', ranks, ' ranks: the middle of the rod has', &
    rod(points / 2), ' degrees; largest difference from one rank', largest
  call MPI_Finalize()
  if (rank == 0 .and. largest > 0) error stop 1

contains

  pure double precision function warm(i)
    integer, intent(in) :: i
    warm = merge(100d0, 0d0, i >= 1 .and. i <= points)
  end function

  ! One step at the inner points.
  pure function cooled(u) result(v)
    double precision, intent(in) :: u(:)
    double precision :: v(size(u) - 2)
    integer :: n
    n = size(u)
    v = u(2:n - 1) + coefficient * (u(1:n - 2) - 2 * u(2:n - 1) + u(3:n))
  end function
end program
