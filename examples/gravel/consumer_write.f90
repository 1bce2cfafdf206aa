! SPDX-License-Identifier: BSD-3-Clause
!
! Consumer-initiated write (Danalis et al. 2008, Figure 1 a), on a ring: every rank gets an array
! from the one before it. The receiver says first where the data shall go, and computes; so when the
! data are ready, the sender writes them there without any delay.
program consumer_write
  use mpi
  use gravel
  implicit none
  integer, parameter :: n = 100000, rounds = 10, tag = 7
  integer(gravel_size_kind), parameter :: bytes = 8 * n, start = 0
  double precision, asynchronous :: outgoing(n), incoming(n)
  integer(gravel_handle_kind) :: received, sent, buffer
  integer :: rank, ranks, before, next, round, i, wrong, all_wrong, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  next = modulo(rank + 1, ranks)

  call gravel_init(MPI_COMM_WORLD)
  call gravel_register(outgoing, bytes)
  call gravel_register(incoming, bytes)

  wrong = 0
  do round = 1, rounds
    call gravel_post_recv_buffer_rdma(before, incoming, bytes, tag, received)
    do i = 1, n ! computes while the announcement travels
      outgoing(i) = rank + 10d0 * round + 1d-6 * i
    end do
    call gravel_wait_recv_buffer(next, tag, buffer)
    call gravel_post_os_put(buffer, outgoing, bytes, start)
    call gravel_send_fin(buffer, sent)
    ! What needs neither array may be computed here.
    call gravel_wait(received) ! the FIN has come, so the data are there
    do i = 1, n
      if (incoming(i) /= before + 10d0 * round + 1d-6 * i) wrong = wrong + 1
    end do
    call gravel_wait(sent) ! `outgoing` may be changed again
  end do

  call gravel_finalize()
  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a,i0,a,i0,a,i0,a)', 'consumer_write: ', ranks, ' ranks, ', rounds, &
      ' rounds, ', all_wrong, ' wrong values'
  call MPI_Finalize(ierror)
  if (wrong /= 0) error stop
end program
