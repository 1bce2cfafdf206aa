! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: groups, communicators and inter-communicators; error classes of the user, info objects, and
! what the library tells of itself.
module session_callbacks
  use mpi_f08
  implicit none
contains
  subroutine on_error(session, error_code)
    type(MPI_Session) :: session
    integer :: error_code
    if (session == MPI_SESSION_NULL) error_code = MPI_SUCCESS
  end subroutine
end module

program communicators
  use session_callbacks
  use checks
  implicit none
  integer :: rank, ranks, provided, i
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call groups()
  call copies()
  if (ranks > 1) call between()
  call errors()
  call infos()
  call library()
  call MPI_Finalize()

contains

  subroutine groups()
    type(MPI_Group) :: all, none, front, back, made, same
    type(MPI_Comm) :: comm
    integer :: size, place, outcome, translated(1)
    call MPI_Comm_group(MPI_COMM_WORLD, all)
    call MPI_Group_rank(all, place)
    call check(place == rank, 'MPI_Group_rank')
    call MPI_Group_incl(all, 1, [0], front)
    call MPI_Group_excl(all, 1, [0], back)
    call MPI_Group_size(back, size)
    call check(size == ranks - 1, 'MPI_Group_excl')
    call MPI_Group_union(back, front, made)
    call MPI_Group_translate_ranks(front, 1, [0], made, translated)
    call check(translated(1) == ranks - 1, 'MPI_Group_union keeps the order of the first')
    call MPI_Group_compare(all, made, outcome)
    call check(outcome == merge(MPI_IDENT, MPI_SIMILAR, ranks == 1), 'MPI_Group_compare')
    call MPI_Group_intersection(all, front, same)
    call MPI_Group_compare(same, front, outcome)
    call check(outcome == MPI_IDENT, 'MPI_Group_intersection')
    call MPI_Group_free(same)
    call MPI_Group_difference(all, all, none)
    call check(none == MPI_GROUP_EMPTY, 'MPI_Group_difference')
    call MPI_Group_range_incl(all, 1, reshape([ranks - 1, 0, -1], [3, 1]), same)
    call MPI_Group_translate_ranks(all, 1, [0], same, translated)
    call check(translated(1) == ranks - 1, 'MPI_Group_range_incl')
    call MPI_Group_free(same)
    call MPI_Group_range_excl(all, 1, reshape([0, 0, 1], [3, 1]), same)
    call MPI_Group_compare(same, back, outcome)
    call check(outcome == MPI_IDENT, 'MPI_Group_range_excl')

    call MPI_Comm_create(MPI_COMM_WORLD, front, comm)
    call check((comm == MPI_COMM_NULL) .eqv. (rank /= 0), 'MPI_Comm_create')
    if (comm /= MPI_COMM_NULL) call MPI_Comm_free(comm)
    if (rank /= 0) then
      call MPI_Comm_create_group(MPI_COMM_WORLD, back, 5, comm)
      call MPI_Comm_size(comm, size)
      call check(size == ranks - 1, 'MPI_Comm_create_group')
      call MPI_Comm_free(comm)
    end if
    call MPI_Group_free(same)
    call MPI_Group_free(made)
    call MPI_Group_free(front)
    call MPI_Group_free(back)
    call MPI_Group_free(all)
    call check(all == MPI_GROUP_NULL, 'MPI_Group_free')
  end subroutine

  ! All ranks agree that a communicator works.
  subroutine use_it(comm, what)
    type(MPI_Comm), intent(in) :: comm
    character(len=*), intent(in) :: what
    integer :: total
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, comm)
    call check(total == ranks, what)
  end subroutine

  subroutine copies()
    type(MPI_Comm), asynchronous :: comm
    type(MPI_Comm) :: half
    type(MPI_Info) :: info, used
    type(MPI_Request) :: request
    integer :: outcome, total
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm)
    call MPI_Comm_compare(MPI_COMM_WORLD, comm, outcome)
    call check(outcome == MPI_CONGRUENT, 'MPI_Comm_compare')
    call use_it(comm, 'MPI_Comm_dup_with_info')
    call MPI_Comm_set_info(comm, info)
    call MPI_Comm_get_info(comm, used)
    call check(used /= MPI_INFO_NULL, 'MPI_Comm_get_info')
    call MPI_Info_free(used)
    call MPI_Comm_test_inter(comm, flag)
    call check(.not. flag, 'MPI_Comm_test_inter')
    call MPI_Topo_test(comm, outcome)
    call check(outcome == MPI_UNDEFINED, 'MPI_Topo_test')
    call MPI_Comm_disconnect(comm)
    call check(comm == MPI_COMM_NULL, 'MPI_Comm_disconnect')
    call MPI_Comm_idup(MPI_COMM_WORLD, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call use_it(comm, 'MPI_Comm_idup')
    call MPI_Comm_free(comm)
    call MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, comm, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call use_it(comm, 'MPI_Comm_idup_with_info')
    call MPI_Comm_free(comm)
    call MPI_Info_free(info)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half)
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, half)
    call check(total == sum([(i, i = mod(rank, 2), ranks - 1, 2)]), 'MPI_Comm_split')
    call MPI_Comm_free(half)
    call MPI_Comm_get_parent(half)
    call check(half == MPI_COMM_NULL, 'MPI_Comm_get_parent')
  end subroutine

  ! Even ranks and odd ranks.
  subroutine between()
    type(MPI_Comm) :: half, inter, merged
    type(MPI_Group) :: others
    integer :: colour, size, members, place, total
    logical :: flag
    colour = mod(rank, 2)
    call MPI_Comm_split(MPI_COMM_WORLD, colour, rank, half)
    call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - colour, 9, inter)
    call MPI_Comm_test_inter(inter, flag)
    call check(flag, 'MPI_Intercomm_create')
    call MPI_Comm_remote_size(inter, size)
    call check(size == (ranks + colour) / 2, 'MPI_Comm_remote_size')
    call MPI_Comm_remote_group(inter, others)
    call MPI_Group_size(others, members)
    call check(members == size, 'MPI_Comm_remote_group')
    call MPI_Group_free(others)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, inter)
    call check(total == size, 'a reduction between two groups')
    call MPI_Intercomm_merge(inter, colour == 0, merged)
    call MPI_Comm_rank(merged, place)
    call check((place >= ranks / 2) .eqv. (colour == 0), 'MPI_Intercomm_merge, with a logical')
    call use_it(merged, 'MPI_Intercomm_merge')
    call MPI_Comm_free(merged)
    call MPI_Comm_free(inter)
    call MPI_Comm_free(half)
  end subroutine

  subroutine errors()
    type(MPI_Errhandler) :: handler
    integer :: class, code, second, length, ierror
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Add_error_class(class)
    call MPI_Add_error_code(class, code)
    call MPI_Add_error_string(code, '  out of paint  ')
    call MPI_Error_string(code, text, length)
    call check(text == '  out of paint' .and. length == 14, 'MPI_Add_error_string')
    call MPI_Error_class(code, second)
    call check(second == class, 'MPI_Add_error_code')
    call MPI_Remove_error_string(code)
    call MPI_Remove_error_code(code)
    call MPI_Remove_error_class(class)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER, ierror)
    call check(ierror == MPI_SUCCESS, 'MPI_Comm_call_errhandler')
    call MPI_Session_create_errhandler(on_error, handler)
    call check(handler /= MPI_ERRHANDLER_NULL, 'MPI_Session_create_errhandler')
    call MPI_Errhandler_free(handler)
  end subroutine

  subroutine infos()
    type(MPI_Info) :: info, copy
    integer :: keys, length
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'one', 'first')
    call MPI_Info_set(info, 'two', 'second')
    call MPI_Info_dup(info, copy)
    call MPI_Info_delete(info, ' one ')
    call MPI_Info_get_nkeys(info, keys)
    call check(keys == 1, 'MPI_Info_delete')
    call MPI_Info_get_nkeys(copy, keys)
    call check(keys == 2, 'MPI_Info_dup')
    call MPI_Info_get_valuelen(copy, 'two', length, flag)
    call check(flag .and. length == 6, 'MPI_Info_get_valuelen')
    call MPI_Info_free(info)
    call MPI_Info_free(copy)
    call MPI_Info_create_env(info)
    call check(info /= MPI_INFO_NULL, 'MPI_Info_create_env')
    call MPI_Info_free(info)
  end subroutine

  subroutine library()
    type(MPI_Info) :: info
    integer :: level, major, minor, size
    logical :: flag, on, off
    character(len=20) :: value
    call MPI_Query_thread(level)
    call check(level == provided, 'MPI_Query_thread')
    call MPI_Is_thread_main(flag)
    call check(flag, 'MPI_Is_thread_main')
    call MPI_Pcontrol(1)
    call MPI_Get_hw_resource_info(info)
    call MPI_Info_free(info)
    call MPI_Abi_get_version(major, minor)
    call check(major == MPI_ABI_VERSION .and. minor == MPI_ABI_SUBVERSION, 'MPI_Abi_get_version')
    call MPI_Abi_get_info(info)
    call MPI_Info_free(info)
    call MPI_Abi_get_fortran_info(info)
    call check(info /= MPI_INFO_NULL, 'MPI_Abi_get_fortran_info')
    size = len(value)
    call MPI_Info_get_string(info, 'mpi_integer_size', size, value, flag)
    call check(flag .and. value == '4', 'the size of INTEGER, as the library knows it')
    call MPI_Info_free(info)
    call MPI_Abi_get_fortran_booleans(4, on, off, flag)
    call check(flag .and. on .and. .not. off, 'MPI_Abi_get_fortran_booleans')
  end subroutine
end program
