// SPDX-License-Identifier: BSD-3-Clause
// Errors and the objects that need no job, from several threads: errors that are raised at once
// each keep a whole text, and what MPI makes thread-safe at every level is so when the program
// asked for less than MPI_THREAD_MULTIPLE (argument `funneled`) and the main thread sends messages
// meanwhile.
#include "threads.h"

#include <atomic>

namespace {

bool funneled = false;

void ignore_error(MPI_Comm*, int*, ...) {}

void info_and_errors(int thread) {
  const std::string name = "thread " + std::to_string(thread);
  for (int round = 0; round < check::times(3000, 100); ++round) {
    MPI_Info info, copy;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "who", name.c_str()));
    OK(MPI_Info_dup(info, &copy));
    char value[32];
    int length = sizeof value, flag = 0;
    OK(MPI_Info_get_string(copy, "who", &length, value, &flag));
    CHECK(flag && name == value);
    CHECK(MPI_Info_fromint(MPI_Info_toint(info)) == info);
    OK(MPI_Info_free(&info));
    OK(MPI_Info_free(&copy));

    int error_class = 0, code = 0, found = 0;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&error_class));
    OK(MPI_Add_error_code(error_class, &code));
    OK(MPI_Add_error_string(code, name.c_str()));
    OK(MPI_Error_string(code, text, &length));
    CHECK_EQUAL(std::string(text), name);
    OK(MPI_Error_class(code, &found));
    CHECK_EQUAL(found, error_class);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(error_class));
    OK(MPI_Error_string(MPI_ERR_RANK, text, &length)); // as it is being written by others
    CHECK(std::string(text).find("MPI_ERR_RANK") == 0);
  }
}

// Messages to oneself, errors, error handlers and info objects of communicators.
void main_thread(const std::atomic<bool>& stop) {
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  while (!stop.load()) {
    int out = 5, in = 0;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE));
    FAILS(MPI_ERR_RANK, MPI_Send(&out, 1, MPI_INT, 1 << 20, 0, comm));
    MPI_Info info;
    OK(MPI_Comm_get_info(comm, &info));
    OK(MPI_Info_free(&info));
    MPI_Errhandler handler;
    OK(MPI_Comm_create_errhandler(ignore_error, &handler));
    OK(MPI_Errhandler_free(&handler));
  }
  OK(MPI_Comm_free(&comm));
}

void objects_that_need_no_job() {
  if (!check::is_macadam()) return;
  std::atomic<bool> stop = false;
  std::thread others([&] {
    check::in_threads(info_and_errors);
    stop = true;
  });
  main_thread(stop);
  others.join();
}

void errors_at_once() {
  if (funneled) return;
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check::in_threads([](int thread) {
    for (int round = 0; round < check::times(20000, 100); ++round) {
      char byte = 0, text[MPI_MAX_ERROR_STRING];
      int length = 0;
      const int expected = thread % 2 == 0 ? MPI_ERR_RANK : MPI_ERR_TAG;
      const int code = thread % 2 == 0 ? MPI_Send(&byte, 1, MPI_CHAR, 1 << 20, 0, MPI_COMM_WORLD)
                                       : MPI_Send(&byte, 1, MPI_CHAR, 0, -77, MPI_COMM_WORLD);
      FAILS(expected, code);
      OK(MPI_Error_string(code, text, &length));
      CHECK_EQUAL(static_cast<std::size_t>(length), std::strlen(text));
    }
  });
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

// A handler that one thread sets and frees while the errors of another call it.
void handlers_that_change() {
  if (funneled) return;
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  check::in_threads([&](int thread) {
    for (int round = 0; round < check::times(3000, 100); ++round) {
      if (thread % 2 == 0) {
        char byte = 0;
        FAILS(MPI_ERR_RANK, MPI_Send(&byte, 1, MPI_CHAR, 5, 0, comm));
      } else {
        MPI_Errhandler handler;
        OK(MPI_Comm_create_errhandler(ignore_error, &handler));
        OK(MPI_Comm_set_errhandler(comm, handler));
        OK(MPI_Errhandler_free(&handler));
      }
    }
  });
  OK(MPI_Comm_free(&comm));
}

} // namespace

int main(int argc, char** argv) {
  funneled = argc > 1;
  int provided = 0;
  OK(MPI_Init_thread(&argc, &argv, funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE,
                     &provided));
  return check::run_parts(1, argv,
                          {{"objects_that_need_no_job", objects_that_need_no_job},
                           {"errors_at_once", errors_at_once},
                           {"handlers_that_change", handlers_that_change}});
}
