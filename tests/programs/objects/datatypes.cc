// SPDX-License-Identifier: BSD-3-Clause
// Datatypes: extents, pack and unpack in every constructor, envelopes, external32, names.
#include "check.h"

#include <numeric>

namespace {

struct Extent {
  MPI_Aint lower, extent, true_lower, true_extent;
  int size;
};

Extent extent_of(MPI_Datatype type) {
  Extent e{};
  OK(MPI_Type_get_extent(type, &e.lower, &e.extent));
  OK(MPI_Type_get_true_extent(type, &e.true_lower, &e.true_extent));
  OK(MPI_Type_size(type, &e.size));
  return e;
}

void expect_extent(MPI_Datatype type, const Extent& wanted) {
  const Extent e = extent_of(type);
  CHECK_EQUAL(e.size, wanted.size);
  CHECK_EQUAL(e.lower, wanted.lower);
  CHECK_EQUAL(e.extent, wanted.extent);
  CHECK_EQUAL(e.true_lower, wanted.true_lower);
  CHECK_EQUAL(e.true_extent, wanted.true_extent);
}

// Packs `count` elements of a datatype made of ints from 0, 1, 2, ...: which ints come out?
std::vector<int> packed(MPI_Datatype type, int count, int origin = 0) {
  std::vector<int> data(400);
  std::iota(data.begin(), data.end(), 0);
  int bytes = 0, position = 0;
  OK(MPI_Pack_size(count, type, MPI_COMM_WORLD, &bytes));
  std::vector<char> buffer(static_cast<std::size_t>(bytes));
  OK(MPI_Pack(data.data() + origin, count, type, buffer.data(), bytes, &position, MPI_COMM_WORLD));
  std::vector<int> result(static_cast<std::size_t>(position) / sizeof(int));
  if (position > 0) // an empty vector may have no address
    std::memcpy(result.data(), buffer.data(), static_cast<std::size_t>(position));
  // Unpacking gives the same places back and writes no other.
  std::vector<int> back(data.size(), -1);
  int at = 0;
  OK(MPI_Unpack(buffer.data(), position, &at, back.data() + origin, count, type, MPI_COMM_WORLD));
  CHECK_EQUAL(at, position);
  std::size_t written = 0;
  for (std::size_t i = 0; i < back.size(); ++i) {
    if (back[i] == -1) continue;
    CHECK_EQUAL(back[i], static_cast<int>(i));
    ++written;
  }
  CHECK_EQUAL(written, result.size());
  return result;
}

// Commits, checks what is packed, and frees.
void expect_packed(MPI_Datatype type, int count, const std::vector<int>& wanted, int origin = 0) {
  OK(MPI_Type_commit(&type));
  CHECK(packed(type, count, origin) == wanted);
  OK(MPI_Type_free(&type));
  CHECK(type == MPI_DATATYPE_NULL);
}

void constructors() {
  MPI_Datatype type;
  OK(MPI_Type_contiguous(3, MPI_INT, &type));
  expect_extent(type, {0, 12, 0, 12, 12});
  expect_packed(type, 2, {0, 1, 2, 3, 4, 5});
  OK(MPI_Type_vector(3, 2, 4, MPI_INT, &type));
  expect_extent(type, {0, 40, 0, 40, 24});
  expect_packed(type, 2, {0, 1, 4, 5, 8, 9, 10, 11, 14, 15, 18, 19});
  OK(MPI_Type_vector(3, 1, -2, MPI_INT, &type));
  expect_extent(type, {-16, 20, -16, 20, 12});
  expect_packed(type, 1, {10, 8, 6}, 10);
  OK(MPI_Type_create_hvector(2, 2, 20, MPI_INT, &type));
  expect_packed(type, 1, {0, 1, 5, 6});
  const int lengths[3] = {2, 0, 1}, places[3] = {5, 3, 1};
  const MPI_Aint bytes[3] = {20, 12, 4};
  OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type));
  expect_extent(type, {4, 24, 4, 24, 12});
  expect_packed(type, 2, {5, 6, 1, 11, 12, 7});
  OK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type));
  expect_packed(type, 1, {5, 6, 1});
  OK(MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &type));
  expect_packed(type, 1, {5, 6, 3, 4, 1, 2});
  OK(MPI_Type_create_hindexed_block(3, 1, bytes, MPI_INT, &type));
  expect_packed(type, 1, {5, 3, 1});
  OK(MPI_Type_create_resized(MPI_INT, -4, 12, &type));
  expect_extent(type, {-4, 12, 0, 4, 4});
  expect_packed(type, 3, {0, 3, 6});
  OK(MPI_Type_dup(MPI_INT, &type));
  expect_packed(type, 2, {0, 1});
  const MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
  OK(MPI_Type_create_struct(3, lengths, bytes, types, &type));
  expect_extent(type, {4, 24, 4, 24, 12});
  expect_packed(type, 1, {5, 6, 1});
}

