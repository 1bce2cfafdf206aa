// SPDX-License-Identifier: BSD-3-Clause
// The collectives that move data and do not combine it: MPI's rules about their arguments.
#include "coll/operations.h"
#include "mpi/calls.h"
#include "mpi/collective_forms.h"
#include "mpi/collectives.h"
#include "mpi/process.h"

namespace macadam::mpi {
namespace {

using datatype::Type;

CollectiveCall barrier_call(Process&, Communicator&) { return {"barrier", &coll::barrier, {}, {}}; }

CollectiveCall bcast_call(Process&, Communicator&, void* buffer, MPI_Count count, const Type& type,
                          int root) {
  CollectiveCall call{"bcast", &coll::bcast, {}, {}};
  call.arguments.receive = blocks(buffer, count, type);
  call.arguments.root = root;
  return call;
}

CollectiveCall allgather_call(Process&, Communicator&, const void* sendbuf, MPI_Count sendcount,
                              const Type& sendtype, void* recvbuf, MPI_Count recvcount,
                              const Type& recvtype) {
  CollectiveCall call{"allgather", &coll::allgather, {}, {}};
  call.arguments.in_place = sendbuf == MPI_IN_PLACE;
  call.arguments.send = blocks(sendbuf, sendcount, sendtype);
  call.arguments.receive = blocks(recvbuf, recvcount, recvtype);
  return call;
}

CollectiveCall allgatherv_call(Process&, Communicator&, const void* sendbuf, MPI_Count sendcount,
                               const Type& sendtype, void* recvbuf, CountArray recvcounts,
                               CountArray displs, const Type& recvtype) {
  CollectiveCall call{"allgatherv", &coll::allgather, {}, {}};
  call.arguments.in_place = sendbuf == MPI_IN_PLACE;
  call.arguments.send = blocks(sendbuf, sendcount, sendtype);
  call.arguments.receive = blocks(recvbuf, recvcounts, displs, recvtype);
  return call;
}

}  // namespace

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

}  // namespace macadam::mpi
