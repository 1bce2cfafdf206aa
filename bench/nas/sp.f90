! SPDX-License-Identifier: BSD-3-Clause
! SP: factors of one axis each, each turned into five systems of scalar equations with five diagonals
! (equations.f90, multipartition.f90).
!
! Messages (NPB's): along each axis, for each stage but the last, forwards 22 values a line (the upper
! two diagonals and the right side of two points: three systems have the diagonals in common) and
! backwards 10 (the solution at two points), sent and received without blocking. The coefficients of a
! cell are made while its message is under way.
module sp_sweeps
  use multipartition
  implicit none
  private
  public :: advance, dt
  ! upper(1:2, which, i, j, k, cell): what elimination leaves right of the diagonal, for the systems of
  ! the stream, of the sound before it and of the sound behind it.
  real(dp), allocatable :: upper(:, :, :, :, :, :)
  real(dp), allocatable :: diagonals(:, :, :, :, :)
  ! Of each line: two points, forwards six of `upper` and five of the right side, backwards the solution.
  real(dp), allocatable, asynchronous :: forth_out(:, :, :), forth_in(:, :, :)
  real(dp), allocatable, asynchronous :: back_out(:, :, :), back_in(:, :, :)
  real(dp) :: dt

contains

  ! rhs becomes the change of u.
  subroutine advance()
    integer :: axis
    if (allocated(upper)) then
      if (size(upper, 3) /= m) deallocate (upper, diagonals, forth_out, forth_in, back_out, back_in)
    end if
    if (.not. allocated(upper)) then
      allocate (upper(2, 3, m, m, m, 0:q-1), diagonals(5, 3, m, m, m))
      allocate (forth_out(11, 2, m * m), forth_in(11, 2, m * m), back_out(5, 2, m * m), back_in(5, 2, m * m))
    end if
    do axis = 1, 3
      call solve_axis(axis)
    end do
  end subroutine

  subroutine solve_axis(axis)
    integer, intent(in) :: axis
    type(MPI_Request) :: requests(2)
    integer :: stage, cell, first(3), end(3), lines
    requests = MPI_REQUEST_NULL
    do stage = 0, q - 1
      cell = slice(axis, stage)
      call lines_of(axis, cell, first, end, lines)
      if (stage > 0) call start_receive(forth_in, 22 * lines, previous(axis), axis, requests(1))
      call make_diagonals(axis, cell, first, end)
      call turn(axis, cell)
      call wait_for(requests)
      call forwards(axis, cell, first, end, stage > 0, stage < q - 1)
      if (stage < q - 1) call start_send(forth_out, 22 * lines, next(axis), axis, requests(2))
    end do
    do stage = q - 1, 0, -1
      cell = slice(axis, stage)
      call lines_of(axis, cell, first, end, lines)
      if (stage < q - 1) then
        call start_receive(back_in, 10 * lines, next(axis), axis + 3, requests(1))
        call turn(axis, slice(axis, stage + 1))
      end if
      call wait_for(requests)
      call backwards(axis, cell, first, end, stage < q - 1, stage > 0)
      if (stage > 0) call start_send(back_out, 10 * lines, previous(axis), axis + 3, requests(2))
    end do
    call wait_for(requests)
    call turn(axis, slice(axis, 0))
  end subroutine

  ! To pressure +- velocity and back: its own inverse.
  subroutine turn(axis, cell)
    integer, intent(in) :: axis, cell
    real(dp) :: p(m, m, m)
    p = rhs(1, :, :, :, cell)
    rhs(1, :, :, :, cell) = (p + rhs(1 + axis, :, :, :, cell)) * sqrt(0.5d0)
    rhs(1 + axis, :, :, :, cell) = (p - rhs(1 + axis, :, :, :, cell)) * sqrt(0.5d0)
  end subroutine

  ! Which of the three systems a quantity has.
  pure integer function system_of(quantity, axis)
    integer, intent(in) :: quantity, axis
    system_of = merge(2, merge(3, 1, quantity == 1 + axis), quantity == 1)
  end function

  ! Of 1 + dt (the terms of one axis), for each of the three speeds.
  subroutine make_diagonals(axis, cell, first, end)
    integer, intent(in) :: axis, cell, first(3), end(3)
    real(dp) :: speeds(3)
    real(dp) :: diffusion
    integer :: i, j, k, at(3), last_of(3), s, place_on_axis
    diffusion = viscosity / h**2
    last_of = end
    last_of(axis) = m
    do k = first(3), last_of(3)
      do j = first(2), last_of(2)
        do i = first(1), last_of(1)
          at = low(cell) + [i, j, k] - 1
          place_on_axis = at(axis)
          diagonals(:, :, i, j, k) = 0
          diagonals(3, :, i, j, k) = 1
          if (.not. inside(place_on_axis)) cycle
          speeds = speed(axis, u(:, i, j, k, cell)) + [0d0, sound, -sound]
          do s = 1, 3
            associate (d => diagonals(:, s, i, j, k))
              d(2) = -dt * (speeds(s) / (2 * h) + diffusion)
              d(4) = dt * (speeds(s) / (2 * h) - diffusion)
              d(3) = 1 + 2 * dt * diffusion
              d(2:4) = d(2:4) + dt * 2 * smoothing * [-1, 2, -1]
              if (place_on_axis > 1) d(1:3) = d(1:3) + dt * smoothing * [1, -2, 1]
              if (place_on_axis < points - 2) d(3:5) = d(3:5) + dt * smoothing * [1, -2, 1]
            end associate
          end do
        end do
      end do
    end do
  end subroutine

  ! ---------------------------------------------------------------- the lines of a cell

  subroutine forwards(axis, cell, first, end, comes, goes)
    integer, intent(in) :: axis, cell, first(3), end(3)
    logical, intent(in) :: comes, goes
    real(dp) :: above(2, 3, -1:m), right(5, -1:m)
    integer :: i, j, k, line
    above = 0
    right = 0
    line = 0
    do k = first(3), end(3)
      do j = first(2), end(2)
        do i = first(1), end(1)
          line = line + 1
          if (comes) then
            if (line == 1) call spoil(forth_in(7, 1, 1))
            above(:, :, -1:0) = reshape(forth_in(1:6, :, line), [2, 3, 2])
            right(:, -1:0) = forth_in(7:, :, line)
          end if
          call eliminate_line(axis, cell, [i, j, k], above, right)
          if (goes) then
            forth_out(1:6, :, line) = reshape(above(:, :, m-1:m), [6, 2])
            forth_out(7:, :, line) = right(:, m-1:m)
          end if
        end do
      end do
    end do
  end subroutine

  subroutine backwards(axis, cell, first, end, comes, goes)
    integer, intent(in) :: axis, cell, first(3), end(3)
    logical, intent(in) :: comes, goes
    real(dp) :: x(5, m + 2)
    integer :: i, j, k, line
    x = 0
    line = 0
    do k = first(3), end(3)
      do j = first(2), end(2)
        do i = first(1), end(1)
          line = line + 1
          if (comes) x(:, m+1:m+2) = back_in(:, :, line)
          call substitute_line(axis, cell, [i, j, k], x)
          if (goes) back_out(:, :, line) = x(:, 1:2)
        end do
      end do
    end do
  end subroutine

  subroutine eliminate_line(axis, cell, start, above, right)
    integer, intent(in) :: axis, cell, start(3)
    real(dp), intent(inout) :: above(2, 3, -1:m), right(5, -1:m)
    real(dp) :: factor, lower(3), pivot(3)
    integer :: n, at(3), s, quantity
    at = start
    do n = 1, m
      at(axis) = n
      associate (d => diagonals(:, :, at(1), at(2), at(3)))
        do s = 1, 3
          factor = d(1, s)
          lower(s) = d(2, s) - factor * above(1, s, n - 2)
          pivot(s) = 1 / (d(3, s) - factor * above(2, s, n - 2) - lower(s) * above(1, s, n - 1))
          above(1, s, n) = (d(4, s) - lower(s) * above(2, s, n - 1)) * pivot(s)
          above(2, s, n) = d(5, s) * pivot(s)
        end do
        do quantity = 1, 5
          s = system_of(quantity, axis)
          right(quantity, n) = (rhs(quantity, at(1), at(2), at(3), cell) - d(1, s) * right(quantity, n - 2) &
                                - lower(s) * right(quantity, n - 1)) * pivot(s)
        end do
      end associate
      upper(:, :, at(1), at(2), at(3), cell) = above(:, :, n)
      rhs(:, at(1), at(2), at(3), cell) = right(:, n)
    end do
  end subroutine

  subroutine substitute_line(axis, cell, start, x)
    integer, intent(in) :: axis, cell, start(3)
    real(dp), intent(inout) :: x(5, m + 2)
    integer :: n, at(3), s, quantity
    at = start
    do n = m, 1, -1
      at(axis) = n
      do quantity = 1, 5
        s = system_of(quantity, axis)
        x(quantity, n) = rhs(quantity, at(1), at(2), at(3), cell) &
          - upper(1, s, at(1), at(2), at(3), cell) * x(quantity, n + 1) &
          - upper(2, s, at(1), at(2), at(3), cell) * x(quantity, n + 2)
      end do
      rhs(:, at(1), at(2), at(3), cell) = x(:, n)
    end do
  end subroutine
end module

program sp
  use sp_sweeps
  use multipartition
  implicit none
  integer :: last

  call begin('SP')
  call set_points(merge(12, merge(36, 64, class == 'W'), class == 'S'))
  dt = merge(0.05d0, 0.02d0, class == 'S')
  last = merge(100, 400, class == 'S')
  if (iterations > 0) last = iterations
  call run(last, dt, advance)
end program