void struct_padding() {
  struct Mixed {
    double x;
    char c;
  };
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR};
  MPI_Datatype type;
  OK(MPI_Type_create_struct(2, lengths, places, types, &type));
  expect_extent(type, {0, sizeof(Mixed), 0, 9, 9});
  OK(MPI_Type_free(&type));
}

// Only a structure is padded: what nests others is a whole number of their extents.
void misaligned_strides() {
  MPI_Datatype inner, outer;
  OK(MPI_Type_create_hvector(2, 1, 50, MPI_INT, &inner));
  expect_extent(inner, {0, 54, 0, 54, 8});
  OK(MPI_Type_contiguous(3, inner, &outer));
  expect_extent(outer, {0, 162, 0, 162, 24});
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_vector(2, 1, 3, inner, &outer));
  expect_extent(outer, {0, 216, 0, 216, 16});
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_create_hvector(3, 1, 54, inner, &outer));
  expect_extent(outer, {0, 162, 0, 162, 24});
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_free(&inner));
  const int lengths[2] = {1, 1};
  const MPI_Aint bytes[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR};
  OK(MPI_Type_create_struct(2, lengths, bytes, types, &inner));
  OK(MPI_Type_create_hvector(2, 1, 54, inner, &outer));
  expect_extent(outer, {0, 70, 0, 63, 18});
  OK(MPI_Type_free(&outer));
  OK(MPI_Type_free(&inner));
  OK(MPI_Type_create_hvector(2, 1, 13, MPI_DOUBLE_INT, &outer));
  expect_extent(outer, {0, 29, 0, 25, 24});
  OK(MPI_Type_free(&outer));
}

void nested() {
  MPI_Datatype pair, rows, block;
  OK(MPI_Type_vector(2, 1, 3, MPI_INT, &pair));   // ints 0 and 3, extent 4
  OK(MPI_Type_create_resized(pair, 0, 4, &rows)); // now overlapping: 0 3, 1 4, 2 5
  OK(MPI_Type_contiguous(3, rows, &block));
  expect_packed(block, 1, {0, 3, 1, 4, 2, 5});
  OK(MPI_Type_free(&pair));
  OK(MPI_Type_free(&rows));
}

void arrays() {
  const int sizes[2] = {4, 5}, parts[2] = {2, 3}, starts[2] = {1, 2};
  MPI_Datatype type;
  OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
  expect_extent(type, {0, 80, 28, 32, 24});
  expect_packed(type, 1, {7, 8, 9, 12, 13, 14});
  OK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &type));
  expect_packed(type, 1, {9, 10, 13, 14, 17, 18});
  // Six elements dealt in twos to three processes: the second one gets 2 and 3.
  const int length[1] = {6}, cyclic[1] = {MPI_DISTRIBUTE_CYCLIC}, two[1] = {2}, grid[1] = {3};
  OK(MPI_Type_create_darray(3, 1, 1, length, cyclic, two, grid, MPI_ORDER_C, MPI_INT, &type));
  expect_extent(type, {0, 24, 8, 8, 8});
  expect_packed(type, 1, {2, 3});
}

void empty() {
  MPI_Datatype type;
  OK(MPI_Type_contiguous(0, MPI_INT, &type));
  expect_extent(type, {0, 0, 0, 0, 0});
  expect_packed(type, 5, {});
  OK(MPI_Type_vector(0, 3, 5, MPI_INT, &type));
  expect_packed(type, 1, {});
  OK(MPI_Type_vector_c(0, 1, MPI_Count{1} << 62, MPI_DOUBLE, &type)); // no stride, so none too far
  expect_packed(type, 1, {});
}

