! SPDX-License-Identifier: BSD-3-Clause
! mpi_f08: datatypes of every constructor, by what they take out of an array; packing in both formats;
! attributes of datatypes.
program layouts
  use mpi_f08
  use checks
  implicit none
  integer :: rank, ranks, i
  integer, parameter :: n = 24
  integer :: numbers(n) = [(i, i = 1, n)]
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call constructors()
  call distributed()
  call of_fortran()
  call packed()
  call named()
  call MPI_Finalize()

contains

  ! A datatype takes these numbers out of 1, 2, 3...; it is freed.
  subroutine takes(type, values, what)
    type(MPI_Datatype), intent(inout) :: type
    integer, intent(in) :: values(:)
    character(len=*), intent(in) :: what
    integer :: got(n), bytes
    got = -1
    call MPI_Type_commit(type)
    call MPI_Type_size(type, bytes)
    call check(bytes == 4 * size(values), what // ': size')
    call MPI_Sendrecv(numbers, 1, type, 0, 0, got, n, MPI_INTEGER, 0, 0, MPI_COMM_SELF, &
                      MPI_STATUS_IGNORE)
    call check(all(got(:size(values)) == values) .and. all(got(size(values) + 1:) == -1), what)
    call MPI_Type_free(type)
    call check(type == MPI_DATATYPE_NULL, 'MPI_Type_free')
  end subroutine

  subroutine constructors()
    type(MPI_Datatype) :: type, wide
    integer(MPI_ADDRESS_KIND) :: low, extent
    call MPI_Type_contiguous(3, MPI_INTEGER, type)
    call takes(type, [1, 2, 3], 'MPI_Type_contiguous')
    call MPI_Type_vector(3, 2, 5, MPI_INTEGER, type)
    call takes(type, [1, 2, 6, 7, 11, 12], 'MPI_Type_vector')
    call MPI_Type_create_hvector(2, 1, 28_MPI_ADDRESS_KIND, MPI_INTEGER, type)
    call takes(type, [1, 8], 'MPI_Type_create_hvector')
    call MPI_Type_indexed(2, [1, 2], [5, 0], MPI_INTEGER, type)
    call takes(type, [6, 1, 2], 'MPI_Type_indexed')
    call MPI_Type_create_hindexed(2, [2, 1], [12_MPI_ADDRESS_KIND, 0_MPI_ADDRESS_KIND], &
                                  MPI_INTEGER, type)
    call takes(type, [4, 5, 1], 'MPI_Type_create_hindexed')
    call MPI_Type_create_indexed_block(3, 2, [4, 0, 10], MPI_INTEGER, type)
    call takes(type, [5, 6, 1, 2, 11, 12], 'MPI_Type_create_indexed_block')
    call MPI_Type_create_hindexed_block(2, 2, [40_MPI_ADDRESS_KIND, 0_MPI_ADDRESS_KIND], &
                                        MPI_INTEGER, type)
    call takes(type, [11, 12, 1, 2], 'MPI_Type_create_hindexed_block')
    call MPI_Type_create_struct(2, [1, 2], [8_MPI_ADDRESS_KIND, 0_MPI_ADDRESS_KIND], &
                                [MPI_INTEGER, MPI_INTEGER], type)
    call takes(type, [3, 1, 2], 'MPI_Type_create_struct')
    call MPI_Type_create_subarray(2, [6, 4], [2, 2], [1, 2], MPI_ORDER_FORTRAN, MPI_INTEGER, type)
    call takes(type, [14, 15, 20, 21], 'MPI_Type_create_subarray')
    call MPI_Type_dup(MPI_INTEGER, type)
    call takes(type, [1], 'MPI_Type_dup')
    call MPI_Type_create_resized(MPI_INTEGER, -4_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, wide)
    call MPI_Type_get_extent(wide, low, extent)
    call check(low == -4 .and. extent == 16, 'MPI_Type_create_resized')
    call MPI_Type_get_true_extent(wide, low, extent)
    call check(low == 0 .and. extent == 4, 'MPI_Type_get_true_extent')
    call MPI_Type_contiguous(3, wide, type)
    call takes(type, [1, 5, 9], 'a contiguous type of a resized one')
    call MPI_Type_free(wide)
  end subroutine

  ! A block of rows for each of two, and every other column for each of two.
  subroutine distributed()
    type(MPI_Datatype) :: type
    call MPI_Type_create_darray(4, 1, 2, [6, 4], [MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC], &
                                [MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG], [2, 2], &
                                MPI_ORDER_FORTRAN, MPI_INTEGER, type)
    call takes(type, [7, 8, 9, 19, 20, 21], 'MPI_Type_create_darray')
  end subroutine

  subroutine of_fortran()
    integer, parameter :: long = selected_real_kind(18)
    type(MPI_Datatype) :: type
    integer :: bytes
    real(long) :: x(2), total(2)
    complex(long) :: z, product
    call MPI_Type_create_f90_integer(9, type)
    call MPI_Type_size(type, bytes)
    call check(bytes == storage_size(1_4) / 8, 'MPI_Type_create_f90_integer')
    call MPI_Type_create_f90_real(15, MPI_UNDEFINED, type)
    call MPI_Type_size(type, bytes)
    call check(bytes == 8, 'MPI_Type_create_f90_real')
    call MPI_Type_create_f90_complex(6, 30, type)
    call MPI_Type_size(type, bytes)
    call check(bytes == 8, 'MPI_Type_create_f90_complex')
    call MPI_Type_create_f90_real(18, MPI_UNDEFINED, type)
    x = [1.25_long, -3.0_long] * 3
    call MPI_Allreduce(x, total, 2, type, MPI_SUM, MPI_COMM_WORLD)
    call check(all(total == ranks * x), 'MPI_Type_create_f90_real of more digits than a double has')
    call MPI_Type_create_f90_complex(18, 400, type)
    z = (0.0_long, 1.0_long)
    call MPI_Allreduce(z, product, 1, type, MPI_PROD, MPI_COMM_WORLD)
    call check(product == z ** ranks, 'MPI_Type_create_f90_complex of more digits')
    call MPI_Type_match_size(MPI_TYPECLASS_REAL, 4, type)
    call MPI_Type_size(type, bytes)
    call check(bytes == 4, 'MPI_Type_match_size')
    call MPI_Type_get_value_index(MPI_DOUBLE_PRECISION, MPI_INTEGER, type)
    call check(type == MPI_2DOUBLE_PRECISION .or. type /= MPI_2INTEGER, 'MPI_Type_get_value_index')
  end subroutine

  subroutine packed()
    character :: buffer(400)
    integer :: bytes, place, got(4)
    integer(MPI_ADDRESS_KIND) :: external_bytes, external_place
    double precision :: x
    call MPI_Pack_size(4, MPI_INTEGER, MPI_COMM_WORLD, bytes)
    call check(bytes >= 16 .and. bytes < size(buffer), 'MPI_Pack_size')
    place = 0
    call MPI_Pack(numbers(1:7:2), 4, MPI_INTEGER, buffer, size(buffer), place, MPI_COMM_WORLD)
    call MPI_Pack(2.5d0, 1, MPI_DOUBLE_PRECISION, buffer, size(buffer), place, MPI_COMM_WORLD)
    place = 0
    got = 0
    call MPI_Unpack(buffer, size(buffer), place, got, 4, MPI_INTEGER, MPI_COMM_WORLD)
    call MPI_Unpack(buffer, size(buffer), place, x, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD)
    call check(all(got == [1, 3, 5, 7]) .and. x == 2.5d0, 'MPI_Pack and MPI_Unpack')

    call MPI_Pack_external_size('external32', 4, MPI_INTEGER, external_bytes)
    call check(external_bytes == 16, 'MPI_Pack_external_size')
    external_place = 0
    call MPI_Pack_external('external32', numbers, 4, MPI_INTEGER, buffer, 400_MPI_ADDRESS_KIND, &
                           external_place)
    call check(external_place == 16, 'MPI_Pack_external')
    call check(ichar(buffer(1)) == 0 .and. ichar(buffer(4)) == 1, 'external32 has big ends first')
    external_place = 0
    got = 0
    call MPI_Unpack_external('external32', buffer, 400_MPI_ADDRESS_KIND, external_place, got, 4, &
                             MPI_INTEGER)
    call check(all(got == [1, 2, 3, 4]), 'MPI_Unpack_external')
  end subroutine

  subroutine named()
    type(MPI_Datatype) :: type
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length, keyval
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Type_contiguous(2, MPI_INTEGER, type)
    call MPI_Type_set_name(type, 'a pair  ')
    call MPI_Type_get_name(type, name, length)
    call check(name == 'a pair' .and. length == 6, 'MPI_Type_set_name')
    call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, keyval, &
                                0_MPI_ADDRESS_KIND)
    call MPI_Type_set_attr(type, keyval, -5_MPI_ADDRESS_KIND)
    call MPI_Type_get_attr(type, keyval, value, flag)
    call check(flag .and. value == -5, 'MPI_Type_set_attr')
    call MPI_Type_delete_attr(type, keyval)
    call MPI_Type_get_attr(type, keyval, value, flag)
    call check(.not. flag, 'MPI_Type_delete_attr')
    call MPI_Type_free_keyval(keyval)
    call MPI_Type_free(type)
  end subroutine
end program
