! SPDX-License-Identifier: BSD-3-Clause
! CG: the eigenvalue of a sparse symmetric matrix next to `shift`, by inverse iteration with 25 steps of
! conjugate gradients each. Blocks of the matrix are on a grid of ranks whose rows are as many as its
! columns or half as many; a vector is distributed by columns, and is the same in each column of ranks.
!
! Messages (NPB's): sums over a row of ranks by exchanges with the ranks at distances 1, 2, 4, ... in it:
! a receive started, a blocking send, a wait. So are the results of A p added, halved first where the
! columns are more than the rows; one exchange with the rank on the other side of the diagonal (itself
! on the diagonal) then distributes them by columns.
program cg
  use nas
  implicit none
  integer, parameter :: steps = 25
  real(dp), parameter :: condition = 0.1d0
  integer(int64), parameter :: multiplier = 1220703125
  integer :: n, nonzeros, last
  real(dp) :: shift, published

  integer :: grid_rows, grid_columns, row, column, hops, partner
  integer :: rows, columns, first_row, first_column  ! of this rank's block, from 0
  integer :: mine_at, mine                           ! the part of the block's rows that I add up
  integer, allocatable :: start(:), at(:), by_distance(:)
  real(dp), allocatable :: a(:)
  real(dp), allocatable, asynchronous :: x(:), z(:), p(:), r(:), q(:), w(:), other(:)
  real(dp) :: zeta, residual, serial_zeta
  logical :: verified

  call begin('CG')
  select case (class)
  case ('S')
    n = 1400
    nonzeros = 7
    shift = 10
    published = 8.5971775078648d0
  case ('W')
    n = 7000
    nonzeros = 8
    shift = 12
    published = 10.362595087124d0
  case ('A')
    n = 14000
    nonzeros = 11
    shift = 20
    published = 17.130235054029d0
  end select
  last = merge(iterations, 15, iterations > 0)
  verified = .true.
  if (with_serial) then
    call alone()
    call solve(serial_zeta)
    call everyone()
  end if
  call solve(zeta)
  call verify(verified, residual < 1d-8, 'the residual of the last solution', residual, 1d-8)
  if (with_serial) call verify(verified, abs(zeta - serial_zeta) < 1d-10, 'zeta, alone', zeta, serial_zeta)
  if (iterations == 0) call verify(verified, abs(zeta - published) < 1d-10, 'zeta, published', zeta, published)
  call finish(verified, last)

contains

  subroutine solve(eigenvalue)
    real(dp), intent(out) :: eigenvalue
    real(dp) :: products(2)
    integer :: i
    call place_ranks()
    call make_matrix()
    do i = 0, last  ! the first is not measured: it touches all memory
      if (i <= 1) x = 1
      if (i == 1) call start_clock()
      call conjugate_gradients()
      products = [dot_product(x, z), dot_product(z, z)]
      call add_over_row(products)
      eigenvalue = shift + 1 / products(1)
      x = z / sqrt(products(2))
    end do
    call stop_clock()
  end subroutine

  subroutine place_ranks()
    integer :: distance
    grid_rows = 1
    do while (4 * grid_rows * grid_rows <= ranks)
      grid_rows = 2 * grid_rows
    end do
    grid_columns = ranks / grid_rows
    hops = nint(log(real(grid_columns)) / log(2.))
    if (2**hops * grid_rows /= ranks .or. mod(n, grid_columns) /= 0) &
      call refuse('needed a power of two of ranks that divides the matrix')
    row = rank / grid_columns
    column = mod(rank, grid_columns)
    rows = n / grid_rows
    columns = n / grid_columns
    first_row = row * rows
    first_column = column * columns
    by_distance = [(row * grid_columns + ieor(column, 2**distance), distance = 0, hops - 1)]
    if (grid_rows == grid_columns) then
      mine = rows
      mine_at = 0
      partner = column * grid_columns + row
    else
      mine = rows / 2
      mine_at = mod(column, 2) * mine
      partner = 2 * (column / 2 * grid_rows + row) + mod(column, 2)
    end if
    if (allocated(x)) deallocate (x, z, p, r, q, w, other)
    allocate (x(columns), z(columns), p(columns), r(columns), q(columns), w(rows), other(rows))
  end subroutine

  ! The sum of n outer products of random sparse vectors, of weights from 1 to `condition`, and a diagonal;
  ! of it the part of this rank. A place may come twice.
  subroutine make_matrix()
    integer :: vector_at(nonzeros + 1, n), length(n), filled(rows), i, j, k, pass, here
    real(dp) :: vector(nonzeros + 1, n), weight
    logical :: inside
    call make_vectors(vector, vector_at, length)
    if (allocated(start)) deallocate (start, at, a)
    allocate (start(rows + 1))
    do pass = 1, 2  ! counts, then fills
      filled = 0
      weight = 1
      do k = 1, n
        do i = 1, length(k)
          here = vector_at(i, k) - first_row
          if (here < 1 .or. here > rows) cycle
          do j = 1, length(k)
            inside = vector_at(j, k) > first_column .and. vector_at(j, k) <= first_column + columns
            if (.not. inside) cycle
            filled(here) = filled(here) + 1
            if (pass == 1) cycle
            at(start(here) + filled(here) - 1) = vector_at(j, k) - first_column
            a(start(here) + filled(here) - 1) = weight * vector(i, k) * vector(j, k) &
              + merge(condition - shift, 0d0, vector_at(i, k) == k .and. vector_at(j, k) == k)
          end do
        end do
        weight = weight * condition**(1d0 / n)
      end do
      if (pass == 2) exit
      start(1) = 1
      do i = 1, rows
        start(i + 1) = start(i) + filled(i)
      end do
      allocate (at(start(rows + 1) - 1), a(start(rows + 1) - 1))
    end do
  end subroutine

  ! The k-th has random values at random places, and 1/2 at place k.
  subroutine make_vectors(vector, vector_at, length)
    real(dp), intent(out) :: vector(:, :)
    integer, intent(out) :: vector_at(:, :), length(:)
    integer(int64) :: seed
    integer :: k, m, place, range
    real(dp) :: value
    range = 1
    do while (range < n)
      range = 2 * range
    end do
    seed = 314159265
    value = random(seed, multiplier)
    do k = 1, n
      m = 0
      do while (m < nonzeros)
        value = random(seed, multiplier)
        place = int(range * random(seed, multiplier)) + 1
        if (place > n .or. any(vector_at(:m, k) == place)) cycle
        m = m + 1
        vector(m, k) = value
        vector_at(m, k) = place
      end do
      place = findloc(vector_at(:m, k), k, 1)
      if (place == 0) then
        m = m + 1
        place = m
      end if
      vector(place, k) = 0.5d0
      vector_at(place, k) = k
      length(k) = m
    end do
  end subroutine

  ! z with A z = x, and the residual.
  subroutine conjugate_gradients()
    real(dp) :: rho, before, product(1), alpha
    integer :: i
    z = 0
    r = x
    p = r
    product = dot_product(r, r)
    call add_over_row(product)
    rho = product(1)
    do i = 1, steps
      call multiply(p, q)
      product = dot_product(p, q)
      call add_over_row(product)
      alpha = rho / product(1)
      z = z + alpha * p
      r = r - alpha * q
      before = rho
      product = dot_product(r, r)
      call add_over_row(product)
      rho = product(1)
      p = r + rho / before * p
    end do
    call multiply(z, q)
    product = sum((x - q)**2)
    call add_over_row(product)
    residual = sqrt(product(1))
  end subroutine

  ! result = A v.
  subroutine multiply(v, result)
    real(dp), intent(in) :: v(:)
    real(dp), intent(out), asynchronous :: result(columns)
    type(MPI_Request) :: request(1)
    integer :: i, j, hop, from, length, theirs
    do i = 1, rows
      w(i) = 0
      do j = start(i), start(i + 1) - 1
        w(i) = w(i) + a(j) * v(at(j))
      end do
    end do
    from = mine_at
    length = mine
    do hop = 1, hops
      ! Halved: first each gives its neighbour what that one adds up.
      theirs = mine_at
      if (hop == 1 .and. mine < rows) theirs = mine - mine_at
      call start_receive(other, length, by_distance(hop), hop, request(1))
      call send(w(theirs + 1), length, by_distance(hop), hop)
      call wait_for(request)
      call spoil(other(1))
      w(from + 1:from + length) = w(from + 1:from + length) + other(:length)
    end do
    if (hops == 0) then
      result = w
      return
    end if
    call start_receive(result, columns, partner, hops + 1, request(1))
    call send(w(mine_at + 1), mine, partner, hops + 1)
    call wait_for(request)
  end subroutine

  ! The sum over the ranks of a row.
  subroutine add_over_row(values)
    real(dp), intent(inout) :: values(:)
    real(dp), asynchronous :: theirs(size(values))
    type(MPI_Request) :: request(1)
    integer :: hop
    do hop = 1, hops
      call start_receive(theirs, size(values), by_distance(hop), hop, request(1))
      call send(values, size(values), by_distance(hop), hop)
      call wait_for(request)
      values = values + theirs
    end do
  end subroutine
end program
