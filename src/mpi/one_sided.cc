// SPDX-License-Identifier: BSD-3-Clause
// Put, get, accumulate and their like.
#include "base/copy.h"
#include "datatype/op.h"
#include "mpi/calls.h"
#include "mpi/checked_message.h"
#include "mpi/communicator.h"
#include "mpi/p2p.h"
#include "mpi/process.h"
#include "mpi/window.h"

#include <cstring>

namespace macadam::mpi {

using datatype::Type;

namespace {

void destroy(Process& self, LayerRequest& request) {
  give_back(self.instance->windows.accesses, static_cast<AccessRequest&>(request));
}

constexpr RequestClass access_class{.name = "one-sided access", .destroy = destroy};

// Whether both sides are one block of the same size: then it is moved by a copy, if the target's
// memory is there.
bool is_simple(MPI_Count origin_count, const Type& origin, MPI_Count target_count,
               const Type& target) {
  MPI_Count ours = 0, theirs = 0;
  return origin.contiguous() && target.contiguous() &&
         !__builtin_mul_overflow(origin_count, origin.size(), &ours) &&
         !__builtin_mul_overflow(target_count, target.size(), &theirs) && ours == theirs;
}

// One store or load where the machine has one, so that nobody sees half of an element.
inline void copy(void* to, const void* from, std::size_t bytes) {
  switch (bytes) {
  case 8:
    std::memcpy(to, from, 8);
    return;
  case 4:
    std::memcpy(to, from, 4);
    return;
  default:
    base::copy(to, from, bytes);
  }
}

// The long ways are functions of their own, with the same arguments: so the short ones, copies,
// save no registers.
[[gnu::noinline]] void put_in_parts(Process& self, const void* origin, MPI_Count origin_count,
                                    const Type& origin_type, int rank, MPI_Aint displacement,
                                    MPI_Count count, const Type& type, Window& win) {
  if (self.settings.check) check_access(origin_count, origin_type, count, type);
  win.rma.put(data_of(origin, origin_count, origin_type), {rank, displacement, count, &type},
              nullptr);
}

[[gnu::noinline]] void get_in_parts(Process& self, void* origin, MPI_Count origin_count,
                                    const Type& origin_type, int rank, MPI_Aint displacement,
                                    MPI_Count count, const Type& type, Window& win) {
  if (self.settings.check) check_access(origin_count, origin_type, count, type);
  win.rma.get(data_of(origin, origin_count, origin_type), {rank, displacement, count, &type},
              nullptr);
}

// Begins an access whose request the user gets.
template <class Begin>
void with_request(Process& self, Window& win, MPI_Request* request, Begin&& begin) {
  AccessRequest& made = *self.instance->windows.accesses.make(self, win);
  try {
    if (!begin(&made)) {
      belongs_to(made, *win.comm);
      *request = handle(made);
      return;
    }
  } catch (...) {
    // What was posted before the failure still counts down in it.
    made.detached = true;
    if (!made.under_way()) give_back(self.instance->windows.accesses, made);
    throw;
  }
  give_back(self.instance->windows.accesses, made);
  *request = handle(self.instance->requests.done);
}

} // namespace

AccessRequest::AccessRequest(Process& self, Window&)
    : LayerRequest(engine::Role::combined, access_class), process(self) {}

void AccessRequest::finished(bool ok) {
  engine::Status how;
  how.error = ok ? MPI_SUCCESS : MPI_ERR_PROC_ABORTED;
  mpi::complete(process, *this, how);
}

void put(Process& self, const void* origin, MPI_Count origin_count, const Type& origin_type,
         int rank, MPI_Aint displacement, MPI_Count count, const Type& type, Window& win) {
  if (rank == MPI_PROC_NULL) [[unlikely]]
    return;
  if (is_simple(origin_count, origin_type, count, type)) [[likely]] {
    const auto bytes = static_cast<std::size_t>(origin_count * origin_type.size());
    if (void* const to = win.rma.direct(rank, displacement, bytes, true)) [[likely]] {
      copy(to, origin, bytes);
      return;
    }
  }
  put_in_parts(self, origin, origin_count, origin_type, rank, displacement, count, type, win);
}

void get(Process& self, void* origin, MPI_Count origin_count, const Type& origin_type, int rank,
         MPI_Aint displacement, MPI_Count count, const Type& type, Window& win) {
  if (rank == MPI_PROC_NULL) [[unlikely]]
    return;
  if (is_simple(origin_count, origin_type, count, type)) [[likely]] {
    const auto bytes = static_cast<std::size_t>(origin_count * origin_type.size());
    if (const void* const from = win.rma.direct(rank, displacement, bytes, false)) [[likely]] {
      copy(origin, from, bytes);
      return;
    }
  }
  get_in_parts(self, origin, origin_count, origin_type, rank, displacement, count, type, win);
}

void rput(Process& self, const void* origin, MPI_Count origin_count, const Type& origin_type,
          int rank, MPI_Aint displacement, MPI_Count count, const Type& type, Window& win,
          MPI_Request* request) {
  *request = handle(self.instance->requests.done);
  if (rank == MPI_PROC_NULL) return;
  win.rma.check_request("MPI_Rput");
  if (self.settings.check) check_access(origin_count, origin_type, count, type);
  with_request(self, win, request, [&](rma::Operation* operation) {
    return win.rma.put(data_of(origin, origin_count, origin_type),
                       {rank, displacement, count, &type}, operation);
  });
}

void rget(Process& self, void* origin, MPI_Count origin_count, const Type& origin_type, int rank,
          MPI_Aint displacement, MPI_Count count, const Type& type, Window& win,
          MPI_Request* request) {
  *request = handle(self.instance->requests.done);
  if (rank == MPI_PROC_NULL) return;
  win.rma.check_request("MPI_Rget");
  if (self.settings.check) check_access(origin_count, origin_type, count, type);
  with_request(self, win, request, [&](rma::Operation* operation) {
    return win.rma.get(data_of(origin, origin_count, origin_type),
                       {rank, displacement, count, &type}, operation);
  });
}

// --- Accumulates. Under locks they are complete at the origin at once, so their requests are.

void accumulate(Process&, const void* origin, MPI_Count origin_count, const Type& origin_type,
                int rank, MPI_Aint displacement, MPI_Count count, const Type& type,
                const datatype::Op& op, Window& win) {
  if (rank == MPI_PROC_NULL) return;
  if (op.handle() == MPI_NO_OP) {
    base::fail(MPI_ERR_OP, "op is MPI_NO_OP, which only returns what is there; give one that "
                           "changes it, or call MPI_Get_accumulate or MPI_Fetch_and_op");
  }
  if (&origin_type == &type && origin_count == count &&
      win.rma.accumulate_directly(origin, nullptr, count, type, rank, displacement, op))
    return;
  win.rma.accumulate(data_of(origin, origin_count, origin_type), nullptr,
                     {rank, displacement, count, &type}, op);
}

void raccumulate(Process& self, const void* origin, MPI_Count origin_count, const Type& origin_type,
                 int rank, MPI_Aint displacement, MPI_Count count, const Type& type,
                 const datatype::Op& op, Window& win, MPI_Request* request) {
  *request = handle(self.instance->requests.done);
  if (rank != MPI_PROC_NULL) win.rma.check_request("MPI_Raccumulate");
  accumulate(self, origin, origin_count, origin_type, rank, displacement, count, type, op, win);
}

void get_accumulate(Process&, const void* origin, MPI_Count origin_count, const Type& origin_type,
                    void* result, MPI_Count result_count, const Type& result_type, int rank,
                    MPI_Aint displacement, MPI_Count count, const Type& type,
                    const datatype::Op& op, Window& win) {
  if (rank == MPI_PROC_NULL) return;
  const bool gives_the_same =
      op.handle() == MPI_NO_OP || (&origin_type == &type && origin_count == count);
  if (gives_the_same && &result_type == &type && result_count == count &&
      win.rma.accumulate_directly(origin, result, count, type, rank, displacement, op))
    return;
  const engine::Data into = data_of(result, result_count, result_type);
  win.rma.accumulate(data_of(origin, origin_count, origin_type), &into,
                     {rank, displacement, count, &type}, op);
}

void rget_accumulate(Process& self, const void* origin, MPI_Count origin_count,
                     const Type& origin_type, void* result, MPI_Count result_count,
                     const Type& result_type, int rank, MPI_Aint displacement, MPI_Count count,
                     const Type& type, const datatype::Op& op, Window& win, MPI_Request* request) {
  *request = handle(self.instance->requests.done);
  if (rank != MPI_PROC_NULL) win.rma.check_request("MPI_Rget_accumulate");
  get_accumulate(self, origin, origin_count, origin_type, result, result_count, result_type, rank,
                 displacement, count, type, op, win);
}

void fetch_and_op(Process&, const void* origin, void* result, const Type& type, int rank,
                  MPI_Aint displacement, const datatype::Op& op, Window& win) {
  if (rank == MPI_PROC_NULL) return;
  if (win.rma.accumulate_directly(origin, result, 1, type, rank, displacement, op)) return;
  const engine::Data into = data_of(result, 1, type);
  win.rma.accumulate(data_of(origin, 1, type), &into, {rank, displacement, 1, &type}, op);
}

void compare_and_swap(Process&, const void* origin, const void* compare, void* result,
                      const Type& type, int rank, MPI_Aint displacement, Window& win) {
  if (rank == MPI_PROC_NULL) return;
  if (win.rma.compare_and_swap_directly(origin, compare, result, type, rank, displacement)) return;
  win.rma.compare_and_swap(origin, compare, result, {rank, displacement, 1, &type});
}

} // namespace macadam::mpi
