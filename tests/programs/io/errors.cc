// SPDX-License-Identifier: BSD-3-Clause
// Errors of files: their classes, and that all works after them. Where the standard does not fix a
// class, all that fit are accepted.
#include "io/file.h"

#include <unistd.h>

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Info no_info = MPI_INFO_NULL;
MPI_Status* const ignored = MPI_STATUS_IGNORE;
using Classes = std::vector<int>;

void fails_with_one_of(int code, const Classes& classes, const char* call, int line) {
  const int found = check::error_class(code);
  const bool fits = classes.empty() || std::ranges::find(classes, found) != classes.end();
  if (code != MPI_SUCCESS && fits) return;
  check::fail(__FILE__, line, std::string(call) + " returned " + check::error_text(code));
}
#define FAILS_AS(classes, ...) fails_with_one_of((__VA_ARGS__), classes, #__VA_ARGS__, __LINE__)
const Classes any = {};
const Classes no_writing = {MPI_ERR_READ_ONLY, MPI_ERR_ACCESS};
const Classes no_reading = {MPI_ERR_ACCESS};
const Classes no_view = {MPI_ERR_ARG, MPI_ERR_TYPE, MPI_ERR_DISP, MPI_ERR_IO};

// MPICH 5.0 has other classes here.
Classes only(int error) {
  return check::is_macadam() ? Classes{error} : any;
}

void opening() {
  Folder folder;
  MPI_File file = MPI_FILE_NULL;
  const auto open = [&file](const std::string& path, int amode) {
    return MPI_File_open(world, path.c_str(), amode, no_info, &file);
  };
  const std::string there = folder("there"), missing = folder("missing");
  if (check::rank == 0) io::store(there, Bytes(10));
  io::barrier();
  FAILS(MPI_ERR_NO_SUCH_FILE, open(missing, MPI_MODE_RDWR));
  FAILS(MPI_ERR_NO_SUCH_FILE, open(missing + "/file", io::new_file));
  FAILS(MPI_ERR_FILE_EXISTS, open(there, io::new_file | MPI_MODE_EXCL));
  FAILS(MPI_ERR_BAD_FILE, open(folder("") + std::string(300, 'x'), io::new_file));
  FAILS_AS(any, open(there + "/file", io::new_file));
  FAILS_AS(any, open(folder.path().string(), io::new_file));
  FAILS(MPI_ERR_AMODE, open(there, MPI_MODE_RDONLY | MPI_MODE_RDWR));
  const int deleted = MPI_File_delete(missing.c_str(), no_info);
  CHECK_EQUAL(check::error_class(deleted), MPI_ERR_NO_SUCH_FILE);
  CHECK(check::error_text(deleted).find("MPI_MODE_CREATE") == std::string::npos); // no remedy here
  FAILS_AS(any, MPI_File_delete(folder.path().c_str(), no_info));
  if (geteuid() != 0) { // who may do everything is refused nothing
    if (check::rank == 0) std::filesystem::permissions(there, std::filesystem::perms::owner_read);
    io::barrier();
    FAILS_AS(no_writing, open(there, MPI_MODE_RDWR));
  }
  if (check::size > 1) {
    // Of one rank another mode; all are told, and why.
    const int amode = check::rank == check::size - 1 ? MPI_MODE_RDONLY : MPI_MODE_RDWR;
    const int code = open(there, amode);
    FAILS_AS((Classes{MPI_ERR_NOT_SAME, MPI_ERR_AMODE}), code);
    const std::string text = check::error_text(code);
    CHECK(!check::is_macadam() || text.find("amode is") != std::string::npos);
  }
  if (!check::is_macadam()) return; // MPICH 5.0 takes errors of the communicator to its handler
  OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
  FAILS(MPI_ERR_COMM, MPI_File_open(MPI_COMM_NULL, there.c_str(), io::new_file, no_info, &file));
}

