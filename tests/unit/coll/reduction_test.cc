// SPDX-License-Identifier: BSD-3-Clause
// Collectives that combine: every algorithm, operations that commute and one that does not, against
// the operands written down in order.
#include "datatype/constructors.h"
#include "world.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

namespace macadam::test {
namespace {

using coll::Algorithm;
using coll::Arguments;
using coll::Blocks;
using coll::Kind;
using datatype::Op;
using datatype::Type;
using datatype::TypeRef;

// An element of any of the cases below, as two numbers.
struct Value {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  bool operator==(const Value&) const = default;
};

datatype::PredefinedOps& ops() {
  static datatype::PredefinedOps all;
  return all;
}

// The function x -> a x + b, modulo 2^32, stored with gaps; composing is associative and does not
// commute.
struct Affine {
  std::uint32_t a;
  std::uint32_t gap;
  std::uint32_t b;
  std::uint32_t end;
};
Value compose(Value f, Value g) {
  return {f.a * g.a, f.a * g.b + f.b};
}
void compose_arrays(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* f = static_cast<const Affine*>(in);
  auto* g = static_cast<Affine*>(inout);
  for (int i = 0; i < *count; ++i) {
    const Value both = compose({f[i].a, f[i].b}, {g[i].a, g[i].b});
    g[i].a = both.a;
    g[i].b = both.b;
  }
}

void add_arrays(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* f = static_cast<const Affine*>(in);
  auto* g = static_cast<Affine*>(inout);
  for (int i = 0; i < *count; ++i) {
    g[i].a += f[i].a;
    g[i].b += f[i].b;
  }
}
// The same functions without gaps, as shared memory takes them.
void compose_values(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* f = static_cast<const Value*>(in);
  auto* g = static_cast<Value*>(inout);
  for (int i = 0; i < *count; ++i)
    g[i] = compose(f[i], g[i]);
}
// Numbers that lie so many bytes from where their elements begin.
template <int shift>
void add_shifted(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* from = static_cast<const std::byte*>(in) + shift;
  auto* to = static_cast<std::byte*>(inout) + shift;
  for (int i = 0; i < *count; ++i)
    reinterpret_cast<std::uint32_t*>(to)[i] += reinterpret_cast<const std::uint32_t*>(from)[i];
}
void call_at_once(void (*call)(void*), void* argument) {
  call(argument);
}

struct Case {
  const char* name;
  TypeRef type;
  const Op& op;
  std::function<Value(Value, Value)> combine;
  std::function<void(Value, std::byte*)> write;
  std::function<Value(const std::byte*)> read;
};

template <class T>
Case number_case(const char* name, MPI_Datatype type, MPI_Op op,
                 std::function<std::uint32_t(std::uint32_t, std::uint32_t)> combine) {
  return {name,
          TypeRef(types()[type]),
          ops()[op],
          [combine](Value x, Value y) {
            return Value{combine(x.a, y.a), 0};
          },
          [](Value v, std::byte* to) {
            const T number = static_cast<T>(v.a);
            std::memcpy(to, &number, sizeof number);
          },
          [](const std::byte* from) {
            T number;
            std::memcpy(&number, from, sizeof number);
            return Value{static_cast<std::uint32_t>(number), 0};
          }};
}

template <int shift>
Case shifted_case(const char* name, const Op& op) {
  static const MPI_Count displacement[] = {shift};
  TypeRef type = datatype::hindexed_block(1, displacement, types()[MPI_UINT32_T]);
  type->commit();
  return {name,
          type,
          op,
          [](Value x, Value y) {
            return Value{x.a + y.a, 0};
          },
          [](Value v, std::byte* to) { std::memcpy(to + shift, &v.a, sizeof v.a); },
          [](const std::byte* from) {
            Value v;
            std::memcpy(&v.a, from + shift, sizeof v.a);
            return v;
          }};
}

const std::vector<Case>& cases() {
  static const Op composition(&compose_arrays, false, &call_at_once);
  static const Op composition_of_values(&compose_values, false, &call_at_once);
  static const Op sum_with_gaps(&add_arrays, true, &call_at_once);
  static const Op sum_behind(&add_shifted<8>, true, &call_at_once);
  static const Op sum_before(&add_shifted<-8>, true, &call_at_once);
  static const std::vector<Case> all = [] {
    TypeRef pair = datatype::vector(2, 1, 2, types()[MPI_UINT32_T]);
    TypeRef affine = datatype::resized(*pair, 0, sizeof(Affine));
    affine->commit();
    TypeRef value = datatype::contiguous(2, types()[MPI_UINT32_T]);
    value->commit();
    const auto write_affine = [](Value v, std::byte* to) {
      const Affine f{v.a, 0xa5a5a5a5, v.b, 0xa5a5a5a5};
      std::memcpy(to, &f, offsetof(Affine, end));
    };
    const auto read_affine = [](const std::byte* from) {
      Affine f;
      std::memcpy(&f, from, offsetof(Affine, end));
      EXPECT_EQ(f.gap, 0xa5a5a5a5);
      return Value{f.a, f.b};
    };
    std::vector<Case> list;
    list.push_back(number_case<std::uint32_t>("sum", MPI_UINT32_T, MPI_SUM,
                                              [](auto x, auto y) { return x + y; }));
    list.push_back(number_case<double>("max", MPI_DOUBLE, MPI_MAX,
                                       [](auto x, auto y) { return std::max(x, y); }));
    list.push_back({"composition", affine, composition, compose, write_affine, read_affine});
    list.push_back({"sum with gaps", affine, sum_with_gaps,
                    [](Value x, Value y) {
                      return Value{x.a + y.a, x.b + y.b};
                    },
                    write_affine, read_affine});
    list.push_back(shifted_case<8>("sum behind its address", sum_behind));
    list.push_back(shifted_case<-8>("sum before its address", sum_before));
    list.push_back({"composition without gaps", value, composition_of_values, compose,
                    [](Value v, std::byte* to) { std::memcpy(to, &v, sizeof v); },
                    [](const std::byte* from) {
                      Value v;
                      std::memcpy(&v, from, sizeof v);
                      return v;
                    }});
    return list;
  }();
  return all;
}

// Element i of rank r; small, so that a double holds every sum exactly.
Value operand(const Case& test, int rank, MPI_Count i) {
  const auto x =
      static_cast<std::uint32_t>(rank) * 2654435761u + static_cast<std::uint32_t>(i) * 40503u;
  return {(x >> 8) % 1000 + 1, test.op.commutative() ? 0 : (x >> 4) % 1000};
}

// The operands of ranks first to last, in order.
Value combined(const Case& test, int first, int last, MPI_Count i) {
  Value sum = operand(test, first, i);
  for (int rank = first + 1; rank <= last; ++rank)
    sum = test.combine(sum, operand(test, rank, i));
  return sum;
}

class Vector {
 public:
  Vector(const Case& test, MPI_Count count) : test_(test), count_(count) {
    // Exact room, so that a sanitizer sees any step outside.
    if (count > 0)
      memory_.resize(
          static_cast<std::size_t>((count - 1) * test.type->extent() + test.type->true_extent()));
    for (MPI_Count i = 0; i < count; ++i)
      set(i, {77, 77});
  }
  void fill(int rank) {
    for (MPI_Count i = 0; i < count_; ++i)
      set(i, operand(test_, rank, i));
  }
  [[nodiscard]] Value operator[](MPI_Count i) const {
    return test_.read(address() + i * test_.type->extent());
  }
  [[nodiscard]] Blocks blocks() { return {address(), count_, test_.type.get(), {}, {}, nullptr}; }

