! SPDX-License-Identifier: BSD-3-Clause
! What the programs here check with: a wrong result names its place and ends the job.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    write (error_unit, '(2a)') 'wrong: ', what
    error stop 1
  end subroutine
end module
