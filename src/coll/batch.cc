// SPDX-License-Identifier: BSD-3-Clause
#include "coll/batch.h"

#include "base/error.h"
#include "coll/buffers.h"

#include <utility>

namespace macadam::coll {

void Batch::send(int to, const Data& data) noexcept {
  const engine::Team& team = *comm_.team;
  engine::Engine& engine = comm_.shared->engine;
  using enum engine::SendMode;
  try {
    engine::Peer& peer = engine.peer((*team.peers)[to]);
    engine::Request* request = engine.send(peer, {team.context, team.rank, comm_.tag}, data,
                                           receives_ ? exchange : standard);
    if (request != nullptr) add(*request);
  } catch (...) {
    note(base::caught(on_the_way));
  }
}

void Batch::receive(int from, const Data& data) noexcept {
  const engine::Team& team = *comm_.team;
  engine::Engine& engine = comm_.shared->engine;
  try {
    engine::Peer& peer = engine.peer((*team.peers)[from]);
    add(*engine.receive(&peer, {team.context, from, comm_.tag}, data));
    receives_ = true;
  } catch (...) {
    note(base::caught(on_the_way));
  }
}

void Batch::copy(const Data& from, const Data& to) noexcept {
  try {
    coll::copy(from, to);
  } catch (...) {
    note(base::caught(on_the_way));
  }
}

void Batch::add(engine::Request& request) {
  if (request.complete) {
    check(request);
    comm_.shared->engine.release(&request);
    return;
  }
  request.continuation = &on_complete;
  request.argument = this;
  ++active_;
}

void Batch::check(const engine::Request& request) noexcept {
  const engine::Status& status = request.status;
  if (status.error != MPI_SUCCESS && status.error != MPI_ERR_TRUNCATE) [[unlikely]] {
    const bool gone = status.error == MPI_ERR_PROC_ABORTED;
    if (gone)
      return note(
          base::make_error(status.error, "the connection to a process of the communicator failed"));
    // The end of all communication says why.
    const base::Error* const failure = comm_.shared->engine.failure();
    return note(
        {status.error, failure != nullptr ? failure->text : base::no_memory(on_the_way).text});
  }
  if (request.role != engine::Role::receive) return;
  const auto& receive = static_cast<const engine::ReceiveRequest&>(request);
  const std::size_t needed = receive.data.bytes();
  const std::size_t found = status.error == MPI_SUCCESS ? status.bytes : receive.incoming;
  if (found != needed) [[unlikely]] {
    note(base::make_error(
        MPI_ERR_TRUNCATE,
        "rank {} sent {} bytes, rank {} needed {}: all ranks must give counts and types "
        "that describe the same data, and call the same collectives (MACADAM_CHECK=1 names calls "
        "that differ)",
        status.source, found, comm_.rank(), needed));
  }
}

void Batch::on_complete(engine::Request& request, void* batch) noexcept {
  auto& self = *static_cast<Batch*>(batch);
  self.check(request);
  self.comm_.shared->engine.release(&request);
  if (--self.active_ == 0 && self.waiting_) {
    std::exchange(self.waiting_, nullptr).resume();
  }
}

void Batch::note(base::Error&& error) noexcept {
  if (!error_) error_.emplace(std::move(error));
}

Task finish(Comm& /*memory*/, std::span<Batch> batches) {
  for (Batch& batch : batches)
    co_await batch.ended();
  for (Batch& batch : batches)
    co_await batch;
}

void Batch::throw_error() {
  const base::Error error = std::move(*error_);
  error_.reset();
  throw error;
}

} // namespace macadam::coll
