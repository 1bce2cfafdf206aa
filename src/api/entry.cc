// SPDX-License-Identifier: BSD-3-Clause
#include "api/entry.h"

#include <cxxabi.h>

#include <new>

namespace macadam::api {

using base::Error;

namespace {

// The exception being handled, as an Error.
Error current_error() {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "out of memory inside the library"};
  } catch (const abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (const std::exception& error) {
    return {MPI_ERR_INTERN, std::string("internal error: ") + error.what()};
  }
}

}  // namespace

int failed(mpi::Process& self, const char* function, const mpi::ErrorSource& source) {
  return mpi::raise(self, function, source, current_error());
}

int tool_failed() {
  const Error error = current_error();
  switch (error.error_class) {
    case MPI_ERR_UNSUPPORTED_OPERATION: return MPI_T_ERR_NOT_SUPPORTED;
    case MPI_ERR_NO_MEM: return MPI_T_ERR_MEMORY;
    default: break;
  }
  const bool tool_code = error.error_class >= MPI_T_ERR_CANNOT_INIT &&
                         error.error_class <= MPI_T_ERR_PVAR_NO_ATOMIC;
  return tool_code ? error.error_class : MPI_T_ERR_INVALID;
}

void not_written() {
  base::fail(MPI_ERR_UNSUPPORTED_OPERATION,
             "not implemented in this version of Macadam; `macadam info --api` lists what is");
}

}  // namespace macadam::api
