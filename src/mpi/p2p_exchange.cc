// SPDX-License-Identifier: BSD-3-Clause
// MPI_Sendrecv and MPI_Isendrecv. The receive is started first, so that it can be announced before
// the other side sends.
#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/p2p.h"
#include "mpi/process.h"

#include "datatype/cursor.h"

namespace macadam::mpi {

using datatype::Type;
using engine::Request;

namespace {

void destroy_exchange(Process& self, LayerRequest& request) {
  give_back(self.instance->requests.exchanges, static_cast<Exchange&>(request));
}

constexpr RequestClass exchange_class{.name = "send and receive", .destroy = destroy_exchange};

void count_down(Exchange& exchange) {
  if (--exchange.unfinished != 0) return;
  exchange.process.instance->requests.staging.give(exchange.staged, exchange.staged_bytes);
  complete(exchange.process, exchange, exchange.outcome);
}

void cancel_receive(Exchange& exchange) noexcept {
  MPI_Request receive = handle(*exchange.receive);
  try {
    cancel(exchange.process, &receive);
  } catch (const std::bad_alloc&) { // so it is waited for
  }
}

// Takes over a half's outcome; a status is that of the receive, an error that of either. Where one
// process is gone or cannot be reached, the other may wait, too, and never send: so the receive is
// cancelled, unless somebody has begun to answer it.
void end_half(Exchange& exchange, Request& half) {
  const int earlier = exchange.outcome.error;
  if (&half == exchange.receive) {
    exchange.outcome = half.status;
    exchange.receive = nullptr; // the send may get its place
  }
  exchange.outcome.error = earlier != MPI_SUCCESS ? earlier : half.status.error;
  if (earlier == MPI_SUCCESS) describe_within(exchange, half);
  if (half.status.error == MPI_ERR_PROC_ABORTED && exchange.receive != nullptr)
    cancel_receive(exchange);
  release_part(exchange.process, half);
  count_down(exchange);
}

// `half`: null if it is complete already.
void run_with(Exchange& exchange, Request* half) {
  if (half == nullptr) return;
  ++exchange.unfinished;
  follow<end_half>(exchange, *half);
}

// The exchange takes over `staged`, which holds what is sent if it is not null.
Exchange& start(Process& self, const Transfer& out, const Transfer& in, std::byte* staged = nullptr,
                std::size_t staged_bytes = 0) {
  Exchange& exchange = *self.instance->requests.exchanges.make(self);
  exchange.staged = staged;
  exchange.staged_bytes = staged_bytes;
  belongs_to(exchange, out.comm);
  try {
    SendForm form = SendForm::standard;
    if (in.rank == MPI_PROC_NULL) {
      exchange.outcome = self.instance->requests.from_nobody.status;
    } else {
      form = SendForm::exchange;
      exchange.receive = start_receive(self, in);
      run_with(exchange, exchange.receive);
    }
    run_with(exchange, start_send(self, out, form));
  } catch (...) {
    // Nobody will wait for the receive any more.
    exchange.detached = true;
    if (exchange.unfinished > 1) cancel_receive(exchange);
    count_down(exchange);
    throw;
  }
  count_down(exchange);
  return exchange;
}

// Sends a packed copy, so that the buffer is free for what is received.
Exchange& start_replace(Process& self, const engine::Data& data, int dest, int sendtag, int source,
                        int recvtag, Communicator& comm) {
  const std::size_t bytes = data.bytes();
  std::byte* const staged = self.instance->requests.staging.take(bytes);
  datatype::PackCursor(*data.type, data.address, data.count).pack(staged, bytes);
  const engine::Data copy = data_of(staged, static_cast<MPI_Count>(bytes), self.types[MPI_PACKED]);
  return start(self, {comm, dest, sendtag, copy, &data}, {comm, source, recvtag, data}, staged,
               bytes);
}

void wait_for(Process& self, Exchange& exchange, MPI_Status* status) {
  MPI_Request request = handle(exchange);
  wait(self, &request, status);
}

} // namespace

Exchange::Exchange(Process& process_of)
    : LayerRequest(engine::Role::combined, exchange_class), process(process_of) {}

void isendrecv(Process& self, const void* sendbuf, MPI_Count sendcount, const Type& sendtype,
               int dest, int sendtag, void* recvbuf, MPI_Count recvcount, const Type& recvtype,
               int source, int recvtag, Communicator& comm, MPI_Request* request) {
  *request = handle(start(self, {comm, dest, sendtag, data_of(sendbuf, sendcount, sendtype)},
                          {comm, source, recvtag, data_of(recvbuf, recvcount, recvtype)}));
}

void sendrecv(Process& self, const void* sendbuf, MPI_Count sendcount, const Type& sendtype,
              int dest, int sendtag, void* recvbuf, MPI_Count recvcount, const Type& recvtype,
              int source, int recvtag, Communicator& comm, MPI_Status* status) {
  wait_for(self,
           start(self, {comm, dest, sendtag, data_of(sendbuf, sendcount, sendtype)},
                 {comm, source, recvtag, data_of(recvbuf, recvcount, recvtype)}),
           status);
}

void isendrecv_replace(Process& self, void* buf, MPI_Count count, const Type& type, int dest,
                       int sendtag, int source, int recvtag, Communicator& comm,
                       MPI_Request* request) {
  *request =
      handle(start_replace(self, data_of(buf, count, type), dest, sendtag, source, recvtag, comm));
}

void sendrecv_replace(Process& self, void* buf, MPI_Count count, const Type& type, int dest,
                      int sendtag, int source, int recvtag, Communicator& comm,
                      MPI_Status* status) {
  wait_for(self,
           start_replace(self, data_of(buf, count, type), dest, sendtag, source, recvtag, comm),
           status);
}

} // namespace macadam::mpi
