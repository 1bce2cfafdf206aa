// SPDX-License-Identifier: BSD-3-Clause
// Probes, and receives of messages that a matched probe took.
#include "mpi/calls.h"
#include "mpi/checked_message.h"
#include "mpi/communicator.h"
#include "mpi/process.h"
#include "mpi/request.h"

namespace macadam::mpi {

using engine::Envelope;

namespace {

[[nodiscard]] Envelope wanted(const Communicator& comm, int source, int tag) {
  return {comm.p2p.context, source, tag};
}

void show(const Process& self, const engine::Message& message, MPI_Status* status) {
  set_status(status, message.envelope.source, message.envelope.tag,
             message.bytes - note_bytes(self));
}

// Gives the user a handle of a message that was taken out of the queue.
void hand_out(const Process& self, engine::Message& message, Communicator& comm,
              MPI_Message* handle, MPI_Status* status) {
  retain(comm);
  message.owner = &comm;
  *handle = reinterpret_cast<MPI_Message>(&message);
  show(self, message, status);
}

// The message that `find` gives, once it is there.
template <class Find>
auto& await(Process& self, const Communicator& comm, int source, int tag, Find&& find) {
  auto* message = find();
  if (message == nullptr) {
    BlockingProbe probe(comm, source, tag);
    self.instance->probes.push_back(probe);
    self.instance->wait_until([&] { return (message = find()) != nullptr; });
  }
  return *message;
}

void hand_out_nobody(Process& self, MPI_Message* handle, MPI_Status* status) {
  *handle = MPI_MESSAGE_NO_PROC;
  set_status(status, self.instance->requests.from_nobody.status);
}

// The reference to the communicator passes from the message to the request.
engine::Request& start(Process& self, MPI_Message* handle, const engine::Data& data) {
  auto& message = *reinterpret_cast<engine::Message*>(*handle);
  void* const owner = message.owner;
  engine::Request& request = self.settings.check
                                 ? receive_checked(self, message, data)
                                 : *self.instance->engine->receive_matched(message, data);
  request.owner = owner;
  *handle = MPI_MESSAGE_NULL;
  return request;
}

} // namespace

void probe(Process& self, int source, int tag, Communicator& comm, MPI_Status* status) {
  if (source == MPI_PROC_NULL)
    return set_status(status, self.instance->requests.from_nobody.status);
  const engine::Message& message = await(self, comm, source, tag, [&] {
    return self.instance->engine->probe(wanted(comm, source, tag));
  });
  show(self, message, status);
}

void iprobe(Process& self, int source, int tag, Communicator& comm, int* flag, MPI_Status* status) {
  *flag = 1;
  if (source == MPI_PROC_NULL)
    return set_status(status, self.instance->requests.from_nobody.status);
  const engine::Message* message = self.instance->engine->probe(wanted(comm, source, tag));
  if (message == nullptr) {
    self.instance->look();
    message = self.instance->engine->probe(wanted(comm, source, tag));
  }
  *flag = message != nullptr;
  if (message != nullptr) show(self, *message, status);
}

void mprobe(Process& self, int source, int tag, Communicator& comm, MPI_Message* handle,
            MPI_Status* status) {
  if (source == MPI_PROC_NULL) return hand_out_nobody(self, handle, status);
  engine::Message& message = await(self, comm, source, tag, [&] {
    return self.instance->engine->match_probe(wanted(comm, source, tag));
  });
  hand_out(self, message, comm, handle, status);
}

void improbe(Process& self, int source, int tag, Communicator& comm, int* flag, MPI_Message* handle,
             MPI_Status* status) {
  *flag = 1;
  if (source == MPI_PROC_NULL) return hand_out_nobody(self, handle, status);
  engine::Message* message = self.instance->engine->match_probe(wanted(comm, source, tag));
  if (message == nullptr) {
    self.instance->look();
    message = self.instance->engine->match_probe(wanted(comm, source, tag));
  }
  *flag = message != nullptr;
  if (message != nullptr) hand_out(self, *message, comm, handle, status);
}

void imrecv(Process& self, void* buf, MPI_Count count, const datatype::Type& type,
            MPI_Message* message, MPI_Request* request) {
  if (*message == MPI_MESSAGE_NO_PROC) {
    *message = MPI_MESSAGE_NULL;
    *request = handle(self.instance->requests.from_nobody);
    return;
  }
  *request = handle(start(self, message, {buf, count, &type}));
}

void mrecv(Process& self, void* buf, MPI_Count count, const datatype::Type& type,
           MPI_Message* message, MPI_Status* status) {
  MPI_Request request;
  imrecv(self, buf, count, type, message, &request);
  wait(self, &request, status);
}

} // namespace macadam::mpi
