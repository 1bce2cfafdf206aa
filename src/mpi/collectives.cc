// SPDX-License-Identifier: BSD-3-Clause
// How collectives are run: to the end, behind a request, again and again.
#include "mpi/collectives.h"

#include "coll/batch.h"
#include "coll/operations.h"
#include "mpi/collective_check.h"
#include "mpi/process.h"

#include <array>
#include <numeric>
#include <utility>

namespace macadam::mpi {
namespace {

using coll::Collective;

// The error of an operation as MPI knows it. An Error is copied: it may be asked for again.
base::Error translated(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& e) {
    return e;
  } catch (...) {
    return base::caught(coll::on_the_way);
  }
}

// Its class, for which no memory is needed.
int class_of(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& e) {
    return e.error_class;
  } catch (...) {
    return base::caught(coll::on_the_way).error_class;
  }
}

// Which collective it was, where ranks may have called different ones; MACADAM_CHECK says it
// itself.
std::string place_of(const Collective& operation, const Communicator& comm, int error_class) {
  const bool may_differ = error_class == MPI_ERR_TRUNCATE ||
                          (error_class == MPI_ERR_ARG && operation.arguments.check == nullptr);
  if (!may_differ || operation.number == 0) return {};
  return fmt::format("; rank {} is in {} on {}, number {} there", comm.rank(), operation.function,
                     describe(comm), operation.number);
}

std::string failure(const LayerRequest& request) {
  const auto& collective = static_cast<const CollectiveRequest&>(request);
  const base::Error error = translated(collective.operation.error());
  return fmt::format("a nonblocking or persistent {} failed: {}{}", collective.call.name,
                     error.text,
                     place_of(collective.operation,
                              *static_cast<const Communicator*>(request.owner), error.error_class));
}

void destroy(Process& self, LayerRequest& request) {
  give_back(self.instance->requests.collectives, static_cast<CollectiveRequest&>(request));
}

void destroy_persistent(Process& self, LayerRequest& request) {
  auto& comm = *static_cast<Communicator*>(request.owner);
  coll::Resources& shared = *self.instance->coll;
  const std::int32_t tag = static_cast<CollectiveRequest&>(request).operation.tag;
  comm.sequence.forget(static_cast<CollectiveRequest&>(request).operation);
  comm.boards.leave(tag, shared.panels);
  comm.machines.leave(tag, shared);
  shared.engine.drop_channel(comm.collective.context, tag, *comm.collective.peers);
  if (comm.inter()) shared.engine.drop_channel(comm.inside.context, tag, *comm.inside.peers);
  destroy(self, request);
}

void start_again(Process&, LayerRequest& request) {
  static_cast<CollectiveRequest&>(request).operation.begin();
}

constexpr RequestClass nonblocking{"nonblocking collective", destroy, nullptr, nullptr, failure};
constexpr RequestClass persistent{"persistent collective", destroy_persistent, start_again, nullptr,
                                  failure};

void on_end(Collective& operation, void* argument) noexcept {
  auto& request = *static_cast<CollectiveRequest*>(argument);
  engine::Status status;
  if (operation.error()) [[unlikely]]
    status.error = class_of(operation.error());
  complete(request.process, request, status);
}

void complete_call(Process& self, const Communicator& comm, CollectiveCall& call,
                   std::uint32_t number) {
  if (comm.inter()) {
    // Of the root's group what MPI_IN_PLACE stands for is not looked at.
    if (call.arguments.in_place && call.arguments.root >= 0)
      base::fail(MPI_ERR_BUFFER,
                 "MPI_IN_PLACE on {}, an intercommunicator, where no rank has a block "
                 "of its own; give a buffer",
                 describe(comm));
    call.arguments.inside = &comm.inside;
  }
  if (self.settings.check) [[unlikely]]
    add_check(self, comm, call, number);
}

