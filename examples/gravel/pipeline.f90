! SPDX-License-Identifier: BSD-3-Clause
!
! Several fragments with one handshake (Danalis et al. 2008, Figures 1 d and 2 C): the loop that fills
! the array is cut into strips, and each strip is under way while the next one is computed.
program pipeline
  use mpi
  use gravel
  implicit none
  integer, parameter :: n = 120000, strip = 20000, rounds = 10, tag = 5
  integer(gravel_size_kind), parameter :: bytes = 8 * n, strip_bytes = 8 * strip
  double precision, asynchronous :: outgoing(n), incoming(n)
  integer(gravel_handle_kind) :: requests(2), buffer
  integer :: rank, ranks, before, next, round, first, i, wrong, all_wrong, ierror

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
    call gravel_post_recv_buffer_rdma(before, incoming, bytes, tag, requests(1))
    do first = 1, n, strip
      do i = first, first + strip - 1
        outgoing(i) = rank + 10d0 * round + 1d-6 * i
      end do
      if (first == 1) call gravel_wait_recv_buffer(next, tag, buffer)
      call gravel_post_os_put(buffer, outgoing(first), strip_bytes, &
                              offset=8_gravel_size_kind * (first - 1))
    end do
    call gravel_send_fin(buffer, requests(2))
    call gravel_waitall(2, requests)
    do i = 1, n
      if (incoming(i) /= before + 10d0 * round + 1d-6 * i) wrong = wrong + 1
    end do
  end do

  call gravel_finalize()
  call MPI_Reduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(a,i0,a,i0,a,i0,a,i0,a)', 'pipeline: ', ranks, ' ranks, ', rounds, &
      ' rounds of ', n / strip, ' strips, ', all_wrong, ' wrong values'
  call MPI_Finalize(ierror)
  if (wrong /= 0) error stop
end program
