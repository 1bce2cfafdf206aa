! SPDX-License-Identifier: BSD-3-Clause
! Sessions beside the world. Compiled three times, once for each interface: with WITH_F08 for module
! mpi_f08, with WITH_MODULE for module mpi, else with mpif.h.
#include "handles.inc"

program sessions
#ifdef WITH_F08
  use mpi_f08
#elif defined(WITH_MODULE)
  use mpi
#endif
  use, intrinsic :: iso_c_binding, only: c_ptr
  use checks
  implicit none
#if !defined(WITH_F08) && !defined(WITH_MODULE)
  include 'mpif.h'
#endif
  HANDLE(MPI_Session) :: session
  integer :: rank, ranks, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierror)
  call check(session /= MPI_SESSION_NULL, 'a session')
  call facts
  call handlers
  call buffers
  call communicator
  if (ranks >= 2) call intercommunicator
  call MPI_Session_finalize(session, ierror)
  call check(session == MPI_SESSION_NULL, 'the handle of a session that is over')
  call MPI_Finalize(ierror)

contains

  subroutine facts
    HANDLE(MPI_Info) :: info
    character(len=MPI_MAX_PSET_NAME_LEN) :: name
    character(len=8) :: value
    integer :: number, length, i, found
    logical :: there

    call MPI_Session_get_info(session, info, ierror)
    call MPI_Info_free(info, ierror)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, number, ierror)
    call check(number >= 2, 'the number of process sets')
    found = 0
    do i = 0, number - 1
      length = len(name)
      call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, length, name, ierror)
      if (name == 'mpi://WORLD' .or. name == 'mpi://SELF') found = found + 1
    end do
    call check(found == 2, 'the names of the process sets')
    call MPI_Session_get_pset_info(session, 'mpi://WORLD', info, ierror)
    length = len(value)
    call MPI_Info_get_string(info, 'mpi_size', length, value, there, ierror)
    read (value, *) number
    call check(there .and. number == ranks, 'the size of the world')
    call MPI_Info_free(info, ierror)
  end subroutine

  subroutine handlers
    HANDLE(MPI_Errhandler) :: handler
    integer :: error

    call MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN, ierror)
    call MPI_Session_get_errhandler(session, handler, ierror)
    call check(handler == MPI_ERRORS_RETURN, 'the error handler of a session')
    call MPI_Session_call_errhandler(session, MPI_ERR_OTHER, error)
    call check(error == MPI_SUCCESS, 'a call of the error handler')
  end subroutine

  subroutine buffers
    HANDLE(MPI_Request) :: request
    integer, asynchronous :: room(1000)
#ifdef WITH_F08
    type(c_ptr) :: where
#else
    integer(MPI_ADDRESS_KIND) :: where
#endif
    integer :: bytes

    call MPI_Session_attach_buffer(session, room, 4000, ierror)
    call MPI_Session_flush_buffer(session, ierror)
    call MPI_Session_iflush_buffer(session, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call MPI_Session_detach_buffer(session, where, bytes, ierror)
    call check(bytes == 4000, 'the size of the buffer of a session')
  end subroutine

  subroutine communicator
    HANDLE(MPI_Group) :: group
    HANDLE(MPI_Comm) :: comm
    integer :: sum

    call MPI_Group_from_session_pset(session, 'mpi://WORLD', group, ierror)
    call MPI_Comm_create_from_group(group, 'all', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierror)
    call MPI_Allreduce(rank, sum, 1, MPI_INTEGER, MPI_SUM, comm, ierror)
    call check(sum == ranks * (ranks - 1) / 2, 'a sum over a communicator of a session')
    call MPI_Comm_free(comm, ierror)
    call MPI_Group_free(group, ierror)
  end subroutine

  ! The first rank on one side, the others on the other.
  subroutine intercommunicator
    HANDLE(MPI_Group) :: all, first, others
    HANDLE(MPI_Comm) :: inter
    integer :: size

    call MPI_Group_from_session_pset(session, 'mpi://WORLD', all, ierror)
    call MPI_Group_incl(all, 1, [0], first, ierror)
    call MPI_Group_excl(all, 1, [0], others, ierror)
    if (rank == 0) then
      call MPI_Intercomm_create_from_groups(first, 0, others, 0, 'two', MPI_INFO_NULL, &
                                            MPI_ERRORS_RETURN, inter, ierror)
    else
      call MPI_Intercomm_create_from_groups(others, 0, first, 0, 'two', MPI_INFO_NULL, &
                                            MPI_ERRORS_RETURN, inter, ierror)
    end if
    call MPI_Comm_remote_size(inter, size, ierror)
    call check(size == merge(ranks - 1, 1, rank == 0), 'the size of the other group')
    call MPI_Comm_free(inter, ierror)
    call MPI_Group_free(first, ierror)
    call MPI_Group_free(others, ierror)
    call MPI_Group_free(all, ierror)
  end subroutine
end program
