// SPDX-License-Identifier: BSD-3-Clause
// Reduction operations as objects; what they do is in datatype/op.h.
#include "datatype/op.h"

#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/process.h"

namespace macadam::mpi {

using datatype::Op;

void op_create(Library&, UserFunction user_fn, int commute, MPI_Op* op) {
  const auto guard = [](void (*call)(void*), void* argument) {
    run_callback_locked(anytime(), "the function of a reduction operation",
                        [&] { call(argument); });
  };
  const auto make = [&](auto* function) { return new Op(function, commute != 0, guard); };
  *op = std::visit(make, user_fn)->handle();
}

void op_free(Library& self, MPI_Op* op) {
  Op* object = self.find<Op>(*op, base::ObjectKind::op);
  if (object->predefined()) {
    base::fail(MPI_ERR_OP, "{} is predefined; it must not be freed", object->name());
  }
  self.handles.forget(*op);
  if (--object->references == 0)
    delete object; // collectives in flight hold references of their own
  *op = MPI_OP_NULL;
}

void op_commutative(Library&, const Op& op, int* commute) {
  *commute = op.commutative() ? 1 : 0;
}

void reduce_local(Library&, const void* inbuf, void* inoutbuf, MPI_Count count,
                  const datatype::Type& type, const Op& op) {
  if (op.accumulate_only()) {
    base::fail(MPI_ERR_OP, "{} is for one-sided accumulation only", op.name());
  }
  op.check(type);
  if (count > 0) op.apply(inbuf, inoutbuf, count, type);
}

} // namespace macadam::mpi
