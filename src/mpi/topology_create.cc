// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/topology_create.h"

#include "mpi/comm_create.h"
#include "mpi/joint.h"
#include "mpi/process.h"
#include "mpi/topology.h"

#include <algorithm>
#include <numeric>

namespace macadam::mpi {

std::vector<int> ranks_of_vertices(Process& self, const Communicator& comm, int vertices,
                                   bool reorder, const std::function<Traffic()>& traffic,
                                   const std::vector<Grid::Dimension>& grid) {
  std::vector<int> ranks(static_cast<std::size_t>(vertices));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!reorder) return ranks;
  const bool joint = is_joint(comm); // each job numbers its machines by itself
  std::vector<int> machines;
  for (const int rank : ranks)
    machines.push_back(joint ? 0 : self.job->node(static_cast<int>(comm.local->ranks[rank])));
  if (std::ranges::adjacent_find(machines, std::ranges::not_equal_to()) == machines.end())
    return ranks;
  return place(traffic(), machines, grid);
}

int vertex_of(const Communicator& comm, const std::vector<int>& rank_of) {
  const auto found = std::ranges::find(rank_of, comm.rank());
  return found == rank_of.end() ? MPI_UNDEFINED : static_cast<int>(found - rank_of.begin());
}

Communicator* take_vertices(Process& self, Communicator& comm, const std::vector<int>& rank_of) {
  const bool all = static_cast<int>(rank_of.size()) == comm.size();
  if (all && std::ranges::is_sorted(rank_of)) return &duplicate_ranks(self, comm);
  const int vertex = vertex_of(comm, rank_of);
  const bool taken = vertex != MPI_UNDEFINED;
  return split(self, comm, taken ? 0 : MPI_UNDEFINED, taken ? vertex : 0);
}

MPI_Comm with_topology(Communicator* made, const std::function<Topology(int rank)>& make) {
  if (made == nullptr) return MPI_COMM_NULL;
  made->topology = std::make_shared<const Topology>(make(made->rank()));
  return made->handle();
}

} // namespace macadam::mpi
