// SPDX-License-Identifier: BSD-3-Clause
// File handles: as integers, without the objects they were made of, many at once, and often.
#include "io/file.h"
#include "resources.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

void as_integers() {
  Folder folder;
  const std::string path = folder("file");
  const File first(MPI_COMM_WORLD, path, io::new_file), second(MPI_COMM_SELF, path, io::new_file);
  const MPI_File files[] = {first, second, MPI_FILE_NULL};
  for (const MPI_File file : files) {
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file);
  }
  CHECK(MPI_File_toint(first) != MPI_File_toint(second));
  CHECK_EQUAL(MPI_File_toint(MPI_FILE_NULL), 0x118); // the standard fixes it
  int amode = 0;
  OK(MPI_File_get_amode(MPI_File_fromint(MPI_File_toint(first)), &amode));
  CHECK_EQUAL(amode, io::new_file);
#ifdef MPI_File_c2f // the older names, which the standard's header does not have
  for (const MPI_File file : files)
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
  CHECK(MPI_File_c2f(first) != MPI_File_c2f(second));
#endif
}

// The file keeps what it needs of the communicator, the datatypes and the info that it was given.
void outlives_what_it_was_made_of() {
  Folder folder;
  const std::string path = folder("file");
  MPI_Comm comm;
  MPI_Info info;
  MPI_File file;
  OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "cb_buffer_size", "1048576"));
  OK(MPI_File_open(comm, path.c_str(), io::new_file, info, &file));
  OK(MPI_Comm_free(&comm));
  OK(MPI_Info_free(&info));
  {
    const Type pair(io::contiguous(2, MPI_INT)), strided(io::every(check::size, pair));
    io::set_view(file, 8 * check::rank, pair, strided);
  }
  std::vector<int> out(200), in(200);
  for (int i = 0; i < 200; ++i)
    out[static_cast<std::size_t>(i)] = 1000 * check::rank + i;
  MPI_Status status;
  OK(MPI_File_write_all(file, out.data(), 200, MPI_INT, &status));
  MOVED(status, MPI_INT, 200);
  OK(MPI_File_read_at_all(file, 0, in.data(), 200, MPI_INT, &status));
  MOVED(status, MPI_INT, 200);
  CHECK(in == out);
  MPI_Offset disp = -1;
  MPI_Datatype types[2];
  char name[MPI_MAX_DATAREP_STRING] = "";
  OK(MPI_File_get_view(file, &disp, &types[0], &types[1], name));
  // Both are the user's now, and the view keeps its own.
  for (MPI_Datatype& type : types)
    OK(MPI_Type_free(&type));
  OK(MPI_File_read_at(file, 50, in.data(), 100, MPI_INT, &status));
  CHECK(std::equal(out.begin() + 100, out.end(), in.begin()));
  OK(MPI_File_close(&file));
}

void many_at_once() {
  Folder folder;
  constexpr int count = 64;
  std::vector<MPI_File> files(count, MPI_FILE_NULL);
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  for (int i = 0; i < count; ++i)
    OK(MPI_File_open(
        i % 2 == 0 ? MPI_COMM_WORLD : MPI_COMM_SELF,
        (i % 2 == 0 ? folder("all", i) : folder("own", count * check::rank + i)).c_str(),
        io::new_file, MPI_INFO_NULL, &files[index(i)]));
  for (int i = 0; i < count; ++i) {
    const int value = 1000 * check::rank + i;
    OK(MPI_File_write_at(files[index(i)], 4 * check::rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  }
  for (int i = 0; i < count; ++i) {
    int value = -1;
    OK(MPI_File_read_at(files[index(i)], 4 * check::rank, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    CHECK_EQUAL(value, 1000 * check::rank + i);
    CHECK(MPI_File_fromint(MPI_File_toint(files[index(i)])) == files[index(i)]);
  }
  // Closed in another order.
  for (int i = 0; i < count; ++i)
    OK(MPI_File_close(&files[index((i * 37 + 5) % count)]));
}

void once(const std::string& path, int round) {
  const File file(round % 3 == 0 ? MPI_COMM_SELF : MPI_COMM_WORLD, path, io::new_file);
  const Type strided(io::every(check::size, MPI_INT));
  MPI_Group group;
  OK(MPI_File_get_group(file, &group));
  OK(MPI_Group_free(&group));
  io::set_view(file, 4 * check::rank, MPI_INT, strided);
  MPI_Request request;
  OK(MPI_File_iwrite_at(file, 0, &round, 1, MPI_INT, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  if (round % 3 == 0) return;
  OK(MPI_File_write_all(file, &round, 1, MPI_INT, MPI_STATUS_IGNORE));
  io::set_view(file, 0, MPI_INT, MPI_INT);
  if (round % 3 == 1) OK(MPI_File_write_shared(file, &round, 1, MPI_INT, MPI_STATUS_IGNORE));
}

// Open and close leave nothing in the process.
void often() {
  Folder folder;
  const auto path = [&](int round) {
    return round % 3 == 0 ? folder("own", check::rank) : folder("all");
  };
  for (int round = 0; round < 9; ++round)
    once(path(round), round);
  io::barrier();
  const check::Resources before = check::resources();
  for (int round = 0; round < check::times(200, 20); ++round)
    once(path(round), round);
  const check::Resources after = check::resources();
  CHECK_EQUAL(after.descriptors, before.descriptors);
  CHECK_EQUAL(after.threads, before.threads);
  CHECK(after.mappings < before.mappings + 20);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"as_integers", as_integers},
                     {"outlives_what_it_was_made_of", outlives_what_it_was_made_of},
                     {"many_at_once", many_at_once},
                     {"often", often}});
}
