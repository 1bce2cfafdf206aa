! SPDX-License-Identifier: BSD-3-Clause
! LU: symmetric successive over-relaxation (equations.f90). The grid is cut along x and y. The lower
! triangle is solved plane by plane in z, so that a wave runs through the ranks, and the upper one back.
!
! Messages (NPB's): in each plane and sweep, a blocking receive from the two ranks before, and a blocking
! send to the two behind, of five values for each point of the line between them. After each iteration the
! faces, two points deep, in both directions of x and then y: a receive started (from any source, as in NPB
! 2; NPB 3.4 names the rank), a blocking send, a wait.
program lu
  use nas
  use equations
  implicit none
  real(dp), parameter :: omega = 1.2d0, dt = 0.5d0
  integer, parameter :: lower = -1, upper = 1
  real(dp), allocatable :: u(:, :, :, :), whole(:, :, :, :), v(:, :, :, :), force(:, :, :, :)
  real(dp), allocatable, asynchronous :: outgoing(:), incoming(:)
  integer :: low(3), high(3), before(2), behind(2), last
  real(dp) :: before_error, error, difference
  logical :: verified

  call begin('LU')
  call set_points(merge(12, merge(33, 64, class == 'W'), class == 'S'))
  last = merge(50, merge(300, 250, class == 'W'), class == 'S')
  if (iterations > 0) last = iterations
  verified = .true.
  if (with_serial) then
    call alone()
    call solve()
    call move_alloc(u, whole)
    call everyone()
  end if
  call solve()
  if (with_serial) then
    difference = maxval(abs(u(:, low(1):high(1), low(2):high(2), low(3):high(3)) &
                            - whole(:, low(1):high(1), low(2):high(2), low(3):high(3))))
    call verify(verified, difference < 1d-12, 'the difference to the solution alone', difference, 1d-12)
  end if
  if (iterations == 0) call verify(verified, error < 1d-2 * before_error, 'the error', error, 1d-2 * before_error)
  call finish(verified, last)

contains

  subroutine solve()
    integer :: step
    real(dp) :: residual(5)
    call place_ranks()
    call fill()
    before_error = error_of()
    do step = 0, 1  ! the first is not measured: it touches all memory
      if (step == 1) call fill()
      call right_side()
      if (step == 1) call start_clock()
      call iterate(merge(1, last, step == 0))
    end do
    residual = total_of(sum(sum(sum(v(:, low(1):high(1), low(2):high(2), low(3):high(3))**2, 4), 3), 2))
    call stop_clock()
    error = error_of()
    call verify(verified, all(residual == residual), 'a residual that is a number', residual(1), 0d0)
  end subroutine

  subroutine iterate(times)
    integer, intent(in) :: times
    integer :: step, k
    do step = 1, times
      v = dt * v
      do k = 1, points - 2
        call receive_lines(lower, k)
        call sweep(lower, k)
        call send_lines(lower, k)
      end do
      do k = points - 2, 1, -1
        call receive_lines(upper, k)
        call sweep(upper, k)
        call send_lines(upper, k)
      end do
      u(:, low(1):high(1), low(2):high(2), low(3):high(3)) &
        = u(:, low(1):high(1), low(2):high(2), low(3):high(3)) &
          + v(:, low(1):high(1), low(2):high(2), low(3):high(3)) / (omega * (2 - omega))
      call right_side()
    end do
  end subroutine

  subroutine place_ranks()
    integer :: across(2), place(2), axis, part, more
    across(1) = 1
    do while (4 * across(1)**2 <= ranks)
      across(1) = 2 * across(1)
    end do
    across(2) = ranks / across(1)
    if (product(across) /= ranks .or. popcnt(ranks) /= 1 .or. across(2) > points / 3) &
      call refuse('needed a power of two of ranks, each with three points or more along an axis')
    place = [mod(rank, across(1)), rank / across(1)]
    low(3) = 0
    high(3) = points - 1
    do axis = 1, 2
      part = points / across(axis)
      more = mod(points, across(axis))
      low(axis) = place(axis) * part + min(place(axis), more)
      high(axis) = low(axis) + part - 1 + merge(1, 0, place(axis) < more)
      before(axis) = rank - merge(1, across(1), axis == 1)
      behind(axis) = rank + merge(1, across(1), axis == 1)
      if (place(axis) == 0) before(axis) = MPI_PROC_NULL
      if (place(axis) == across(axis) - 1) behind(axis) = MPI_PROC_NULL
    end do
    if (allocated(v)) deallocate (v, force, outgoing, incoming)
    if (allocated(u)) deallocate (u)
    allocate (u(5, low(1)-2:high(1)+2, low(2)-2:high(2)+2, low(3)-2:high(3)+2))
    allocate (v(5, low(1)-1:high(1)+1, low(2)-1:high(2)+1, low(3):high(3)), source=0d0)
    allocate (force(5, low(1):high(1), low(2):high(2), low(3):high(3)))
    allocate (outgoing(10 * maxval(high(:2) - low(:2) + 1) * points))
    allocate (incoming(size(outgoing)))
  end subroutine

  subroutine fill()
    integer :: i, j, k
    do k = low(3) - 2, high(3) + 2
      do j = low(2) - 2, high(2) + 2
        do i = low(1) - 2, high(1) + 2
          u(:, i, j, k) = exact(i, j, k)
        end do
      end do
    end do
    call apply(u, low, high, force)
    do k = low(3), high(3)
      do j = low(2), high(2)
        do i = low(1), high(1)
          u(:, i, j, k) = first_guess(i, j, k)
        end do
      end do
    end do
    v = 0
  end subroutine

  real(dp) function error_of()
    integer :: i, j, k
    real(dp) :: total(1)
    total = 0
    do k = low(3), high(3)
      do j = low(2), high(2)
        do i = low(1), high(1)
          total = total + sum((u(:, i, j, k) - exact(i, j, k))**2)
        end do
      end do
    end do
    total = total_of(total)
    error_of = sqrt(total(1) / (5 * real(points, dp)**3))
  end function

  ! v = force - H(u), after the faces have come.
  subroutine right_side()
    call exchange_faces(1)
    call exchange_faces(2)
    call apply(u, low, high, v(:, low(1):high(1), low(2):high(2), low(3):high(3)))
    v(:, low(1):high(1), low(2):high(2), low(3):high(3)) &
      = force - v(:, low(1):high(1), low(2):high(2), low(3):high(3))
  end subroutine

  ! ---------------------------------------------------------------- the sweeps

  ! One plane of a triangle.
  subroutine sweep(triangle, k)
    integer, intent(in) :: triangle, k
    integer :: i, j, first(2), end(2), m
    real(dp) :: sum(5), d(5, 5), b(5, 1)
    first = max(low(:2), 1)
    end = min(high(:2), points - 2)
    if (triangle == upper) then
      first = end
      end = max(low(:2), 1)
    end if
    do j = first(2), end(2), -triangle
      do i = first(1), end(1), -triangle
        associate (here => u(:, i, j, k))
          sum = coupled(1, triangle, here, v(:, i + triangle, j, k)) &
            + coupled(2, triangle, here, v(:, i, j + triangle, k)) &
            + coupled(3, triangle, here, v(:, i, j, k + triangle))
          d = dt * reaction(here)
          do m = 1, 5
            d(m, m) = d(m, m) + 1 + dt * 6 * viscosity / h**2
          end do
          b(:, 1) = -omega * dt * sum
          if (triangle == lower) b(:, 1) = b(:, 1) + v(:, i, j, k)
          call eliminate(d, b)
          v(:, i, j, k) = b(:, 1) + merge(v(:, i, j, k), 0d0, triangle == upper)
        end associate
      end do
    end do
  end subroutine

  subroutine receive_lines(triangle, k)
    integer, intent(in) :: triangle, k
    integer :: l(2), h(2)
    l = max(low(:2), 1)
    h = min(high(:2), points - 2)
    associate (from => merge(before, behind, triangle == lower), &
               i => merge(low(1), high(1), triangle == lower) + triangle, &
               j => merge(low(2), high(2), triangle == lower) + triangle)
      if (from(1) /= MPI_PROC_NULL) then
        call receive(incoming, 5 * (h(2) - l(2) + 1), from(1), 1)
        call spoil(incoming(1))
        v(:, i, l(2):h(2), k) = reshape(incoming, [5, h(2) - l(2) + 1])
      end if
      if (from(2) /= MPI_PROC_NULL) then
        call receive(incoming, 5 * (h(1) - l(1) + 1), from(2), 2)
        v(:, l(1):h(1), j, k) = reshape(incoming, [5, h(1) - l(1) + 1])
      end if
    end associate
  end subroutine

  subroutine send_lines(triangle, k)
    integer, intent(in) :: triangle, k
    integer :: l(2), h(2), n
    l = max(low(:2), 1)
    h = min(high(:2), points - 2)
    associate (to => merge(behind, before, triangle == lower), &
               i => merge(high(1), low(1), triangle == lower), j => merge(high(2), low(2), triangle == lower))
      n = 5 * (h(2) - l(2) + 1)
      if (to(1) /= MPI_PROC_NULL) then
        outgoing(:n) = reshape(v(:, i, l(2):h(2), k), [n])
        call send(outgoing, n, to(1), 1)
      end if
      n = 5 * (h(1) - l(1) + 1)
      if (to(2) /= MPI_PROC_NULL) then
        outgoing(:n) = reshape(v(:, l(1):h(1), j, k), [n])
        call send(outgoing, n, to(2), 2)
      end if
    end associate
  end subroutine

  ! ---------------------------------------------------------------- the faces

  ! First towards behind, then towards before.
  subroutine exchange_faces(axis)
    integer, intent(in) :: axis
    call shift(axis, behind(axis), before(axis), high(axis) - 1, low(axis) - 2, 2 * axis + 1)
    call shift(axis, before(axis), behind(axis), low(axis), high(axis) + 1, 2 * axis + 2)
  end subroutine

  ! Two layers of points from `first` on go to `to`; those from `from` come to `halo` on.
  subroutine shift(axis, to, from, first, halo, tag)
    integer, intent(in) :: axis, to, from, first, halo, tag
    type(MPI_Request) :: request(1)
    integer :: l(3), h(3), n
    l = low
    h = high
    h(axis) = low(axis) + 1
    n = 5 * product(h - l + 1)
    if (from /= MPI_PROC_NULL) call start_receive(incoming, n, MPI_ANY_SOURCE, tag, request(1))
    if (to /= MPI_PROC_NULL) then
      l(axis) = first
      h(axis) = first + 1
      outgoing(:n) = reshape(u(:, l(1):h(1), l(2):h(2), l(3):h(3)), [n])
      call send(outgoing, n, to, tag)
    end if
    if (from /= MPI_PROC_NULL) then
      call wait_for(request)
      l(axis) = halo
      h(axis) = halo + 1
      u(:, l(1):h(1), l(2):h(2), l(3):h(3)) = reshape(incoming, [5, h(1)-l(1)+1, h(2)-l(2)+1, h(3)-l(3)+1])
    end if
  end subroutine
end program
