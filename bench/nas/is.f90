! SPDX-License-Identifier: BSD-3-Clause
! IS: ranks of integer keys by sorting into buckets.
!
! Messages (NPB's): an iteration has one allreduce of the sizes of the buckets (and of the ranks of five
! test keys), one all-to-all of the number of keys for each rank, one of the keys themselves.
program is
  use nas
  implicit none
  integer(int64), parameter :: multiplier = 1220703125
  integer, parameter :: test_keys = 5
  integer :: bits_keys, bits_largest, bits_buckets, n, largest, buckets, last, low, high
  integer, allocatable :: keys(:), sorted(:), sent(:), send_at(:), received(:), receive_at(:)
  integer, allocatable :: sizes(:), totals(:), owner(:), came(:), counted(:), whole_counted(:)
  logical :: verified

  call begin('IS')
  select case (class)
  case ('S')
    bits_keys = 16
    bits_largest = 11
    bits_buckets = 9
  case ('W')
    bits_keys = 20
    bits_largest = 16
    bits_buckets = 10
  case default
    bits_keys = 23
    bits_largest = 19
    bits_buckets = 10
  end select
  last = merge(iterations, 10, iterations > 0)
  verified = .true.
  if (with_serial) then
    call alone()
    call solve()
    whole_counted = counted
    call everyone()
  end if
  call solve()
  call check_sorted()
  call finish(verified, last)

contains

  subroutine solve()
    integer :: i
    n = 2**bits_keys / ranks
    largest = 2**bits_largest
    buckets = 2**bits_buckets
    if (n * ranks /= 2**bits_keys .or. ranks > buckets) call refuse('needed ranks that divide the keys')
    if (allocated(keys)) deallocate (keys, sorted, sizes, totals, sent, received, send_at, receive_at, owner)
    allocate (keys(n), sorted(n), sizes(buckets + test_keys), totals(buckets + test_keys), owner(buckets))
    allocate (sent(ranks), received(ranks), send_at(ranks), receive_at(ranks))
    call fill()
    do i = 0, last  ! the first is not measured: it touches all memory
      if (i == 1) call start_clock()
      ! As in NPB two keys change, so that no iteration repeats the one before.
      if (rank == 0 .and. i > 0) then
        keys(i + 1) = i
        keys(i + 11) = largest - i
      end if
      call sort()
    end do
    call stop_clock()
  end subroutine

  ! The mean of four random numbers.
  subroutine fill()
    integer(int64) :: seed
    real(dp) :: sum
    integer :: i, j
    seed = 314159265
    call jump(seed, multiplier, 4_int64 * n * rank)
    do i = 1, n
      sum = 0
      do j = 1, 4
        sum = sum + random(seed, multiplier)
      end do
      keys(i) = int(sum * (largest / 4))
    end do
  end subroutine

  pure integer function bucket_of(key)
    integer, intent(in) :: key
    bucket_of = ishft(key, bits_buckets - bits_largest) + 1
  end function

  subroutine sort()
    integer :: i, b, to, next(buckets), spread, filled
    sizes = 0
    do i = 1, n
      b = bucket_of(keys(i))
      sizes(b) = sizes(b) + 1
    end do
    next(1) = 1
    do b = 2, buckets
      next(b) = next(b - 1) + sizes(b - 1)
    end do
    do i = 1, n
      b = bucket_of(keys(i))
      sorted(next(b)) = keys(i)
      next(b) = next(b) + 1
    end do
    call enter()
    call MPI_Allreduce(sizes, totals, size(sizes), MPI_INTEGER, MPI_SUM, comm)
    call leave()
    ! Buckets go to ranks so that each has about as many keys.
    spread = 0
    to = 1
    filled = 0
    sent = 0
    do b = 1, buckets
      owner(b) = to
      sent(to) = sent(to) + sizes(b)
      filled = filled + totals(b)
      if (filled >= to * n .and. to < ranks) to = to + 1
    end do
    call enter()
    call MPI_Alltoall(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, comm)
    call leave()
    send_at(1) = 0
    receive_at(1) = 0
    do to = 2, ranks
      send_at(to) = send_at(to - 1) + sent(to - 1)
      receive_at(to) = receive_at(to - 1) + received(to - 1)
    end do
    if (allocated(came)) deallocate (came)
    allocate (came(sum(received)))
    call enter()
    call MPI_Alltoallv(sorted, sent, send_at, MPI_INTEGER, came, received, receive_at, MPI_INTEGER, comm)
    call leave()
    call spoil_a_key()
    ! How many of each key there are gives their ranks.
    low = huge(low)
    high = -1
    do b = 1, buckets
      if (owner(b) /= rank + 1) cycle
      low = min(low, (b - 1) * (largest / buckets))
      high = b * (largest / buckets) - 1
    end do
    if (allocated(counted)) deallocate (counted)
    allocate (counted(0:largest - 1), source=0)
    do i = 1, size(came)
      counted(came(i)) = counted(came(i)) + 1
    end do
  end subroutine

  subroutine spoil_a_key()
    real(dp) :: value
    value = 0
    call spoil(value)
    if (value /= 0) came(1) = ieor(came(1), 1)
  end subroutine

  ! All keys of a rank are of its buckets, none is lost on the way, and none is changed.
  subroutine check_sorted()
    integer :: all_before(0:largest - 1), all_after(0:largest - 1), i
    call verify(verified, all(came >= low .and. came <= high), 'a key of another rank', &
                real(minval(came), dp), real(low, dp))
    all_before = 0
    do i = 1, n
      all_before(keys(i)) = all_before(keys(i)) + 1
    end do
    call MPI_Allreduce(MPI_IN_PLACE, all_before, largest, MPI_INTEGER, MPI_SUM, comm)
    call MPI_Allreduce(counted, all_after, largest, MPI_INTEGER, MPI_SUM, comm)
    call verify(verified, all(all_before == all_after), 'keys by their values', &
                real(sum(abs(all_after - all_before)), dp), 0d0)
    if (with_serial) call verify(verified, all(all_after == whole_counted), 'keys by their values, alone', &
                                 real(sum(abs(all_after - whole_counted)), dp), 0d0)
  end subroutine
end program
