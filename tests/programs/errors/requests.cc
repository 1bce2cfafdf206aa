// SPDX-License-Identifier: BSD-3-Clause
// Errors of operations, and of calls on their requests, go to the error handler of their
// communicator. Those of others are fatal here. Not for other libraries: MPICH 5.0 ends the program
// when the communicator was freed.
#include "check.h"

namespace {

int calls = 0, last_code = MPI_SUCCESS;
MPI_Comm last_comm = MPI_COMM_NULL;

void note_error(MPI_Comm* comm, int* code, ...) {
  ++calls;
  last_code = *code;
  last_comm = *comm;
}

int in[4], out[4] = {1, 2, 3, 4};
constexpr int too_many = 2; // for a receive of one

// With an error handler that the communicator alone keeps.
MPI_Comm own_communicator() {
  MPI_Comm comm;
  MPI_Errhandler handler;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_create_errhandler(note_error, &handler));
  OK(MPI_Comm_set_errhandler(comm, handler));
  OK(MPI_Errhandler_free(&handler));
  return comm;
}

// The call failed, and the error handler was called once.
void refused(int error, MPI_Comm comm, int code) {
  FAILS(error, code);
  CHECK_EQUAL(calls, 1);
  CHECK_EQUAL(last_code, code);
  CHECK(last_comm == comm);
  calls = 0;
}

// Its operations still have its error handler, which gets no handle of it.
void freed_communicator() {
  if (!check::is_macadam()) return;
  MPI_Request requests[2];
  MPI_Status status;
  for (bool in_a_list : {false, true}) {
    MPI_Comm comm = own_communicator();
    OK(MPI_Irecv(in, 1, MPI_INT, 0, 0, comm, &requests[0]));
    OK(MPI_Isend(out, too_many, MPI_INT, 0, 0, comm, &requests[1]));
    OK(MPI_Comm_free(&comm));
    if (in_a_list) {
      const int code = MPI_Waitall(1, requests, &status);
      refused(MPI_ERR_IN_STATUS, MPI_COMM_NULL, code);
      FAILS(MPI_ERR_TRUNCATE, status.MPI_ERROR);
    } else {
      refused(MPI_ERR_TRUNCATE, MPI_COMM_NULL, MPI_Wait(requests, MPI_STATUS_IGNORE));
    }
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  }
  MPI_Comm comm = own_communicator();
  OK(MPI_Recv_init(in, 1, MPI_INT, 0, 0, comm, &requests[0]));
  OK(MPI_Send_init(out, too_many, MPI_INT, 0, 0, comm, &requests[1]));
  OK(MPI_Comm_free(&comm));
  for (int round = 0; round < 2; ++round) {
    OK(MPI_Startall(2, requests));
    refused(MPI_ERR_TRUNCATE, MPI_COMM_NULL, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
  }
  for (MPI_Request& request : requests)
    OK(MPI_Request_free(&request));
}

void calls_on_requests() {
  if (!check::is_macadam()) return;
  MPI_Comm comm = own_communicator();
  MPI_Request request, other;
  int flag = 0;
  OK(MPI_Bsend_init(out, 1, MPI_INT, 0, 0, comm, &request)); // there is no buffer
  refused(MPI_ERR_BUFFER, comm, MPI_Start(&request));
  MPI_Request list[] = {request};
  refused(MPI_ERR_BUFFER, comm, MPI_Startall(1, list));
  OK(MPI_Request_free(&request));

  OK(MPI_Recv_init(in, 1, MPI_INT, 0, 7, comm, &request));
  OK(MPI_Start(&request));
  refused(MPI_ERR_REQUEST, comm, MPI_Start(&request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  refused(MPI_ERR_REQUEST, comm, MPI_Cancel(&request));
  OK(MPI_Request_free(&request));

  OK(MPI_Irecv(in, 1, MPI_INT, 0, 7, comm, &request));
  refused(MPI_ERR_REQUEST, comm, MPI_Start(&request));
  OK(MPI_Cancel(&request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));

  OK(MPI_Psend_init(out, 2, 1, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &request));
  OK(MPI_Precv_init(in, 2, 1, MPI_INT, 0, 1, comm, MPI_INFO_NULL, &other));
  refused(MPI_ERR_REQUEST, comm, MPI_Pready(0, request));
  OK(MPI_Start(&request));
  OK(MPI_Start(&other));
  refused(MPI_ERR_ARG, comm, MPI_Pready(5, request));
  refused(MPI_ERR_REQUEST, comm, MPI_Request_free(&request));
  OK(MPI_Pready_range(0, 1, request));
  refused(MPI_ERR_ARG, comm, MPI_Parrived(other, 9, &flag));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
  OK(MPI_Request_free(&request));
  OK(MPI_Request_free(&other));
  OK(MPI_Comm_free(&comm));
}

void calls_on_messages() {
  if (!check::is_macadam()) return;
  MPI_Comm comm = own_communicator();
  MPI_Request request;
  MPI_Message message;
  OK(MPI_Isend(out, 1, MPI_INT, 0, 0, comm, &request));
  OK(MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE));
  refused(MPI_ERR_COUNT, comm, MPI_Mrecv(in, -1, MPI_INT, &message, MPI_STATUS_IGNORE));
  refused(MPI_ERR_TYPE, comm, MPI_Mrecv(in, 1, MPI_DATATYPE_NULL, &message, MPI_STATUS_IGNORE));
  OK(MPI_Mrecv(in, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Comm_free(&comm));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"freed_communicator", freed_communicator},
                     {"calls_on_requests", calls_on_requests},
                     {"calls_on_messages", calls_on_messages}});
}
