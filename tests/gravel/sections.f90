! SPDX-License-Identifier: BSD-3-Clause
!
! Fortran arrays as they are: parts of registered arrays with any bounds, and what the compiler would
! copy refused.
program sections
  use mpi
  use gravel
  implicit none
  integer(gravel_size_kind), parameter :: zero = 0, column = 8 * 50
  double precision, asynchronous :: field(-1:48, 0:19), copy(50, 20)
  real, asynchronous, allocatable :: bounds(:)
  double precision :: plain(-1:48, 0:19) ! not ASYNCHRONOUS
  integer(gravel_handle_kind) :: received, got, fin, buffer
  integer :: rank, ranks, before, next, j, ierror, found
  integer(gravel_size_kind) :: bytes
  logical :: flag
  character(len=400) :: text

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  next = modulo(rank + 1, ranks)
  allocate (bounds(-100:100))

  call gravel_init(MPI_COMM_WORLD, ierror)
  call expect(ierror == GRAVEL_SUCCESS, 'init')
  call gravel_register(field, 8_gravel_size_kind * size(field))
  call gravel_register(copy, 8_gravel_size_kind * size(copy))
  call gravel_register(bounds, 4_gravel_size_kind * size(bounds))
  call gravel_register(plain, 8_gravel_size_kind * size(plain))

  ! A row has gaps. Of an ASYNCHRONOUS array the compiler refuses it; of another one it passes a copy,
  ! which is not registered.
  call gravel_post_recv_buffer_rdma(before, plain(3, :), 8_gravel_size_kind * 20, 1, received, ierror)
  call expect(ierror == GRAVEL_ERR_MEMORY, 'a row')
  call gravel_error_message(text)
  call expect(index(text, 'copy of an array section') /= 0, 'message')
  call gravel_post_recv_buffer_rdma(before, plain(-1:48:2, 5), 8_gravel_size_kind * 25, 1, &
                                    received, ierror)
  call expect(ierror == GRAVEL_ERR_MEMORY, 'a stride')

  ! Sizes below zero.
  call gravel_post_send_request_rdma(next, -1_gravel_size_kind, 9, ierror=ierror)
  call expect(ierror == GRAVEL_ERR_ARGUMENT, 'a send request of less than nothing')
  call gravel_promise_recv_buffers(before, column, 9, -1_gravel_size_kind, ierror)
  call expect(ierror == GRAVEL_ERR_ARGUMENT, 'a promise of less than nothing')

  ! A column has none; an element stands for what follows it.
  field = -1
  do j = 1, 20
    copy(:, j) = 100 * rank + j
  end do
  call gravel_post_recv_buffer_rdma(before, field(:, 4), column, 1, received)
  call gravel_wait_recv_buffer(next, 1, buffer)
  call gravel_post_os_put(buffer, copy(1, 7), column, zero)
  call gravel_send_fin(buffer)
  flag = .false.
  do while (.not. flag)
    call gravel_test(received, flag)
  end do
  call expect(all(field(:, 4) == 100 * before + 7), 'column 4')
  call expect(all(field(:, :3) == -1) .and. all(field(:, 5:) == -1), 'other columns')

  ! Bounds below zero, and reading.
  do j = -100, 100
    bounds(j) = j + 1000 * rank
  end do
  call gravel_post_send_buffer_rdma(next, bounds(-50:50), 4_gravel_size_kind * 101, 2, received)
  flag = .false.
  do while (.not. flag)
    call gravel_test_send_buffer(before, GRAVEL_ANY_TAG, buffer, flag)
  end do
  call gravel_get_buffer(buffer, peer=found, bytes=bytes)
  call expect(found == before .and. bytes == 404, 'buffer')
  call gravel_post_os_get(buffer, bounds(60), 4_gravel_size_kind * 11, 4_gravel_size_kind * 45, got)
  call gravel_wait(got)
  call gravel_send_fin(buffer, fin)
  call gravel_wait(fin)
  call gravel_wait(received)
  call expect(all(bounds(60:70) == [(j + 1000 * before, j=-5, 5)]), 'what was read')
  call expect(bounds(59) == 59 + 1000 * rank .and. bounds(71) == 71 + 1000 * rank, 'beside it')

  call gravel_finalize(ierror)
  call expect(ierror == GRAVEL_SUCCESS, 'finalize')
  if (rank == 0) print '(a,i0,a)', 'sections: ', ranks, ' ranks agree'
  call MPI_Finalize(ierror)

contains

  subroutine expect(condition, what)
    logical, intent(in) :: condition
    character(len=*), intent(in) :: what
    if (condition) return
    call gravel_error_message(text)
    print *, 'rank', rank, ': wrong: ', what, '; ', trim(text)
    error stop
  end subroutine
end program
