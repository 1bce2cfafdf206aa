! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: the operations of one-sided communication that `windows` does not have, in every kind of
! epoch, and memory that joins a window later.
program epochs
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: n = 4
  integer :: rank, ranks, left, right, i
  integer, asynchronous :: memory(n)
  type(MPI_Win) :: win
  integer(MPI_ADDRESS_KIND), parameter :: first = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  call MPI_Win_create(memory, int(4 * n, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
  call general_active_target()
  call flushes()
  call atomics()
  call objects()
  call MPI_Win_free(win)
  call dynamic()
  call MPI_Finalize()

contains

  subroutine set(base)
    integer, intent(in) :: base
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win)
    memory = [(base + 10 * rank + i, i = 1, n)]
    call MPI_F_sync_reg(memory)
    call MPI_Win_unlock(rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine expect(values, what)
    integer, intent(in) :: values(n)
    character(len=*), intent(in) :: what
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call MPI_F_sync_reg(memory)
    call check(all(memory == values), what)
    call MPI_Win_unlock(rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine general_active_target()
    type(MPI_Group) :: all, to, from
    integer, asynchronous :: out(n)
    integer :: round
    logical :: flag
    call MPI_Win_get_group(win, all)
    call MPI_Group_incl(all, 1, [right], to)
    call MPI_Group_incl(all, 1, [left], from)
    do round = 1, 2
      call set(0)
      out = [(100 * round + 10 * rank + i, i = 1, n)]
      call MPI_Win_post(from, 0, win)
      call MPI_Win_start(to, 0, win)
      call MPI_Put(out, n, MPI_INTEGER, right, first, n, MPI_INTEGER, win)
      call MPI_Win_complete(win)
      if (round == 1) then
        call MPI_Win_wait(win)
      else
        flag = .false.
        do while (.not. flag)
          call MPI_Win_test(win, flag)
        end do
      end if
      call expect([(100 * round + 10 * left + i, i = 1, n)], 'MPI_Win_post, start, complete, wait')
    end do
    call MPI_Group_free(to)
    call MPI_Group_free(from)
    call MPI_Group_free(all)
  end subroutine

  subroutine flushes()
    integer, asynchronous :: out(n), got(n), result(n)
    type(MPI_Request) :: request
    call set(0)
    call MPI_Win_lock_all(0, win)
    out = [(500 + 10 * rank + i, i = 1, n)]
    call MPI_Rput(out, n, MPI_INTEGER, right, first, n, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_flush_all(win)
    got = 0
    call MPI_Rget(got, n, MPI_INTEGER, right, first, n, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(got)
    call check(all(got == out), 'MPI_Rget after MPI_Rput and MPI_Win_flush_all')
    call MPI_Raccumulate(out, n, MPI_INTEGER, right, first, n, MPI_INTEGER, MPI_SUM, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_flush(right, win)
    call MPI_Rget_accumulate(out, n, MPI_INTEGER, result, n, MPI_INTEGER, right, first, n, &
                             MPI_INTEGER, MPI_REPLACE, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(result)
    call check(all(result == 2 * out), 'MPI_Raccumulate and MPI_Rget_accumulate')
    call MPI_Get_accumulate(out, n, MPI_INTEGER, result, n, MPI_INTEGER, right, first, n, &
                            MPI_INTEGER, MPI_NO_OP, win)
    call MPI_Win_flush_local(right, win)
    call MPI_F_sync_reg(result)
    call check(all(result == out), 'MPI_Get_accumulate')
    call MPI_Put(out, 1, MPI_INTEGER, right, first, 1, MPI_INTEGER, win)
    call MPI_Win_flush_local_all(win)
    call MPI_Win_sync(win)
    call MPI_Win_unlock_all(win)
    call expect([(500 + 10 * left + i, i = 1, n)], 'all of them')
  end subroutine

  ! Everyone counts at rank 0; and who finds a place empty fills it.
  subroutine atomics()
    integer, asynchronous :: before, old
    integer :: winners
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win)
    memory = 0
    call MPI_F_sync_reg(memory)
    call MPI_Win_unlock(rank, win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win)
    call MPI_Fetch_and_op(1, before, MPI_INTEGER, 0, first, MPI_SUM, win)
    call MPI_Compare_and_swap(rank + 1, 0, old, MPI_INTEGER, 0, 1_MPI_ADDRESS_KIND, win)
    call MPI_Win_unlock(0, win)
    call MPI_F_sync_reg(before)
    call MPI_F_sync_reg(old)
    call check(before >= 0 .and. before < ranks, 'MPI_Fetch_and_op')
    call MPI_Allreduce(merge(1, 0, old == 0), winners, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(winners == 1, 'MPI_Compare_and_swap lets one win')
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call MPI_F_sync_reg(memory)
    if (rank == 0) call check(memory(1) == ranks .and. memory(2) >= 1, 'what they have left')
    call MPI_Win_unlock(rank, win)
  end subroutine

  subroutine objects()
    type(MPI_Info) :: info
    type(MPI_Errhandler) :: handler
    integer :: keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_get_info(win, info)
    call MPI_Win_set_info(win, info)
    call MPI_Info_free(info)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_get_errhandler(win, handler)
    call check(handler == MPI_ERRORS_RETURN, 'MPI_Win_get_errhandler')
    call MPI_Win_call_errhandler(win, MPI_ERR_OTHER, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_Win_call_errhandler')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, keyval, first)
    call MPI_Win_set_attr(win, keyval, 8_MPI_ADDRESS_KIND)
    call MPI_Win_delete_attr(win, keyval)
    call MPI_Win_get_attr(win, keyval, value, flag)
    call check(.not. flag, 'MPI_Win_delete_attr')
    call MPI_Win_free_keyval(keyval)
  end subroutine

  subroutine dynamic()
    integer(MPI_ADDRESS_KIND) :: own, its
    integer, asynchronous :: later(n), out(n)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
    later = -1
    call MPI_Win_attach(win, later, int(4 * n, MPI_ADDRESS_KIND))
    call MPI_Get_address(later, own)
    call MPI_Sendrecv(own, 1, MPI_AINT, left, 1, its, 1, MPI_AINT, right, 1, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE)
    out = [(10 * rank + i, i = 1, n)]
    call MPI_Win_fence(0, win)
    call MPI_Put(out, n, MPI_INTEGER, right, its, n, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(later)
    call check(all(later == [(10 * left + i, i = 1, n)]), 'MPI_Put into attached memory')
    call MPI_Win_detach(win, later)
    call MPI_Win_free(win)
  end subroutine
end program
