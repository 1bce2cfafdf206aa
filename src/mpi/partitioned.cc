// SPDX-License-Identifier: BSD-3-Clause
// Partitioned communication (MPI 5.0, section 4.2). MPI_Pready and MPI_Parrived are called by many
// threads at a time, and their entry points take no lock: a bit says that a partition is ready, and
// whoever has the lock, or gets it without waiting, sends what is ready.
#include "mpi/partitioned.h"

#include "mpi/calls.h"
#include "mpi/checked_message.h"
#include "mpi/communicator.h"
#include "mpi/p2p.h"
#include "mpi/process.h"

#include <algorithm>
#include <limits>
#include <mutex>

namespace macadam::mpi {

using datatype::Type;
using engine::Envelope;
using engine::Partitions;

namespace {

void start_send(Process& self, LayerRequest& request) {
  auto& made = static_cast<PartitionedRequest&>(request);
  if (made.send == nullptr) return complete(self, made, {});
  self.instance->engine->partitioned().start(*made.send);
}

void start_receive(Process& self, LayerRequest& request) {
  auto& made = static_cast<PartitionedRequest&>(request);
  if (made.receive == nullptr)
    return complete(self, made, self.instance->requests.from_nobody.status);
  self.instance->engine->partitioned().start(*made.receive);
}

void destroy_partitioned(Process& self, LayerRequest& request) {
  auto& made = static_cast<PartitionedRequest&>(request);
  engine::PartitionedTable& table = self.instance->engine->partitioned();
  if (made.send != nullptr) table.release(*made.send);
  if (made.receive != nullptr) table.release(*made.receive);
  give_back(self.instance->requests.partitioned, made);
}

std::string describe_partitioned(const LayerRequest& request) {
  const auto& made = static_cast<const PartitionedRequest&>(request);
  const std::string where = describe(*static_cast<const Communicator*>(made.owner));
  if (made.receive != nullptr && request.status.error == MPI_ERR_TRUNCATE) {
    const engine::PartitionedReceive& it = *made.receive;
    return fmt::format(
        "message truncated: rank {} of {} sends {} partitions of {} bytes with tag {}, "
        "the partitioned receive has room for {} of {} bytes; both sides must name "
        "the same amount of data",
        it.envelope.source, where, it.sent_number, it.sent_bytes, it.envelope.tag, it.data.number,
        it.data.bytes());
  }
  if (made.send != nullptr && request.status.error == MPI_ERR_TRUNCATE) {
    const engine::PartitionedSend& it = *made.send;
    return fmt::format(
        "message truncated: {} partitions of {} bytes with tag {} on {} are more than "
        "the partitioned receive has room for; both sides must name the same amount "
        "of data",
        it.data.number, it.data.bytes(), it.envelope.tag, where);
  }
  return fmt::format("a {} on {} failed", request.sort->name, where);
}

constexpr RequestClass partitioned_send{.name = "partitioned send",
                                        .destroy = destroy_partitioned,
                                        .start = start_send,
                                        .failure = describe_partitioned};
constexpr RequestClass partitioned_receive{.name = "partitioned receive",
                                           .destroy = destroy_partitioned,
                                           .start = start_receive,
                                           .failure = describe_partitioned};

// What the data of a send are, for its receive to compare.
engine::wire::PartitionsNote note_of(const Process& self, const Partitions& data) {
  if (!self.settings.check) return {};
  const datatype::Signature signature = data.number * (data.count * data.type->signature());
  const Type* const basic = data.type->elementary();
  return {.elements = signature.elements,
          .hash = signature.hash,
          .basic = basic != nullptr ? reinterpret_cast<std::uintptr_t>(basic->handle()) : 0};
}

// With MACADAM_CHECK, as messages are compared: empty if the two sides match.
std::string mismatch(const PartitionedRequest& made) {
  const engine::PartitionedReceive& it = *made.receive;
  const auto basic = reinterpret_cast<MPI_Datatype>(it.sent_note.basic);
  const Note sent{.elements = it.sent_note.elements,
                  .hash = it.sent_note.hash,
                  .untyped = basic == MPI_BYTE || basic == MPI_PACKED};
  const engine::Data room{it.data.address, it.data.number * it.data.count, it.data.type};
  const std::string found = difference(sent, room, false);
  if (found.empty()) return {};
  const auto* comm = static_cast<const Communicator*>(made.owner);
  return fmt::format(
      "datatypes do not match: rank {} called MPI_Psend_init of {} partitions of {} bytes, {} of "
      "{} in all, rank {} called MPI_Precv_init of {} partitions of {}, on {}, tag {}: {}; give "
      "both the same datatypes (the data were received as they came)",
      it.envelope.source, it.sent_number, it.sent_bytes, sent.elements,
      basic != nullptr ? datatype::describe(made.process.types[basic])
                       : std::string("several basic types"),
      comm->rank(), it.data.number, describe(it.data.partition(0)), describe(*comm),
      it.envelope.tag, found);
}

void end_round(void* argument, const engine::Status& status) noexcept {
  auto& made = *static_cast<PartitionedRequest*>(argument);
  engine::Status how = status;
  if (made.process.settings.check && made.receive != nullptr && how.error == MPI_SUCCESS) {
    try {
      made.failure = mismatch(made);
      if (!made.failure.empty()) how.error = MPI_ERR_TYPE;
    } catch (const std::bad_alloc&) { // of the text alone
      how.error = MPI_ERR_TYPE;
    }
  }
  complete(made.process, made, how);
}

Partitions partitions_of(const void* buf, int partitions, MPI_Count count, const Type& type) {
  if (partitions < 0) {
    base::fail(MPI_ERR_ARG, "partitions is {}; it must be at least 0", partitions);
  }
  MPI_Count bytes = 0;
  if (__builtin_mul_overflow(count, type.size(), &bytes) ||
      __builtin_mul_overflow(bytes, MPI_Count{partitions}, &bytes)) {
    base::fail(MPI_ERR_COUNT,
               "count is {}: {} partitions of so many elements of {} bytes are more "
               "than memory can hold; give fewer",
               count, partitions, type.size());
  }
  return {static_cast<std::byte*>(const_cast<void*>(buf)), static_cast<std::uint32_t>(partitions),
          count, &type};
}

// `fill` makes what talks to the other side.
template <class Fill>
MPI_Request make(Process& self, const RequestClass& sort, int partitions, Communicator& comm,
                 Fill&& fill) {
  auto& table = self.instance->requests.partitioned;
  PartitionedRequest& made = *table.make(sort, self, partitions);
  try {
    fill(made);
  } catch (...) {
    give_back(table, made);
    throw;
  }
  belongs_to(made, comm);
  return handle(made);
}

// The request of MPI_Pready and its like.
PartitionedRequest& find(MPI_Request handle, const RequestClass& sort) {
  const char* const maker = &sort == &partitioned_send ? "MPI_Psend_init" : "MPI_Precv_init";
  if (handle == MPI_REQUEST_NULL) {
    base::fail(MPI_ERR_REQUEST, "request is MPI_REQUEST_NULL; needed is that of a {}, from {}",
               sort.name, maker);
  }
  engine::Request& found = object(handle);
  if (found.role != engine::Role::partitioned || static_cast<LayerRequest&>(found).sort != &sort) {
    base::fail(MPI_ERR_REQUEST, "request is {}, not that of a {}; needed is one from {}",
               static_cast<void*>(handle), sort.name, maker);
  }
  return static_cast<PartitionedRequest&>(found);
}

// The same for sending, in a round. With MPI_PROC_NULL a round may be over while partitions are
// still marked.
PartitionedRequest& find_ready(MPI_Request handle) {
  PartitionedRequest& request = find(handle, partitioned_send);
  if (request.send != nullptr && !request.active) {
    base::fail(MPI_ERR_REQUEST,
               "request is not active: a partitioned send that was not started, or whose round is "
               "over; call MPI_Start first");
  }
  return request;
}

// `element`: the place in an array of that name, or -1.
void check_partition(const PartitionedRequest& request, int partition, const char* name,
                     int element = -1) {
  if (partition >= 0 && partition < request.partitions) return;
  base::fail(MPI_ERR_ARG, "{}{} is {}; the request has {} partitions: give one of them, from 0 on",
             name, element < 0 ? "" : fmt::format("[{}]", element), partition, request.partitions);
}

// What others left for the holder of the lock is looked after when this one has let it go.
class ThenTheRest {
 public:
  explicit ThenTheRest(Process& self) : self_(self) {}
  ThenTheRest(const ThenTheRest&) = delete;
  ThenTheRest& operator=(const ThenTheRest&) = delete;
  ~ThenTheRest() { self_.post_left(); }

