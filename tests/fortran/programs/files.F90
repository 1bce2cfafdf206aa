! SPDX-License-Identifier: BSD-3-Clause
! Files. Compiled three times, once for each interface: with WITH_F08 for module mpi_f08, with
! WITH_MODULE for module mpi, else with mpif.h.
#include "handles.inc"
#ifdef WITH_F08
#define STATUS(name) type(MPI_Status) :: name
#define BUFFER(name) type(c_ptr), value :: name
#else
#define STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define BUFFER(name) integer :: name(*)
#endif

! The callbacks, and all of MPI for the program.
module file_callbacks
#ifdef WITH_F08
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
#elif defined(WITH_MODULE)
  use mpi
#endif
  use checks
  implicit none
#if !defined(WITH_F08) && !defined(WITH_MODULE)
  include 'mpif.h'
#endif
  integer(MPI_ADDRESS_KIND), parameter :: state = -123456789012_MPI_ADDRESS_KIND
  integer :: errors = 0, last_error = 0, conversions = 0
contains

  subroutine on_error(file, error_code)
    HANDLE(MPI_File) :: file
    integer :: error_code
    errors = errors + 1
    last_error = error_code
    call check(file /= MPI_FILE_NULL, 'what an error handler gets')
  end subroutine

  subroutine extent_of(datatype, extent, extra_state, ierror)
    HANDLE(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror, bytes
    call check(extra_state == state, 'what an extent callback gets')
    call MPI_Type_size(datatype, bytes, ierror)
    extent = bytes
  end subroutine

  ! In the file each number has the other sign.
  subroutine negate(from, to, count, place)
    integer, intent(in) :: count, from(count)
    integer, intent(inout) :: to(*)
    integer(MPI_OFFSET_KIND), intent(in) :: place
    to(place + 1 : place + count) = -from
    conversions = conversions + 1
  end subroutine

  subroutine read_negated(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    BUFFER(userbuf)
    BUFFER(filebuf)
    HANDLE(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
#ifdef WITH_F08
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    call negate(file, user, count, position)
#else
    call negate(filebuf, userbuf, count, position)
#endif
    call check(extra_state == state .and. datatype == MPI_INTEGER, 'what a read conversion gets')
    ierror = MPI_SUCCESS
  end subroutine

  subroutine write_negated(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    BUFFER(userbuf)
    BUFFER(filebuf)
    HANDLE(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer(MPI_OFFSET_KIND), parameter :: first = 0
#ifdef WITH_F08
    integer, pointer :: user(:), file(:)
    call c_f_pointer(userbuf, user, [int(position) + count])
    call c_f_pointer(filebuf, file, [count])
    call negate(user(position + 1 :), file, count, first)
#else
    call negate(userbuf(position + 1 : position + count), filebuf, count, first)
#endif
    call check(extra_state == state .and. datatype == MPI_INTEGER, 'what a write conversion gets')
    ierror = MPI_SUCCESS
  end subroutine

#ifdef WITH_F08
  subroutine read_negated_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(MPI_COUNT_KIND) :: count
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    call read_negated(userbuf, datatype, int(count), filebuf, position, extra_state, ierror)
  end subroutine

  subroutine write_negated_c(userbuf, datatype, count, filebuf, position, extra_state, ierror)
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer(MPI_COUNT_KIND) :: count
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    call write_negated(userbuf, datatype, int(count), filebuf, position, extra_state, ierror)
  end subroutine
#endif
end module

program files
  use file_callbacks
  implicit none
  integer, parameter :: n = 50
  integer(MPI_OFFSET_KIND), parameter :: start = 0
  integer :: rank, ranks, before, after, ierror
  character(len=200) :: path
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  after = modulo(rank + 1, ranks)
  call make_name()
  call beside_the_data()
  call offsets()
  call pointers()
  call views()
  call shared_pointer()
  call in_order()
  call split()
  call nonblocking()
  call error_handlers()
  call representations()
#ifdef WITH_F08
  call large_counts()
#endif
  call MPI_Finalize(ierror)

contains

  subroutine make_name()
    character(len=150) :: folder
    integer(selected_int_kind(18)) :: clock
    integer :: status
    call get_environment_variable('TMPDIR', folder, status=status)
    if (status /= 0) folder = '/tmp'
    call system_clock(clock)
    write (path, '(2a, i0)') trim(folder), '/mpi_fortran_file_', clock
    call MPI_Bcast(path, len(path), MPI_CHARACTER, 0, MPI_COMM_WORLD, ierror)
  end subroutine

  subroutine open_new(file)
    HANDLE(MPI_File), intent(out) :: file
    integer :: code
    call MPI_File_open(MPI_COMM_WORLD, path, ior(ior(MPI_MODE_CREATE, MPI_MODE_EXCL), MPI_MODE_RDWR), &
                       MPI_INFO_NULL, file, code)
    call check(code == MPI_SUCCESS .and. file /= MPI_FILE_NULL, 'MPI_File_open')
  end subroutine

  subroutine close_and_delete(file)
    HANDLE(MPI_File), intent(inout) :: file
    integer :: code
    call MPI_File_close(file, code)
    call check(code == MPI_SUCCESS .and. file == MPI_FILE_NULL, 'MPI_File_close')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) call MPI_File_delete(path, MPI_INFO_NULL, code)
    call check(code == MPI_SUCCESS, 'MPI_File_delete')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
  end subroutine

  ! What each has written the others may read.
  subroutine settle(file)
    HANDLE(MPI_File), intent(in) :: file
    call MPI_File_sync(file, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_File_sync(file, ierror)
  end subroutine

  function numbers(of) result(list)
    integer, intent(in) :: of
    integer :: list(n), i
    list = [(1000 * of + i, i = 1, n)]
  end function

  function place(of) result(offset)
    integer, intent(in) :: of
    integer(MPI_OFFSET_KIND) :: offset
    offset = int(of, MPI_OFFSET_KIND) * n
  end function

  subroutine moved(status, wanted, what)
    STATUS(status)
    integer, intent(in) :: wanted
    character(len=*), intent(in) :: what
    integer :: found
    call MPI_Get_count(status, MPI_INTEGER, found, ierror)
    call check(found == wanted, 'the count of '//what)
  end subroutine

  subroutine view_of_integers(file)
    HANDLE(MPI_File), intent(in) :: file
    integer :: code
    call MPI_File_set_view(file, start, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, code)
    call check(code == MPI_SUCCESS, 'MPI_File_set_view')
  end subroutine

  subroutine beside_the_data()
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Group) :: group, world
    HANDLE(MPI_Info) :: info
    integer :: amode, found
    integer(MPI_OFFSET_KIND) :: size
    logical :: atomic
    call open_new(file)
    call MPI_File_get_amode(file, amode, ierror)
    call check(amode == ior(ior(MPI_MODE_CREATE, MPI_MODE_EXCL), MPI_MODE_RDWR), 'the mode of a file')
    call MPI_File_get_group(file, group, ierror)
    call MPI_Comm_group(MPI_COMM_WORLD, world, ierror)
    call MPI_Group_compare(group, world, found, ierror)
    call check(found == MPI_IDENT, 'the group of a file')
    call MPI_Group_free(group, ierror)
    call MPI_Group_free(world, ierror)
    call MPI_File_get_info(file, info, ierror)
    call MPI_File_set_info(file, info, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_File_set_info')
    call MPI_Info_free(info, ierror)
    call MPI_File_set_size(file, 1000_MPI_OFFSET_KIND, ierror)
    call MPI_File_get_size(file, size, ierror)
    call check(size == 1000, 'the size of a file')
    call MPI_File_preallocate(file, 3000_MPI_OFFSET_KIND, ierror)
    call MPI_File_get_size(file, size, ierror)
    call check(size == 3000, 'the size of a file after MPI_File_preallocate')
    call MPI_File_get_atomicity(file, atomic, ierror)
    call check(.not. atomic, 'a new file')
    call MPI_File_set_atomicity(file, .true., ierror)
    call MPI_File_get_atomicity(file, atomic, ierror)
    call check(atomic, 'atomic mode')
    call close_and_delete(file)
  end subroutine

  subroutine offsets()
    HANDLE(MPI_File) :: file
    STATUS(status)
    integer :: in(n)
    call open_new(file)
    call view_of_integers(file)
    call MPI_File_write_at(file, place(rank), numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write_at')
    call settle(file)
    call MPI_File_read_at(file, place(after), in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_read_at')
    call check(all(in == numbers(after)), 'MPI_File_read_at')
    call settle(file)
    call MPI_File_write_at_all(file, place(rank), numbers(rank + 7), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write_at_all')
    call settle(file)
    call MPI_File_read_at_all(file, place(before), in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_read_at_all')
    call check(all(in == numbers(before + 7)), 'MPI_File_read_at_all')
    in = -1
    call MPI_File_read_at(file, place(ranks) - 5, in, n, MPI_INTEGER, status, ierror)
    call moved(status, 5, 'a read over the end')
    call check(all(in(6:) == -1), 'a read over the end')
    call close_and_delete(file)
  end subroutine

  subroutine pointers()
    HANDLE(MPI_File) :: file
    STATUS(status)
    integer :: in(n)
    integer(MPI_OFFSET_KIND) :: offset
    call open_new(file)
    call view_of_integers(file)
    call MPI_File_seek(file, place(rank), MPI_SEEK_SET, ierror)
    call MPI_File_write(file, numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write')
    call MPI_File_get_position(file, offset, ierror)
    call check(offset == place(rank + 1), 'a pointer after MPI_File_write')
    call settle(file)
    call MPI_File_seek(file, place(before), MPI_SEEK_SET, ierror)
    call MPI_File_read(file, in, n, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
    call check(all(in == numbers(before)), 'MPI_File_read')
    call settle(file)
    call MPI_File_seek(file, -place(before + 1) + place(rank), MPI_SEEK_CUR, ierror)
    call MPI_File_write_all(file, numbers(rank + 9), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write_all')
    call settle(file)
    call MPI_File_seek(file, place(after) - place(ranks), MPI_SEEK_END, ierror)
    call MPI_File_read_all(file, in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_read_all')
    call check(all(in == numbers(after + 9)), 'MPI_File_read_all')
    call close_and_delete(file)
  end subroutine

  ! Numbers of all ranks take turns in the file.
  subroutine views()
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Datatype) :: turns, etype, filetype
    STATUS(status)
    character(len=MPI_MAX_DATAREP_STRING) :: name
    integer :: all_of_them(n * ranks), i
    integer(MPI_OFFSET_KIND) :: offset
    integer(MPI_ADDRESS_KIND) :: extent
    call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, &
                                 int(4 * ranks, MPI_ADDRESS_KIND), turns, ierror)
    call MPI_Type_commit(turns, ierror)
    call open_new(file)
    call MPI_File_set_view(file, int(4 * rank, MPI_OFFSET_KIND), MPI_INTEGER, turns, 'native', &
                           MPI_INFO_NULL, ierror)
    call MPI_File_get_view(file, offset, etype, filetype, name, ierror)
    call check(offset == 4 * rank .and. etype == MPI_INTEGER .and. name == 'native', 'a view')
    call MPI_Type_free(filetype, ierror)
    call MPI_File_get_byte_offset(file, 3_MPI_OFFSET_KIND, offset, ierror)
    call check(offset == 4 * (3 * ranks + rank), 'MPI_File_get_byte_offset')
    call MPI_File_get_type_extent(file, turns, extent, ierror)
    call check(extent == 4 * ranks, 'MPI_File_get_type_extent')
    call MPI_File_write_all(file, numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'what is written in turns')
    call settle(file)
    call view_of_integers(file)
    call MPI_File_read_at_all(file, start, all_of_them, n * ranks, MPI_INTEGER, status, ierror)
    call moved(status, n * ranks, 'what all have written')
    do i = 1, ranks
      call check(all(all_of_them(i::ranks) == numbers(i - 1)), 'what is written in turns')
    end do
    call close_and_delete(file)
    call MPI_Type_free(turns, ierror)
  end subroutine

  subroutine shared_pointer()
    HANDLE(MPI_File) :: file
    STATUS(status)
    integer :: in(n), whose, sum
    integer(MPI_OFFSET_KIND) :: offset
    call open_new(file)
    call view_of_integers(file)
    call MPI_File_write_shared(file, numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write_shared')
    call settle(file)
    call MPI_File_get_position_shared(file, offset, ierror)
    call check(offset == place(ranks), 'MPI_File_get_position_shared')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_File_seek_shared(file, start, MPI_SEEK_SET, ierror)
    call MPI_File_read_shared(file, in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_read_shared')
    whose = in(1) / 1000
    call check(all(in == numbers(whose)), 'MPI_File_read_shared')
    call MPI_Allreduce(whose, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(sum == ranks * (ranks - 1) / 2, 'each record is read once')
    call close_and_delete(file)
  end subroutine

  subroutine in_order()
    HANDLE(MPI_File) :: file
    STATUS(status)
    integer :: in(n)
    integer, asynchronous :: later(n)
    call open_new(file)
    call view_of_integers(file)
    call MPI_File_write_ordered(file, numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_write_ordered')
    later = numbers(rank + 20)
    call MPI_File_write_ordered_begin(file, later, n, MPI_INTEGER, ierror)
    call MPI_File_write_ordered_end(file, later, status, ierror)
    call moved(status, n, 'MPI_File_write_ordered_end')
    call settle(file)
    call MPI_File_seek_shared(file, start, MPI_SEEK_SET, ierror)
    call MPI_File_read_ordered(file, in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'MPI_File_read_ordered')
    call check(all(in == numbers(rank)), 'MPI_File_read_ordered')
    call MPI_File_read_ordered_begin(file, later, n, MPI_INTEGER, ierror)
    call MPI_File_read_ordered_end(file, later, status, ierror)
    call moved(status, n, 'MPI_File_read_ordered_end')
    call check(all(later == numbers(rank + 20)), 'MPI_File_read_ordered_begin')
    call close_and_delete(file)
  end subroutine

  subroutine split()
    HANDLE(MPI_File) :: file
    STATUS(status)
    integer, asynchronous :: out(n), in(n)
    call open_new(file)
    call view_of_integers(file)
    out = numbers(rank)
    call MPI_File_write_at_all_begin(file, place(rank), out, n, MPI_INTEGER, ierror)
    call MPI_File_write_at_all_end(file, out, status, ierror)
    call moved(status, n, 'MPI_File_write_at_all_end')
    call MPI_File_seek(file, place(ranks + rank), MPI_SEEK_SET, ierror)
    out = numbers(rank + 30)
    call MPI_File_write_all_begin(file, out, n, MPI_INTEGER, ierror)
    call MPI_File_write_all_end(file, out, status, ierror)
    call moved(status, n, 'MPI_File_write_all_end')
    call settle(file)
    call MPI_File_read_at_all_begin(file, place(after), in, n, MPI_INTEGER, ierror)
    call MPI_File_read_at_all_end(file, in, status, ierror)
    call moved(status, n, 'MPI_File_read_at_all_end')
    call check(all(in == numbers(after)), 'MPI_File_read_at_all_begin')
    call MPI_File_seek(file, place(ranks + before), MPI_SEEK_SET, ierror)
    call MPI_File_read_all_begin(file, in, n, MPI_INTEGER, ierror)
    call MPI_File_read_all_end(file, in, MPI_STATUS_IGNORE, ierror)
    call check(all(in == numbers(before + 30)), 'MPI_File_read_all_begin')
    call close_and_delete(file)
  end subroutine

  subroutine nonblocking()
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Request) :: request
    STATUS(status)
    integer, asynchronous :: out(n), in(n)
    integer :: form
    call open_new(file)
    do form = 1, 5
      call view_of_integers(file)
      out = numbers(rank + form)
      call MPI_File_seek(file, place(rank), MPI_SEEK_SET, ierror)
      if (form == 1) call MPI_File_iwrite(file, out, n, MPI_INTEGER, request, ierror)
      if (form == 2) call MPI_File_iwrite_at(file, place(rank), out, n, MPI_INTEGER, request, ierror)
      if (form == 3) call MPI_File_iwrite_all(file, out, n, MPI_INTEGER, request, ierror)
      if (form == 4) call MPI_File_iwrite_at_all(file, place(rank), out, n, MPI_INTEGER, request, ierror)
      if (form == 5) call MPI_File_iwrite_shared(file, out, n, MPI_INTEGER, request, ierror)
      call MPI_Wait(request, status, ierror)
      call moved(status, n, 'a nonblocking write')
      call settle(file)
      call view_of_integers(file)
      call MPI_File_seek(file, place(after), MPI_SEEK_SET, ierror)
      if (form == 1) call MPI_File_iread(file, in, n, MPI_INTEGER, request, ierror)
      if (form == 2) call MPI_File_iread_at(file, place(after), in, n, MPI_INTEGER, request, ierror)
      if (form == 3) call MPI_File_iread_all(file, in, n, MPI_INTEGER, request, ierror)
      if (form == 4) call MPI_File_iread_at_all(file, place(after), in, n, MPI_INTEGER, request, ierror)
      if (form == 5) call MPI_File_iread_shared(file, in, n, MPI_INTEGER, request, ierror)
      call MPI_Wait(request, status, ierror)
      call moved(status, n, 'a nonblocking read')
      if (form < 5) call check(all(in == numbers(after + form)), 'a nonblocking read')
      if (form == 5) call check(all(in == numbers(in(1) / 1000)), 'MPI_File_iread_shared')
      call settle(file)
    end do
    call close_and_delete(file)
  end subroutine

  subroutine error_handlers()
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Errhandler) :: handler, found
    integer :: code, class
    call open_new(file)
    call MPI_File_get_errhandler(file, found, ierror)
    call check(found == MPI_ERRORS_RETURN, 'the error handler of a new file')
    call MPI_File_create_errhandler(on_error, handler, ierror)
    call MPI_File_set_errhandler(file, handler, ierror)
    call MPI_File_get_errhandler(file, found, ierror)
    call check(found == handler, 'MPI_File_get_errhandler')
    call MPI_Errhandler_free(found, ierror)
    call MPI_File_seek(file, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    call MPI_Error_class(last_error, class, ierror)
    call check(errors == 1 .and. class == MPI_ERR_ARG, 'an error handler in Fortran')
    call MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE, ierror)
    call check(errors == 2 .and. last_error == MPI_ERR_NO_SPACE, 'MPI_File_call_errhandler')
    call MPI_File_set_errhandler(file, MPI_ERRORS_RETURN, ierror)
    call MPI_File_seek(file, -1_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
    call MPI_Error_class(code, class, ierror)
    call check(errors == 2 .and. class == MPI_ERR_ARG, 'MPI_ERRORS_RETURN')
    call close_and_delete(file)
    call MPI_Errhandler_free(handler, ierror)
  end subroutine

  subroutine representations()
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length
    call MPI_Register_datarep('plain', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, &
                              state, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_Register_datarep')
    ! MPICH 5.0 refuses functions that convert.
    call MPI_Get_library_version(version, length, ierror)
    if (index(version, 'Macadam') == 0) return
    call MPI_Register_datarep('negated', read_negated, write_negated, extent_of, state, ierror)
    call use_representation('negated')
#ifdef WITH_F08
    call MPI_Register_datarep_c('negated_c', read_negated_c, write_negated_c, extent_of, state)
    call use_representation('negated_c')
#endif
  end subroutine

  subroutine use_representation(name)
    character(len=*), intent(in) :: name
    HANDLE(MPI_File) :: file
    HANDLE(MPI_Datatype) :: etype, filetype
    STATUS(status)
    character(len=MPI_MAX_DATAREP_STRING) :: found
    integer :: in(n)
    integer(MPI_OFFSET_KIND) :: offset
    conversions = 0
    call open_new(file)
    call MPI_File_set_view(file, start, MPI_INTEGER, MPI_INTEGER, name, MPI_INFO_NULL, ierror)
    call MPI_File_get_view(file, offset, etype, filetype, found, ierror)
    call check(found == name, 'the representation of a view')
    call MPI_File_write_at_all(file, place(rank), numbers(rank), n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'what is converted')
    call settle(file)
    call MPI_File_read_at_all(file, place(after), in, n, MPI_INTEGER, status, ierror)
    call moved(status, n, 'what is converted')
    call check(all(in == numbers(after)) .and. conversions >= 2, 'what is converted twice')
    call view_of_integers(file)
    call MPI_File_read_at_all(file, place(after), in, n, MPI_INTEGER, status, ierror)
    call check(all(in == -numbers(after)), 'what is converted')
    call close_and_delete(file)
  end subroutine

#ifdef WITH_F08
  ! The same names, by the kind of the count.
  subroutine large_counts()
    type(MPI_File) :: file
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer, asynchronous :: out(n), in(n)
    integer(MPI_COUNT_KIND), parameter :: count = n
    integer(MPI_COUNT_KIND) :: extent, found
    call open_new(file)
    call view_of_integers(file)
    call MPI_File_get_type_extent(file, MPI_INTEGER, extent)
    call check(extent == 4, 'an extent of a large kind')
    out = numbers(rank)
    call MPI_File_write_at_all(file, place(rank), out, count, MPI_INTEGER, status)
    call MPI_Get_count(status, MPI_INTEGER, found)
    call check(found == count, 'a large count')
    call settle(file)
    call MPI_File_iread_at(file, place(after), in, count, MPI_INTEGER, request)
    call MPI_Wait(request, status)
    call check(all(in == numbers(after)), 'a large count')
    call MPI_File_read_at_all_begin(file, place(before), in, count, MPI_INTEGER)
    call MPI_File_read_at_all_end(file, in, status)
    call check(all(in == numbers(before)), 'a large count')
    call close_and_delete(file)
  end subroutine
#endif
end program
