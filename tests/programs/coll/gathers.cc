// SPDX-License-Identifier: BSD-3-Clause
// Gather(v), Scatter(v), Allgather(v), Alltoall(v, w): roots, in place, uneven parts, gaps.
#include "coll/forms.h"

#include <numeric>

namespace {

const std::vector<int> block_sizes = check::sizes({0, 1, 7, 500, 3000, 20000, 100000});

int value(int from, int to, int i) {
  return from * 1000003 + to * 10007 + i;
}

std::vector<int> block(int from, int to, int n) {
  std::vector<int> data(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    data[static_cast<std::size_t>(i)] = value(from, to, i);
  return data;
}

void expect_block(const int* data, int from, int to, int n) {
  for (int i = 0; i < n; ++i)
    CHECK_EQUAL(data[i], value(from, to, i));
}

// Parts of another length for each rank, with gaps between them and out of order.
struct Parts {
  std::vector<int> counts, places;
  int length = 0;

  Parts(int size, const std::function<int(int)>& count_of) {
    places.resize(static_cast<std::size_t>(size));
    for (int r = 0; r < size; ++r)
      counts.push_back(count_of(r));
    for (int r = size - 1; r >= 0; --r) {
      places[static_cast<std::size_t>(r)] = length;
      length += counts[static_cast<std::size_t>(r)] + 2;
    }
  }
  int count(int r) const { return counts[static_cast<std::size_t>(r)]; }
  int place(int r) const { return places[static_cast<std::size_t>(r)]; }
  std::vector<int> buffer() const { return std::vector<int>(static_cast<std::size_t>(length), -1); }
  // Checks the parts by `check_part` and that no gap was written.
  void expect(std::vector<int> data, const std::function<void(int, const int*)>& check_part) const {
    for (std::size_t r = 0; r < counts.size(); ++r) {
      int* const part = data.data() + places[r];
      check_part(static_cast<int>(r), part);
      std::fill(part, part + counts[r], -1);
    }
    for (int gap : data)
      CHECK_EQUAL(gap, -1);
  }
};

void gather_and_scatter() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : block_sizes)
        for (int root = 0; root < size; ++root) {
          if (n > 3000 && root > 1) continue;
          const bool at_root = rank == root;
          std::vector<int> mine = block(rank, root, n), all;
          if (at_root) all.assign(static_cast<std::size_t>(n * size), -1);
          COLLECTIVE(form, Gather, gather, mine.data(), n, MPI_INT, all.data(), n, MPI_INT, root,
                     comm);
          for (int r = 0; at_root && r < size; ++r)
            expect_block(all.data() + r * n, r, root, n);
          if (at_root) { // in place: its own block is there already
            all.assign(all.size(), -1);
            std::copy(mine.begin(), mine.end(), all.begin() + rank * n);
          }
          COLLECTIVE(form, Gather, gather, at_root ? MPI_IN_PLACE : mine.data(), n, MPI_INT,
                     all.data(), n, MPI_INT, root, comm);
          for (int r = 0; at_root && r < size; ++r)
            expect_block(all.data() + r * n, r, root, n);

          mine.assign(mine.size(), -1);
          COLLECTIVE(form, Scatter, scatter, all.data(), n, MPI_INT, mine.data(), n, MPI_INT, root,
                     comm);
          expect_block(mine.data(), rank, root, n);
          mine.assign(mine.size(), -1);
          COLLECTIVE(form, Scatter, scatter, all.data(), n, MPI_INT,
                     at_root ? MPI_IN_PLACE : mine.data(), n, MPI_INT, root, comm);
          if (!at_root) expect_block(mine.data(), rank, root, n);
        }
  });
}

void gatherv_and_scatterv() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : {1, 300, 10000})
        for (int root = 0; root < size; ++root) {
          const Parts parts(size, [n](int r) { return r % 4 == 2 ? 0 : n + r; });
          std::vector<int> mine = block(rank, root, parts.count(rank)), all = parts.buffer();
          COLLECTIVE(form, Gatherv, gatherv, mine.data(), parts.count(rank), MPI_INT, all.data(),
                     parts.counts.data(), parts.places.data(), MPI_INT, root, comm);
          if (rank == root)
            parts.expect(all,
                         [&](int r, const int* p) { expect_block(p, r, root, parts.count(r)); });
          mine.assign(mine.size(), -1);
          COLLECTIVE(form, Scatterv, scatterv, all.data(), parts.counts.data(), parts.places.data(),
                     MPI_INT, mine.data(), parts.count(rank), MPI_INT, root, comm);
          expect_block(mine.data(), rank, root, parts.count(rank));
        }
  });
}

void allgather() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : block_sizes) {
        const std::vector<int> mine = block(rank, 0, n);
        std::vector<int> all(static_cast<std::size_t>(n * size), -1);
        COLLECTIVE(form, Allgather, allgather, mine.data(), n, MPI_INT, all.data(), n, MPI_INT,
                   comm);
        for (int r = 0; r < size; ++r)
          expect_block(all.data() + r * n, r, 0, n);
        all.assign(all.size(), -1);
        std::copy(mine.begin(), mine.end(), all.begin() + rank * n);
        COLLECTIVE(form, Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), n,
                   MPI_INT, comm);
        for (int r = 0; r < size; ++r)
          expect_block(all.data() + r * n, r, 0, n);
      }
  });
}

