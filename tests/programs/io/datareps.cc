// SPDX-License-Identifier: BSD-3-Clause
// The data representations that the standard has.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

// Of each basic type something, at once the data and what external32 makes of them.
struct Record {
  double real;
  std::int64_t wide;
  int number;
  short narrow;
  char letter;
};

Record record_of(int i) {
  return {1.5 * i, -1000000007LL * i, 65537 * i + 3, static_cast<short>(300 - i),
          static_cast<char>('a' + i % 26)};
}

MPI_Datatype record_type() {
  const int lengths[] = {1, 1, 1, 1, 1};
  const MPI_Aint places[] = {offsetof(Record, real), offsetof(Record, wide),
                             offsetof(Record, number), offsetof(Record, narrow),
                             offsetof(Record, letter)};
  const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT64_T, MPI_INT, MPI_SHORT, MPI_CHAR};
  MPI_Datatype made;
  OK(MPI_Type_create_struct(5, lengths, places, types, &made));
  const Type inner(made);
  return io::resized(inner, 0, sizeof(Record));
}

bool equal(const Record& a, const Record& b) {
  return a.real == b.real && a.wide == b.wide && a.number == b.number && a.narrow == b.narrow &&
         a.letter == b.letter;
}

void external32_is_big_endian() {
  if (!check::is_macadam()) return; // MPICH 5.0 crashes on structures
  Folder folder;
  const std::string path = folder("file");
  constexpr int count = 40, packed = 8 + 8 + 4 + 2 + 1;
  const Type type(record_type());
  std::vector<Record> out, in(count);
  Bytes expected;
  for (int i = 0; i < count; ++i)
    out.push_back(record_of(count * check::rank + i));
  for (int i = 0; i < count * check::size; ++i) {
    const Record one = record_of(i);
    io::append_big_endian(expected, one.real);
    io::append_big_endian(expected, one.wide);
    io::append_big_endian(expected, one.number);
    io::append_big_endian(expected, one.narrow);
    io::append_big_endian(expected, one.letter);
  }
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file);
  io::set_view(file, 0, MPI_BYTE, MPI_BYTE, "external32");
  io::view_is(file, 0, MPI_BYTE, MPI_BYTE, "external32");
  const auto place = [](int rank) { return MPI_Offset{packed} * count * rank; };
  OK(MPI_File_write_at_all(file, place(check::rank), out.data(), count, type, &status));
  MOVED(status, type, count);
  io::settle(file);
  for (int way = 0; way < 4; ++way) {
    std::fill(in.begin(), in.end(), Record{});
    MPI_Request request;
    const MPI_Offset from = place(io::right());
    if (way == 0) OK(MPI_File_read_at_all(file, from, in.data(), count, type, &status));
    if (way == 1) OK(MPI_File_read_at(file, from, in.data(), count, type, &status));
    if (way == 2) {
      OK(MPI_File_iread_at(file, from, in.data(), count, type, &request));
      OK(MPI_Wait(&request, &status));
    }
    if (way == 3) {
      OK(MPI_File_read_at_all_begin(file, from, in.data(), count, type));
      OK(MPI_File_read_at_all_end(file, in.data(), &status));
    }
    MOVED(status, type, count);
    for (int i = 0; i < count; ++i)
      CHECK(equal(in[static_cast<std::size_t>(i)], record_of(count * io::right() + i)));
  }
  file.close();
  FILE_HOLDS(path, expected);
}

