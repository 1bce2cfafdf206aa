! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: reductions, attributes, error handlers and generalized requests written in Fortran.
module procedures
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  integer :: copied = 0, deleted = 0, errors = 0, last_error = 0, freed = 0, cancelled = 0
  integer(MPI_ADDRESS_KIND), parameter :: state = -123456789012_MPI_ADDRESS_KIND
contains

  ! Not commutative: the second of two pairs wins where it is not zero.
  subroutine rightmost(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call check(datatype == MPI_INTEGER, 'the datatype of a reduction')
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    where (inout == 0) inout = in
  end subroutine

  subroutine total(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    double precision, pointer :: in(:), inout(:)
    call check(datatype == MPI_DOUBLE_PRECISION, 'the datatype of a reduction')
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = in + inout
  end subroutine

  subroutine copy_comm(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, &
                       flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call check(oldcomm == MPI_COMM_WORLD .and. extra_state == state, 'what a copy callback gets')
    copied = copied + 1
    attribute_val_out = attribute_val_in + 1
    flag = attribute_val_in /= 99
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_comm(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    call check(extra_state == state, 'what a delete callback gets')
    deleted = deleted + 1
    ierror = merge(MPI_ERR_OTHER, MPI_SUCCESS, attribute_val == 13)
  end subroutine

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    errors = errors + 1
    last_error = error_code
    call check(comm /= MPI_COMM_NULL, 'what an error handler gets')
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call check(extra_state == state, 'what a query callback gets')
    status%MPI_SOURCE = 5
    status%MPI_TAG = 6
    call MPI_Status_set_cancelled(status, .false.)
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    cancelled = cancelled + merge(0, 1, complete)
    ierror = MPI_SUCCESS
  end subroutine
end module

program callbacks
  use procedures
  implicit none
  integer :: rank, ranks
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call reductions()
  call attributes()
  call predefined_attributes()
  call error_handlers()
  call generalized()
  call MPI_Finalize()

contains

  subroutine reductions()
    type(MPI_Op) :: op, large
    integer :: mine(3), result(3), round
    double precision :: sums(4)
    logical :: commutes
    do round = 1, 300 ! one function, however often it becomes an operation
      call MPI_Op_create(rightmost, .false., op)
      if (round < 300) call MPI_Op_free(op)
    end do
    call MPI_Op_commutative(op, commutes)
    call check(.not. commutes, 'MPI_Op_commutative')
    mine = [rank + 1, merge(8, 0, rank == 0), 0]
    call MPI_Allreduce(mine, result, 3, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(all(result == [ranks, 8, 0]), 'a reduction in Fortran')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
    call MPI_Op_create_c(total, .true., large)
    sums = rank
    call MPI_Allreduce(MPI_IN_PLACE, sums, 4_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, large, &
                       MPI_COMM_WORLD)
    call check(all(sums == ranks * (ranks - 1) / 2), 'a reduction with large counts')
    call MPI_Op_free(large)
  end subroutine

  subroutine attributes()
    integer :: keyval, dup_keyval, code
    integer(MPI_ADDRESS_KIND) :: value
    integer(MPI_ADDRESS_KIND), parameter :: long = 2_MPI_ADDRESS_KIND**40 + 7
    logical :: found
    type(MPI_Comm) :: copy
    type(MPI_Datatype) :: type, second
    call MPI_Comm_create_keyval(copy_comm, delete_comm, keyval, state)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, dup_keyval, state)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, found)
    call check(.not. found, 'no attribute yet')
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, long)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, dup_keyval, -long)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    call check(copied == 1, 'one copy')
    call MPI_Comm_get_attr(copy, keyval, value, found)
    call check(found .and. value == long + 1, 'an attribute copied')
    call MPI_Comm_get_attr(copy, dup_keyval, value, found)
    call check(found .and. value == -long, 'MPI_COMM_DUP_FN')
    call MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN)
    call MPI_Comm_set_attr(copy, keyval, 13_MPI_ADDRESS_KIND)
    call check(deleted == 1, 'setting an attribute again deletes it')
    call MPI_Comm_delete_attr(copy, keyval, code)
    call check(code /= MPI_SUCCESS, 'a delete callback that fails')
    call MPI_Comm_get_attr(copy, keyval, value, found)
    call check(found .and. value == 13, 'an attribute whose deletion failed')
    call MPI_Comm_delete_attr(copy, dup_keyval)
    call MPI_Comm_get_attr(copy, dup_keyval, value, found)
    call check(.not. found, 'an attribute deleted')
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 99_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy)
    call MPI_Comm_get_attr(copy, keyval, value, found)
    call check(.not. found, 'a copy callback that says no')
    call MPI_Comm_free(copy)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
    call MPI_Comm_free_keyval(keyval)
    call check(keyval == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')

    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, state)
    call MPI_Type_contiguous(2, MPI_REAL, type)
    call MPI_Type_set_attr(type, keyval, long)
    call MPI_Type_dup(type, second)
    call MPI_Type_get_attr(second, keyval, value, found)
    call check(found .and. value == long, 'an attribute of a datatype')
    call MPI_Type_free(type)
    call MPI_Type_free(second)
    call MPI_Type_free_keyval(keyval)
  end subroutine

  subroutine predefined_attributes()
    integer(MPI_ADDRESS_KIND) :: value
    logical :: found
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found)
    call check(found .and. value >= 32767 .and. value < 2_MPI_ADDRESS_KIND**31, 'MPI_TAG_UB')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, value, found)
    call check(.not. found .or. value == 0 .or. value == 1, 'MPI_WTIME_IS_GLOBAL')
  end subroutine

  subroutine error_handlers()
    type(MPI_Errhandler) :: handler, found
    type(MPI_Comm) :: comm
    integer :: code, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_create_errhandler(on_error, handler)
    call MPI_Comm_set_errhandler(comm, handler)
    call MPI_Comm_get_errhandler(comm, found)
    call check(found == handler, 'MPI_Comm_get_errhandler')
    call MPI_Errhandler_free(handler)
    call MPI_Errhandler_free(found)
    call check(handler == MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
    call MPI_Send(rank, 1, MPI_INTEGER, ranks, 1, comm, code)
    call check(errors == 1, 'an error handler in Fortran')
    ! What a call returns after the handler of a user is not the same in all libraries.
    call MPI_Error_class(last_error, class)
    call check(class == MPI_ERR_RANK, 'the class of an error')
    call MPI_Error_string(last_error, text, length)
    call check(length > 0 .and. len_trim(text) == length, 'the text of an error')
    call MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER)
    call check(errors == 2 .and. last_error == MPI_ERR_OTHER, 'MPI_Comm_call_errhandler')
    call MPI_Comm_free(comm)
  end subroutine

  subroutine generalized()
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: elements
    logical :: flag
    call MPI_Grequest_start(query, release, cancel, state, request)
    call MPI_Test(request, flag, status)
    call check(.not. flag, 'a generalized request that is not complete')
    call MPI_Cancel(request)
    call check(cancelled == 1, 'a generalized request cancelled')
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_elements(status, MPI_INTEGER, elements)
    call check(status%MPI_SOURCE == 5 .and. status%MPI_TAG == 6 .and. elements == 3, &
               'the status of a generalized request')
    call check(freed == 1 .and. request == MPI_REQUEST_NULL, 'a generalized request freed')
  end subroutine
end program
