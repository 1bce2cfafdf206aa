// SPDX-License-Identifier: BSD-3-Clause
// Reduce, Allreduce, Reduce_scatter(_block), Scan and Exscan, with sums, in place, and with an
// operation that is associative but not commutative, which shows any wrong order.
#include "coll/forms.h"

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>

namespace {

// x -> a*x + b modulo a prime: composing such maps is associative and does not commute.
struct Affine {
  std::uint32_t a, b;
};
constexpr std::uint64_t prime = 1000003;

Affine compose(Affine first, Affine second) {
  return {static_cast<std::uint32_t>(std::uint64_t{second.a} * first.a % prime),
          static_cast<std::uint32_t>((std::uint64_t{second.a} * first.b + second.b) % prime)};
}

void compose_all(void* in, void* inout, int* n, MPI_Datatype*) {
  const auto* left = static_cast<const Affine*>(in);
  auto* right = static_cast<Affine*>(inout);
  for (int i = 0; i < *n; ++i)
    right[i] = compose(left[i], right[i]);
}

// One reduction problem: what each rank gives, and the fold of ranks [first, last).
struct Problem {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  bool affine = false;

  static Affine give(int rank, int i) {
    return {static_cast<std::uint32_t>(2 + (rank * 131 + i * 7) % 1000),
            static_cast<std::uint32_t>((rank * 17 + i * 29 + 1) % 1000)};
  }
  std::vector<Affine> input(int rank, int n) const {
    std::vector<Affine> data(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i)
      data[static_cast<std::size_t>(i)] = give(rank, i);
    return data;
  }
  Affine fold(int first, int last, int i) const {
    Affine result = give(first, i);
    for (int r = first + 1; r < last; ++r) {
      const Affine next = give(r, i);
      result = affine ? compose(result, next) : Affine{result.a + next.a, result.b + next.b};
    }
    return result;
  }
  void expect(const std::vector<Affine>& data, int n, int first, int last, int offset = 0) const {
    for (int i = 0; i < n; ++i) {
      const Affine wanted = fold(first, last, i + offset);
      CHECK_EQUAL(data[static_cast<std::size_t>(i)].a, wanted.a);
      CHECK_EQUAL(data[static_cast<std::size_t>(i)].b, wanted.b);
    }
  }
};

const std::vector<int> counts = check::light()
                                    ? std::vector<int>{0, 3, 10000}
                                    : std::vector<int>{0, 1, 3, 100, 1500, 10000, 20000, 150000};

void with_both_operations(const std::function<void(const Problem&)>& test) {
  Problem sum, affine;
  OK(MPI_Type_contiguous(2, MPI_UINT32_T, &affine.type));
  OK(MPI_Type_commit(&affine.type));
  OK(MPI_Op_create(compose_all, 0, &affine.op));
  affine.affine = true;
  sum.type = MPI_UINT32_T;
  sum.op = MPI_SUM;
  test(sum);
  test(affine);
  OK(MPI_Op_free(&affine.op));
  OK(MPI_Type_free(&affine.type));
}

int items(const Problem& p, int n) {
  return p.affine ? n : 2 * n;
}

void reduce() {
  with_both_operations([](const Problem& p) {
    on_communicators([&p](MPI_Comm comm, int rank, int size) {
      for (Form form : forms)
        for (int n : counts)
          for (int root = 0; root < size; ++root) {
            if (n > check::times(20000, 1500) && root > 1) continue;
            const std::vector<Affine> in = p.input(rank, n);
            std::vector<Affine> out(static_cast<std::size_t>(n));
            COLLECTIVE(form, Reduce, reduce, in.data(), out.data(), items(p, n), p.type, p.op, root,
                       comm);
            if (rank == root) p.expect(out, n, 0, size);
            std::vector<Affine> both = in;
            const bool at_root = rank == root;
            COLLECTIVE(form, Reduce, reduce, at_root ? MPI_IN_PLACE : both.data(),
                       at_root ? both.data() : nullptr, items(p, n), p.type, p.op, root, comm);
            p.expect(both, n, at_root ? 0 : rank, at_root ? size : rank + 1);
          }
    });
  });
}

void allreduce() {
  with_both_operations([](const Problem& p) {
    on_communicators([&p](MPI_Comm comm, int rank, int size) {
      for (Form form : forms)
        for (int n : counts) {
          const std::vector<Affine> in = p.input(rank, n);
          std::vector<Affine> out(static_cast<std::size_t>(n)), both = in;
          COLLECTIVE(form, Allreduce, allreduce, in.data(), out.data(), items(p, n), p.type, p.op,
                     comm);
          p.expect(out, n, 0, size);
          COLLECTIVE(form, Allreduce, allreduce, MPI_IN_PLACE, both.data(), items(p, n), p.type,
                     p.op, comm);
          p.expect(both, n, 0, size);
        }
    });
  });
}

void scans() {
  with_both_operations([](const Problem& p) {
    on_communicators([&p](MPI_Comm comm, int rank, int) {
      for (Form form : forms)
        for (int n : counts) {
          const std::vector<Affine> in = p.input(rank, n);
          std::vector<Affine> out(static_cast<std::size_t>(n)), both = in;
          COLLECTIVE(form, Scan, scan, in.data(), out.data(), items(p, n), p.type, p.op, comm);
          p.expect(out, n, 0, rank + 1);
          COLLECTIVE(form, Scan, scan, MPI_IN_PLACE, both.data(), items(p, n), p.type, p.op, comm);
          p.expect(both, n, 0, rank + 1);
          both = in;
          COLLECTIVE(form, Exscan, exscan, in.data(), out.data(), items(p, n), p.type, p.op, comm);
          if (rank > 0) p.expect(out, n, 0, rank);
          COLLECTIVE(form, Exscan, exscan, MPI_IN_PLACE, both.data(), items(p, n), p.type, p.op,
                     comm);
          if (rank > 0) p.expect(both, n, 0, rank);
        }
    });
  });
}

void reduce_scatter_block() {
  with_both_operations([](const Problem& p) {
    on_communicators([&p](MPI_Comm comm, int rank, int size) {
      for (Form form : forms)
        for (int n : check::sizes({0, 1, 50, 3000, 30000})) {
          const std::vector<Affine> in = p.input(rank, n * size);
          std::vector<Affine> out(static_cast<std::size_t>(n)), both = in;
          COLLECTIVE(form, Reduce_scatter_block, reduce_scatter_block, in.data(), out.data(),
                     items(p, n), p.type, p.op, comm);
          p.expect(out, n, 0, size, n * rank);
          COLLECTIVE(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, both.data(),
                     items(p, n), p.type, p.op, comm);
          p.expect(both, n, 0, size, n * rank);
        }
    });
  });
}

// Every rank gets a part of another length, some none.
void reduce_scatter() {
  with_both_operations([](const Problem& p) {
    on_communicators([&p](MPI_Comm comm, int rank, int size) {
      for (Form form : forms)
        for (int n : {1, 40, 5000}) {
          std::vector<int> parts;
          int total = 0, before = 0;
          for (int r = 0; r < size; ++r) {
            const int part = r % 3 == 1 ? 0 : n + r;
            parts.push_back(items(p, part));
            if (r < rank) before += part;
            total += part;
          }
          const int mine = rank % 3 == 1 ? 0 : n + rank;
          const std::vector<Affine> in = p.input(rank, total);
          std::vector<Affine> out(static_cast<std::size_t>(mine)), both = in;
          COLLECTIVE(form, Reduce_scatter, reduce_scatter, in.data(), out.data(), parts.data(),
                     p.type, p.op, comm);
          p.expect(out, mine, 0, size, before);
          COLLECTIVE(form, Reduce_scatter, reduce_scatter, MPI_IN_PLACE, both.data(), parts.data(),
                     p.type, p.op, comm);
          p.expect(both, mine, 0, size, before);
        }
    });
  });
}

// A type whose first byte is not at its element's address, which the operation is given aligned.
struct Padded {
  std::int32_t unused, tag;
  alignas(16) std::array<double, 2> values;
};

void add_aligned(void* in, void* inout, int* n, MPI_Datatype*) {
  for (void* const buffer : {in, inout})
    CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(buffer) % alignof(Padded), 0u);
  const auto* from = static_cast<const Padded*>(in);
  auto* to = static_cast<Padded*>(inout);
  for (int i = 0; i < *n; ++i)
    to[i] = {0, to[i].tag + from[i].tag, {to[i].values[0] + from[i].values[0], 0}};
}