void wrong_access() {
  Folder folder;
  const std::string path = folder("file");
  if (check::rank == 0) io::store(path, check::message(100, 3));
  io::barrier();
  int value = 5;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const File file(world, path, MPI_MODE_RDONLY);
    FAILS_AS(no_writing, MPI_File_write(file, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_writing, MPI_File_write_at(file, 0, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_writing, MPI_File_write_all(file, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_writing, MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, ignored));
    if (check::is_macadam()) { // MPICH 5.0 tries it, or waits for ever
      FAILS_AS(no_writing, MPI_File_write_shared(file, &value, 1, MPI_INT, ignored));
      FAILS_AS(no_writing, MPI_File_write_ordered(file, &value, 1, MPI_INT, ignored));
      FAILS_AS(no_writing, MPI_File_write_all_begin(file, &value, 1, MPI_INT));
    }
    FAILS_AS(no_writing, MPI_File_iwrite(file, &value, 1, MPI_INT, &request));
    FAILS_AS(no_writing, MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request));
    FAILS_AS(any, MPI_File_set_size(file, 7));
    CHECK_EQUAL(io::size_of(file), 100);
    Bytes in(100);
    OK(MPI_File_read_all(file, in.data(), 100, MPI_BYTE, ignored));
    HOLDS(in.data(), 100, 3);
  }
  io::barrier();
  {
    const File file(world, path, MPI_MODE_WRONLY);
    FAILS_AS(no_reading, MPI_File_read(file, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_reading, MPI_File_read_at(file, 0, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_reading, MPI_File_read_all(file, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_reading, MPI_File_read_at_all(file, 0, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_reading, MPI_File_read_shared(file, &value, 1, MPI_INT, ignored));
    if (check::is_macadam()) // MPICH 5.0 reads nothing, successfully
      FAILS_AS(no_reading, MPI_File_read_ordered(file, &value, 1, MPI_INT, ignored));
    FAILS_AS(no_reading, MPI_File_iread(file, &value, 1, MPI_INT, &request));
    FAILS_AS(no_reading, MPI_File_read_at_all_begin(file, 0, &value, 1, MPI_INT));
    CHECK_EQUAL(value, 5);
  }
  FILE_HOLDS(path, check::message(100, 3));
}

void wrong_arguments() {
  Folder folder;
  int value = 5;
  MPI_Offset offset = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const File file(world, folder("file"), io::new_file);
  MPI_Datatype raw = io::contiguous(2, MPI_INT); // not committed
  FAILS(MPI_ERR_COUNT, MPI_File_write(file, &value, -1, MPI_INT, ignored));
  FAILS(MPI_ERR_COUNT, MPI_File_read_at_all(file, 0, &value, -1, MPI_INT, ignored));
  FAILS(MPI_ERR_COUNT, MPI_File_iread(file, &value, -1, MPI_INT, &request));
  FAILS(MPI_ERR_TYPE, MPI_File_write(file, &value, 1, MPI_DATATYPE_NULL, ignored));
  FAILS(MPI_ERR_TYPE, MPI_File_write_all(file, &value, 1, raw, ignored));
  FAILS(MPI_ERR_TYPE, MPI_File_read_shared(file, &value, 1, raw, ignored));
  FAILS(MPI_ERR_ARG, MPI_File_read_at(file, -1, &value, 1, MPI_INT, ignored));
  FAILS(MPI_ERR_ARG, MPI_File_write_at_all(file, -4, &value, 1, MPI_INT, ignored));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_SET));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_CUR));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, -1, MPI_SEEK_END));
  FAILS(MPI_ERR_ARG, MPI_File_seek(file, 0, -3));
  if (check::is_macadam()) { // of MPICH 5.0 rank 0 alone returns
    FAILS(MPI_ERR_ARG, MPI_File_seek_shared(file, -1, MPI_SEEK_SET));
    FAILS(MPI_ERR_ARG, MPI_File_seek_shared(file, 0, -3));
  }
  FAILS(MPI_ERR_ARG, MPI_File_get_byte_offset(file, -1, &offset));
  FAILS(MPI_ERR_ARG, MPI_File_set_size(file, -1));
  FAILS(MPI_ERR_ARG, MPI_File_preallocate(file, -1));
  MPI_Aint extent = 0;
  FAILS(MPI_ERR_TYPE, MPI_File_get_type_extent(file, MPI_DATATYPE_NULL, &extent));
  CHECK_EQUAL(io::position(file), 0);
  CHECK_EQUAL(io::size_of(file), 0);
  OK(MPI_Type_free(&raw));
  io::works(file);
}

