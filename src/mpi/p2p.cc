// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives, blocking and nonblocking.
#include "mpi/p2p.h"

#include "mpi/buffered.h"
#include "mpi/calls.h"
#include "mpi/checked_message.h"
#include "mpi/communicator.h"
#include "mpi/process.h"

namespace macadam::mpi {

using datatype::Type;
using engine::Data;
using engine::Envelope;
using engine::ReceiveRequest;
using engine::Request;
using engine::SendMode;

namespace {

// What cannot take the short path, as nothing can with MACADAM_CHECK. Not as a Transfer: that would
// be written to memory by whoever calls this, before the short path is tried.
[[gnu::noinline]] Request* send_long(Process& self, const void* buffer, MPI_Count count,
                                     const Type& type, int dest, int tag, Communicator& comm,
                                     SendMode mode, const Data* packed_from) {
  const Data data = data_of(buffer, count, type);
  if (self.settings.check) [[unlikely]]
    return start_checked_send(self, {comm, dest, tag, data, packed_from}, mode);
  engine::Engine& engine = *self.instance->engine;
  return engine.send_long(comm.peer(engine, dest), {comm.p2p.context, comm.p2p.rank, tag}, data,
                          data.bytes(), mode);
}

[[gnu::noinline]] Request* receive_long(Process& self, void* buffer, MPI_Count count,
                                        const Type& type, int source, int tag, Communicator& comm) {
  const Data data = data_of(buffer, count, type);
  if (self.settings.check) [[unlikely]]
    return start_checked_receive(self, {comm, source, tag, data});
  engine::Engine& engine = *self.instance->engine;
  engine::Peer* const peer = source == MPI_ANY_SOURCE ? nullptr : &comm.peer(engine, source);
  return engine.receive_long(peer, {comm.p2p.context, source, tag}, data);
}
[[gnu::always_inline]] inline Request* receive_long(Process& self, const Transfer& transfer) {
  return receive_long(self, transfer.data.address, transfer.data.count, *transfer.data.type,
                      transfer.rank, transfer.tag, transfer.comm);
}

// In every sending and receiving function, so that what the call names stays in registers.
[[gnu::always_inline]] inline Request* begin_send(Process& self, const Transfer& transfer,
                                                  SendForm form) {
  if (transfer.rank == MPI_PROC_NULL) [[unlikely]]
    return nullptr;
  const Communicator& comm = transfer.comm;
  engine::Engine& engine = *self.instance->engine;
  engine::Peer& peer = comm.peer(engine, transfer.rank);
  const Envelope envelope{comm.p2p.context, comm.p2p.rank, transfer.tag};
  if (form == SendForm::buffered) [[unlikely]] {
    buffer_for(self, transfer.comm).send(peer, envelope, transfer.data);
    return nullptr;
  }
  const SendMode mode = form == SendForm::synchronous   ? SendMode::synchronous
                        : form == SendForm::exchange    ? SendMode::exchange
                        : form == SendForm::nonblocking ? SendMode::nonblocking
                        : form == SendForm::blocking    ? SendMode::blocking
                                                        : SendMode::standard;
  if (engine.send_at_once(peer, envelope, transfer.data, mode)) [[likely]]
    return nullptr;
  return send_long(self, transfer.data.address, transfer.data.count, *transfer.data.type,
                   transfer.rank, transfer.tag, transfer.comm, mode, transfer.packed_from);
}

// Null if the receive cannot take the short path.
[[gnu::always_inline]] inline ReceiveRequest* receive_short(Process& self,
                                                            const Transfer& transfer) {
  const Communicator& comm = transfer.comm;
  engine::Engine& engine = *self.instance->engine;
  engine::Peer* peer =
      transfer.rank == MPI_ANY_SOURCE ? nullptr : &comm.peer(engine, transfer.rank);
  return engine.receive_short(peer, {comm.p2p.context, transfer.rank, transfer.tag}, transfer.data);
}

[[gnu::always_inline]] inline Request* begin_receive(Process& self, const Transfer& transfer) {
  if (ReceiveRequest* const posted = receive_short(self, transfer)) [[likely]]
    return posted;
  return receive_long(self, transfer);
}

// A blocking operation failed: its own call reports it.
[[noreturn, gnu::cold, gnu::noinline]] void fail_blocking(Process& self, engine::Request& request,
                                                          Communicator& comm) {
  request.owner = &comm;
  const std::string text = describe_failure(request);
  const int error = request.status.error;
  self.instance->engine->release(&request);
  throw base::Error(error, text);
}

[[gnu::always_inline]] inline void wait_and_release(Process& self, engine::Request& request,
                                                    Communicator& comm, MPI_Status* status) {
  if (!request.complete) self.instance->wait_until([&] { return request.complete; });
  set_status(status, request.status);
  if (request.status.error != MPI_SUCCESS) [[unlikely]]
    fail_blocking(self, request, comm);
  self.instance->engine->release(&request);
}

// Most sends are done when they have begun, most receives have been started by the short path.
[[gnu::noinline]] void wait_long(Process& self, Request& request, Communicator& comm,
                                 MPI_Status* status) {
  if (request.role == engine::Role::send) {
    const MPI_Request started = handle(request);
    self.instance->wait_or_leave({&started, 1}, Instance::Awaits::all,
                                 [&] { return request.complete; });
  }
  if (request.role == engine::Role::send || request.role == engine::Role::receive)
    return wait_and_release(self, request, comm, status);
  belongs_to(request, comm);
  MPI_Request started = handle(request);
  wait(self, &started, status);
}

[[gnu::always_inline]] inline void send_and_wait(Process& self, const Transfer& transfer,
                                                 SendForm form) {
  if (Request* request = begin_send(self, transfer, form)) [[unlikely]]
    wait_long(self, *request, transfer.comm, MPI_STATUS_IGNORE);
}

inline void send_and_return(Process& self, const Transfer& transfer, SendForm form,
                            MPI_Request* request) {
  Request* started = begin_send(self, transfer, form);
  if (started == nullptr) {
    *request = handle(self.instance->requests.done);
    return;
  }
  belongs_to(*started, transfer.comm);
  *request = handle(*started);
}

} // namespace

std::string describe(const Data& data) {
  return fmt::format("{} of {}", data.count, datatype::describe(*data.type));
}

Request* start_send(Process& self, const Transfer& transfer, SendForm form) {
  return begin_send(self, transfer, form);
}

Request* start_receive(Process& self, const Transfer& transfer) {
  return begin_receive(self, transfer);
}

void send(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
          Communicator& comm) {
  send_and_wait(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::blocking);
}

void ssend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
           Communicator& comm) {
  send_and_wait(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::synchronous);
}

