// SPDX-License-Identifier: BSD-3-Clause
// MPI_Send_init, MPI_Recv_init and their like.
#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/p2p.h"
#include "mpi/process.h"

namespace macadam::mpi {

PersistentMessage::PersistentMessage(const RequestClass& how, Process& process_of,
                                     const Transfer& what, SendForm as)
    : PersistentRequest(how), process(process_of), transfer(what), type(*what.data.type), form(as) {
}

namespace {

using datatype::Type;
using engine::Request;

void end_run(PersistentMessage& persistent, Request& run) {
  persistent.running = nullptr;
  const engine::Status status = run.status;
  describe_within(persistent, run);
  release_part(persistent.process, run);
  complete(persistent.process, persistent, status);
}

// `run` is the operation of this run, null if it is complete already.
void run_with(PersistentMessage& persistent, Request* run) {
  if (run == nullptr) return complete(persistent.process, persistent, {});
  persistent.running = run;
  follow<end_run>(persistent, *run);
}

void start_persistent_send(Process& self, LayerRequest& request) {
  auto& persistent = static_cast<PersistentMessage&>(request);
  run_with(persistent, start_send(self, persistent.transfer, persistent.form));
}

void start_persistent_receive(Process& self, LayerRequest& request) {
  auto& persistent = static_cast<PersistentMessage&>(request);
  if (persistent.transfer.rank == MPI_PROC_NULL) {
    return complete(self, persistent, self.instance->requests.from_nobody.status);
  }
  run_with(persistent, start_receive(self, persistent.transfer));
}

void cancel_run(Process& self, LayerRequest& request) {
  Request* const run = static_cast<PersistentMessage&>(request).running;
  if (run == nullptr) return;
  MPI_Request running = handle(*run);
  cancel(self, &running);
}

Request* send_under_way(LayerRequest& request) {
  return static_cast<PersistentMessage&>(request).running;
}

void destroy_persistent(Process& self, LayerRequest& request) {
  give_back(self.instance->requests.persistent, static_cast<PersistentMessage&>(request));
}

constexpr RequestClass persistent_send{.name = "persistent send",
                                       .destroy = destroy_persistent,
                                       .start = start_persistent_send,
                                       .cancel = cancel_run,
                                       .under_way = send_under_way};
constexpr RequestClass persistent_receive{.name = "persistent receive",
                                          .destroy = destroy_persistent,
                                          .start = start_persistent_receive,
                                          .cancel = cancel_run};

void make(Process& self, const RequestClass& sort, const Transfer& transfer, SendForm form,
          MPI_Request* request) {
  PersistentMessage& made = *self.instance->requests.persistent.make(sort, self, transfer, form);
  belongs_to(made, transfer.comm);
  *request = handle(made);
}

} // namespace

void send_init(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
               Communicator& comm, MPI_Request* request) {
  make(self, persistent_send, {comm, dest, tag, data_of(buf, count, type)}, SendForm::nonblocking,
       request);
}

void ssend_init(Process& self, const void* buf, MPI_Count count, const Type& type, int dest,
                int tag, Communicator& comm, MPI_Request* request) {
  make(self, persistent_send, {comm, dest, tag, data_of(buf, count, type)}, SendForm::synchronous,
       request);
}

void rsend_init(Process& self, const void* buf, MPI_Count count, const Type& type, int dest,
                int tag, Communicator& comm, MPI_Request* request) {
  make(self, persistent_send, {comm, dest, tag, data_of(buf, count, type)}, SendForm::ready,
       request);
}

void bsend_init(Process& self, const void* buf, MPI_Count count, const Type& type, int dest,
                int tag, Communicator& comm, MPI_Request* request) {
  make(self, persistent_send, {comm, dest, tag, data_of(buf, count, type)}, SendForm::buffered,
       request);
}

void recv_init(Process& self, void* buf, MPI_Count count, const Type& type, int source, int tag,
               Communicator& comm, MPI_Request* request) {
  make(self, persistent_receive, {comm, source, tag, data_of(buf, count, type)}, SendForm::standard,
       request);
}

} // namespace macadam::mpi
