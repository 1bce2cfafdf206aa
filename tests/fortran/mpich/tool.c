/* SPDX-License-Identifier: BSD-3-Clause */
/* C in MPICH's ABI: a tool that counts barriers, whatever language they come from, and what C knows
   of Fortran. */
struct status {
  int count_low, count_high_and_cancelled, source, tag, error;
};
extern int PMPI_Barrier(int comm);
extern int MPI_Comm_get_attr(int comm, int keyval, void* value, int* found);
extern struct status* MPI_F_STATUS_IGNORE;
extern struct status* MPI_F_STATUSES_IGNORE;

static int barriers = 0;

int MPI_Barrier(int comm);
int MPI_Barrier(int comm) {
  ++barriers;
  return PMPI_Barrier(comm);
}

/* For the Fortran program. */
int barriers_seen_(void);
int barriers_seen_(void) {
  return barriers;
}

int are_ignored_(const int* status, const int* statuses);
int are_ignored_(const int* status, const int* statuses) {
  return (const int*)MPI_F_STATUS_IGNORE == status && (const int*)MPI_F_STATUSES_IGNORE == statuses;
}

/* An attribute set in Fortran is the address of an integer in C. */
long attribute_in_c_(const int* comm, const int* keyval);
long attribute_in_c_(const int* comm, const int* keyval) {
  long* value = 0;
  int found = 0;
  MPI_Comm_get_attr(*comm, *keyval, &value, &found);
  return found ? *value : 0;
}
