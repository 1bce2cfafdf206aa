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
    if (status.error == MPI_ERR_PROC_ABORTED) return note_gone(engine::Engine::peer_of(request));
    // The end of all communication says why.
    const base::Error* const failure = comm_.shared->engine.failure();
    return note(
        {status.error, failure != nullptr ? failure->text : base::no_memory(on_the_way).text});
  }
  if (request.role != engine::Role::receive || status.cancelled) return;
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

void Batch::note_gone(const engine::Peer* peer) noexcept {
  try {
    note({MPI_ERR_PROC_ABORTED,
          fmt::format("a message to or from rank {} of the communicator cannot finish: {}",
                      peer != nullptr ? comm_.team->peers->find(peer->rank) : MPI_ANY_SOURCE,
                      engine::Engine::why_failed(peer))});
  } catch (const std::bad_alloc&) { // the class says enough
    note({MPI_ERR_PROC_ABORTED, {}});
  }
}

// Of all batches of the collective, which may be in flight beside each other.
void Batch::withdraw() noexcept {
  if (!lost_) return;
  engine::Engine& engine = comm_.shared->engine;
  const auto is_of_collective = [this](const engine::ReceiveRequest& receive) {
    return receive.continuation == &on_complete &&
           receive.envelope.context == comm_.team->context && receive.envelope.tag == comm_.tag;
  };
  std::uint64_t next = 0;
  try {
    while (auto* const receive = engine.matcher().next_posted(next, is_of_collective)) {
      next = receive->sequence + 1;
      static_cast<Batch*>(receive->argument)->note({MPI_ERR_PROC_ABORTED, error_->text});
      engine.cancel(*receive);
    }
  } catch (const std::bad_alloc&) { // so they are waited for
  }
}

void Batch::on_complete(engine::Request& request, void* batch) noexcept {
  auto& self = *static_cast<Batch*>(batch);
  const bool was_lost = self.lost_;
  self.check(request);
  self.comm_.shared->engine.release(&request);
  // Before this one counts as finished, so that the batch is still there afterwards.
  if (self.lost_ && !was_lost) [[unlikely]]
    self.withdraw();
  if (--self.active_ == 0 && self.waiting_) {
    std::exchange(self.waiting_, nullptr).resume();
  }
}

void Batch::note(base::Error&& error) noexcept {
  lost_ = lost_ || error.error_class == MPI_ERR_PROC_ABORTED;
  if (!error_) error_.emplace(std::move(error));
}

Task finish(Comm& /*memory*/, std::span<Batch> batches) {
  for (Batch& batch : batches)
    batch.withdraw();
  for (Batch& batch : batches)
    co_await batch.ended();
  for (Batch& batch : batches)
    co_await batch;
}

void Batch::throw_error() {
  const base::Error error = std::move(*error_);
  error_.reset();
  lost_ = false;
  throw error;
}

} // namespace macadam::coll
