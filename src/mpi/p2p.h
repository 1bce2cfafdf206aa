// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "datatype/type.h"
#include "engine/engine.h"
#include "mpi/request.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace macadam::mpi {

// How a send ends: when the data may be reused, when the receive has begun, when it is known to be
// posted (which we do not use), when a copy was made, when a receive has ended too, in a later
// wait.
enum class SendForm : std::uint8_t {
  standard,
  synchronous,
  ready,
  buffered,
  exchange,
  nonblocking,
  blocking
};

// A message to or from a rank of a communicator, as the user's call describes it.
struct Transfer {
  Communicator& comm;
  int rank; // of the other side; MPI_PROC_NULL, and MPI_ANY_SOURCE for a receive, are allowed
  int tag;
  engine::Data data;
  const engine::Data* packed_from = nullptr; // of data that are a packed copy
};

[[nodiscard]] inline engine::Data data_of(const void* buffer, MPI_Count count,
                                          const datatype::Type& type) {
  return {const_cast<void*>(buffer), count, &type};
}

// For messages.
[[nodiscard]] std::string describe(const engine::Data& data); // "4 of MPI_INT"

// Starts a send. Null if it is complete. The requests of both are the engine's, or a
// CheckedMessage, and are given back with release_part().
engine::Request* start_send(Process& self, const Transfer& transfer, SendForm form);
// Starts a receive; the source is not MPI_PROC_NULL.
engine::Request* start_receive(Process& self, const Transfer& transfer);

// MPI_Send_init, MPI_Recv_init and their like.
struct PersistentMessage : PersistentRequest {
  PersistentMessage(const RequestClass& how, Process& process_of, const Transfer& what,
                    SendForm as);

  Process& process;
  Transfer transfer;
  datatype::TypeRef type; // keeps transfer.data.type
  SendForm form;          // of a send
  engine::Request* running = nullptr;
};

// MPI_Isendrecv: complete when both its send and its receive are.
struct Exchange : LayerRequest {
  explicit Exchange(Process& process_of);

  Process& process;
  engine::Request* receive = nullptr;
  int unfinished = 1;          // of the two; one more while the call starts them
  engine::Status outcome;      // of the receive, or the first error
  std::byte* staged = nullptr; // what is sent, of MPI_Isendrecv_replace
  std::size_t staged_bytes = 0;
};

} // namespace macadam::mpi
