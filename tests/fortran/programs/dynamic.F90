! SPDX-License-Identifier: BSD-3-Clause
! Jobs that this program starts (itself, with an argument), and halves of a job that meet by a port or
! a socket. Compiled three times, once for each interface: with WITH_F08 for module mpi_f08, with
! WITH_MODULE for module mpi, else with mpif.h.
#include "handles.inc"

program dynamic
#ifdef WITH_F08
  use mpi_f08
#elif defined(WITH_MODULE)
  use mpi
#endif
  use checks
  implicit none
#if !defined(WITH_F08) && !defined(WITH_MODULE)
  include 'mpif.h'
#endif
  integer :: rank, ranks, code, ierror
  character(len=200) :: self, argument
  HANDLE(MPI_Comm) :: parent
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(0, self)
  call MPI_Comm_get_parent(parent, ierror)
  if (parent /= MPI_COMM_NULL) then
    call child()
  else
    call one_command()
    call several_commands()
    call without_arguments()
    if (ranks > 1) call meet()
    if (ranks > 1) call join()
    call refusals()
  end if
  call MPI_Finalize(ierror)

contains

  subroutine sum_up(inter)
    HANDLE(MPI_Comm), intent(in) :: inter
    integer :: total, others, one = 1
    call MPI_Comm_remote_size(inter, others, ierror)
    call MPI_Allreduce(one, total, 1, MPI_INTEGER, MPI_SUM, inter, ierror)
    call check(total == others, 'all of the other group add one')
  end subroutine

  subroutine child()
    call get_command_argument(1, argument)
    call check(argument == 'child' .or. argument == 'two words' .or. argument == '', 'argument')
    call sum_up(parent)
    call MPI_Comm_disconnect(parent, ierror)
  end subroutine

  subroutine one_command()
    HANDLE(MPI_Comm) :: inter
    integer :: codes(2)
    character(len=10) :: arguments(2) = ['  child   ', '          ']
    codes = -1
    call MPI_Comm_spawn(' ' // self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, codes, &
                        ierror)
    call check(all(codes == MPI_SUCCESS), 'error codes of MPI_Comm_spawn')
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
  end subroutine

  subroutine several_commands()
    HANDLE(MPI_Comm) :: inter
    integer :: codes(2), others
    character(len=200) :: commands(2)
    character(len=10) :: arguments(2, 2)
    commands = ' ' // self
    arguments(:, 1) = ['child     ', ' two words']
    arguments(:, 2) = ''
    codes = -1
    call MPI_Comm_spawn_multiple(2, commands, arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, &
                        MPI_COMM_WORLD, inter, codes, ierror)
    call check(all(codes == MPI_SUCCESS), 'error codes of MPI_Comm_spawn_multiple')
    call MPI_Comm_remote_size(inter, others, ierror)
    call check(others == 2, 'two commands')
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
  end subroutine

  subroutine without_arguments()
    HANDLE(MPI_Comm) :: inter
    call MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, &
                        MPI_ERRCODES_IGNORE, ierror)
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
    call MPI_Comm_spawn_multiple(1, [self], MPI_ARGVS_NULL, [1], [MPI_INFO_NULL], 0, MPI_COMM_WORLD, &
                        inter, MPI_ERRCODES_IGNORE, ierror)
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
  end subroutine

  ! Rank 0 accepts the others, who have looked up its port.
  subroutine meet()
    HANDLE(MPI_Comm) :: half, inter
    character(len=MPI_MAX_PORT_NAME) :: port
    character(len=40) :: service
    integer :: clock
    call system_clock(clock)
    call MPI_Bcast(clock, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    write (service, '(a, i0)') 'macadam-fortran-', clock
    call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), 0, half, ierror)
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port, ierror)
      call MPI_Publish_name(service, MPI_INFO_NULL, port, ierror)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, inter, ierror)
    else
      call MPI_Lookup_name(service, MPI_INFO_NULL, port, ierror)
      call MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, inter, ierror)
    end if
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
    if (rank == 0) then
      call MPI_Unpublish_name(service, MPI_INFO_NULL, port, ierror)
      call MPI_Close_port(port, ierror)
    end if
    call MPI_Comm_free(half, ierror)
  end subroutine

  ! Ranks 0 and 1, which have a socket in common. Its name in the kernel begins with a zero.
  subroutine join()
    use, intrinsic :: iso_c_binding, only: c_int, c_char, c_null_ptr, c_ptr, c_null_char
    interface
      function c_socket(domain, kind, protocol) bind(c, name='socket') result(made)
        import c_int
        integer(c_int), value :: domain, kind, protocol
        integer(c_int) :: made
      end function
      function c_bind(socket, address, bytes) bind(c, name='bind') result(error)
        import c_int, c_char
        integer(c_int), value :: socket, bytes
        character(kind=c_char), intent(in) :: address(*)
        integer(c_int) :: error
      end function
      function c_connect(socket, address, bytes) bind(c, name='connect') result(error)
        import c_int, c_char
        integer(c_int), value :: socket, bytes
        character(kind=c_char), intent(in) :: address(*)
        integer(c_int) :: error
      end function
      function c_listen(socket, most) bind(c, name='listen') result(error)
        import c_int
        integer(c_int), value :: socket, most
        integer(c_int) :: error
      end function
      function c_accept(socket, address, bytes) bind(c, name='accept') result(made)
        import c_int, c_ptr
        integer(c_int), value :: socket
        type(c_ptr), value :: address, bytes
        integer(c_int) :: made
      end function
    end interface
    HANDLE(MPI_Comm) :: inter
    character(len=40) :: name
    character(kind=c_char) :: address(2 + 1 + len(name))
    integer(c_int) :: socket
    integer :: clock, i
    call system_clock(clock)
    call MPI_Bcast(clock, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    write (name, '(a, i0)') 'join-test-fortran-', clock
    address(:3) = [char(1), c_null_char, c_null_char] ! AF_UNIX
    do i = 1, len(name)
      address(3 + i) = name(i:i)
    end do
    if (rank < 2) socket = c_socket(1, 1, 0)
    if (rank == 0) call check(c_bind(socket, address, size(address)) == 0, 'bind')
    if (rank == 0) call check(c_listen(socket, 1) == 0, 'listen')
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    if (rank > 1) return
    if (rank == 0) then
      socket = c_accept(socket, c_null_ptr, c_null_ptr)
    else
      call check(c_connect(socket, address, size(address)) == 0, 'connect')
    end if
    call MPI_Comm_join(socket, inter, ierror)
    call sum_up(inter)
    call MPI_Comm_disconnect(inter, ierror)
  end subroutine

  subroutine refusals()
    HANDLE(MPI_Comm) :: inter
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
    call MPI_Comm_join(-1, inter, code)
    call check(code /= MPI_SUCCESS, 'MPI_Comm_join refuses what is no socket')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, ierror)
  end subroutine

end program
