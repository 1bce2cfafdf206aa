// SPDX-License-Identifier: BSD-3-Clause
// Reduction operations: every predefined one on the types it allows, MINLOC, and user-made ones.
#include "check.h"

#include <algorithm>
#include <complex>

namespace {

// Reduces one value per rank and compares with the same fold done here.
template <class T>
void expect_fold(MPI_Op op, MPI_Datatype type, T (*value)(int rank), T (*fold)(T, T)) {
  T mine = value(check::rank), result{}, wanted = value(0);
  for (int r = 1; r < check::size; ++r)
    wanted = fold(wanted, value(r));
  OK(MPI_Allreduce(&mine, &result, 1, type, op, MPI_COMM_WORLD));
  CHECK(result == wanted);
  // The same on two local values.
  T in = value(1), inout = value(2);
  OK(MPI_Reduce_local(&in, &inout, 1, type, op));
  CHECK(inout == fold(value(1), value(2)));
}

template <class T>
T number(int rank) {
  return static_cast<T>((rank * 5 + 3) % 7 + 1);
}

template <class T>
void arithmetic(MPI_Datatype type) {
  expect_fold<T>(MPI_SUM, type, number<T>, [](T a, T b) { return static_cast<T>(a + b); });
  expect_fold<T>(MPI_PROD, type, number<T>, [](T a, T b) { return static_cast<T>(a * b); });
  expect_fold<T>(MPI_MAX, type, number<T>, [](T a, T b) { return std::max(a, b); });
  expect_fold<T>(MPI_MIN, type, number<T>, [](T a, T b) { return std::min(a, b); });
}

template <class T>
void bits(MPI_Datatype type) {
  expect_fold<T>(MPI_BAND, type, number<T>, [](T a, T b) { return static_cast<T>(a & b); });
  expect_fold<T>(MPI_BOR, type, number<T>, [](T a, T b) { return static_cast<T>(a | b); });
  expect_fold<T>(MPI_BXOR, type, number<T>, [](T a, T b) { return static_cast<T>(a ^ b); });
}

template <class T>
T truth(int rank) {
  return static_cast<T>(rank % 2);
}

template <class T>
void logic(MPI_Datatype type) {
  expect_fold<T>(MPI_LAND, type, truth<T>, [](T a, T b) { return static_cast<T>(a && b); });
  expect_fold<T>(MPI_LOR, type, truth<T>, [](T a, T b) { return static_cast<T>(a || b); });
  expect_fold<T>(MPI_LXOR, type, truth<T>, [](T a, T b) { return static_cast<T>(!a != !b); });
}

void integers() {
  const auto all = [](auto example, MPI_Datatype type) {
    using T = decltype(example);
    arithmetic<T>(type);
    bits<T>(type);
    logic<T>(type);
  };
  all(char{}, MPI_CHAR); // beyond the standard, as other libraries
  all(static_cast<signed char>(0), MPI_SIGNED_CHAR);
  all(static_cast<unsigned char>(0), MPI_UNSIGNED_CHAR);
  all(short{}, MPI_SHORT);
  all(static_cast<unsigned short>(0), MPI_UNSIGNED_SHORT);
  all(0, MPI_INT);
  all(0u, MPI_UNSIGNED);
  all(0l, MPI_LONG);
  all(0ul, MPI_UNSIGNED_LONG);
  all(0ll, MPI_LONG_LONG);
  all(0ull, MPI_UNSIGNED_LONG_LONG);
  all(std::int8_t{}, MPI_INT8_T);
  all(std::int16_t{}, MPI_INT16_T);
  all(std::int32_t{}, MPI_INT32_T);
  all(std::int64_t{}, MPI_INT64_T);
  all(std::uint8_t{}, MPI_UINT8_T);
  all(std::uint16_t{}, MPI_UINT16_T);
  all(std::uint32_t{}, MPI_UINT32_T);
  all(std::uint64_t{}, MPI_UINT64_T);
}

void floating() {
  arithmetic<float>(MPI_FLOAT);
  arithmetic<double>(MPI_DOUBLE);
  arithmetic<long double>(MPI_LONG_DOUBLE);
  using Complex = std::complex<double>;
  const auto value = [](int rank) { return Complex(rank + 1, rank % 2); };
  expect_fold<Complex>(MPI_SUM, MPI_C_DOUBLE_COMPLEX, value,
                       [](Complex a, Complex b) { return a + b; });
  expect_fold<Complex>(MPI_PROD, MPI_C_DOUBLE_COMPLEX, value,
                       [](Complex a, Complex b) { return a * b; });
}

void booleans_and_addresses() {
  logic<bool>(MPI_C_BOOL);
  arithmetic<MPI_Aint>(MPI_AINT);
  arithmetic<MPI_Count>(MPI_COUNT);
  arithmetic<MPI_Offset>(MPI_OFFSET);
  bits<unsigned char>(MPI_BYTE);
  logic<MPI_Aint>(MPI_AINT); // beyond the standard, as other libraries
  logic<MPI_Count>(MPI_COUNT);
}

// Equal values: the lowest index wins.
void minimum_and_its_place() {
  struct {
    double value;
    int place;
  } in{check::rank % 2 ? 1.0 : 2.0, check::rank}, out{};
  OK(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
  CHECK_EQUAL(out.value, check::size > 1 ? 1.0 : 2.0);
  CHECK_EQUAL(out.place, check::size > 1 ? 1 : 0);
  OK(MPI_Allreduce(&in, &out, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD));
  CHECK_EQUAL(out.value, 2.0);
  CHECK_EQUAL(out.place, 0);
  int pair[2] = {5, check::rank}, best[2] = {};
  OK(MPI_Allreduce(pair, best, 1, MPI_2INT, MPI_MAXLOC, MPI_COMM_WORLD));
  CHECK(best[0] == 5 && best[1] == 0);
}

// A user's function sees the user's datatype, also one with gaps.
MPI_Datatype seen_type = MPI_DATATYPE_NULL;

void add_pairs(void* in, void* inout, int* n, MPI_Datatype* type) {
  seen_type = *type;
  for (int i = 0; i < *n; ++i) { // two ints with a gap of one between them
    const int* a = static_cast<const int*>(in) + 3 * i;
    int* b = static_cast<int*>(inout) + 3 * i;
    b[0] += a[0];
    b[2] += a[2];
  }
}

void user_function_on_noncontiguous_data() {
  MPI_Datatype pair;
  MPI_Op op;
  OK(MPI_Type_vector(2, 1, 2, MPI_INT, &pair));
  OK(MPI_Type_commit(&pair));
  OK(MPI_Op_create(add_pairs, 1, &op));
  for (int n : {1, 700, check::times(30000, 6000)}) {
    std::vector<int> in(static_cast<std::size_t>(3 * n), check::rank), out(in.size(), -7);
    OK(MPI_Allreduce(in.data(), out.data(), n, pair, op, MPI_COMM_WORLD));
    const int sum = check::size * (check::size - 1) / 2;
    for (std::size_t i = 0; i < out.size(); ++i)
      CHECK_EQUAL(out[i], i % 3 == 1 ? -7 : sum);
  }
  CHECK(seen_type == MPI_DATATYPE_NULL || seen_type == pair); // not every rank need reduce
  OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
  OK(MPI_Type_free(&pair));
}

void subtract(void* in, void* inout, MPI_Count* n, MPI_Datatype*) {
  for (MPI_Count i = 0; i < *n; ++i)
    static_cast<int*>(inout)[i] = static_cast<int*>(in)[i] - static_cast<int*>(inout)[i];
}

void large_count_function() {
  MPI_Op op;
  OK(MPI_Op_create_c(subtract, 0, &op));
  int a[3] = {10, 20, 30}, b[3] = {1, 2, 3}, commutes = 1;
  OK(MPI_Reduce_local(a, b, 3, MPI_INT, op));
  CHECK(b[0] == 9 && b[1] == 18 && b[2] == 27);
  OK(MPI_Op_commutative(op, &commutes));
  CHECK(!commutes);
  OK(MPI_Op_commutative(MPI_SUM, &commutes));
  CHECK(commutes);
  OK(MPI_Op_free(&op));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"integers", integers},
                     {"floating", floating},
                     {"booleans_and_addresses", booleans_and_addresses},
                     {"minimum_and_its_place", minimum_and_its_place},
                     {"user_function_on_noncontiguous_data", user_function_on_noncontiguous_data},
                     {"large_count_function", large_count_function}});
}
