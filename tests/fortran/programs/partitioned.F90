! SPDX-License-Identifier: BSD-3-Clause
! Partitioned communication. Compiled three times, once for each interface: with WITH_F08 for module
! mpi_f08, with WITH_MODULE for module mpi, else with mpif.h.
#include "handles.inc"

program partitioned
#ifdef WITH_F08
  use mpi_f08
#elif defined(WITH_MODULE)
  use mpi
#endif
  use checks
  implicit none
#if !defined(WITH_F08) && !defined(WITH_MODULE)
  include 'mpif.h'
#endif
  integer, parameter :: parts = 6
  integer(MPI_COUNT_KIND), parameter :: each = 100, wide = 300
  integer :: rank, ranks, before, after, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  after = modulo(rank + 1, ranks)
  call rounds
  call one_partition_at_a_time
  call MPI_Finalize(ierror)

contains

  ! Six partitions on one side, two on the other.
  subroutine rounds
    HANDLE(MPI_Request) :: send, receive
    real, asynchronous :: out(parts * each), in(parts * each)
    integer :: round, i

    call MPI_Psend_init(out, parts, each, MPI_REAL, after, 4, MPI_COMM_WORLD, MPI_INFO_NULL, send, &
                        ierror)
    call MPI_Precv_init(in, 2, wide, MPI_REAL, before, 4, MPI_COMM_WORLD, MPI_INFO_NULL, receive, &
                        ierror)
    do round = 1, 3
      out = [(real(round * 1000 + rank * 10000 + i), i = 1, size(out))]
      in = -1
      call MPI_Start(receive, ierror)
      call MPI_Start(send, ierror)
      call MPI_Pready_range(4, 5, send, ierror)
      call MPI_Pready_list(3, [2, 0, 3], send, ierror)
      call MPI_Pready(1, send, ierror)
      call MPI_Wait(send, MPI_STATUS_IGNORE, ierror)
      call MPI_Wait(receive, MPI_STATUS_IGNORE, ierror)
      call check(all(in == [(real(round * 1000 + before * 10000 + i), i = 1, size(in))]), &
                 'all partitions of a round')
    end do
    call MPI_Request_free(send, ierror)
    call MPI_Request_free(receive, ierror)
  end subroutine

  subroutine one_partition_at_a_time
    HANDLE(MPI_Request) :: send, receive
    integer, asynchronous :: out(4), in(4)
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    logical :: there
    integer :: i, length

    ! MPICH 5.0 sends nothing before all partitions are ready.
    call MPI_Get_library_version(version, length, ierror)
    if (index(version, 'Macadam') == 0) return
    out = rank * 10 + [1, 2, 3, 4]
    in = 0
    call MPI_Psend_init(out, 4, 1_MPI_COUNT_KIND, MPI_INTEGER, after, 5, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, send, ierror)
    call MPI_Precv_init(in, 4, 1_MPI_COUNT_KIND, MPI_INTEGER, before, 5, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, receive, ierror)
    call MPI_Start(receive, ierror)
    call MPI_Start(send, ierror)
    call MPI_Parrived(receive, 3, there, ierror)
    call check(.not. there, 'a partition that is not ready')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    do i = 4, 1, -1
      call MPI_Pready(i - 1, send, ierror)
      there = .false.
      do while (.not. there)
        call MPI_Parrived(receive, i - 1, there, ierror)
      end do
      call check(in(i) == before * 10 + i, 'a partition that is there')
    end do
    call MPI_Wait(send, MPI_STATUS_IGNORE, ierror)
    call MPI_Wait(receive, MPI_STATUS_IGNORE, ierror)
    call MPI_Request_free(send, ierror)
    call MPI_Request_free(receive, ierror)
  end subroutine

end program
