// SPDX-License-Identifier: BSD-3-Clause
// The collectives that combine data: MPI's rules about their arguments.
#include "coll/operations.h"
#include "mpi/calls.h"
#include "mpi/collective_forms.h"
#include "mpi/collectives.h"
#include "mpi/process.h"

namespace macadam::mpi {
namespace {

using datatype::Op;
using datatype::Type;

// The operation must be one for reductions and go with the datatype.
void check(const Op& op, const Type& type) {
  if (op.accumulate_only()) [[unlikely]] {
    base::fail(MPI_ERR_OP, "op is {}, which is for MPI_Accumulate and its like only", op.name());
  }
  op.check(type);
}

void check_apart(const void* sendbuf, const void* recvbuf, MPI_Count count) {
  if (sendbuf == recvbuf && sendbuf != nullptr && count > 0) [[unlikely]] {
    base::fail(MPI_ERR_BUFFER,
               "sendbuf and recvbuf are the same memory ({}); give MPI_IN_PLACE as "
               "sendbuf to reduce in place",
               sendbuf);
  }
}

CollectiveCall combining(const char* name, coll::Collective::Run run, const void* sendbuf,
                         void* recvbuf, MPI_Count count, const Type& type, const Op& op) {
  check(op, type);
  CollectiveCall call{name, run, {}, {}};
  call.arguments.in_place = sendbuf == MPI_IN_PLACE;
  call.arguments.send = blocks(sendbuf, count, type);
  call.arguments.receive = blocks(recvbuf, count, type);
  call.arguments.op = &op;
  return call;
}

CollectiveCall reduce_call(Process&, Communicator& comm, const void* sendbuf, void* recvbuf,
                           MPI_Count count, const Type& type, const Op& op, int root) {
  if (!comm.inter() && root == comm.rank()) check_apart(sendbuf, recvbuf, count);
  CollectiveCall call = combining("reduce", &coll::reduce, sendbuf, recvbuf, count, type, op);
  call.arguments.root = root;
  return call;
}

CollectiveCall allreduce_call(Process&, Communicator&, const void* sendbuf, void* recvbuf,
                              MPI_Count count, const Type& type, const Op& op) {
  check_apart(sendbuf, recvbuf, count);
  return combining("allreduce", &coll::allreduce, sendbuf, recvbuf, count, type, op);
}

CollectiveCall reduce_scatter_block_call(Process&, Communicator&, const void* sendbuf,
                                         void* recvbuf, MPI_Count recvcount, const Type& type,
                                         const Op& op) {
  check_apart(sendbuf, recvbuf, recvcount);
  return combining("reduce_scatter_block", &coll::reduce_scatter, sendbuf, recvbuf, recvcount, type,
                   op);
}

CollectiveCall reduce_scatter_call(Process&, Communicator& comm, const void* sendbuf, void* recvbuf,
                                   CountArray recvcounts, const Type& type, const Op& op) {
  const auto rank = static_cast<std::size_t>(comm.rank());
  check_apart(sendbuf, recvbuf, recvcounts[rank]);
  CollectiveCall call =
      combining("reduce_scatter", &coll::reduce_scatter, sendbuf, recvbuf, 0, type, op);
  call.arguments.send.counts = {recvcounts.data, recvcounts.large, comm.size()};
  return call;
}

void refuse_inter(const Communicator& comm) {
  if (comm.inter()) [[unlikely]] {
    base::fail(MPI_ERR_COMM,
               "{} is an intercommunicator, whose ranks have no common order to scan "
               "by; merge its groups with MPI_Intercomm_merge",
               describe(comm));
  }
}

CollectiveCall scan_call(Process&, Communicator& comm, const void* sendbuf, void* recvbuf,
                         MPI_Count count, const Type& type, const Op& op) {
  refuse_inter(comm);
  check_apart(sendbuf, recvbuf, count);
  return combining("scan", &coll::scan, sendbuf, recvbuf, count, type, op);
}

CollectiveCall exscan_call(Process&, Communicator& comm, const void* sendbuf, void* recvbuf,
                           MPI_Count count, const Type& type, const Op& op) {
  refuse_inter(comm);
  if (comm.rank() != 0) check_apart(sendbuf, recvbuf, count); // there it is not significant
  return combining("exscan", &coll::exscan, sendbuf, recvbuf, count, type, op);
}

} // namespace

MACADAM_COLLECTIVE(reduce,
                   (const void* sendbuf, void* recvbuf, MPI_Count count, const Type& datatype,
                    const Op& op, int root),
                   (sendbuf, recvbuf, count, datatype, op, root));
MACADAM_COLLECTIVE(allreduce,
                   (const void* sendbuf, void* recvbuf, MPI_Count count, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, count, datatype, op));
MACADAM_COLLECTIVE(reduce_scatter,
                   (const void* sendbuf, void* recvbuf, CountArray recvcounts, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, recvcounts, datatype, op));
MACADAM_COLLECTIVE(reduce_scatter_block,
                   (const void* sendbuf, void* recvbuf, MPI_Count recvcount, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, recvcount, datatype, op));
MACADAM_COLLECTIVE(scan,
                   (const void* sendbuf, void* recvbuf, MPI_Count count, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, count, datatype, op));
MACADAM_COLLECTIVE(exscan,
                   (const void* sendbuf, void* recvbuf, MPI_Count count, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, count, datatype, op));

} // namespace macadam::mpi
