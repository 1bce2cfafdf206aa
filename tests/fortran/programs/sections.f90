! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: array sections, other bounds, pointers and scalars as buffers, in all kinds of calls.
module handlers
  use mpi_f08
  implicit none
  integer :: errors = 0, last_class = MPI_SUCCESS
contains
  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm == MPI_COMM_WORLD) errors = errors + 1
    call MPI_Error_class(error_code, last_class)
  end subroutine
end module

program sections
  use mpi_f08
  use handlers
  use checks
  implicit none
  type :: particle
    double precision :: mass
    integer :: id
    double precision :: place(3)
  end type
  interface exchange
    procedure exchange_lines, exchange_planes, exchange_numbers
  end interface
  integer :: rank, ranks, left, right

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  right = modulo(rank + 1, ranks)
  left = modulo(rank - 1, ranks)
  call messages()
  call counts()
  call other_bounds(right, left)
  call collectives()
  call nonblocking_collectives()
  call persistent()
  call asked()
  call not_significant()
  call packing()
  call refused()
  call MPI_Finalize()

contains

  ! Numbers that tell which rank they are from.
  elemental integer function number(i, from)
    integer, intent(in) :: i, from
    number = 1000 * from + i
  end function

  ! Sends to the right and receives from the left, through dummy arguments that keep the sections.
  subroutine exchange_lines(send, receive, elements)
    integer, intent(in) :: send(:), elements
    integer, intent(inout), asynchronous :: receive(:)
    type(MPI_Request) :: request
    call MPI_Irecv(receive, elements, MPI_INTEGER, left, 1, MPI_COMM_WORLD, request)
    call MPI_Send(send, elements, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  subroutine exchange_planes(send, receive, elements)
    integer, intent(in) :: send(:, :), elements
    integer, intent(inout), asynchronous :: receive(:, :)
    type(MPI_Request) :: request
    call MPI_Irecv(receive, elements, MPI_INTEGER, left, 1, MPI_COMM_WORLD, request)
    call MPI_Send(send, elements, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  subroutine exchange_numbers(send, receive, elements)
    integer, intent(in) :: send, elements
    integer, intent(inout), asynchronous :: receive
    type(MPI_Request) :: request
    call MPI_Irecv(receive, elements, MPI_INTEGER, left, 1, MPI_COMM_WORLD, request)
    call MPI_Send(send, elements, MPI_INTEGER, right, 1, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end subroutine

  subroutine messages()
    integer :: a(30), b(30), square(6, 6), got(6, 6), cube(4, 4, 4), in_cube(4, 4, 4), i
    type(particle) :: sent(5), received(5)
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
    integer, pointer :: view(:)
    integer, target :: memory(20)
    a = number([(i, i = 1, 30)], rank)
    b = -1
    call exchange(a(1:30:3), b(30:1:-3), 10)
    call check(all(b(30:1:-3) == number([(i, i = 1, 30, 3)], left)), 'strides, one of them negative')
    call check(count(b == -1) == 20, 'elements between those of a section stay')

    square = reshape(number([(i, i = 1, 36)], rank), [6, 6])
    got = -1
    call exchange(square(2:5, 3:4), got(1:6:5, 1:4), 8)
    call check(all(reshape(got(1:6:5, 1:4), [8]) &
                   == number([14, 15, 16, 17, 20, 21, 22, 23], left)), 'blocks')
    call check(count(got == -1) == 28, 'elements around a block stay')

    cube = reshape(number([(i, i = 1, 64)], rank), [4, 4, 4])
    in_cube = 0
    call exchange(cube(2, :, 4:1:-2), in_cube(:, 3, 1:4:3), 8)
    call check(all(reshape(in_cube(:, 3, 1:4:3), [8]) &
                   == number([50, 54, 58, 62, 18, 22, 26, 30], left)), 'planes of a cube')

    memory = number([(i, i = 1, 20)], rank)
    view => memory(2:20:2)
    b = 0
    call exchange(view(1:9:2), b(1:5), 5)
    call check(all(b(1:5) == number([2, 6, 10, 14, 18], left)), 'a section of a pointer')
    call exchange(view(3), b(7), 1)
    call check(b(7) == number(6, left), 'scalars')
    call exchange(memory(1:0), b(8:7), 0)

    ! A component of derived type, whose elements lie a structure apart.
    do i = 1, 5
      sent(i) = particle(rank + 0.5d0, number(i, rank), 0d0)
    end do
    received = particle(0d0, 0, -1d0)
    call MPI_Irecv(received%id, 5, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(sent%id, 5, MPI_INTEGER, right, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call check(all(received%id == number([1, 2, 3, 4, 5], left)), 'components')
    call check(all(received%mass == 0d0), 'other components stay')
    call check(statuses(1)%MPI_SOURCE == left .and. statuses(1)%MPI_TAG == 2, 'statuses')
    call MPI_Get_count(statuses(1), MPI_INTEGER, i)
    call check(i == 5, 'the count of a section received')
    call MPI_Sendrecv_replace(a(1:9:4), 3, MPI_INTEGER, right, 3, left, 3, MPI_COMM_WORLD, &
                              MPI_STATUS_IGNORE)
    call check(all(a(1:9:4) == number([1, 5, 9], left)), 'MPI_Sendrecv_replace')
  end subroutine

  ! Counts that end within a row, in bytes, in pairs, and long ones.
  subroutine counts()
    integer :: a(5, 4), b(5, 4), i
    type(MPI_Datatype) :: pair, pair_of_pairs
    type(MPI_Request) :: request
    a = reshape(number([(i, i = 1, 20)], rank), [5, 4])
    b = -1
    call exchange(a(1:5:2, :), b(1:5:2, :), 7)
    call check(all(pack(b(1:5:2, :), .true.) == [number([1, 3, 5, 6, 8, 10, 11], left), &
                                                -1, -1, -1, -1, -1]), 'a count within a row')
    b = -1
    call exchange(a(1:5:2, :), b(1:5:2, :), 2)
    call check(all(b(1:5:2, 1) == [number([1, 3], left), -1]), 'a count within the first row')
    b = -1
    call MPI_Irecv(b(2:3, :), 18_MPI_COUNT_KIND, MPI_BYTE, left, 4, MPI_COMM_WORLD, request)
    call MPI_Send(a(2:3, :), 18, MPI_BYTE, right, 4, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(pack(b(2:3, 1:2), .true.) == number([2, 3, 7, 8], left)), 'whole elements in bytes')
    call check(b(2, 3) /= -1 .and. b(3, 3) == -1, 'half an element in bytes')
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_contiguous(2, pair, pair_of_pairs)
    call MPI_Type_commit(pair_of_pairs)
    b = -1
    call MPI_Irecv(b(1:5:4, :), 2, pair_of_pairs, left, 5, MPI_COMM_WORLD, request)
    call MPI_Send(a(1:5:4, :), 2, pair_of_pairs, right, 5, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(pack(b(1:5:4, :), .true.) == number([1, 5, 6, 10, 11, 15, 16, 20], left)), &
               'datatypes of several elements')
    call MPI_Type_free(pair)
    call MPI_Type_free(pair_of_pairs)
  end subroutine

  subroutine other_bounds(to, from)
    integer, intent(in) :: to, from
    integer, allocatable :: a(:, :), b(:)
    integer :: i
    allocate(a(-3:2, 0:4), b(-10:-1))
    a = reshape(number([(i, i = 1, 30)], rank), [6, 5])
    call MPI_Sendrecv(a(-3:2:5, :), 10, MPI_INTEGER, to, 1, b, 10, MPI_INTEGER, from, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(b == number([1, 6, 7, 12, 13, 18, 19, 24, 25, 30], from)), 'other bounds')
    call assumed_size(a, b)
    call check(all(b == number([(i, i = 1, 10)], from)), 'arrays of assumed size')
  end subroutine

  subroutine assumed_size(a, b)
    integer :: a(-5:*), b(*)
    call MPI_Sendrecv(a, 10, MPI_INTEGER, right, 1, b, 10, MPI_INTEGER, left, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine

  subroutine collectives()
    integer :: a(10), b(4, 3 * ranks), mine(3), i, sums(6), ones(ranks), places(ranks)
    a = merge(number([(i, i = 1, 10)], 7), 0, rank == 0)
    call MPI_Bcast(a(1:10:3), 4, MPI_INTEGER, 0, MPI_COMM_WORLD)
    call check(all(a(1:10:3) == number([1, 4, 7, 10], 7)), 'MPI_Bcast')
    call check(rank == 0 .or. all(a(2:3) == 0), 'MPI_Bcast touches the section only')

    mine = number([1, 2, 3], rank)
    b = -1
    call MPI_Allgather(mine, 3, MPI_INTEGER, b(2, :), 3, MPI_INTEGER, MPI_COMM_WORLD)
    do i = 0, ranks - 1
      call check(all(b(2, 3*i + 1:3*i + 3) == number([1, 2, 3], i)), 'MPI_Allgather')
    end do
    call check(all(b([1, 3, 4], :) == -1), 'MPI_Allgather touches the section only')
    b(1, :) = b(2, :)
    call MPI_Alltoall(b(1, 1:ranks), 1, MPI_INTEGER, b(3, 2*ranks:ranks + 1:-1), 1, MPI_INTEGER, &
                      MPI_COMM_WORLD)
    do i = 0, ranks - 1
      call check(b(3, 2*ranks - i) == b(1, 1 + rank), 'MPI_Alltoall')
    end do
    ones = 1
    places = [(3 * i, i = 0, ranks - 1)]
    call MPI_Gatherv(mine(1:3:2), 1, MPI_INTEGER, b(4, :), ones, places, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) then
      call check(all(b(4, 1:3*ranks:3) == number(1, [(i, i = 0, ranks - 1)])), 'MPI_Gatherv')
      call check(all(b(4, 2:3*ranks:3) == -1), 'MPI_Gatherv touches its places only')
    end if

    sums = rank
    call MPI_Allreduce(MPI_IN_PLACE, sums(1:6:2), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(sums == [((ranks * (ranks - 1)) / 2, rank, i = 1, 3)]), 'MPI_Allreduce in place')
    sums = rank + 1
    call MPI_Scan(sums(2:6:4), sums(1:5:4), 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call check(all(sums(1:5:4) == (rank + 1) * (rank + 2) / 2), 'MPI_Scan')
    call MPI_Reduce_local(sums(2:4:2), sums(1:5:4), 2, MPI_INTEGER, MPI_SUM)
    call check(all(sums(1:5:4) == (rank + 1) * (rank + 2) / 2 + rank + 1), 'MPI_Reduce_local')
  end subroutine

  subroutine nonblocking_collectives()
    integer, asynchronous :: sums(8), b(2, ranks)
    type(MPI_Request) :: requests(2)
    integer :: i
    sums = rank
    b = -1
    call MPI_Iallreduce(MPI_IN_PLACE, sums(2:8:2), 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
    call MPI_Iallgather(rank, 1, MPI_INTEGER, b(2, :), 1, MPI_INTEGER, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_F_sync_reg(sums)
    call MPI_F_sync_reg(b)
    call check(all(sums(2:8:2) == ranks * (ranks - 1) / 2) .and. all(sums(1:7:2) == rank), &
               'MPI_Iallreduce')
    call check(all(b(2, :) == [(i, i = 0, ranks - 1)]) .and. all(b(1, :) == -1), 'MPI_Iallgather')
    call check(requests(1) == MPI_REQUEST_NULL .and. requests(2) == MPI_REQUEST_NULL, 'requests')
  end subroutine

  subroutine persistent()
    integer, asynchronous :: a(9), b(9)
    type(MPI_Request) :: requests(2)
    integer :: round, i
    call MPI_Send_init(a(1:9:4), 3, MPI_INTEGER, right, 6, MPI_COMM_WORLD, requests(1))
    call MPI_Recv_init(b(9:1:-4), 3, MPI_INTEGER, left, 6, MPI_COMM_WORLD, requests(2))
    do round = 1, 3
      a = number([(i * round, i = 1, 9)], rank)
      call MPI_Startall(2, requests)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      call MPI_F_sync_reg(b)
      call check(all(b(9:1:-4) == number([1, 5, 9] * round, left)), 'persistent requests')
    end do
    do i = 1, 2
      call MPI_Request_free(requests(i))
    end do
    ! Collectives, whose sections are copied at each start and after it.
    call MPI_Allreduce_init(a(1:9:4), b(2:8:3), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &
                            requests(1))
    call MPI_Bcast_init(b(1:9:8), 2, MPI_INTEGER, 0, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    b = 0
    do round = 1, 3
      a = [(i * round, i = 1, 9)]
      b(1:9:8) = merge(round, -1, rank == 0)
      call MPI_Start(requests(1))
      call MPI_Start(requests(2))
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      call MPI_F_sync_reg(b)
      call check(all(b(2:8:3) == ranks * round * [1, 5, 9]), 'a persistent collective')
      b(2:8:3) = -5
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) ! one of them is not active
      call MPI_F_sync_reg(b)
      call check(all(b(1:9:8) == round), 'a persistent MPI_Bcast')
      call check(all(b(2:8:3) == -5), 'a request that is not active leaves its section alone')
    end do
    do i = 1, 2
      call MPI_Request_free(requests(i))
    end do
    call check(all(b(2:8:3) == -5) .and. requests(1) == MPI_REQUEST_NULL, 'persistent requests freed')
  end subroutine

  ! What is asked about and complete is there, whichever call tells.
  subroutine asked()
    integer, asynchronous :: a(10), b(5)
    type(MPI_Request) :: requests(1)
    integer :: i, index, outcount, indices(1)
    logical :: flag
    do i = 1, 4
      a = -1
      b = i
      call MPI_Iallreduce(b, a(1:10:2), 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
      flag = .false.
      do while (.not. flag)
        select case (i)
        case (1)
          call MPI_Request_get_status(requests(1), flag, MPI_STATUS_IGNORE)
        case (2)
          call MPI_Request_get_status_any(1, requests, index, flag, MPI_STATUS_IGNORE)
        case (3)
          call MPI_Request_get_status_all(1, requests, flag, MPI_STATUSES_IGNORE)
        case (4)
          call MPI_Request_get_status_some(1, requests, outcount, indices, MPI_STATUSES_IGNORE)
          flag = outcount == 1
        end select
      end do
      call MPI_F_sync_reg(a)
      call check(all(a(1:10:2) == ranks * i), 'a section by MPI_Request_get_status and its like')
      a(1:10:2) = -2
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      call MPI_F_sync_reg(a)
      call check(all(a(1:10:2) == -2), 'a section is put back once')
    end do
  end subroutine

  ! A buffer that is the root's alone, and elements behind the count, stay the program's.
  subroutine not_significant()
    integer, asynchronous :: a(11)
    integer, allocatable :: at_root(:)
    integer :: mine
    type(MPI_Request) :: request
    a = -1
    mine = rank
    call MPI_Igather(mine, 1, MPI_INTEGER, a(1:11:2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
    if (rank /= 0) a(1) = 7
    a(11) = 8
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_F_sync_reg(a)
    call check(a(11) == 8, 'an element behind the count')
    call check(a(1) == merge(0, 7, rank == 0), 'a section that is not significant')
    if (rank == 0) allocate(at_root(ranks))
    call MPI_Gather(mine, 1, MPI_INTEGER, at_root, 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
    if (rank == 0) call check(at_root(ranks) == ranks - 1, 'an array that only the root has')
  end subroutine

  subroutine packing()
    integer :: a(6), b(6), position, size
    character(len=1) :: buffer(200)
    a = [1, 2, 3, 4, 5, 6]
    b = 0
    position = 0
    call MPI_Pack(a(2:6:2), 3, MPI_INTEGER, buffer(1:199:2), 100, position, MPI_COMM_WORLD)
    size = position
    position = 0
    call MPI_Unpack(buffer(1:199:2), size, position, b(1:5:2), 3, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(b == [2, 0, 4, 0, 6, 0]) .and. position == size, 'MPI_Pack and MPI_Unpack')
    position = 0
    call MPI_Pack_external('external32  ', a(1:5:4), 2, MPI_INTEGER, buffer, 100_MPI_ADDRESS_KIND, &
                           position_of(size))
    call check(ichar(buffer(4)) == 1 .and. ichar(buffer(8)) == 5, 'MPI_Pack_external')
  end subroutine

  function position_of(unused) result(position)
    integer, intent(in) :: unused
    integer(MPI_ADDRESS_KIND), pointer :: position
    integer(MPI_ADDRESS_KIND), target, save :: zero
    zero = 0 * unused
    position => zero
  end function

  ! What cannot be described is an error, and the request is none.
  subroutine refused()
    integer :: a(12), code
    type(MPI_Request) :: request
    type(MPI_Datatype) :: gaps
    type(MPI_Errhandler) :: handler
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Isend(a(1:12:2), 7, MPI_INTEGER, right, 7, MPI_COMM_WORLD, request, code)
    call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'a count beyond the section')
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, gaps)
    call MPI_Type_commit(gaps)
    call MPI_Isend(a(1:12:2), 1, gaps, right, 7, MPI_COMM_WORLD, request, code)
    call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'gaps in a section')
    call MPI_Type_free(gaps)
    call MPI_Psend_init(a(1:12:2), 2, 3_MPI_COUNT_KIND, MPI_INTEGER, right, 7, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, request, code)
    call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'partitions of a section')
    call MPI_Precv_init(a(12:1:-1), 2, 6_MPI_COUNT_KIND, MPI_INTEGER, left, 7, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, request, code)
    call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'partitions backwards')
    call MPI_Comm_create_errhandler(on_error, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
    call MPI_Errhandler_free(handler)
    call MPI_Psend_init(a(1:12:2), 2, 3_MPI_COUNT_KIND, MPI_INTEGER, right, 7, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, request, code)
    call check(errors == 1 .and. last_class == MPI_ERR_TYPE, 'the error handler is called')
    call MPI_Psend_init(a(1:12:2), 2, 0_MPI_COUNT_KIND, MPI_INTEGER, right, 7, MPI_COMM_WORLD, &
                        MPI_INFO_NULL, request, code)
    call check(errors == 1, 'partitions without elements')
    call MPI_Request_free(request)
  end subroutine
end program
