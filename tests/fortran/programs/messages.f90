! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: every mode of sending, matched probes, the many ways to complete requests, what a status
! tells, and buffers for MPI_Bsend.
program messages
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr
  implicit none
  integer :: rank, ranks, left, right, provided
  integer, parameter :: n = 5
  integer, asynchronous :: out(n), in(n)
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  call modes()
  call persistent_modes()
  call both_ways()
  call probes()
  call completions()
  call statuses()
  call buffers()
  call MPI_Finalize()

contains

  ! What the rank sends in a step, and nothing in the place where the other's comes.
  subroutine prepare(step)
    integer, intent(in) :: step
    integer :: i
    out = [(1000 * step + 10 * rank + i, i = 1, n)]
    in = -1
  end subroutine

  subroutine expect(step, what)
    integer, intent(in) :: step
    character(len=*), intent(in) :: what
    integer :: i
    call MPI_F_sync_reg(in)
    call check(all(in == [(1000 * step + 10 * left + i, i = 1, n)]), what)
  end subroutine

  subroutine modes()
    type(MPI_Request) :: received, sent
    integer :: mode
    character(len=10), parameter :: names(6) = [character(len=10) :: 'MPI_Ssend', 'MPI_Rsend', &
        'MPI_Issend', 'MPI_Irsend', 'MPI_Ibsend', 'MPI_Bsend']
    integer, asynchronous :: room(2 * n + MPI_BSEND_OVERHEAD)
    type(c_ptr) :: address
    integer :: bytes
    call MPI_Buffer_attach(room, 4 * size(room))
    do mode = 1, 6
      call prepare(mode)
      call MPI_Irecv(in, n, MPI_INTEGER, left, mode, MPI_COMM_WORLD, received)
      call MPI_Barrier(MPI_COMM_WORLD) ! for those that want a receiver
      select case (mode)
      case (1)
        call MPI_Ssend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD)
      case (2)
        call MPI_Rsend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD)
      case (3)
        call MPI_Issend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      case (4)
        call MPI_Irsend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      case (5)
        call MPI_Ibsend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      case (6)
        call MPI_Bsend(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD)
      end select
      if (mode >= 3 .and. mode <= 5) call MPI_Wait(sent, MPI_STATUS_IGNORE)
      call MPI_Wait(received, MPI_STATUS_IGNORE)
      call expect(mode, trim(names(mode)))
    end do
    call MPI_Buffer_detach(address, bytes)
    call check(bytes == 4 * size(room), 'MPI_Buffer_detach')
  end subroutine

  subroutine persistent_modes()
    type(MPI_Request) :: received, sent
    integer :: mode, round
    character(len=14), parameter :: names(3) = [character(len=14) :: 'MPI_Ssend_init', &
        'MPI_Rsend_init', 'MPI_Bsend_init']
    integer, asynchronous :: room(2 * n + MPI_BSEND_OVERHEAD)
    type(c_ptr) :: address
    integer :: bytes
    call MPI_Buffer_attach(room, 4 * size(room))
    do mode = 1, 3
      call MPI_Recv_init(in, n, MPI_INTEGER, left, mode, MPI_COMM_WORLD, received)
      select case (mode)
      case (1)
        call MPI_Ssend_init(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      case (2)
        call MPI_Rsend_init(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      case (3)
        call MPI_Bsend_init(out, n, MPI_INTEGER, right, mode, MPI_COMM_WORLD, sent)
      end select
      do round = 1, 2
        call prepare(10 * mode + round)
        call MPI_Start(received)
        call MPI_Barrier(MPI_COMM_WORLD)
        call MPI_Start(sent)
        call MPI_Wait(sent, MPI_STATUS_IGNORE)
        call MPI_Wait(received, MPI_STATUS_IGNORE)
        call expect(10 * mode + round, names(mode))
      end do
      call MPI_Request_free(received)
      call MPI_Request_free(sent)
      call check(sent == MPI_REQUEST_NULL, 'MPI_Request_free')
    end do
    call MPI_Buffer_detach(address, bytes)
  end subroutine

  subroutine both_ways()
    type(MPI_Request) :: request
    call prepare(50)
    call MPI_Isendrecv(out, n, MPI_INTEGER, right, 1, in, n, MPI_INTEGER, left, 1, &
                       MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(50, 'MPI_Isendrecv')
    call prepare(51)
    in = out
    call MPI_Isendrecv_replace(in, n, MPI_INTEGER, right, 1, left, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call expect(51, 'MPI_Isendrecv_replace')
    call prepare(52)
    in = out
    call MPI_Sendrecv_replace(in, n, MPI_INTEGER, right, 1, left, 1, MPI_COMM_WORLD, &
                              MPI_STATUS_IGNORE)
    call expect(52, 'MPI_Sendrecv_replace')
  end subroutine

  subroutine probes()
    type(MPI_Message) :: message
    type(MPI_Request) :: sent, received
    type(MPI_Status) :: status
    logical :: flag
    integer :: elements
    call prepare(60)
    call MPI_Isend(out, n, MPI_INTEGER, right, 7, MPI_COMM_WORLD, sent)
    call MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, status)
    call MPI_Get_count(status, MPI_INTEGER, elements)
    call check(elements == n .and. status%MPI_TAG == 7 .and. status%MPI_SOURCE == left, 'MPI_Probe')
    call MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, message, status)
    call check(message /= MPI_MESSAGE_NULL .and. status%MPI_SOURCE == left, 'MPI_Mprobe')
    call MPI_Mrecv(in, n, MPI_INTEGER, message, status)
    call check(message == MPI_MESSAGE_NULL, 'MPI_Mrecv takes the message')
    call expect(60, 'MPI_Mrecv')
    call MPI_Wait(sent, MPI_STATUS_IGNORE)

    call prepare(61)
    call MPI_Isend(out, n, MPI_INTEGER, right, 8, MPI_COMM_WORLD, sent)
    flag = .false.
    do while (.not. flag)
      call MPI_Improbe(left, 8, MPI_COMM_WORLD, flag, message, status)
    end do
    call MPI_Imrecv(in, n, MPI_INTEGER, message, received)
    call MPI_Wait(received, status)
    call MPI_Get_count(status, MPI_INTEGER, elements)
    call check(elements == n, 'the status of MPI_Imrecv')
    call expect(61, 'MPI_Imrecv')
    call MPI_Wait(sent, MPI_STATUS_IGNORE)
    call MPI_Iprobe(left, 8, MPI_COMM_WORLD, flag, status)
    call check(.not. flag, 'MPI_Iprobe where nothing is')
  end subroutine

  ! Three messages from the left, of which nothing is known as long as the left has sent none.
  subroutine completions()
    integer, asynchronous :: numbers(3), ready(3)
    type(MPI_Request) :: requests(3), sent(3)
    type(MPI_Status) :: status, several(3)
    integer :: i, index, count, indices(3), taken
    logical :: flag, seen(3)
    ready = [10, 20, 30] + rank
    do i = 1, 3
      call MPI_Irecv(numbers(i), 1, MPI_INTEGER, left, i, MPI_COMM_WORLD, requests(i))
    end do
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Request_get_status_all(3, requests, flag, MPI_STATUSES_IGNORE)
    call check(.not. flag, 'MPI_Request_get_status_all before anything is sent')
    call MPI_Testany(count=3, array_of_requests=requests, index=index, flag=flag, status=status)
    call check(.not. flag, 'MPI_Testany before anything is sent')
    call MPI_Testsome(3, requests, count, indices, several)
    call check(count == 0, 'MPI_Testsome before anything is sent')
    call MPI_Barrier(MPI_COMM_WORLD)

    call MPI_Isend(ready(2), 1, MPI_INTEGER, right, 2, MPI_COMM_WORLD, sent(1))
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_any(3, requests, index, flag, status)
    end do
    call check(index == 2 .and. status%MPI_TAG == 2, 'MPI_Request_get_status_any')
    call check(requests(2) /= MPI_REQUEST_NULL, 'it leaves the request')
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(3, requests, index, flag, status)
    end do
    call check(index == 2 .and. status%MPI_SOURCE == left, 'MPI_Testany')
    call check(requests(2) == MPI_REQUEST_NULL .and. numbers(2) == 20 + left, 'it ends the request')

    call MPI_Barrier(MPI_COMM_WORLD) ! the left sends the others after this
    call MPI_Isend(ready(1), 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, sent(2))
    call MPI_Isend(ready(3), 1, MPI_INTEGER, right, 3, MPI_COMM_WORLD, sent(3))
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(requests(1), flag, status)
    end do
    call check(status%MPI_TAG == 1, 'MPI_Request_get_status')
    count = 0
    do while (count == 0)
      call MPI_Request_get_status_some(3, requests, count, indices, several)
    end do
    call check(any(indices(:count) == 1) .or. any(indices(:count) == 3), &
               'MPI_Request_get_status_some')
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status_all(3, requests, flag, several)
    end do
    call check(several(1)%MPI_TAG == 1 .and. several(3)%MPI_TAG == 3, 'MPI_Request_get_status_all')
    seen = .false.
    taken = 0
    do while (taken < 2)
      call MPI_Testsome(3, requests, count, indices, several)
      do i = 1, count
        seen(indices(i)) = .true.
        call check(several(i)%MPI_TAG == indices(i), 'the statuses of MPI_Testsome')
      end do
      taken = taken + count
    end do
    call check(all(seen .eqv. [.true., .false., .true.]), 'the indices of MPI_Testsome')
    call MPI_F_sync_reg(numbers)
    call check(all(numbers == [10, 20, 30] + left), 'what MPI_Testsome has completed')
    call MPI_Testsome(3, requests, count, indices, several)
    call check(count == MPI_UNDEFINED, 'MPI_Testsome of no request')
    call MPI_Testany(3, requests, index, flag, status)
    call check(flag .and. index == MPI_UNDEFINED, 'MPI_Testany of no request')
    call MPI_Waitall(3, sent, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine statuses()
    type(MPI_Status) :: status
    type(MPI_Request) :: request
    integer :: value, number
    logical :: flag
    call MPI_Status_set_source(status, 3)
    call MPI_Status_set_tag(status, 99)
    call MPI_Status_set_error(status=status, err=MPI_ERR_OTHER)
    call check(status%MPI_SOURCE == 3 .and. status%MPI_TAG == 99, 'MPI_Status_set_source, _tag')
    call check(status%MPI_ERROR == MPI_ERR_OTHER, 'MPI_Status_set_error')
    call MPI_Status_get_source(status, value)
    call check(value == 3, 'MPI_Status_get_source')
    call MPI_Status_get_tag(status, value)
    call check(value == 99, 'MPI_Status_get_tag')
    call MPI_Status_get_error(status=status, err=value)
    call check(value == MPI_ERR_OTHER, 'MPI_Status_get_error')
    call MPI_Status_set_cancelled(status, .true.)
    call MPI_Test_cancelled(status, flag)
    call check(flag, 'MPI_Status_set_cancelled')
    call MPI_Irecv(number, 1, MPI_INTEGER, left, 1234, MPI_COMM_WORLD, request)
    call cancel(request)
    call MPI_Wait(request, status)
    call MPI_Test_cancelled(status, flag)
    call check(flag, 'MPI_Cancel')
  end subroutine

  subroutine cancel(unchanged)
    type(MPI_Request), intent(in) :: unchanged
    call MPI_Cancel(unchanged)
  end subroutine

  subroutine buffers()
    integer, asynchronous :: room(4 * (n + MPI_BSEND_OVERHEAD))
    type(MPI_Comm) :: comm
    type(MPI_Request) :: request
    type(c_ptr) :: address
    integer :: bytes
    call MPI_Buffer_attach(room, 4 * size(room))
    call prepare(70)
    call MPI_Bsend(out, n, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
    call MPI_Recv(in, n, MPI_INTEGER, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call expect(70, 'MPI_Bsend')
    call MPI_Buffer_flush()
    call MPI_Buffer_iflush(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(address, bytes)
    call check(bytes == 4 * size(room), 'the size of the buffer')

    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_attach_buffer(comm, room, 4 * size(room))
    call prepare(71)
    call MPI_Bsend(out, n, MPI_INTEGER, right, 1, comm)
    call MPI_Recv(in, n, MPI_INTEGER, left, 1, comm, MPI_STATUS_IGNORE)
    call expect(71, 'MPI_Bsend with the buffer of a communicator')
    call MPI_Comm_flush_buffer(comm)
    call MPI_Comm_iflush_buffer(comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Comm_detach_buffer(comm, address, bytes)
    call check(bytes == 4 * size(room), 'the size of the buffer of a communicator')
    call MPI_Comm_free(comm)
  end subroutine
end program
