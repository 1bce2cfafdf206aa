// SPDX-License-Identifier: BSD-3-Clause
// Opening in every mode, closing, deleting, and what a file is beside its data: mode, group, info
// and size.
#include "io/file.h"

namespace {

using io::File;
using io::Folder;

// What opening with `amode` is to give: an error class, or MPI_SUCCESS.
int expected_of(int amode, bool there) {
  const auto has = [amode](int mode) { return (amode & mode) != 0; };
  if (has(MPI_MODE_RDONLY) && has(MPI_MODE_CREATE | MPI_MODE_EXCL)) return MPI_ERR_AMODE;
  if (has(MPI_MODE_RDWR) && has(MPI_MODE_SEQUENTIAL)) return MPI_ERR_AMODE;
  if (there && has(MPI_MODE_CREATE) && has(MPI_MODE_EXCL)) return MPI_ERR_FILE_EXISTS;
  if (!there && !has(MPI_MODE_CREATE)) return MPI_ERR_NO_SUCH_FILE;
  return MPI_SUCCESS;
}

void open_once(MPI_Comm comm, const std::string& path, int amode, bool there) {
  const bool writes = comm == MPI_COMM_SELF || check::rank == 0;
  if (writes && there) io::store(path, check::message(10, 5));
  OK(MPI_Barrier(comm));
  MPI_File file = MPI_FILE_NULL;
  const int code = MPI_File_open(comm, path.c_str(), amode, MPI_INFO_NULL, &file);
  const int expected = expected_of(amode, there);
  if (check::error_class(code) != expected)
    check::fail(__FILE__, __LINE__,
                "mode " + std::to_string(amode) + (there ? ", there" : ", new") + ": " +
                    check::error_text(code) + ", expected " + check::error_text(expected));
  if (code == MPI_SUCCESS) {
    int found = 0;
    OK(MPI_File_get_amode(file, &found));
    CHECK_EQUAL(found, amode);
    const MPI_Offset size = there ? 10 : 0;
    CHECK_EQUAL(io::size_of(file), size);
    if ((amode & MPI_MODE_SEQUENTIAL) == 0) {
      const MPI_Offset begin = (amode & MPI_MODE_APPEND) != 0 ? size : 0;
      CHECK_EQUAL(io::position(file), begin);
      CHECK_EQUAL(io::shared_position(file), begin);
    }
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL);
    there = (amode & MPI_MODE_DELETE_ON_CLOSE) == 0;
  }
  OK(MPI_Barrier(comm));
  CHECK_EQUAL(io::exists(path), there);
  OK(MPI_Barrier(comm));
  if (writes && there) OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
  OK(MPI_Barrier(comm));
}

void every_mode() {
  Folder folder;
  const int options[] = {MPI_MODE_CREATE, MPI_MODE_EXCL,        MPI_MODE_DELETE_ON_CLOSE,
                         MPI_MODE_APPEND, MPI_MODE_UNIQUE_OPEN, MPI_MODE_SEQUENTIAL};
  for (const int access : {MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR}) {
    for (unsigned set = 0; set < 64; set += check::light() ? 5 : 1) {
      int amode = access;
      for (unsigned i = 0; i < 6; ++i)
        if ((set >> i & 1) != 0) amode |= options[i];
      for (const bool there : {false, true}) {
        open_once(MPI_COMM_WORLD, folder("all"), amode, there);
        open_once(MPI_COMM_SELF, folder("own", check::rank), amode, there);
      }
    }
  }
}

void one_access_mode_is_needed() {
  Folder folder;
  const std::string path = folder("file");
  const int wrong[] = {0, MPI_MODE_CREATE, MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_CREATE,
                       MPI_MODE_RDONLY | MPI_MODE_RDWR, MPI_MODE_WRONLY | MPI_MODE_RDWR};
  for (const int amode : wrong) {
    MPI_File file = MPI_FILE_NULL;
    FAILS(MPI_ERR_AMODE, MPI_File_open(MPI_COMM_WORLD, path.c_str(), amode, MPI_INFO_NULL, &file));
    CHECK(!io::exists(path));
  }
}

void deleting() {
  Folder folder;
  const std::string path = folder("file", check::rank);
  { const File made(MPI_COMM_SELF, path, io::new_file); }
  CHECK(io::exists(path));
  OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
  CHECK(!io::exists(path));
  FAILS(MPI_ERR_NO_SUCH_FILE, MPI_File_delete(path.c_str(), MPI_INFO_NULL));
}