 private:
  [[nodiscard]] std::byte* address() const {
    auto* const data = const_cast<std::byte*>(memory_.data());
    return count_ == 0 ? data : data - test_.type->true_lb();
  }
  void set(MPI_Count i, Value v) { test_.write(v, address() + i * test_.type->extent()); }
  const Case& test_;
  MPI_Count count_;
  std::vector<std::byte> memory_;
};

template <class Test>
void for_everything(Kind kind, Test&& test) {
  std::uint64_t seed = 100;
  for (const Algorithm algorithm : coll::algorithms_of(kind)) {
    for (const int ranks : every_rank_count()) {
      for (const bool wild : {false, true}) {
        ++seed;
        World world(ranks, options_for(algorithm, wild ? rough(seed) : calm()));
        world.force(kind, algorithm);
        for (const Case& one : cases()) {
          if (!one.op.commutative() && !coll::keeps_order(kind, algorithm)) continue;
          std::vector<MPI_Count> counts = {0, 1, 2, 13, 64, 250};
          if ((algorithm == Algorithm::shared || on_levels(algorithm)) && ranks <= 5)
            counts.push_back(50001); // in chunks
          for (const MPI_Count count : counts) {
            for (const bool in_place : {false, true}) {
              SCOPED_TRACE(fmt::format("{} {}, {} ranks, {} of {}{}, seed {}", name(kind),
                                       name(algorithm), ranks, one.name, count,
                                       in_place ? ", in place" : "", wild ? seed : 0));
              test(world, one, count, in_place);
              if (::testing::Test::HasFailure()) return;
            }
          }
        }
        EXPECT_TRUE(world.at_rest());
        EXPECT_EQ(world.network().registered(), 0u);
      }
    }
  }
}

// The vectors of all ranks, filled where each rank's contribution is.
struct Vectors {
  Vectors(World& world, const Case& test, MPI_Count count,
          const std::function<bool(int)>& in_place) {
    for (int rank = 0; rank < world.size(); ++rank) {
      out.push_back(std::make_unique<Vector>(test, count));
      in.push_back(std::make_unique<Vector>(test, count));
      (in_place(rank) ? in : out).back()->fill(rank);
    }
  }
  Arguments arguments(int rank, const Case& test, bool in_place) {
    Arguments a;
    a.in_place = in_place;
    if (!in_place) a.send = out[static_cast<std::size_t>(rank)]->blocks();
    a.receive = in[static_cast<std::size_t>(rank)]->blocks();
    a.op = &test.op;
    return a;
  }
  std::vector<std::unique_ptr<Vector>> out;
  std::vector<std::unique_ptr<Vector>> in;
};

void expect_no_errors(const std::vector<std::string>& errors) {
  EXPECT_EQ(errors, std::vector<std::string>(errors.size()));
}

TEST(Reduction, Reduce) {
  for_everything(Kind::reduce, [](World& world, const Case& test, MPI_Count count, bool in_place) {
    const int root = static_cast<int>(world.random() % static_cast<unsigned>(world.size()));
    Vectors vectors(world, test, count, [&](int rank) { return in_place && rank == root; });
    expect_no_errors(world.run(&coll::reduce, [&](int rank) {
      Arguments a = vectors.arguments(rank, test, in_place && rank == root);
      if (rank != root) a.receive = {};
      a.root = root;
      return a;
    }));
    const Vector& result = *vectors.in[static_cast<std::size_t>(root)];
    for (MPI_Count i = 0; i < count; ++i) {
      EXPECT_EQ(result[i], combined(test, 0, world.size() - 1, i));
    }
  });
}

TEST(Reduction, Allreduce) {
  for_everything(Kind::allreduce,
                 [](World& world, const Case& test, MPI_Count count, bool in_place) {
                   Vectors vectors(world, test, count, [&](int) { return in_place; });
                   expect_no_errors(world.run(&coll::allreduce, [&](int rank) {
                     return vectors.arguments(rank, test, in_place);
                   }));
                   for (int rank = 0; rank < world.size(); ++rank) {
                     for (MPI_Count i = 0; i < count; ++i) {
                       EXPECT_EQ((*vectors.in[static_cast<std::size_t>(rank)])[i],
                                 combined(test, 0, world.size() - 1, i));
                     }
                   }
                 });
}

TEST(Reduction, Scan) {
  for_everything(Kind::scan, [](World& world, const Case& test, MPI_Count count, bool in_place) {
    Vectors vectors(world, test, count, [&](int) { return in_place; });
    expect_no_errors(
        world.run(&coll::scan, [&](int rank) { return vectors.arguments(rank, test, in_place); }));
    for (int rank = 0; rank < world.size(); ++rank) {
      for (MPI_Count i = 0; i < count; ++i) {
        EXPECT_EQ((*vectors.in[static_cast<std::size_t>(rank)])[i], combined(test, 0, rank, i));
      }
    }
  });
}

TEST(Reduction, Exscan) {
  for_everything(Kind::scan, [](World& world, const Case& test, MPI_Count count, bool in_place) {
    Vectors vectors(world, test, count, [&](int) { return in_place; });
    expect_no_errors(world.run(&coll::exscan,
                               [&](int rank) { return vectors.arguments(rank, test, in_place); }));
    for (int rank = 0; rank < world.size(); ++rank) {
      for (MPI_Count i = 0; i < count; ++i) {
        // On rank 0 nothing is written.
        const Value first = in_place ? operand(test, 0, i) : Vector(test, 1)[0];
        EXPECT_EQ((*vectors.in[static_cast<std::size_t>(rank)])[i],
                  rank == 0 ? first : combined(test, 0, rank - 1, i));
      }
    }
  });
}

// MPI_Reduce_scatter_block, and MPI_Reduce_scatter with blocks of different lengths.
void reduce_scatter_test(World& world, const Case& test, const std::vector<MPI_Count>& counts,
                         bool regular, bool in_place) {
  MPI_Count total = 0;
  for (const MPI_Count count : counts)
    total += count;
  Vectors vectors(world, test, total, [&](int) { return in_place; });
  expect_no_errors(world.run(&coll::reduce_scatter, [&](int rank) {
    Arguments a = vectors.arguments(rank, test, in_place);
    void* address = in_place ? nullptr : a.send.address;
    a.send = {address, regular ? counts[0] : 0, test.type.get(), {}, {}, nullptr};
    if (!regular) a.send.counts = {counts.data(), true};
    return a;
  }));
  MPI_Count begin = 0;
  for (int rank = 0; rank < world.size(); ++rank) {
    const MPI_Count count = counts[static_cast<std::size_t>(rank)];
    for (MPI_Count i = 0; i < count; ++i) {
      EXPECT_EQ((*vectors.in[static_cast<std::size_t>(rank)])[i],
                combined(test, 0, world.size() - 1, begin + i));
    }
    begin += count;
  }
}

TEST(Reduction, ReduceScatterBlock) {
  for_everything(
      Kind::reduce_scatter, [](World& world, const Case& test, MPI_Count count, bool in_place) {
        const std::vector<MPI_Count> counts(static_cast<std::size_t>(world.size()), count);
        reduce_scatter_test(world, test, counts, true, in_place);
      });
}

TEST(Reduction, ReduceScatter) {
  for_everything(Kind::reduce_scatter, [](World& world, const Case& test, MPI_Count count,
                                          bool in_place) {
    std::vector<MPI_Count> counts(static_cast<std::size_t>(world.size()));
    for (MPI_Count& one : counts) {
      one = world.random() % 3 == 0
                ? 0
                : static_cast<MPI_Count>(world.random() % (static_cast<std::uint64_t>(count) + 1));
    }
    reduce_scatter_test(world, test, counts, false, in_place);
  });
}

// Sums of floating point numbers depend on the bracketing: it must be the same on all ranks.
TEST(Reduction, AllreduceGivesTheSameBitsEverywhere) {
  for (const Algorithm algorithm : coll::algorithms_of(Kind::allreduce)) {
    for (const int ranks : {2, 3, 5, 7, 8, 16}) {
      World world(ranks, options_for(algorithm, rough(17)));
      world.force(Kind::allreduce, algorithm);
      constexpr std::size_t count = 37;
      const auto n = static_cast<std::size_t>(ranks);
      std::vector<std::vector<double>> data(n, std::vector<double>(count));
      for (auto& vector : data) {
        for (double& x : vector)
          x = std::ldexp(static_cast<double>(world.random() % 100000) - 50000,
                         static_cast<int>(world.random() % 60));
      }
      data[1][3] = std::numeric_limits<double>::quiet_NaN();
      for (const MPI_Op op : {MPI_SUM, MPI_MAX}) {
        auto result = data;
        expect_no_errors(world.run(&coll::allreduce, [&](int rank) {
          Arguments a;
          a.in_place = true;
          a.receive = {result[static_cast<std::size_t>(rank)].data(),
                       count,
                       &types()[MPI_DOUBLE],
                       {},
                       {},
                       nullptr};
          a.op = &ops()[op];
          return a;
        }));
        for (auto& vector : result) {
          EXPECT_EQ(std::memcmp(vector.data(), result[0].data(), count * sizeof(double)), 0);
        }
      }
      EXPECT_TRUE(world.at_rest());
    }
  }
}

} // namespace
} // namespace macadam::test
