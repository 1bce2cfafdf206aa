// SPDX-License-Identifier: BSD-3-Clause
// A function that is not written yet says so by name, through the error handler, and harms
// nothing: the program can go on without it.
#include "check.h"

namespace {

void says_so_by_name() {
  if (!check::is_macadam()) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  const int code = MPI_File_delete("/nonexistent/file", MPI_INFO_NULL); // files come last
  if (check::error_class(code) == MPI_ERR_UNSUPPORTED_OPERATION)
    CHECK(check::error_text(code).find("MPI_File_delete") != std::string::npos);
  int sum = 0;
  OK(MPI_Allreduce(&check::size, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(sum, check::size * check::size);
}

// A program that does not look at the error code finds a handle that every function refuses.
void gives_null_handles() {
  if (!check::is_macadam()) return;
  MPI_File file = reinterpret_cast<MPI_File>(&check::rank);
  const int opened =
      MPI_File_open(MPI_COMM_SELF, "/nonexistent/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  if (opened == MPI_ERR_UNSUPPORTED_OPERATION) CHECK(file == MPI_FILE_NULL);
  MPI_Request request = reinterpret_cast<MPI_Request>(&check::rank);
  const int started = MPI_File_iread(file, nullptr, 0, MPI_BYTE, &request);
  if (started == MPI_ERR_UNSUPPORTED_OPERATION) CHECK(request == MPI_REQUEST_NULL);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv,
      {{"says_so_by_name", says_so_by_name}, {"gives_null_handles", gives_null_handles}});
}