 private:
  Process& self_;
};

// Sends partitions that the caller has marked. The send may have ended and be gone already, unless
// its id finds it.
void send_marked(Process& self, std::uint64_t id, int first, int last) {
  engine::PartitionedTable& table = self.instance->engine->partitioned();
  const auto from = static_cast<std::uint32_t>(first), to = static_cast<std::uint32_t>(last);
  if (!self.thread_multiple) return table.post_marked(id, from, to);
  const ThenTheRest then(self);
  if (std::unique_lock held(self.lock, std::try_to_lock); held)
    table.post_marked(id, from, to);
  else
    table.leave();
}

// Marks partitions and sends them. One that was ready before is refused, after the others are sent.
class Marking {
 public:
  explicit Marking(PartitionedRequest& request)
      : self_(request.process), send_(request.send), id_(send_ != nullptr ? send_->id : 0) {}
  void add(int partition) {
    first_ = std::min(first_, partition);
    last_ = std::max(last_, partition);
    if (send_ != nullptr && !send_->mark(static_cast<std::uint32_t>(partition)))
      refused_ = partition;
  }
  void end() {
    if (id_ != 0) send_marked(self_, id_, first_, last_);
    if (refused_ < 0) return;
    base::fail(MPI_ERR_ARG,
               "partition is {}, which is ready already; mark each once between MPI_Start and the "
               "end of the round",
               refused_);
  }

