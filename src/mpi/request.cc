// SPDX-License-Identifier: BSD-3-Clause
// What is done with one request, by its role: start, cancel, free, end.
#include "mpi/request.h"

#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/process.h"

namespace macadam::mpi {

using engine::Request;
using engine::Role;

namespace {

void destroy(Process& self, LayerRequest& request) {
  auto* comm = static_cast<Communicator*>(request.owner);
  request.sort->destroy(self, request);
  if (comm != nullptr) release(self, *comm);
}

// Gives a send or receive of the engine back.
void give_up(Process& self, Request& request) {
  auto* comm = static_cast<Communicator*>(request.owner);
  self.instance->engine->release(&request);
  if (comm != nullptr) release(self, *comm);
}

const char* sort_name(const Request& request) {
  switch (request.role) {
  case Role::done:
    return "finished operation";
  case Role::send:
    return "nonblocking send";
  case Role::receive:
    return "nonblocking receive";
  default:
    return static_cast<const LayerRequest&>(request).sort->name;
  }
}

} // namespace

void complete(Process& self, LayerRequest& request, const engine::Status& status) {
  request.status = status;
  request.complete = true;
  if (request.continuation != nullptr) return request.continuation(request, request.argument);
  if (request.detached) destroy(self, request);
}

int finish(Process& self, MPI_Request* handle, MPI_Status* status) {
  Request& request = object(*handle);
  const int error = request.status.error;
  switch (request.role) {
  case Role::generalized: {
    auto& generalized = static_cast<Generalized&>(request);
    const int query_error = query(generalized, status);
    const int free_error = retire(self, generalized);
    *handle = MPI_REQUEST_NULL;
    return free_error != MPI_SUCCESS ? free_error : query_error; // the last callback's counts
  }
  case Role::done:
    set_status(status, request.status);
    break;
  case Role::send:
  case Role::receive:
    set_status(status, request.status);
    give_up(self, request);
    break;
  case Role::persistent:
  case Role::partitioned: {
    auto& persistent = static_cast<LayerRequest&>(request);
    if (!persistent.active) {
      set_empty(status);
      return MPI_SUCCESS;
    }
    set_status(status, request.status);
    persistent.active = false;
    persistent.status = {};
    persistent.failure.clear();
    return error;
  }
  case Role::collective:
  case Role::combined:
    set_status(status, request.status);
    destroy(self, static_cast<LayerRequest&>(request));
    break;
  }
  *handle = MPI_REQUEST_NULL;
  return error;
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void finish_failed(Process& self, MPI_Request* handle,
                                                          MPI_Status* status) {
  const Request& request = object(*handle);
  const OperationError error(request.status.error, describe_failure(request), source_of(request));
  finish(self, handle, status);
  throw error;
}

} // namespace

void finish_or_throw(Process& self, MPI_Request* handle, MPI_Status* status) {
  if (object(*handle).status.error != MPI_SUCCESS) [[unlikely]]
    finish_failed(self, handle, status);
  const int code = finish(self, handle, status);
  if (code != MPI_SUCCESS) [[unlikely]] {
    throw OperationError(code, "a callback of the generalized request returned this error", {});
  }
}

std::string describe_failure(const Request& request) {
  const engine::Status& how = request.status;
  if (request.role != Role::done && request.role != Role::send && request.role != Role::receive) {
    const auto& layered = static_cast<const LayerRequest&>(request);
    if (!layered.failure.empty()) return layered.failure;
  }
  const auto* comm = static_cast<const Communicator*>(request.owner);
  const std::string where = comm != nullptr ? describe(*comm) : "its communicator";
  if (request.role == Role::receive && how.error == MPI_ERR_TRUNCATE) {
    const auto& receive = static_cast<const engine::ReceiveRequest&>(request);
    if (receive.incoming <= receive.capacity) {
      return fmt::format(
          "message cut short: {} bytes came from rank {} of {} with tag {}, which is "
          "no whole number of elements of {} bytes as the receive's; give sender "
          "and receiver the same datatype",
          receive.incoming, how.source, where, how.tag, receive.granule);
    }
    return fmt::format(
        "message truncated: {} bytes came from rank {} of {} with tag {}, the receive "
        "has room for {} bytes; post a larger receive, or ask for the size with "
        "MPI_Probe",
        receive.incoming, how.source, where, how.tag, receive.capacity);
  }
  if (how.error == MPI_ERR_PROC_ABORTED) {
    const engine::Peer* const peer = engine::Engine::peer_of(request);
    const std::string other =
        peer != nullptr && comm != nullptr
            ? fmt::format(" {} rank {}", request.role == Role::send ? "to" : "from",
                          comm->p2p.peers->find(peer->rank))
            : std::string();
    return fmt::format("a {}{} on {} cannot finish: {}", sort_name(request), other, where,
                       engine::Engine::why_failed(peer));
  }
  if (request.role <= Role::receive && how.error == MPI_ERR_NO_MEM) {
    return fmt::format("a {} on {} cannot finish: the system has no memory for its data inside the "
                       "library; receive messages sooner, or give the process more memory",
                       sort_name(request), where);
  }
  if (request.role == Role::receive && how.error == MPI_ERR_OTHER) {
    return fmt::format("a receive on {} cannot finish: rank {} had no memory inside the library to "
                       "send its data from; give that process more memory",
                       where, how.source);
  }
  if (request.role == Role::collective || request.role == Role::persistent ||
      request.role == Role::partitioned) {
    const auto& layered = static_cast<const LayerRequest&>(request);
    if (layered.sort->failure != nullptr) return layered.sort->failure(layered);
  }
  return fmt::format("a {} on {} failed", sort_name(request), where);
}

ErrorSource source_of(const Request& request) {
  if (request.role > Role::receive) {
    const auto& layered = static_cast<const LayerRequest&>(request);
    if (layered.sort->source != nullptr) return layered.sort->source(layered);
  }
  const auto* comm = static_cast<const Communicator*>(request.owner);
  return comm != nullptr ? source_of(*comm) : ErrorSource{};
}

void describe_within(LayerRequest& whole, Request& part) noexcept {
  if (part.status.error == MPI_SUCCESS) return;
  part.owner = whole.owner;
  try {
    whole.failure = describe_failure(part);
  } catch (const std::bad_alloc&) { // the class says enough
  }
}

void release_part(Process& self, Request& part) {
  if (part.role == Role::send || part.role == Role::receive)
    return self.instance->engine->release(&part);
  part.owner = nullptr; // the whole's
  destroy(self, static_cast<LayerRequest&>(part));
}

void free(Process& self, MPI_Request* handle) {
  Request& request = object(*handle);
  *handle = MPI_REQUEST_NULL;
  switch (request.role) {
  case Role::done:
    return;
  case Role::send:
  case Role::receive:
    if (request.complete) return give_up(self, request);
    request.detached = true;
    request.argument = &self;
    request.continuation = [](Request& done, void* process) noexcept {
      give_up(*static_cast<Process*>(process), done);
    };
    return;
  default:
    if (request.complete) return destroy(self, static_cast<LayerRequest&>(request));
    request.detached = true;
  }
}

void request_free(Process& self, MPI_Request* request) {
  if (*request == MPI_REQUEST_NULL) {
    base::fail(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL; there is nothing to free");
  }
  // The buffer is the sender's to write to until the round is over.
  if (object(*request).role == Role::partitioned && !idle(*request)) {
    base::fail(MPI_ERR_REQUEST,
               "the {} is active; complete it with MPI_Wait or MPI_Test before it is freed",
               sort_name(object(*request)));
  }
  free(self, request);
}

void cancel(Process& self, MPI_Request* handle) {
  if (*handle == MPI_REQUEST_NULL) {
    base::fail(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL; there is nothing to cancel");
  }
  Request& request = object(*handle);
  switch (request.role) {
  case Role::done:
    return;
  case Role::send:
    return self.instance->engine->cancel(static_cast<engine::SendRequest&>(request));
  case Role::receive:
    return self.instance->engine->cancel(static_cast<engine::ReceiveRequest&>(request));
  default:
    break;
  }
  auto& layered = static_cast<LayerRequest&>(request);
  if (idle(*handle)) {
    base::fail(MPI_ERR_REQUEST,
               "the {} request is not active; only an operation that was started "
               "can be cancelled",
               layered.sort->name);
  }
  if (layered.sort->cancel == nullptr) {
    base::fail(MPI_ERR_REQUEST, "a {} operation cannot be cancelled; wait for it",
               layered.sort->name);
  }
  layered.sort->cancel(self, layered);
}

void start(Process& self, MPI_Request* handle) {
  if (*handle == MPI_REQUEST_NULL) {
    base::fail(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL; make one with MPI_Send_init, "
                                "MPI_Recv_init or another MPI_*_init");
  }
  Request& request = object(*handle);
  if (request.role != Role::persistent && request.role != Role::partitioned) {
    base::fail(MPI_ERR_REQUEST, "a {} cannot be started; only requests of MPI_*_init functions can",
               sort_name(request));
  }
  auto& persistent = static_cast<LayerRequest&>(request);
  if (persistent.active) {
    base::fail(MPI_ERR_REQUEST,
               "the {} request is active already; complete it first with MPI_Wait "
               "or MPI_Test",
               persistent.sort->name);
  }
  persistent.active = true;
  persistent.complete = false;
  try {
    persistent.sort->start(self, persistent);
  } catch (...) {
    persistent.active = false;
    persistent.complete = true;
    throw;
  }
}

void startall(Process& self, int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    try {
      start(self, &requests[i]);
    } catch (const base::Error& error) {
      throw OperationError(error.error_class,
                           fmt::format("request {} of the list: {}", i, error.text),
                           {.request = requests[i]});
    }
  }
}

void test_cancelled(Process&, const MPI_Status* status, int* flag) {
  *flag = cancelled(*status);
}

} // namespace macadam::mpi
