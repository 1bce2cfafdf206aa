! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: jobs that this program starts (itself, with an argument), and halves of a job that meet by
! a port.
program dynamic
  use mpi_f08
  use checks
  implicit none
  integer :: rank, ranks, code
  character(len=200) :: self, argument
  type(MPI_Comm) :: parent
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(0, self)
  call MPI_Comm_get_parent(parent)
  if (parent /= MPI_COMM_NULL) then
    call child()
  else
    call one_command()
    call several_commands()
    call without_arguments()
    if (ranks > 1) call meet()
    call refusals()
  end if
  call MPI_Finalize()

contains

  subroutine sum_up(inter)
    type(MPI_Comm), intent(in) :: inter
    integer :: total, others
    call MPI_Comm_remote_size(inter, others)
    call MPI_Allreduce(1, total, 1, MPI_INTEGER, MPI_SUM, inter)
    call check(total == others, 'all of the other group add one')
  end subroutine

  subroutine child()
    call get_command_argument(1, argument)
    call check(argument == 'child' .or. argument == 'two words' .or. argument == '', 'argument')
    call sum_up(parent)
    call MPI_Comm_disconnect(parent)
  end subroutine

  subroutine one_command()
    type(MPI_Comm) :: inter
    integer :: codes(2)
    character(len=10) :: arguments(2) = ['child     ', '          ']
    codes = -1
    call MPI_Comm_spawn(self, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, codes)
    call check(all(codes == MPI_SUCCESS), 'error codes of MPI_Comm_spawn')
    call sum_up(inter)
    call MPI_Comm_disconnect(inter)
  end subroutine

  subroutine several_commands()
    type(MPI_Comm) :: inter
    integer :: codes(2), others
    character(len=200) :: commands(2)
    character(len=10) :: arguments(2, 2)
    commands = self
    arguments(:, 1) = ['child     ', 'two words ']
    arguments(:, 2) = ''
    codes = -1
    call MPI_Comm_spawn_multiple(2, commands, arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, &
                                 MPI_COMM_WORLD, inter, codes)
    call check(all(codes == MPI_SUCCESS), 'error codes of MPI_Comm_spawn_multiple')
    call MPI_Comm_remote_size(inter, others)
    call check(others == 2, 'two commands')
    call sum_up(inter)
    call MPI_Comm_disconnect(inter)
  end subroutine

  subroutine without_arguments()
    type(MPI_Comm) :: inter
    call MPI_Comm_spawn(self, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, inter, &
                        MPI_ERRCODES_IGNORE)
    call sum_up(inter)
    call MPI_Comm_disconnect(inter)
    call MPI_Comm_spawn_multiple(1, [self], MPI_ARGVS_NULL, [1], [MPI_INFO_NULL], 0, &
                                 MPI_COMM_WORLD, inter, MPI_ERRCODES_IGNORE)
    call sum_up(inter)
    call MPI_Comm_disconnect(inter)
  end subroutine

  ! Rank 0 accepts the others, who have looked up its port.
  subroutine meet()
    type(MPI_Comm) :: half, inter
    character(len=MPI_MAX_PORT_NAME) :: port
    character(len=40) :: service
    integer :: clock
    call system_clock(clock)
    call MPI_Bcast(clock, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    write (service, '(a, i0)') 'macadam-fortran-', clock
    call MPI_Comm_split(MPI_COMM_WORLD, min(rank, 1), 0, half)
    if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port)
      call MPI_Publish_name(service, MPI_INFO_NULL, port)
    end if
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, inter)
    else
      call MPI_Lookup_name(service, MPI_INFO_NULL, port)
      call MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, inter)
    end if
    call sum_up(inter)
    call MPI_Comm_disconnect(inter)
    if (rank == 0) then
      call MPI_Unpublish_name(service, MPI_INFO_NULL, port)
      call MPI_Close_port(port)
    end if
    call MPI_Comm_free(half)
  end subroutine

  subroutine refusals()
    type(MPI_Comm) :: inter
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_join(-1, inter, code)
    call check(code /= MPI_SUCCESS, 'MPI_Comm_join refuses what is no socket')
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL)
  end subroutine

end program
