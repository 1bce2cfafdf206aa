// SPDX-License-Identifier: BSD-3-Clause
// Data representations that the program registers, with conversions of its own.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

// An int takes `width` bytes of the file, the highest first, and `sign` is added to it.
struct Codec {
  MPI_Aint width;
  int sign;
  int reads = 0, writes = 0;
};

// Calls body(memory, file) for each int of `count` from `position` on of the datatype in memory.
template <class Body>
void for_each_int(void* memory, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset position,
                  const Codec& codec, bool reads, Body&& body) {
  int bytes = 0;
  OK(MPI_Type_size(type, &bytes));
  const MPI_Offset each = bytes / 4, first = position / each;
  const MPI_Offset last = (position + count + each - 1) / each;
  MPI_Aint lower = 0, extent = 0;
  OK(MPI_Type_get_extent(type, &lower, &extent));
  std::vector<int> ints(static_cast<std::size_t>(each * (last - first)));
  void* const begin = static_cast<char*>(memory) + first * extent;
  const int size = static_cast<int>(4 * ints.size()), types = static_cast<int>(last - first);
  int place = 0;
  OK(MPI_Pack(begin, types, type, ints.data(), size, &place, MPI_COMM_SELF));
  for (MPI_Count i = 0; i < count; ++i)
    body(ints[static_cast<std::size_t>(position - first * each + i)],
         static_cast<unsigned char*>(file) + i * codec.width);
  if (!reads) return;
  place = 0;
  OK(MPI_Unpack(ints.data(), size, &place, begin, types, type, MPI_COMM_SELF));
}

int read_ints_c(void* memory, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset position,
                void* state) {
  auto& codec = *static_cast<Codec*>(state);
  ++codec.reads;
  for_each_int(memory, type, count, file, position, codec, true,
               [&](int& value, unsigned char* from) {
                 std::uint32_t bits = 0;
                 for (MPI_Aint i = codec.width - 4; i < codec.width; ++i)
                   bits = bits << 8 | from[i];
                 value = static_cast<int>(bits) - codec.sign;
               });
  return MPI_SUCCESS;
}

int write_ints_c(void* memory, MPI_Datatype type, MPI_Count count, void* file, MPI_Offset position,
                 void* state) {
  auto& codec = *static_cast<Codec*>(state);
  ++codec.writes;
  for_each_int(
      memory, type, count, file, position, codec, false, [&](int& value, unsigned char* to) {
        std::fill_n(to, codec.width, static_cast<unsigned char>(0x77));
        for (MPI_Aint i = 0; i < 4; ++i)
          to[codec.width - 1 - i] =
              static_cast<unsigned char>(static_cast<std::uint32_t>(value + codec.sign) >> (8 * i));
      });
  return MPI_SUCCESS;
}

int read_ints(void* memory, MPI_Datatype type, int count, void* file, MPI_Offset position,
              void* state) {
  return read_ints_c(memory, type, count, file, position, state);
}
int write_ints(void* memory, MPI_Datatype type, int count, void* file, MPI_Offset position,
               void* state) {
  return write_ints_c(memory, type, count, file, position, state);
}

int extent_of_int(MPI_Datatype type, MPI_Aint* extent, void* state) {
  int size = 0;
  OK(MPI_Type_size(type, &size));
  *extent = size == 4 ? static_cast<const Codec*>(state)->width : size;
  return MPI_SUCCESS;
}

// Interleaved ints of all ranks, whose places follow from their width in the file.
void registered(const char* name, Codec& codec) {
  Folder folder;
  const std::string path = folder(name);
  const Type strided(io::vector(5, 1, check::size, MPI_INT)), pairs(io::vector(10, 2, 3, MPI_INT));
  std::vector<int> out(30, -1), in(30, -1);
  for (std::size_t i = 0; i < 20; ++i)
    out[i / 2 * 3 + i % 2] = 70000 * check::rank + static_cast<int>(i);
  MPI_Status status;
  MPI_Aint extent = -1;
  File file(MPI_COMM_WORLD, path, io::new_file);
  io::set_view(file, codec.width * check::rank, MPI_INT, strided, name);
  OK(MPI_File_get_type_extent(file, MPI_INT, &extent));
  CHECK_EQUAL(extent, codec.width);
  OK(MPI_File_get_type_extent(file, strided, &extent));
  const MPI_Aint tile = codec.width * (4 * check::size + 1);
  CHECK_EQUAL(extent, tile);
  for (int k = 0; k < 12; ++k) {
    MPI_Offset place = -1;
    OK(MPI_File_get_byte_offset(file, k, &place));
    CHECK_EQUAL(place,
                codec.width * check::rank + k / 5 * tile + k % 5 * codec.width * check::size);
  }
  // One tile, so that those of ranks do not meet: 5 ints, from both kinds of memory.
  OK(MPI_File_write_all(file, &out[0], 2, MPI_INT, &status));
  MOVED(status, MPI_INT, 2);
  const Type three(io::contiguous(3, MPI_INT));
  int more[3] = {-9, check::rank, 8};
  OK(MPI_File_write_at(file, 2, more, 1, three, &status));
  MOVED(status, three, 1);
  io::settle(file);
  OK(MPI_File_read_at_all(file, 0, in.data(), 5, MPI_INT, &status));
  MOVED(status, MPI_INT, 5);
  const int expected[] = {out[0], out[1], -9, check::rank, 8};
  CHECK(std::equal(expected, expected + 5, in.begin()));
  // Everything at once, through memory with gaps.
  io::settle(file);
  io::set_view(file, 20 * codec.width * check::rank, MPI_INT, MPI_INT, name);
  OK(MPI_File_write_all(file, out.data(), 1, pairs, &status));
  MOVED(status, pairs, 1);
  io::settle(file);
  std::fill(in.begin(), in.end(), -1);
  MPI_Request request;
  OK(MPI_File_iread_at(file, 0, in.data(), 1, pairs, &request));
  OK(MPI_Wait(&request, &status));
  MOVED(status, pairs, 1);
  CHECK(in == out);
  CHECK(codec.reads >= 2 && codec.writes >= 3);
  file.close();
  Bytes bytes;
  for (int rank = 0; rank < check::size; ++rank)
    for (int i = 0; i < 20; ++i) {
      bytes.resize(bytes.size() + static_cast<std::size_t>(codec.width - 4), 0x77);
      io::append_big_endian(bytes, 70000 * rank + i + codec.sign);
    }
  FILE_HOLDS(path, bytes);
}

