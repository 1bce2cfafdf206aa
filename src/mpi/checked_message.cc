// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/checked_message.h"

#include "datatype/constructors.h"
#include "mpi/calls.h"
#include "mpi/communicator.h"
#include "mpi/process.h"

#include <algorithm>

namespace macadam::mpi {

using datatype::Type;
using datatype::TypeRef;
using engine::Data;
using engine::Request;

namespace {

bool is_untyped(const Type& type) {
  const Type* const element = type.elementary();
  return element != nullptr && (element->handle() == MPI_BYTE || element->handle() == MPI_PACKED);
}

// The note and the data, by their addresses.
TypeRef joined(const Type& bytes, const Note& note, const Data& data) {
  const std::array<MPI_Count, 2> lengths = {sizeof(Note), data.count};
  const std::array<MPI_Count, 2> places = {
      static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(&note)),
      static_cast<MPI_Count>(reinterpret_cast<std::intptr_t>(data.address))};
  const std::array<const Type*, 2> types = {&bytes, data.type};
  TypeRef whole = datatype::struct_(lengths, places, types, true);
  whole->commit();
  return whole;
}

void destroy_checked(Process& self, LayerRequest& request) {
  give_back(self.instance->requests.checked, static_cast<CheckedMessage&>(request));
}

void cancel_checked(Process& self, LayerRequest& request) {
  auto& checked = static_cast<CheckedMessage&>(request);
  if (checked.running == nullptr) return;
  MPI_Request running = handle(*checked.running);
  cancel(self, &running);
}

constexpr RequestClass send_class{
    .name = "nonblocking send", .destroy = destroy_checked, .cancel = cancel_checked};
constexpr RequestClass receive_class{
    .name = "nonblocking receive", .destroy = destroy_checked, .cancel = cancel_checked};

// The engine has received note and data: takes the note off the outcome, and compares.
void compare(CheckedMessage& checked, engine::ReceiveRequest& receive) {
  engine::Status& how = receive.status;
  const bool has_come = how.error == MPI_SUCCESS || how.error == MPI_ERR_TRUNCATE;
  if (how.cancelled || !has_come) return;
  how.bytes -= sizeof(Note);
  receive.capacity -= sizeof(Note);
  receive.incoming -= std::min<std::uint64_t>(receive.incoming, sizeof(Note));
  receive.granule = static_cast<std::uint8_t>(checked.type->granule());
  if (how.error == MPI_SUCCESS && how.bytes % receive.granule != 0) {
    how.error = MPI_ERR_TRUNCATE;
    receive.incoming = how.bytes;
  }
  const std::string found = difference(checked.note, checked.data, how.error == MPI_ERR_TRUNCATE);
  if (found.empty()) return;
  how.error = MPI_ERR_TYPE;
  const auto* comm = static_cast<const Communicator*>(checked.owner);
  checked.failure = fmt::format(
      "datatypes do not match: rank {} called {}, rank {} called {}, on {}, tag {}: {}; give both "
      "the same datatypes (the data were received as they came)",
      how.source, checked.note.call.data(), comm->rank(), checked.call, describe(*comm), how.tag,
      found);
}

void end(CheckedMessage& checked, Request& run) {
  checked.running = nullptr;
  try {
    if (run.role == engine::Role::receive)
      compare(checked, static_cast<engine::ReceiveRequest&>(run));
  } catch (const std::bad_alloc&) { // the class says enough
  }
  const engine::Status status = run.status;
  if (checked.failure.empty()) describe_within(checked, run);
  checked.process.instance->engine->release(&run);
  complete(checked.process, checked, status);
}

void run_with(CheckedMessage& checked, Request& run) {
  checked.running = &run;
  follow<end>(checked, run);
}

// A receive that begins with `begin`, which gets the data with room for the note.
template <class Begin>
CheckedMessage& receive_by(Process& self, Communicator& comm, const Data& data, Begin&& begin) {
  CheckedMessage& checked = *self.instance->requests.checked.make(receive_class, self, data);
  try {
    checked.owner = &comm; // for compare(); whoever started it takes the reference
    checked.call = fmt::format("{} of {}", std::string_view(self.function), describe(data));
    const TypeRef whole = joined(self.types[MPI_BYTE], checked.note, data);
    run_with(checked, *begin(Data{nullptr, 1, whole.get()}));
  } catch (...) {
    give_back(self.instance->requests.checked, checked);
    throw;
  }
  return checked;
}

} // namespace

