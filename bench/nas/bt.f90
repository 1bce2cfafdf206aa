! SPDX-License-Identifier: BSD-3-Clause
! BT: factors of one axis each, systems of equations with three diagonals of 5 x 5 blocks
! (equations.f90, multipartition.f90).
!
! Messages (NPB's): along each axis, for each stage but the last, forwards 30 values a line (a block and
! the right side) and backwards 5 (the solution), sent and received without blocking; as many lines as
! (points of a cell + 1)^2, as NPB's buffers are that much larger than cells. The blocks of a cell are
! made while its message is under way.
module bt_sweeps
  use multipartition
  implicit none
  private
  public :: advance, dt
  real(dp), allocatable :: lower(:, :, :, :, :), diagonal(:, :, :, :, :)  ! of one cell
  real(dp), allocatable :: upper(:, :, :, :, :, :)                        ! of all: eliminated
  real(dp), allocatable, asynchronous :: forth_out(:, :), forth_in(:, :), back_out(:, :), back_in(:, :)
  real(dp) :: dt

contains

  ! rhs becomes the change of u.
  subroutine advance()
    integer :: axis
    if (allocated(upper)) then
      if (size(upper, 3) /= m) deallocate (upper, lower, diagonal, forth_out, forth_in, back_out, back_in)
    end if
    if (.not. allocated(upper)) then
      allocate (upper(5, 5, m, m, m, 0:q-1), lower(5, 5, m, m, m), diagonal(5, 5, m, m, m))
      allocate (forth_out(30, (m + 1)**2), forth_in(30, (m + 1)**2), source=0d0)
      allocate (back_out(5, (m + 1)**2), back_in(5, (m + 1)**2), source=0d0)
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
      if (stage > 0) call start_receive(forth_in, size(forth_in), previous(axis), axis, requests(1))
      call make_blocks(axis, cell, first, end)
      call wait_for(requests)
      call forwards(axis, cell, first, end, stage > 0, stage < q - 1)
      if (stage < q - 1) call start_send(forth_out, size(forth_out), next(axis), axis, requests(2))
    end do
    do stage = q - 1, 0, -1
      cell = slice(axis, stage)
      call lines_of(axis, cell, first, end, lines)
      if (stage < q - 1) call start_receive(back_in, size(back_in), next(axis), axis + 3, requests(1))
      call wait_for(requests)
      call backwards(axis, cell, first, end, stage < q - 1, stage > 0)
      if (stage > 0) call start_send(back_out, size(back_out), previous(axis), axis + 3, requests(2))
    end do
    call wait_for(requests)
  end subroutine

  ! Of 1 + dt (the terms of one axis, and a third of the coupling).
  subroutine make_blocks(axis, cell, first, end)
    integer, intent(in) :: axis, cell, first(3), end(3)
    integer :: i, j, k, at(3), last_of(3)
    last_of = end
    last_of(axis) = m
    do k = first(3), last_of(3)
      do j = first(2), last_of(2)
        do i = first(1), last_of(1)
          at = low(cell) + [i, j, k] - 1
          lower(:, :, i, j, k) = 0
          upper(:, :, i, j, k, cell) = 0
          diagonal(:, :, i, j, k) = identity()
          if (.not. inside(at(axis))) cycle
          associate (here => u(:, i, j, k, cell))
            lower(:, :, i, j, k) = dt * coupling(axis, -1, here)
            upper(:, :, i, j, k, cell) = dt * coupling(axis, 1, here)
            diagonal(:, :, i, j, k) = (1 + 2 * dt * viscosity / h**2) * identity() + dt / 3 * reaction(here)
          end associate
        end do
      end do
    end do
  end subroutine

  ! ---------------------------------------------------------------- the lines of a cell

  subroutine forwards(axis, cell, first, end, comes, goes)
    integer, intent(in) :: axis, cell, first(3), end(3)
    logical, intent(in) :: comes, goes
    real(dp) :: b(5, 6)  ! of the point before: its upper block and right side, eliminated
    integer :: i, j, k, line
    line = 0
    do k = first(3), end(3)
      do j = first(2), end(2)
        do i = first(1), end(1)
          line = line + 1
          b = 0
          if (comes) then
            if (line == 1) call spoil(forth_in(26, 1))
            b = reshape(forth_in(:, line), [5, 6])
          end if
          call eliminate_line(axis, cell, [i, j, k], b)
          if (goes) forth_out(:, line) = reshape(b, [30])
        end do
      end do
    end do
  end subroutine

  subroutine backwards(axis, cell, first, end, comes, goes)
    integer, intent(in) :: axis, cell, first(3), end(3)
    logical, intent(in) :: comes, goes
    real(dp) :: x(5)
    integer :: i, j, k, line
    line = 0
    do k = first(3), end(3)
      do j = first(2), end(2)
        do i = first(1), end(1)
          line = line + 1
          x = 0
          if (comes) x = back_in(:, line)
          call substitute_line(axis, cell, [i, j, k], x)
          if (goes) back_out(:, line) = x
        end do
      end do
    end do
  end subroutine

  subroutine eliminate_line(axis, cell, start, b)
    integer, intent(in) :: axis, cell, start(3)
    real(dp), intent(inout) :: b(5, 6)
    real(dp) :: d(5, 5)
    integer :: n, at(3)
    at = start
    do n = 1, m
      at(axis) = n
      associate (l => lower(:, :, at(1), at(2), at(3)))
        d = diagonal(:, :, at(1), at(2), at(3)) - matmul(l, b(:, 1:5))
        b(:, 6) = rhs(:, at(1), at(2), at(3), cell) - matmul(l, b(:, 6))
      end associate
      b(:, 1:5) = upper(:, :, at(1), at(2), at(3), cell)
      call eliminate(d, b)
      upper(:, :, at(1), at(2), at(3), cell) = b(:, 1:5)
      rhs(:, at(1), at(2), at(3), cell) = b(:, 6)
    end do
  end subroutine

  subroutine substitute_line(axis, cell, start, x)
    integer, intent(in) :: axis, cell, start(3)
    real(dp), intent(inout) :: x(5)
    integer :: n, at(3)
    at = start
    do n = m, 1, -1
      at(axis) = n
      x = rhs(:, at(1), at(2), at(3), cell) - matmul(upper(:, :, at(1), at(2), at(3), cell), x)
      rhs(:, at(1), at(2), at(3), cell) = x
    end do
  end subroutine
end module

program bt
  use bt_sweeps
  use multipartition
  implicit none
  integer :: last

  call begin('BT')
  call set_points(merge(12, merge(24, 64, class == 'W'), class == 'S'))
  dt = merge(0.05d0, 0.02d0, class == 'S')
  last = merge(60, 200, class == 'S')
  if (iterations > 0) last = iterations
  call run(last, dt, advance)
end program