void aligned_operands() {
  const int lengths[] = {1, 2};
  const MPI_Aint places[] = {offsetof(Padded, tag), offsetof(Padded, values)};
  const MPI_Datatype parts[] = {MPI_INT32_T, MPI_DOUBLE};
  MPI_Datatype data, type;
  MPI_Op op;
  OK(MPI_Type_create_struct(2, lengths, places, parts, &data));
  OK(MPI_Type_create_resized(data, 0, sizeof(Padded), &type));
  OK(MPI_Type_commit(&type));
  OK(MPI_Op_create(add_aligned, 1, &op));
  on_communicators([&](MPI_Comm comm, int rank, int size) {
    for (Form form : forms)
      for (int n : {1, 2, 300}) {
        const std::vector<Padded> in(static_cast<std::size_t>(n), {0, 1, {rank + 0.5, 0}});
        std::vector<Padded> sum(in.size()), prefix(in.size());
        COLLECTIVE(form, Allreduce, allreduce, in.data(), sum.data(), n, type, op, comm);
        COLLECTIVE(form, Scan, scan, in.data(), prefix.data(), n, type, op, comm);
        COLLECTIVE(form, Reduce, reduce, in.data(), prefix.data(), n, type, op, size - 1, comm);
        CHECK_EQUAL(sum.back().tag, size);
        CHECK_EQUAL(sum.back().values[0], size * size / 2.0);
        CHECK_EQUAL(prefix.back().tag, rank == size - 1 ? size : rank + 1);
      }
  });
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free(&data));
}

