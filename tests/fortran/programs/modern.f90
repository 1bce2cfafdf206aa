! SPDX-License-Identifier: BSD-3-Clause
! Module mpi: messages, requests and collectives with the arguments checked by the compiler.
program modern
  use mpi
  implicit none
  integer :: ierr, rank, ranks, left, right, value, total, i, count, outcount, provided
  integer :: requests(3), indices(3), statuses(MPI_STATUS_SIZE, 3), status(MPI_STATUS_SIZE)
  integer :: group, part(2), back(2), comm, f08_source
  type(MPI_Status) :: f08_status
  type(MPI_Comm) :: f08_comm, f08_other
  logical :: flag
  double precision :: matrix(4, 4)

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierr)
  if (provided < MPI_THREAD_FUNNELED) stop 1
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)

  ! The types of mpi_f08 and their operators are here, too.
  f08_comm%MPI_VAL = MPI_COMM_WORLD
  f08_other%MPI_VAL = MPI_COMM_SELF
  if (.not. f08_comm == f08_comm .or. .not. f08_comm /= f08_other) stop 29

  ! A section is passed by a copy that the compiler makes, which a blocking call may use.
  matrix = rank
  call MPI_Sendrecv_replace(matrix(2, :), 4, MPI_DOUBLE_PRECISION, right, 3, left, 3, &
                            MPI_COMM_WORLD, status, ierr)
  if (any(matrix(2, :) /= left) .or. any(matrix([1, 3, 4], :) /= rank)) stop 2
  if (status(MPI_SOURCE) /= left .or. status(MPI_TAG) /= 3) stop 3

  requests(1) = MPI_REQUEST_NULL
  call MPI_Irecv(value, 1, MPI_INTEGER, left, 4, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Isend(rank, 1, MPI_INTEGER, right, 4, MPI_COMM_WORLD, requests(3), ierr)
  total = 0
  do while (total < 2)
    call MPI_Waitsome(3, requests, outcount, indices, statuses, ierr)
    do i = 1, outcount
      if (indices(i) < 2 .or. indices(i) > 3) stop 4
      if (indices(i) == 2) then
        if (statuses(MPI_SOURCE, i) /= left) stop 5
      end if
    end do
    total = total + outcount
  end do
  if (value /= left) stop 6
  call MPI_Waitsome(3, requests, outcount, indices, MPI_STATUSES_IGNORE, ierr)
  if (outcount /= MPI_UNDEFINED) stop 7

  call MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, flag, status, ierr)
  if (.not. flag .or. status(MPI_SOURCE) /= MPI_PROC_NULL) stop 8
  call MPI_Status_f2f08(status, f08_status, ierr)
  if (f08_status%MPI_SOURCE /= MPI_PROC_NULL) stop 9
  f08_status%MPI_TAG = 17
  call MPI_Status_f082f(f08_status, status, ierr)
  if (status(MPI_TAG) /= 17) stop 10
  call MPI_Status_get_source(status, f08_source, ierr)
  if (f08_source /= MPI_PROC_NULL) stop 11

  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  part = [0, ranks - 1]
  call MPI_Group_translate_ranks(group, 2, part, group, back, ierr)
  if (any(back /= part)) stop 12
  call MPI_Group_free(group, ierr)
  if (group /= MPI_GROUP_NULL) stop 13
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, comm, ierr)
  call MPI_Comm_size(comm, count, ierr)
  if (count /= (ranks + 1 - mod(rank, 2)) / 2) stop 14
  call MPI_Comm_free(comm, ierr)
  if (comm /= MPI_COMM_NULL) stop 15
  call PMPI_Comm_size(MPI_COMM_WORLD, count, ierr)
  if (count /= ranks) stop 16
  call MPI_Sizeof(matrix, count, ierr)
  if (count /= 8) stop 17

  ! An error comes back, and says what it is.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(value, -1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, ierr)
  if (ierr == MPI_SUCCESS) stop 18
  call MPI_Error_class(ierr, count, total)
  if (count /= MPI_ERR_COUNT) stop 19
  call MPI_Finalize(ierr)
end program
