! SPDX-License-Identifier: BSD-3-Clause
! What the kernels share: arguments, messages that are counted and timed, the random numbers of
! NAS-95-020, and the line that each kernel prints.
!
!     cg CLASS [iterations=N] [asleep=N] [serial] [plant]
!
! `asleep`: after each piece of computation the rank sleeps N times as long, as if it computed on a slower
! processor of its own: for ranks that share one, where otherwise nothing could overlap.
! `serial`: every rank also solves the whole problem alone, and its part must be equal. `plant`:
! received values are spoilt on one rank, which the verification has to notice.
module nas
  use mpi_f08
  use, intrinsic :: iso_fortran_env, only: real64, int64, error_unit
  implicit none
  public

  integer, parameter :: dp = real64
  type(MPI_Comm) :: comm            ! the ranks that solve the problem: all, or this one alone
  integer :: rank, ranks            ! in it
  character(len=1) :: class
  integer :: iterations = 0         ! asked for; 0: those of the class
  integer, private :: asleep = 0
  logical :: with_serial = .false.

  ! Of this rank: all its messages to others and to itself, and, while the clock runs, the seconds in MPI.
  integer(int64) :: messages = 0, bytes = 0
  real(dp), private :: mpi_seconds = 0, entered, started, computed, seconds = 0
  logical, private :: running = .false., plant = .false.
  character(len=2), private :: kernel

