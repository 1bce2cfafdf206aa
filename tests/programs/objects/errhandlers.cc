// SPDX-License-Identifier: BSD-3-Clause
// Error handlers: predefined, user-made, inherited, called by hand.
#include "check.h"

#include <algorithm>

namespace {

int calls = 0;
int last_code = 0;
MPI_Comm last_comm = MPI_COMM_NULL;

void note_error(MPI_Comm* comm, int* code, ...) {
  ++calls;
  last_code = *code;
  last_comm = *comm;
}

int bad_send(MPI_Comm comm) {
  const int value = 1;
  return MPI_Send(&value, 1, MPI_INT, 1000000, 0, comm);
}

// The call still returns the code after the user's handler; MPICH 5.0 returns success.
void returns(int code, int error) {
  if (check::is_macadam()) CHECK_EQUAL(check::error_class(code), error);
}

void expect_call(int number, MPI_Comm comm, int error) {
  CHECK_EQUAL(calls, number);
  CHECK(last_comm == comm);
  CHECK_EQUAL(check::error_class(last_code), error);
}

void user_handler() {
  calls = 0;
  MPI_Comm comm, copy;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  MPI_Errhandler handler, got;
  OK(MPI_Comm_create_errhandler(note_error, &handler));
  OK(MPI_Comm_set_errhandler(comm, handler));
  OK(MPI_Comm_get_errhandler(comm, &got));
  CHECK(got == handler);
  OK(MPI_Errhandler_free(&got));
  CHECK(got == MPI_ERRHANDLER_NULL);
  OK(MPI_Errhandler_free(&handler)); // the communicator keeps it alive
  returns(bad_send(comm), MPI_ERR_RANK);
  expect_call(1, comm, MPI_ERR_RANK);
  OK(MPI_Comm_dup(comm, &copy)); // inherited
  returns(bad_send(copy), MPI_ERR_RANK);
  expect_call(2, copy, MPI_ERR_RANK);
  OK(MPI_Comm_call_errhandler(comm, MPI_ERR_TOPOLOGY));
  expect_call(3, comm, MPI_ERR_TOPOLOGY);
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free(&copy));
}

// Errors of calls without an object go to the handler of MPI_COMM_WORLD, until the program sets
// that of MPI_COMM_SELF. It must not have been set before.
void without_an_object() {
  if (!check::is_macadam()) return;
  calls = 0;
  MPI_Errhandler handler;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  OK(MPI_Comm_create_errhandler(note_error, &handler));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
  returns(MPI_Type_commit(&type), MPI_ERR_TYPE);
  CHECK_EQUAL(calls, 1);
  CHECK(last_comm == MPI_COMM_WORLD);
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  returns(MPI_Type_commit(&type), MPI_ERR_TYPE);
  CHECK_EQUAL(calls, 1);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  OK(MPI_Errhandler_free(&handler));
}

// An error in a request goes to the handler of the request's communicator.
void errors_of_requests() {
  calls = 0;
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  MPI_Errhandler handler;
  OK(MPI_Comm_create_errhandler(note_error, &handler));
  OK(MPI_Comm_set_errhandler(comm, handler));
  OK(MPI_Errhandler_free(&handler));
  int in[1], out[2] = {1, 2};
  MPI_Request requests[2];
  OK(MPI_Irecv(in, 1, MPI_INT, 0, 0, comm, &requests[0]));
  OK(MPI_Isend(out, 2, MPI_INT, 0, 0, comm, &requests[1]));
  returns(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(check::error_class(last_code), MPI_ERR_TRUNCATE);
  OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  OK(MPI_Comm_free(&comm));
}

void predefined() {
  MPI_Errhandler handler;
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
  CHECK(handler == MPI_ERRORS_ARE_FATAL);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_RANK, bad_send(MPI_COMM_WORLD));
  OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler));
  CHECK(handler == MPI_ERRORS_RETURN);
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

void texts() {
  for (int error = MPI_SUCCESS; error <= MPI_ERR_ABI; ++error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, its_class = -1;
    OK(MPI_Error_class(error, &its_class));
    CHECK_EQUAL(its_class, error);
    OK(MPI_Error_string(error, text, &length));
    CHECK(length > 0);
    CHECK_EQUAL(length, static_cast<int>(std::strlen(text)));
  }
}

void user_classes_and_codes() {
  int new_class = 0, code = 0, its_class = 0, length = 0, flag = 0;
  OK(MPI_Add_error_class(&new_class));
  CHECK(new_class > MPI_ERR_LASTCODE);
  OK(MPI_Add_error_code(new_class, &code));
  OK(MPI_Add_error_string(code, "the pump has stopped"));
  OK(MPI_Error_class(code, &its_class));
  CHECK_EQUAL(its_class, new_class);
  char text[MPI_MAX_ERROR_STRING];
  OK(MPI_Error_string(code, text, &length));
  CHECK_EQUAL(std::string(text), "the pump has stopped");
  int* last = nullptr;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag));
  CHECK(flag);
  if (check::is_macadam()) CHECK(*last >= code); // MPICH 5.0 counts in numbers of its own
  OK(MPI_Remove_error_string(code));
  OK(MPI_Remove_error_code(code));
  OK(MPI_Remove_error_class(new_class));
}

// Programs that add what they need and remove it again may do so for ever: it costs what the codes
// in use cost, not those that were.
void many_rounds() {
  std::vector<int> codes(192);
  int highest = 0;
  for (int round = 0; round < check::times(10000, 100); ++round) {
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const bool is_class = i % 3 == 0;
      OK(is_class ? MPI_Add_error_class(&codes[i])
                  : MPI_Add_error_code(codes[i - i % 3], &codes[i]));
      OK(MPI_Add_error_string(codes[i], "one of many"));
      if (round == 0) highest = std::max(highest, codes[i]);
      if (check::is_macadam()) CHECK(codes[i] <= highest);
    }
    for (std::size_t i = codes.size(); i-- > 0;) {
      int its_class = 0;
      OK(MPI_Error_class(codes[i], &its_class));
      CHECK_EQUAL(its_class, codes[i - i % 3]);
      OK(MPI_Remove_error_string(codes[i]));
      OK(i % 3 == 0 ? MPI_Remove_error_class(codes[i]) : MPI_Remove_error_code(codes[i]));
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"without_an_object", without_an_object},
                     {"user_handler", user_handler},
                     {"errors_of_requests", errors_of_requests},
                     {"predefined", predefined},
                     {"texts", texts},
                     {"user_classes_and_codes", user_classes_and_codes},
                     {"many_rounds", many_rounds}});
}
