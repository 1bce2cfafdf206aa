// SPDX-License-Identifier: BSD-3-Clause
// Functions of MPI 1 that the standard has under other names today.
#include "mpi/calls.h"

namespace macadam::mpi {

void attr_put(Process& self, Communicator& comm, int keyval, void* value) {
  comm_set_attr(self, comm, keyval, value);
}
void attr_get(Process& self, Communicator& comm, int keyval, void* value, int* flag) {
  comm_get_attr(self, comm, keyval, value, flag);
}
void attr_delete(Process& self, Communicator& comm, int keyval) {
  comm_delete_attr(self, comm, keyval);
}
void keyval_create(Process& self, MPI_Copy_function* copy, MPI_Delete_function* delete_fn,
                   int* keyval, void* extra_state) {
  comm_create_keyval(self, copy, delete_fn, keyval, extra_state);
}
void keyval_free(Process& self, int* keyval) {
  comm_free_keyval(self, keyval);
}

void errhandler_create(Process& self, MPI_Comm_errhandler_function* function,
                       MPI_Errhandler* errhandler) {
  comm_create_errhandler(self, function, errhandler);
}
void errhandler_get(Process& self, Communicator& comm, MPI_Errhandler* errhandler) {
  comm_get_errhandler(self, comm, errhandler);
}
void errhandler_set(Process& self, Communicator& comm, Errhandler& errhandler) {
  comm_set_errhandler(self, comm, errhandler);
}

void address(Library& self, const void* location, MPI_Aint* address) {
  get_address(self, location, address);
}
void type_hvector(Library& self, MPI_Count count, MPI_Count blocklength, MPI_Count stride,
                  const datatype::Type& oldtype, MPI_Datatype* newtype) {
  type_create_hvector(self, count, blocklength, stride, oldtype, newtype, false);
}
void type_hindexed(Library& self, MPI_Count count, CountArray lengths, CountArray displacements,
                   const datatype::Type& oldtype, MPI_Datatype* newtype) {
  type_create_hindexed(self, count, lengths, displacements, oldtype, newtype, false);
}
void type_struct(Library& self, MPI_Count count, CountArray lengths, CountArray displacements,
                 const MPI_Datatype types[], MPI_Datatype* newtype) {
  type_create_struct(self, count, lengths, displacements, types, newtype, false);
}
void type_lb(Library&, const datatype::Type& type, MPI_Aint* displacement) {
  *displacement = type.lb();
}
void type_ub(Library&, const datatype::Type& type, MPI_Aint* displacement) {
  *displacement = type.ub();
}
void type_extent(Library&, const datatype::Type& type, MPI_Aint* extent) {
  *extent = type.extent();
}

} // namespace macadam::mpi
