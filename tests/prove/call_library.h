// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "mpi.h"
#include "prove/allocation.h"

#include <new>

namespace macadam::prove {

// A call of the library. False if there was no memory for it.
template <class Call>
bool call_library(Call&& call) {
  const InLibrary library;
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
  } catch (const base::Error& error) {
    if (error.error_class != MPI_ERR_NO_MEM) throw;
  }
  return false;
}

} // namespace macadam::prove