void allgatherv() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : {1, 300, 20000}) {
        const Parts parts(size, [n](int r) { return r % 4 == 1 ? 0 : n + r; });
        const std::vector<int> mine = block(rank, 0, parts.count(rank));
        const auto correct = [&](int r, const int* p) { expect_block(p, r, 0, parts.count(r)); };
        std::vector<int> all = parts.buffer();
        COLLECTIVE(form, Allgatherv, allgatherv, mine.data(), parts.count(rank), MPI_INT,
                   all.data(), parts.counts.data(), parts.places.data(), MPI_INT, comm);
        parts.expect(all, correct);
        all = parts.buffer();
        std::copy(mine.begin(), mine.end(), all.begin() + parts.place(rank));
        COLLECTIVE(form, Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(),
                   parts.counts.data(), parts.places.data(), MPI_INT, comm);
        parts.expect(all, correct);
      }
  });
}

void alltoall() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : block_sizes) {
        std::vector<int> out, in(static_cast<std::size_t>(n * size), -1);
        for (int r = 0; r < size; ++r) {
          const std::vector<int> part = block(rank, r, n);
          out.insert(out.end(), part.begin(), part.end());
        }
        COLLECTIVE(form, Alltoall, alltoall, out.data(), n, MPI_INT, in.data(), n, MPI_INT, comm);
        for (int r = 0; r < size; ++r)
          expect_block(in.data() + r * n, r, rank, n);
        COLLECTIVE(form, Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out.data(), n,
                   MPI_INT, comm);
        CHECK(in == out);
      }
  });
}

void alltoallv() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : {1, 200, 8000}) {
        const auto between = [n](int a, int b) { return (a + b) % 3 == 0 ? 0 : n + a + b; };
        const Parts parts(size, [&](int r) { return between(rank, r); });
        std::vector<int> out = parts.buffer(), in = parts.buffer();
        for (int r = 0; r < size; ++r) {
          const std::vector<int> part = block(rank, r, parts.count(r));
          std::copy(part.begin(), part.end(), out.begin() + parts.place(r));
        }
        const auto correct = [&](int r, const int* p) { expect_block(p, r, rank, parts.count(r)); };
        COLLECTIVE(form, Alltoallv, alltoallv, out.data(), parts.counts.data(), parts.places.data(),
                   MPI_INT, in.data(), parts.counts.data(), parts.places.data(), MPI_INT, comm);
        parts.expect(in, correct);
        COLLECTIVE(form, Alltoallv, alltoallv, MPI_IN_PLACE, nullptr, nullptr, MPI_DATATYPE_NULL,
                   out.data(), parts.counts.data(), parts.places.data(), MPI_INT, comm);
        parts.expect(out, correct);
      }
  });
}

// A transposition: every rank sends columns and receives rows, each of its own datatype.
void alltoallw() {
  on_communicators([](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : {1, 50, 2000}) {
        const auto ranks = static_cast<std::size_t>(size);
        std::vector<int> out(ranks * static_cast<std::size_t>(n)), in(out.size(), -1);
        for (int i = 0; i < n; ++i)
          for (int r = 0; r < size; ++r)
            out[static_cast<std::size_t>(i * size + r)] = value(rank, r, i);
        MPI_Datatype column;
        OK(MPI_Type_vector(n, 1, size, MPI_INT, &column));
        OK(MPI_Type_commit(&column));
        const std::vector<int> ones(ranks, 1), blocks(ranks, n);
        std::vector<int> out_places(ranks), in_places(ranks);
        for (std::size_t r = 0; r < ranks; ++r) {
          out_places[r] = static_cast<int>(r * sizeof(int));
          in_places[r] = static_cast<int>(r * static_cast<std::size_t>(n) * sizeof(int));
        }
        const std::vector<MPI_Datatype> columns(ranks, column), ints(ranks, MPI_INT);
        COLLECTIVE(form, Alltoallw, alltoallw, out.data(), ones.data(), out_places.data(),
                   columns.data(), in.data(), blocks.data(), in_places.data(), ints.data(), comm);
        for (int r = 0; r < size; ++r)
          expect_block(in.data() + r * n, r, rank, n);
        OK(MPI_Type_free(&column));
      }
  });
}

// Sent as a column, received as a block; gathered into columns.
void gather_into_columns() {
  const int n = 5000, size = check::size;
  MPI_Datatype column, narrow;
  OK(MPI_Type_vector(n, 1, size, MPI_INT, &column));
  OK(MPI_Type_create_resized(column, 0, sizeof(int), &narrow));
  OK(MPI_Type_commit(&narrow));
  const std::vector<int> mine = block(check::rank, 0, n);
  std::vector<int> all(static_cast<std::size_t>(n * size), -1);
  OK(MPI_Allgather(mine.data(), n, MPI_INT, all.data(), 1, narrow, MPI_COMM_WORLD));
  for (int i = 0; i < n; ++i)
    for (int r = 0; r < size; ++r)
      CHECK_EQUAL(all[static_cast<std::size_t>(i * size + r)], value(r, 0, i));
  OK(MPI_Type_free(&column));
  OK(MPI_Type_free(&narrow));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"gather_and_scatter", gather_and_scatter},
                     {"gatherv_and_scatterv", gatherv_and_scatterv},
                     {"allgather", allgather},
                     {"allgatherv", allgatherv},
                     {"alltoall", alltoall},
                     {"alltoallv", alltoallv},
                     {"alltoallw", alltoallw},
                     {"gather_into_columns", gather_into_columns}});
}
