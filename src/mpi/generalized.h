// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "mpi/request.h"

namespace macadam::mpi {

// An operation that the program itself carries out (MPI_Grequest_start). Its callbacks may call
// MPI.
struct Generalized : LayerRequest {
  Generalized(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
              MPI_Grequest_cancel_function* cancel_fn, void* state);

  MPI_Grequest_query_function* query;
  MPI_Grequest_free_function* free;
  MPI_Grequest_cancel_function* cancel;
  void* extra_state;
};

// Fills a status (or MPI_STATUS_IGNORE) from the query callback; returns the callback's error code.
int query(Generalized& request, MPI_Status* status);
// Calls the free callback and takes the memory back; returns the callback's error code.
int retire(Process& self, Generalized& request);

} // namespace macadam::mpi
