! SPDX-License-Identifier: BSD-3-Clause
! What is different in MPICH's ABI: procedures that were removed from the standard, predefined
! attributes, error handlers of files, and what C sees of a program in Fortran.
module own_callbacks
  use mpi
  use checks
  implicit none
  integer :: errors = 0, freed = 0
contains

  subroutine on_error(object, code)
    integer :: object, code, class, ierror
    errors = errors + 1
    call MPI_Error_class(code, class, ierror)
    call check(object /= 0 .and. class /= MPI_SUCCESS, 'what an error handler gets')
  end subroutine

  subroutine query(state, status, ierror)
    integer :: status(MPI_STATUS_SIZE), ierror
    integer(MPI_ADDRESS_KIND) :: state
    call check(state == 8, 'what a query callback gets')
    status(MPI_SOURCE) = 5
    status(MPI_TAG) = 6
    call MPI_Status_set_cancelled(status, .true., ierror)
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, ierror)
  end subroutine

  subroutine release(state, ierror)
    integer(MPI_ADDRESS_KIND) :: state
    integer :: ierror
    freed = freed + 1
    state = 9
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: state
    logical :: complete
    integer :: ierror
    call check(.not. complete, 'what a cancel callback gets')
    ierror = MPI_SUCCESS
  end subroutine
end module

program own
  use own_callbacks
  implicit none
  integer :: rank, ranks, ierr
  integer, external :: barriers_seen, are_ignored
  integer(MPI_ADDRESS_KIND), external :: attribute_in_c
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call removed_layouts()
  call removed_handlers()
  call attributes()
  call profiled_callbacks()
  call windows()
  call handlers_of_files()
  call generalized()
  call seen_in_c()
  call MPI_Finalize(ierr)

