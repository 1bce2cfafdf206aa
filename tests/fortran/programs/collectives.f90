! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: every collective operation in its three forms: blocking, nonblocking and persistent.
program collectives
  use mpi_f08
  use checks
  implicit none
  integer, parameter :: blocking = 1, nonblocking = 2, persistent = 3
  integer :: rank, ranks, last, form, i
  type(MPI_Comm) :: world
  integer, asynchronous, allocatable :: out(:), in(:)
  integer, allocatable :: counts(:), places(:), bytes(:)
  type(MPI_Datatype), allocatable :: types(:)
  type(MPI_Request) :: request
  call MPI_Init()
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank)
  call MPI_Comm_size(world, ranks)
  last = ranks - 1
  ! To and from rank i go i + 1 numbers in operations that have counts.
  allocate (counts(0:last), places(0:last), bytes(0:last), types(0:last))
  counts = [(i + 1, i = 0, last)]
  places = [(i * (i + 1) / 2, i = 0, last)]
  bytes = 4 * places
  types = MPI_INTEGER
  allocate (out(0:ranks * (ranks + 1)), in(0:ranks * (ranks + 1)))
  do form = blocking, persistent
    call from_one()
    call to_one()
    call to_all()
    call among_all()
    call sums()
  end do
  call MPI_Finalize()

