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

// The user's operation and datatype must go together; memory that is read and written at once is
// MPI_IN_PLACE's business.
void check(const void* sendbuf, const void* recvbuf, MPI_Count count, const Type& type,
           const Op& op) {
  if (op.accumulate_only()) [[unlikely]] {
    base::fail(MPI_ERR_OP, "op is {}, which is for MPI_Accumulate and its like only", op.name());
  }
  op.check(type);
  if (sendbuf == recvbuf && sendbuf != nullptr && count > 0) [[unlikely]] {
    base::fail(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same memory ({}); give MPI_IN_PLACE as "
                               "sendbuf to reduce in place", sendbuf);
  }
}

CollectiveCall allreduce_call(Process&, Communicator&, const void* sendbuf, void* recvbuf,
                              MPI_Count count, const Type& type, const Op& op) {
  check(sendbuf, recvbuf, count, type, op);
  CollectiveCall call{"allreduce", &coll::allreduce, {}, {}};
  call.arguments.in_place = sendbuf == MPI_IN_PLACE;
  call.arguments.send = blocks(sendbuf, count, type);
  call.arguments.receive = blocks(recvbuf, count, type);
  call.arguments.op = &op;
  return call;
}

}  // namespace

MACADAM_COLLECTIVE(allreduce,
                   (const void* sendbuf, void* recvbuf, MPI_Count count, const Type& datatype,
                    const Op& op),
                   (sendbuf, recvbuf, count, datatype, op));

}  // namespace macadam::mpi
