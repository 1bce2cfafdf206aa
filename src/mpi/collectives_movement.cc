// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move data and do not combine it: MPI's rules about their arguments.
#include "coll/operations.h"
#include "mpi/calls.h"
#include "mpi/collective_forms.h"
#include "mpi/collectives.h"
#include "mpi/process.h"

#include <memory>

namespace macadam::mpi {
namespace {

using coll::Data;
using datatype::Type;

// What a rank sends and where it wants it itself must be different memory.
void check_apart(const Data& sent, const Data& kept) {
  if (sent.address == kept.address && sent.address != nullptr && sent.type->contiguous() &&
      kept.type->contiguous() && sent.bytes() > 0) [[unlikely]] {
    base::fail(
        MPI_ERR_BUFFER,
        "sendbuf and this rank's block of recvbuf are the same memory ({}); give MPI_IN_PLACE "
        "to leave data where they are",
        sent.address);
  }
}

// The entries of the arrays that only the root gives.
int entries_at_root(const Communicator& comm, int root) {
  return root == (comm.inter() ? MPI_ROOT : comm.rank()) ? comm.peers() : 0;
}

CollectiveCall barrier_call(Process&, Communicator&) {
  return {"barrier", &coll::barrier, {}, {}};
}

CollectiveCall bcast_call(Process&, Communicator&, void* buffer, MPI_Count count, const Type& type,
                          int root) {
  CollectiveCall call{"bcast", &coll::bcast, {}, {}};
  call.arguments.receive = blocks(buffer, count, type);
  call.arguments.root = root;
  return call;
}

// A call with one block sent and one for each rank received, or the other way round.
CollectiveCall moving(const char* name, coll::Collective::Run run, const coll::Blocks& send,
                      const coll::Blocks& receive, bool in_place, int root = 0) {
  CollectiveCall call{name, run, {}, {}};
  call.arguments.in_place = in_place;
  call.arguments.send = send;
  call.arguments.receive = receive;
  call.arguments.root = root;
  return call;
}

CollectiveCall allgather_call(Process&, Communicator& comm, const void* sendbuf,
                              MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                              MPI_Count recvcount, const Type& recvtype) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcount, recvtype);
  if (!comm.inter()) check_apart(send[0], receive[comm.rank()]);
  return moving("allgather", &coll::allgather, send, receive, sendbuf == MPI_IN_PLACE);
}

CollectiveCall allgatherv_call(Process&, Communicator& comm, const void* sendbuf,
                               MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                               CountArray recvcounts, CountArray displs, const Type& recvtype) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcounts, displs, comm.peers(), recvtype);
  if (!comm.inter()) check_apart(send[0], receive[comm.rank()]);
  return moving("allgatherv", &coll::allgather, send, receive, sendbuf == MPI_IN_PLACE);
}

CollectiveCall gather_call(Process&, Communicator& comm, const void* sendbuf, MPI_Count sendcount,
                           const Type& sendtype, void* recvbuf, MPI_Count recvcount,
                           const Type& recvtype, int root) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcount, recvtype);
  if (!comm.inter() && root == comm.rank()) check_apart(send[0], receive[root]);
  return moving("gather", &coll::gather, send, receive, sendbuf == MPI_IN_PLACE, root);
}

CollectiveCall gatherv_call(Process&, Communicator& comm, const void* sendbuf, MPI_Count sendcount,
                            const Type& sendtype, void* recvbuf, CountArray recvcounts,
                            CountArray displs, const Type& recvtype, int root) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive =
      blocks(recvbuf, recvcounts, displs, entries_at_root(comm, root), recvtype);
  if (!comm.inter() && root == comm.rank()) check_apart(send[0], receive[root]);
  return moving("gatherv", &coll::gatherv, send, receive, sendbuf == MPI_IN_PLACE, root);
}

CollectiveCall scatter_call(Process&, Communicator& comm, const void* sendbuf, MPI_Count sendcount,
                            const Type& sendtype, void* recvbuf, MPI_Count recvcount,
                            const Type& recvtype, int root) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcount, recvtype);
  if (!comm.inter() && root == comm.rank()) check_apart(send[root], receive[0]);
  return moving("scatter", &coll::scatter, send, receive, recvbuf == MPI_IN_PLACE, root);
}