// Of an exclusive scan, rank 0 need have no place for the result.
void exscan_of_rank_0() {
  on_communicators([](MPI_Comm comm, int rank, int /*size*/) {
    for (Form form : forms) {
      int mine = rank + 1;
      int below = -1;
      COLLECTIVE(form, Exscan, exscan, &mine, rank == 0 ? nullptr : &below, 1, MPI_INT, MPI_SUM,
                 comm);
      COLLECTIVE(form, Exscan, exscan, &mine, rank == 0 ? &mine : &below, 1, MPI_INT, MPI_SUM,
                 comm);
      CHECK_EQUAL(mine, rank + 1);
      CHECK_EQUAL(below, rank == 0 ? -1 : rank * (rank + 1) / 2);
    }
  });
}

// Elements without data take no memory, however many they are.
void no_data() {
  MPI_Datatype empty, type;
  OK(MPI_Type_contiguous(0, MPI_INT, &empty));
  OK(MPI_Type_create_resized(empty, 0, 8, &type));
  OK(MPI_Type_commit(&type));
  MPI_Op op;
  OK(MPI_Op_create(compose_all, 0, &op));
  on_communicators([&](MPI_Comm comm, int /*rank*/, int /*size*/) {
    int in = 0, out = 0;
    OK(MPI_Reduce_scatter_block(&in, &out, INT_MAX, type, op, comm));
    OK(MPI_Allreduce(&in, &out, INT_MAX, type, op, comm));
  });
  OK(MPI_Op_free(&op));
  OK(MPI_Type_free(&type));
  OK(MPI_Type_free(&empty));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"reduce", reduce},
                     {"allreduce", allreduce},
                     {"scans", scans},
                     {"reduce_scatter_block", reduce_scatter_block},
                     {"reduce_scatter", reduce_scatter},
                     {"aligned_operands", aligned_operands},
                     {"exscan_of_rank_0", exscan_of_rank_0},
                     {"no_data", no_data}});
}
