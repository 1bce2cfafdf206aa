// SPDX-License-Identifier: BSD-3-Clause
// A function that is not written yet says so by name, through the error handler, and harms
// nothing: the program can go on without it.
#include "check.h"

namespace {

void says_so_by_name() {
  if (!check::is_macadam()) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  char port[MPI_MAX_PORT_NAME] = "";
  const int code = MPI_Open_port(MPI_INFO_NULL, port); // dynamic processes come last
  if (code != MPI_SUCCESS) {
    FAILS(MPI_ERR_UNSUPPORTED_OPERATION, code);
    CHECK(check::error_text(code).find("MPI_Open_port") != std::string::npos);
  }
  int sum = 0;
  OK(MPI_Allreduce(&check::size, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(sum, check::size * check::size);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"says_so_by_name", says_so_by_name}});
}
