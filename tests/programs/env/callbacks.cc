// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE in a program with a lock of its own, as Python's interpreter has one: one
// thread calls MPI with that lock, while in the other MPI calls back, and the callback takes it.
#include "threads.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace {

constexpr int rounds = 2000;
std::mutex interpreter;
int deleted, copied, queried, freed, handled; // under it
int waited;
std::atomic<long> calls_of_other;

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

// While it runs the other thread gets on with its calls of MPI.
void wait_for_other() {
  const long before = calls_of_other;
  for (int ms = 0; calls_of_other < before + 2; ++ms) {
    CHECK(ms < 10'000);
    check::sleep_ms(1);
  }
  ++waited;
}

void wait_in_comm(MPI_Comm*, int*, ...) {
  wait_for_other();
}
void wait_in_session(MPI_Session*, int*, ...) {
  wait_for_other();
}
void wait_in_window(MPI_Win*, int*, ...) {
  wait_for_other();
}
void wait_in_file(MPI_File*, int*, ...) {
  wait_for_other();
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

// Error handlers that the program calls itself.
void called_by_the_program() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Errhandler handlers[4];
  int memory = 0;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
  OK(MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
  OK(MPI_Comm_create_errhandler(wait_in_comm, &handlers[0]));
  OK(MPI_Session_create_errhandler(wait_in_session, &handlers[1]));
  OK(MPI_Win_create_errhandler(wait_in_window, &handlers[2]));
  OK(MPI_File_create_errhandler(wait_in_file, &handlers[3]));
  OK(MPI_Comm_set_errhandler(comm, handlers[0]));
  OK(MPI_Session_set_errhandler(session, handlers[1]));
  OK(MPI_Win_set_errhandler(win, handlers[2]));
  MPI_File file = MPI_FILE_NULL;
  const std::string path = "/tmp/macadam-callbacks-" + std::to_string(getpid());
  OK(MPI_File_open(MPI_COMM_SELF, path.c_str(),
                   MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                   &file));
  OK(MPI_File_set_errhandler(file, handlers[3]));
  OK(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER));
  OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
  OK(MPI_File_call_errhandler(file, MPI_ERR_OTHER));
  CHECK_EQUAL(waited, 4);
  OK(MPI_File_close(&file));
  OK(MPI_Win_free(&win));
  OK(MPI_Session_finalize(&session));
  OK(MPI_Comm_free(&comm));
  for (MPI_Errhandler& handler : handlers)
    OK(MPI_Errhandler_free(&handler));
}

// Two threads at one attribute, the first of which is still in the delete callback of its value
// when the other comes.
int values[3];
std::atomic<int> deletions[3];
std::atomic<bool> in_callback, other_is_through;

int remove_slowly(MPI_Comm, int, void* value, void*) {
  const auto which = static_cast<int*>(value) - &values[0];
  if (deletions[which]++ == 0 && which == 0) {
    in_callback = true;
    for (int ms = 0; ms < 2000 && !other_is_through; ++ms)
      check::sleep_ms(1);
  }
  return MPI_SUCCESS;
}

void meet_in_callback(int key, const std::function<void()>& first,
                      const std::function<void()>& second) {
  for (auto& times : deletions)
    times = 0;
  in_callback = other_is_through = false;
  OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &values[0]));
  std::thread other([&] {
    while (!in_callback)
      check::sleep_ms(1);
    second();
    other_is_through = true;
  });
  first();
  other.join();
}

void each_value_is_deleted_once() {
  int key = MPI_KEYVAL_INVALID;
  OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, remove_slowly, &key, nullptr));
  meet_in_callback(
      key, [&] { OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &values[1])); },
      [&] { OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &values[2])); });
  CHECK_EQUAL(deletions[0] + deletions[1] + deletions[2], 2);
  OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key));
  for (const auto& times : deletions)
    CHECK_EQUAL(times.load(), 1);

  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  int code = MPI_SUCCESS;
  meet_in_callback(
      key, [&] { OK(MPI_Comm_delete_attr(MPI_COMM_SELF, key)); },
      [&] { code = MPI_Comm_delete_attr(MPI_COMM_SELF, key); });
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
  CHECK_EQUAL(deletions[0].load(), 1);
  if (check::is_macadam()) CHECK_EQUAL(check::error_class(code), MPI_ERR_KEYVAL);
  OK(MPI_Comm_free_keyval(&key));
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
      ++calls_of_other;
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
                           {"errors", [] { beside_calls(errors); }},
                           {"called_by_the_program", [] { beside_calls(called_by_the_program); }},
                           {"each_value_is_deleted_once", each_value_is_deleted_once}});
}
