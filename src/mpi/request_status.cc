// SPDX-License-Identifier: BSD-3-Clause
// MPI_Request_get_status and its any, some and all forms: like MPI_Test, but the requests stay as
// they are. The error of an operation is left to the call that will complete it.
#include "mpi/calls.h"
#include "mpi/process.h"
#include "mpi/request.h"

#include <span>

namespace macadam::mpi {

namespace {

void show(MPI_Request request, MPI_Status* status) {
  if (idle(request)) return set_empty(status);
  engine::Request& shown = object(request);
  if (shown.role != engine::Role::generalized) return set_status(status, shown.status);
  const int code = query(static_cast<Generalized&>(shown), status);
  if (code != MPI_SUCCESS) {
    base::fail(code, "the query callback of the generalized request returned this error");
  }
}

// Looks, makes progress once if there is nothing to see, and looks again.
template <class Look>
auto look_twice(Process& self, std::span<const MPI_Request> requests, Instance::Awaits awaits,
                Look&& look) {
  auto seen = look();
  if (!seen) {
    self.instance->look(requests, awaits);
    seen = look();
  }
  return seen;
}

} // namespace

void request_get_status(Process& self, MPI_Request request, int* flag, MPI_Status* status) {
  *flag =
      look_twice(self, {&request, 1}, Instance::Awaits::all, [&] { return is_complete(request); });
  if (*flag) show(request, status);
}

void request_get_status_all(Process& self, int count, const MPI_Request* requests, int* flag,
                            MPI_Status* statuses) {
  *flag = look_twice(self, listed(count, requests), Instance::Awaits::all, [&] {
    for (int i = 0; i < count; ++i) {
      if (!is_complete(requests[i])) return false;
    }
    return true;
  });
  if (!*flag) return;
  for (int i = 0; i < count; ++i)
    show(requests[i], status_of(statuses, i));
}

void request_get_status_any(Process& self, int count, const MPI_Request* requests, int* index,
                            int* flag, MPI_Status* status) {
  *flag = look_twice(self, listed(count, requests), Instance::Awaits::any, [&] {
    bool any_live = false;
    for (int i = 0; i < count; ++i) {
      if (idle(requests[i])) continue;
      any_live = true;
      if (object(requests[i]).complete) {
        *index = i;
        return true;
      }
    }
    *index = MPI_UNDEFINED;
    return !any_live;
  });
  if (*flag) show(*index == MPI_UNDEFINED ? MPI_REQUEST_NULL : requests[*index], status);
}

void request_get_status_some(Process& self, int count, const MPI_Request* requests, int* outcount,
                             int* indices, MPI_Status* statuses) {
  look_twice(self, listed(count, requests), Instance::Awaits::any, [&] {
    bool any_live = false;
    *outcount = 0;
    for (int i = 0; i < count; ++i) {
      if (idle(requests[i])) continue;
      any_live = true;
      if (object(requests[i]).complete) indices[(*outcount)++] = i;
    }
    if (!any_live) *outcount = MPI_UNDEFINED;
    return *outcount != 0;
  });
  for (int k = 0; k < *outcount; ++k)
    show(requests[indices[k]], status_of(statuses, k));
}

} // namespace macadam::mpi