CollectiveCall scatterv_call(Process&, Communicator& comm, const void* sendbuf,
                             CountArray sendcounts, CountArray displs, const Type& sendtype,
                             void* recvbuf, MPI_Count recvcount, const Type& recvtype, int root) {
  const coll::Blocks send =
      blocks(sendbuf, sendcounts, displs, entries_at_root(comm, root), sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcount, recvtype);
  if (!comm.inter() && root == comm.rank()) check_apart(send[root], receive[0]);
  return moving("scatterv", &coll::scatterv, send, receive, recvbuf == MPI_IN_PLACE, root);
}

CollectiveCall alltoall_call(Process&, Communicator& comm, const void* sendbuf, MPI_Count sendcount,
                             const Type& sendtype, void* recvbuf, MPI_Count recvcount,
                             const Type& recvtype) {
  const coll::Blocks send = blocks(sendbuf, sendcount, sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcount, recvtype);
  if (!comm.inter()) check_apart(send[comm.rank()], receive[comm.rank()]);
  return moving("alltoall", &coll::alltoall, send, receive, sendbuf == MPI_IN_PLACE);
}

CollectiveCall alltoallv_call(Process&, Communicator& comm, const void* sendbuf,
                              CountArray sendcounts, CountArray sdispls, const Type& sendtype,
                              void* recvbuf, CountArray recvcounts, CountArray rdispls,
                              const Type& recvtype) {
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const coll::Blocks send =
      blocks(sendbuf, sendcounts, sdispls, in_place ? 0 : comm.peers(), sendtype);
  const coll::Blocks receive = blocks(recvbuf, recvcounts, rdispls, comm.peers(), recvtype);
  if (!comm.inter() && !in_place) {
    check_apart(send[comm.rank()], receive[comm.rank()]);
  }
  return moving("alltoallv", &coll::alltoallv, send, receive, in_place);
}

CollectiveCall alltoallw_call(Process& self, Communicator& comm, const void* sendbuf,
                              CountArray sendcounts, CountArray sdispls,
                              const MPI_Datatype* sendtypes, void* recvbuf, CountArray recvcounts,
                              CountArray rdispls, const MPI_Datatype* recvtypes) {
  auto arrays = std::make_unique<CollectiveCall::Arrays>();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const Type& byte = self.types[MPI_BYTE];
  coll::Blocks send = blocks(sendbuf, sendcounts, sdispls, in_place ? 0 : comm.peers(), byte);
  coll::Blocks receive = blocks(recvbuf, recvcounts, rdispls, comm.peers(), byte);
  arrays->receive_types = look_up(self, comm.peers(), recvtypes, recvcounts);
  receive.types = arrays->receive_types.data();
  if (!in_place) {
    arrays->send_types = look_up(self, comm.peers(), sendtypes, sendcounts);
    send.types = arrays->send_types.data();
    if (!comm.inter()) check_apart(send[comm.rank()], receive[comm.rank()]);
  }
  CollectiveCall call = moving("alltoallw", &coll::alltoallv, send, receive, in_place);
  call.arrays = std::move(arrays);
  return call;
}

} // namespace

MACADAM_COLLECTIVE(barrier, (), ());
MACADAM_COLLECTIVE(bcast, (void* buffer, MPI_Count count, const Type& datatype, int root),
                   (buffer, count, datatype, root));
MACADAM_COLLECTIVE(allgather,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));
MACADAM_COLLECTIVE(allgatherv,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    CountArray recvcounts, CountArray displs, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype));
MACADAM_COLLECTIVE(gather,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype, int root),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root));
MACADAM_COLLECTIVE(gatherv,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    CountArray recvcounts, CountArray displs, const Type& recvtype, int root),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root));
MACADAM_COLLECTIVE(scatter,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype, int root),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root));
MACADAM_COLLECTIVE(scatterv,
                   (const void* sendbuf, CountArray sendcounts, CountArray displs,
                    const Type& sendtype, void* recvbuf, MPI_Count recvcount, const Type& recvtype,
                    int root),
                   (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root));
MACADAM_COLLECTIVE(alltoall,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));
MACADAM_COLLECTIVE(alltoallv,
                   (const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                    const Type& sendtype, void* recvbuf, CountArray recvcounts, CountArray rdispls,
                    const Type& recvtype),
                   (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                    recvtype));
MACADAM_COLLECTIVE(alltoallw,
                   (const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                    const MPI_Datatype sendtypes[], void* recvbuf, CountArray recvcounts,
                    CountArray rdispls, const MPI_Datatype recvtypes[]),
                   (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                    recvtypes));

} // namespace macadam::mpi
