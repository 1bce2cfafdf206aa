! SPDX-License-Identifier: BSD-3-Clause
!
! Producer-initiated read (Danalis et al. 2008, Figure 1 c), on a ring where every rank sends before
! it can know where to receive: it announces the data that are ready, and the next rank gets them
! when it has found out where they shall go.
program producer_read
  use mpi
  use gravel
  implicit none
  integer, parameter :: most = 50000, rounds = 8, tag = 11
  integer(gravel_size_kind), parameter :: start = 0
  double precision, asynchronous :: outgoing(most)
  double precision, asynchronous, allocatable :: incoming(:)
  integer(gravel_handle_kind) :: sent, got, fin, buffer
  integer(gravel_size_kind) :: bytes
  integer :: rank, ranks, before, next, round, n, i, wrong, all_wrong, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  next = modulo(rank + 1, ranks)

  call gravel_init(MPI_COMM_WORLD)
  call gravel_register(outgoing, 8_gravel_size_kind * most)

  wrong = 0
  do round = 1, rounds
    n = 1000 * round + rank ! only the producer knows
    do i = 1, n
      outgoing(i) = rank + 10d0 * round + 1d-6 * i
    end do
    call gravel_post_send_buffer_rdma(next, outgoing, 8_gravel_size_kind * n, tag, sent)

    call gravel_wait_send_buffer(before, tag, buffer)
    call gravel_get_buffer(buffer, bytes=bytes)
    allocate (incoming(bytes / 8))
    call gravel_register(incoming, bytes)
    call gravel_post_os_get(buffer, incoming, bytes, start, got)
    ! What needs neither array may be computed here.
    call gravel_wait(got)
    call gravel_send_fin(buffer, fin) ! the producer may have its array back
    if (size(incoming) /= 1000 * round + before) wrong = wrong + 1
    do i = 1, size(incoming)
      if (incoming(i) /= before + 10d0 * round + 1d-6 * i) wrong = wrong + 1
    end do
    call gravel_unregister(incoming)
    deallocate (incoming)

    call gravel_wait(fin)
    call gravel_wait(sent) ! `outgoing` may be changed again
  end do

  call gravel_finalize()
  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a,i0,a,i0,a,i0,a)', 'producer_read: ', ranks, ' ranks, ', rounds, &
      ' rounds, ', all_wrong, ' wrong values'
  call MPI_Finalize(ierror)
  if (wrong /= 0) error stop
end program
