// SPDX-License-Identifier: BSD-3-Clause
// Views: where each etype of a file lies for filetypes of every kind, told by plain loops.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

// A filetype, and where the etypes of one lie.
struct Layout {
  MPI_Datatype filetype;
  std::vector<MPI_Offset> places;
  MPI_Offset extent;
};

// All that can be done with a view whose etypes are `bytes` bytes without a hole.
void explore(const std::string& path, MPI_Offset disp, MPI_Datatype etype, std::size_t bytes,
             const Layout& layout) {
  const auto per_tile = static_cast<MPI_Offset>(layout.places.size());
  const auto place = [&](MPI_Offset k) {
    return static_cast<std::size_t>(disp + k / per_tile * layout.extent +
                                    layout.places[static_cast<std::size_t>(k % per_tile)]);
  };
  std::size_t size = 800; // not within an etype, which is a subject of its own
  MPI_Offset end = 0;     // the first etype behind
  while (place(end) + bytes <= size)
    ++end;
  size = std::min(size, place(end));
  Bytes data = check::message(size, 4);
  io::store(path, data);
  File file(MPI_COMM_SELF, path, MPI_MODE_RDWR);
  io::set_view(file, disp, etype, layout.filetype);
  io::view_is(file, disp, etype, layout.filetype);
  MPI_Status status;
  for (MPI_Offset k = 0; k < 3 * per_tile; ++k) {
    MPI_Offset found = -1;
    OK(MPI_File_get_byte_offset(file, k, &found));
    CHECK_EQUAL(found, static_cast<MPI_Offset>(place(k)));
  }
  OK(MPI_File_seek(file, 0, MPI_SEEK_END));
  CHECK_EQUAL(io::position(file), end);

  const auto there = [&](MPI_Offset begin, MPI_Offset count) {
    Bytes all;
    for (MPI_Offset k = begin; k < std::min(begin + count, end); ++k)
      for (std::size_t i = 0; i < bytes; ++i)
        all.push_back(data[place(k) + i]);
    return all;
  };
  for (const MPI_Offset begin :
       {MPI_Offset{0}, MPI_Offset{1}, per_tile - 1, per_tile + 1, end - 2}) {
    for (const MPI_Offset wanted : {MPI_Offset{1}, per_tile, 2 * per_tile + 1, end + 5}) {
      const MPI_Count count = io::over_the_end(wanted, end - begin);
      const Bytes expected = there(begin, count);
      const auto read = static_cast<MPI_Offset>(expected.size() / bytes);
      for (const bool at : {true, false}) {
        Bytes in(static_cast<std::size_t>(count) * bytes, 0xee);
        if (at) {
          OK(MPI_File_read_at_c(file, begin, in.data(), count, etype, &status));
        } else {
          OK(MPI_File_seek(file, begin, MPI_SEEK_SET));
          OK(MPI_File_read_c(file, in.data(), count, etype, &status));
          CHECK_EQUAL(io::position(file), begin + read);
        }
        MOVED(status, etype, read);
        UNTOUCHED(in.data() + expected.size(), in.size() - expected.size(), 0xee);
        in.resize(expected.size());
        SAME_BYTES(in, expected);
      }
    }
  }
  // Over the end.
  const MPI_Offset begin = end > per_tile + 3 ? end - per_tile - 3 : 0, count = 2 * per_tile + 5;
  const Bytes out = check::message(static_cast<std::size_t>(count) * bytes, 77);
  OK(MPI_File_seek(file, begin, MPI_SEEK_SET));
  OK(MPI_File_write_c(file, out.data(), count - 1, etype, &status));
  MOVED(status, etype, count - 1);
  CHECK_EQUAL(io::position(file), begin + count - 1);
  const std::size_t last = static_cast<std::size_t>(count - 1) * bytes;
  OK(MPI_File_write_at(file, begin + count - 1, out.data() + last, 1, etype, &status));
  MOVED(status, etype, 1);
  file.close();
  const std::size_t before = data.size();
  Bytes found = io::contents(path);
  data.resize(std::max(before, place(begin + count - 1) + bytes));
  CHECK_EQUAL(found.size(), data.size());
  std::copy(found.begin() + static_cast<std::ptrdiff_t>(before), found.end(),
            data.begin() + static_cast<std::ptrdiff_t>(before)); // what nobody wrote is undefined
  for (MPI_Offset k = 0; k < count; ++k)
    for (std::size_t i = 0; i < bytes; ++i)
      data[place(begin + k) + i] = out[static_cast<std::size_t>(k) * bytes + i];
  SAME_BYTES(found, data);
}

void explore_ints(const std::string& path, MPI_Datatype filetype, std::vector<MPI_Offset> indices,
                  MPI_Offset extent) {
  const Type type(filetype);
  for (MPI_Offset& index : indices)
    index *= 4;
  for (const MPI_Offset disp : {0, 13})
    explore(path, disp, MPI_INT, 4, {type, indices, 4 * extent});
}