// Filetypes with holes, and short counts at the end.
void external32_in_a_view() {
  Folder folder;
  const std::string path = folder("file");
  const Type strided(io::every(check::size, MPI_INT)), spread(io::vector(10, 1, 2, MPI_INT));
  std::vector<int> out(20, -1), in(20, -1);
  Bytes expected;
  for (int i = 0; i < 10; ++i)
    out[static_cast<std::size_t>(2 * i)] = 70000 * check::rank + i;
  for (int i = 0; i < 10; ++i)
    for (int rank = 0; rank < check::size; ++rank)
      io::append_big_endian(expected, 70000 * rank + i);
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file);
  io::set_view(file, 4 * check::rank, MPI_INT, strided, "external32");
  OK(MPI_File_write_all(file, out.data(), 1, spread, &status));
  MOVED(status, spread, 1);
  CHECK_EQUAL(io::position(file), 10);
  io::settle(file);
  const int wanted = static_cast<int>(io::over_the_end(15, 8));
  OK(MPI_File_read_at(file, 2, in.data(), wanted, MPI_INT, &status));
  MOVED(status, MPI_INT, 8);
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK_EQUAL(in[i], i < 8 ? out[2 * i + 4] : -1);
  MPI_Aint extent = -1;
  for (const MPI_Datatype type : {MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE}) {
    MPI_Aint size = -1;
    OK(MPI_Pack_external_size("external32", 1, type, &size));
    OK(MPI_File_get_type_extent(file, type, &extent));
    CHECK_EQUAL(extent, size);
  }
  if (check::is_macadam()) { // MPICH 5.0 tells the extent in memory
    OK(MPI_File_get_type_extent(file, MPI_WCHAR, &extent));
    CHECK_EQUAL(extent, 2);
  }
  file.close();
  FILE_HOLDS(path, expected);
}

// The file ends within an element of the datatype in memory, whose begin is there.
void the_end_within_an_element() {
  if (!check::is_macadam()) return; // MPICH 5.0 counts what was asked for
  Folder folder;
  const Type ten(io::contiguous(10, MPI_INT)), spread(io::vector(10, 1, 2, MPI_INT));
  MPI_Status status;
  for (const char* const name : {"native", "external32"}) {
    std::vector<int> out;
    for (int i = 0; i < 15; ++i)
      out.push_back(70000 * check::rank - i);
    const File file(MPI_COMM_SELF, folder(name + std::string("_"), check::rank), io::new_file);
    io::set_view(file, 0, MPI_INT, MPI_INT, name);
    OK(MPI_File_write_at(file, 0, out.data(), 15, MPI_INT, &status));
    for (const MPI_Datatype type : {MPI_Datatype{ten}, MPI_Datatype{spread}}) {
      std::vector<int> in(39, -1), expected(39, -1);
      for (std::size_t i = 0; i < 15; ++i)
        expected[type == ten ? i : i / 10 * 19 + i % 10 * 2] = out[i];
      OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
      OK(MPI_File_read(file, in.data(), 2, type, &status));
      MOVED(status, type, MPI_UNDEFINED);
      MOVED(status, MPI_INT, 15);
      CHECK_EQUAL(io::elements(status, type), 15);
      CHECK_EQUAL(io::position(file), 15);
      CHECK(in == expected);
    }
  }
}

void native_and_internal() {
  Folder folder;
  const Type type(record_type());
  for (const char* const name : {"native", "internal"}) {
    const File file(MPI_COMM_WORLD, folder(name), io::new_file);
    io::set_view(file, 0, MPI_INT, MPI_INT, name);
    // MPICH 5.0 calls both native.
    if (check::is_macadam()) io::view_is(file, 0, MPI_INT, MPI_INT, name);
    std::vector<int> out = {1, -2, 300 + check::rank}, in(3);
    OK(MPI_File_write_at_all(file, 3 * check::rank, out.data(), 3, MPI_INT, MPI_STATUS_IGNORE));
    io::settle(file);
    OK(MPI_File_read_at_all(file, 3 * io::left(), in.data(), 3, MPI_INT, MPI_STATUS_IGNORE));
    out[2] = 300 + io::left();
    CHECK(in == out);
  }
}

void unknown_names() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  for (const char* const name : {"", "Native", "external", "no such"}) {
    if (name[0] == 'N' && !check::is_macadam()) continue; // MPICH 5.0 knows that too
    FAILS(MPI_ERR_UNSUPPORTED_DATAREP,
          MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, name, MPI_INFO_NULL));
  }
  io::view_is(file, 0, MPI_BYTE, MPI_BYTE);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"external32_is_big_endian", external32_is_big_endian},
                     {"external32_in_a_view", external32_in_a_view},
                     {"the_end_within_an_element", the_end_within_an_element},
                     {"native_and_internal", native_and_internal},
                     {"unknown_names", unknown_names}});
}