void rsend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
           Communicator& comm) {
  send(self, buf, count, type, dest, tag, comm);
}

void bsend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
           Communicator& comm) {
  send_and_wait(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::buffered);
}

void isend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
           Communicator& comm, MPI_Request* request) {
  send_and_return(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::nonblocking,
                  request);
}

void issend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
            Communicator& comm, MPI_Request* request) {
  send_and_return(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::synchronous,
                  request);
}

void irsend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
            Communicator& comm, MPI_Request* request) {
  isend(self, buf, count, type, dest, tag, comm, request);
}

void ibsend(Process& self, const void* buf, MPI_Count count, const Type& type, int dest, int tag,
            Communicator& comm, MPI_Request* request) {
  send_and_return(self, {comm, dest, tag, data_of(buf, count, type)}, SendForm::buffered, request);
}

void recv(Process& self, void* buf, MPI_Count count, const Type& type, int source, int tag,
          Communicator& comm, MPI_Status* status) {
  if (source == MPI_PROC_NULL) [[unlikely]] {
    set_status(status, self.instance->requests.from_nobody.status);
    return;
  }
  const Transfer transfer{comm, source, tag, data_of(buf, count, type)};
  ReceiveRequest* request = receive_short(self, transfer);
  if (request == nullptr) [[unlikely]]
    return wait_long(self, *receive_long(self, transfer), comm, status);
  wait_and_release(self, *request, comm, status);
}

void irecv(Process& self, void* buf, MPI_Count count, const Type& type, int source, int tag,
           Communicator& comm, MPI_Request* request) {
  if (source == MPI_PROC_NULL) [[unlikely]] {
    *request = handle(self.instance->requests.from_nobody);
    return;
  }
  Request* started = begin_receive(self, {comm, source, tag, data_of(buf, count, type)});
  belongs_to(*started, comm);
  *request = handle(*started);
}

} // namespace macadam::mpi
