! SPDX-License-Identifier: BSD-3-Clause
!
! Producer-initiated write (Danalis et al. 2008, Figure 1 b): rank 0 takes a block from whichever
! rank has one. It cannot know who will be next, so the producer says first that data will come;
! then rank 0 announces memory to that one.
program producer_write
  use mpi
  use gravel
  implicit none
  integer, parameter :: n = 20000, blocks = 5, tag = 3
  integer(gravel_size_kind), parameter :: bytes = 8 * n, start = 0
  double precision, asynchronous :: block(n)
  integer :: rank, ranks, wrong, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call gravel_init(MPI_COMM_WORLD)
  call gravel_register(block, bytes)
  wrong = 0
  if (rank == 0) then
    call consume()
  else
    call produce()
  end if
  call gravel_finalize()
  if (rank == 0) print '(a,i0,a,i0,a,i0,a)', 'producer_write: ', ranks, ' ranks, ', blocks, &
      ' blocks each, ', wrong, ' wrong values'
  call MPI_Finalize(ierror)
  if (wrong /= 0) error stop

contains

  subroutine produce()
    integer(gravel_handle_kind) :: sent, buffer
    integer :: number, i
    do number = 1, blocks
      call gravel_post_send_request_rdma(0, bytes, tag)
      do i = 1, n ! computes while rank 0 answers
        block(i) = 100d0 * rank + number + 1d-6 * i
      end do
      call gravel_wait_recv_buffer(0, tag, buffer)
      call gravel_post_os_put(buffer, block, bytes, start)
      call gravel_send_fin(buffer, sent)
      call gravel_wait(sent)
    end do
  end subroutine

  subroutine consume()
    integer(gravel_handle_kind) :: received
    integer(gravel_size_kind) :: announced
    integer :: number(ranks - 1), i, k, producer
    number = 0
    do k = 1, (ranks - 1) * blocks
      call gravel_wait_send_request(GRAVEL_ANY_SOURCE, tag, from=producer, bytes=announced)
      if (announced /= bytes) wrong = wrong + 1
      call gravel_post_recv_buffer_rdma(producer, block, bytes, tag, received)
      call gravel_wait(received)
      number(producer) = number(producer) + 1
      do i = 1, n
        if (block(i) /= 100d0 * producer + number(producer) + 1d-6 * i) wrong = wrong + 1
      end do
    end do
  end subroutine
end program