contains

  ! Addresses in them are INTEGER, which those of a program may not fit in.
  subroutine removed_layouts()
    integer :: type, extent, low, high, code, class, common(4)
    integer(MPI_ADDRESS_KIND) :: address, length
    integer, parameter :: MPI_LB = int(z'4c000010'), MPI_UB = int(z'4c000011')
    common = 0
    call MPI_Get_address(common, address, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
    call MPI_Address(common, extent, code)
    call MPI_Error_class(code, class, ierr)
    call check(merge(extent == address, class == MPI_ERR_ARG, code == MPI_SUCCESS), 'MPI_ADDRESS')
    call PMPI_Address(MPI_BOTTOM, extent, ierr)
    call check(ierr == MPI_SUCCESS .and. extent == 0, 'the address of MPI_BOTTOM')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)

    call MPI_Type_struct(2, [1, 2], [-4, 4], [MPI_INTEGER, MPI_REAL], type, ierr)
    call MPI_Type_extent(type, extent, ierr)
    call MPI_Type_lb(type, low, ierr)
    call MPI_Type_ub(type, high, ierr)
    call check(extent == 16 .and. low == -4 .and. high == 12, 'MPI_TYPE_STRUCT')
    call MPI_Type_free(type, ierr)
    call MPI_Type_struct(3, [1, 1, 1], [-4, 0, 12], [MPI_LB, MPI_INTEGER, MPI_UB], type, ierr)
    call MPI_Type_extent(type, extent, ierr)
    call MPI_Type_lb(type, low, ierr)
    call MPI_Type_ub(type, high, ierr)
    call check(extent == 16 .and. low == -4 .and. high == 12, 'a structure with bounds')
    call MPI_Type_free(type, ierr)
    call MPI_Type_create_struct(2, [2, 1], [4_MPI_ADDRESS_KIND, 24_MPI_ADDRESS_KIND], &
                                [MPI_INTEGER, MPI_UB], type, ierr)
    call MPI_Type_get_extent(type, address, length, ierr)
    call check(address == 4 .and. length == 20, 'a structure with an upper bound')
    call MPI_Type_get_envelope(type, common(1), common(2), common(3), code, ierr)
    call check(ierr == MPI_SUCCESS .and. code == MPI_COMBINER_RESIZED, 'what it says that it is')
    call MPI_Type_free(type, ierr)
    call PMPI_Type_struct(2, [1, 2], [0, 8], [MPI_INTEGER, MPI_DOUBLE_PRECISION], type, ierr)
    call PMPI_Type_extent(type, extent, ierr)
    call PMPI_Type_lb(type, low, ierr)
    call PMPI_Type_ub(type, high, ierr)
    call check(extent == 24 .and. low == 0 .and. high == 24, 'another one')
    call MPI_Type_free(type, ierr)
    call MPI_Type_hvector(2, 1, -8, MPI_INTEGER, type, ierr)
    call moved(type, [3, 1])
    call PMPI_Type_hvector(2, 1, -8, MPI_INTEGER, type, ierr)
    call moved(type, [3, 1])
    call MPI_Type_hindexed(2, [1, 1], [4, -4], MPI_INTEGER, type, ierr)
    call moved(type, [4, 2])
    call PMPI_Type_hindexed(2, [1, 1], [4, -4], MPI_INTEGER, type, ierr)
    call moved(type, [4, 2])
  end subroutine

  ! What a datatype describes around the third of some integers.
  subroutine moved(type, what)
    integer, intent(inout) :: type
    integer, intent(in) :: what(2)
    integer :: from(4), to(2)
    from = [1, 2, 3, 4]
    call MPI_Type_commit(type, ierr)
    call MPI_Sendrecv(from(3), 1, type, rank, 0, to, 2, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierr)
    call check(all(to == what), 'what a removed constructor describes')
    call MPI_Type_free(type, ierr)
  end subroutine

  subroutine removed_handlers()
    integer :: comm, handler, found, again
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    call MPI_Errhandler_create(on_error, handler, ierr)
    call PMPI_Errhandler_create(on_error, again, ierr)
    call MPI_Errhandler_free(again, ierr)
    call PMPI_Errhandler_set(comm, MPI_ERRORS_RETURN, ierr)
    call PMPI_Errhandler_get(comm, found, ierr)
    call check(found == MPI_ERRORS_RETURN, 'a predefined error handler')
    call MPI_Errhandler_set(comm, handler, ierr)
    call MPI_Errhandler_get(comm, found, ierr)
    call check(found == handler, 'MPI_ERRHANDLER_GET')
    call MPI_Send(rank, 1, MPI_INTEGER, 7, 0, comm, ierr)
    call check(errors == 1, 'an error handler of MPI 1')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Comm_free(comm, ierr)
  end subroutine

  subroutine attributes()
    integer :: short, keyval
    integer(MPI_ADDRESS_KIND) :: value
    logical :: found
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, found, ierr)
    call check(found .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, short, found, ierr)
    call check(found .and. short == value, 'MPI_TAG_UB in MPI 1')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, value, found, ierr)
    call check(found .and. value == MPI_ANY_SOURCE, 'MPI_IO')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, value, found, ierr)
    call check(found .and. value >= MPI_ERR_LASTCODE, 'MPI_LASTUSEDCODE')
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, keyval, &
                                0_MPI_ADDRESS_KIND, ierr)
    value = 2_MPI_ADDRESS_KIND**40
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, value, ierr)
    call check(attribute_in_c(MPI_COMM_WORLD, keyval) == value, 'an attribute in C')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierr)
    call MPI_Comm_free_keyval(keyval, ierr)
  end subroutine

  ! The predefined callbacks have names as PMPI_, too, in libraries of this ABI.
  subroutine profiled_callbacks()
    external :: PMPI_Null_copy_fn, PMPI_Dup_fn, PMPI_Null_delete_fn
    external :: PMPI_Comm_null_copy_fn, PMPI_Comm_dup_fn, PMPI_Comm_null_delete_fn
    external :: PMPI_Type_null_copy_fn, PMPI_Type_dup_fn, PMPI_Type_null_delete_fn
    external :: PMPI_Win_null_copy_fn, PMPI_Win_dup_fn, PMPI_Win_null_delete_fn
    integer, parameter :: keyvals = 8
    integer :: keyval(keyvals), comm, i
    integer(MPI_ADDRESS_KIND) :: value
    integer(MPI_ADDRESS_KIND), parameter :: none = 0
    logical :: found
    call MPI_Keyval_create(PMPI_Null_copy_fn, PMPI_Null_delete_fn, keyval(1), 0, ierr)
    call MPI_Keyval_create(PMPI_Dup_fn, PMPI_Null_delete_fn, keyval(2), 0, ierr)
    call MPI_Comm_create_keyval(PMPI_Comm_null_copy_fn, PMPI_Comm_null_delete_fn, keyval(3), &
                                none, ierr)
    call MPI_Comm_create_keyval(PMPI_Comm_dup_fn, PMPI_Comm_null_delete_fn, keyval(4), none, ierr)
    call MPI_Type_create_keyval(PMPI_Type_null_copy_fn, PMPI_Type_null_delete_fn, keyval(5), &
                                none, ierr)
    call MPI_Type_create_keyval(PMPI_Type_dup_fn, PMPI_Type_null_delete_fn, keyval(6), none, ierr)
    call MPI_Win_create_keyval(PMPI_Win_null_copy_fn, PMPI_Win_null_delete_fn, keyval(7), none, &
                               ierr)
    call MPI_Win_create_keyval(PMPI_Win_dup_fn, PMPI_Win_null_delete_fn, keyval(8), none, ierr)
    do i = 1, 4
      call MPI_Comm_set_attr(MPI_COMM_SELF, keyval(i), 3_MPI_ADDRESS_KIND, ierr)
    end do
    call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
    do i = 1, 4
      call MPI_Comm_get_attr(comm, keyval(i), value, found, ierr)
      call check(found .eqv. mod(i, 2) == 0, 'which attributes are copied')
      call MPI_Comm_delete_attr(MPI_COMM_SELF, keyval(i), ierr)
    end do
    call MPI_Comm_free(comm, ierr)
    do i = 1, 4
      call MPI_Comm_free_keyval(keyval(i), ierr)
    end do
    call MPI_Type_free_keyval(keyval(5), ierr)
    call MPI_Type_free_keyval(keyval(6), ierr)
    call MPI_Win_free_keyval(keyval(7), ierr)
    call MPI_Win_free_keyval(keyval(8), ierr)
  end subroutine

  subroutine windows()
    integer :: window, memory(6), keyval, handler
    integer(MPI_ADDRESS_KIND) :: value, address
    logical :: found
    call MPI_Win_create(memory, 24_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
    call MPI_Get_address(memory, address, ierr)
    call MPI_Win_get_attr(window, MPI_WIN_BASE, value, found, ierr)
    call check(found .and. value == address, 'MPI_WIN_BASE')
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, found, ierr)
    call check(found .and. value == 24, 'MPI_WIN_SIZE')
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, found, ierr)
    call check(found .and. value == 4, 'MPI_WIN_DISP_UNIT')
    call MPI_Win_get_attr(window, MPI_WIN_CREATE_FLAVOR, value, found, ierr)
    call check(found .and. value == MPI_WIN_FLAVOR_CREATE, 'MPI_WIN_CREATE_FLAVOR')
    call MPI_Win_get_attr(window, MPI_WIN_MODEL, value, found, ierr)
    call check(found .and. (value == MPI_WIN_UNIFIED .or. value == MPI_WIN_SEPARATE), &
               'MPI_WIN_MODEL')
    call MPI_Win_create_keyval(MPI_WIN_DUP_FN, MPI_WIN_NULL_DELETE_FN, keyval, &
                               0_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_set_attr(window, keyval, -5_MPI_ADDRESS_KIND, ierr)
    call MPI_Win_get_attr(window, keyval, value, found, ierr)
    call check(found .and. value == -5, 'an attribute of a window')
    call MPI_Win_create_errhandler(on_error, handler, ierr)
    call MPI_Win_set_errhandler(window, handler, ierr)
    errors = 0
    call MPI_Put(rank, 1, MPI_INTEGER, ranks, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, window, ierr)
    call check(errors == 1, 'an error handler of a window')
    call MPI_Errhandler_free(handler, ierr)
    call MPI_Win_free_keyval(keyval, ierr)
    call MPI_Win_free(window, ierr)
  end subroutine

  subroutine handlers_of_files()
    integer :: file, handler
    call MPI_File_create_errhandler(on_error, handler, ierr)
    call MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN, ierr)
    file = 17
    call MPI_File_open(MPI_COMM_SELF, '/nowhere/at/all', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call check(ierr /= MPI_SUCCESS, 'a file that is not there')
    call MPI_File_open(MPI_COMM_SELF, '/dev/null', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call check(ierr == MPI_SUCCESS .and. file /= MPI_FILE_NULL, 'a file')
    call MPI_File_set_errhandler(file, handler, ierr)
    errors = 0
    call MPI_File_seek(file, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call check(errors == 1, 'an error handler of a file')
    call MPI_File_close(file, ierr)
    call check(file == MPI_FILE_NULL, 'MPI_FILE_CLOSE')
    call MPI_Errhandler_free(handler, ierr)
  end subroutine

  subroutine generalized()
    integer :: request, elements
    integer(MPI_ADDRESS_KIND), asynchronous :: state
    integer, asynchronous :: status(MPI_STATUS_SIZE)
    logical :: flag
    state = 8
    call MPI_Grequest_start(query, release, cancel, state, request, ierr)
    call MPI_Cancel(request, ierr)
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_F_sync_reg(status)
    call PMPI_F_sync_reg(state)
    call MPI_Get_elements(status, MPI_INTEGER, elements, ierr)
    call MPI_Test_cancelled(status, flag, ierr)
    call check(status(MPI_SOURCE) == 5 .and. status(MPI_TAG) == 6 .and. elements == 3 .and. flag, &
               'the status of a generalized request')
    call check(freed == 1 .and. state == 9 .and. request == MPI_REQUEST_NULL, &
               'a generalized request freed')
  end subroutine

  ! A tool in C sees each call once, and none of PMPI's.
  subroutine seen_in_c()
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call PMPI_Barrier(MPI_COMM_WORLD, ierr)
    call check(barriers_seen() == 1, 'barriers that a tool in C sees')
    call check(are_ignored(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE) == 1, &
               'what C knows of the statuses that Fortran ignores')
  end subroutine
end program
