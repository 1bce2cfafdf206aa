! SPDX-License-Identifier: BSD-3-Clause
!
! The micro-benchmarks of Danalis et al. 2008, section 3: a 1-D ring and a 2-D wavefront, whose
! computation is a copy into and out of the message. Plain, strip-mined, and strip-mined with one
! handshake; on MPI and on Gravel, to which the receivers promise their buffers, except in
! gravel_announced; and without communication, which is what the others are divided by. Prints one line for each: pattern, variant, bytes of a message, seconds of an iteration (the
! best of several rounds). Arguments: ring or wavefront for one of them; then by how much fewer
! iterations (1); then how the names of the variants begin (all).
program patterns
  use mpi
  use gravel
  use computation
  implicit none
  integer, parameter :: sizes(3) = [1024, 16384, 262144] ! doubles: 8 KiB, 128 KiB, 2 MiB
  integer, parameter :: largest = 262144, strips = 4, rounds = 7, most = 2 ! neighbours each way
  character(len=9), parameter :: names(2) = ['ring     ', 'wavefront']
  character(len=16), parameter :: variants(8) = [character(len=16) :: 'none', 'mpi', 'gravel', &
      'gravel_announced', 'gravel_read', 'mpi_strips', 'gravel_strips', 'gravel_one']

  double precision, asynchronous :: outgoing(largest, most), incoming(largest, most)
  integer :: from(most), to(most), froms, tos
  integer :: rank, ranks, rows, columns, which, k, v, fewer, ierror
  character(len=16) :: only, argument, beginning

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call gravel_init(MPI_COMM_WORLD)
  call gravel_register(outgoing, 8_gravel_size_kind * size(outgoing))
  call gravel_register(incoming, 8_gravel_size_kind * size(incoming))
  outgoing = 0
  incoming = 0

  only = ''
  fewer = 1
  call get_command_argument(1, only)
  call get_command_argument(2, argument)
  if (argument /= '') read (argument, *) fewer
  call get_command_argument(3, beginning)
  do which = 1, 2
    if (only /= '' .and. only /= names(which)) cycle
    if (which == 1) then
      call lay_ring()
    else
      call lay_grid()
    end if
    do k = 1, size(sizes)
      do v = 1, size(variants)
        if (index(variants(v), trim(beginning)) == 1) call measure(trim(variants(v)), sizes(k))
      end do
    end do
  end do
  call gravel_finalize()
  call MPI_Finalize(ierror)