// Opening to write keeps what is there.
void nothing_is_cut_off() {
  Folder folder;
  const std::string path = folder("file");
  const io::Bytes old = check::message(100, 1);
  if (check::rank == 0) io::store(path, old);
  io::barrier();
  const int modes[] = {MPI_MODE_WRONLY, MPI_MODE_WRONLY | MPI_MODE_CREATE, io::new_file};
  for (const int amode : modes) {
    const File file(MPI_COMM_WORLD, path, amode);
    CHECK_EQUAL(io::size_of(file), 100);
  }
  FILE_HOLDS(path, old);
}

void appending() {
  Folder folder;
  const std::string path = folder("file");
  io::Bytes expected = check::message(7, 1);
  if (check::rank == 0) io::store(path, expected);
  io::barrier();
  File file(MPI_COMM_WORLD, path, MPI_MODE_WRONLY | MPI_MODE_APPEND);
  const io::Bytes more = check::message(9, 2);
  if (check::rank == check::size - 1)
    OK(MPI_File_write(file, more.data(), 9, MPI_BYTE, MPI_STATUS_IGNORE));
  CHECK_EQUAL(io::position(file), check::rank == check::size - 1 ? 16 : 7);
  // The pointers begin at the end, but nothing keeps them there.
  io::set_view(file, 0, MPI_BYTE, MPI_BYTE);
  CHECK_EQUAL(io::position(file), 0);
  file.close();
  expected.insert(expected.end(), more.begin(), more.end());
  FILE_HOLDS(path, expected);
}

void same_group(MPI_Comm comm, const std::string& path) {
  const File file(comm, path, io::new_file | MPI_MODE_DELETE_ON_CLOSE);
  MPI_Group of_file, of_comm;
  int result = MPI_UNEQUAL;
  OK(MPI_File_get_group(file, &of_file));
  OK(MPI_Comm_group(comm, &of_comm));
  OK(MPI_Group_compare(of_file, of_comm, &result));
  CHECK_EQUAL(result, MPI_IDENT);
  OK(MPI_Group_free(&of_file));
  OK(MPI_Group_free(&of_comm));
}

void groups() {
  Folder folder;
  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, -check::rank, &half));
  same_group(MPI_COMM_WORLD, folder("all"));
  same_group(MPI_COMM_SELF, folder("own", check::rank));
  same_group(half, folder("half", check::rank % 2));
  OK(MPI_Comm_free(&half));
}

// No library must know any hint, and each must bear those that it does not know.
void hints() {
  Folder folder;
  MPI_Info info, first, second;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "access_style", "read_once,sequential"));
  OK(MPI_Info_set(info, "cb_nodes", "1"));
  OK(MPI_Info_set(info, "colour", "green"));
  {
    const File file(MPI_COMM_WORLD, folder("file"), io::new_file, info);
    OK(MPI_File_get_info(file, &first));
    OK(MPI_File_get_info(file, &second));
    CHECK(first != MPI_INFO_NULL && first != second && first != info);
    int keys = -1;
    OK(MPI_Info_get_nkeys(first, &keys));
    for (int i = 0; i < keys; ++i) {
      char key[MPI_MAX_INFO_KEY + 1] = "", value[MPI_MAX_INFO_VAL + 1] = "";
      int length = sizeof value, found = 0;
      OK(MPI_Info_get_nthkey(first, i, key));
      CHECK(std::string(key) != "colour");
      OK(MPI_Info_get_string(first, key, &length, value, &found));
      CHECK(found != 0);
    }
    OK(MPI_Info_free(&first));
    OK(MPI_Info_free(&second));
    OK(MPI_Info_set(info, "cb_buffer_size", "65536"));
    OK(MPI_File_set_info(file, info));
    OK(MPI_File_set_info(file, MPI_INFO_NULL));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", info));
  }
  OK(MPI_Info_free(&info));
}

std::string hint(MPI_File file, const char* key) {
  MPI_Info used;
  char value[MPI_MAX_INFO_VAL + 1] = "";
  int length = sizeof value, found = 0;
  OK(MPI_File_get_info(file, &used));
  OK(MPI_Info_get_string(used, key, &length, value, &found));
  OK(MPI_Info_free(&used));
  return found != 0 ? value : "";
}

