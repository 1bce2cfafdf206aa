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
  } catch (const base::Error& error) {
    note(error.error_class, error.text);
  }
}

void Batch::receive(int from, const Data& data) noexcept {
  const engine::Team& team = *comm_.team;
  engine::Engine& engine = comm_.shared->engine;
  try {
    engine::Peer& peer = engine.peer((*team.peers)[from]);
    add(*engine.receive(&peer, {team.context, from, comm_.tag}, data));
    receives_ = true;
  } catch (const base::Error& error) {
    note(error.error_class, error.text);
  }
}

void Batch::copy(const Data& from, const Data& to) noexcept {
  try {
    coll::copy(from, to);
  } catch (const base::Error& error) {
    note(error.error_class, error.text);
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

void Batch::check(const engine::Request& request) {
  const engine::Status& status = request.status;
  if (status.error != MPI_SUCCESS && status.error != MPI_ERR_TRUNCATE) [[unlikely]] {
    note(status.error, "the connection to a process of the communicator failed");
    return;
  }
  if (request.role != engine::Role::receive) return;
  const auto& receive = static_cast<const engine::ReceiveRequest&>(request);
  const std::size_t needed = receive.data.bytes();
  const std::size_t found = status.error == MPI_SUCCESS ? status.bytes : receive.incoming;
  if (found != needed) [[unlikely]] {
    note(MPI_ERR_TRUNCATE,
         fmt::format(
             "rank {} sent {} bytes, rank {} needed {}: all ranks must give counts and types "
             "that describe the same data",
             status.source, found, comm_.rank(), needed));
  }
}

void Batch::on_complete(engine::Request& request, void* batch) {
  auto& self = *static_cast<Batch*>(batch);
  self.check(request);
  self.comm_.shared->engine.release(&request);
  if (--self.active_ == 0 && self.waiting_) {
    std::exchange(self.waiting_, nullptr).resume();
  }
}

void Batch::note(int error_class, std::string text) {
  if (error_class_ != MPI_SUCCESS) return;
  error_class_ = error_class;
  error_ = std::move(text);
}

void Batch::throw_error() {
  throw base::Error(std::exchange(error_class_, MPI_SUCCESS), std::move(error_));
}

} // namespace macadam::coll