void views_of_numbers() {
  Folder folder;
  const std::string path = folder("file", check::rank);
  explore_ints(path, io::contiguous(1, MPI_INT), {0}, 1);
  explore_ints(path, io::contiguous(7, MPI_INT), {0, 1, 2, 3, 4, 5, 6}, 7);
  explore_ints(path, io::vector(3, 2, 5, MPI_INT), {0, 1, 5, 6, 10, 11}, 12);
  const Type holes(io::vector(3, 2, 5, MPI_INT)), few(io::vector(2, 1, 2, MPI_INT));
  explore_ints(path, io::resized(holes, 0, 4 * 15), {0, 1, 5, 6, 10, 11}, 15);
  explore_ints(path, io::resized(holes, -8, 4 * 16), {0, 1, 5, 6, 10, 11}, 16);
  explore_ints(path, io::vector(2, 1, 3, few), {0, 2, 9, 11}, 12);
  explore_ints(path, io::subarray({4, 6}, {2, 3}, {1, 2}, MPI_INT), {8, 9, 10, 14, 15, 16}, 24);
  explore_ints(path, io::subarray({4, 6}, {2, 3}, {1, 2}, MPI_INT, MPI_ORDER_FORTRAN),
               {9, 10, 13, 14, 17, 18}, 24);
  explore_ints(path, io::subarray({3, 2, 4}, {2, 1, 3}, {1, 1, 0}, MPI_INT),
               {12, 13, 14, 20, 21, 22}, 24);
  MPI_Datatype made;
  const int lengths[] = {1, 3, 2}, places[] = {2, 4, 9};
  OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &made));
  explore_ints(path, made, {2, 4, 5, 6, 9, 10}, 9); // its extent begins where its data do
  OK(MPI_Type_create_indexed_block(3, 2, places, MPI_INT, &made));
  explore_ints(path, made, {2, 3, 4, 5, 9, 10}, 9);
  const MPI_Aint bytes[] = {4, 20, 40};
  OK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &made));
  {
    const Type inner(made);
    explore_ints(path, io::resized(inner, 0, 64), {1, 5, 6, 7, 10, 11}, 16);
  }
  const Type two(io::contiguous(2, MPI_INT));
  const MPI_Datatype types[] = {MPI_INT, two, two};
  const int one_two_one[] = {1, 2, 1};
  OK(MPI_Type_create_struct(3, one_two_one, bytes, types, &made));
  {
    const Type inner(made);
    explore_ints(path, io::resized(inner, 0, 80), {1, 5, 6, 7, 8, 10, 11}, 20);
  }
}

// A part of a block-cyclic array for each of 2 x 2 processes.
void views_of_distributed_arrays() {
  Folder folder;
  const std::string path = folder("file", check::rank);
  const int sizes[] = {7, 5}, kinds[] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
  const int blocks[] = {2, MPI_DISTRIBUTE_DFLT_DARG}, processes[] = {2, 2};
  for (int process = 0; process < 4; ++process) {
    MPI_Datatype made;
    OK(MPI_Type_create_darray(4, process, 2, sizes, kinds, blocks, processes, MPI_ORDER_C, MPI_INT,
                              &made));
    std::vector<MPI_Offset> mine;
    for (int i = 0; i < 7; ++i)
      for (int j = 0; j < 5; ++j)
        if (i / 2 % 2 == process / 2 && j / 3 == process % 2) mine.push_back(5 * i + j);
    explore_ints(path, made, mine, 35);
  }
}

void etypes_of_several_bytes() {
  Folder folder;
  const std::string path = folder("file", check::rank);
  const Type three(io::contiguous(3, MPI_BYTE)), type(io::vector(2, 2, 3, three));
  explore(path, 5, three, 3, {type, {0, 3, 9, 12}, 15});
  const Type pair(io::contiguous(2, MPI_DOUBLE)), part(io::subarray({5}, {2}, {1}, pair));
  explore(path, 1, pair, 16, {part, {16, 32}, 80});
}

// An etype may have a hole; then its data and the memory's do too.
void etype_with_a_hole() {
  Folder folder;
  const std::string path = folder("file", check::rank);
  MPI_Datatype made;
  const int lengths[] = {1, 1};
  const MPI_Aint places[] = {0, 4};
  const MPI_Datatype types[] = {MPI_INT, MPI_CHAR};
  OK(MPI_Type_create_struct(2, lengths, places, types, &made));
  const Type inner(made), record(io::resized(inner, 0, 8)),
      every_second(io::vector(3, 1, 2, record));
  Bytes data = check::message(150, 2);
  io::store(path, data);
  File file(MPI_COMM_SELF, path, MPI_MODE_RDWR);
  io::set_view(file, 6, record, every_second);
  const auto place = [](std::size_t k) { return 6 + k / 3 * 40 + k % 3 * 16; };
  Bytes in(8 * 8, 0xee), expected(8 * 8, 0xee);
  MPI_Status status;
  OK(MPI_File_read_at(file, 1, in.data(), 8, record, &status));
  MOVED(status, record, 8);
  for (std::size_t k = 0; k < 8; ++k)
    std::copy_n(&data[place(k + 1)], 5, &expected[8 * k]);
  SAME_BYTES(in, expected);
  for (std::size_t k = 0; k < 8; ++k)
    for (std::size_t i = 0; i < 5; ++i)
      data[place(k) + i] = in[8 * k + i] = static_cast<unsigned char>(10 * k + i);
  OK(MPI_File_write(file, in.data(), 8, record, &status));
  MOVED(status, record, 8);
  CHECK_EQUAL(io::position(file), 8);
  file.close();
  SAME_BYTES(io::contents(path), data);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"views_of_numbers", views_of_numbers},
                     {"views_of_distributed_arrays", views_of_distributed_arrays},
                     {"etypes_of_several_bytes", etypes_of_several_bytes},
                     {"etype_with_a_hole", etype_with_a_hole}});
}
