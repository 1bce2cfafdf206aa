// SPDX-License-Identifier: BSD-3-Clause
// Variables that Fortran programs pass for their address alone, such as MPI_IN_PLACE, in the common
// blocks of MPICH's ABI. A program that names one of them has it, and the dynamic linker makes ours
// one with it.
#pragma once

extern "C" {
extern int mpipriv1_[7];
extern int mpipriv2_[6];
extern int mpifcmb5_[1];
extern int mpifcmb9_[1];
extern int mpifcmba_[1];
extern char mpiprivc_[2];
}

#define fortran_bottom (mpipriv1_ + 0)
#define fortran_in_place (mpipriv1_ + 1)
#define fortran_status_ignore (mpipriv1_ + 2)
#define fortran_statuses_ignore (mpipriv2_ + 0)
#define fortran_errcodes_ignore (mpipriv2_ + 5)
#define fortran_unweighted mpifcmb5_
#define fortran_weights_empty mpifcmb9_
#define fortran_buffer_automatic mpifcmba_
#define fortran_argvs_null (mpiprivc_ + 0)
#define fortran_argv_null (mpiprivc_ + 1)
