// SPDX-License-Identifier: BSD-3-Clause
// Barrier and Bcast: every root, sizes, forms, datatypes.
#include "coll/forms.h"

namespace {

// Nobody leaves the barrier before the last one has entered it.
void barrier() {
  int* one_clock = nullptr;
  int flag = 0;
  OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &one_clock, &flag));
  const bool comparable = flag != 0 && *one_clock != 0;
  on_communicators([comparable](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int last = 0; last < size; ++last) {
        double entered = 0;
        if (rank == last) check::sleep_ms(10);
        entered = MPI_Wtime();
        COLLECTIVE(form, Barrier, barrier, comm);
        const double left = MPI_Wtime();
        OK(MPI_Bcast(&entered, 1, MPI_DOUBLE, last, comm));
        if (comparable) CHECK(left >= entered);
      }
  });
}

void bcast() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : element_counts)
        for (int root = 0; root < size; ++root) {
          const auto bytes = static_cast<std::size_t>(n) * sizeof(int);
          const auto seed = static_cast<std::uint64_t>(n + root);
          std::vector<int> data(static_cast<std::size_t>(n) + 1, 0x5A5A5A5A);
          if (rank == root) check::fill(data.data(), bytes, seed);
          COLLECTIVE(form, Bcast, bcast, data.data(), n, MPI_INT, root, comm);
          HOLDS(data.data(), bytes, seed);
          CHECK_EQUAL(data.back(), 0x5A5A5A5A);
        }
  });
}

// The root sends a column, the others receive it as a block.
void bcast_of_a_column() {
  const int rows = 20000, columns = 3;
  MPI_Datatype column;
  OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &column));
  OK(MPI_Type_commit(&column));
  for (int root = 0; root < check::size; ++root) {
    std::vector<int> data(rows * columns, -1);
    if (check::rank == root) {
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<int>(i);
      OK(MPI_Bcast(data.data(), 1, column, root, MPI_COMM_WORLD));
    } else {
      OK(MPI_Bcast(data.data(), rows, MPI_INT, root, MPI_COMM_WORLD));
      for (int i = 0; i < rows; ++i)
        CHECK_EQUAL(data[static_cast<std::size_t>(i)], i * columns);
      CHECK_EQUAL(data[rows], -1);
    }
  }
  OK(MPI_Type_free(&column));
}

// Many in a row without anything in between: they must not mix, fast ranks run ahead.
void many_in_a_row() {
  for (int i = 0; i < check::times(2000, 40); ++i) {
    int value = check::rank == i % check::size ? i : -1;
    OK(MPI_Bcast(&value, 1, MPI_INT, i % check::size, MPI_COMM_WORLD));
    CHECK_EQUAL(value, i);
  }
  for (int i = 0; i < check::times(1000, 40); ++i)
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"barrier", barrier},
                     {"bcast", bcast},
                     {"bcast_of_a_column", bcast_of_a_column},
                     {"many_in_a_row", many_in_a_row}});
}