CheckedMessage::CheckedMessage(const RequestClass& how, Process& process_of, const Data& user)
    : LayerRequest(engine::Role::combined, how), process(process_of), data(user), type(*user.type) {
}

Note note_of(const Process& self, const Data& data) {
  const datatype::Signature signature = data.count * data.type->signature();
  Note note{
      .elements = signature.elements, .hash = signature.hash, .untyped = is_untyped(*data.type)};
  const auto written = fmt::format_to_n(note.call.begin(), note.call.size() - 1, "{} of {}",
                                        std::string_view(self.function), describe(data));
  *written.out = '\0';
  return note;
}

std::uint64_t note_bytes(const Process& self) {
  return self.settings.check ? sizeof(Note) : 0;
}

std::string difference(const Note& sent, const Data& received, bool cut) {
  if (sent.elements == 0 || sent.untyped || is_untyped(*received.type)) return {};
  const MPI_Count most = received.count * received.type->elements();
  if (sent.elements > most)
    return cut ? std::string()
               : fmt::format("{} basic elements were sent, the receive has {} of other types",
                             sent.elements, most);
  const datatype::Signature expected =
      datatype::signature_of_first(*received.type, received.count, sent.elements);
  if (sent.hash == expected.hash) return {};
  return fmt::format("the {} basic elements sent are of other types than the first {} of the "
                     "receive",
                     sent.elements, sent.elements);
}

void check_access(MPI_Count origin_count, const Type& origin, MPI_Count count, const Type& type) {
  if (is_untyped(origin) || is_untyped(type)) return;
  if (origin_count * origin.signature() == count * type.signature()) return;
  base::fail(MPI_ERR_TYPE,
             "datatypes do not match: {} of {} at the origin, {} of {} at the target; give both "
             "the same sequence of basic types",
             origin_count, datatype::describe(origin), count, datatype::describe(type));
}

Request* start_checked_send(Process& self, const Transfer& transfer, engine::SendMode mode) {
  const Communicator& comm = transfer.comm;
  engine::Engine& engine = *self.instance->engine;
  CheckedMessage& checked = *self.instance->requests.checked.make(send_class, self, transfer.data);
  try {
    const Data* const described = transfer.packed_from;
    checked.note = note_of(self, described != nullptr ? *described : transfer.data);
    const TypeRef whole = joined(self.types[MPI_BYTE], checked.note, transfer.data);
    Request* const run = engine.send(comm.peer(engine, transfer.rank),
                                     {comm.p2p.context, comm.p2p.rank, transfer.tag},
                                     {nullptr, 1, whole.get()}, mode);
    if (run != nullptr) {
      run_with(checked, *run);
      return &checked;
    }
  } catch (...) {
    give_back(self.instance->requests.checked, checked);
    throw;
  }
  give_back(self.instance->requests.checked, checked);
  return nullptr;
}

Request* start_checked_receive(Process& self, const Transfer& transfer) {
  const Communicator& comm = transfer.comm;
  engine::Engine& engine = *self.instance->engine;
  engine::Peer* const peer =
      transfer.rank == MPI_ANY_SOURCE ? nullptr : &comm.peer(engine, transfer.rank);
  return &receive_by(self, transfer.comm, transfer.data, [&](const Data& whole) {
    return engine.receive(peer, {comm.p2p.context, transfer.rank, transfer.tag}, whole);
  });
}

Request& receive_checked(Process& self, engine::Message& message, const Data& data) {
  return receive_by(self, *static_cast<Communicator*>(message.owner), data, [&](const Data& whole) {
    return self.instance->engine->receive_matched(message, whole);
  });
}

} // namespace macadam::mpi
