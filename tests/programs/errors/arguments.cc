// SPDX-License-Identifier: BSD-3-Clause
// A bad argument of every kind, in many functions: the error class is the standard's, nothing is
// sent or lost by the wrong call, and right calls work after it.
#include "check.h"

namespace {

struct Wrong {
  const char* what;
  int error;
  std::function<int()> call;
  bool only_ours = false; // MPICH 5.0 crashes here, or accepts it
};

int data[64], other[64];
MPI_Request request = MPI_REQUEST_NULL;
MPI_Status status;
MPI_Datatype type;
MPI_Comm comm;
MPI_Errhandler errhandler;
int number, flag;

// After a wrong call, a message and a reduction still work.
void still_works(const char* after) {
  const int to = (check::rank + 1) % check::size;
  const int from = (check::rank + check::size - 1) % check::size;
  int got = -1, sum = -1;
  if (MPI_Sendrecv(&check::rank, 1, MPI_INT, to, 5, &got, 1, MPI_INT, from, 5, MPI_COMM_WORLD,
                   &status) != MPI_SUCCESS ||
      got != from)
    check::fail(__FILE__, __LINE__, std::string("no message passes after: ") + after);
  if (MPI_Allreduce(&check::rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS ||
      sum != check::size * (check::size - 1) / 2)
    check::fail(__FILE__, __LINE__, std::string("no reduction works after: ") + after);
}

void expect(const std::vector<Wrong>& list) {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  for (const Wrong& wrong : list) {
    if (wrong.only_ours && !check::is_macadam()) continue;
    const int code = wrong.call();
    if (check::error_class(code) != wrong.error)
      check::fail(__FILE__, __LINE__,
                  std::string(wrong.what) + ": returned " + check::error_text(code) +
                      ", expected " + check::error_text(wrong.error));
    char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    OK(MPI_Error_string(code, text, &length));
    CHECK(length > 0);
    still_works(wrong.what);
  }
}

const MPI_Comm world = MPI_COMM_WORLD;
constexpr MPI_Count longest = INT64_MAX;

void messages() {
  const int beyond = check::size;
  expect({
      {"Send, count", MPI_ERR_COUNT, [] { return MPI_Send(data, -1, MPI_INT, 0, 0, world); }},
      {"Send, type", MPI_ERR_TYPE,
       [] { return MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, world); }},
      {"Send, rank", MPI_ERR_RANK, [=] { return MPI_Send(data, 1, MPI_INT, beyond, 0, world); }},
      {"Send, rank -7", MPI_ERR_RANK, [] { return MPI_Send(data, 1, MPI_INT, -7, 0, world); }},
      {"Send, any source", MPI_ERR_RANK,
       [] { return MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, world); }},
      {"Send, tag", MPI_ERR_TAG, [] { return MPI_Send(data, 1, MPI_INT, 0, -5, world); }},
      {"Send, any tag", MPI_ERR_TAG,
       [] { return MPI_Send(data, 1, MPI_INT, 0, MPI_ANY_TAG, world); }},
      {"Send, comm", MPI_ERR_COMM, [] { return MPI_Send(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL); }},
      {"Send, buffer", MPI_ERR_BUFFER, [] { return MPI_Send(nullptr, 1, MPI_INT, 0, 0, world); }},
      {"Ssend, rank", MPI_ERR_RANK, [=] { return MPI_Ssend(data, 1, MPI_INT, beyond, 0, world); }},
      {"Rsend, tag", MPI_ERR_TAG, [] { return MPI_Rsend(data, 1, MPI_INT, 0, -5, world); }},
      {"Bsend, count", MPI_ERR_COUNT, [] { return MPI_Bsend(data, -3, MPI_INT, 0, 0, world); }},
      {"Send_c, count", MPI_ERR_COUNT, [] { return MPI_Send_c(data, -1, MPI_INT, 0, 0, world); }},
      {"Send_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Send_c(data, longest, MPI_INT, 0, 0, world); }, true},
      {"Recv_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Recv_c(data, longest, MPI_INT, 0, 0, world, &status); }, true},
      {"Isend_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Isend_c(data, longest, MPI_INT, 0, 0, world, &request); }, true},
      {"Bsend_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Bsend_c(data, longest, MPI_INT, 0, 0, world); }, true},
      {"Pack_c, longer than memory", MPI_ERR_COUNT,
       [] {
         MPI_Count position = 0;
         return MPI_Pack_c(data, longest, MPI_INT, other, 8, &position, world);
       },
       true},
      {"Bcast_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Bcast_c(data, longest, MPI_INT, 0, world); }, true},
      {"Allreduce_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Allreduce_c(data, other, longest, MPI_INT, MPI_SUM, world); }, true},
      {"Reduce_local_c, longer than memory", MPI_ERR_COUNT,
       [] { return MPI_Reduce_local_c(data, other, longest, MPI_INT, MPI_SUM); }, true},
      {"Type_create_indexed_block_c, count", MPI_ERR_COUNT,
       [] {
         MPI_Count place = 0;
         return MPI_Type_create_indexed_block_c(longest, 1, &place, MPI_INT, &type);
       },
       true},
      {"Isend, rank", MPI_ERR_RANK,
       [=] { return MPI_Isend(data, 1, MPI_INT, beyond, 0, world, &request); }},
      {"Issend, type", MPI_ERR_TYPE,
       [] { return MPI_Issend(data, 1, MPI_DATATYPE_NULL, 0, 0, world, &request); }},
      {"Irecv, count", MPI_ERR_COUNT,
       [] { return MPI_Irecv(data, -1, MPI_INT, 0, 0, world, &request); }},
      {"Irecv, rank", MPI_ERR_RANK,
       [=] { return MPI_Irecv(data, 1, MPI_INT, beyond, 0, world, &request); }},
      {"Irecv, tag", MPI_ERR_TAG,
       [] { return MPI_Irecv(data, 1, MPI_INT, 0, -9, world, &request); }},
      {"Irecv, comm", MPI_ERR_COMM,
       [] { return MPI_Irecv(data, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request); }},
      {"Recv, rank", MPI_ERR_RANK,
       [] { return MPI_Recv(data, 1, MPI_INT, -20, 0, world, &status); }},
      {"Recv, type", MPI_ERR_TYPE,
       [] { return MPI_Recv(data, 1, MPI_DATATYPE_NULL, 0, 0, world, &status); }},
      {"Send_init, tag", MPI_ERR_TAG,
       [] { return MPI_Send_init(data, 1, MPI_INT, 0, -5, world, &request); }},
      {"Recv_init, count", MPI_ERR_COUNT,
       [] { return MPI_Recv_init(data, -1, MPI_INT, 0, 0, world, &request); }},
      {"Probe, rank", MPI_ERR_RANK, [=] { return MPI_Probe(beyond, 0, world, &status); }},
      {"Iprobe, tag", MPI_ERR_TAG, [] { return MPI_Iprobe(0, -9, world, &flag, &status); }},
      {"Sendrecv, rank", MPI_ERR_RANK,
       [=] {
         return MPI_Sendrecv(data, 1, MPI_INT, beyond, 0, other, 1, MPI_INT, 0, 0, world, &status);
       }},
      {"Sendrecv, second type", MPI_ERR_TYPE,
       [] {
         return MPI_Sendrecv(data, 1, MPI_INT, 0, 0, other, 1, MPI_DATATYPE_NULL, 0, 0, world,
                             &status);
       }},
  });
}

void requests() {
  expect({
      {"Start, null", MPI_ERR_REQUEST,
       [] {
         MPI_Request null = MPI_REQUEST_NULL;
         return MPI_Start(&null);
       }},
      {"Cancel, null", MPI_ERR_REQUEST,
       [] {
         MPI_Request null = MPI_REQUEST_NULL;
         return MPI_Cancel(&null);
       }},
      {"Request_free, null", MPI_ERR_REQUEST,
       [] {
         MPI_Request null = MPI_REQUEST_NULL;
         return MPI_Request_free(&null);
       }},
      {"Waitall, count", MPI_ERR_COUNT,
       [] { return MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE); }},
      {"Waitany, count", MPI_ERR_COUNT, [] { return MPI_Waitany(-1, &request, &number, &status); },
       true},
      {"Test, flag", MPI_ERR_ARG,
       [] {
         MPI_Request null = MPI_REQUEST_NULL;
         return MPI_Test(&null, nullptr, &status);
       },
       true},
      {"Get_count, type", MPI_ERR_TYPE,
       [] {
         MPI_Status empty{};
         return MPI_Get_count(&empty, MPI_DATATYPE_NULL, &number);
       }},
      {"Get_count, status", MPI_ERR_ARG,
       [] { return MPI_Get_count(MPI_STATUS_IGNORE, MPI_INT, &number); }, true},
      {"Test_cancelled, status", MPI_ERR_ARG,
       [] { return MPI_Test_cancelled(MPI_STATUS_IGNORE, &flag); }, true},
  });
}

void collectives() {
  const int beyond = check::size;
  static int ones[16], apart[16], zeros[16];
  static MPI_Datatype ints[16];
  for (int i = 0; i < 16; ++i)
    ones[i] = 1, apart[i] = i, ints[i] = MPI_INT;
  expect({
      {"Bcast, root", MPI_ERR_ROOT, [=] { return MPI_Bcast(data, 1, MPI_INT, beyond, world); }},
      {"Bcast, negative root", MPI_ERR_ROOT, [] { return MPI_Bcast(data, 1, MPI_INT, -7, world); }},
      {"Bcast, count", MPI_ERR_COUNT, [] { return MPI_Bcast(data, -1, MPI_INT, 0, world); }},
      {"Bcast, type", MPI_ERR_TYPE, [] { return MPI_Bcast(data, 1, MPI_DATATYPE_NULL, 0, world); }},
      {"Bcast, comm", MPI_ERR_COMM, [] { return MPI_Bcast(data, 1, MPI_INT, 0, MPI_COMM_NULL); }},
      {"Reduce, op", MPI_ERR_OP,
       [] { return MPI_Reduce(data, other, 1, MPI_INT, MPI_OP_NULL, 0, world); }},
      {"Allreduce, op", MPI_ERR_OP,
       [] { return MPI_Allreduce(data, other, 1, MPI_INT, MPI_OP_NULL, world); }},
      {"Allreduce, op does not fit", MPI_ERR_OP,
       [] { return MPI_Allreduce(data, other, 1, MPI_DOUBLE, MPI_BAND, world); }, true},
      {"Allreduce, same buffer", MPI_ERR_BUFFER,
       [] { return MPI_Allreduce(data, data, 1, MPI_INT, MPI_SUM, world); }},
      {"Scan, count", MPI_ERR_COUNT,
       [] { return MPI_Scan(data, other, -1, MPI_INT, MPI_SUM, world); }, true},
      {"Gather, root", MPI_ERR_ROOT,
       [=] { return MPI_Gather(data, 1, MPI_INT, other, 1, MPI_INT, beyond, world); }},
      {"Allgather, type", MPI_ERR_TYPE,
       [] { return MPI_Allgather(data, 1, MPI_DATATYPE_NULL, other, 1, MPI_INT, world); }},
      {"Alltoall, count", MPI_ERR_COUNT,
       [] { return MPI_Alltoall(data, -1, MPI_INT, other, 1, MPI_INT, world); }},
      {"Ibcast, root", MPI_ERR_ROOT,
       [=] { return MPI_Ibcast(data, 1, MPI_INT, beyond, world, &request); }},
      {"Allgatherv, sendbuf", MPI_ERR_BUFFER,
       [] { return MPI_Allgatherv(nullptr, 1, MPI_INT, other, ones, apart, MPI_INT, world); },
       true},
      {"Allgatherv, recvbuf", MPI_ERR_BUFFER,
       [] { return MPI_Allgatherv(data, 1, MPI_INT, nullptr, ones, apart, MPI_INT, world); }, true},
      {"Alltoallv, sendbuf", MPI_ERR_BUFFER,
       [] {
         return MPI_Alltoallv(nullptr, ones, apart, MPI_INT, other, ones, apart, MPI_INT, world);
       },
       true},
      {"Alltoallw, recvbuf", MPI_ERR_BUFFER,
       [] { return MPI_Alltoallw(data, ones, zeros, ints, nullptr, ones, zeros, ints, world); },
       true},
      {"Gatherv, sendbuf", MPI_ERR_BUFFER,
       [] { return MPI_Gatherv(nullptr, 1, MPI_INT, other, ones, apart, MPI_INT, 0, world); },
       true},
      {"Gatherv, recvbuf", MPI_ERR_BUFFER,
       [] {
         return MPI_Gatherv(data, 1, MPI_INT, nullptr, ones, apart, MPI_INT, 0, MPI_COMM_SELF);
       },
       true},
      {"Scatterv, sendbuf", MPI_ERR_BUFFER,
       [] {
         return MPI_Scatterv(nullptr, ones, apart, MPI_INT, other, 1, MPI_INT, 0, MPI_COMM_SELF);
       },
       true},
      {"Reduce_scatter, sendbuf", MPI_ERR_BUFFER,
       [] { return MPI_Reduce_scatter(nullptr, other, ones, MPI_INT, MPI_SUM, world); }, true},
      {"Barrier, comm", MPI_ERR_COMM, [] { return MPI_Barrier(MPI_COMM_NULL); }},
      {"Reduce_local, op", MPI_ERR_OP,
       [] { return MPI_Reduce_local(data, other, 1, MPI_INT, MPI_OP_NULL); }},
  });
}

void objects() {
  static char text[8];
  static MPI_Group all;
  OK(MPI_Comm_group(world, &all));
  const int beyond = check::size;
  static MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "key", "value"));
  number = 0; // asks for the length alone
  OK(MPI_Info_get_string(info, "key", &number, nullptr, &flag));
  CHECK_EQUAL(number, 6);
  expect({
      {"Comm_rank, comm", MPI_ERR_COMM, [] { return MPI_Comm_rank(MPI_COMM_NULL, &number); }},
      {"Comm_rank, out", MPI_ERR_ARG, [] { return MPI_Comm_rank(world, nullptr); }},
      {"Comm_size, comm", MPI_ERR_COMM, [] { return MPI_Comm_size(MPI_COMM_NULL, &number); }},
      {"Comm_dup, comm", MPI_ERR_COMM, [] { return MPI_Comm_dup(MPI_COMM_NULL, &comm); }},
      {"Comm_free, predefined", MPI_ERR_COMM,
       [] {
         MPI_Comm predefined = MPI_COMM_WORLD;
         return MPI_Comm_free(&predefined);
       }},
      {"Comm_split, color", MPI_ERR_ARG, [] { return MPI_Comm_split(world, -5, 0, &comm); }, true},
      {"Comm_create, group", MPI_ERR_GROUP,
       [] { return MPI_Comm_create(world, MPI_GROUP_NULL, &comm); }},
      {"Comm_set_errhandler", MPI_ERR_ERRHANDLER,
       [] { return MPI_Comm_set_errhandler(world, MPI_ERRHANDLER_NULL); }},
      {"Comm_get_attr, key", MPI_ERR_KEYVAL,
       [] { return MPI_Comm_get_attr(world, MPI_KEYVAL_INVALID, &text, &flag); }},
      {"Comm_set_attr, predefined key", MPI_ERR_KEYVAL,
       [] { return MPI_Comm_set_attr(world, MPI_TAG_UB, nullptr); }},
      {"Group_size, group", MPI_ERR_GROUP, [] { return MPI_Group_size(MPI_GROUP_NULL, &number); }},
      {"Group_incl, rank", MPI_ERR_RANK,
       [=] {
         MPI_Group result;
         return MPI_Group_incl(all, 1, &beyond, &result);
       }},
      {"Type_contiguous, count", MPI_ERR_COUNT,
       [] { return MPI_Type_contiguous(-1, MPI_INT, &type); }},
      {"Type_contiguous, type", MPI_ERR_TYPE,
       [] { return MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type); }},
      {"Type_commit, null", MPI_ERR_TYPE,
       [] {
         MPI_Datatype null = MPI_DATATYPE_NULL;
         return MPI_Type_commit(&null);
       }},
      {"Type_free, predefined", MPI_ERR_TYPE,
       [] {
         MPI_Datatype predefined = MPI_INT;
         return MPI_Type_free(&predefined);
       }},
      {"Send, uncommitted type", MPI_ERR_TYPE,
       [] {
         MPI_Datatype pair;
         MPI_Type_contiguous(2, MPI_INT, &pair);
         const int code = MPI_Send(data, 1, pair, 0, 0, world);
         MPI_Type_free(&pair);
         return code;
       }},
      {"Op_free, predefined", MPI_ERR_OP,
       [] {
         MPI_Op predefined = MPI_SUM;
         return MPI_Op_free(&predefined);
       }},
      {"Info_set, info", MPI_ERR_INFO, [] { return MPI_Info_set(MPI_INFO_NULL, "key", "value"); },
       true},
      {"Info_free, null", MPI_ERR_INFO,
       [] {
         MPI_Info null = MPI_INFO_NULL;
         return MPI_Info_free(&null);
       },
       true},
      {"Info_get_string, value", MPI_ERR_ARG,
       [] {
         number = 6;
         return MPI_Info_get_string(info, "key", &number, nullptr, &flag);
       },
       true},
      {"Pack, room", MPI_ERR_ARG,
       [] {
         number = 0;
         return MPI_Pack(data, 10, MPI_INT, text, 4, &number, world);
       },
       true},
      {"Errhandler_free, null", MPI_ERR_ERRHANDLER,
       [] {
         MPI_Errhandler null = MPI_ERRHANDLER_NULL;
         return MPI_Errhandler_free(&null);
       }},
      {"Comm_create_errhandler, function", MPI_ERR_ARG,
       [] { return MPI_Comm_create_errhandler(nullptr, &errhandler); }},
      {"File_create_errhandler, function", MPI_ERR_ARG,
       [] { return MPI_File_create_errhandler(nullptr, &errhandler); }},
      {"Session_create_errhandler, function", MPI_ERR_ARG,
       [] { return MPI_Session_create_errhandler(nullptr, &errhandler); }},
      {"Win_create_errhandler, function", MPI_ERR_ARG,
       [] { return MPI_Win_create_errhandler(nullptr, &errhandler); }},
      {"Abi_get_version, out", MPI_ERR_ARG, [] { return MPI_Abi_get_version(nullptr, &number); },
       true},
  });
  OK(MPI_Info_free(&info));
  OK(MPI_Group_free(&all));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"messages", messages},
                     {"requests", requests},
                     {"collectives", collectives},
                     {"objects", objects}});
}
