! SPDX-License-Identifier: BSD-3-Clause
! Module mpi: callbacks with handles that are integers, attributes, memory as address and as pointer,
! buffered sends, and the names that mpi_f08 does not have any more.
module older_callbacks
  use mpi
  use checks
  implicit none
  integer :: errors = 0, deleted = 0
contains

  subroutine largest(in, inout, length, datatype)
    integer :: length, datatype
    double precision :: in(length), inout(length)
    call check(datatype == MPI_DOUBLE_PRECISION, 'the datatype of a reduction')
    inout = max(in, inout)
  end subroutine

  subroutine on_error(comm, code)
    integer :: comm, code
    errors = errors + 1
    call check(comm /= MPI_COMM_NULL .and. code /= MPI_SUCCESS, 'what an error handler gets')
  end subroutine

  subroutine copy_type(old, keyval, state, value_in, value_out, flag, ierror)
    integer :: old, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: state, value_in, value_out
    logical :: flag
    call check(old /= MPI_DATATYPE_NULL .and. state == 5, 'what a copy callback gets')
    value_out = 2 * value_in
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_type(datatype, keyval, value, state, ierror)
    integer :: datatype, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: state, value
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine copy_comm(old, keyval, state, value_in, value_out, flag, ierror)
    integer :: old, keyval, state, value_in, value_out, ierror
    logical :: flag
    call check(old /= MPI_COMM_NULL .and. state == 6, 'what a copy callback of MPI 1 gets')
    value_out = 2 * value_in
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_comm(comm, keyval, value, state, ierror)
    integer :: comm, keyval, value, state, ierror
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program older
  use older_callbacks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: rank, ranks, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call reductions()
  call attributes()
  call integer_attributes()
  call memory()
  call error_handlers()
  call MPI_Finalize(ierr)

contains

  subroutine reductions()
    integer :: op
    double precision :: x(3), y(3)
    logical :: commutes
    call MPI_Op_create(largest, .true., op, ierr)
    call MPI_Op_commutative(op, commutes, ierr)
    x = [dble(rank), -dble(rank), 1d0]
    call MPI_Allreduce(x, y, 3, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD, ierr)
    call check(commutes .and. all(y == [ranks - 1d0, 0d0, 1d0]), 'a reduction in Fortran')
    call MPI_Op_free(op, ierr)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
  end subroutine

  subroutine attributes()
    integer :: keyval, comm_keyval, type, copy, comm
    integer(MPI_ADDRESS_KIND) :: value
    logical :: found
    call MPI_Type_create_keyval(copy_type, delete_type, keyval, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_contiguous(3, MPI_INTEGER, type, ierr)
    call MPI_Type_set_attr(type, keyval, 21_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(type, copy, ierr)
    call MPI_Type_get_attr(copy, keyval, value, found, ierr)
    call check(found .and. value == 42, 'an attribute copied')
    call MPI_Type_free(type, ierr)
    call MPI_Type_free(copy, ierr)
    call check(deleted == 2, 'attributes deleted')
    call MPI_Type_free_keyval(keyval, ierr)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, comm_keyval, &
                                0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, comm_keyval, -1_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_get_attr(comm, comm_keyval, value, found, ierr)
    call check(.not. found, 'MPI_COMM_NULL_COPY_FN')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, comm_keyval, value, found, ierr)
    call check(found .and. value == -1, 'a negative attribute')
    call MPI_Comm_free(comm, ierr)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, comm_keyval, ierr)
    call MPI_Comm_free_keyval(comm_keyval, ierr)
  end subroutine

  ! Those of MPI 1: values are default integers, in the callbacks too.
  subroutine integer_attributes()
    integer :: keyval, comm, copy, value
    logical :: found
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Keyval_create(copy_comm, delete_comm, keyval, 6, ierr)
    deleted = 0
    call MPI_Attr_put(comm, keyval, -21, ierr)
    call MPI_Comm_dup(comm, copy, ierr)
    call MPI_Attr_get(copy, keyval, value, found, ierr)
    call check(found .and. value == -42, 'an integer attribute copied')
    call MPI_Attr_delete(copy, keyval, ierr)
    call MPI_Attr_get(copy, keyval, value, found, ierr)
    call check(deleted == 1 .and. .not. found, 'MPI_Attr_delete')
    call MPI_Comm_free(copy, ierr)
    call MPI_Comm_free(comm, ierr)
    call MPI_Keyval_free(keyval, ierr)
    call check(deleted == 2 .and. keyval == MPI_KEYVAL_INVALID, 'MPI_Keyval_free')
  end subroutine

  subroutine memory()
    integer(MPI_ADDRESS_KIND) :: address
    type(c_ptr) :: pointer
    integer, pointer :: a(:)
    integer :: room(2 * MPI_BSEND_OVERHEAD), size, value, unused(1)
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, pointer, ierr)
    call c_f_pointer(pointer, a, [20])
    a = rank
    call check(all(a == rank), 'MPI_Alloc_mem with a pointer')
    call MPI_Free_mem(a, ierr)
    call MPI_Alloc_mem(80_MPI_ADDRESS_KIND, MPI_INFO_NULL, address, ierr)
    call check(address /= 0, 'MPI_Alloc_mem with an address')
    call c_f_pointer(transfer(address, pointer), a, [20])
    call MPI_Free_mem(a, ierr)
    call MPI_Buffer_attach(room, 8 * MPI_BSEND_OVERHEAD, ierr)
    call MPI_Bsend(rank, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, ierr)
    call MPI_Recv(value, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    unused = 17
    call MPI_Buffer_detach(unused, size, ierr)
    call check(size == 8 * MPI_BSEND_OVERHEAD .and. unused(1) == 17 .and. value == rank, &
               'MPI_Buffer_detach leaves its first argument alone')
  end subroutine

  subroutine error_handlers()
    integer :: handler, comm, value, code
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
    call MPI_Comm_set_errhandler(comm, handler, ierr)
    call MPI_Errhandler_free(handler, ierr)
    value = 0
    call MPI_Send(value, 1, MPI_INTEGER, 7, 0, comm, code)
    call MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER, ierr)
    call check(errors == 2, 'an error handler in Fortran')
    call MPI_Comm_free(comm, ierr)
  end subroutine
end program
