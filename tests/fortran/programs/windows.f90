! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: one-sided communication with array sections, windows of all kinds and their attributes.
module window_callbacks
  use mpi_f08
  use checks
  implicit none
  integer :: errors = 0, deleted = 0
contains
  subroutine on_error(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    errors = errors + 1
    call check(win /= MPI_WIN_NULL .and. error_code /= MPI_SUCCESS, 'what an error handler gets')
  end subroutine

  subroutine delete_win(win, win_keyval, attribute_val, extra_state, ierror)
    type(MPI_Win) :: win
    integer :: win_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call check(attribute_val == 77 .and. extra_state == 3, 'what a delete callback gets')
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program windows
  use window_callbacks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_loc, c_associated
  implicit none
  integer :: rank, ranks, left, right
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  call created()
  call allocated()
  call shared()
  call objects()
  call MPI_Finalize()

contains

  subroutine created()
    integer, asynchronous :: memory(10), got(10)
    type(MPI_Win) :: win
    integer :: i
    memory = -1
    call MPI_Win_create(memory, 40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    got = [(100 * rank + i, i = 1, 10)]
    call MPI_Win_fence(0, win)
    call MPI_Put(got(1:10:3), 4, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 4, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(memory)
    call check(all(memory == [-1, -1, 100 * left + [1, 4, 7, 10], -1, -1, -1, -1]), 'MPI_Put')
    got = 0
    call MPI_Get(got(10:1:-4), 3, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 3, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(got)
    call check(all(got(10:1:-4) == 100 * rank + [1, 4, 7]) .and. count(got == 0) >= 7, 'MPI_Get')
    got = rank
    memory = 0
    call MPI_Win_fence(0, win)
    call MPI_Accumulate(got(1:9:4), 3_MPI_COUNT_KIND, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, &
                        3_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(memory)
    if (rank == 0) call check(all(memory == [(ranks * (ranks - 1) / 2, i = 1, 3), (0, i = 4, 10)]), &
                              'MPI_Accumulate')
    call MPI_Win_free(win)
    call check(win == MPI_WIN_NULL, 'MPI_Win_free')
  end subroutine

  subroutine allocated()
    type(c_ptr) :: pointer
    integer(MPI_ADDRESS_KIND) :: value
    integer, pointer :: memory(:)
    integer, asynchronous :: old, one
    type(MPI_Win) :: win
    type(MPI_Request) :: request
    logical :: found
    call MPI_Win_allocate(80_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, pointer, win)
    call c_f_pointer(pointer, memory, [20])
    memory = 0
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, found)
    call check(found .and. c_associated(pointer, transfer(value, pointer)), 'MPI_WIN_BASE')
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, found)
    call check(found .and. value == 80, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, found)
    call check(found .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, found)
    call check(found .and. value == MPI_WIN_FLAVOR_ALLOCATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Barrier(MPI_COMM_WORLD)
    one = 1
    call MPI_Win_lock_all(0, win)
    call MPI_Fetch_and_op(one, old, MPI_INTEGER, 0, 5_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_flush(0, win)
    call MPI_F_sync_reg(old)
    call check(old >= 0 .and. old < ranks, 'MPI_Fetch_and_op')
    call MPI_Rput(rank, 1, MPI_INTEGER, right, 7_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call check(memory(8) == left .and. memory(6) == merge(ranks, 0, rank == 0), 'MPI_Rput')
    call MPI_Win_unlock(rank, win)
    call MPI_Win_free(win)
  end subroutine

  subroutine shared()
    type(c_ptr) :: pointer
    integer(MPI_ADDRESS_KIND) :: size
    integer :: unit
    integer, pointer :: mine(:), theirs(:)
    type(MPI_Comm) :: node
    type(MPI_Win) :: win
    integer :: here, on_node
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node)
    call MPI_Comm_rank(node, here)
    call MPI_Comm_size(node, on_node)
    call MPI_Win_allocate_shared(16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, node, pointer, win)
    call c_f_pointer(pointer, mine, [4])
    call MPI_Win_fence(0, win)
    mine = 10 * here
    call MPI_Win_fence(0, win)
    call MPI_Win_shared_query(win, modulo(here + 1, on_node), size, unit, pointer)
    call check(size == 16 .and. unit == 4, 'MPI_Win_shared_query')
    call c_f_pointer(pointer, theirs, [4])
    call check(all(theirs == 10 * modulo(here + 1, on_node)), 'the memory of a neighbour')
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
  end subroutine

  subroutine objects()
    type(MPI_Win) :: win
    type(MPI_Errhandler) :: handler
    integer :: keyval, length, memory(2), code
    integer(MPI_ADDRESS_KIND) :: value
    logical :: found
    character(len=MPI_MAX_OBJECT_NAME) :: name
    call MPI_Win_create(memory, 8_MPI_ADDRESS_KIND, 1, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_set_name(win, 'a window')
    call MPI_Win_get_name(win, name, length)
    call check(name == 'a window' .and. length == 8, 'the name of a window')
    call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_win, keyval, 3_MPI_ADDRESS_KIND)
    call MPI_Win_set_attr(win, keyval, 77_MPI_ADDRESS_KIND)
    call MPI_Win_get_attr(win, keyval, value, found)
    call check(found .and. value == 77, 'an attribute of a window')
    call MPI_Win_create_errhandler(on_error, handler)
    call MPI_Win_set_errhandler(win, handler)
    call MPI_Win_fence(0, win)
    call MPI_Put(rank, 1, MPI_INTEGER, ranks, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, code)
    call check(errors == 1, 'an error handler of a window')
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
    call check(deleted == 1, 'an attribute deleted with its window')
    call MPI_Errhandler_free(handler)
    call MPI_Win_free_keyval(keyval)
  end subroutine
end program