// The hints that a file tells are those that it goes by.
void hints_in_use() {
  if (!check::is_macadam()) return;
  Folder folder;
  const auto is_used = [&](const char* key, const char* given, const std::string& expected) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, key, given));
    {
      const std::string path = folder("file");
      const File file(MPI_COMM_WORLD, path, io::new_file | MPI_MODE_DELETE_ON_CLOSE, info);
      CHECK_EQUAL(hint(file, key), expected);
      const auto special = std::filesystem::perms::set_uid | std::filesystem::perms::set_gid |
                           std::filesystem::perms::sticky_bit;
      CHECK((std::filesystem::status(path).permissions() & special) ==
            std::filesystem::perms::none);
    }
    OK(MPI_Info_free(&info));
  };
  is_used("cb_buffer_size", "1", "65536");
  is_used("cb_buffer_size", "100000", "100000");
  is_used("cb_buffer_size", "4294967296", "1073741824");
  is_used("cb_buffer_size", "-1", "4194304");
  is_used("file_perm", "0640", "0640");
  is_used("file_perm", "4755", "0666");
  is_used("file_perm", "888", "0666");
  is_used("collective_buffering", "false", "false");
  is_used("collective_buffering", "perhaps", "automatic");
}

// As programs for ROMIO have it.
void named_file_systems() {
  Folder folder;
  const std::string path = folder("file");
  File file(MPI_COMM_WORLD, "ufs:" + path, io::new_file);
  file.close();
  io::barrier();
  CHECK(std::filesystem::exists(path));
  io::barrier();
  if (check::rank == 0) OK(MPI_File_delete(("ufs:" + path).c_str(), MPI_INFO_NULL));
  io::barrier();
  CHECK(!std::filesystem::exists(path));
}

void sizes() {
  Folder folder;
  const std::string path = folder("file");
  const io::Bytes data = check::message(100, 3);
  File file(MPI_COMM_WORLD, path, io::new_file);
  OK(MPI_File_write_at_all(file, 0, data.data(), check::rank == 0 ? 100 : 0, MPI_BYTE,
                           MPI_STATUS_IGNORE));
  OK(MPI_File_seek(file, 42, MPI_SEEK_SET));
  OK(MPI_File_seek_shared(file, 43, MPI_SEEK_SET));
  const auto becomes = [&](MPI_Offset size) {
    io::settle(file);
    CHECK_EQUAL(io::size_of(file), size);
    io::barrier();
    CHECK_EQUAL(std::filesystem::file_size(path), static_cast<std::uintmax_t>(size));
    CHECK_EQUAL(io::position(file), 42);
    CHECK_EQUAL(io::shared_position(file), 43);
    io::barrier();
  };
  becomes(100);
  OK(MPI_File_set_size(file, 1000));
  becomes(1000);
  OK(MPI_File_set_size(file, 60));
  becomes(60);
  OK(MPI_File_preallocate(file, 70000));
  becomes(70000);
  OK(MPI_File_preallocate(file, 50)); // never makes it shorter
  becomes(70000);
  OK(MPI_File_set_size(file, 60));
  becomes(60);
  const MPI_Offset far = (MPI_Offset{5} << 30) + 1;
  OK(MPI_File_set_size(file, far));
  becomes(far);
  OK(MPI_File_set_size(file, 60));
  file.close();
  FILE_HOLDS(path, io::Bytes(data.begin(), data.begin() + 60));
}

void relative_names() {
  Folder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string path = folder("near");
  std::filesystem::current_path(folder.path());
  {
    const File file(MPI_COMM_WORLD, "near", io::new_file);
    std::filesystem::current_path(before);
    if (check::rank == 0) OK(MPI_File_write(file, "here", 4, MPI_CHAR, MPI_STATUS_IGNORE));
  }
  FILE_HOLDS(path, (io::Bytes{'h', 'e', 'r', 'e'}));
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"every_mode", every_mode},
                     {"one_access_mode_is_needed", one_access_mode_is_needed},
                     {"deleting", deleting},
                     {"nothing_is_cut_off", nothing_is_cut_off},
                     {"appending", appending},
                     {"groups", groups},
                     {"hints", hints},
                     {"hints_in_use", hints_in_use},
                     {"named_file_systems", named_file_systems},
                     {"sizes", sizes},
                     {"relative_names", relative_names}});
}
