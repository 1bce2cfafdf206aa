// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE in a program with a lock of its own, as Python's interpreter has one: one
// thread calls MPI with that lock, while in the other MPI calls back, and the callback takes it.
#include "threads.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace {

constexpr int rounds = 2000;
std::mutex interpreter;
int deleted, copied, queried, freed, handled; // under it

int copy(MPI_Comm, int, void*, void* value, void* result, int* flag) {
  const std::scoped_lock held(interpreter);
  ++copied;
  *static_cast<void**>(result) = value;
  *flag = 1;
  return MPI_SUCCESS;
}

int remove(MPI_Comm, int, void*, void*) {
  const std::scoped_lock held(interpreter);
  ++deleted;
  return MPI_SUCCESS;
}

int query(void*, MPI_Status* status) {
  const std::scoped_lock held(interpreter);
  ++queried;
  MPI_Status_set_elements(status, MPI_INT, 0);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}

int release(void*) {
  const std::scoped_lock held(interpreter);
  ++freed;
  return MPI_SUCCESS;
}

int cancel(void*, int) {
  const std::scoped_lock held(interpreter);
  return MPI_SUCCESS;
}

void handle(MPI_Comm*, int*, ...) {
  const std::scoped_lock held(interpreter);
  ++handled;
}

void attributes() {
  int key = MPI_KEYVAL_INVALID;
  OK(MPI_Comm_create_keyval(copy, remove, &key, nullptr));
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key));
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm dup = MPI_COMM_NULL;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
    OK(MPI_Comm_free(&dup));
  }
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
  OK(MPI_Comm_free_keyval(&key));
  CHECK_EQUAL(copied, rounds);
  CHECK_EQUAL(deleted, rounds + 1);
}

void requests() {
  for (int i = 0; i < rounds; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    OK(MPI_Grequest_start(query, release, cancel, nullptr, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  }
  CHECK_EQUAL(queried, rounds);
  CHECK_EQUAL(freed, rounds);
}

void errors() {
  MPI_Comm dup = MPI_COMM_NULL;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &dup));
  OK(MPI_Comm_create_errhandler(handle, &handler));
  OK(MPI_Comm_set_errhandler(dup, handler));
  for (int i = 0; i < rounds; ++i)
    CHECK(MPI_Send(nullptr, 0, MPI_INT, 1, 0, dup) != MPI_SUCCESS); // there is no rank 1
  CHECK_EQUAL(handled, rounds);
  OK(MPI_Errhandler_free(&handler));
  OK(MPI_Comm_free(&dup));
}

// While another thread calls MPI with the lock.
void beside_calls(void (*body)()) {
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over) {
      const std::scoped_lock held(interpreter);
      void* value = nullptr;
      int flag = 0;
      OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &flag));
      CHECK_EQUAL(flag, 1);
    }
  });
  body();
  over = true;
  other.join();
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(argc, argv,
                          {{"attributes", [] { beside_calls(attributes); }},
                           {"requests", [] { beside_calls(requests); }},
                           {"errors", [] { beside_calls(errors); }}});
}
