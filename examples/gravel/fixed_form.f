C SPDX-License-Identifier: BSD-3-Clause
C
C     Consumer-initiated write from code in fixed form: COMMON blocks,
C     no modules, every argument given (Danalis et al. 2008, Figure 1 a).
      program fixfrm
      use mpi
      implicit none
      include 'gravelf.h'
      integer n, tag
      parameter (n = 50000, tag = 1)
      double precision v(n), w(n)
      common /field/ v, w
      integer*8 reqs(2), buf, nbytes, zero
      integer rank, ranks, prev, next, i, wrong, total, ierr
      character*120 text

      call mpi_init(ierr)
      call mpi_comm_rank(mpi_comm_world, rank, ierr)
      call mpi_comm_size(mpi_comm_world, ranks, ierr)
      prev = mod(rank - 1 + ranks, ranks)
      next = mod(rank + 1, ranks)
      nbytes = 8 * n
      zero = 0

      call gravel_init(mpi_comm_world, ierr)
      if (ierr .ne. GRAVEL_SUCCESS) goto 900
      call gravel_register(v, nbytes, ierr)
      call gravel_register(w, nbytes, ierr)
      call gravel_post_recv_buffer_rdma(prev, w, nbytes, tag, reqs(1),
     &                                  ierr)
      do 10 i = 1, n
        v(i) = rank + 1d-6 * i
 10   continue
      call gravel_wait_recv_buffer(next, tag, buf, ierr)
C     Two fragments, the second one first.
      call gravel_post_os_put(buf, v(n / 2 + 1), nbytes / 2,
     &                        nbytes / 2, reqs(2), ierr)
      call gravel_wait(reqs(2), ierr)
      call gravel_post_os_put(buf, v, nbytes / 2, zero, reqs(2), ierr)
      call gravel_wait(reqs(2), ierr)
      call gravel_send_fin(buf, reqs(2), ierr)
      if (ierr .ne. GRAVEL_SUCCESS) goto 900
      call gravel_waitall(2, reqs, ierr)
      wrong = 0
      do 20 i = 1, n
        if (w(i) .ne. prev + 1d-6 * i) wrong = wrong + 1
 20   continue
C     What is wrong is told.
      call gravel_wait_recv_buffer(ranks, tag, buf, ierr)
      call gravel_error_message(text)
      if (ierr .ne. GRAVEL_ERR_ARGUMENT) wrong = wrong + 1
      if (index(text, 'communicator') .eq. 0) wrong = wrong + 1
      call gravel_finalize(ierr)
      call mpi_reduce(wrong, total, 1, mpi_integer, mpi_sum, 0,
     &                mpi_comm_world, ierr)
      if (rank .eq. 0) print '(a,i0,a,i0,a)', 'fixed_form: ', ranks,
     &  ' ranks, 1 round, ', total, ' wrong values'
      call mpi_finalize(ierr)
      stop
 900  call gravel_error_message(text)
      print *, text
      stop 1
      end
