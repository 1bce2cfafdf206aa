// SPDX-License-Identifier: BSD-3-Clause
// A C++ exception that leaves a callback ends the program, and what is said names the callback and
// the call. Without an argument: runs itself once for each kind of callback.
#include "check.h"

#include <array>
#include <stdexcept>
#include <sys/wait.h>

namespace {

[[noreturn]] void out_of_paint() {
  throw std::runtime_error("out of paint");
}

void on_error(MPI_Comm*, int*, ...) {
  out_of_paint();
}
int on_copy(MPI_Comm, int, void*, void*, void*, int*) {
  out_of_paint();
}
int on_delete(MPI_Comm, int, void*, void*) {
  out_of_paint();
}
void reduce(void*, void*, int*, MPI_Datatype*) {
  throw 42; // no std::exception
}
int on_query(void*, MPI_Status*) {
  out_of_paint();
}
int on_free(void*) {
  out_of_paint();
}
int on_cancel(void*, int) {
  out_of_paint();
}
int no_query(void*, MPI_Status*) {
  return MPI_SUCCESS;
}

void handler() {
  MPI_Errhandler made;
  OK(MPI_Comm_create_errhandler(on_error, &made));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, made));
  MPI_Send(nullptr, 0, MPI_INT, 17, 0, MPI_COMM_WORLD);
}
void attribute(MPI_Comm_copy_attr_function* copy, MPI_Comm_delete_attr_function* remove) {
  int key = 0;
  MPI_Comm comm = MPI_COMM_NULL, dup = MPI_COMM_NULL;
  OK(MPI_Comm_create_keyval(copy, remove, &key, nullptr));
  OK(MPI_Comm_split(MPI_COMM_SELF, 0, 0, &comm));
  OK(MPI_Comm_set_attr(comm, key, nullptr));
  MPI_Comm_dup(comm, &dup);
  MPI_Comm_free(&comm);
}
void operation() {
  MPI_Op op;
  OK(MPI_Op_create(reduce, 1, &op));
  int in = 1, inout = 2;
  MPI_Reduce_local(&in, &inout, 1, MPI_INT, op);
}
void request(MPI_Grequest_query_function* query, MPI_Grequest_free_function* free_fn,
             MPI_Grequest_cancel_function* cancel) {
  MPI_Request made;
  OK(MPI_Grequest_start(query, free_fn, cancel, nullptr, &made));
  if (cancel != nullptr) MPI_Cancel(&made);
  OK(MPI_Grequest_complete(made));
  MPI_Wait(&made, MPI_STATUS_IGNORE);
}

struct Case {
  const char* name;
  std::function<void()> run;
  const char* callback;
  const char* what;
  const char* call;
};
const std::vector<Case> cases = {
    {"handler", handler, "an error handler", "out of paint", "MPI_Send"},
    {"copy", [] { attribute(on_copy, MPI_COMM_NULL_DELETE_FN); }, "the copy callback",
     "out of paint", "MPI_Comm_dup"},
    {"delete", [] { attribute(MPI_COMM_NULL_COPY_FN, on_delete); }, "the delete callback",
     "out of paint", "MPI_Comm_free"},
    {"operation", operation, "a reduction operation", "exception", "MPI_Reduce_local"},
    {"query", [] { request(on_query, nullptr, nullptr); }, "the query callback", "out of paint",
     "MPI_Wait"},
    {"free", [] { request(no_query, on_free, nullptr); }, "the free callback", "out of paint",
     "MPI_Wait"},
    {"cancel", [] { request(no_query, nullptr, on_cancel); }, "the cancel callback", "out of paint",
     "MPI_Cancel"}};

void run_alone(const char* program, const Case& each) {
  check::part = each.name;
  const std::string command = std::string(program) + " " + each.name + " 2>&1";
  std::FILE* const output = popen(command.c_str(), "r");
  CHECK(output != nullptr);
  std::string text;
  std::array<char, 512> some;
  while (std::fgets(some.data(), some.size(), output) != nullptr)
    text += some.data();
  const int status = pclose(output);
  for (const char* part : {each.callback, each.what, each.call}) {
    if (text.find(part) == std::string::npos || !WIFEXITED(status) || WEXITSTATUS(status) != 1) {
      std::fprintf(stderr, "%s: status %#x, needed exit with 1; '%s' is not in:\n%s", each.name,
                   static_cast<unsigned>(status), part, text.c_str());
      std::exit(1);
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  for (const Case& each : cases) {
    if (argc < 2) {
      run_alone(argv[0], each);
    } else if (std::strcmp(argv[1], each.name) == 0) {
      MPI_Init(&argc, &argv);
      each.run();
      MPI_Finalize();
    }
  }
  return 0;
}
