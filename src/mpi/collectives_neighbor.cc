// SPDX-License-Identifier: BSD-3-Clause
// The collectives among neighbours in a topology: MPI's rules about their arguments.
#include "coll/operations.h"
#include "mpi/calls.h"
#include "mpi/collective_forms.h"
#include "mpi/collectives.h"
#include "mpi/process.h"
#include "mpi/topology.h"

#include <memory>

namespace macadam::mpi {
namespace {

using datatype::Type;

CollectiveCall among_neighbors(const char* name, coll::Collective::Run run,
                               const Communicator& comm, const coll::Blocks& send,
                               const coll::Blocks& receive) {
  const Topology& t = topology(comm);
  CollectiveCall call{name, run, {}, {}};
  call.arguments.send = send;
  call.arguments.receive = receive;
  // The communicator, and with it its topology, lives as long as the operation.
  call.arguments.sources = &t.sources;
  call.arguments.destinations = &t.destinations;
  return call;
}

CollectiveCall neighbor_allgather_call(Process&, Communicator& comm, const void* sendbuf,
                                       MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                                       MPI_Count recvcount, const Type& recvtype) {
  return among_neighbors("neighbor_allgather", &coll::neighbor_allgather, comm,
                         blocks(sendbuf, sendcount, sendtype),
                         blocks(recvbuf, recvcount, recvtype));
}

CollectiveCall neighbor_allgatherv_call(Process&, Communicator& comm, const void* sendbuf,
                                        MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                                        CountArray recvcounts, CountArray displs,
                                        const Type& recvtype) {
  return among_neighbors("neighbor_allgatherv", &coll::neighbor_allgatherv, comm,
                         blocks(sendbuf, sendcount, sendtype),
                         blocks(recvbuf, recvcounts, displs, in_neighbors(comm), recvtype));
}

CollectiveCall neighbor_alltoall_call(Process&, Communicator& comm, const void* sendbuf,
                                      MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                                      MPI_Count recvcount, const Type& recvtype) {
  return among_neighbors("neighbor_alltoall", &coll::neighbor_alltoall, comm,
                         blocks(sendbuf, sendcount, sendtype),
                         blocks(recvbuf, recvcount, recvtype));
}

CollectiveCall neighbor_alltoallv_call(Process&, Communicator& comm, const void* sendbuf,
                                       CountArray sendcounts, CountArray sdispls,
                                       const Type& sendtype, void* recvbuf, CountArray recvcounts,
                                       CountArray rdispls, const Type& recvtype) {
  return among_neighbors("neighbor_alltoallv", &coll::neighbor_alltoallv, comm,
                         blocks(sendbuf, sendcounts, sdispls, out_neighbors(comm), sendtype),
                         blocks(recvbuf, recvcounts, rdispls, in_neighbors(comm), recvtype));
}

CollectiveCall neighbor_alltoallw_call(Process& self, Communicator& comm, const void* sendbuf,
                                       CountArray sendcounts, const MPI_Aint* sdispls,
                                       const MPI_Datatype* sendtypes, void* recvbuf,
                                       CountArray recvcounts, const MPI_Aint* rdispls,
                                       const MPI_Datatype* recvtypes) {
  const int in = in_neighbors(comm), out = out_neighbors(comm);
  const Type& byte = self.types[MPI_BYTE];
  auto arrays = std::make_unique<CollectiveCall::Arrays>();
  arrays->send_types = look_up(self, out, sendtypes, sendcounts);
  arrays->receive_types = look_up(self, in, recvtypes, recvcounts);
  coll::Blocks send = blocks(sendbuf, sendcounts, {sdispls, true}, out, byte);
  coll::Blocks receive = blocks(recvbuf, recvcounts, {rdispls, true}, in, byte);
  send.types = arrays->send_types.data();
  receive.types = arrays->receive_types.data();
  CollectiveCall call =
      among_neighbors("neighbor_alltoallw", &coll::neighbor_alltoallv, comm, send, receive);
  call.arrays = std::move(arrays);
  return call;
}

} // namespace

MACADAM_COLLECTIVE(neighbor_allgather,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));
MACADAM_COLLECTIVE(neighbor_allgatherv,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    CountArray recvcounts, CountArray displs, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype));
MACADAM_COLLECTIVE(neighbor_alltoall,
                   (const void* sendbuf, MPI_Count sendcount, const Type& sendtype, void* recvbuf,
                    MPI_Count recvcount, const Type& recvtype),
                   (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype));
MACADAM_COLLECTIVE(neighbor_alltoallv,
                   (const void* sendbuf, CountArray sendcounts, CountArray sdispls,
                    const Type& sendtype, void* recvbuf, CountArray recvcounts, CountArray rdispls,
                    const Type& recvtype),
                   (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                    recvtype));
MACADAM_COLLECTIVE(neighbor_alltoallw,
                   (const void* sendbuf, CountArray sendcounts, const MPI_Aint sdispls[],
                    const MPI_Datatype sendtypes[], void* recvbuf, CountArray recvcounts,
                    const MPI_Aint rdispls[], const MPI_Datatype recvtypes[]),
                   (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls,
                    recvtypes));

} // namespace macadam::mpi