 private:
  Process& self_;
  engine::PartitionedSend* send_; // until the last partition is marked
  std::uint64_t id_;
  int first_ = std::numeric_limits<int>::max(), last_ = 0;
  int refused_ = -1;
};

} // namespace

void psend_init(Process& self, const void* buf, int partitions, MPI_Count count, const Type& type,
                int dest, int tag, Communicator& comm, Info*, MPI_Request* request) {
  Partitions data = partitions_of(buf, partitions, count, type);
  data.note = note_of(self, data);
  *request = make(self, partitioned_send, partitions, comm, [&](PartitionedRequest& made) {
    if (dest == MPI_PROC_NULL) return;
    made.send = &self.instance->engine->partitioned().make_send(
        comm.peer(*self.instance->engine, dest), {comm.p2p.context, comm.p2p.rank, tag}, data,
        end_round, &made);
    self.marks_partitions.store(true, std::memory_order_relaxed);
  });
}

void precv_init(Process& self, void* buf, int partitions, MPI_Count count, const Type& type,
                int source, int tag, Communicator& comm, Info*, MPI_Request* request) {
  const Partitions data = partitions_of(buf, partitions, count, type);
  *request = make(self, partitioned_receive, partitions, comm, [&](PartitionedRequest& made) {
    if (source == MPI_PROC_NULL) return;
    made.receive = &self.instance->engine->partitioned().make_receive(
        comm.peer(*self.instance->engine, source), {comm.p2p.context, source, tag}, data, end_round,
        &made);
  });
}

void pready(Process&, int partition, MPI_Request handle) {
  PartitionedRequest& request = find_ready(handle);
  check_partition(request, partition, "partition");
  Marking marking(request);
  marking.add(partition);
  marking.end();
}

void pready_range(Process&, int low, int high, MPI_Request handle) {
  PartitionedRequest& request = find_ready(handle);
  check_partition(request, low, "partition_low");
  check_partition(request, high, "partition_high");
  if (low > high) {
    base::fail(MPI_ERR_ARG,
               "partition_low is {}, partition_high {}; give a partition_high that is not less",
               low, high);
  }
  Marking marking(request);
  for (int i = low; i <= high; ++i)
    marking.add(i);
  marking.end();
}

void pready_list(Process&, int length, const int* partitions, MPI_Request handle) {
  PartitionedRequest& request = find_ready(handle);
  for (int i = 0; i < length; ++i)
    check_partition(request, partitions[i], "array_of_partitions", i);
  if (length == 0) return;
  Marking marking(request);
  for (int i = 0; i < length; ++i)
    marking.add(partitions[i]);
  marking.end();
}

void parrived(Process& self, MPI_Request handle, int partition, int* flag) {
  *flag = 1;
  if (handle == MPI_REQUEST_NULL) return;
  const PartitionedRequest& request = find(handle, partitioned_receive);
  check_partition(request, partition, "partition");
  if (request.receive == nullptr) return; // of MPI_PROC_NULL
  // Another thread may complete the request meanwhile: without the lock only counters are read.
  const auto number = static_cast<std::uint32_t>(partition);
  if (request.receive->has_arrived(number)) return;
  const ThenTheRest then(self);
  std::unique_lock<Lock> held(self.lock, std::defer_lock);
  if (self.thread_multiple && !held.try_lock()) return void(*flag = 0); // another thread looks
  if (request.active) self.instance->look();
  // A round that has failed is over for all partitions; MPI_Wait says how.
  *flag = !request.active || request.complete || request.receive->has_arrived(number) ? 1 : 0;
}

} // namespace macadam::mpi
