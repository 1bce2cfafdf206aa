// SPDX-License-Identifier: BSD-3-Clause
// Generalized requests: the callbacks are called when and as often as the standard says.
#include "threads.h"

namespace {

struct Calls {
  int query = 0, free = 0, cancel = 0, cancel_complete = -1;
  int query_returns = MPI_SUCCESS, free_returns = MPI_SUCCESS;
};

int on_query(void* state, MPI_Status* status) {
  static_cast<Calls*>(state)->query++;
  MPI_Status_set_elements(status, MPI_INT, 42);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 7;
  status->MPI_TAG = 8;
  return static_cast<Calls*>(state)->query_returns;
}

int on_free(void* state) {
  static_cast<Calls*>(state)->free++;
  return static_cast<Calls*>(state)->free_returns;
}

int on_cancel(void* state, int complete) {
  static_cast<Calls*>(state)->cancel++;
  static_cast<Calls*>(state)->cancel_complete = complete;
  return MPI_SUCCESS;
}

MPI_Request start(Calls& calls) {
  MPI_Request request;
  OK(MPI_Grequest_start(on_query, on_free, on_cancel, &calls, &request));
  return request;
}

void expect_status(const MPI_Status& status) {
  int count = -1;
  OK(MPI_Get_count(&status, MPI_INT, &count));
  CHECK_EQUAL(count, 42);
  CHECK_EQUAL(status.MPI_SOURCE, 7);
  CHECK_EQUAL(status.MPI_TAG, 8);
}

void complete_then_wait() {
  Calls calls;
  MPI_Request request = start(calls);
  int flag = 1;
  MPI_Status status;
  OK(MPI_Test(&request, &flag, &status));
  CHECK(!flag);
  CHECK_EQUAL(calls.query, 0);
  OK(MPI_Grequest_complete(request));
  OK(MPI_Wait(&request, &status));
  expect_status(status);
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQUAL(calls.query, 1);
  CHECK_EQUAL(calls.free, 1);
  CHECK_EQUAL(calls.cancel, 0);
}

void free_then_complete() {
  Calls calls;
  MPI_Request request = start(calls), copy = request;
  OK(MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  CHECK_EQUAL(calls.free, 0); // only when it is complete, too
  OK(MPI_Grequest_complete(copy));
  CHECK_EQUAL(calls.free, 1);
}

void cancel() {
  Calls calls;
  MPI_Request request = start(calls);
  OK(MPI_Cancel(&request));
  CHECK_EQUAL(calls.cancel, 1);
  CHECK_EQUAL(calls.cancel_complete, 0);
  OK(MPI_Grequest_complete(request));
  OK(MPI_Cancel(&request));
  CHECK_EQUAL(calls.cancel, 2);
  CHECK_EQUAL(calls.cancel_complete, 1);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK_EQUAL(calls.free, 1);
}

void asked_without_statuses() {
  Calls calls;
  MPI_Request request = start(calls);
  OK(MPI_Grequest_complete(request));
  int flag = 0;
  OK(MPI_Request_get_status_all(1, &request, &flag, MPI_STATUSES_IGNORE));
  CHECK(flag);
  CHECK(calls.query > 0);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

// A list without errors leaves MPI_ERROR as it was.
void statuses_of_a_list() {
  if (!check::is_macadam()) return; // MPICH 5.0 writes it
  Calls calls;
  MPI_Request requests[2] = {start(calls), start(calls)};
  MPI_Status statuses[2];
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Grequest_complete(requests[round]));
    statuses[round].MPI_ERROR = 77;
  }
  int count = 0, index = -1;
  OK(MPI_Testsome(1, &requests[1], &count, &index, &statuses[1]));
  OK(MPI_Waitall(1, requests, statuses));
  for (const MPI_Status& status : statuses) {
    expect_status(status);
    CHECK_EQUAL(status.MPI_ERROR, 77);
  }
}

// The error of a callback is that of the call that invoked it, and the last one's if both fail.
void errors_of_callbacks() {
  if (!check::is_macadam()) return; // MPICH 5.0 keeps the request of a failed MPI_Request_free
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  Calls calls;
  calls.query_returns = MPI_ERR_FILE;
  calls.free_returns = MPI_ERR_IO;
  MPI_Request request = start(calls), copy = request;
  OK(MPI_Grequest_complete(request));
  FAILS(MPI_ERR_IO, MPI_Request_free(&request));
  CHECK(request == MPI_REQUEST_NULL);
  copy = request = start(calls);
  OK(MPI_Request_free(&request));
  FAILS(MPI_ERR_IO, MPI_Grequest_complete(copy));
  CHECK_EQUAL(calls.free, 2);
  request = start(calls);
  OK(MPI_Grequest_complete(request));
  FAILS(MPI_ERR_IO, MPI_Wait(&request, MPI_STATUS_IGNORE));
  request = start(calls);
  OK(MPI_Grequest_complete(request));
  MPI_Status status;
  FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(1, &request, &status));
  FAILS(MPI_ERR_IO, status.MPI_ERROR);
  CHECK(request == MPI_REQUEST_NULL);
}

// Another thread completes it while this one waits; with a message at the same time.
void completed_by_a_thread() {
  Calls calls;
  int in = 0, out = 5;
  MPI_Request requests[3] = {start(calls), MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  OK(MPI_Irecv(&in, 1, MPI_INT, check::rank, 0, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Isend(&out, 1, MPI_INT, check::rank, 0, MPI_COMM_WORLD, &requests[2]));
  std::thread helper([request = requests[0]] {
    check::sleep_ms(20);
    MPI_Grequest_complete(request);
  });
  MPI_Status statuses[3];
  OK(MPI_Waitall(3, requests, statuses));
  helper.join();
  expect_status(statuses[0]);
  CHECK_EQUAL(in, 5);
  CHECK_EQUAL(calls.query, 1);
  CHECK_EQUAL(calls.free, 1);
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(argc, argv,
                          {{"complete_then_wait", complete_then_wait},
                           {"free_then_complete", free_then_complete},
                           {"cancel", cancel},
                           {"asked_without_statuses", asked_without_statuses},
                           {"statuses_of_a_list", statuses_of_a_list},
                           {"errors_of_callbacks", errors_of_callbacks},
                           {"completed_by_a_thread", completed_by_a_thread}});
}
