! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: several threads complete collectives on array sections, and one replaces an attribute
! that the others get.
module work
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_funloc, c_funptr, c_int, c_loc, c_long, c_null_ptr, &
                                         c_ptr, c_f_pointer
  implicit none
  integer, parameter :: threads = 3, rounds = 3000, replacements = 300000
  integer :: ranks, key
  type(MPI_Comm) :: comms(threads)
  integer :: wrong(threads) ! results, by the number of the thread
  integer, asynchronous :: gathered(2, 8), contribution, word
  type(MPI_Request) :: awaited(2)

  interface
    integer(c_int) function pthread_create(thread, attributes, start, argument) bind(c)
      import :: c_funptr, c_int, c_long, c_ptr
      integer(c_long), intent(out) :: thread
      type(c_ptr), value :: attributes, argument
      type(c_funptr), value :: start
    end function
    integer(c_int) function pthread_join(thread, result) bind(c)
      import :: c_int, c_long, c_ptr
      integer(c_long), value :: thread
      type(c_ptr), value :: result
    end function
  end interface

contains

  ! Runs it in each of the threads, and returns how many results were wrong.
  integer function all_threads(start)
    type(c_funptr), value :: start
    integer, target :: numbers(threads)
    integer(c_long) :: ids(threads)
    integer :: i
    wrong = 0
    do i = 1, threads
      numbers(i) = i
      if (pthread_create(ids(i), c_null_ptr, start, c_loc(numbers(i))) /= 0) error stop 'no thread'
    end do
    do i = 1, threads
      if (pthread_join(ids(i), c_null_ptr) /= 0) error stop 'no end of a thread'
    end do
    all_threads = sum(wrong)
  end function

  integer function number_of(argument)
    type(c_ptr), intent(in) :: argument
    integer, pointer :: number
    call c_f_pointer(argument, number)
    number_of = number
  end function

  ! Completes collectives by all calls that can.
  recursive function gather(argument) result(nothing) bind(c)
    type(c_ptr), value :: argument
    type(c_ptr) :: nothing
    integer, asynchronous :: all(2, ranks), mine
    type(MPI_Request) :: requests(1)
    integer :: number, round, found, indices(1)
    logical :: flag
    number = number_of(argument)
    do round = 1, rounds
      all = -1
      mine = 10 * round + number
      call MPI_Iallgather(mine, 1, MPI_INTEGER, all(1, :), 1, MPI_INTEGER, comms(number), &
                          requests(1))
      flag = .false.
      do while (.not. flag)
        flag = .true.
        select case (modulo(round, 8))
        case (0)
          call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
        case (1)
          call MPI_Waitall(1, requests, MPI_STATUSES_IGNORE)
        case (2)
          call MPI_Waitany(1, requests, found, MPI_STATUS_IGNORE)
        case (3)
          call MPI_Waitsome(1, requests, found, indices, MPI_STATUSES_IGNORE)
        case (4)
          call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE)
        case (5)
          call MPI_Testall(1, requests, flag, MPI_STATUSES_IGNORE)
        case (6)
          call MPI_Testany(1, requests, found, flag, MPI_STATUS_IGNORE)
        case (7)
          call MPI_Testsome(1, requests, found, indices, MPI_STATUSES_IGNORE)
          flag = found == 1
        end select
      end do
      call MPI_F_sync_reg(all)
      wrong(number) = wrong(number) + count(all(1, :) /= mine) + count(all(2, :) /= -1)
    end do
    nothing = c_null_ptr
  end function

  recursive function replace_or_get(argument) result(nothing) bind(c)
    type(c_ptr), value :: argument
    type(c_ptr) :: nothing
    integer(MPI_ADDRESS_KIND) :: value
    integer :: number, i
    logical :: flag
    number = number_of(argument)
    do i = 1, replacements
      if (number == 1) then
        call MPI_Comm_set_attr(MPI_COMM_SELF, key, int(modulo(i, 1000), MPI_ADDRESS_KIND))
      else
        call MPI_Comm_get_attr(MPI_COMM_SELF, key, value, flag)
        if (.not. flag .or. value < 0 .or. value >= 1000) wrong(number) = wrong(number) + 1
      end if
    end do
    nothing = c_null_ptr
  end function

  recursive function wait_for_both(argument) result(nothing) bind(c)
    type(c_ptr), value :: argument
    type(c_ptr) :: nothing
    nothing = argument
    call MPI_Waitall(2, awaited, MPI_STATUSES_IGNORE)
  end function

  ! On rank 0 one thread waits for a persistent collective, which the other ranks begin later, and a
  ! message; another one asks about the first.
  logical function is_there_for_who_asks() result(right)
    type(MPI_Request) :: asked
    integer(c_long) :: id
    integer :: rank
    logical :: flag
    double precision :: begin
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    gathered = -1
    contribution = 42
    call MPI_Allgather_init(contribution, 1, MPI_INTEGER, gathered(1, :ranks), 1, MPI_INTEGER, &
                            MPI_COMM_WORLD, MPI_INFO_NULL, awaited(1))
    call MPI_Irecv(word, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, awaited(2))
    asked = awaited(1)
    if (rank == 0) then
      call MPI_Start(awaited(1))
      if (pthread_create(id, c_null_ptr, c_funloc(wait_for_both), c_null_ptr) /= 0) error stop 'no thread'
    end if
    begin = MPI_Wtime()
    do while (MPI_Wtime() - begin < 0.2d0) ! the thread waits by then
    end do
    if (rank /= 0) call MPI_Start(asked)
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(asked, flag, MPI_STATUS_IGNORE)
    end do
    call MPI_F_sync_reg(gathered)
    right = all(gathered(1, :ranks) == 42)
    call MPI_Send(rank, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
    if (rank /= 0) then
      call MPI_Waitall(2, awaited, MPI_STATUSES_IGNORE)
    else if (pthread_join(id, c_null_ptr) /= 0) then
      error stop 'no end of a thread'
    end if
    call MPI_Request_free(awaited(1))
  end function
end module

program several_threads
  use work
  use checks
  implicit none
  integer :: provided, i

  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided)
  call check(provided == MPI_THREAD_MULTIPLE, 'MPI_Init_thread')
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  do i = 1, threads
    call MPI_Comm_dup(MPI_COMM_WORLD, comms(i))
  end do
  call check(all_threads(c_funloc(gather)) == 0, 'sections, completed by several threads')
  do i = 1, threads
    call MPI_Comm_free(comms(i))
  end do

  call check(is_there_for_who_asks(), 'a section that one thread waits for and another asks about')

  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, &
                              0_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(MPI_COMM_SELF, key, 0_MPI_ADDRESS_KIND)
  call check(all_threads(c_funloc(replace_or_get)) == 0, 'an attribute that a thread replaces')
  call MPI_Comm_delete_attr(MPI_COMM_SELF, key)
  call MPI_Comm_free_keyval(key)
  call MPI_Finalize()
end program
