! SPDX-License-Identifier: BSD-3-Clause
! Topologies and neighbourhood collectives. Compiled three times, once for each interface: with
! WITH_F08 for module mpi_f08, with WITH_MODULE for module mpi, else with mpif.h.
#include "handles.inc"

program topologies
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
  integer :: rank, ranks, before, after, ierror

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  before = modulo(rank - 1, ranks)
  after = modulo(rank + 1, ranks)
  call grids
  call graphs
  call distributed_graphs
  call exchange_regular
  call exchange_vectors
  call MPI_Finalize(ierror)

contains

  subroutine grids
    HANDLE(MPI_Comm) :: comm, row
    integer :: dims(2), found(2), coords(2), dimensions, status, place, source, dest
    logical :: periods(2), seen(2)

    dims = [0, 1]
    periods = [.true., .false.]
    call MPI_Dims_create(ranks, 2, dims, ierror)
    call check(all(dims == [ranks, 1]), 'balanced dimensions')
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., comm, ierror)
    call MPI_Topo_test(comm, status, ierror)
    call check(status == MPI_CART, 'the kind of a grid')
    call MPI_Cartdim_get(comm, dimensions, ierror)
    call check(dimensions == 2, 'dimensions of a grid')
    call MPI_Cart_get(comm, 2, found, seen, coords, ierror)
    call check(all(found == dims) .and. all(seen .eqv. periods), 'the shape of a grid')
    call check(all(coords == [rank, 0]), 'the own position')
    call MPI_Cart_coords(comm, after, 2, coords, ierror)
    call check(all(coords == [after, 0]), 'the position of another')
    call MPI_Cart_rank(comm, [rank + 1, 0], place, ierror)
    call check(place == after, 'the rank at a position')
    call MPI_Cart_shift(comm, 0, 1, source, dest, ierror)
    call check(source == before .and. dest == after, 'neighbours on a circle')
    call MPI_Cart_shift(comm, 1, 1, source, dest, ierror)
    call check(source == MPI_PROC_NULL .and. dest == MPI_PROC_NULL, 'neighbours beyond an edge')
    call MPI_Cart_map(MPI_COMM_WORLD, 2, dims, periods, place, ierror)
    call check(place == rank, 'a mapped grid')
    call MPI_Cart_sub(comm, [.false., .true.], row, ierror)
    call MPI_Comm_size(row, place, ierror)
    call check(place == 1, 'a part of a grid')
    call MPI_Comm_free(row, ierror)
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine graphs
    HANDLE(MPI_Comm) :: comm
    integer :: indx(ranks), edges(2 * ranks), found(ranks), ends(2 * ranks), pair(2), i, n, m

    do i = 1, ranks
      indx(i) = 2 * i
      edges(2 * i - 1) = modulo(i - 2, ranks)
      edges(2 * i) = modulo(i, ranks)
    end do
    call MPI_Graph_create(MPI_COMM_WORLD, ranks, indx, edges, .false., comm, ierror)
    call MPI_Graphdims_get(comm, n, m, ierror)
    call check(n == ranks .and. m == 2 * ranks, 'the size of a graph')
    call MPI_Graph_get(comm, n, m, found, ends, ierror)
    call check(all(found == indx) .and. all(ends == edges), 'a graph')
    call MPI_Graph_neighbors_count(comm, rank, n, ierror)
    call MPI_Graph_neighbors(comm, rank, n, pair, ierror)
    call check(n == 2 .and. all(pair == [before, after]), 'neighbours in a graph')
    call MPI_Graph_map(MPI_COMM_WORLD, ranks, indx, edges, n, ierror)
    call check(n == rank, 'a mapped graph')
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine distributed_graphs
    HANDLE(MPI_Comm) :: comm
    integer :: from(1), to(1), in(1), out(1), n, m
    logical :: weighted

    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [after], [1], [rank], [3], MPI_INFO_NULL, &
                               .false., comm, ierror)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted, ierror)
    call check(n == 1 .and. m == 1 .and. weighted, 'degrees in a distributed graph')
    call MPI_Dist_graph_neighbors(comm, 1, from, in, 1, to, out, ierror)
    call check(from(1) == after .and. to(1) == before, 'neighbours in a distributed graph')
    call check(in(1) == 3 .and. out(1) == 3, 'weights in a distributed graph')
    call MPI_Comm_free(comm, ierror)

    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], MPI_UNWEIGHTED, 1, [after], &
                                        MPI_UNWEIGHTED, MPI_INFO_NULL, .true., comm, ierror)
    call MPI_Dist_graph_neighbors_count(comm, n, m, weighted, ierror)
    call check(n == 1 .and. m == 1 .and. .not. weighted, 'a graph without weights')
    call MPI_Comm_free(comm, ierror)
  end subroutine

  ! A line of all ranks that closes to a circle.
  subroutine make_circle(comm)
    HANDLE(MPI_Comm), intent(out) :: comm
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., comm, ierror)
  end subroutine

  subroutine start_and_end(request)
    HANDLE(MPI_Request), intent(inout) :: request
    call MPI_Start(request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call MPI_Request_free(request, ierror)
  end subroutine

  subroutine exchange_regular
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Request) :: request
    integer :: out(2), in(2), form
    integer, asynchronous :: later(2)

    call make_circle(comm)
    out = [10 * rank + 1, 10 * rank + 2]
    do form = 1, 3
      in = -1
      later = -1
      if (form == 1) call MPI_Neighbor_allgather(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, comm, ierror)
      if (form == 2) then
        call MPI_Ineighbor_allgather(out, 1, MPI_INTEGER, later, 1, MPI_INTEGER, comm, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        in = later
      else if (form == 3) then
        call MPI_Neighbor_allgather_init(out, 1, MPI_INTEGER, later, 1, MPI_INTEGER, comm, &
                                         MPI_INFO_NULL, request, ierror)
        call start_and_end(request)
        in = later
      end if
      call check(all(in == [10 * before + 1, 10 * after + 1]), 'gathered from neighbours')

      in = -1
      later = -1
      if (form == 1) call MPI_Neighbor_alltoall(out, 1, MPI_INTEGER, in, 1, MPI_INTEGER, comm, ierror)
      if (form == 2) then
        call MPI_Ineighbor_alltoall(out, 1, MPI_INTEGER, later, 1, MPI_INTEGER, comm, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
        in = later
      else if (form == 3) then
        call MPI_Neighbor_alltoall_init(out, 1, MPI_INTEGER, later, 1, MPI_INTEGER, comm, &
                                        MPI_INFO_NULL, request, ierror)
        call start_and_end(request)
        in = later
      end if
      call check(all(in == [10 * before + 2, 10 * after + 1]), 'exchanged with neighbours')
    end do
    call MPI_Comm_free(comm, ierror)
  end subroutine

  subroutine exchange_vectors
    HANDLE(MPI_Comm) :: comm
    HANDLE(MPI_Request) :: request
    HANDLE(MPI_Datatype) :: types(2)
    integer :: out(2), form, counts(2), places(2)
    integer(MPI_ADDRESS_KIND) :: bytes(2)
    integer, asynchronous :: in(3)

    call make_circle(comm)
    out = [10 * rank + 1, 10 * rank + 2]
    counts = 1
    places = [2, 0] ! in reverse order, with a gap
    bytes = [8, 0]
    types = MPI_INTEGER
    do form = 1, 3
      in = -1
      if (form == 1) call MPI_Neighbor_allgatherv(out, 1, MPI_INTEGER, in, counts, places, &
                                                  MPI_INTEGER, comm, ierror)
      if (form == 2) then
        call MPI_Ineighbor_allgatherv(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, comm, &
                                      request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      else if (form == 3) then
        call MPI_Neighbor_allgatherv_init(out, 1, MPI_INTEGER, in, counts, places, MPI_INTEGER, &
                                          comm, MPI_INFO_NULL, request, ierror)
        call start_and_end(request)
      end if
      call check(all(in == [10 * after + 1, -1, 10 * before + 1]), 'gathered with displacements')

      in = -1
      if (form == 1) call MPI_Neighbor_alltoallv(out, counts, [0, 1], MPI_INTEGER, in, counts, &
                                                 places, MPI_INTEGER, comm, ierror)
      if (form == 2) then
        call MPI_Ineighbor_alltoallv(out, counts, [0, 1], MPI_INTEGER, in, counts, places, &
                                     MPI_INTEGER, comm, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      else if (form == 3) then
        call MPI_Neighbor_alltoallv_init(out, counts, [0, 1], MPI_INTEGER, in, counts, places, &
                                         MPI_INTEGER, comm, MPI_INFO_NULL, request, ierror)
        call start_and_end(request)
      end if
      call check(all(in == [10 * after + 1, -1, 10 * before + 2]), 'exchanged with displacements')

      in = -1
      if (form == 1) call MPI_Neighbor_alltoallw(out, counts, [0_MPI_ADDRESS_KIND, &
                                                 4_MPI_ADDRESS_KIND], types, in, counts, bytes, &
                                                 types, comm, ierror)
      if (form == 2) then
        call MPI_Ineighbor_alltoallw(out, counts, [0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND], types, &
                                     in, counts, bytes, types, comm, request, ierror)
        call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
      else if (form == 3) then
        call MPI_Neighbor_alltoallw_init(out, counts, [0_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND], &
                                         types, in, counts, bytes, types, comm, MPI_INFO_NULL, &
                                         request, ierror)
        call start_and_end(request)
      end if
      call check(all(in == [10 * after + 1, -1, 10 * before + 2]), 'exchanged with types')
    end do
    call MPI_Comm_free(comm, ierror)
  end subroutine
end program
