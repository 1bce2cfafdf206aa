// SPDX-License-Identifier: BSD-3-Clause
// Error handlers of files, and what is no file.
#include "io/file.h"

namespace {

using io::File;
using io::Folder;

const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Info no_info = MPI_INFO_NULL;
MPI_Status* const ignored = MPI_STATUS_IGNORE;

void returned_by_default() {
  Folder folder;
  MPI_Errhandler handler;
  const File file(world, folder("file"), io::new_file);
  for (const MPI_File each : {static_cast<MPI_File>(file), MPI_FILE_NULL}) {
    OK(MPI_File_get_errhandler(each, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Errhandler_free(&handler));
  }
}

void no_file() {
  if (!check::is_macadam()) return; // MPICH 5.0 crashes
  int number = 0;
  MPI_Offset offset = 0;
  MPI_Group group;
  MPI_Info info;
  MPI_Request request;
  MPI_File closed = MPI_FILE_NULL;
  FAILS(MPI_ERR_FILE, MPI_File_close(&closed));
  Folder folder;
  OK(MPI_File_open(world, folder("file").c_str(), io::new_file, no_info, &closed));
  const MPI_File files[] = {MPI_FILE_NULL, closed};
  OK(MPI_File_close(&closed));
  for (const MPI_File file : files) {
    FAILS(MPI_ERR_FILE, MPI_File_get_amode(file, &number));
    FAILS(MPI_ERR_FILE, MPI_File_get_size(file, &offset));
    FAILS(MPI_ERR_FILE, MPI_File_set_size(file, 0));
    FAILS(MPI_ERR_FILE, MPI_File_get_group(file, &group));
    FAILS(MPI_ERR_FILE, MPI_File_get_info(file, &info));
    FAILS(MPI_ERR_FILE, MPI_File_get_position(file, &offset));
    FAILS(MPI_ERR_FILE, MPI_File_seek(file, 0, MPI_SEEK_SET));
    FAILS(MPI_ERR_FILE, MPI_File_sync(file));
    FAILS(MPI_ERR_FILE, MPI_File_get_atomicity(file, &number));
    FAILS(MPI_ERR_FILE, MPI_File_read(file, &number, 1, MPI_INT, ignored));
    FAILS(MPI_ERR_FILE, MPI_File_write_at_all(file, 0, &number, 1, MPI_INT, ignored));
    FAILS(MPI_ERR_FILE, MPI_File_iread(file, &number, 1, MPI_INT, &request));
    FAILS(MPI_ERR_FILE, MPI_File_read_ordered_begin(file, &number, 1, MPI_INT));
    FAILS(MPI_ERR_FILE, MPI_File_write_all_end(file, &number, ignored));
    FAILS(MPI_ERR_FILE, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", no_info));
  }
}

int calls = 0, last_code = 0;
MPI_File last_file = MPI_FILE_NULL;

void note_error(MPI_File* file, int* code, ...) {
  ++calls;
  last_file = *file;
  last_code = *code;
}

void noted(int number, MPI_File file, int error) {
  CHECK_EQUAL(calls, number);
  CHECK(last_file == file);
  CHECK_EQUAL(check::error_class(last_code), error);
}

void ignore(MPI_Comm*, int*, ...) {}

void handlers() {
  Folder folder;
  calls = 0;
  MPI_Errhandler own, found;
  OK(MPI_File_create_errhandler(note_error, &own));
  MPI_Offset offset = 0;
  {
    const File file(world, folder("file"), io::new_file),
        other(world, folder("other"), io::new_file);
    OK(MPI_File_set_errhandler(file, own));
    OK(MPI_File_get_errhandler(file, &found));
    CHECK(found == own);
    OK(MPI_Errhandler_free(&found));
    // What a call returns after the handler of a user is not the same in all libraries.
    MPI_File_seek(file, -1, MPI_SEEK_SET);
    noted(1, file, MPI_ERR_ARG);
    FAILS(MPI_ERR_ARG, MPI_File_seek(other, -1, MPI_SEEK_SET));
    CHECK_EQUAL(calls, 1);
    OK(MPI_File_call_errhandler(file, MPI_ERR_NO_SPACE));
    noted(2, file, MPI_ERR_NO_SPACE);
    OK(MPI_File_set_errhandler(file, MPI_ERRORS_RETURN));
    FAILS(MPI_ERR_ARG, MPI_File_get_byte_offset(file, -1, &offset));
    CHECK_EQUAL(calls, 2);
    io::works(file);
  }
  // The handler of no file is for opening and deleting, and of what is opened from then on.
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, own));
  if (check::is_macadam()) OK(MPI_Errhandler_free(&own)); // MPICH 5.0 uses it when it is gone
  MPI_File file = MPI_FILE_NULL;
  const std::string missing = folder("missing");
  MPI_File_open(world, missing.c_str(), MPI_MODE_RDONLY, no_info, &file);
  noted(3, MPI_FILE_NULL, MPI_ERR_NO_SUCH_FILE);
  MPI_File_delete(missing.c_str(), no_info);
  noted(4, MPI_FILE_NULL, MPI_ERR_NO_SUCH_FILE);
  OK(MPI_File_open(world, folder("file").c_str(), io::new_file, no_info, &file));
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN));
  MPI_File_seek(file, -1, MPI_SEEK_SET);
  noted(5, file, MPI_ERR_ARG);
  io::works(file);
  OK(MPI_File_close(&file));
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(missing.c_str(), no_info));
  CHECK_EQUAL(calls, 5);
  if (!check::is_macadam()) { // MPICH 5.0 takes a handler of communicators
    OK(MPI_Errhandler_free(&own));
    return;
  }
  OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN));
  OK(MPI_Comm_create_errhandler(ignore, &own));
  FAILS(MPI_ERR_ERRHANDLER, MPI_File_set_errhandler(MPI_FILE_NULL, own));
  OK(MPI_Errhandler_free(&own));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(
      argc, argv,
      {{"returned_by_default", returned_by_default}, {"no_file", no_file}, {"handlers", handlers}});
}
