// SPDX-License-Identifier: BSD-3-Clause
// MPI_Wait, MPI_Test and their any, some and all forms.
#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/process.h"
#include "mpi/request.h"

#include <vector>

namespace macadam::mpi {

using engine::Request;
using engine::Role;
using Awaits = Instance::Awaits;

namespace {

// finish() for the two roles that are worth a shortcut; the request is complete and has no error.
inline void finish_good(Process& self, MPI_Request* handle, MPI_Status* status) {
  Request& request = object(*handle);
  if (request.role == Role::done) {
    set_status(status, request.status);
    *handle = MPI_REQUEST_NULL;
  } else if (request.role == Role::receive) {
    set_status(status, request.status);
    auto* comm = static_cast<Communicator*>(request.owner);
    self.instance->engine->release(&request);
    if (comm != nullptr) release(self, *comm);
    *handle = MPI_REQUEST_NULL;
  } else {
    finish(self, handle, status);
  }
}

// Collects the outcomes of several requests: with one that failed, the call returns
// MPI_ERR_IN_STATUS and every status says how its own operation went.
class Outcomes {
 public:
  Outcomes(Process& self, int count, MPI_Status* statuses)
      : self_(self), statuses_(statuses), codes_(static_cast<std::size_t>(count), MPI_SUCCESS) {}

  // Ends a complete request; its status goes to place `i`.
  void finish(MPI_Request* handle, int i) {
    const Request& request = object(*handle);
    if (request.status.error != MPI_SUCCESS && text_.empty()) {
      text_ = fmt::format("operation {} of the list: {}", i, describe_failure(request));
      source_ = source_of(request);
    }
    const int error = mpi::finish(self_, handle, status_of(statuses_, i));
    if (error != MPI_SUCCESS && text_.empty()) {
      text_ =
          fmt::format("operation {} of the list: a callback of the generalized request returned "
                      "error {}",
                      i, error);
    }
    note(i, error);
  }

  void note(int i, int error) { codes_[static_cast<std::size_t>(i)] = error; }

  void raise_if_failed() const {
    if (text_.empty()) return;
    if (statuses_ != MPI_STATUSES_IGNORE) {
      for (std::size_t i = 0; i < codes_.size(); ++i)
        statuses_[i].MPI_ERROR = codes_[i];
    }
    throw OperationError(MPI_ERR_IN_STATUS, text_, source_);
  }

 private:
  Process& self_;
  MPI_Status* statuses_;
  std::vector<int> codes_;
  std::string text_;
  ErrorSource source_;
};

// MPI_ERROR of the statuses is written only if an operation failed, so errors are looked for first.
// `indices` are the places of the complete requests in the list.
void finish_some(Process& self, MPI_Request* requests, const int* indices, int count,
                 MPI_Status* statuses) {
  bool careful = false;
  for (int k = 0; k < count; ++k) {
    const Request& request = object(requests[indices[k]]);
    careful |= request.status.error != MPI_SUCCESS || request.role == Role::generalized;
  }
  if (!careful) {
    for (int k = 0; k < count; ++k)
      finish_good(self, &requests[indices[k]], status_of(statuses, k));
    return;
  }
  Outcomes outcomes(self, count, statuses);
  for (int k = 0; k < count; ++k)
    outcomes.finish(&requests[indices[k]], k);
  outcomes.raise_if_failed();
}

inline bool all_complete(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (!is_complete(requests[i])) return false;
  }
  return true;
}

// Whether an operation of the list has failed because a process is gone.
[[gnu::cold, gnu::noinline]] bool any_gone(int count, const MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL && object(requests[i]).complete &&
        object(requests[i]).status.error == MPI_ERR_PROC_ABORTED)
      return true;
  }
  return false;
}

// An operation of a list to be completed failed, requests[first] at the earliest; those before have
// been ended. The others are waited for, unless a process is gone: then the program gets its word
// now, with MPI_ERR_PENDING for what could hang.
[[gnu::cold, gnu::noinline]] void finish_all_failed(Process& self, int count, int first,
                                                    MPI_Request* requests, MPI_Status* statuses) {
  self.instance->wait_until(
      [&] { return all_complete(count, requests) || any_gone(count, requests); });
  Outcomes outcomes(self, count, statuses);
  for (int i = first; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) {
      set_empty(status_of(statuses, i));
    } else if (object(requests[i]).complete) {
      outcomes.finish(&requests[i], i);
    } else {
      outcomes.note(i, MPI_ERR_PENDING);
    }
  }
  outcomes.raise_if_failed();
}

