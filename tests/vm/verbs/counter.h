// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "check.h"

// One of the library's counters (`macadam info` lists them). MPI_T is initialised. 0 if the library
// has none of that name.
inline unsigned long long counter(const char* name) {
  int index = -1, count = 0;
  MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
  MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
  unsigned long long value = 0;
  if (MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index) != MPI_SUCCESS &&
      MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_HIGHWATERMARK, &index) != MPI_SUCCESS)
    return 0;
  OK(MPI_T_pvar_session_create(&session));
  OK(MPI_T_pvar_handle_alloc(session, index, nullptr, &handle, &count));
  OK(MPI_T_pvar_read(session, handle, &value));
  OK(MPI_T_pvar_handle_free(session, &handle));
  OK(MPI_T_pvar_session_free(&session));
  return value;
}
