// SPDX-License-Identifier: BSD-3-Clause
// Messages to nobody (MPI_PROC_NULL) and to oneself, in every mode.
#include "check.h"

namespace {

void from_nobody(const MPI_Status& status) {
  CHECK_EQUAL(status.MPI_SOURCE, MPI_PROC_NULL);
  CHECK_EQUAL(status.MPI_TAG, MPI_ANY_TAG);
  int count = -1;
  OK(MPI_Get_count(&status, MPI_INT, &count));
  CHECK_EQUAL(count, 0);
}

void nobody() {
  std::vector<int> data(100000, 3);
  const int n = 100000;
  MPI_Status status;
  OK(MPI_Send(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Ssend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Rsend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Bsend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD));
  OK(MPI_Recv(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
  from_nobody(status);
  MPI_Request requests[5];
  OK(MPI_Isend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Issend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]));
  OK(MPI_Irsend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[2]));
  OK(MPI_Ibsend(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]));
  OK(MPI_Irecv(data.data(), n, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[4]));
  MPI_Status statuses[5];
  OK(MPI_Waitall(5, requests, statuses));
  from_nobody(statuses[4]);
  OK(MPI_Send_init(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[0]));
  OK(MPI_Recv_init(data.data(), n, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[1]));
  for (int i = 0; i < 3; ++i) {
    OK(MPI_Startall(2, requests));
    OK(MPI_Waitall(2, requests, statuses));
    if (check::is_macadam()) from_nobody(statuses[1]); // MPICH 5.0 gives an empty status
  }
  OK(MPI_Request_free(&requests[0]));
  OK(MPI_Request_free(&requests[1]));
  for (int value : data)
    CHECK_EQUAL(value, 3);
}

// Who is nobody needs no datatype; everybody else does.
void nobody_without_a_type() {
  if (!check::is_macadam()) return;
  const MPI_Datatype none = MPI_DATATYPE_NULL;
  MPI_Comm comm;
  OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  char byte = 1;
  MPI_Status status;
  MPI_Request request;
  OK(MPI_Send(&byte, 1, none, MPI_PROC_NULL, 0, comm));
  OK(MPI_Recv(&byte, 1, none, MPI_PROC_NULL, 0, comm, &status));
  from_nobody(status);
  OK(MPI_Isend(nullptr, 0, none, MPI_PROC_NULL, 0, comm, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  OK(MPI_Sendrecv(&byte, 1, none, MPI_PROC_NULL, 0, &byte, 1, none, MPI_PROC_NULL, 0, comm,
                  MPI_STATUS_IGNORE));
  OK(MPI_Sendrecv_replace(&byte, 1, none, MPI_PROC_NULL, 0, MPI_PROC_NULL, 0, comm,
                          MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE, MPI_Send(&byte, 1, none, 0, 0, comm));
  FAILS(MPI_ERR_TYPE, MPI_Recv(&byte, 1, none, MPI_ANY_SOURCE, 0, comm, &status));
  FAILS(MPI_ERR_TYPE, MPI_Sendrecv(&byte, 1, none, 0, 0, &byte, 1, MPI_CHAR, MPI_PROC_NULL, 0, comm,
                                   MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_TYPE,
        MPI_Sendrecv_replace(&byte, 1, none, MPI_PROC_NULL, 0, 0, 0, comm, MPI_STATUS_IGNORE));
  OK(MPI_Comm_free(&comm));
}

void oneself(MPI_Comm comm) {
  int me = 0;
  OK(MPI_Comm_rank(comm, &me));
  for (int bytes : check::message_sizes())
    for (bool receive_first : {true, false}) {
      const auto n = static_cast<std::size_t>(bytes);
      const auto out = check::message(n, n);
      std::vector<unsigned char> in(n);
      MPI_Request requests[2];
      for (bool receive : {receive_first, !receive_first})
        if (receive)
          OK(MPI_Irecv(in.data(), bytes, MPI_BYTE, me, 1, comm, &requests[0]));
        else
          OK(MPI_Isend(out.data(), bytes, MPI_BYTE, me, 1, comm, &requests[1]));
      MPI_Status statuses[2];
      OK(MPI_Waitall(2, requests, statuses));
      CHECK_EQUAL(statuses[0].MPI_SOURCE, me);
      HOLDS(in.data(), bytes, n);
      // Blocking and synchronous, the receive posted before.
      std::fill(in.begin(), in.end(), 0);
      OK(MPI_Irecv(in.data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]));
      OK(MPI_Ssend(out.data(), bytes, MPI_BYTE, me, 2, comm));
      OK(MPI_Wait(&requests[0], &statuses[0]));
      CHECK_EQUAL(statuses[0].MPI_TAG, 2);
      HOLDS(in.data(), bytes, n);
    }
}

void probe_oneself() {
  int value = 5, flag = 1;
  MPI_Request request;
  OK(MPI_Iprobe(check::rank, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
  CHECK(!flag);
  OK(MPI_Isend(&value, 1, MPI_INT, check::rank, 7, MPI_COMM_WORLD, &request));
  MPI_Status status;
  OK(MPI_Probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status));
  CHECK_EQUAL(status.MPI_SOURCE, check::rank);
  int got = 0;
  OK(MPI_Recv(&got, 1, MPI_INT, check::rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, 5);
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"nobody", nobody},
                     {"nobody_without_a_type", nobody_without_a_type},
                     {"oneself_in_world", [] { oneself(MPI_COMM_WORLD); }},
                     {"oneself_in_self", [] { oneself(MPI_COMM_SELF); }},
                     {"probe_oneself", probe_oneself}});
}
