! SPDX-License-Identifier: BSD-3-Clause
! The problem of LU, SP and BT: five quantities (pressure, velocity, entropy) in a cube, sound in a
! stream that moves with the velocity, with diffusion and a coupling of all five. A force makes a smooth
! field the exact solution of the difference equations, to which the solvers iterate:
!
!     H(u) = R(u) u + sum over axes of K(u) du/dx - viscosity d2u/dx2 + smoothing D4 u,   H(u) = force
!
! Points have indices 0 to points - 1 along each axis; on the boundary the field is given.
module equations
  use nas, only: dp
  implicit none
  public

  real(dp), parameter :: sound = 1, viscosity = 0.1d0, smoothing = 0.2d0
  real(dp), parameter :: stream(3) = [0.5d0, 0.4d0, 0.3d0]
  integer :: points
  real(dp) :: h

contains

  subroutine set_points(n)
    integer, intent(in) :: n
    points = n
    h = 1d0 / (n - 1)
  end subroutine

  logical function inside(i)
    integer, intent(in) :: i
    inside = i > 0 .and. i < points - 1
  end function

  pure function exact(i, j, k) result(u)
    integer, intent(in) :: i, j, k
    real(dp) :: u(5), x, y, z
    x = h * i
    y = h * j
    z = h * k
    u = [1 + 0.3d0 * sin(2 * x + y) * cos(z), cos(x) * (1 + y * z), sin(y) + 0.5d0 * x * z, &
         0.7d0 * z * z - 0.4d0 * x * y, exp(-x * y) * (1 + z)]
  end function

  ! Where the iteration begins: exact on the boundary only.
  function first_guess(i, j, k) result(u)
    integer, intent(in) :: i, j, k
    real(dp), parameter :: pi = acos(-1d0)
    real(dp) :: u(5)
    u = exact(i, j, k)
    if (inside(i) .and. inside(j) .and. inside(k)) &
      u = u + 0.5d0 * sin(pi * h * i) * sin(pi * h * j) * sin(pi * h * k) * [1d0, -1d0, 0.5d0, 0.7d0, -0.6d0]
  end function

  ! H(u) at the points from low to high, 0 on the boundary; u has two more on each side.
  subroutine apply(u, low, high, result)
    integer, intent(in) :: low(3), high(3)
    real(dp), intent(in) :: u(5, low(1)-2:high(1)+2, low(2)-2:high(2)+2, low(3)-2:high(3)+2)
    real(dp), intent(out) :: result(5, low(1):high(1), low(2):high(2), low(3):high(3))
    integer :: i, j, k
    result = 0
    do k = max(low(3), 1), min(high(3), points - 2)
      do j = max(low(2), 1), min(high(2), points - 2)
        do i = max(low(1), 1), min(high(1), points - 2)
          result(:, i, j, k) = matmul(reaction(u(:, i, j, k)), u(:, i, j, k)) &
            + along(1, i, u(:, i, j, k), u(:, i-2:i+2, j, k)) &
            + along(2, j, u(:, i, j, k), u(:, i, j-2:j+2, k)) &
            + along(3, k, u(:, i, j, k), u(:, i, j, k-2:k+2))
        end do
      end do
    end do
  end subroutine

  ! The terms of one axis at its place i.
  pure function along(axis, i, here, u) result(terms)
    integer, intent(in) :: axis, i
    real(dp), intent(in) :: here(5), u(5, -2:2)
    real(dp) :: terms(5)
    terms = convected(axis, here, u(:, 1) - u(:, -1)) / (2 * h) &
      - (viscosity / h**2 + 2 * smoothing) * curvature(0)
    if (i > 1) terms = terms + smoothing * curvature(-1)
    if (i < points - 2) terms = terms + smoothing * curvature(1)
  contains
    pure function curvature(m)
      integer, intent(in) :: m
      real(dp) :: curvature(5)
      curvature = u(:, m + 1) - 2 * u(:, m) + u(:, m - 1)
    end function
  end function

  ! The speed at which the stream carries all quantities along an axis.
  pure real(dp) function speed(axis, u)
    integer, intent(in) :: axis
    real(dp), intent(in) :: u(5)
    speed = stream(axis) + 0.2d0 * u(1 + axis)
  end function

  ! K(u) v: speeds `speed` three times and `speed` +- sound, these of pressure +- velocity.
  pure function convected(axis, u, v) result(w)
    integer, intent(in) :: axis
    real(dp), intent(in) :: u(5), v(5)
    real(dp) :: w(5)
    w = speed(axis, u) * v
    w(1) = w(1) + sound * v(1 + axis)
    w(1 + axis) = w(1 + axis) + sound * v(1)
  end function

  pure function reaction(u) result(r)
    real(dp), intent(in) :: u(5)
    real(dp) :: r(5, 5)
    integer :: m, l
    do l = 1, 5
      do m = 1, 5
        r(m, l) = 0.2d0 * (1 + 0.1d0 * u(1)) / (1 + abs(m - l))
      end do
    end do
  end function

  ! What the neighbour at i + side has in the equation of i: side K(u)/2h - viscosity/h^2, times v.
  pure function coupled(axis, side, u, v) result(w)
    integer, intent(in) :: axis, side
    real(dp), intent(in) :: u(5), v(5)
    real(dp) :: w(5)
    w = side * convected(axis, u, v) / (2 * h) - viscosity / h**2 * v
  end function

  ! The same as a matrix.
  pure function coupling(axis, side, u) result(a)
    integer, intent(in) :: axis, side
    real(dp), intent(in) :: u(5)
    real(dp) :: a(5, 5), unit(5)
    integer :: m
    do m = 1, 5
      unit = 0
      unit(m) = 1
      a(:, m) = coupled(axis, side, u, unit)
    end do
  end function

  pure function identity() result(a)
    real(dp) :: a(5, 5)
    integer :: m
    a = 0
    do m = 1, 5
      a(m, m) = 1
    end do
  end function

  ! Solves a x = b for each column of b, in place. The diagonal dominates: no pivots.
  pure subroutine eliminate(a, b)
    real(dp), intent(inout) :: a(5, 5), b(:, :)
    integer :: m, l
    do m = 1, 5
      b(m, :) = b(m, :) / a(m, m)
      a(m, m+1:) = a(m, m+1:) / a(m, m)
      do l = 1, 5
        if (l == m) cycle
        b(l, :) = b(l, :) - a(l, m) * b(m, :)
        a(l, m+1:) = a(l, m+1:) - a(l, m) * a(m, m+1:)
      end do
    end do
  end subroutine
end module
