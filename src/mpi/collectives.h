// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/slab.h"
#include "coll/check.h"
#include "coll/collective.h"
#include "datatype/op.h"
#include "datatype/type.h"
#include "mpi/communicator.h"
#include "mpi/count_array.h"
#include "mpi/request.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace macadam::mpi {

// A call of a collective with its arguments looked up and checked: what its blocking, nonblocking
// and persistent forms have in common.
struct CollectiveCall {
  // Arrays that `arguments` name and the call itself owns: the datatypes of MPI_Alltoallw, looked
  // up; and, unless it is blocking, the counts and displacements.
  struct Arrays {
    std::vector<const datatype::Type*> send_types;
    std::vector<const datatype::Type*> receive_types;
    std::vector<MPI_Count> counts;
  };

  const char* name; // "barrier", for messages
  coll::Collective::Run run;
  coll::Arguments arguments;
  std::unique_ptr<Arrays> arrays;
  std::unique_ptr<coll::Check> check = nullptr; // if ranks compare what they call
  const char* detail = "";                      // what more they compare and name
};

// The three forms.
void run(Process& self, Communicator& comm, CollectiveCall&& call);
void launch(Process& self, Communicator& comm, CollectiveCall&& call, MPI_Request* request);
void prepare(Process& self, Communicator& comm, CollectiveCall&& call, MPI_Request* request);

// The request of a nonblocking or persistent collective. Holds on to what the user may free
// meanwhile: datatypes, the operation, the communicator.
struct CollectiveRequest : LayerRequest {
  CollectiveRequest(Process& process_of, Communicator& comm, CollectiveCall&& its, engine::Role as,
                    const RequestClass& how);
  ~CollectiveRequest();

  Process& process;
  const CollectiveCall call;
  coll::Collective operation;
  std::vector<datatype::TypeRef> types;
};

// A regular buffer, and one with counts and displacements: arrays of `length` entries, 0 where they
// are not significant. Algorithms may read them until the operation is complete, and no later.
[[nodiscard]] inline coll::Blocks blocks(const void* buffer, MPI_Count count,
                                         const datatype::Type& type) {
  return {const_cast<void*>(buffer), count, &type, {}, {}, nullptr};
}
[[nodiscard]] inline coll::Blocks blocks(const void* buffer, CountArray counts,
                                         CountArray displacements, int length,
                                         const datatype::Type& type) {
  return {const_cast<void*>(buffer),
          0,
          &type,
          {counts.data, counts.large, length},
          {displacements.data, displacements.large, length},
          nullptr};
}

// The datatypes behind an array of handles. Those that go with a count of 0 may be anything.
std::vector<const datatype::Type*> look_up(Process& self, int n, const MPI_Datatype* handles,
                                           CountArray counts);

// MACADAM_CHECK: nothing but a comparison, for functions whose own messages carry none. `detail`:
// of its arguments, what must be the same on all ranks.
void compare_calls(Process& self, Communicator& comm, const char* detail = "");

// Collectives on plain bytes, for making communicators and the like. Blocking; they take their turn
// among the collectives of `comm`, or use `tag` among the ranks of `team`.
void allgather_bytes(Process& self, Communicator& comm, const void* mine, std::size_t bytes,
                     void* all);
void allgather_bytes(Process& self, const engine::Team& team, int tag, const void* mine,
                     std::size_t bytes, void* all);
// As many bytes from each rank as `counts` says, one after the other in `all`.
void allgatherv_bytes(Process& self, Communicator& comm, const void* mine, std::size_t bytes,
                      void* all, const std::vector<MPI_Count>& counts);
// `bytes` bytes to and from each rank; or as many as `given` and `got` say, one after the other.
void alltoall_bytes(Process& self, Communicator& comm, const void* send, std::size_t bytes,
                    void* receive);
void alltoallv_bytes(Process& self, Communicator& comm, const void* send,
                     const std::vector<MPI_Count>& given, void* receive,
                     const std::vector<MPI_Count>& got);
void bcast_bytes(Process& self, Communicator& comm, void* data, std::size_t bytes, int root);
void bcast_bytes(Process& self, const engine::Team& team, int tag, void* data, std::size_t bytes,
                 int root);

} // namespace macadam::mpi
