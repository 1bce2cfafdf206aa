// SPDX-License-Identifier: BSD-3-Clause
// Reading and writing of each rank alone: at explicit offsets and at its own pointer, contiguous
// and by datatypes, within the file and beyond its end.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

void at_offsets() {
  Folder folder;
  constexpr int apart = 1 << 23;
  const std::string path = folder("file");
  File file(MPI_COMM_WORLD, path, io::new_file);
  MPI_Status status;
  const auto place = [](int rank) { return MPI_Offset{rank} * apart + 3; };
  for (const int bytes : check::message_sizes()) {
    const auto seed = static_cast<std::uint64_t>(bytes);
    const Bytes out =
        check::message(static_cast<std::size_t>(bytes), seed + static_cast<unsigned>(check::rank));
    OK(MPI_File_write_at(file, place(check::rank), out.data(), bytes, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, bytes);
    io::settle(file);
    Bytes in(static_cast<std::size_t>(bytes) + 8, 0xee);
    OK(MPI_File_read_at(file, place(io::right()), in.data(), bytes, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, bytes);
    HOLDS(in.data(), bytes, seed + static_cast<unsigned>(io::right()));
    UNTOUCHED(in.data() + bytes, 8, 0xee);
    CHECK_EQUAL(io::position(file), 0);
    io::barrier();
  }
}

void own_pointers() {
  Folder folder;
  MPI_Status status;
  const File file(MPI_COMM_SELF, folder("file", check::rank), io::new_file);
  const Bytes data = check::message(1000, 7);
  for (int done = 0, next = 1; done < 1000; done += next, next = std::min(2 * next, 1000 - done)) {
    CHECK_EQUAL(io::position(file), done);
    OK(MPI_File_write(file, data.data() + done, next, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, next);
  }
  CHECK_EQUAL(io::position(file), 1000);
  const auto read_here = [&](std::size_t place, int count) {
    Bytes in(static_cast<std::size_t>(count));
    OK(MPI_File_read(file, in.data(), count, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, count);
    SAME_BYTES(in, Bytes(data.begin() + static_cast<std::ptrdiff_t>(place),
                         data.begin() + static_cast<std::ptrdiff_t>(place) + count));
    CHECK_EQUAL(io::position(file), static_cast<MPI_Offset>(place) + count);
  };
  OK(MPI_File_seek(file, 100, MPI_SEEK_SET));
  read_here(100, 50);
  OK(MPI_File_seek(file, 20, MPI_SEEK_CUR));
  read_here(170, 30);
  OK(MPI_File_seek(file, -200, MPI_SEEK_CUR));
  read_here(0, 10);
  OK(MPI_File_seek(file, -10, MPI_SEEK_END));
  read_here(990, 10);
  OK(MPI_File_seek(file, 0, MPI_SEEK_CUR));
  CHECK_EQUAL(io::position(file), 1000);
  MPI_Offset place = -1;
  OK(MPI_File_get_byte_offset(file, 77, &place));
  CHECK_EQUAL(place, 77);
  // A pointer may go beyond the end, which moves only when something is written there.
  OK(MPI_File_seek(file, 24, MPI_SEEK_END));
  CHECK_EQUAL(io::position(file), 1024);
  CHECK_EQUAL(io::size_of(file), 1000);
  OK(MPI_File_write(file, data.data(), 1, MPI_BYTE, &status));
  CHECK_EQUAL(io::size_of(file), 1025);
}

void beyond_the_end() {
  Folder folder;
  MPI_Status status;
  const std::string path = folder("file", check::rank);
  io::store(path, check::message(22, 9));
  const File file(MPI_COMM_SELF, path, MPI_MODE_RDONLY);
  Bytes in(40, 0xee);
  OK(MPI_File_read_at(file, 0, in.data(), 40, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 22);
  HOLDS(in.data(), 22, 9);
  UNTOUCHED(in.data() + 22, 18, 0xee);
  OK(MPI_File_read_at(file, 22, in.data(), 40, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 0);
  OK(MPI_File_read_at(file, 1 << 20, in.data(), 40, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 0);
  // Pairs of short numbers: 5 of them and a half.
  const Type pair(io::contiguous(2, MPI_SHORT));
  OK(MPI_File_read_at(file, 0, in.data(), 10, pair, &status));
  MOVED(status, pair, MPI_UNDEFINED);
  CHECK_EQUAL(io::elements(status, pair), 11);
  int small = -1;
  OK(MPI_Get_elements(&status, pair, &small));
  CHECK_EQUAL(small, 11);
  OK(MPI_File_read_at(file, 2, in.data(), 10, pair, &status));
  MOVED(status, pair, 5);
  CHECK_EQUAL(io::elements(status, pair), 10);
  // A pointer goes on by what was read.
  OK(MPI_File_seek(file, 10, MPI_SEEK_SET));
  OK(MPI_File_read(file, in.data(), 40, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 12);
  CHECK_EQUAL(io::position(file), 22);
  OK(MPI_File_read(file, in.data(), 40, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 0);
  CHECK_EQUAL(io::position(file), 22);
}

void nothing() {
  Folder folder;
  MPI_Status status;
  const File file(MPI_COMM_SELF, folder("file", check::rank), io::new_file);
  const Type empty(io::contiguous(0, MPI_INT)), column(io::vector(4, 1, 9, MPI_INT));
  int value = 5;
  for (const MPI_Datatype type : {MPI_BYTE, MPI_DOUBLE, static_cast<MPI_Datatype>(column)}) {
    OK(MPI_File_write(file, nullptr, 0, type, &status));
    MOVED(status, type, 0);
    OK(MPI_File_write_at(file, 500, nullptr, 0, type, &status));
    MOVED(status, type, 0);
    OK(MPI_File_read(file, nullptr, 0, type, &status));
    MOVED(status, type, 0);
    OK(MPI_File_read_at(file, 500, nullptr, 0, type, &status));
    MOVED(status, type, 0);
  }
  OK(MPI_File_write(file, &value, 3, empty, &status));
  OK(MPI_File_read(file, &value, 3, empty, &status));
  CHECK_EQUAL(value, 5);
  CHECK_EQUAL(io::position(file), 0);
  CHECK_EQUAL(io::size_of(file), 0);
}

void large_forms() {
  Folder folder;
  MPI_Status status;
  const File file(MPI_COMM_SELF, folder("file", check::rank), io::new_file);
  const MPI_Count count = 300;
  std::vector<int> out(300), in(900, -1);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<int>(i) - 150;
  OK(MPI_File_write_c(file, out.data(), count, MPI_INT, &status));
  MOVED(status, MPI_INT, count);
  OK(MPI_File_write_at_c(file, 1200, out.data(), count, MPI_INT, &status));
  MOVED(status, MPI_INT, count);
  OK(MPI_File_seek(file, 0, MPI_SEEK_SET));
  OK(MPI_File_read_c(file, in.data(), count, MPI_INT, &status));
  MOVED(status, MPI_INT, count);
  OK(MPI_File_read_at_c(file, 1200, in.data() + 300, 2 * count, MPI_INT, &status));
  MOVED(status, MPI_INT, count);
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK_EQUAL(in[i], i < 600 ? out[i % 300] : -1);
}

// Places that 32 bits do not count, in a file with a hole.
void far_away() {
  Folder folder;
  MPI_Status status;
  const std::string path = folder("file");
  const File file(MPI_COMM_WORLD, path, io::new_file);
  const auto place = [](int rank) { return (MPI_Offset{1} << 32) * (rank + 1) - 5; };
  const Bytes out = check::message(100, static_cast<unsigned>(check::rank));
  OK(MPI_File_seek(file, place(check::rank), MPI_SEEK_SET));
  OK(MPI_File_write(file, out.data(), 100, MPI_BYTE, &status));
  CHECK_EQUAL(io::position(file), place(check::rank) + 100);
  io::settle(file);
  Bytes in(100);
  OK(MPI_File_read_at(file, place(io::left()), in.data(), 100, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 100);
  HOLDS(in.data(), 100, static_cast<unsigned>(io::left()));
  CHECK_EQUAL(io::size_of(file), place(check::size - 1) + 100);
}

// Writes `count` of `type` from memory of which `used` bytes are the data, in this order; reads
// them back into the same places of other memory.
void memory_type(const std::string& path, int count, MPI_Datatype type,
                 const std::vector<std::size_t>& used, std::size_t origin, std::size_t bytes) {
  MPI_Status status;
  const Bytes memory = check::message(bytes, 11);
  Bytes expected(3, 0);
  for (const std::size_t place : used)
    expected.push_back(memory[place]);
  const File file(MPI_COMM_SELF, path, io::new_file);
  OK(MPI_File_write(file, "\0\0\0", 3, MPI_BYTE, &status));
  OK(MPI_File_write(file, memory.data() + origin, count, type, &status));
  MOVED(status, type, count);
  CHECK_EQUAL(io::position(file), static_cast<MPI_Offset>(expected.size()));
  SAME_BYTES(io::contents(path), expected);
  Bytes in(bytes, 0xee), wanted(bytes, 0xee);
  for (const std::size_t place : used)
    wanted[place] = memory[place];
  OK(MPI_File_read_at(file, 3, in.data() + origin, count, type, &status));
  MOVED(status, type, count);
  SAME_BYTES(in, wanted);
}

void derived_types_in_memory() {
  Folder folder;
  int number = 0;
  const auto path = [&] { return folder("file", 100 * check::rank + number++); };
  std::vector<std::size_t> used;
  const auto run_of = [&used](std::size_t begin, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      used.push_back(begin + i);
  };
  const Type column(io::vector(5, 2, 7, MPI_INT));
  for (std::size_t k = 0; k < 2; ++k) // extent: 4 strides of 7 and 2 ints
    for (std::size_t i = 0; i < 5; ++i)
      run_of(120 * k + 28 * i, 8);
  memory_type(path(), 2, column, used, 0, 300);

  used.clear();
  const int lengths[] = {3, 1, 2};
  const MPI_Aint places[] = {16, 0, 40};
  const MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
  MPI_Datatype structure;
  OK(MPI_Type_create_struct(3, lengths, places, types, &structure));
  {
    const Type record(io::resized(structure, 0, 48));
    for (std::size_t k = 0; k < 4; ++k) { // in the order of the type, not of the addresses
      run_of(48 * k + 16, 3);
      run_of(48 * k, 8);
      run_of(48 * k + 40, 4);
    }
    memory_type(path(), 4, record, used, 0, 200);
  }
  OK(MPI_Type_free(&structure));

  used.clear();
  const Type backwards(io::resized(MPI_INT, 0, -12));
  for (std::size_t k = 0; k < 3; ++k)
    run_of(24 - 12 * k, 4);
  memory_type(path(), 3, backwards, used, 24, 30);

  used.clear();
  const Type block(io::subarray({4, 5, 6}, {2, 3, 2}, {1, 1, 3}, MPI_SHORT));
  for (std::size_t i = 1; i < 3; ++i)
    for (std::size_t j = 1; j < 4; ++j)
      run_of(2 * (30 * i + 6 * j + 3), 4);
  memory_type(path(), 1, block, used, 0, 240);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"at_offsets", at_offsets},
                     {"own_pointers", own_pointers},
                     {"beyond_the_end", beyond_the_end},
                     {"nothing", nothing},
                     {"large_forms", large_forms},
                     {"far_away", far_away},
                     {"derived_types_in_memory", derived_types_in_memory}});
}