// Ends requests from `next` on for as long as they are complete and have not failed. True if it
// came to the end of the list or to a request that needs finish_all_failed().
inline bool finish_leading(Process& self, int count, int& next, MPI_Request* requests,
                           MPI_Status* statuses) {
  for (; next < count; ++next) {
    MPI_Request* const handle = &requests[next];
    if (*handle == MPI_REQUEST_NULL) {
      set_empty(status_of(statuses, next));
      continue;
    }
    const Request& request = object(*handle);
    if (!request.complete) return false;
    if (request.status.error != MPI_SUCCESS || request.role == Role::generalized) [[unlikely]]
      return true;
    finish_good(self, handle, status_of(statuses, next));
  }
  return true;
}

// The first request of the list that can be ended; MPI_UNDEFINED if there is none. `any_live` is
// whether there is something to wait for at all.
inline int find_complete(int count, const MPI_Request* requests, bool& any_live) {
  any_live = false;
  for (int i = 0; i < count; ++i) {
    if (idle(requests[i])) continue;
    any_live = true;
    if (object(requests[i]).complete) return i;
  }
  return MPI_UNDEFINED;
}

// The places of all requests that can be ended. MPI_UNDEFINED if there is nothing to wait for.
inline int find_all_complete(int count, const MPI_Request* requests, int* indices) {
  int found = 0;
  bool any_live = false;
  for (int i = 0; i < count; ++i) {
    if (idle(requests[i])) continue;
    any_live = true;
    if (object(requests[i]).complete) indices[found++] = i;
  }
  return any_live ? found : MPI_UNDEFINED;
}

} // namespace

void wait(Process& self, MPI_Request* request, MPI_Status* status) {
  if (*request == MPI_REQUEST_NULL) {
    set_empty(status);
    return;
  }
  const Request& waited = object(*request);
  if (!waited.complete)
    self.instance->wait_or_leave({request, 1}, Awaits::all, [&] { return waited.complete; });
  finish_or_throw(self, request, status);
}

void waitall(Process& self, int count, MPI_Request* requests, MPI_Status* statuses) {
  int next = 0;
  const engine::Engine& engine = *self.instance->engine;
  self.instance->wait_or_leave(listed(count, requests), Awaits::all, [&] {
    return finish_leading(self, count, next, requests, statuses) ||
           (engine.any_failed() && any_gone(count, requests));
  });
  if (next < count) [[unlikely]]
    finish_all_failed(self, count, next, requests, statuses);
}

void waitany(Process& self, int count, MPI_Request* requests, int* index, MPI_Status* status) {
  bool any_live = false;
  self.instance->wait_or_leave(listed(count, requests), Awaits::any, [&] {
    *index = find_complete(count, requests, any_live);
    return *index != MPI_UNDEFINED || !any_live;
  });
  if (*index == MPI_UNDEFINED) return set_empty(status);
  finish_or_throw(self, &requests[*index], status);
}

void waitsome(Process& self, int count, MPI_Request* requests, int* outcount, int* indices,
              MPI_Status* statuses) {
  self.instance->wait_or_leave(listed(count, requests), Awaits::any, [&] {
    *outcount = find_all_complete(count, requests, indices);
    return *outcount != 0;
  });
  if (*outcount != MPI_UNDEFINED) finish_some(self, requests, indices, *outcount, statuses);
}

void test(Process& self, MPI_Request* request, int* flag, MPI_Status* status) {
  if (!is_complete(*request)) self.instance->look({request, 1});
  *flag = is_complete(*request);
  if (!*flag) return;
  if (*request == MPI_REQUEST_NULL) return set_empty(status);
  finish_or_throw(self, request, status);
}

void testall(Process& self, int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (!all_complete(count, requests)) self.instance->look(listed(count, requests));
  *flag = all_complete(count, requests);
  if (!*flag && !(self.instance->engine->any_failed() && any_gone(count, requests))) return;
  int next = 0;
  finish_leading(self, count, next, requests, statuses);
  if (next < count) [[unlikely]]
    finish_all_failed(self, count, next, requests, statuses);
}

void testany(Process& self, int count, MPI_Request* requests, int* index, int* flag,
             MPI_Status* status) {
  bool any_live = false;
  *index = find_complete(count, requests, any_live);
  if (*index == MPI_UNDEFINED && any_live) {
    self.instance->look(listed(count, requests), Awaits::any);
    *index = find_complete(count, requests, any_live);
  }
  *flag = *index != MPI_UNDEFINED || !any_live;
  if (*index != MPI_UNDEFINED) {
    finish_or_throw(self, &requests[*index], status);
  } else if (*flag) {
    set_empty(status);
  }
}

void testsome(Process& self, int count, MPI_Request* requests, int* outcount, int* indices,
              MPI_Status* statuses) {
  *outcount = find_all_complete(count, requests, indices);
  if (*outcount == 0) {
    self.instance->look(listed(count, requests), Awaits::any);
    *outcount = find_all_complete(count, requests, indices);
  }
  if (*outcount != MPI_UNDEFINED) finish_some(self, requests, indices, *outcount, statuses);
}

} // namespace macadam::mpi