contains

  subroutine lay_ring()
    froms = 1
    tos = 1
    from(1) = modulo(rank - 1, ranks)
    to(1) = modulo(rank + 1, ranks)
  end subroutine

  ! From north and west, to south and east.
  subroutine lay_grid()
    rows = int(sqrt(dble(ranks)))
    do while (modulo(ranks, rows) /= 0)
      rows = rows - 1
    end do
    columns = ranks / rows
    froms = 0
    tos = 0
    if (rank >= columns) call add(from, froms, rank - columns)
    if (modulo(rank, columns) /= 0) call add(from, froms, rank - 1)
    if (rank + columns < ranks) call add(to, tos, rank + columns)
    if (modulo(rank + 1, columns) /= 0) call add(to, tos, rank + 1)
  end subroutine

  subroutine add(list, count, who)
    integer, intent(inout) :: list(:), count
    integer, intent(in) :: who
    count = count + 1
    list(count) = who
  end subroutine

  ! From when the first rank begins until the last one has done all: where they share a processor, one
  ! may have done its part before another has left the barrier.
  subroutine measure(variant, n)
    character(len=*), intent(in) :: variant
    integer, intent(in) :: n
    double precision :: begin, finish, first, last, best
    integer :: round, i, iterations
    iterations = max(2, 32000000 / (8 * n) / fewer)
    best = huge(best)
    call promise(variant, n, rounds * iterations)
    do round = 1, rounds
      call MPI_Barrier(MPI_COMM_WORLD, ierror)
      begin = now()
      do i = 1, iterations
        call iterate(variant, n)
      end do
      finish = now()
      call MPI_Reduce(begin, first, 1, MPI_DOUBLE_PRECISION, MPI_MIN, 0, MPI_COMM_WORLD, ierror)
      call MPI_Reduce(finish, last, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
      if (rank == 0 .and. round > 2) best = min(best, (last - first) / iterations) ! others warm up
    end do
    call check(variant, n)
    if (rank == 0) print '(3a,1x,i0,1x,es12.5)', trim(names(which)), &
        ' ', variant, 8 * n, best
  end subroutine

  ! Tells Gravel how many buffers of which size will be posted.
  subroutine promise(variant, n, iterations)
    character(len=*), intent(in) :: variant
    integer, intent(in) :: n, iterations
    integer :: j, pieces
    select case (variant)
    case ('gravel', 'gravel_one')
      pieces = 1
    case ('gravel_strips')
      pieces = strips
    case default
      return
    end select
    do j = 1, froms
      call gravel_promise_recv_buffers(from(j), 8_gravel_size_kind * n / pieces, 1, &
                                       int(pieces, gravel_size_kind) * iterations)
    end do
  end subroutine

  ! Seconds by the machine's clock, which is one for all ranks.
  double precision function now()
    integer(kind=8) :: count, rate
    call system_clock(count, rate)
    now = dble(count) / dble(rate)
  end function

  subroutine iterate(variant, n)
    character(len=*), intent(in) :: variant
    integer, intent(in) :: n
    select case (variant)
    case ('none')
      call compute_all(n)
    case ('mpi')
      call on_mpi(n, n)
    case ('mpi_strips')
      call on_mpi(n, n / strips)
    case ('gravel', 'gravel_announced')
      call on_gravel(n, n)
    case ('gravel_strips')
      call on_gravel(n, n / strips)
    case ('gravel_one')
      call with_one_handshake(n, n / strips)
    case ('gravel_read')
      call by_reading(n)
    end select
    call use_all(n)
  end subroutine

  ! What is sent, and what is done with what has come.
  subroutine compute(k, first, last)
    integer, intent(in) :: k, first, last
    call make(outgoing(:, k), first, last)
  end subroutine

  subroutine compute_all(n)
    integer, intent(in) :: n
    integer :: j
    do j = 1, tos
      call compute(j, 1, n)
    end do
  end subroutine

  subroutine use_all(n)
    integer, intent(in) :: n
    integer :: j
    do j = 1, froms
      call use_up(incoming(:, j), n)
    end do
  end subroutine

  subroutine on_mpi(n, strip)
    integer, intent(in) :: n, strip
    integer :: requests(2 * most * strips), j, first, count
    count = 0
    do j = 1, froms
      do first = 1, n, strip
        count = count + 1
        call MPI_Irecv(incoming(first, j), strip, MPI_DOUBLE_PRECISION, from(j), 1, &
                       MPI_COMM_WORLD, requests(count), ierror)
      end do
    end do
    do j = 1, tos
      do first = 1, n, strip
        call compute(j, first, first + strip - 1)
        count = count + 1
        call MPI_Isend(outgoing(first, j), strip, MPI_DOUBLE_PRECISION, to(j), 1, &
                       MPI_COMM_WORLD, requests(count), ierror)
      end do
    end do
    call MPI_Waitall(count, requests, MPI_STATUSES_IGNORE, ierror)
  end subroutine

  ! Consumer-initiated writes, a handshake for each strip.
  subroutine on_gravel(n, strip)
    integer, intent(in) :: n, strip
    integer(gravel_handle_kind) :: requests(2 * most * strips), buffer
    integer(gravel_size_kind) :: bytes
    integer :: j, first, count
    bytes = 8_gravel_size_kind * strip
    count = 0
    do j = 1, froms
      do first = 1, n, strip
        count = count + 1
        call gravel_post_recv_buffer_rdma(from(j), incoming(first, j), bytes, 1, requests(count))
      end do
    end do
    do j = 1, tos
      do first = 1, n, strip
        call compute(j, first, first + strip - 1)
        call gravel_wait_recv_buffer(to(j), 1, buffer)
        call gravel_post_os_put(buffer, outgoing(first, j), bytes, 0_gravel_size_kind)
        count = count + 1
        call gravel_send_fin(buffer, requests(count))
      end do
    end do
    call gravel_waitall(count, requests)
  end subroutine

  ! Figure 2 C of the paper.
  subroutine with_one_handshake(n, strip)
    integer, intent(in) :: n, strip
    integer(gravel_handle_kind) :: requests(2 * most), buffer
    integer :: j, first, count
    count = 0
    do j = 1, froms
      count = count + 1
      call gravel_post_recv_buffer_rdma(from(j), incoming(1, j), 8_gravel_size_kind * n, 1, &
                                        requests(count))
    end do
    do j = 1, tos
      do first = 1, n, strip
        call compute(j, first, first + strip - 1)
        if (first == 1) call gravel_wait_recv_buffer(to(j), 1, buffer)
        call gravel_post_os_put(buffer, outgoing(first, j), 8_gravel_size_kind * strip, &
                                8_gravel_size_kind * (first - 1))
      end do
      count = count + 1
      call gravel_send_fin(buffer, requests(count))
    end do
    call gravel_waitall(count, requests)
  end subroutine

  ! Producer-initiated reads.
  subroutine by_reading(n)
    integer, intent(in) :: n
    integer(gravel_handle_kind) :: requests(2 * most), buffer
    integer(gravel_size_kind) :: bytes
    integer :: j, count
    bytes = 8_gravel_size_kind * n
    count = 0
    do j = 1, tos
      call compute(j, 1, n)
      count = count + 1
      call gravel_post_send_buffer_rdma(to(j), outgoing(1, j), bytes, 1, requests(count))
    end do
    do j = 1, froms
      call gravel_wait_send_buffer(from(j), 1, buffer)
      call gravel_post_os_get(buffer, incoming(1, j), bytes, 0_gravel_size_kind)
      count = count + 1
      call gravel_send_fin(buffer, requests(count))
    end do
    call gravel_waitall(count, requests)
  end subroutine

  ! What has come is what was sent, and is forgotten for the next variant.
  subroutine check(variant, n)
    character(len=*), intent(in) :: variant
    integer, intent(in) :: n
    integer :: i, j
    if (variant /= 'none') then
      do j = 1, froms
        do i = 1, n
          if (incoming(i, j) == 1 + modulo(i - 1, 128)) cycle
          print *, 'rank', rank, ': ', variant, ' has brought a wrong value at', i
          error stop
        end do
      end do
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    incoming = -1
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine
end program