void wrong_views() {
  Folder folder;
  const File file(world, folder("file"), io::new_file);
  const auto set = [&](MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype) {
    return MPI_File_set_view(file, disp, etype, filetype, "native", no_info);
  };
  MPI_Datatype raw = io::contiguous(2, MPI_INT), made;
  FAILS_AS(only(MPI_ERR_TYPE), set(0, MPI_DATATYPE_NULL, MPI_INT));
  FAILS_AS(only(MPI_ERR_TYPE), set(0, MPI_INT, MPI_DATATYPE_NULL));
  FAILS_AS(only(MPI_ERR_TYPE), set(0, raw, raw));
  OK(MPI_Type_free(&raw));
  FAILS_AS(no_view, set(-1, MPI_INT, MPI_INT));
  FAILS_AS(any, set(MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT));
  FAILS_AS(no_view, set(0, MPI_DOUBLE, MPI_INT)); // not made of it
  const int two_zero[] = {2, 0}, minus[] = {-1, 0};
  OK(MPI_Type_create_indexed_block(2, 1, two_zero, MPI_INT, &made));
  {
    const Type falling(made);
    FAILS_AS(no_view, set(0, MPI_INT, falling));
  }
  OK(MPI_Type_create_indexed_block(2, 1, minus, MPI_INT, &made));
  {
    const Type negative(made);
    FAILS_AS(no_view, set(0, MPI_INT, negative));
  }
  const Type overlap(io::vector(2, 2, 1, MPI_INT));
  FAILS_AS(no_view, set(0, MPI_INT, overlap)); // of a file that may be written
  FAILS(MPI_ERR_UNSUPPORTED_DATAREP,
        MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unheard of", no_info));
  if (check::is_macadam()) io::view_is(file, 0, MPI_BYTE, MPI_BYTE); // MPICH 5.0 takes some of it
  io::works(file);
}

void sequential_files() {
  Folder folder;
  const std::string path = folder("file");
  int value = 5;
  MPI_Offset offset = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  const int none = MPI_ERR_UNSUPPORTED_OPERATION;
  File file(world, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL);
  FAILS(none, MPI_File_write(file, &value, 1, MPI_INT, ignored));
  FAILS(none, MPI_File_write_at(file, 0, &value, 1, MPI_INT, ignored));
  FAILS(none, MPI_File_write_all(file, &value, 1, MPI_INT, ignored));
  FAILS(none, MPI_File_write_at_all(file, 0, &value, 1, MPI_INT, ignored));
  FAILS(none, MPI_File_iwrite(file, &value, 1, MPI_INT, &request));
  FAILS(none, MPI_File_iwrite_at(file, 0, &value, 1, MPI_INT, &request));
  FAILS(none, MPI_File_write_all_begin(file, &value, 1, MPI_INT));
  FAILS(none, MPI_File_write_at_all_begin(file, 0, &value, 1, MPI_INT));
  FAILS(none, MPI_File_seek(file, 0, MPI_SEEK_SET));
  FAILS(none, MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  FAILS(none, MPI_File_get_position(file, &offset));
  FAILS(none, MPI_File_get_position_shared(file, &offset));
  FAILS(none, MPI_File_set_size(file, 4));
  if (check::is_macadam()) { // MPICH 5.0 does both
    FAILS(none, MPI_File_preallocate(file, 4));
    FAILS_AS(any, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", no_info));
  }
  OK(MPI_File_write_ordered(file, &value, 1, MPI_INT, ignored));
  file.close();
  Bytes expected;
  for (int rank = 0; rank < check::size; ++rank)
    expected.insert(expected.end(), {5, 0, 0, 0});
  FILE_HOLDS(path, expected);
}

void split_collectives() {
  Folder folder;
  const File file(world, folder("file"), io::new_file);
  int out = 5, in = 0;
  FAILS_AS(any, MPI_File_write_all_end(file, &out, ignored));
  OK(MPI_File_write_at_all_begin(file, check::rank, &out, 1, MPI_BYTE));
  FAILS_AS(any, MPI_File_write_at_all_begin(file, check::rank, &out, 1, MPI_BYTE));
  FAILS_AS(any, MPI_File_read_all_begin(file, &in, 1, MPI_BYTE));
  if (check::is_macadam()) { // MPICH 5.0 knows only that one is active
    FAILS_AS(any, MPI_File_read_all_end(file, &in, ignored));
    FAILS_AS(any, MPI_File_write_ordered_end(file, &out, ignored));
  }
  OK(MPI_File_write_at_all_end(file, &out, ignored));
  FAILS_AS(any, MPI_File_write_at_all_end(file, &out, ignored));
  io::works(file);
}

// Whose arguments of a collective are refused takes part all the same: nobody waits for it.
void one_is_refused() {
  if (!check::is_macadam()) return; // elsewhere others may wait for ever
  Folder folder;
  const File file(world, folder("file"), io::new_file);
  io::set_view(file, 0, MPI_INT, MPI_INT);
  const bool refused = check::rank == 0;
  const std::vector<int> out(10, check::rank);
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Offset place = MPI_Offset{10} * check::rank;
  for (int way = 0; way < 4; ++way) {
    const MPI_Datatype type = refused ? MPI_BYTE : MPI_INT; // ten bytes are no whole ints
    int code = MPI_SUCCESS;
    if (way == 0) code = MPI_File_write_at_all(file, place, out.data(), 10, type, ignored);
    if (way == 1) code = MPI_File_iwrite_at_all(file, place, out.data(), 10, type, &request);
    if (way == 2) code = MPI_File_write_at_all_begin(file, place, out.data(), 10, type);
    if (way == 3) code = MPI_File_write_ordered(file, out.data(), 10, type, ignored);
    if (refused) {
      CHECK_EQUAL(check::error_class(code), MPI_ERR_TYPE);
      continue;
    }
    OK(code);
    if (way == 1) OK(MPI_Wait(&request, ignored));
    if (way == 2) OK(MPI_File_write_at_all_end(file, out.data(), ignored));
    std::vector<int> in(10);
    OK(MPI_File_read_at(file, place, in.data(), 10, MPI_INT, ignored));
    CHECK(in == out || way == 3);
  }
  // A view that one cannot have nobody gets.
  const Type odd(io::contiguous(refused ? 3 : 4, MPI_BYTE)); // no whole int
  FAILS_AS(any, MPI_File_set_view(file, 0, MPI_INT, odd, "native", no_info));
  FAILS_AS(any, MPI_File_set_view(file, refused ? -3 : 3, MPI_INT, MPI_INT, "native", no_info));
  io::view_is(file, 0, MPI_INT, MPI_INT);
  // Nor is the file given a size that one refuses.
  const MPI_Offset size = io::size_of(file);
  io::barrier();
  const int error = check::size > 1 ? MPI_ERR_NOT_SAME : MPI_ERR_ARG;
  FAILS(error, MPI_File_set_size(file, refused ? -1 : 10));
  FAILS(error, MPI_File_preallocate(file, refused ? -1 : size + 10));
  CHECK_EQUAL(io::size_of(file), size);
  io::barrier();
  // Infos may differ.
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", refused ? info : no_info));
  OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", refused ? no_info : info));
  OK(MPI_Info_free(&info));
  io::works(file);
}

// What all ranks must give alike, and one does not: all are told, and nothing has happened.
void different_arguments() {
  if (!check::is_macadam() || check::size == 1) return; // MPICH 5.0 checks some of it
  Folder folder;
  const File file(world, folder("file"), io::new_file);
  io::set_view(file, 4, MPI_INT, MPI_INT);
  const bool last = check::rank == check::size - 1;
  const auto view = [&](MPI_Datatype etype, const char* datarep) {
    return MPI_File_set_view(file, 0, etype, etype, datarep, no_info);
  };
  const int differs = MPI_ERR_NOT_SAME;
  FAILS(differs, MPI_File_set_size(file, last ? 100 : 200));
  FAILS(differs, MPI_File_preallocate(file, last ? 100 : 200));
  FAILS(differs, MPI_File_seek_shared(file, last ? 1 : 2, MPI_SEEK_SET));
  FAILS(differs, MPI_File_seek_shared(file, 0, last ? MPI_SEEK_SET : MPI_SEEK_END));
  FAILS(differs, MPI_File_set_atomicity(file, last ? 1 : 0));
  FAILS(differs, view(last ? MPI_INT : MPI_DOUBLE, "native"));
  const int code = view(MPI_INT, last ? "external32" : "native");
  CHECK_EQUAL(check::error_class(code), differs);
  for (const char* const datarep : {"external32", "native"})
    CHECK(check::error_text(code).find(datarep) != std::string::npos);
  CHECK_EQUAL(io::size_of(file), 0);
  CHECK_EQUAL(io::shared_position(file), 0);
  io::view_is(file, 4, MPI_INT, MPI_INT);
  // Etypes are compared as they are in the file, where a long has four bytes.
  OK(view(last ? MPI_LONG : MPI_INT, "external32"));
  io::works(file);
}

// One reads where the others write. Pieces of all lie between each other, or each has one.
void reads_and_writes() {
  if (!check::is_macadam() || check::size == 1) return; // elsewhere nothing is compared
  Folder folder;
  const File file(world, folder("file"), io::new_file);
  const Type turns(io::every(check::size, MPI_INT));
  const bool last = check::rank == check::size - 1;
  std::vector<int> data(1000, check::rank);
  void* const buf = data.data();
  MPI_Request request = MPI_REQUEST_NULL;
  for (const MPI_Datatype filetype : {MPI_Datatype{turns}, MPI_INT}) {
    io::set_view(file, MPI_Offset{4} * check::rank, MPI_INT, filetype);
    for (const int count : {0, 1, 1000}) {
      const int code = last ? MPI_File_read_at_all(file, 0, buf, count, MPI_INT, ignored)
                            : MPI_File_write_at_all(file, 0, buf, count, MPI_INT, ignored);
      CHECK_EQUAL(check::error_class(code), MPI_ERR_ARG);
      const std::string text = check::error_text(code), own = last ? "read" : "write";
      CHECK(text.find("MPI_File_" + own + "_at_all") != std::string::npos);
      FAILS(MPI_ERR_ARG, last ? MPI_File_write_ordered(file, buf, count, MPI_INT, ignored)
                              : MPI_File_read_ordered(file, buf, count, MPI_INT, ignored));
      OK(last ? MPI_File_iwrite_all(file, buf, count, MPI_INT, &request)
              : MPI_File_iread_all(file, buf, count, MPI_INT, &request));
      FAILS(MPI_ERR_ARG, MPI_Wait(&request, ignored));
    }
  }
  CHECK_EQUAL(io::size_of(file), 0);
  io::works(file);
}

// That data cannot be kept is told to all whose they are, whoever writes them.
void full_disk() {
  if (!check::is_macadam()) return; // others have other classes
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "collective_buffering", "true"));
  OK(MPI_Info_set(info, "cb_nodes", "1"));
  const File file(world, "/dev/full", MPI_MODE_WRONLY, info);
  OK(MPI_Info_free(&info));
  const Type turns(io::every(check::size, MPI_INT));
  io::set_view(file, MPI_Offset{4} * check::rank, MPI_INT, turns);
  const std::vector<int> out(1000, 7);
  MPI_Request requests[2];
  const int full = MPI_ERR_NO_SPACE;
  FAILS(full, MPI_File_write(file, out.data(), 1000, MPI_INT, ignored));
  FAILS(full, MPI_File_write_all(file, out.data(), 1000, MPI_INT, ignored));
  CHECK_EQUAL(io::position(file), 0); // to try again there
  OK(MPI_File_iwrite_all(file, out.data(), 1000, MPI_INT, &requests[0]));
  OK(MPI_File_iwrite(file, out.data(), 1000, MPI_INT, &requests[1]));
  MPI_Status statuses[2];
  FAILS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
  for (const MPI_Status& status : statuses)
    CHECK_EQUAL(check::error_class(status.MPI_ERROR), full);
  OK(MPI_File_write_all_begin(file, out.data(), 1000, MPI_INT));
  FAILS(full, MPI_File_write_all_end(file, out.data(), ignored));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"opening", opening},
                     {"wrong_access", wrong_access},
                     {"wrong_arguments", wrong_arguments},
                     {"wrong_views", wrong_views},
                     {"sequential_files", sequential_files},
                     {"split_collectives", split_collectives},
                     {"one_is_refused", one_is_refused},
                     {"different_arguments", different_arguments},
                     {"reads_and_writes", reads_and_writes},
                     {"full_disk", full_disk}});
}
