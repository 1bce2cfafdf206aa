! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: strings, info objects, datatypes and their contents, groups, memory, handles.
program objects
  use mpi_f08
  use checks
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated, c_loc
  implicit none
  integer :: rank, ranks, provided
  call MPI_Init_thread(MPI_THREAD_SINGLE, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call strings()
  call infos()
  call datatypes()
  call groups()
  call memory()
  call handles()
  call MPI_Finalize()

contains

  subroutine strings()
    character(len=MPI_MAX_OBJECT_NAME) :: name
    character(len=4) :: short
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    integer :: length
    call MPI_Comm_set_name(MPI_COMM_WORLD, '  all of us  ')
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length)
    call check(name == '  all of us' .and. length == 11, 'blanks in front are part of a name')
    call MPI_Comm_get_name(MPI_COMM_WORLD, short, length)
    call check(short == '  al', 'a name cut off')
    call MPI_Comm_set_name(MPI_COMM_WORLD, '')
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length)
    call check(name == ' ' .and. length == 0, 'an empty name')
    call MPI_Get_library_version(version, length)
    call check(length > 3 .and. len_trim(version) == length, 'MPI_Get_library_version')
    call MPI_Type_get_name(MPI_DOUBLE_PRECISION, name, length)
    call check(name == 'MPI_DOUBLE_PRECISION', 'MPI_Type_get_name')
  end subroutine

  subroutine infos()
    type(MPI_Info) :: info
    character(len=10) :: value
    character(len=MPI_MAX_INFO_KEY) :: key
    integer :: length, keys
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, '  colour ', '  dark blue ')
    call MPI_Info_get_nkeys(info, keys)
    call check(keys == 1, 'MPI_Info_get_nkeys')
    call MPI_Info_get_nthkey(info, 0, key)
    call check(key == 'colour', 'a key without blanks around it')
    length = 0
    call MPI_Info_get_string(info, 'colour', length, value, flag)
    call check(flag .and. length == 9, 'MPI_Info_get_string tells the length, without a null')
    value = 'xxxxxxxxxx'
    length = len(value)
    call MPI_Info_get_string(info, ' colour', length, value, flag)
    call check(flag .and. length == 9 .and. value == 'dark blue', 'MPI_Info_get_string')
    length = 4
    call MPI_Info_get_string(info, 'colour', length, value, flag)
    call check(flag .and. length == 9 .and. value == 'dark', 'MPI_Info_get_string with less room')
    value = 'untouched'
    length = 10
    call MPI_Info_get_string(info, 'shape', length, value, flag)
    call check(.not. flag .and. value == 'untouched', 'a key that is not there')
    call MPI_Info_get(info, 'colour', 10, value, flag)
    call check(flag .and. value == 'dark blue', 'MPI_Info_get')
    call MPI_Info_free(info)
    call check(info == MPI_INFO_NULL, 'MPI_Info_free')
  end subroutine

  subroutine datatypes()
    type(MPI_Datatype) :: block, record, parts(2), inner(2)
    integer :: integers(5), n_integers, n_addresses, n_types, combiner, size
    integer(MPI_ADDRESS_KIND) :: addresses(2), lb, extent
    integer(MPI_COUNT_KIND) :: count
    double precision :: a(4, 4)
    integer :: i
    call MPI_Type_create_subarray(2, [4, 4], [2, 3], [1, 0], MPI_ORDER_FORTRAN, &
                                  MPI_DOUBLE_PRECISION, block)
    call MPI_Type_commit(block)
    call MPI_Type_size(block, size)
    call MPI_Type_size(block, count)
    call check(size == 48 .and. count == 48, 'MPI_Type_size with either kind of count')
    call MPI_Type_get_extent(block, lb, extent)
    call check(lb == 0 .and. extent == 128, 'MPI_Type_get_extent')
    a = reshape([(dble(i), i = 1, 16)], [4, 4])
    call MPI_Sendrecv_replace(a, 1, block, rank, 0, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check(all(a == reshape([(dble(i), i = 1, 16)], [4, 4])), 'a subarray sent to itself')
    parts = [MPI_INTEGER, block]
    call MPI_Type_create_struct(2, [3, 1], [0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND], parts, record)
    call MPI_Type_get_envelope(record, n_integers, n_addresses, n_types, combiner)
    call check(combiner == MPI_COMBINER_STRUCT .and. n_types == 2, 'MPI_Type_get_envelope')
    call MPI_Type_get_contents(record, n_integers, n_addresses, n_types, integers, addresses, inner)
    call check(all(integers(:3) == [2, 3, 1]) .and. all(addresses == [0, 16]), 'MPI_Type_get_contents')
    call check(inner(1) == MPI_INTEGER .and. inner(2) /= MPI_DATATYPE_NULL, 'types within a type')
    call MPI_Type_free(inner(2))
    call MPI_Type_free(record)
    call MPI_Type_free(block)
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, block)
    call MPI_Type_size(block, size)
    call check(size == 8, 'MPI_Type_match_size')
    call MPI_Type_create_f90_real(12, MPI_UNDEFINED, block)
    call MPI_Type_size(block, size)
    call check(size == 8, 'MPI_Type_create_f90_real')
  end subroutine

  subroutine groups()
    type(MPI_Group) :: world, some
    type(MPI_Comm) :: comm
    integer :: ranges(3, 1), size, result
    call MPI_Comm_group(MPI_COMM_WORLD, world)
    ranges(:, 1) = [0, ranks - 1, 2]
    call MPI_Group_range_incl(world, 1, ranges, some)
    call MPI_Group_size(some, size)
    call check(size == (ranks + 1) / 2, 'MPI_Group_range_incl')
    call MPI_Comm_create(MPI_COMM_WORLD, some, comm)
    call check((comm == MPI_COMM_NULL) .eqv. (mod(rank, 2) == 1), 'MPI_Comm_create')
    if (comm /= MPI_COMM_NULL) call MPI_Comm_free(comm)
    call MPI_Group_compare(world, some, result)
    call check(result == merge(MPI_IDENT, MPI_UNEQUAL, ranks == 1), 'MPI_Group_compare')
    call MPI_Group_free(some)
    call MPI_Group_free(world)
  end subroutine

  subroutine memory()
    type(c_ptr) :: pointer, detached
    integer, pointer :: a(:)
    integer :: size, value
    integer(MPI_ADDRESS_KIND) :: first, second
    type(MPI_Datatype) :: pair
    integer, target :: left_half, right_half
    character(len=1), pointer :: buffer(:)
    call MPI_Alloc_mem(400_MPI_ADDRESS_KIND, MPI_INFO_NULL, pointer)
    call c_f_pointer(pointer, a, [100])
    a = rank
    call check(sum(a) == 100 * rank, 'memory of MPI_Alloc_mem')
    call MPI_Free_mem(a)
    allocate(buffer(MPI_BSEND_OVERHEAD + 1000))
    call MPI_Buffer_attach(buffer, MPI_BSEND_OVERHEAD + 1000)
    call MPI_Bsend(rank, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD)
    call MPI_Recv(value, 1, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(detached, size)
    call check(c_associated(detached) .and. size == MPI_BSEND_OVERHEAD + 1000, 'MPI_Buffer_detach')
    deallocate(buffer)
    call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0)
    call MPI_Buffer_detach(detached, size)
    call check(c_associated(detached, c_loc(MPI_BUFFER_AUTOMATIC)), 'a buffer that MPI made')
    ! Absolute addresses with MPI_BOTTOM.
    call MPI_Get_address(left_half, first)
    call MPI_Get_address(right_half, second)
    call check(MPI_Aint_diff(MPI_Aint_add(first, 4_MPI_ADDRESS_KIND), first) == 4, 'addresses')
    call MPI_Type_create_hindexed(2, [1, 1], [first, second], MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    left_half = merge(21, 0, rank == 0)
    right_half = merge(42, 0, rank == 0)
    call MPI_Bcast(MPI_BOTTOM, 1, pair, 0, MPI_COMM_WORLD)
    call MPI_F_sync_reg(left_half)
    call MPI_F_sync_reg(right_half)
    call check(left_half == 21 .and. right_half == 42, 'MPI_BOTTOM')
    call MPI_Type_free(pair)
  end subroutine

  subroutine handles()
    type(MPI_Comm) :: world
    type(MPI_Status) :: status
    integer :: f_status(MPI_STATUS_SIZE), size, code
    world%MPI_VAL = 257 ! the value of MPI_COMM_WORLD in the ABI
    call check(world == MPI_COMM_WORLD, 'the integer of a predefined handle')
    call PMPI_Comm_size(world, size)
    call check(size == ranks, 'PMPI')
    status%MPI_SOURCE = 3
    status%MPI_TAG = 4
    status%MPI_ERROR = MPI_ERR_TRUNCATE
    call MPI_Status_f082f(status, f_status)
    call check(f_status(MPI_SOURCE) == 3 .and. f_status(MPI_TAG) == 4 &
               .and. f_status(MPI_ERROR) == MPI_ERR_TRUNCATE, 'MPI_Status_f082f')
    call MPI_Sizeof(1d0, size)
    call check(size == 8, 'MPI_Sizeof')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
    call MPI_Comm_free(world, code)
    call check(code /= MPI_SUCCESS .and. world == MPI_COMM_WORLD, 'a handle that cannot be freed stays')
    call check(.not. MPI_ASYNC_PROTECTS_NONBLOCKING .or. MPI_SUBARRAYS_SUPPORTED, 'what is supported')
  end subroutine
end program