// Copies the caller's counts and displacements. A persistent collective reads them at each start,
// when the caller may have used the arrays for something else. A nonblocking one reads them while
// it is under way: MPI asks callers to keep them (6.12), but there are those that do not
// (mpi4py 4.1.2 in Iallgatherv), and that goes unnoticed where a library reads them at once.
void own_counts(CollectiveCall& call) {
  coll::Blocks& send = call.arguments.send;
  coll::Blocks& receive = call.arguments.receive;
  const std::array arrays = {&send.counts, &send.displacements, &receive.counts,
                             &receive.displacements};
  std::size_t total = 0;
  for (const coll::Counts* array : arrays)
    total += static_cast<std::size_t>(array->length);
  if (total == 0) return;
  if (!call.arrays) call.arrays = std::make_unique<CollectiveCall::Arrays>();
  std::vector<MPI_Count>& copies = call.arrays->counts;
  copies.reserve(total); // they do not move any more
  for (coll::Counts* array : arrays) {
    if (array->length == 0) continue;
    const MPI_Count* first = copies.data() + copies.size();
    for (int i = 0; i < array->length; ++i)
      copies.push_back((*array)[i]);
    *array = {first, true, array->length};
  }
}

CollectiveRequest& make_request(Process& self, Communicator& comm, CollectiveCall&& call,
                                engine::Role role, const RequestClass& how) {
  const std::uint32_t number = comm.sequence.count(self.function);
  complete_call(self, comm, call, number);
  CollectiveRequest& request =
      *self.instance->requests.collectives.make(self, comm, std::move(call), role, how);
  request.operation.number = number;
  request.operation.function = self.function;
  belongs_to(request, comm);
  request.operation.continuation = &on_end;
  request.operation.argument = &request;
  return request;
}

// The operation lives with the caller, and the engine knows it until it is complete: also after a
// failure, which ends all that is under way before a wait raises it.
void wait(Process& self, const Communicator& comm, const Collective& operation) {
  self.instance->wait_until([&] { return operation.complete(); });
  if (!operation.error()) [[likely]]
    return;
  base::Error error = translated(operation.error());
  error.text += place_of(operation, comm, error.error_class);
  throw error;
}

void run(Process& self, Communicator& comm, CollectiveCall&& call, std::uint32_t number) {
  complete_call(self, comm, call, number);
  Collective operation(*self.instance->coll, comm.collective, comm.boards, comm.machines, call.run,
                       call.arguments);
  operation.number = number;
  operation.function = self.function;
  comm.sequence.start_blocking(operation);
  wait(self, comm, operation);
}

constexpr std::uint32_t uncounted = 0; // a part of another function of MPI

} // namespace

CollectiveRequest::CollectiveRequest(Process& process_of, Communicator& comm, CollectiveCall&& its,
                                     engine::Role as, const RequestClass& how)
    : LayerRequest(as, how), process(process_of), call(std::move(its)),
      operation(*process_of.instance->coll, comm.collective, comm.boards, comm.machines, call.run,
                call.arguments) {
  const coll::Arguments& a = call.arguments;
  if (a.op != nullptr) ++const_cast<datatype::Op*>(a.op)->references;
  for (const datatype::Type* type : {a.send.type, a.receive.type}) {
    if (type != nullptr) types.emplace_back(*type);
  }
  if (call.arrays) {
    for (const datatype::Type* type : call.arrays->send_types)
      types.emplace_back(*type);
    for (const datatype::Type* type : call.arrays->receive_types)
      types.emplace_back(*type);
  }
}

CollectiveRequest::~CollectiveRequest() {
  auto* op = const_cast<datatype::Op*>(call.arguments.op);
  if (op != nullptr && --op->references == 0) delete op;
}

void run(Process& self, Communicator& comm, CollectiveCall&& call) {
  run(self, comm, std::move(call), comm.sequence.count(self.function));
}

void compare_calls(Process& self, Communicator& comm, const char* detail) {
  if (!self.settings.check) [[likely]]
    return;
  run(self, comm, {"barrier", &coll::barrier, {}, nullptr, nullptr, detail}, uncounted);
}

void launch(Process& self, Communicator& comm, CollectiveCall&& call, MPI_Request* request) {
  own_counts(call);
  CollectiveRequest& made =
      make_request(self, comm, std::move(call), engine::Role::collective, nonblocking);
  *request = handle(made);
  comm.sequence.start_nonblocking(made.operation);
}

void prepare(Process& self, Communicator& comm, CollectiveCall&& call, MPI_Request* request) {
  own_counts(call);
  CollectiveRequest& made =
      make_request(self, comm, std::move(call), engine::Role::persistent, persistent);
  made.complete = true;
  comm.sequence.keep(made.operation);
  *request = handle(made);
}