contains

  subroutine prepare()
    integer :: k
    out = [(1000 * rank + k, k = 0, size(out) - 1)]
    in = -1
  end subroutine

  ! Completes what was begun.
  subroutine finish()
    if (form == blocking) return
    if (form == persistent) call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (form == persistent) call MPI_Request_free(request)
    call MPI_F_sync_reg(in)
  end subroutine

  subroutine expect(values, what)
    integer, intent(in) :: values(:)
    character(len=*), intent(in) :: what
    character(len=11), parameter :: forms(3) = [character(len=11) :: 'blocking', 'nonblocking', &
        'persistent']
    call check(all(in(:size(values) - 1) == values) .and. all(in(size(values):) == -1), &
               what // ', ' // trim(forms(form)))
  end subroutine

  subroutine from_one()
    integer :: k
    call prepare()
    if (rank == last) in(:2) = [5, 6, 7]
    select case (form)
    case (blocking)
      call MPI_Bcast(in, 3, MPI_INTEGER, last, world)
    case (nonblocking)
      call MPI_Ibcast(in, 3, MPI_INTEGER, last, world, request)
    case (persistent)
      call MPI_Bcast_init(in, 3, MPI_INTEGER, last, world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect([5, 6, 7], 'MPI_Bcast')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Scatter(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, last, world)
    case (nonblocking)
      call MPI_Iscatter(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, last, world, request)
    case (persistent)
      call MPI_Scatter_init(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, last, world, MPI_INFO_NULL, &
                            request)
    end select
    call finish()
    call expect(1000 * last + 2 * rank + [0, 1], 'MPI_Scatter')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Scatterv(out, counts, places, MPI_INTEGER, in, rank + 1, MPI_INTEGER, 0, world)
    case (nonblocking)
      call MPI_Iscatterv(out, counts, places, MPI_INTEGER, in, rank + 1, MPI_INTEGER, 0, world, &
                         request)
    case (persistent)
      call MPI_Scatterv_init(out, counts, places, MPI_INTEGER, in, rank + 1, MPI_INTEGER, 0, &
                             world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect([(places(rank) + k, k = 0, rank)], 'MPI_Scatterv')
  end subroutine

  ! What a root gets with counts: from rank i the first i + 1 numbers.
  function joined() result(values)
    integer, allocatable :: values(:)
    integer :: k, from
    values = [((1000 * from + k, k = 0, from), from = 0, last)]
  end function

  subroutine to_one()
    integer :: k
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Gather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, world)
    case (nonblocking)
      call MPI_Igather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, world, request)
    case (persistent)
      call MPI_Gather_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, last, world, MPI_INFO_NULL, &
                           request)
    end select
    call finish()
    if (rank == last) call expect([(1000 * k, k = 0, last)], 'MPI_Gather')
    if (rank /= last) call expect([integer ::], 'MPI_Gather of others')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Gatherv(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, 0, world)
    case (nonblocking)
      call MPI_Igatherv(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, 0, world, &
                        request)
    case (persistent)
      call MPI_Gatherv_init(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, 0, world, &
                            MPI_INFO_NULL, request)
    end select
    call finish()
    if (rank == 0) call expect(joined(), 'MPI_Gatherv')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Reduce(out, in, 2, MPI_INTEGER, MPI_MAX, 0, world)
    case (nonblocking)
      call MPI_Ireduce(out, in, 2, MPI_INTEGER, MPI_MAX, 0, world, request)
    case (persistent)
      call MPI_Reduce_init(out, in, 2, MPI_INTEGER, MPI_MAX, 0, world, MPI_INFO_NULL, request)
    end select
    call finish()
    if (rank == 0) call expect(1000 * last + [0, 1], 'MPI_Reduce')
  end subroutine

  subroutine to_all()
    integer :: k
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Barrier(world)
    case (nonblocking)
      call MPI_Ibarrier(world, request)
    case (persistent)
      call MPI_Barrier_init(world, MPI_INFO_NULL, request)
    end select
    call finish()

    select case (form)
    case (blocking)
      call MPI_Allgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, world)
    case (nonblocking)
      call MPI_Iallgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, world, request)
    case (persistent)
      call MPI_Allgather_init(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, world, MPI_INFO_NULL, &
                              request)
    end select
    call finish()
    call expect([(1000 * k, k = 0, last)], 'MPI_Allgather')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Allgatherv(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, world)
    case (nonblocking)
      call MPI_Iallgatherv(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, world, &
                           request)
    case (persistent)
      call MPI_Allgatherv_init(out, rank + 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, world, &
                               MPI_INFO_NULL, request)
    end select
    call finish()
    call expect(joined(), 'MPI_Allgatherv')
  end subroutine

  ! Rank i sends j + 1 numbers to rank j, from where they are for rank j.
  subroutine among_all()
    integer, allocatable :: from_each(:), at(:), values(:)
    integer :: k, from
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Alltoall(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, world)
    case (nonblocking)
      call MPI_Ialltoall(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, world, request)
    case (persistent)
      call MPI_Alltoall_init(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER, world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect([((1000 * from + 2 * rank + k, k = 0, 1), from = 0, last)], 'MPI_Alltoall')

    from_each = [(rank + 1, k = 0, last)]
    at = [(k * (rank + 1), k = 0, last)]
    values = [((1000 * from + places(rank) + k, k = 0, rank), from = 0, last)]
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Alltoallv(out, counts, places, MPI_INTEGER, in, from_each, at, MPI_INTEGER, world)
    case (nonblocking)
      call MPI_Ialltoallv(out, counts, places, MPI_INTEGER, in, from_each, at, MPI_INTEGER, world, &
                          request)
    case (persistent)
      call MPI_Alltoallv_init(out, counts, places, MPI_INTEGER, in, from_each, at, MPI_INTEGER, &
                              world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect(values, 'MPI_Alltoallv')

    at = 4 * at
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Alltoallw(out, counts, bytes, types, in, from_each, at, types, world)
    case (nonblocking)
      call MPI_Ialltoallw(out, counts, bytes, types, in, from_each, at, types, world, request)
    case (persistent)
      call MPI_Alltoallw_init(out, counts, bytes, types, in, from_each, at, types, world, &
                              MPI_INFO_NULL, request)
    end select
    call finish()
    call expect(values, 'MPI_Alltoallw')
  end subroutine

  subroutine sums()
    integer :: k, all_ranks
    all_ranks = 1000 * sum([(k, k = 0, last)])
    call prepare()
    select case (form)
    case (blocking)
      call MPI_Allreduce(out, in, 2, MPI_INTEGER, MPI_SUM, world)
    case (nonblocking)
      call MPI_Iallreduce(out, in, 2, MPI_INTEGER, MPI_SUM, world, request)
    case (persistent)
      call MPI_Allreduce_init(out, in, 2, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect([all_ranks, all_ranks + ranks], 'MPI_Allreduce')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Reduce_scatter_block(out, in, 2, MPI_INTEGER, MPI_SUM, world)
    case (nonblocking)
      call MPI_Ireduce_scatter_block(out, in, 2, MPI_INTEGER, MPI_SUM, world, request)
    case (persistent)
      call MPI_Reduce_scatter_block_init(out, in, 2, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, &
                                         request)
    end select
    call finish()
    call expect(all_ranks + ranks * (2 * rank + [0, 1]), 'MPI_Reduce_scatter_block')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Reduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, world)
    case (nonblocking)
      call MPI_Ireduce_scatter(out, in, counts, MPI_INTEGER, MPI_SUM, world, request)
    case (persistent)
      call MPI_Reduce_scatter_init(out, in, counts, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, &
                                   request)
    end select
    call finish()
    call expect([(all_ranks + ranks * (places(rank) + k), k = 0, rank)], 'MPI_Reduce_scatter')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Scan(out, in, 1, MPI_INTEGER, MPI_SUM, world)
    case (nonblocking)
      call MPI_Iscan(out, in, 1, MPI_INTEGER, MPI_SUM, world, request)
    case (persistent)
      call MPI_Scan_init(out, in, 1, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
    end select
    call finish()
    call expect([1000 * sum([(k, k = 0, rank)])], 'MPI_Scan')

    call prepare()
    select case (form)
    case (blocking)
      call MPI_Exscan(out, in, 1, MPI_INTEGER, MPI_SUM, world)
    case (nonblocking)
      call MPI_Iexscan(out, in, 1, MPI_INTEGER, MPI_SUM, world, request)
    case (persistent)
      call MPI_Exscan_init(out, in, 1, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
    end select
    call finish()
    if (rank > 0) call expect([1000 * sum([(k, k = 0, rank - 1)])], 'MPI_Exscan')
  end subroutine
end program
