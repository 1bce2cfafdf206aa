// SPDX-License-Identifier: BSD-3-Clause
// What a view does to positions: parts of etypes, views that follow each other, extents of
// datatypes in the file, sequential files.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

// A file that ends within an etype.
void a_part_of_an_etype() {
  if (!check::is_macadam()) return; // MPICH 5.0 counts what was asked for
  Folder folder;
  const std::string path = folder("file", check::rank);
  const Type triple(io::contiguous(3, MPI_SHORT)), spread(io::vector(2, 1, 2, triple));
  MPI_Status status;
  for (const std::size_t size : {std::size_t{26}, std::size_t{34}}) {
    // Triples at 4, 16, 22 and 34: of the third only 2 numbers are there, then all.
    const std::size_t numbers = size == 26 ? 8 : 9;
    const Bytes data = check::message(size, 6);
    io::store(path, data);
    const File file(MPI_COMM_SELF, path, MPI_MODE_RDONLY);
    io::set_view(file, 4, triple, spread);
    short in[20];
    OK(MPI_File_read(file, in, 6, triple, &status));
    MOVED(status, triple, size == 26 ? MPI_UNDEFINED : 3);
    CHECK_EQUAL(io::elements(status, triple), static_cast<MPI_Count>(numbers));
    for (std::size_t i = 0; i < numbers; ++i) {
      short value = 0;
      std::memcpy(&value, &data[(i < 3 ? 4 : 10) + 2 * i], 2);
      CHECK_EQUAL(in[i], value);
    }
    OK(MPI_File_seek(file, 0, MPI_SEEK_END));
    CHECK_EQUAL(io::position(file), 3);
  }
}

void a_new_view_begins_anew() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  io::view_is(file, 0, MPI_BYTE, MPI_BYTE);
  OK(MPI_File_seek(file, 9, MPI_SEEK_SET));
  OK(MPI_File_seek_shared(file, 8, MPI_SEEK_SET));
  const Type every_second(io::vector(2, 1, 2, MPI_INT));
  io::set_view(file, 40, MPI_INT, every_second);
  CHECK_EQUAL(io::position(file), 0);
  CHECK_EQUAL(io::shared_position(file), 0);
  io::barrier();
  OK(MPI_File_seek(file, 3, MPI_SEEK_CUR));
  OK(MPI_File_seek_shared(file, 5, MPI_SEEK_CUR));
  MPI_Offset found = -1;
  OK(MPI_File_get_byte_offset(file, io::shared_position(file), &found));
  CHECK_EQUAL(found, 40 + 2 * 12 + 8);
  io::barrier();
  io::set_view(file, 0, MPI_BYTE, MPI_BYTE);
  CHECK_EQUAL(io::position(file), 0);
  io::view_is(file, 0, MPI_BYTE, MPI_BYTE);
}

void extents_in_the_file() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  const Type type(io::vector(3, 2, 5, MPI_DOUBLE));
  MPI_Aint extent = -1;
  MPI_Count large = -1;
  OK(MPI_File_get_type_extent(file, MPI_SHORT, &extent));
  CHECK_EQUAL(extent, 2);
  OK(MPI_File_get_type_extent(file, type, &extent));
  CHECK_EQUAL(extent, 96);
  OK(MPI_File_get_type_extent_c(file, type, &large));
  CHECK_EQUAL(large, 96);
}

// A view of a sequential file goes on where the last one was left.
void sequential() {
  Folder folder;
  const std::string path = folder("file");
  const Bytes data = check::message(60, 8);
  const MPI_Offset current = MPI_DISPLACEMENT_CURRENT;
  File file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  if (check::rank == 0)
    OK(MPI_File_write_shared(file, data.data(), 28, MPI_BYTE, MPI_STATUS_IGNORE));
  io::barrier();
  io::set_view(file, current, MPI_INT, MPI_INT);
  io::view_is(file, 28, MPI_INT, MPI_INT);
  if (check::rank == check::size - 1)
    OK(MPI_File_write_shared(file, data.data() + 28, 8, MPI_INT, MPI_STATUS_IGNORE));
  io::barrier();
  io::set_view(file, current, MPI_BYTE, MPI_BYTE);
  io::view_is(file, 60, MPI_BYTE, MPI_BYTE);
  file.close();
  FILE_HOLDS(path, data);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"a_part_of_an_etype", a_part_of_an_etype},
                     {"a_new_view_begins_anew", a_new_view_begins_anew},
                     {"extents_in_the_file", extents_in_the_file},
                     {"sequential", sequential}});
}