void own_conversions() {
  if (!check::is_macadam()) return; // MPICH 5.0 refuses functions that convert
  static Codec swapped{4, 0}, wide{8, 1}, large{11, -5};
  OK(MPI_Register_datarep("swapped", read_ints, write_ints, extent_of_int, &swapped));
  OK(MPI_Register_datarep("wide", read_ints, write_ints, extent_of_int, &wide));
  OK(MPI_Register_datarep_c("large", read_ints_c, write_ints_c, extent_of_int, &large));
  registered("swapped", swapped);
  registered("wide", wide);
  registered("large", large);
}

// Of an element that the file ends in, what is there.
void the_end_within_an_element() {
  if (!check::is_macadam()) return; // MPICH 5.0 refuses functions that convert
  static Codec wide{8, 1};
  OK(MPI_Register_datarep("ends", read_ints, write_ints, extent_of_int, &wide));
  Folder folder;
  const std::string path = folder("file", check::rank);
  const Type pairs(io::vector(5, 2, 3, MPI_INT));
  std::vector<int> out(15), in(28, -1), expected(28, -1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = 70000 * check::rank + static_cast<int>(i);
    expected[i / 10 * 14 + i % 10 / 2 * 3 + i % 2] = out[i];
  }
  MPI_Status status;
  File file(MPI_COMM_SELF, path, io::new_file);
  io::set_view(file, 0, MPI_INT, MPI_INT, "ends");
  OK(MPI_File_write(file, out.data(), 15, MPI_INT, &status));
  for (const MPI_Offset bytes : {15 * 8, 15 * 8 - 5}) {
    const int there = bytes == 15 * 8 ? 15 : 14;
    OK(MPI_File_set_size(file, bytes));
    std::fill(in.begin(), in.end(), -1);
    OK(MPI_File_read_at(file, 0, in.data(), 2, pairs, &status));
    MOVED(status, MPI_INT, there);
    CHECK_EQUAL(io::elements(status, pairs), there);
    if (there == 14) expected[20] = -1; // the last
    CHECK(in == expected);
  }
}

// Without a function nothing is converted.
void no_conversions() {
  if (!check::is_macadam()) return; // MPICH 5.0 registers them, but knows no such view
  static Codec same{4, 0};
  OK(MPI_Register_datarep("same", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of_int,
                          &same));
  OK(MPI_Register_datarep_c("same_c", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C,
                            extent_of_int, &same));
  for (const char* const name : {"same", "same_c"}) {
    Folder folder;
    const std::string path = folder("file");
    File file(MPI_COMM_WORLD, path, io::new_file);
    io::set_view(file, 0, MPI_BYTE, MPI_BYTE, name);
    const Bytes out = check::message(100, 3);
    if (check::rank == 0) OK(MPI_File_write(file, out.data(), 25, MPI_INT, MPI_STATUS_IGNORE));
    file.close();
    FILE_HOLDS(path, out);
  }
}