contains

  ! ---------------------------------------------------------------- the program

  subroutine begin(name)
    character(len=*), intent(in) :: name
    character(len=40) :: word
    integer :: i
    kernel = name
    class = ' '
    call MPI_Init()
    call everyone()
    do i = 1, command_argument_count()
      call get_command_argument(i, word)
      select case (word)
      case ('S', 'W', 'A')
        class = word(1:1)
      case ('serial')
        with_serial = .true.
      case ('plant')
        plant = .true.
      case default
        if (word(:11) == 'iterations=') then
          iterations = number_in(word(12:))
        else if (word(:7) == 'asleep=') then
          asleep = number_in(word(8:))
        else
          call refuse('unknown argument '//trim(word))
        end if
      end select
    end do
    if (class == ' ') call refuse('needed a class: S, W or A')
  end subroutine

  integer function number_in(text)
    character(len=*), intent(in) :: text
    integer :: status
    read (text, *, iostat=status) number_in
    if (status /= 0 .or. number_in < 1) call refuse('needed a number from 1 on, found '//trim(text))
  end function

  subroutine refuse(why)
    character(len=*), intent(in) :: why
    if (rank /= 0) call MPI_Barrier(MPI_COMM_WORLD)  ! until rank 0 has said it and ended all
    write (error_unit, '(4a)') kernel, ': ', why, '; usage: CLASS [iterations=N] [asleep=N] [serial] [plant]'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end subroutine

  subroutine everyone()
    comm = MPI_COMM_WORLD
    call MPI_Comm_rank(comm, rank)
    call MPI_Comm_size(comm, ranks)
  end subroutine

  ! Until the next everyone(): the whole problem on this rank.
  subroutine alone()
    comm = MPI_COMM_SELF
    rank = 0
    ranks = 1
  end subroutine

  subroutine start_clock()
    if (comm /= MPI_COMM_WORLD) return
    call MPI_Barrier(comm)
    started = MPI_Wtime()
    call cpu_time(computed)
    running = .true.
  end subroutine

  subroutine stop_clock()
    if (.not. running) return
    seconds = MPI_Wtime() - started
    running = .false.
  end subroutine

  ! The line, and the end. Times are the longest of a rank, and the mean of those within MPI.
  subroutine finish(verified, iterations_done)
    logical, intent(in) :: verified
    integer, intent(in) :: iterations_done
    real(dp) :: longest, sum_in_mpi
    integer(int64) :: total(2)
    logical :: all_verified
    total = [messages, bytes]
    call MPI_Allreduce(MPI_IN_PLACE, total, 2, MPI_INTEGER8, MPI_SUM, comm)
    call MPI_Allreduce(seconds, longest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, comm)
    call MPI_Allreduce(mpi_seconds, sum_in_mpi, 1, MPI_DOUBLE_PRECISION, MPI_SUM, comm)
    call MPI_Allreduce(verified, all_verified, 1, MPI_LOGICAL, MPI_LAND, comm)
    if (rank == 0) print '(5a,i0,a,i0,2(a,f0.6),2(a,i0),2a)', 'nas kernel=', kernel, ' class=', class, &
      ' ranks=', ranks, ' iterations=', iterations_done, ' seconds=', longest, ' mpi_seconds=', &
      sum_in_mpi / ranks, ' messages=', total(1), ' bytes=', total(2), ' verified=', &
      trim(merge('yes', 'no ', all_verified))
    call MPI_Finalize()
    if (.not. all_verified) stop 1, quiet=.true.
  end subroutine

  ! What a verification has found; the rank that is wrong says so.
  subroutine verify(verified, right, what, found, needed)
    logical, intent(inout) :: verified
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    real(dp), intent(in) :: found, needed
    if (.not. right) write (error_unit, '(2a,i0,3a,es20.13,a,es20.13)') kernel, ': rank ', rank, ': ', what, &
      ': found', found, ', needed', needed
    verified = verified .and. right
  end subroutine

  ! Called where a message has come, with one value of it.
  subroutine spoil(value)
    real(dp), intent(inout) :: value
    if (plant .and. running .and. rank == ranks - 1) then
      value = value + 1d-3
    end if
  end subroutine

  ! ---------------------------------------------------------------- messages

  ! Around every call of MPI while the clock runs.
  subroutine enter()
    real(dp) :: now
    if (running .and. asleep > 0) then
      call cpu_time(now)
      call sleep_for(asleep * (now - computed))
    end if
    entered = MPI_Wtime()
  end subroutine

  subroutine leave()
    if (.not. running) return
    mpi_seconds = mpi_seconds + (MPI_Wtime() - entered)
    if (asleep > 0) call cpu_time(computed)
  end subroutine

  subroutine sleep_for(time)
    use, intrinsic :: iso_c_binding, only: c_int
    real(dp), intent(in) :: time
    integer(c_int) :: status
    interface
      integer(c_int) function usleep(microseconds) bind(c)
        import c_int
        integer(c_int), value :: microseconds
      end function
    end interface
    status = usleep(int(time * 1e6))
  end subroutine

  subroutine count_message(n)
    integer, intent(in) :: n
    if (comm /= MPI_COMM_WORLD) return
    messages = messages + 1
    bytes = bytes + 8_int64 * n
  end subroutine

  subroutine send(values, n, to, tag)
    real(dp), intent(in) :: values(*)
    integer, intent(in) :: n, to, tag
    call count_message(n)
    call enter()
    call MPI_Send(values, n, MPI_DOUBLE_PRECISION, to, tag, comm)
    call leave()
  end subroutine

  subroutine receive(values, n, from, tag)
    real(dp), intent(inout) :: values(*)
    integer, intent(in) :: n, from, tag
    call enter()
    call MPI_Recv(values, n, MPI_DOUBLE_PRECISION, from, tag, comm, MPI_STATUS_IGNORE)
    call leave()
  end subroutine

  ! The values stay as they are until the wait.
  subroutine start_send(values, n, to, tag, request)
    real(dp), intent(in), asynchronous :: values(*)
    integer, intent(in) :: n, to, tag
    type(MPI_Request), intent(out) :: request
    call count_message(n)
    call enter()
    call MPI_Isend(values, n, MPI_DOUBLE_PRECISION, to, tag, comm, request)
    call leave()
  end subroutine

  subroutine start_receive(values, n, from, tag, request)
    real(dp), intent(inout), asynchronous :: values(*)
    integer, intent(in) :: n, from, tag
    type(MPI_Request), intent(out) :: request
    call enter()
    call MPI_Irecv(values, n, MPI_DOUBLE_PRECISION, from, tag, comm, request)
    call leave()
  end subroutine

  subroutine wait_for(requests)
    type(MPI_Request), intent(inout) :: requests(:)
    call enter()
    call MPI_Waitall(size(requests), requests, MPI_STATUSES_IGNORE)
    call leave()
  end subroutine

  ! The sum over all ranks.
  function total_of(values) result(total)
    real(dp), intent(in) :: values(:)
    real(dp) :: total(size(values))
    call enter()
    call MPI_Allreduce(values, total, size(values), MPI_DOUBLE_PRECISION, MPI_SUM, comm)
    call leave()
  end function

  ! ---------------------------------------------------------------- random numbers

  ! x <- a x mod 2^46.
  subroutine step(x, a)
    integer(int64), intent(inout) :: x
    integer(int64), intent(in) :: a
    integer(int64), parameter :: half = 2_int64**23
    integer(int64) :: a1, a0, x1, x0
    a1 = a / half
    a0 = mod(a, half)
    x1 = x / half
    x0 = mod(x, half)
    x = mod(mod(a1 * x0 + a0 * x1, half) * half + a0 * x0, half * half)
  end subroutine

  ! The next number in (0, 1).
  real(dp) function random(x, a)
    integer(int64), intent(inout) :: x
    integer(int64), intent(in) :: a
    call step(x, a)
    random = x * 2d0**(-46)
  end function

  ! x after n steps.
  subroutine jump(x, a, n)
    integer(int64), intent(inout) :: x
    integer(int64), intent(in) :: a, n
    integer(int64) :: power, left
    power = a
    left = n
    do while (left > 0)
      if (mod(left, 2_int64) == 1) call step(x, power)
      call step(power, (power))  ! squared
      left = left / 2
    end do
  end subroutine
end module
