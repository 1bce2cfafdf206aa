! SPDX-License-Identifier: BSD-3-Clause
!
! What patterns.f90 computes: copies into and out of a message (Danalis et al. 2008, section 3). In a
! file of its own, so that the compiler makes the same instructions of it for every variant.
module computation
  implicit none
  private
  public :: make, use_up
  integer :: element
  double precision :: source(128) = [(dble(element), element=1, 128)], sink(128)

contains

  ! What is sent (Figure 3 of the paper): elements `first` to `last` of a message.
  subroutine make(message, first, last)
    double precision, intent(inout) :: message(*)
    integer, intent(in) :: first, last
    integer :: i
    do i = first, last
      message(i) = source(1 + modulo(i - 1, 128))
    end do
  end subroutine

  ! What is done with what has come.
  subroutine use_up(message, n)
    double precision, intent(in) :: message(*)
    integer, intent(in) :: n
    integer :: i
    do i = 1, n
      sink(1 + modulo(i - 1, 128)) = message(i)
    end do
  end subroutine
end module
