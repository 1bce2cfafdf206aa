// SPDX-License-Identifier: BSD-3-Clause
// Every bad argument of every neighbourhood collective in every form: blocking, nonblocking and
// persistent, each with int and with large counts.
#include "errors/text.h"

namespace {

using text::give_data;
using text::give_memory;
using text::give_valid;

MPI_Comm grid = MPI_COMM_NULL; // periodic, of one dimension: two neighbours each way
MPI_Info freed_info = MPI_INFO_NULL;
MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
int out[8], in[8];

// Right arguments, of which one is then made wrong. Names are the standard's.
template <class Count, class Displacement>
struct Arguments {
  static constexpr Count one_each[2] = {1, 1}, one_negative[2] = {1, -1};
  static constexpr Displacement apart[2] = {0, 1};
  static constexpr MPI_Aint bytes_apart[2] = {0, sizeof(int)};
  const void* sendbuf = out;
  void* recvbuf = in;
  Count sendcount = 1, recvcount = 1;
  const Count *sendcounts = one_each, *recvcounts = one_each;
  const Displacement *sdispls = apart, *rdispls = apart, *displs = apart;
  const MPI_Aint *sdispls_w = bytes_apart, *rdispls_w = bytes_apart;
  MPI_Datatype sendtype = MPI_INT, recvtype = MPI_INT;
  MPI_Datatype ints[2] = {MPI_INT, MPI_INT}, one_null[2] = {MPI_INT, MPI_DATATYPE_NULL};
  MPI_Datatype one_uncommitted[2] = {MPI_INT, uncommitted};
  const MPI_Datatype *sendtypes = ints, *recvtypes = ints;
  MPI_Comm comm = grid;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Request pending = MPI_REQUEST_NULL;
  MPI_Request* request = &pending;
};

enum class Form { blocking, nonblocking, persistent };

template <class A, class Call>
void refuse(const char* function, const std::string& parameters, Form form, Call call) {
  const auto wrong = [&](const char* parameter, int error, const char* found, const char* remedy,
                         void (*spoil)(A&)) {
    // Only what this function has.
    const std::string all = parameters + ", a.comm," +
                            (form == Form::persistent ? " a.info," : "") +
                            (form == Form::blocking ? "" : " a.request,");
    const std::string name = std::string("a.") + parameter;
    if (all.find(name + ",") == std::string::npos && all.find(name + "_w,") == std::string::npos)
      return;
    A a;
    spoil(a);
    text::refused({function, parameter, found, remedy, error, [&] { return call(a); }});
    CHECK(a.pending == MPI_REQUEST_NULL);
  };
  const char* const null = "a null pointer";
  wrong("sendcount", MPI_ERR_COUNT, "-1", "must not be negative", [](A& a) { a.sendcount = -1; });
  wrong("recvcount", MPI_ERR_COUNT, "-1", "must not be negative", [](A& a) { a.recvcount = -1; });
  wrong("sendcounts", MPI_ERR_ARG, null, give_memory, [](A& a) { a.sendcounts = nullptr; });
  wrong("recvcounts", MPI_ERR_ARG, null, give_memory, [](A& a) { a.recvcounts = nullptr; });
  // An element has its index behind the name.
  const auto element = [&](const std::string& parameter, int error, const char* found,
                           const char* remedy, void (*spoil)(A&)) {
    if (parameters.find("a." + parameter) == std::string::npos) return;
    A a;
    spoil(a);
    const std::string indexed = parameter + "[1]";
    text::refused({function, indexed.c_str(), found, remedy, error, [&] { return call(a); }});
    CHECK(a.pending == MPI_REQUEST_NULL);
  };
  element("sendcounts", MPI_ERR_COUNT, "-1", "must not be negative",
          [](A& a) { a.sendcounts = A::one_negative; });
  element("recvcounts", MPI_ERR_COUNT, "-1", "must not be negative",
          [](A& a) { a.recvcounts = A::one_negative; });
  element("sendtypes", MPI_ERR_TYPE, "MPI_DATATYPE_NULL", give_valid,
          [](A& a) { a.sendtypes = a.one_null; });
  element("recvtypes", MPI_ERR_TYPE, "MPI_DATATYPE_NULL", give_valid,
          [](A& a) { a.recvtypes = a.one_null; });
  element("sendtypes", MPI_ERR_TYPE, "not committed", "MPI_Type_commit",
          [](A& a) { a.sendtypes = a.one_uncommitted; });
  element("recvtypes", MPI_ERR_TYPE, "not committed", "MPI_Type_commit",
          [](A& a) { a.recvtypes = a.one_uncommitted; });
  wrong("sdispls", MPI_ERR_ARG, null, give_memory,
        [](A& a) { a.sdispls = nullptr, a.sdispls_w = nullptr; });
  wrong("rdispls", MPI_ERR_ARG, null, give_memory,
        [](A& a) { a.rdispls = nullptr, a.rdispls_w = nullptr; });
  wrong("displs", MPI_ERR_ARG, null, give_memory, [](A& a) { a.displs = nullptr; });
  wrong("sendtype", MPI_ERR_TYPE, "MPI_DATATYPE_NULL", give_valid,
        [](A& a) { a.sendtype = MPI_DATATYPE_NULL; });
  wrong("recvtype", MPI_ERR_TYPE, "MPI_DATATYPE_NULL", give_valid,
        [](A& a) { a.recvtype = MPI_DATATYPE_NULL; });
  wrong("sendtypes", MPI_ERR_ARG, null, give_memory, [](A& a) { a.sendtypes = nullptr; });
  wrong("recvtypes", MPI_ERR_ARG, null, give_memory, [](A& a) { a.recvtypes = nullptr; });
  wrong("sendbuf", MPI_ERR_BUFFER, "MPI_IN_PLACE", give_memory,
        [](A& a) { a.sendbuf = MPI_IN_PLACE; });
  wrong("recvbuf", MPI_ERR_BUFFER, "MPI_IN_PLACE", give_memory,
        [](A& a) { a.recvbuf = MPI_IN_PLACE; });
  wrong("sendbuf", MPI_ERR_BUFFER, null, give_data, [](A& a) { a.sendbuf = nullptr; });
  wrong("recvbuf", MPI_ERR_BUFFER, null, give_data, [](A& a) { a.recvbuf = nullptr; });
  wrong("sendtype", MPI_ERR_TYPE, "not committed", "MPI_Type_commit",
        [](A& a) { a.sendtype = uncommitted; });
  wrong("recvtype", MPI_ERR_TYPE, "not committed", "MPI_Type_commit",
        [](A& a) { a.recvtype = uncommitted; });
  wrong("comm", MPI_ERR_COMM, "MPI_COMM_NULL", give_valid, [](A& a) { a.comm = MPI_COMM_NULL; });
  wrong("comm", MPI_ERR_TOPOLOGY, "communicator MPI_COMM_WORLD, which has no topology",
        "make a communicator with MPI_Cart_create", [](A& a) { a.comm = MPI_COMM_WORLD; });
  wrong("info", MPI_ERR_INFO, "0x", give_valid, [](A& a) { a.info = freed_info; });
  wrong("request", MPI_ERR_ARG, null, give_memory, [](A& a) { a.request = nullptr; });
  // And the right call works.
  A right;
  OK(call(right));
  if (form == Form::persistent) OK(MPI_Start(right.request));
  if (form != Form::blocking) OK(MPI_Wait(right.request, MPI_STATUS_IGNORE));
  if (form == Form::persistent) OK(MPI_Request_free(right.request));
}

using Int = Arguments<int, int>;
using Large = Arguments<MPI_Count, MPI_Aint>;

#define FORMS(name, ...)                                                                           \
  refuse<Int>("MPI_Neighbor_" #name, #__VA_ARGS__, Form::blocking,                                 \
              [](Int& a) { return MPI_Neighbor_##name(__VA_ARGS__, a.comm); });                    \
  refuse<Large>("MPI_Neighbor_" #name "_c", #__VA_ARGS__, Form::blocking,                          \
                [](Large& a) { return MPI_Neighbor_##name##_c(__VA_ARGS__, a.comm); });            \
  refuse<Int>("MPI_Ineighbor_" #name, #__VA_ARGS__, Form::nonblocking,                             \
              [](Int& a) { return MPI_Ineighbor_##name(__VA_ARGS__, a.comm, a.request); });        \
  refuse<Large>("MPI_Ineighbor_" #name "_c", #__VA_ARGS__, Form::nonblocking, [](Large& a) {       \
    return MPI_Ineighbor_##name##_c(__VA_ARGS__, a.comm, a.request);                               \
  });                                                                                              \
  refuse<Int>("MPI_Neighbor_" #name "_init", #__VA_ARGS__, Form::persistent, [](Int& a) {          \
    return MPI_Neighbor_##name##_init(__VA_ARGS__, a.comm, a.info, a.request);                     \
  });                                                                                              \
  refuse<Large>("MPI_Neighbor_" #name "_init_c", #__VA_ARGS__, Form::persistent, [](Large& a) {    \
    return MPI_Neighbor_##name##_init_c(__VA_ARGS__, a.comm, a.info, a.request);                   \
  })

void every_form() {
  if (!check::is_macadam()) return; // MPICH 5.0 has other classes, checks less, or crashes
  const int periodic = 1;
  OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &check::size, &periodic, 0, &grid));
  text::return_errors(grid);
  MPI_Info info = MPI_INFO_NULL;
  OK(MPI_Info_create(&info));
  freed_info = info;
  OK(MPI_Info_free(&info));
  OK(MPI_Type_contiguous(1, MPI_INT, &uncommitted));
  FORMS(allgather, a.sendbuf, a.sendcount, a.sendtype, a.recvbuf, a.recvcount, a.recvtype);
  FORMS(allgatherv, a.sendbuf, a.sendcount, a.sendtype, a.recvbuf, a.recvcounts, a.displs,
        a.recvtype);
  FORMS(alltoall, a.sendbuf, a.sendcount, a.sendtype, a.recvbuf, a.recvcount, a.recvtype);
  FORMS(alltoallv, a.sendbuf, a.sendcounts, a.sdispls, a.sendtype, a.recvbuf, a.recvcounts,
        a.rdispls, a.recvtype);
  FORMS(alltoallw, a.sendbuf, a.sendcounts, a.sdispls_w, a.sendtypes, a.recvbuf, a.recvcounts,
        a.rdispls_w, a.recvtypes);
  text::nothing_lost(grid);
  OK(MPI_Type_free(&uncommitted));
  OK(MPI_Comm_free(&grid));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"every_form", every_form}});
}
