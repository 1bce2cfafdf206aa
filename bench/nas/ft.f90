! SPDX-License-Identifier: BSD-3-Clause
! FT: the heat equation by Fourier transforms in three dimensions. Slabs of the cube are cut along z;
! transformed, along y.
!
! Messages (NPB's, in one dimension of ranks): one all-to-all a transform, forwards once, backwards once
! an iteration, then a checksum's reduction of one complex number.
program ft
  use nas
  implicit none
  integer(int64), parameter :: multiplier = 1220703125
  real(dp), parameter :: pi = acos(-1d0), alpha = 1d-6
  ! After 1 and 6 iterations.
  complex(dp), parameter :: published_s(2) = [(5.546087004964d+02, 4.845363331978d+02), &
                                              (5.542683411902d+02, 4.932597244941d+02)]
  complex(dp), parameter :: published_w(2) = [(5.673612178944d+02, 5.293246849175d+02), &
                                              (5.504159734538d+02, 5.239212247086d+02)]
  integer :: n(3), thick_y, thick_z, last
  complex(dp), allocatable :: begun(:, :, :), slab(:, :, :), spectrum(:, :, :), evolved(:, :, :)
  complex(dp), allocatable :: outgoing(:, :, :, :), incoming(:, :, :, :), roots(:)
  complex(dp), allocatable :: sums(:), whole_sums(:)
  complex(dp) :: published(2)
  logical :: verified
  real(dp) :: back

  call begin('FT')
  select case (class)
  case ('S')
    n = 64
    published = published_s
  case ('W')
    n = [128, 128, 32]
    published = published_w
  case default
    call refuse('needed class S or W')
  end select
  last = merge(iterations, 6, iterations > 0)
  verified = .true.
  if (with_serial) then
    call alone()
    call solve()
    call move_alloc(sums, whole_sums)
    call everyone()
  end if
  call solve()
  if (with_serial) call check('a checksum, alone', sums, whole_sums)
  call check('the checksum of iteration 1, published', sums(:1), published(:1))
  if (last >= 6) call check('the checksum of iteration 6, published', sums(6:6), published(2:))
  call verify(verified, back < 1d-12, 'forwards and backwards', back, 1d-12)
  call finish(verified, last)

contains

  subroutine check(what, found, needed)
    character(len=*), intent(in) :: what
    complex(dp), intent(in) :: found(:), needed(:)
    integer :: i
    if (rank /= 0) return  ! the reduction's root
    do i = 1, size(found)
      call verify(verified, abs(found(i) - needed(i)) < 1d-10 * abs(needed(i)), what, &
                  abs(found(i)), abs(needed(i)))
    end do
  end subroutine

  subroutine solve()
    integer :: i
    if (mod(n(3), ranks) /= 0 .or. mod(n(2), ranks) /= 0) call refuse('needed ranks that divide y and z')
    thick_y = n(2) / ranks
    thick_z = n(3) / ranks
    if (allocated(begun)) deallocate (begun, slab, spectrum, evolved, outgoing, incoming, roots)
    allocate (begun(n(1), n(2), thick_z), slab(n(1), n(2), thick_z))
    allocate (spectrum(n(3), n(1), thick_y), evolved(n(3), n(1), thick_y))
    allocate (outgoing(n(1), thick_y, thick_z, ranks), incoming(n(1), thick_y, thick_z, ranks))
    roots = [(exp(cmplx(0d0, -2 * pi * i / maxval(n), dp)), i = 0, maxval(n) - 1)]
    if (.not. allocated(sums)) allocate (sums(last))
    call fill()
    ! The first is not measured: it touches all memory; and back again it must be what it was.
    slab = begun
    call forwards()
    evolved = spectrum
    call backwards()
    back = maxval(abs(slab / product(real(n, dp)) - begun))
    slab = begun
    call start_clock()
    call forwards()
    do i = 1, last
      call evolve(i)
      call backwards()
      call add_up(i)
    end do
    call stop_clock()
  end subroutine

  ! Random numbers, real and imaginary, of all points in order.
  subroutine fill()
    integer(int64) :: seed
    integer :: i, j, k
    real(dp) :: re
    seed = 314159265
    call jump(seed, multiplier, 2_int64 * n(1) * n(2) * thick_z * rank)
    do k = 1, thick_z
      do j = 1, n(2)
        do i = 1, n(1)
          re = random(seed, multiplier)
          begun(i, j, k) = cmplx(re, random(seed, multiplier), dp)
        end do
      end do
    end do
  end subroutine

  ! evolved = the spectrum at time t: each wave has lost by the square of its number.
  subroutine evolve(t)
    integer, intent(in) :: t
    integer :: i, j, k
    do j = 1, thick_y
      do i = 1, n(1)
        do k = 1, n(3)
          evolved(k, i, j) = spectrum(k, i, j) * exp(-4 * alpha * pi**2 * t &
            * (wave(i - 1, n(1))**2 + wave(thick_y * rank + j - 1, n(2))**2 + wave(k - 1, n(3))**2))
        end do
      end do
    end do
  end subroutine

  pure integer function wave(i, m)
    integer, intent(in) :: i, m
    wave = mod(i + m / 2, m) - m / 2
  end function

  ! The sum of 1024 points, on rank 0.
  subroutine add_up(iteration)
    integer, intent(in) :: iteration
    complex(dp) :: total
    integer :: j, k
    total = 0
    do j = 1, 1024
      k = mod(5 * j, n(3)) - thick_z * rank
      if (k >= 0 .and. k < thick_z) total = total + slab(mod(j, n(1)) + 1, mod(3 * j, n(2)) + 1, k + 1)
    end do
    total = total / product(real(n, dp))
    call enter()
    call MPI_Reduce(total, sums(iteration), 1, MPI_DOUBLE_COMPLEX, MPI_SUM, 0, comm)
    call leave()
  end subroutine

  ! ---------------------------------------------------------------- transforms

  ! slab to spectrum
  subroutine forwards()
    integer :: i, j, k, from
    do k = 1, thick_z
      call transform_plane(slab(:, :, k), 1)
      do j = 1, n(2)
        outgoing(:, mod(j - 1, thick_y) + 1, k, (j - 1) / thick_y + 1) = slab(:, j, k)
      end do
    end do
    call exchange()
    do from = 1, ranks
      do k = 1, thick_z
        do j = 1, thick_y
          spectrum((from - 1) * thick_z + k, :, j) = incoming(:, j, k, from)
        end do
      end do
    end do
    do j = 1, thick_y
      do i = 1, n(1)
        call transform(spectrum(:, i, j), 1)
      end do
    end do
  end subroutine

  ! evolved to slab, which is then too large by the number of points
  subroutine backwards()
    integer :: i, j, k, to
    do j = 1, thick_y
      do i = 1, n(1)
        call transform(evolved(:, i, j), -1)
      end do
    end do
    do to = 1, ranks
      do k = 1, thick_z
        do j = 1, thick_y
          outgoing(:, j, k, to) = evolved((to - 1) * thick_z + k, :, j)
        end do
      end do
    end do
    call exchange()
    do k = 1, thick_z
      do j = 1, n(2)
        slab(:, j, k) = incoming(:, mod(j - 1, thick_y) + 1, k, (j - 1) / thick_y + 1)
      end do
      call transform_plane(slab(:, :, k), -1)
    end do
  end subroutine

  subroutine exchange()
    integer :: count
    real(dp) :: value
    count = size(outgoing) / ranks
    call enter()
    call MPI_Alltoall(outgoing, count, MPI_DOUBLE_COMPLEX, incoming, count, MPI_DOUBLE_COMPLEX, comm)
    call leave()
    value = real(incoming(1, 1, 1, 1))
    call spoil(value)
    incoming(1, 1, 1, 1) = cmplx(value, aimag(incoming(1, 1, 1, 1)), dp)
  end subroutine

  subroutine transform_plane(u, sign)
    complex(dp), intent(inout) :: u(:, :)
    integer, intent(in) :: sign
    complex(dp) :: line(size(u, 2))
    integer :: i
    do i = 1, size(u, 2)
      call transform(u(:, i), sign)
    end do
    do i = 1, size(u, 1)
      line = u(i, :)
      call transform(line, sign)
      u(i, :) = line
    end do
  end subroutine

  ! A power of two of values; sign 1 forwards, -1 backwards. Stockham's: sorted after every stage.
  subroutine transform(u, sign)
    complex(dp), intent(inout) :: u(0:)
    integer, intent(in) :: sign
    complex(dp) :: v(0:size(u) - 1), root, a, b
    integer :: length, groups, half, i, g
    length = size(u)
    groups = 1
    do while (length > 1)
      half = length / 2
      do i = 0, half - 1
        root = roots(i * groups * (size(roots) / size(u)) + 1)
        if (sign < 0) root = conjg(root)
        do g = 0, groups - 1
          a = u(g + groups * i)
          b = u(g + groups * (i + half))
          v(g + groups * 2 * i) = a + b
          v(g + groups * (2 * i + 1)) = (a - b) * root
        end do
      end do
      u = v
      length = half
      groups = 2 * groups
    end do
  end subroutine
end program
