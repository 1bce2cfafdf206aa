! SPDX-License-Identifier: BSD-3-Clause
! MG: V-cycles for Poisson's equation on a periodic cube, whose right side is +1 at ten points and -1 at
! ten others. Blocks of the grid are on a grid of ranks; the last axis is cut first.
!
! Messages (NPB's): after each operator, on each level, the borders of the blocks, axis after axis, each
! with the borders of the axes before: two receives from any source started, a blocking send in
! either direction, a wait for each. With more than one rank in all, an axis that is not cut has them
! too, to oneself. Where a level has fewer points than ranks NPB lets ranks rest; here the
! cycle ends above it, which is the same up to eight ranks.
program mg
  use nas
  implicit none
  integer(int64), parameter :: multiplier = 1220703125
  integer, parameter :: charges = 10, cycles = 4
  real(dp), parameter :: a(0:3) = [-8d0 / 3, 0d0, 1d0 / 6, 1d0 / 12]
  real(dp), parameter :: c(0:3) = [-3d0 / 8, 1d0 / 32, -1d0 / 64, 0d0]
  type grid
    integer :: m(3)  ! points of this rank along each axis; 0 and m + 1 are its neighbours'
    real(dp), allocatable :: u(:, :, :), r(:, :, :)
  end type
  type(grid), allocatable :: levels(:)  ! the last is the finest
  real(dp), allocatable :: v(:, :, :), whole(:, :, :)
  real(dp), allocatable, asynchronous :: outgoing(:), incoming(:, :)
  integer :: n, across(3), place(3), top, last
  real(dp) :: published, norm, first_norm, difference
  logical :: verified

  call begin('MG')
  select case (class)
  case ('S')
    n = 32
    published = 0.5307707005734d-4
  case ('W')
    n = 128
    published = 0.6467329375339d-5
  case ('A')
    n = 256
    published = 0.2433365309069d-5
  end select
  last = merge(iterations, cycles, iterations > 0)
  verified = .true.
  if (with_serial) then
    call alone()
    call solve()
    whole = levels(top)%u
    call everyone()
  end if
  call solve()
  if (with_serial) then
    associate (m => levels(top)%m)
      difference = maxval(abs(levels(top)%u(1:m(1), 1:m(2), 1:m(3)) &
        - whole(place(1)*m(1)+1:(place(1)+1)*m(1), place(2)*m(2)+1:(place(2)+1)*m(2), &
                place(3)*m(3)+1:(place(3)+1)*m(3))))
    end associate
    call verify(verified, difference < 1d-12, 'the difference to the solution alone', difference, 1d-12)
  end if
  call verify(verified, norm < first_norm, 'the residual', norm, first_norm)
  ! Beyond eight ranks the cycle ends above the coarsest levels, and its residual is not NPB's.
  if (iterations == 0 .and. maxval(across) <= 2) &
    call verify(verified, abs(norm - published) < 1d-8 * published, 'the residual, published', norm, published)
  call finish(verified, last)

contains

  subroutine solve()
    integer :: i
    call place_ranks()
    call fill()
    call exchange_borders(v, levels(top)%m)
    do i = 0, last  ! the first is not measured: it touches all memory
      associate (fine => levels(top))
        if (i <= 1) then
          fine%u = 0
          if (i == 1) call start_clock()
          call residual(fine, v)
          if (i == 1) first_norm = norm_of(fine%r, fine%m)
        end if
        call v_cycle()
        call residual(fine, v)
        if (i == last) norm = norm_of(fine%r, fine%m)
      end associate
    end do
    call stop_clock()
  end subroutine

  subroutine place_ranks()
    integer :: left, axis, level, most
    across = 1
    left = ranks
    axis = 3
    do while (left > 1)
      across(axis) = 2 * across(axis)
      left = left / 2
      axis = merge(3, axis - 1, axis == 1)
    end do
    if (product(across) /= ranks .or. maxval(across) > n / 2) &
      call refuse('needed a power of two of ranks, at most half as many along an axis as points')
    place = [mod(rank, across(1)), mod(rank / across(1), across(2)), rank / (across(1) * across(2))]
    top = nint(log(n / max(2., real(maxval(across)))) / log(2.)) + 1
    if (allocated(levels)) deallocate (levels, v, outgoing, incoming)
    allocate (levels(top))
    do level = 1, top
      associate (l => levels(level))
        l%m = n / 2**(top - level) / across
        allocate (l%u(0:l%m(1)+1, 0:l%m(2)+1, 0:l%m(3)+1), l%r(0:l%m(1)+1, 0:l%m(2)+1, 0:l%m(3)+1), source=0d0)
      end associate
    end do
    allocate (v, mold=levels(top)%u)
    most = (maxval(levels(top)%m) + 2)**2
    allocate (outgoing(most), incoming(most, -1:1))
  end subroutine

  ! ---------------------------------------------------------------- the right side

  ! The charges are where the largest and the smallest of random numbers are, of all points in order.
  subroutine fill()
    real(dp), allocatable :: random_field(:, :, :)
    real(dp) :: value(2 * charges, ranks)
    integer :: where_is(3, 2 * charges, ranks), at(3), i, j, k, found(2), sign
    integer(int64) :: seed, points_before
    logical :: largest
    associate (m => levels(top)%m)
      allocate (random_field(m(1), m(2), m(3)))
      do k = 1, m(3)
        do j = 1, m(2)
          points_before = ((place(3) * m(3) + k - 1) * int(n, int64) + place(2) * m(2) + j - 1) * n &
                          + place(1) * m(1)
          seed = 314159265
          call jump(seed, multiplier, points_before)
          do i = 1, m(1)
            random_field(i, j, k) = random(seed, multiplier)
          end do
        end do
      end do
      ! The candidates of each rank: a number that was taken is put into the middle.
      do i = 1, 2 * charges
        at = merge(maxloc(random_field), minloc(random_field), i <= charges)
        value(i, rank + 1) = random_field(at(1), at(2), at(3))
        where_is(:, i, rank + 1) = at
        random_field(at(1), at(2), at(3)) = 0.5d0
      end do
      call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, value, 2 * charges, MPI_DOUBLE_PRECISION, comm)
      v = 0
      do i = 1, 2 * charges
        largest = i <= charges
        sign = merge(1, -1, largest)
        found = merge(maxloc(value), minloc(value), largest)
        value(found(1), found(2)) = 0.5d0
        if (found(2) /= rank + 1) cycle
        at = where_is(:, found(1), rank + 1)
        v(at(1), at(2), at(3)) = sign
      end do
    end associate
  end subroutine

  real(dp) function norm_of(r, m)
    integer, intent(in) :: m(3)
    real(dp), intent(in) :: r(0:m(1)+1, 0:m(2)+1, 0:m(3)+1)
    real(dp) :: total(1)
    total = total_of([sum(r(1:m(1), 1:m(2), 1:m(3))**2)])
    norm_of = sqrt(total(1) / real(n, dp)**3)
  end function

  ! ---------------------------------------------------------------- the cycle

  ! u <- u + (what the residual r asks for)
  subroutine v_cycle()
    integer :: level
    do level = top, 2, -1
      call restrict_to(levels(level - 1), levels(level)%r, levels(level)%m)
    end do
    levels(1)%u = 0
    call smooth(levels(1))
    do level = 2, top
      associate (l => levels(level))
        if (level < top) l%u = 0
        call interpolate(l%u, l%m, levels(level - 1)%u, levels(level - 1)%m)
        if (level < top) then
          call residual(l)
        else
          call residual(l, v)
        end if
        call smooth(l)
      end associate
    end do
  end subroutine

  ! The sums of the neighbours at distances 1, sqrt(2) and sqrt(3), with weights.
  pure real(dp) function weighted(w, u)
    real(dp), intent(in) :: w(0:3), u(-1:1, -1:1, -1:1)
    weighted = w(0) * u(0, 0, 0) &
      + w(1) * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0) + u(0, 0, -1) + u(0, 0, 1)) &
      + w(2) * (u(-1, -1, 0) + u(1, -1, 0) + u(-1, 1, 0) + u(1, 1, 0) &
                + u(0, -1, -1) + u(0, 1, -1) + u(0, -1, 1) + u(0, 1, 1) &
                + u(-1, 0, -1) + u(-1, 0, 1) + u(1, 0, -1) + u(1, 0, 1))
    if (w(3) /= 0) weighted = weighted + w(3) * (u(-1, -1, -1) + u(1, -1, -1) + u(-1, 1, -1) + u(1, 1, -1) &
                                                 + u(-1, -1, 1) + u(1, -1, 1) + u(-1, 1, 1) + u(1, 1, 1))
  end function

  ! r = right - A u, or r - A u.
  subroutine residual(l, right)
    type(grid), intent(inout) :: l
    real(dp), intent(in), optional :: right(0:l%m(1)+1, 0:l%m(2)+1, 0:l%m(3)+1)
    integer :: i, j, k
    if (present(right)) l%r = right
    do k = 1, l%m(3)
      do j = 1, l%m(2)
        do i = 1, l%m(1)
          l%r(i, j, k) = l%r(i, j, k) - weighted(a, l%u(i-1:i+1, j-1:j+1, k-1:k+1))
        end do
      end do
    end do
    call exchange_borders(l%r, l%m)
  end subroutine

  ! u <- u + S r
  subroutine smooth(l)
    type(grid), intent(inout) :: l
    integer :: i, j, k
    do k = 1, l%m(3)
      do j = 1, l%m(2)
        do i = 1, l%m(1)
          l%u(i, j, k) = l%u(i, j, k) + weighted(c, l%r(i-1:i+1, j-1:j+1, k-1:k+1))
        end do
      end do
    end do
    call exchange_borders(l%u, l%m)
  end subroutine

  subroutine restrict_to(coarse, r, m)
    type(grid), intent(inout) :: coarse
    integer, intent(in) :: m(3)
    real(dp), intent(in) :: r(0:m(1)+1, 0:m(2)+1, 0:m(3)+1)
    real(dp), parameter :: halves(0:3) = [1d0 / 2, 1d0 / 4, 1d0 / 8, 1d0 / 16]
    integer :: i, j, k
    do k = 1, coarse%m(3)
      do j = 1, coarse%m(2)
        do i = 1, coarse%m(1)
          coarse%r(i, j, k) = weighted(halves, r(2*i-1:2*i+1, 2*j-1:2*j+1, 2*k-1:2*k+1))
        end do
      end do
    end do
    call exchange_borders(coarse%r, coarse%m)
  end subroutine

  ! u <- u + the coarse one between its points, also on the borders
  subroutine interpolate(u, m, coarse, mc)
    integer, intent(in) :: m(3), mc(3)
    real(dp), intent(inout) :: u(0:m(1)+1, 0:m(2)+1, 0:m(3)+1)
    real(dp), intent(in) :: coarse(0:mc(1)+1, 0:mc(2)+1, 0:mc(3)+1)
    integer :: i, j, k
    do k = 0, m(3) + 1
      do j = 0, m(2) + 1
        do i = 0, m(1) + 1
          u(i, j, k) = u(i, j, k) &
            + sum(coarse(i/2:(i+1)/2, j/2:(j+1)/2, k/2:(k+1)/2)) / (2**(mod(i, 2) + mod(j, 2) + mod(k, 2)))
        end do
      end do
    end do
  end subroutine

  ! ---------------------------------------------------------------- the borders

  subroutine exchange_borders(u, m)
    integer, intent(in) :: m(3)
    real(dp), intent(inout) :: u(0:m(1)+1, 0:m(2)+1, 0:m(3)+1)
    type(MPI_Request) :: requests(-1:1)
    integer :: axis, side, l(3), h(3), n_values, tag
    do axis = 1, 3
      l = merge(0, 1, [1, 2, 3] < axis)
      h = m + merge(1, 0, [1, 2, 3] < axis)
      l(axis) = 1
      h(axis) = 1
      n_values = product(h - l + 1)
      if (ranks > 1) then
        do side = -1, 1, 2
          ! What comes from this side was sent to the other.
          call start_receive(incoming(:, side), n_values, MPI_ANY_SOURCE, 10 * axis - side, requests(side))
        end do
      end if
      do side = 1, -1, -2
        l(axis) = merge(m(axis), 1, side == 1)
        h(axis) = l(axis)
        tag = 10 * axis + side
        outgoing(:n_values) = reshape(u(l(1):h(1), l(2):h(2), l(3):h(3)), [n_values])
        if (ranks > 1) then
          call send(outgoing, n_values, neighbour(axis, side), tag)
        else
          incoming(:n_values, -side) = outgoing(:n_values)
        end if
      end do
      do side = -1, 1, 2
        if (ranks > 1) call wait_for(requests(side:side))
        call spoil(incoming(1, side))
        l(axis) = merge(m(axis) + 1, 0, side == 1)
        h(axis) = l(axis)
        u(l(1):h(1), l(2):h(2), l(3):h(3)) = reshape(incoming(:n_values, side), h - l + 1)
      end do
    end do
  end subroutine

  integer function neighbour(axis, side)
    integer, intent(in) :: axis, side
    integer :: there(3)
    there = place
    there(axis) = modulo(place(axis) + side, across(axis))
    neighbour = there(1) + across(1) * (there(2) + across(2) * there(3))
  end function
end program
