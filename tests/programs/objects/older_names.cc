// SPDX-License-Identifier: BSD-3-Clause
// Functions that MPI has under newer names: attributes and handles in other languages as mpi.h has
// them, and those that were removed, which are in the library only.
#include "check.h"

extern "C" {
int MPI_Address(void*, MPI_Aint*);
int MPI_Errhandler_create(MPI_Comm_errhandler_function*, MPI_Errhandler*);
int MPI_Errhandler_get(MPI_Comm, MPI_Errhandler*);
int MPI_Errhandler_set(MPI_Comm, MPI_Errhandler);
int MPI_Type_extent(MPI_Datatype, MPI_Aint*);
int MPI_Type_hindexed(int, int*, MPI_Aint*, MPI_Datatype, MPI_Datatype*);
int MPI_Type_hvector(int, int, MPI_Aint, MPI_Datatype, MPI_Datatype*);
int MPI_Type_lb(MPI_Datatype, MPI_Aint*);
int MPI_Type_struct(int, int*, MPI_Aint*, MPI_Datatype*, MPI_Datatype*);
int MPI_Type_ub(MPI_Datatype, MPI_Aint*);
}

namespace {

int deleted = 0;

int on_delete(MPI_Comm, int, void*, void*) {
  ++deleted;
  return MPI_SUCCESS;
}

void attributes() {
  int key = MPI_KEYVAL_INVALID, flag = 0, value = 5;
  int* found = nullptr;
  MPI_Comm comm, copy;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Keyval_create(MPI_DUP_FN, on_delete, &key, nullptr));
  OK(MPI_Attr_get(comm, key, &found, &flag));
  CHECK(!flag);
  OK(MPI_Attr_put(comm, key, &value));
  OK(MPI_Comm_dup(comm, &copy));
  OK(MPI_Comm_get_attr(copy, key, &found, &flag));
  CHECK(flag && found == &value);
  OK(MPI_Attr_delete(copy, key));
  CHECK_EQUAL(deleted, 1);
  OK(MPI_Attr_get(copy, key, &found, &flag));
  CHECK(!flag);
  OK(MPI_Comm_free(&copy));
  OK(MPI_Comm_free(&comm));
  CHECK_EQUAL(deleted, 2);
  OK(MPI_Keyval_free(&key));
  CHECK_EQUAL(key, MPI_KEYVAL_INVALID);
  OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag));
  CHECK(flag && *found >= 32767);
}

void languages() {
#ifdef MPI_Comm_f2c // the ABI leaves them to who has a Fortran compiler
  const MPI_Fint number = MPI_Comm_c2f(MPI_COMM_WORLD);
  CHECK(MPI_Comm_f2c(number) == MPI_COMM_WORLD);
  CHECK(PMPI_Type_f2c(PMPI_Type_c2f(MPI_DOUBLE)) == MPI_DOUBLE);
  MPI_Status status, back;
  MPI_Fint fortran[MPI_F_STATUS_SIZE];
  const char byte = 1;
  char received = 0;
  OK(MPI_Sendrecv(&byte, 1, MPI_CHAR, check::rank, 7, &received, 1, MPI_CHAR, check::rank, 7,
                  MPI_COMM_WORLD, &status));
  OK(MPI_Status_c2f(&status, fortran));
  CHECK_EQUAL(fortran[MPI_F_SOURCE], check::rank);
  CHECK_EQUAL(fortran[MPI_F_TAG], 7);
  OK(MPI_Status_f2c(fortran, &back));
  int count = 0;
  OK(MPI_Get_count(&back, MPI_CHAR, &count));
  CHECK_EQUAL(count, 1);
#endif
}

int handled = 0;
void count_error(MPI_Comm*, int*, ...) {
  ++handled;
}

void removed() {
  struct Pair {
    int number;
    double real;
  } pair = {};
  MPI_Aint start = 0, extent = 0, lb = -1, ub = 0, places[2];
  OK(MPI_Address(&pair, &start));
  OK(MPI_Address(&pair.number, &places[0]));
  OK(MPI_Address(&pair.real, &places[1]));
  for (MPI_Aint& place : places)
    place -= start;
  int lengths[2] = {1, 1};
  MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, type, vector, indexed;
  OK(MPI_Type_struct(2, lengths, places, parts, &type));
  OK(MPI_Type_extent(type, &extent));
  CHECK_EQUAL(extent, static_cast<MPI_Aint>(sizeof pair));
  OK(MPI_Type_hvector(2, 1, 64, type, &vector));
  OK(MPI_Type_lb(vector, &lb));
  OK(MPI_Type_ub(vector, &ub));
  CHECK_EQUAL(lb, 0);
  CHECK_EQUAL(ub, 64 + extent);
  MPI_Aint at[2] = {16, 100};
  OK(MPI_Type_hindexed(2, lengths, at, MPI_INT, &indexed));
  OK(MPI_Type_lb(indexed, &lb));
  OK(MPI_Type_ub(indexed, &ub));
  CHECK_EQUAL(lb, 16);
  CHECK_EQUAL(ub, 104);
  for (MPI_Datatype* made : {&type, &vector, &indexed})
    OK(MPI_Type_free(made));

  MPI_Comm comm;
  MPI_Errhandler handler, found;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Errhandler_create(count_error, &handler));
  OK(MPI_Errhandler_set(comm, handler));
  OK(MPI_Errhandler_get(comm, &found));
  CHECK(found == handler);
  FAILS(MPI_ERR_RANK, MPI_Send(&pair, 0, MPI_BYTE, 5, 0, comm));
  CHECK_EQUAL(handled, 1);
  OK(MPI_Errhandler_free(&found));
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Comm_free(&comm));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"attributes", attributes}, {"languages", languages}, {"removed", removed}});
}
