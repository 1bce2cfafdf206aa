// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/agree.h"

#include "mpi/collectives.h"

#include <algorithm>
#include <string>
#include <vector>

namespace macadam::mpi {

void agree(Process& self, Communicator& comm, const std::optional<base::Error>& own) {
  const std::optional<Failed> failed = find_failed(self, comm, own);
  if (!failed) return;
  const auto first = attempt([&] { share_error(self, comm, failed->rank, own); });
  throw own ? *own : *first;
}

void share_error(Process& self, Communicator& comm, int root,
                 const std::optional<base::Error>& error) {
  struct {
    std::int32_t error_class = MPI_SUCCESS;
    std::uint32_t bytes = 0;
  } head;
  std::string text;
  if (comm.rank() == root && error) {
    text = error->text;
    head = {error->error_class, static_cast<std::uint32_t>(text.size())};
  }
  bcast_bytes(self, comm, &head, sizeof head, root);
  if (head.error_class == MPI_SUCCESS) return;
  text.resize(head.bytes);
  bcast_bytes(self, comm, text.data(), text.size(), root);
  if (comm.rank() != root) text = fmt::format("rank {} of {}: {}", root, describe(comm), text);
  throw base::Error(head.error_class, text);
}

std::optional<Failed> find_failed(Process& self, Communicator& comm,
                                  const std::optional<base::Error>& own) {
  const std::int32_t mine = own ? own->error_class : MPI_SUCCESS;
  std::vector<std::int32_t> all(static_cast<std::size_t>(comm.size()));
  allgather_bytes(self, comm, &mine, sizeof mine, all.data());
  const auto first = std::ranges::find_if(all, [](std::int32_t e) { return e != MPI_SUCCESS; });
  if (first == all.end()) return {};
  return Failed{static_cast<int>(first - all.begin()), *first};
}

} // namespace macadam::mpi
