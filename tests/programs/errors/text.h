// SPDX-License-Identifier: BSD-3-Clause
// What the text of an error is to say, and that nothing is lost by the wrong call.
#pragma once

#include "check.h"

namespace text {

// Remedies that many rows share.
inline constexpr const char* give_memory = "give the address of memory";
inline constexpr const char* give_data = "give their address, or count 0";
inline constexpr const char* give_valid = "give a valid";

struct Wrong {
  const char* function;
  const char* parameter;
  const char* found; // the value, as the text has it
  const char* remedy;
  int error;
  std::function<int()> call;
};

// A wrong call: its class is the standard's; the text names function, parameter with the value
// found, and what to do.
inline void refused(const Wrong& wrong) {
  const int code = wrong.call();
  const std::string text = check::error_text(code);
  const std::string where = std::string(wrong.function) + ", " + wrong.parameter + ": ";
  if (check::error_class(code) != wrong.error)
    check::fail(__FILE__, __LINE__,
                where + "returned " + text + ", expected " + check::error_text(wrong.error));
  const std::string value = std::string(wrong.parameter) + " is " + wrong.found;
  // With what follows: MPI_Send must not pass for MPI_Send_init.
  for (const std::string& needed :
       {wrong.function + std::string(":"), value, std::string(wrong.remedy)})
    if (text.find(needed) == std::string::npos)
      check::fail(__FILE__, __LINE__, where + text + " does not say '" + needed + "'");
}

// Errors return, and after all wrong calls a message and a collective pass.
inline void return_errors(MPI_Comm comm) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
}
inline void nothing_lost(MPI_Comm comm) {
  int got = -1, sum = 0, one = 1;
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  OK(MPI_Sendrecv(&check::rank, 1, MPI_INT, to, 5, &got, 1, MPI_INT, from, 5, comm,
                  MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, from);
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQUAL(sum, check::size);
}

} // namespace text
