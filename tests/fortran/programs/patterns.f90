! SPDX-License-Identifier: BSD-3-Clause
! The communication patterns of BT, SP, LU, CG, MG, FT and IS of the NAS benchmarks, on small grids of
! our own and on a square number of ranks. Every rank also computes the whole problem alone, and its
! part must be equal: to the last bit where both add in the same order.
program patterns
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: real64 = kind(1d0), n = 8
  integer :: rank, ranks, q, part, row, column
  type(MPI_Comm) :: world

  call MPI_Init()
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank)
  call MPI_Comm_size(world, ranks)
  q = nint(sqrt(real(ranks)))
  call check(q * q == ranks .and. mod(n, q) == 0, 'a square number of ranks that divides the grid')
  part = n / q ! of the grid, in one direction
  row = mod(rank, q)
  column = rank / q
  call multipartition('BT', messages=1)
  call multipartition('SP', messages=2)
  call wavefront()
  call conjugate_gradient()
  call multigrid()
  call transform()
  call sort()
  call MPI_Finalize()
  if (rank == 0) print '(a)', 'patterns: right'

contains

  integer function at(i, j) ! a place of the square of ranks, which has no border
    integer, intent(in) :: i, j
    at = modulo(i, q) + q * modulo(j, q)
  end function

  elemental real(real64) function initial(i, j, k)
    integer, intent(in) :: i, j, k
    initial = modulo(37 * i + 11 * j + 5 * k + i * j, 19) - 9.3d0
  end function

  subroutine fill(u)
    real(real64), intent(out) :: u(n, n, n)
    integer :: i, j, k
    do k = 1, n
      do j = 1, n
        do i = 1, n
          u(i, j, k) = initial(i, j, k)
        end do
      end do
    end do
  end subroutine

  ! --- BT and SP: each rank has cells on a diagonal of the cube, so that in every stage of a sweep
  ! along any axis each rank has one cell to work on. Its last face goes to the rank of the next cell:
  ! as one message in BT, in pieces that overlap in SP.

  integer function owner(cell)
    integer, intent(in) :: cell(3)
    owner = at(cell(1) - cell(3), cell(2) + cell(3))
  end function

  ! The cell of this rank at a place along an axis.
  function own_cell(axis, place) result(cell)
    integer, intent(in) :: axis, place
    integer :: cell(3), k
    do k = 0, q - 1
      cell = [modulo(row + k, q), modulo(column - k, q), k]
      if (cell(axis) == place) return
    end do
  end function

  subroutine multipartition(name, messages)
    character(len=*), intent(in) :: name
    integer, intent(in) :: messages
    real(real64), asynchronous :: u(n, n, n)
    real(real64) :: whole(n, n, n)
    integer :: axis, place, cell(3), low(3), high(3), step(3), i
    call fill(whole)
    u = whole
    do axis = 1, 3
      do i = 2, n
        call advance(whole, axis, i, [1, 1, 1], [n, n, n])
      end do
    end do
    do axis = 1, 3
      step = 0
      step(axis) = 1
      do place = 0, q - 1
        cell = own_cell(axis, place)
        low = cell * part + 1
        high = low + part - 1
        if (place > 0) call pass_face(u, axis, low(axis) - 1, low, high, messages, &
                                      owner(cell - step), .false.)
        do i = max(low(axis), 2), high(axis)
          call advance(u, axis, i, low, high)
        end do
        if (place < q - 1) call pass_face(u, axis, high(axis), low, high, messages, &
                                          owner(cell + step), .true.)
      end do
    end do
    do i = 0, q - 1
      low = own_cell(3, i) * part + 1
      high = low + part - 1
      call check(all(u(low(1):high(1), low(2):high(2), low(3):high(3)) == &
                     whole(low(1):high(1), low(2):high(2), low(3):high(3))), name)
    end do
  end subroutine

  ! One plane of a recurrence along an axis.
  subroutine advance(u, axis, i, low, high)
    real(real64), intent(inout) :: u(n, n, n)
    integer, intent(in) :: axis, i, low(3), high(3)
    associate (l => low, h => high)
      select case (axis)
      case (1)
        u(i, l(2):h(2), l(3):h(3)) = u(i, l(2):h(2), l(3):h(3)) + 0.5d0 * u(i-1, l(2):h(2), l(3):h(3))
      case (2)
        u(l(1):h(1), i, l(3):h(3)) = u(l(1):h(1), i, l(3):h(3)) - 0.3d0 * u(l(1):h(1), i-1, l(3):h(3))
      case (3)
        u(l(1):h(1), l(2):h(2), i) = u(l(1):h(1), l(2):h(2), i) * 0.7d0 + u(l(1):h(1), l(2):h(2), i-1)
      end select
    end associate
  end subroutine

  ! A face of a cell, straight from or into the grid.
  subroutine pass_face(u, axis, i, low, high, messages, peer, sends)
    real(real64), asynchronous, intent(inout) :: u(n, n, n)
    integer, intent(in) :: axis, i, low(3), high(3), messages, peer
    logical, intent(in) :: sends
    type(MPI_Request) :: requests(messages)
    integer :: m, l(3), h(3), split
    split = merge(3, 2, axis /= 3)
    do m = 1, messages
      l = low
      h = high
      l(axis) = i
      h(axis) = i
      l(split) = low(split) + (m - 1) * part / messages
      h(split) = low(split) + m * part / messages - 1
      if (sends) then
        call MPI_Isend(u(l(1):h(1), l(2):h(2), l(3):h(3)), product(h - l + 1), MPI_DOUBLE_PRECISION, &
                       peer, 10 * axis + m, world, requests(m))
      else
        call MPI_Irecv(u(l(1):h(1), l(2):h(2), l(3):h(3)), product(h - l + 1), MPI_DOUBLE_PRECISION, &
                       peer, 10 * axis + m, world, requests(m))
      end if
    end do
    call MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE)
  end subroutine

  ! --- LU: pencils in two directions; the lower triangle is solved plane by plane, so that a wave of
  ! small blocking messages runs through the ranks, and the upper one back.

  subroutine wavefront()
    real(real64) :: u(0:n+1, 0:n+1, 0:n+1), whole(0:n+1, 0:n+1, 0:n+1)
    integer :: k, l1, h1, l2, h2
    u = 0
    call fill(u(1:n, 1:n, 1:n))
    whole = u
    do k = 1, n
      call lower(whole, k, 1, n, 1, n)
    end do
    do k = n, 1, -1
      call upper(whole, k, 1, n, 1, n)
    end do
    l1 = row * part + 1
    h1 = l1 + part - 1
    l2 = column * part + 1
    h2 = l2 + part - 1
    do k = 1, n
      if (row > 0) call receive(u(l1-1, l2:h2, k), at(row - 1, column))
      if (column > 0) call receive(u(l1:h1, l2-1, k), at(row, column - 1))
      call lower(u, k, l1, h1, l2, h2)
      if (row < q - 1) call send(u(h1, l2:h2, k), at(row + 1, column))
      if (column < q - 1) call send(u(l1:h1, h2, k), at(row, column + 1))
    end do
    do k = n, 1, -1
      if (row < q - 1) call receive(u(h1+1, l2:h2, k), at(row + 1, column))
      if (column < q - 1) call receive(u(l1:h1, h2+1, k), at(row, column + 1))
      call upper(u, k, l1, h1, l2, h2)
      if (row > 0) call send(u(l1, l2:h2, k), at(row - 1, column))
      if (column > 0) call send(u(l1:h1, l2, k), at(row, column - 1))
    end do
    call check(all(u(l1:h1, l2:h2, 1:n) == whole(l1:h1, l2:h2, 1:n)), 'LU')
  end subroutine

  subroutine receive(line, from)
    real(real64), intent(inout) :: line(:)
    integer, intent(in) :: from
    call MPI_Recv(line, size(line), MPI_DOUBLE_PRECISION, from, 1, world, MPI_STATUS_IGNORE)
  end subroutine

  subroutine send(line, to)
    real(real64), intent(in) :: line(:)
    integer, intent(in) :: to
    call MPI_Send(line, size(line), MPI_DOUBLE_PRECISION, to, 1, world)
  end subroutine

  subroutine lower(u, k, l1, h1, l2, h2)
    real(real64), intent(inout) :: u(0:n+1, 0:n+1, 0:n+1)
    integer, intent(in) :: k, l1, h1, l2, h2
    integer :: i, j
    do j = l2, h2
      do i = l1, h1
        u(i, j, k) = u(i, j, k) + 0.2d0 * (u(i-1, j, k) + u(i, j-1, k) + u(i, j, k-1))
      end do
    end do
  end subroutine

  subroutine upper(u, k, l1, h1, l2, h2)
    real(real64), intent(inout) :: u(0:n+1, 0:n+1, 0:n+1)
    integer, intent(in) :: k, l1, h1, l2, h2
    integer :: i, j
    do j = h2, l2, -1
      do i = h1, l1, -1
        u(i, j, k) = u(i, j, k) - 0.1d0 * (u(i+1, j, k) + u(i, j+1, k) + u(i, j, k+1))
      end do
    end do
  end subroutine

  ! --- CG: blocks of the matrix on the square of ranks. Sums along a row of ranks by exchanges of
  ! halves of the row, the result to the rank on the other side of the diagonal.

  subroutine conjugate_gradient()
    real(real64) :: a(n, n), x(n), mine(part), residual
    integer :: i, j
    do j = 1, n
      do i = 1, n
        a(i, j) = 1d0 / (1 + abs(i - j)) + merge(n, 0, i == j)
      end do
    end do
    x = whole_solution(a)
    call solve(a(row * part + 1:(row + 1) * part, column * part + 1:(column + 1) * part), mine, residual)
    ! The sums are in another order: equal but for rounding.
    call check(maxval(abs(mine - x(column * part + 1:(column + 1) * part))) < 1d-14, 'CG')
    call check(residual < 1d-20, 'CG converges')
  end subroutine

  function whole_solution(a) result(x)
    real(real64), intent(in) :: a(n, n)
    real(real64) :: x(n), r(n), p(n), w(n), rho, before, alpha
    integer :: i
    x = 0
    r = [(i, i = 1, n)]
    p = r
    rho = dot_product(r, r)
    do i = 1, n
      w = matmul(a, p)
      alpha = rho / dot_product(p, w)
      x = x + alpha * p
      r = r - alpha * w
      before = rho
      rho = dot_product(r, r)
      p = r + rho / before * p
    end do
  end function

  subroutine solve(a, x, rho)
    real(real64), intent(in) :: a(part, part)
    real(real64), intent(out) :: x(part), rho
    real(real64) :: r(part), p(part), w(part), before, alpha
    integer :: i
    x = 0
    r = [(column * part + i, i = 1, part)]
    p = r
    rho = over_columns(dot_product(r, r))
    do i = 1, n
      w = matmul(a, p)
      call sum_over_columns(w)
      ! Now the part of this row; needed is the part of this column.
      call MPI_Sendrecv_replace(w, part, MPI_DOUBLE_PRECISION, at(column, row), 2, at(column, row), 2, &
                                world, MPI_STATUS_IGNORE)
      alpha = rho / over_columns(dot_product(p, w))
      x = x + alpha * p
      r = r - alpha * w
      before = rho
      rho = over_columns(dot_product(r, r))
      p = r + rho / before * p
    end do
  end subroutine

  subroutine sum_over_columns(w)
    real(real64), intent(inout) :: w(:)
    real(real64), asynchronous :: other(size(w))
    type(MPI_Request) :: request
    integer :: distance, peer
    distance = q / 2
    do while (distance > 0)
      peer = at(row, ieor(column, distance))
      call MPI_Irecv(other, size(w), MPI_DOUBLE_PRECISION, peer, 3, world, request)
      call MPI_Send(w, size(w), MPI_DOUBLE_PRECISION, peer, 3, world)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      w = w + other
      distance = distance / 2
    end do
  end subroutine

  real(real64) function over_columns(value)
    real(real64), intent(in) :: value
    real(real64) :: one(1)
    one = value
    call sum_over_columns(one)
    over_columns = one(1)
  end function

  ! --- MG: a V cycle. On every level the borders of the blocks go to the neighbours on all sides of a
  ! periodic grid, first along one axis, then along the other with the corners.

  subroutine multigrid()
    real(real64) :: mine(part, part), whole(n, n)
    integer :: i, j
    do j = 1, n
      do i = 1, n
        whole(i, j) = initial(i, j, 1)
      end do
    end do
    mine = whole(row * part + 1:(row + 1) * part, column * part + 1:(column + 1) * part)
    call cycle_down(whole, .true.)
    call cycle_down(mine, .false.)
    call check(all(mine == whole(row * part + 1:(row + 1) * part, &
                                 column * part + 1:(column + 1) * part)), 'MG')
  end subroutine

  recursive subroutine cycle_down(u, alone)
    real(real64), intent(inout) :: u(:, :)
    logical, intent(in) :: alone
    real(real64) :: v(0:size(u, 1) + 1, 0:size(u, 2) + 1)
    real(real64) :: coarse(size(u, 1) / 2, size(u, 2) / 2)
    integer :: m, i, j
    m = size(u, 1)
    v(1:m, 1:m) = u
    call borders(v, m, alone)
    forall (i = 1:m, j = 1:m) u(i, j) = 0.5d0 * v(i, j) &
      + 0.1d0 * (v(i-1, j) + v(i+1, j) + v(i, j-1) + v(i, j+1)) &
      + 0.025d0 * (v(i-1, j-1) + v(i+1, j+1) + v(i-1, j+1) + v(i+1, j-1))
    if (m > merge(2 * q, 2, alone)) then
      coarse = u(1:m:2, 1:m:2) + u(2:m:2, 2:m:2)
      call cycle_down(coarse, alone)
      u(1:m:2, 1:m:2) = u(1:m:2, 1:m:2) - 0.5d0 * coarse
      u(2:m:2, 2:m:2) = u(2:m:2, 2:m:2) + 0.25d0 * coarse
    end if
  end subroutine

  subroutine borders(v, m, alone)
    integer, intent(in) :: m
    real(real64), intent(inout) :: v(0:m+1, 0:m+1)
    logical, intent(in) :: alone
    if (alone) then
      v(0, 1:m) = v(m, 1:m)
      v(m+1, 1:m) = v(1, 1:m)
      v(:, 0) = v(:, m)
      v(:, m+1) = v(:, 1)
      return
    end if
    call shift(v(m, 1:m), v(0, 1:m), at(row + 1, column), at(row - 1, column))
    call shift(v(1, 1:m), v(m+1, 1:m), at(row - 1, column), at(row + 1, column))
    call shift(v(:, m), v(:, 0), at(row, column + 1), at(row, column - 1))
    call shift(v(:, 1), v(:, m+1), at(row, column - 1), at(row, column + 1))
  end subroutine

  subroutine shift(line, border, to, from)
    real(real64), intent(in) :: line(:)
    real(real64), intent(inout), asynchronous :: border(:)
    integer, intent(in) :: to, from
    type(MPI_Request) :: request
    call MPI_Irecv(border, size(border), MPI_DOUBLE_PRECISION, from, 4, world, request)
    call MPI_Send(line, size(line), MPI_DOUBLE_PRECISION, to, 4, world)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  ! --- FT: slabs of a cube. Transforms along the axes that are whole here, then all ranks exchange
  ! blocks so that the last axis becomes whole.

  subroutine transform()
    integer, parameter :: m = 16
    complex(real64) :: whole(m, m, m), slab(m, m, m / ranks), turned(m, m / ranks, m)
    complex(real64) :: parts(m, m / ranks, m / ranks, ranks), got(m, m / ranks, m / ranks, ranks)
    integer :: i, j, k, thick, first, to
    thick = m / ranks
    first = rank * thick
    do k = 1, m
      do j = 1, m
        do i = 1, m
          whole(i, j, k) = cmplx(initial(i, j, k), initial(k, i, j), real64)
        end do
      end do
    end do
    slab = whole(:, :, first + 1:first + thick)
    do k = 1, m
      call plane(whole(:, :, k))
    end do
    do j = 1, m
      do i = 1, m
        whole(i, j, :) = fourier(whole(i, j, :))
      end do
    end do
    do k = 1, thick
      call plane(slab(:, :, k))
    end do
    do to = 1, ranks
      parts(:, :, :, to) = slab(:, (to - 1) * thick + 1:to * thick, :)
    end do
    call MPI_Alltoall(parts, size(parts) / ranks, MPI_DOUBLE_COMPLEX, got, size(got) / ranks, &
                      MPI_DOUBLE_COMPLEX, world)
    do to = 1, ranks
      turned(:, :, (to - 1) * thick + 1:to * thick) = got(:, :, :, to)
    end do
    do j = 1, thick
      do i = 1, m
        turned(i, j, :) = fourier(turned(i, j, :))
      end do
    end do
    call check(all(turned == whole(:, first + 1:first + thick, :)), 'FT')
  end subroutine

  subroutine plane(u)
    complex(real64), intent(inout) :: u(:, :)
    integer :: i
    do i = 1, size(u, 2)
      u(:, i) = fourier(u(:, i))
    end do
    do i = 1, size(u, 1)
      u(i, :) = fourier(u(i, :))
    end do
  end subroutine

  pure function fourier(u) result(v)
    complex(real64), intent(in) :: u(:)
    complex(real64) :: v(size(u))
    real(real64), parameter :: turn = -6.283185307179586d0
    integer :: i, j
    do i = 1, size(u)
      v(i) = 0
      do j = 1, size(u)
        v(i) = v(i) + u(j) * exp(cmplx(0d0, turn * mod((i - 1) * (j - 1), size(u)) / size(u), real64))
      end do
    end do
  end function

  ! --- IS: keys go to the rank of their bucket. All ranks learn the sizes of the buckets, then how
  ! many keys come from each, then the keys.

  subroutine sort()
    integer, parameter :: keys = 1000, largest = 256
    integer :: all_keys(keys * ranks), mine(keys), sent(0:ranks-1), received(0:ranks-1)
    integer :: send_at(0:ranks-1), receive_at(0:ranks-1), counted(0:largest-1), total(0:largest-1)
    integer, allocatable :: came(:)
    integer :: i, bucket, width, low, seed
    seed = 314159
    do i = 1, size(all_keys)
      seed = int(modulo(seed * 1103515245_8 + 12345_8, 2147483648_8))
      all_keys(i) = seed / 8388608
    end do
    mine = all_keys(rank * keys + 1:(rank + 1) * keys)
    width = largest / ranks
    counted = 0
    do i = 1, keys
      counted(mine(i)) = counted(mine(i)) + 1
    end do
    call MPI_Allreduce(counted, total, largest, MPI_INTEGER, MPI_SUM, world)
    sent = [(count(mine / width == bucket), bucket = 0, ranks - 1)]
    call MPI_Alltoall(sent, 1, MPI_INTEGER, received, 1, MPI_INTEGER, world)
    send_at = [(sum(sent(:bucket - 1)), bucket = 0, ranks - 1)]
    receive_at = [(sum(received(:bucket - 1)), bucket = 0, ranks - 1)]
    allocate(came(sum(received)))
    call MPI_Alltoallv([(pack(mine, mine / width == bucket), bucket = 0, ranks - 1)], sent, send_at, &
                       MPI_INTEGER, came, received, receive_at, MPI_INTEGER, world)
    low = rank * width
    call check(all(came / width == rank), 'IS: keys are where they belong')
    do i = 0, largest - 1
      call check(total(i) == count(all_keys == i), 'IS: the sizes of the buckets')
    end do
    do i = low, low + width - 1
      call check(count(came == i) == total(i), 'IS: no key is lost')
    end do
  end subroutine
end program
