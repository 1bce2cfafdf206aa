! SPDX-License-Identifier: BSD-3-Clause
!
! Gravel in Fortran: the calls of gravel.h, which describes them, as subroutines with the error code
! last. Arrays are passed as they are; sizes and offsets are in bytes, of kind gravel_size_kind. What
! is optional may be left out: without `ierror` an error ends the program with its message.
!
! Data move while a request is under way, not in the call, so the arrays should be ASYNCHRONOUS
! where they are declared. The compiler then refuses a section that is not contiguous; without the
! attribute it passes a copy, which is refused as memory that is not registered.
module gravel
  implicit none
  private

  integer, parameter, public :: gravel_handle_kind = selected_int_kind(18)
  integer, parameter, public :: gravel_size_kind = selected_int_kind(18)
  integer(gravel_handle_kind), parameter, public :: GRAVEL_REQUEST_NULL = 0
  integer, parameter, public :: GRAVEL_ANY_SOURCE = -1
  integer, parameter, public :: GRAVEL_ANY_TAG = -2

  integer, parameter, public :: GRAVEL_SUCCESS = 0
  integer, parameter, public :: GRAVEL_ERR_STATE = 1
  integer, parameter, public :: GRAVEL_ERR_ARGUMENT = 2
  integer, parameter, public :: GRAVEL_ERR_MEMORY = 3
  integer, parameter, public :: GRAVEL_ERR_RANGE = 4
  integer, parameter, public :: GRAVEL_ERR_REQUEST = 5
  integer, parameter, public :: GRAVEL_ERR_BUFFER = 6
  integer, parameter, public :: GRAVEL_ERR_INCOMPLETE = 7
  integer, parameter, public :: GRAVEL_ERR_TRANSFER = 8
  integer, parameter, public :: GRAVEL_ERR_PEER = 9
  integer, parameter, public :: GRAVEL_ERR_SYSTEM = 10

  public :: gravel_init, gravel_finalize, gravel_error_message, gravel_register, gravel_unregister
  public :: gravel_post_recv_buffer_rdma, gravel_wait_recv_buffer, gravel_test_recv_buffer
  public :: gravel_promise_recv_buffers
  public :: gravel_post_os_put, gravel_post_os_get, gravel_send_fin
  public :: gravel_post_send_request_rdma, gravel_wait_send_request, gravel_test_send_request
  public :: gravel_post_send_buffer_rdma, gravel_wait_send_buffer, gravel_test_send_buffer
  public :: gravel_get_buffer, gravel_wait, gravel_test, gravel_waitall

  interface
    ! comm: as in the module mpi; of mpi_f08 give comm%MPI_VAL.
    subroutine gravel_init(comm, ierror)
      integer, intent(in) :: comm
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_finalize(ierror)
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_error_message(text)
      character(len=*), intent(out) :: text
    end subroutine

    subroutine gravel_register(memory, bytes, ierror)
      import :: gravel_size_kind
      type(*), dimension(*), asynchronous :: memory
      integer(gravel_size_kind), intent(in) :: bytes
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_unregister(memory, ierror)
      type(*), dimension(*), asynchronous :: memory
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_post_recv_buffer_rdma(producer, memory, bytes, tag, request, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer, intent(in) :: producer, tag
      type(*), dimension(*), asynchronous :: memory
      integer(gravel_size_kind), intent(in) :: bytes
      integer(gravel_handle_kind), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_promise_recv_buffers(producer, bytes, tag, count, ierror)
      import :: gravel_size_kind
      integer, intent(in) :: producer, tag
      integer(gravel_size_kind), intent(in) :: bytes, count
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_wait_recv_buffer(consumer, tag, buffer, ierror)
      import :: gravel_handle_kind
      integer, intent(in) :: consumer, tag
      integer(gravel_handle_kind), intent(out) :: buffer
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_test_recv_buffer(consumer, tag, buffer, flag, ierror)
      import :: gravel_handle_kind
      integer, intent(in) :: consumer, tag
      integer(gravel_handle_kind), intent(inout) :: buffer
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_post_os_put(buffer, memory, bytes, offset, request, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer(gravel_handle_kind), intent(in) :: buffer
      type(*), dimension(*), asynchronous :: memory
      integer(gravel_size_kind), intent(in) :: bytes, offset
      integer(gravel_handle_kind), optional, intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_post_os_get(buffer, memory, bytes, offset, request, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer(gravel_handle_kind), intent(in) :: buffer
      type(*), dimension(*), asynchronous :: memory
      integer(gravel_size_kind), intent(in) :: bytes, offset
      integer(gravel_handle_kind), optional, intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_send_fin(buffer, request, ierror)
      import :: gravel_handle_kind
      integer(gravel_handle_kind), intent(in) :: buffer
      integer(gravel_handle_kind), optional, intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_post_send_request_rdma(consumer, bytes, tag, request, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer, intent(in) :: consumer, tag
      integer(gravel_size_kind), intent(in) :: bytes
      integer(gravel_handle_kind), optional, intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_wait_send_request(producer, tag, from, found_tag, bytes, ierror)
      import :: gravel_size_kind
      integer, intent(in) :: producer, tag
      integer, optional, intent(out) :: from, found_tag
      integer(gravel_size_kind), optional, intent(out) :: bytes
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_test_send_request(producer, tag, from, found_tag, bytes, flag, ierror)
      import :: gravel_size_kind
      integer, intent(in) :: producer, tag
      integer, optional, intent(inout) :: from, found_tag
      integer(gravel_size_kind), optional, intent(inout) :: bytes
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_post_send_buffer_rdma(consumer, memory, bytes, tag, request, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer, intent(in) :: consumer, tag
      type(*), dimension(*), asynchronous :: memory
      integer(gravel_size_kind), intent(in) :: bytes
      integer(gravel_handle_kind), intent(out) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_wait_send_buffer(producer, tag, buffer, ierror)
      import :: gravel_handle_kind
      integer, intent(in) :: producer, tag
      integer(gravel_handle_kind), intent(out) :: buffer
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_test_send_buffer(producer, tag, buffer, flag, ierror)
      import :: gravel_handle_kind
      integer, intent(in) :: producer, tag
      integer(gravel_handle_kind), intent(inout) :: buffer
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_get_buffer(buffer, peer, tag, bytes, ierror)
      import :: gravel_size_kind, gravel_handle_kind
      integer(gravel_handle_kind), intent(in) :: buffer
      integer, optional, intent(out) :: peer, tag
      integer(gravel_size_kind), optional, intent(out) :: bytes
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_wait(request, ierror)
      import :: gravel_handle_kind
      integer(gravel_handle_kind), intent(inout) :: request
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_test(request, flag, ierror)
      import :: gravel_handle_kind
      integer(gravel_handle_kind), intent(inout) :: request
      logical, intent(out) :: flag
      integer, optional, intent(out) :: ierror
    end subroutine

    subroutine gravel_waitall(count, requests, ierror)
      import :: gravel_handle_kind
      integer, intent(in) :: count
      integer(gravel_handle_kind), intent(inout) :: requests(*)
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
end module gravel