void envelope_and_contents() {
  MPI_Datatype base, type;
  OK(MPI_Type_contiguous(2, MPI_INT, &base));
  OK(MPI_Type_vector(3, 4, 5, base, &type));
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  CHECK_EQUAL(combiner, MPI_COMBINER_VECTOR);
  CHECK_EQUAL(integers, 3);
  CHECK_EQUAL(addresses, 0);
  CHECK_EQUAL(types, 1);
  int ints[3];
  MPI_Aint no_address;
  MPI_Datatype inner;
  OK(MPI_Type_get_contents(type, 3, 0, 1, ints, &no_address, &inner));
  CHECK(ints[0] == 3 && ints[1] == 4 && ints[2] == 5);
  OK(MPI_Type_get_envelope(inner, &integers, &addresses, &types, &combiner));
  CHECK_EQUAL(combiner, MPI_COMBINER_CONTIGUOUS);
  OK(MPI_Type_free(&inner)); // get_contents gave us a reference
  OK(MPI_Type_get_envelope(MPI_DOUBLE, &integers, &addresses, &types, &combiner));
  CHECK_EQUAL(combiner, MPI_COMBINER_NAMED);
  OK(MPI_Type_free(&base));
  OK(MPI_Type_free(&type));
}

void several_pieces_in_one_buffer() {
  char buffer[200];
  int position = 0, n = 7;
  double x[3] = {1.5, 2.5, 3.5};
  OK(MPI_Pack(&n, 1, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
  OK(MPI_Pack(x, 3, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD));
  if (check::size > 1) { // also as a message
    if (check::rank == 0) OK(MPI_Send(buffer, position, MPI_PACKED, 1, 0, MPI_COMM_WORLD));
    if (check::rank == 1)
      OK(MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  }
  int at = 0, got = 0;
  double y[3] = {};
  OK(MPI_Unpack(buffer, position, &at, &got, 1, MPI_INT, MPI_COMM_WORLD));
  OK(MPI_Unpack(buffer, position, &at, y, 3, MPI_DOUBLE, MPI_COMM_WORLD));
  CHECK_EQUAL(at, position);
  CHECK_EQUAL(got, 7);
  for (int i = 0; i < 3; ++i)
    CHECK_EQUAL(y[i], x[i]);
}

void external32() {
  const int values[2] = {0x01020304, -2};
  MPI_Aint bytes = 0, position = 0;
  OK(MPI_Pack_external_size("external32", 2, MPI_INT, &bytes));
  CHECK_EQUAL(bytes, 8);
  unsigned char buffer[8] = {};
  OK(MPI_Pack_external("external32", values, 2, MPI_INT, buffer, 8, &position));
  CHECK_EQUAL(position, 8);
  const unsigned char big_endian[8] = {1, 2, 3, 4, 0xFF, 0xFF, 0xFF, 0xFE};
  CHECK(std::memcmp(buffer, big_endian, 8) == 0);
  int back[2] = {};
  position = 0;
  OK(MPI_Unpack_external("external32", buffer, 8, &position, back, 2, MPI_INT));
  CHECK(back[0] == values[0] && back[1] == values[1]);
}

// As many elements come back out of a status as were put in, where the last block is cut too. There
// are so many that they cannot be counted one by one.
void elements_of_statuses() {
  const int blocks = check::times(100000, 10000);
  std::vector<int> places(static_cast<std::size_t>(blocks));
  for (int i = 0; i < blocks; ++i)
    places[static_cast<std::size_t>(i)] = 2 * i + i % 2;
  MPI_Datatype scattered, row, rows;
  OK(MPI_Type_create_indexed_block(blocks, 1, places.data(), MPI_INT, &scattered));
  OK(MPI_Type_contiguous(1 << 28, MPI_INT, &row));
  OK(MPI_Type_vector(3, 1, 2, row, &rows));
  MPI_Status status;
  MPI_Count elements = 0;
  for (MPI_Datatype type : {scattered, row, rows}) {
    for (MPI_Count wanted : {0, 1, blocks / 2, blocks + 1, (1 << 28) + 7}) {
      OK(MPI_Status_set_elements_c(&status, type, wanted));
      OK(MPI_Get_elements_c(&status, type, &elements));
      CHECK_EQUAL(elements, wanted);
      OK(MPI_Get_elements_c(&status, MPI_BYTE, &elements));
      CHECK_EQUAL(elements, 4 * wanted);
    }
  }
  OK(MPI_Type_free(&scattered));
  OK(MPI_Type_free(&row));
  OK(MPI_Type_free(&rows));
}

void names() {
  char name[MPI_MAX_OBJECT_NAME];
  int length = 0;
  OK(MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length)); // a second name of the same type
  CHECK_EQUAL(std::string(name), "MPI_C_COMPLEX");
  OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
  CHECK_EQUAL(std::string(name), "MPI_DOUBLE");
  MPI_Datatype type;
  OK(MPI_Type_contiguous(3, MPI_DOUBLE, &type));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK_EQUAL(length, 0);
  OK(MPI_Type_set_name(type, "point"));
  OK(MPI_Type_get_name(type, name, &length));
  CHECK_EQUAL(std::string(name), "point");
  OK(MPI_Type_free(&type));
  // A predefined one may be given another name, also none.
  OK(MPI_Type_set_name(MPI_DOUBLE, ""));
  OK(MPI_Type_get_name(MPI_DOUBLE, name, &length));
  CHECK_EQUAL(length, 0);
  CHECK_EQUAL(std::string(name), "");
  OK(MPI_Type_set_name(MPI_DOUBLE, "MPI_DOUBLE"));
}

// Absolute addresses, with MPI_BOTTOM.
void from_the_bottom() {
  static int a = 11;
  static double b = 2.25;
  MPI_Aint places[2];
  OK(MPI_Get_address(&a, &places[0]));
  OK(MPI_Get_address(&b, &places[1]));
  CHECK_EQUAL(MPI_Aint_add(places[0], MPI_Aint_diff(places[1], places[0])), places[1]);
  const int lengths[2] = {1, 1};
  const MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
  MPI_Datatype type;
  OK(MPI_Type_create_struct(2, lengths, places, types, &type));
  OK(MPI_Type_commit(&type));
  MPI_Request request;
  struct __attribute__((packed)) {
    int a;
    double b;
  } got{};
  OK(MPI_Isend(MPI_BOTTOM, 1, type, check::rank, 0, MPI_COMM_WORLD, &request));
  OK(MPI_Recv(&got, sizeof got, MPI_BYTE, check::rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  CHECK(got.a == 11 && got.b == 2.25);
  OK(MPI_Type_free(&type));
}

void sizes_of_predefined_ones() {
  const std::vector<std::pair<MPI_Datatype, std::size_t>> sizes = {
      {MPI_CHAR, 1},
      {MPI_SHORT, sizeof(short)},
      {MPI_INT, sizeof(int)},
      {MPI_LONG, sizeof(long)},
      {MPI_LONG_LONG, 8},
      {MPI_FLOAT, 4},
      {MPI_DOUBLE, 8},
      {MPI_LONG_DOUBLE, sizeof(long double)},
      {MPI_BYTE, 1},
      {MPI_INT8_T, 1},
      {MPI_UINT16_T, 2},
      {MPI_INT32_T, 4},
      {MPI_UINT64_T, 8},
      {MPI_AINT, sizeof(MPI_Aint)},
      {MPI_COUNT, sizeof(MPI_Count)},
      {MPI_OFFSET, sizeof(MPI_Offset)},
      {MPI_C_BOOL, 1},
      {MPI_WCHAR, sizeof(wchar_t)},
      {MPI_C_DOUBLE_COMPLEX, 16},
      {MPI_2INT, 8},
      {MPI_DOUBLE_INT, 12},
      {MPI_SHORT_INT, 6}};
  for (const auto& [type, size] : sizes) {
    int found = 0;
    OK(MPI_Type_size(type, &found));
    CHECK_EQUAL(found, static_cast<int>(size));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"constructors", constructors},
                     {"struct_padding", struct_padding},
                     {"misaligned_strides", misaligned_strides},
                     {"nested", nested},
                     {"arrays", arrays},
                     {"empty", empty},
                     {"envelope_and_contents", envelope_and_contents},
                     {"several_pieces_in_one_buffer", several_pieces_in_one_buffer},
                     {"external32", external32},
                     {"elements_of_statuses", elements_of_statuses},
                     {"names", names},
                     {"from_the_bottom", from_the_bottom},
                     {"sizes_of_predefined_ones", sizes_of_predefined_ones}});
}
