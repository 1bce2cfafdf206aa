! SPDX-License-Identifier: BSD-3-Clause
! What the table does not tell and is written by hand, through both modules and as MPI_ and PMPI_: the
! two forms of a status, windows as C pointers, sizes of Fortran's types.
module through_mpi
  use mpi
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated
  implicit none
contains
  subroutine old_ones()
    integer :: status(MPI_STATUS_SIZE), again(MPI_STATUS_SIZE), unit, window, code, i
    integer(MPI_ADDRESS_KIND) :: bytes
    integer, asynchronous :: kept
    type(MPI_Status) :: modern
    type(c_ptr) :: memory
    integer, pointer :: numbers(:)
    status = [(10 + i, i = 1, MPI_STATUS_SIZE)]
    again = 0
    call PMPI_Status_f2f08(status, modern, code)
    call PMPI_Status_f082f(modern, again, code)
    call check(all(status == again), 'a status there and back')
    kept = 1
    call MPI_F_sync_reg(kept)
    call PMPI_F_sync_reg(kept)
    bytes = 40
    call PMPI_Alloc_mem(bytes, MPI_INFO_NULL, memory, code)
    call check(c_associated(memory), 'PMPI_Alloc_mem')
    call c_f_pointer(memory, numbers, [10])
    numbers = 7
    call MPI_Free_mem(numbers, code)
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, memory, window, code)
    call written(memory)
    call MPI_Win_free(window, code)
    call PMPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, memory, window, code)
    call written(memory)
    call MPI_Win_free(window, code)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, memory, window, code)
    call MPI_Win_shared_query(window, 0, bytes, unit, memory, code)
    call check(bytes == 40 .and. unit == 4, 'MPI_Win_shared_query')
    call written(memory)
    call MPI_Win_free(window, code)
    call PMPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_SELF, memory, window, code)
    call PMPI_Win_shared_query(window, 0, bytes, unit, memory, code)
    call written(memory)
    call MPI_Win_free(window, code)
  end subroutine

  subroutine written(memory)
    type(c_ptr), intent(in) :: memory
    integer, pointer :: numbers(:)
    call check(c_associated(memory), 'memory of a window')
    call c_f_pointer(memory, numbers, [10])
    numbers = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    call check(sum(numbers) == 55, 'what is in it')
  end subroutine
end module

module through_mpi_f08
  use mpi_f08
  use checks
  implicit none
contains
  subroutine new_ones()
    type(MPI_Status) :: status, again
    integer :: old(MPI_STATUS_SIZE), size, code
    integer, asynchronous :: kept
    double precision :: pair(2)
    status%MPI_SOURCE = 3
    status%MPI_TAG = 4
    status%MPI_ERROR = 5
    call MPI_Status_f082f(status, old)
    call MPI_Status_f2f08(old, again)
    call check(again%MPI_SOURCE == 3 .and. again%MPI_ERROR == 5, 'a status there and back')
    call PMPI_Status_f082f(status, old)
    call PMPI_Status_f2f08(old, again)
    call check(again%MPI_SOURCE == 3 .and. again%MPI_TAG == 4, 'a status there and back, as PMPI')
    call check(old(MPI_SOURCE) == 3 .and. old(MPI_TAG) == 4 .and. old(MPI_ERROR) == 5, 'its parts')
    kept = 1
    call MPI_F_sync_reg(kept)
    call PMPI_F_sync_reg(kept)
    call PMPI_Sizeof(pair, size, code)
    call check(size == 8, 'PMPI_Sizeof')
    ! Types that the compiler may not have: a size, or an error.
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call of_size(MPI_REAL2, 2)
    call of_size(MPI_REAL16, 16)
    call of_size(MPI_COMPLEX4, 4)
    call of_size(MPI_COMPLEX32, 32)
    call of_size(MPI_INTEGER16, 16)
  end subroutine

  subroutine of_size(type, bytes)
    type(MPI_Datatype), intent(in) :: type
    integer, intent(in) :: bytes
    integer :: size, code
    call MPI_Type_size(type, size, code)
    call check(code /= MPI_SUCCESS .or. size == bytes, 'MPI_Type_size')
  end subroutine
end module

program by_hand
  use mpi
  use through_mpi, only: old_ones
  use through_mpi_f08, only: new_ones
  implicit none
  integer :: code
  call MPI_Init(code)
  call old_ones()
  call new_ones()
  call MPI_Finalize(code)
end program
