// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/error.h"
#include "base/slab.h"
#include "engine/request.h"
#include "mpi/errhandler.h"
#include "mpi/status.h"

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

// What MPI_Wait, MPI_Test, MPI_Start, MPI_Cancel and MPI_Request_free do, by the role of a request.
//
// Sends and receives are the engine's own objects. A send that has finished inside its call has no
// object: its handle is the address of one shared request that is always complete (Role::done).
// Everything else is a LayerRequest: made by this layer, with a RequestClass that says how it is
// started, cancelled and destroyed. (No virtual functions: the kind word of base::Object must be
// the first word behind a handle.)
//
// `Request::owner` is the request's communicator, or null. The request holds a reference to it.
namespace macadam::mpi {

class Process;
struct Communicator;
struct LayerRequest;

// What is done with one sort of LayerRequest. The functions get requests of that sort only.
struct RequestClass {
  const char* name; // "persistent send", for messages and the hang report
  // Takes the memory back. The request is neither active nor in use by anybody.
  void (*destroy)(Process&, LayerRequest&);
  // Role::persistent and partitioned: starts the operation. Null for all others.
  void (*start)(Process&, LayerRequest&) = nullptr;
  // MPI_Cancel of an active one. Null if it must not be cancelled (collectives).
  void (*cancel)(Process&, LayerRequest&) = nullptr;
  // What went wrong with a complete one, for people. Null: nothing more than its error class.
  std::string (*failure)(const LayerRequest&) = nullptr;
  // The engine's operation under way in an active one, if it is one that may leave a copy behind
  // (engine::Engine::leave()). Null: none does.
  engine::Request* (*under_way)(LayerRequest&) = nullptr;
  // Whose error handler answers for it. Null: that of its communicator.
  ErrorSource (*source)(const LayerRequest&) = nullptr;
};

// A request that this layer makes from other operations: persistent, collective, generalized,
// combined sends and receives. To make one: derive from it, keep it in a Slab, and
//   - set `owner` through belongs_to(), if it has a communicator;
//   - call complete() once when an operation (or one run of a persistent one) has finished.
struct LayerRequest : engine::Request {
  LayerRequest(engine::Role what, const RequestClass& how) : engine::Request(what), sort(&how) {}
  const RequestClass* sort;
  // Role::persistent and partitioned: between MPI_Start and the MPI_Wait or MPI_Test that completes
  // the run. An inactive one is `complete` with an empty status, so waiting for it is no special
  // case.
  bool active = false;
  // What went wrong with an operation inside, if one failed: for describe_failure().
  std::string failure;
};

// A persistent request begins inactive. MPI_Start makes it active and not complete, then calls
// sort->start, which calls complete() at once or lets a continuation do it.
struct PersistentRequest : LayerRequest {
  explicit PersistentRequest(const RequestClass& how)
      : LayerRequest(engine::Role::persistent, how) {
    complete = true;
  }
};

// The operation of `request` has finished: whoever waits for it may go on. Destroys it if
// MPI_Request_free came first, so the caller must not use it afterwards.
void complete(Process& self, LayerRequest& request, const engine::Status& status);

[[nodiscard]] inline engine::Request& object(MPI_Request handle) {
  return *reinterpret_cast<engine::Request*>(handle);
}
[[nodiscard]] inline MPI_Request handle(engine::Request& request) {
  return reinterpret_cast<MPI_Request>(&request);
}
[[nodiscard]] inline bool is_complete(MPI_Request request) {
  return request == MPI_REQUEST_NULL || object(request).complete;
}
// The list of a call; `requests` may be null if there are none.
[[nodiscard]] inline std::span<const MPI_Request> listed(int count, const MPI_Request* requests) {
  return {requests, static_cast<std::size_t>(count)};
}
// Nothing to wait for, and not counted by MPI_Waitany and its like: null, or persistent and
// inactive.
[[nodiscard]] inline bool idle(MPI_Request request) {
  if (request == MPI_REQUEST_NULL) return true;
  const engine::Role role = object(request).role;
  return (role == engine::Role::persistent || role == engine::Role::partitioned) &&
         !static_cast<LayerRequest&>(object(request)).active;
}

// Ends a request that is complete: `status` (unless MPI_STATUS_IGNORE) says how; a persistent
// request becomes inactive, any other is given back and its handle becomes MPI_REQUEST_NULL.
// Returns the error code of the operation; the status' MPI_ERROR is left as it was.
int finish(Process& self, MPI_Request* request, MPI_Status* status);

// The same for one request whose error belongs to the call: throws an OperationError that names
// what went wrong.
void finish_or_throw(Process& self, MPI_Request* request, MPI_Status* status);

// What went wrong with a complete request, for people: "message truncated: ...".
[[nodiscard]] std::string describe_failure(const engine::Request& request);
// Whose error handler answers for a request.
[[nodiscard]] ErrorSource source_of(const engine::Request& request);
// Keeps that of `part`, an operation inside `whole`, if it failed.
void describe_within(LayerRequest& whole, engine::Request& part) noexcept;

// Calls end(whole, part) when `part`, an operation inside `whole`, is complete; at once if it is.
template <auto end, class Whole>
void follow(Whole& whole, engine::Request& part) {
  if (part.complete) return end(whole, part);
  part.argument = &whole;
  part.continuation = [](engine::Request& done, void* argument) noexcept {
    end(*static_cast<Whole*>(argument), done);
  };
}

// Gives back a send or receive inside another request, of start_send() or start_receive(), that is
// complete.
void release_part(Process& self, engine::Request& part);

// What MPI_Request_free does: the request goes as soon as its operation has finished.
void free(Process& self, MPI_Request* request);

// Gives a slab's object back and leaves `freed` behind, by which a stale handle is recognised.
template <class T, std::size_t N>
void give_back(base::Slab<T, N>& slab, T& request) {
  slab.free(&request);
  new (static_cast<void*>(&request)) base::Object(base::ObjectKind::freed);
}

} // namespace macadam::mpi