std::vector<const datatype::Type*> look_up(Process& self, int n, const MPI_Datatype* handles,
                                           CountArray counts) {
  std::vector<const datatype::Type*> types;
  types.reserve(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const MPI_Datatype handle = counts[i] > 0 ? handles[i] : MPI_BYTE;
    types.push_back(self.find<datatype::Type>(handle, base::ObjectKind::datatype));
  }
  return types;
}

// Collectives on bytes.
namespace {

CollectiveCall allgather_call(Process& self, const void* mine, std::size_t bytes, void* all) {
  const datatype::Type& byte = self.types[MPI_BYTE];
  const auto count = static_cast<MPI_Count>(bytes);
  CollectiveCall call{"allgather", &coll::allgather, {}, nullptr};
  call.arguments.send = blocks(mine, count, byte);
  call.arguments.receive = blocks(all, count, byte);
  return call;
}

CollectiveCall bcast_call(Process& self, void* data, std::size_t bytes, int root) {
  CollectiveCall call{"bcast", &coll::bcast, {}, nullptr};
  call.arguments.receive = blocks(data, static_cast<MPI_Count>(bytes), self.types[MPI_BYTE]);
  call.arguments.root = root;
  return call;
}

// Where blocks of these lengths start that lie one after the other.
std::vector<MPI_Count> in_a_row(const std::vector<MPI_Count>& lengths) {
  std::vector<MPI_Count> starts(lengths.size());
  std::exclusive_scan(lengths.begin(), lengths.end(), starts.begin(), MPI_Count{0});
  return starts;
}

void run(Process& self, const engine::Team& team, int tag, const CollectiveCall& call) {
  Collective operation(*self.instance->coll, team, call.run, call.arguments);
  operation.tag = tag;
  operation.begin();
  self.instance->wait_until([&] { return operation.complete(); });
  operation.rethrow();
}

} // namespace

void allgather_bytes(Process& self, Communicator& comm, const void* mine, std::size_t bytes,
                     void* all) {
  run(self, comm, allgather_call(self, mine, bytes, all), uncounted);
}
void allgather_bytes(Process& self, const engine::Team& team, int tag, const void* mine,
                     std::size_t bytes, void* all) {
  run(self, team, tag, allgather_call(self, mine, bytes, all));
}
void allgatherv_bytes(Process& self, Communicator& comm, const void* mine, std::size_t bytes,
                      void* all, const std::vector<MPI_Count>& counts) {
  const std::vector<MPI_Count> starts = in_a_row(counts);
  CollectiveCall call = allgather_call(self, mine, bytes, all);
  call.arguments.receive =
      blocks(all, {counts.data(), true}, {starts.data(), true}, comm.peers(), self.types[MPI_BYTE]);
  run(self, comm, std::move(call), uncounted);
}
void alltoall_bytes(Process& self, Communicator& comm, const void* send, std::size_t bytes,
                    void* receive) {
  CollectiveCall call = allgather_call(self, send, bytes, receive);
  call.run = &coll::alltoall;
  run(self, comm, std::move(call), uncounted);
}
void alltoallv_bytes(Process& self, Communicator& comm, const void* send,
                     const std::vector<MPI_Count>& given, void* receive,
                     const std::vector<MPI_Count>& got) {
  const std::vector<MPI_Count> given_at = in_a_row(given), got_at = in_a_row(got);
  const datatype::Type& byte = self.types[MPI_BYTE];
  CollectiveCall call{"alltoallv", &coll::alltoallv, {}, nullptr};
  call.arguments.send =
      blocks(send, {given.data(), true}, {given_at.data(), true}, comm.peers(), byte);
  call.arguments.receive =
      blocks(receive, {got.data(), true}, {got_at.data(), true}, comm.peers(), byte);
  run(self, comm, std::move(call), uncounted);
}
void bcast_bytes(Process& self, Communicator& comm, void* data, std::size_t bytes, int root) {
  run(self, comm, bcast_call(self, data, bytes, root), uncounted);
}
void bcast_bytes(Process& self, const engine::Team& team, int tag, void* data, std::size_t bytes,
                 int root) {
  run(self, team, tag, bcast_call(self, data, bytes, root));
}

} // namespace macadam::mpi
