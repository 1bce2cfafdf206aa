// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/generalized.h"

#include "mpi/callback.h"
#include "mpi/calls.h"
#include "mpi/process.h"

namespace macadam::mpi {

namespace {

// A generalized request belongs to no communicator, and after its free callback it is gone.
void check_code(int code, const char* callback) {
  if (code == MPI_SUCCESS) return;
  throw OperationError(
      code, fmt::format("the {} callback of the generalized request returned this error", callback),
      {});
}

void destroy_generalized(Process& self, LayerRequest& request) {
  check_code(retire(self, static_cast<Generalized&>(request)), "free");
}

void cancel_generalized(Process& self, LayerRequest& request) {
  auto& generalized = static_cast<Generalized&>(request);
  if (generalized.cancel == nullptr) return;
  const int code = run_callback_unlocked(self, "the cancel callback of a generalized request", [&] {
    return generalized.cancel(generalized.extra_state, generalized.complete ? 1 : 0);
  });
  check_code(code, "cancel");
}

constexpr RequestClass generalized_class{
    .name = "generalized", .destroy = destroy_generalized, .cancel = cancel_generalized};

} // namespace

Generalized::Generalized(MPI_Grequest_query_function* query_fn, MPI_Grequest_free_function* free_fn,
                         MPI_Grequest_cancel_function* cancel_fn, void* state)
    : LayerRequest(engine::Role::generalized, generalized_class), query(query_fn), free(free_fn),
      cancel(cancel_fn), extra_state(state) {}

int query(Generalized& request, MPI_Status* status) {
  MPI_Status answer;
  set_empty(&answer);
  answer.MPI_ERROR = MPI_SUCCESS;
  const int code =
      run_callback_unlocked(anytime(), "the query callback of a generalized request", [&] {
        return request.query == nullptr ? MPI_SUCCESS : request.query(request.extra_state, &answer);
      });
  if (status != MPI_STATUS_IGNORE) {
    set_status(status, answer.MPI_SOURCE, answer.MPI_TAG, bytes(answer), cancelled(answer));
  }
  return code;
}

int retire(Process& self, Generalized& request) {
  const int code = run_callback_unlocked(self, "the free callback of a generalized request", [&] {
    return request.free == nullptr ? MPI_SUCCESS : request.free(request.extra_state);
  });
  give_back(self.instance->requests.generalized, request);
  return code;
}

void grequest_start(Process& self, MPI_Grequest_query_function* query_fn,
                    MPI_Grequest_free_function* free_fn, MPI_Grequest_cancel_function* cancel_fn,
                    void* extra_state, MPI_Request* request) {
  *request =
      handle(*self.instance->requests.generalized.make(query_fn, free_fn, cancel_fn, extra_state));
}

void grequest_complete(Process& self, MPI_Request request) {
  if (request == MPI_REQUEST_NULL || object(request).role != engine::Role::generalized) {
    base::fail(MPI_ERR_REQUEST, "request is not a generalized one; it must come from "
                                "MPI_Grequest_start");
  }
  complete(self, static_cast<Generalized&>(object(request)), {});
}

} // namespace macadam::mpi
