// SPDX-License-Identifier: BSD-3-Clause
// Rooted collectives between two groups, where the ranks beside the root take no part.
#include "coll/forms.h"

namespace {

// The even and the odd ranks of MPI_COMM_WORLD. Each rank of each group is the root once.
void with_each_root(const std::function<void(Form, MPI_Comm, int root, int mine)>& test) {
  MPI_Comm half, comm;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, 0, &half));
  OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - check::rank % 2, 0, &comm));
  for (Form form : forms)
    for (int root = 0; root < check::size; ++root) {
      const bool near = root % 2 == check::rank % 2;
      test(form, comm, near ? (root == check::rank ? MPI_ROOT : MPI_PROC_NULL) : root / 2,
           check::rank + 1);
    }
  OK(MPI_Comm_free(&comm));
  OK(MPI_Comm_free(&half));
}

int remote_size(MPI_Comm comm) {
  int size = 0;
  OK(MPI_Comm_remote_size(comm, &size));
  return size;
}

// What the ranks of the other group gave.
int remote_value(int r) {
  return 2 * r + 2 - check::rank % 2;
}

// With MPI_PROC_NULL as root nothing else means anything.
constexpr int no_count = -7;
const MPI_Datatype no_type = MPI_DATATYPE_NULL;

void reduce() {
  with_each_root([](Form form, MPI_Comm comm, int root, int mine) {
    int sum = -1, expected = 0;
    if (root == MPI_PROC_NULL) {
      COLLECTIVE(form, Reduce, reduce, MPI_IN_PLACE, MPI_IN_PLACE, no_count, no_type, MPI_OP_NULL,
                 root, comm);
      COLLECTIVE(form, Reduce, reduce, nullptr, nullptr, 1, MPI_INT, MPI_REPLACE, root, comm);
      return;
    }
    for (int i = 0; i < 2; ++i)
      COLLECTIVE(form, Reduce, reduce, &mine, &sum, 1, MPI_INT, MPI_SUM, root, comm);
    for (int r = 0; r < remote_size(comm); ++r)
      expected += remote_value(r);
    CHECK_EQUAL(sum, root == MPI_ROOT ? expected : -1);
  });
}

void bcast() {
  with_each_root([](Form form, MPI_Comm comm, int root, int mine) {
    int data = root == MPI_ROOT ? mine : -1;
    if (root == MPI_PROC_NULL) {
      COLLECTIVE(form, Bcast, bcast, nullptr, no_count, no_type, root, comm);
      return;
    }
    COLLECTIVE(form, Bcast, bcast, &data, 1, MPI_INT, root, comm);
    CHECK_EQUAL(data, root == MPI_ROOT ? mine : remote_value(root));
  });
}

void gather_and_scatter() {
  with_each_root([](Form form, MPI_Comm comm, int root, int mine) {
    if (root == MPI_PROC_NULL) {
      COLLECTIVE(form, Gather, gather, MPI_IN_PLACE, no_count, no_type, nullptr, no_count, no_type,
                 root, comm);
      COLLECTIVE(form, Scatter, scatter, nullptr, no_count, no_type, MPI_IN_PLACE, no_count,
                 no_type, root, comm);
      COLLECTIVE(form, Gatherv, gatherv, MPI_IN_PLACE, no_count, no_type, nullptr, nullptr, nullptr,
                 no_type, root, comm);
      COLLECTIVE(form, Scatterv, scatterv, nullptr, nullptr, nullptr, no_type, MPI_IN_PLACE,
                 no_count, no_type, root, comm);
      return;
    }
    const int n = remote_size(comm);
    const auto remote = static_cast<std::size_t>(n);
    std::vector<int> all(remote, -1), counts(remote, 1), places(remote);
    for (int r = 0; r < n; ++r)
      places[static_cast<std::size_t>(r)] = n - 1 - r;
    COLLECTIVE(form, Gather, gather, &mine, 1, MPI_INT, all.data(), 1, MPI_INT, root, comm);
    int back = -1;
    COLLECTIVE(form, Scatter, scatter, all.data(), 1, MPI_INT, &back, 1, MPI_INT, root, comm);
    if (root != MPI_ROOT) CHECK_EQUAL(back, mine);
    for (int r = 0; root == MPI_ROOT && r < n; ++r)
      CHECK_EQUAL(all[static_cast<std::size_t>(r)], remote_value(r));
    COLLECTIVE(form, Gatherv, gatherv, &mine, 1, MPI_INT, all.data(), counts.data(), places.data(),
               MPI_INT, root, comm);
    back = -1;
    COLLECTIVE(form, Scatterv, scatterv, all.data(), counts.data(), places.data(), MPI_INT, &back,
               1, MPI_INT, root, comm);
    if (root != MPI_ROOT) CHECK_EQUAL(back, mine);
    for (int r = 0; root == MPI_ROOT && r < n; ++r)
      CHECK_EQUAL(all[static_cast<std::size_t>(n - 1 - r)], remote_value(r));
  });
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv,
      {{"reduce", reduce}, {"bcast", bcast}, {"gather_and_scatter", gather_and_scatter}});
}