// Nor are sizes those of an extent function that no conversion goes with.
void no_conversions_of_other_sizes() {
  if (!check::is_macadam()) return; // MPICH 5.0 registers them, but knows no such view
  static Codec wide{8, 0}, narrow{2, 0}, same{4, 0};
  const auto none = MPI_CONVERSION_FN_NULL;
  OK(MPI_Register_datarep("wide_none", none, none, extent_of_int, &wide));
  OK(MPI_Register_datarep_c("narrow_none", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C,
                            extent_of_int, &narrow));
  OK(MPI_Register_datarep("wide_reads", read_ints, none, extent_of_int, &wide));
  OK(MPI_Register_datarep("wide_writes", none, write_ints, extent_of_int, &wide));
  OK(MPI_Register_datarep("same_reads", read_ints, none, extent_of_int, &same));
  Folder folder;
  const std::string path = folder("file", check::rank);
  std::vector<int> out(10000), in(10000);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = 70000 * check::rank + static_cast<int>(i);
  File file(MPI_COMM_SELF, path, io::new_file);
  MPI_Status status;
  for (const char* const name : {"wide_none", "narrow_none"}) {
    io::set_view(file, 0, MPI_INT, MPI_INT, name);
    OK(MPI_File_write(file, out.data(), 10000, MPI_INT, &status));
    MOVED(status, MPI_INT, 10000);
    CHECK_EQUAL(io::size_of(file), 40000);
    OK(MPI_File_read_at(file, 0, in.data(), 10000, MPI_INT, &status));
    MOVED(status, MPI_INT, 10000);
    CHECK(in == out);
  }
  // One way converts, and the other cannot do without.
  io::set_view(file, 0, MPI_INT, MPI_INT, "wide_reads");
  FAILS(MPI_ERR_CONVERSION, MPI_File_write(file, out.data(), 10000, MPI_INT, &status));
  CHECK_EQUAL(io::position(file), 0);
  io::set_view(file, 0, MPI_INT, MPI_INT, "wide_writes");
  OK(MPI_File_write(file, out.data(), 10000, MPI_INT, &status));
  FAILS(MPI_ERR_CONVERSION, MPI_File_read_at(file, 0, in.data(), 10000, MPI_INT, &status));
  io::set_view(file, 0, MPI_INT, MPI_INT, "wide_reads");
  std::fill(in.begin(), in.end(), -1);
  OK(MPI_File_read(file, in.data(), 10000, MPI_INT, &status));
  CHECK(in == out);
  io::set_view(file, 0, MPI_INT, MPI_INT, "same_reads");
  OK(MPI_File_write(file, out.data(), 10000, MPI_INT, &status));
  std::memcpy(in.data(), io::contents(path).data(), 40000);
  CHECK(in == out);
}

// Etypes without bytes in the file.
void no_extents() {
  if (!check::is_macadam()) return; // MPICH 5.0 refuses functions that convert
  static Codec nothing{0, 0};
  OK(MPI_Register_datarep("nothing", read_ints, write_ints, extent_of_int, &nothing));
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  FAILS(MPI_ERR_CONVERSION, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "nothing", MPI_INFO_NULL));
  io::works(file);
}

int refuse(void*, MPI_Datatype, int, void*, MPI_Offset, void*) {
  return MPI_ERR_OTHER;
}

void conversions_that_fail() {
  if (!check::is_macadam()) return; // MPICH 5.0 refuses functions that convert
  static Codec same{4, 0};
  OK(MPI_Register_datarep("refused", refuse, refuse, extent_of_int, &same));
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  int value = 7;
  OK(MPI_File_write_at_all(file, 4 * check::rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  io::settle(file);
  io::set_view(file, 0, MPI_INT, MPI_INT, "refused");
  FAILS(MPI_ERR_CONVERSION, MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_CONVERSION, MPI_File_read_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  // The pointer stays where it was.
  MPI_Request request;
  OK(MPI_File_seek(file, 3, MPI_SEEK_SET));
  FAILS(MPI_ERR_CONVERSION, MPI_File_write(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_CONVERSION, MPI_File_write_all(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  FAILS(MPI_ERR_CONVERSION, MPI_File_iwrite(file, &value, 1, MPI_INT, &request));
  FAILS(MPI_ERR_CONVERSION, MPI_File_iwrite_all(file, &value, 1, MPI_INT, &request));
  CHECK_EQUAL(io::position(file), 3);
}

void names_in_use() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  static Codec codec{4, 0};
  const auto none = MPI_CONVERSION_FN_NULL;
  OK(MPI_Register_datarep("taken", none, none, extent_of_int, &codec));
  FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep("taken", none, none, extent_of_int, &codec));
  FAILS(MPI_ERR_DUP_DATAREP,
        MPI_Register_datarep_c("taken", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C,
                               extent_of_int, &codec));
  if (!check::is_macadam()) return; // MPICH 5.0 does not look among its own
  for (const char* const name : {"native", "internal", "external32"})
    FAILS(MPI_ERR_DUP_DATAREP, MPI_Register_datarep(name, none, none, extent_of_int, &codec));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"own_conversions", own_conversions},
                     {"the_end_within_an_element", the_end_within_an_element},
                     {"no_conversions", no_conversions},
                     {"no_conversions_of_other_sizes", no_conversions_of_other_sizes},
                     {"no_extents", no_extents},
                     {"conversions_that_fail", conversions_that_fail},
                     {"names_in_use", names_in_use}});
}
