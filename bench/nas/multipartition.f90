! SPDX-License-Identifier: BSD-3-Clause
! What SP and BT share: the multipartition of the cube on q x q ranks. It is cut into q^3 cells; a rank
! has q of them on a diagonal, so that in each of the q slices across any axis it has one, and in every
! stage of a sweep along any axis all ranks work.
!
! Messages (NPB's): copy_faces, once an iteration: the faces, two points deep, of all cells that have a
! neighbour on a side go as one message a side, six in all, started together and waited for together.
module multipartition
  use nas
  use equations
  implicit none
  public

  integer :: q, m                        ! cells along an axis, and points of a cell along each
  integer, allocatable :: place(:, :)    ! place(:, cell): where a cell is, from 0 to q - 1
  integer, allocatable :: slice(:, :)    ! slice(axis, at): the cell of this rank with place(axis) = at
  integer :: previous(3), next(3)        ! the ranks with the cells before and behind, along each axis
  ! u(:, i, j, k, cell): the fields, with two more points on each side; rhs the same without.
  real(dp), allocatable :: u(:, :, :, :, :), rhs(:, :, :, :, :), force(:, :, :, :, :)
  real(dp), allocatable, private, asynchronous :: outgoing(:, :), incoming(:, :)

contains

  subroutine place_cells()
    integer :: row, column, cell, axis
    q = nint(sqrt(real(ranks)))
    if (q * q /= ranks .or. mod(points, q) /= 0 .or. points / q < 3) &
      call refuse('needed a square number of ranks whose root divides the points, three or more for a cell')
    m = points / q
    row = mod(rank, q)
    column = rank / q
    if (allocated(place)) deallocate (place, slice, u, rhs, force, outgoing, incoming)
    allocate (place(3, 0:q-1), slice(3, 0:q-1))
    do cell = 0, q - 1
      place(:, cell) = [modulo(row + cell, q), modulo(column - cell, q), cell]
      do axis = 1, 3
        slice(axis, place(axis, cell)) = cell
      end do
    end do
    next = [at(row + 1, column), at(row, column + 1), at(row - 1, column + 1)]
    previous = [at(row - 1, column), at(row, column - 1), at(row + 1, column - 1)]
    allocate (u(5, -1:m+2, -1:m+2, -1:m+2, 0:q-1))
    allocate (rhs(5, m, m, m, 0:q-1), force(5, m, m, m, 0:q-1))
    allocate (outgoing(10 * m * m * max(1, q - 1), 6), incoming(10 * m * m * max(1, q - 1), 6))
  contains
    integer function at(i, j)
      integer, intent(in) :: i, j
      at = modulo(i, q) + q * modulo(j, q)
    end function
  end subroutine

  ! The index in the whole grid of point 1 of a cell.
  pure function low(cell)
    integer, intent(in) :: cell
    integer :: low(3)
    low = place(:, cell) * m
  end function

  ! The lines along an axis that are inside the cube, whole.
  subroutine lines_of(axis, cell, first, end, lines)
    integer, intent(in) :: axis, cell
    integer, intent(out) :: first(3), end(3), lines
    first = merge(2, 1, place(:, cell) == 0)
    end = merge(m - 1, m, place(:, cell) == q - 1)
    first(axis) = 1
    end(axis) = 1
    lines = product(end - first + 1)
  end subroutine

  subroutine fill()
    integer :: cell, i, j, k, l(3)
    do cell = 0, q - 1
      l = low(cell) - 1
      do k = -1, m + 2
        do j = -1, m + 2
          do i = -1, m + 2
            u(:, i, j, k, cell) = exact(l(1) + i, l(2) + j, l(3) + k)
          end do
        end do
      end do
      call apply(u(:, :, :, :, cell), low(cell), low(cell) + m - 1, force(:, :, :, :, cell))
      do k = 1, m
        do j = 1, m
          do i = 1, m
            u(:, i, j, k, cell) = first_guess(l(1) + i, l(2) + j, l(3) + k)
          end do
        end do
      end do
    end do
  end subroutine

  ! rhs = dt (force - H(u)), after the faces have come.
  subroutine right_side(dt)
    real(dp), intent(in) :: dt
    integer :: cell
    call copy_faces()
    do cell = 0, q - 1
      call apply(u(:, :, :, :, cell), low(cell), low(cell) + m - 1, rhs(:, :, :, :, cell))
    end do
    rhs = dt * (force - rhs)
  end subroutine

  subroutine add()
    u(:, 1:m, 1:m, 1:m, :) = u(:, 1:m, 1:m, 1:m, :) + rhs
  end subroutine

  subroutine copy_faces()
    type(MPI_Request) :: requests(12)
    integer :: axis, cell, n, side, first, l(3), h(3), at
    if (ranks == 1) return
    n = 10 * m * m * (q - 1)
    do axis = 1, 3
      call start_receive(incoming(:, axis), n, previous(axis), axis, requests(axis))
      call start_receive(incoming(:, axis + 3), n, next(axis), axis + 3, requests(axis + 3))
    end do
    do axis = 1, 3
      do side = 0, 1  ! towards the next, towards the previous
        at = 0
        do cell = 0, q - 1
          if (place(axis, cell) == merge(q - 1, 0, side == 0)) cycle
          first = merge(m - 1, 1, side == 0)
          call face(axis, first, l, h)
          outgoing(at+1:at+10*m*m, axis + 3 * side) &
            = reshape(u(:, l(1):h(1), l(2):h(2), l(3):h(3), cell), [10 * m * m])
          at = at + 10 * m * m
        end do
        call start_send(outgoing(:, axis + 3 * side), n, merge(next(axis), previous(axis), side == 0), &
                        axis + 3 * side, requests(6 + axis + 3 * side))
      end do
    end do
    call wait_for(requests)
    call spoil(incoming(n / 2, 1))
    do axis = 1, 3
      do side = 0, 1  ! from the previous, from the next
        at = 0
        ! The neighbour's cells come in its order along z, which is that of mine beside them.
        do cell = 0, q - 1
          if (place(axis, cell) == merge(0, q - 1, side == 0)) cycle
          call face(axis, merge(-1, m + 1, side == 0), l, h)
          u(:, l(1):h(1), l(2):h(2), l(3):h(3), cell) &
            = reshape(incoming(at+1:at+10*m*m, axis + 3 * side), [5, h(1)-l(1)+1, h(2)-l(2)+1, h(3)-l(3)+1])
          at = at + 10 * m * m
        end do
      end do
    end do
  end subroutine

  ! The places of two layers across an axis.
  subroutine face(axis, first, l, h)
    integer, intent(in) :: axis, first
    integer, intent(out) :: l(3), h(3)
    l = 1
    h = m
    l(axis) = first
    h(axis) = first + 1
  end subroutine

  ! ---------------------------------------------------------------- verification

  real(dp) function error_of()
    integer :: cell, i, j, k, l(3)
    real(dp) :: total(1)
    total = 0
    do cell = 0, q - 1
      l = low(cell) - 1
      do k = 1, m
        do j = 1, m
          do i = 1, m
            total = total + sum((u(:, i, j, k, cell) - exact(l(1) + i, l(2) + j, l(3) + k))**2)
          end do
        end do
      end do
    end do
    total = total_of(total)
    error_of = sqrt(total(1) / (5 * real(points, dp)**3))
  end function

  ! To the solution that this rank has found alone.
  real(dp) function difference_to(whole)
    real(dp), intent(in) :: whole(:, :, :, :)
    integer :: cell, l(3)
    difference_to = 0
    do cell = 0, q - 1
      l = low(cell)
      difference_to = max(difference_to, maxval(abs(u(:, 1:m, 1:m, 1:m, cell) &
        - whole(:, l(1)+1:l(1)+m, l(2)+1:l(2)+m, l(3)+1:l(3)+m))))
    end do
  end function

  ! Solves the problem as often as is asked, alone and together, verifies, and reports.
  subroutine run(last, dt, advance)
    integer, intent(in) :: last
    real(dp), intent(in) :: dt
    interface
      subroutine advance()  ! rhs becomes the change of u
      end subroutine
    end interface
    real(dp), allocatable :: whole(:, :, :, :)
    real(dp) :: before, error, difference
    logical :: verified
    verified = .true.
    if (with_serial) then
      call alone()
      call solve()
      whole = u(:, 1:m, 1:m, 1:m, 0)
      call everyone()
    end if
    call solve()
    if (with_serial) then
      difference = difference_to(whole)
      call verify(verified, difference < 1d-12, 'the difference to the solution alone', difference, 1d-12)
    end if
    if (iterations == 0) call verify(verified, error < 1d-2 * before, 'the error', error, 1d-2 * before)
    call finish(verified, last)
  contains
    subroutine solve()
      integer :: step
      call place_cells()
      call fill()
      before = error_of()
      do step = 0, last  ! the first is not measured: it touches all memory
        if (step == 1) then
          call fill()
          call start_clock()
        end if
        call right_side(dt)
        call advance()
        call add()
      end do
      call stop_clock()
      error = error_of()
    end subroutine
  end subroutine
end module
