// SPDX-License-Identifier: BSD-3-Clause
// What the programs about files share.
#pragma once

#include "check.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace io {

using Bytes = std::vector<unsigned char>;

inline int right() {
  return (check::rank + 1) % check::size;
}
inline int left() {
  return (check::rank + check::size - 1) % check::size;
}
inline void barrier() {
  OK(MPI_Barrier(MPI_COMM_WORLD));
}

// A new folder that all ranks see, made and removed by all together. At the end nothing may be in
// it but files that the program has named: what a library needs beside them it must have removed.
class Folder {
 public:
  Folder() {
    const char* parent = std::getenv("PROGRAMS_FOLDER"); // that all machines have
    if (parent == nullptr) parent = std::getenv("TMPDIR");
    std::string name = (parent != nullptr ? parent : "/tmp") + std::string("/mpi_files_XXXXXX");
    int length = 0;
    if (check::rank == 0) {
      if (mkdtemp(name.data()) == nullptr)
        check::fail(__FILE__, __LINE__, "mkdtemp " + name + ": " + std::strerror(errno));
      length = static_cast<int>(name.size());
    }
    OK(MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD));
    name.resize(static_cast<std::size_t>(length));
    OK(MPI_Bcast(name.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD));
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    barrier();
    if (check::rank == 0) {
      for (const auto& entry : std::filesystem::directory_iterator(path_)) {
        std::string name = entry.path().filename().string();
        // Of a name that ends in a number rank 0 knows its own only.
        while (!name.empty() && name.back() >= '0' && name.back() <= '9')
          name.pop_back();
        if (!names_.contains(name))
          check::fail(__FILE__, __LINE__, "the library has left " + entry.path().string());
      }
      std::filesystem::remove_all(path_);
    }
    barrier();
  }

  // The path of a file; that of a number may be another one on each rank.
  [[nodiscard]] std::string operator()(const std::string& name) {
    names_.insert(name);
    return (path_ / name).string();
  }
  [[nodiscard]] std::string operator()(const std::string& name, int number) {
    return (*this)(name) + std::to_string(number);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::set<std::string> names_;
};

// An open file, closed at the end of its scope or before.
class File {
 public:
  File(MPI_Comm comm, const std::string& path, int amode, MPI_Info info = MPI_INFO_NULL) {
    OK(MPI_File_open(comm, path.c_str(), amode, info, &file_));
    CHECK(file_ != MPI_FILE_NULL);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (file_ != MPI_FILE_NULL) close();
  }
  void close() {
    OK(MPI_File_close(&file_));
    CHECK(file_ == MPI_FILE_NULL);
  }
  operator MPI_File() const { return file_; }

 private:
  MPI_File file_ = MPI_FILE_NULL;
};

constexpr int new_file = MPI_MODE_CREATE | MPI_MODE_RDWR;

// A datatype ready for use, freed at the end of its scope.
class Type {
 public:
  explicit Type(MPI_Datatype made) : type_(made) { OK(MPI_Type_commit(&type_)); }
  Type(const Type&) = delete;
  Type& operator=(const Type&) = delete;
  ~Type() { OK(MPI_Type_free(&type_)); }
  operator MPI_Datatype() const { return type_; }

 private:
  MPI_Datatype type_;
};

inline MPI_Datatype contiguous(int count, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  OK(MPI_Type_contiguous(count, of, &made));
  return made;
}
inline MPI_Datatype vector(int count, int length, int stride, MPI_Datatype of) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  OK(MPI_Type_vector(count, length, stride, of, &made));
  return made;
}
inline MPI_Datatype resized(MPI_Datatype of, MPI_Aint lower, MPI_Aint extent) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  OK(MPI_Type_create_resized(of, lower, extent, &made));
  return made;
}
inline MPI_Datatype subarray(const std::vector<int>& sizes, const std::vector<int>& part,
                             const std::vector<int>& start, MPI_Datatype of,
                             int order = MPI_ORDER_C) {
  MPI_Datatype made = MPI_DATATYPE_NULL;
  OK(MPI_Type_create_subarray(static_cast<int>(sizes.size()), sizes.data(), part.data(),
                              start.data(), order, of, &made));
  return made;
}

// The first of each `number` elements, without end.
inline MPI_Datatype every(int number, MPI_Datatype of) {
  MPI_Aint lower = 0, extent = 0;
  OK(MPI_Type_get_extent(of, &lower, &extent));
  return resized(of, 0, number * extent);
}

// What each rank has written all may read afterwards.
inline void settle(MPI_File file, MPI_Comm comm = MPI_COMM_WORLD) {
  OK(MPI_File_sync(file));
  OK(MPI_Barrier(comm));
  OK(MPI_File_sync(file));
}

// Whole files without MPI, of this rank.
inline Bytes contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) check::fail(__FILE__, __LINE__, path + " cannot be read");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}
inline void store(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) check::fail(__FILE__, __LINE__, path + " cannot be written");
}
inline bool exists(const std::string& path) {
  return std::filesystem::exists(path);
}

inline void same_bytes(const Bytes& found, const Bytes& expected, const char* file, int line) {
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i)
    if (found[i] != expected[i])
      check::fail(file, line,
                  "byte " + std::to_string(i) + " is " + std::to_string(found[i]) + ", expected " +
                      std::to_string(expected[i]));
  check::equal(found.size(), expected.size(), "the number of bytes", file, line);
}

// A file that all ranks have closed.
inline void file_holds(const std::string& path, const Bytes& expected, const char* file, int line) {
  barrier();
  if (check::rank == 0) same_bytes(contents(path), expected, file, line);
  barrier();
}

inline void moved(const MPI_Status& status, MPI_Datatype type, MPI_Count count, const char* file,
                  int line) {
  MPI_Count found = -1;
  int small = -1;
  OK(MPI_Get_count_c(&status, type, &found));
  check::equal(found, count, "the count of the status", file, line);
  OK(MPI_Get_count(&status, type, &small));
  check::equal(small, count, "the count of the status", file, line);
}

inline MPI_Count elements(const MPI_Status& status, MPI_Datatype type) {
  MPI_Count found = -1;
  OK(MPI_Get_elements_c(&status, type, &found));
  return found;
}

// How many elements to ask for of which only `there` are left in a view with holes: MPICH 5.0
// counts what was asked for.
inline MPI_Count over_the_end(MPI_Count wanted, MPI_Count there) {
  return check::is_macadam() ? wanted : std::min(wanted, there);
}

inline MPI_Offset position(MPI_File file) {
  MPI_Offset offset = -1;
  OK(MPI_File_get_position(file, &offset));
  return offset;
}
inline MPI_Offset shared_position(MPI_File file) {
  MPI_Offset offset = -1;
  OK(MPI_File_get_position_shared(file, &offset));
  return offset;
}
inline MPI_Offset size_of(MPI_File file) {
  MPI_Offset size = -1;
  OK(MPI_File_get_size(file, &size));
  return size;
}

template <class T>
void append_big_endian(Bytes& bytes, const T& value) {
  unsigned char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof raw);
  for (std::size_t i = sizeof raw; i-- > 0;)
    bytes.push_back(raw[i]);
}

inline void set_view(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                     const char* datarep = "native") {
  OK(MPI_File_set_view(file, disp, etype, filetype, datarep, MPI_INFO_NULL));
}

// After errors a file of all ranks still does what it should.
inline void works(MPI_File file) {
  int out = 12345 + check::rank, in = 0, sum = 0;
  MPI_Status status;
  set_view(file, 0, MPI_INT, MPI_INT);
  OK(MPI_File_write_at_all(file, check::rank, &out, 1, MPI_INT, &status));
  moved(status, MPI_INT, 1, __FILE__, __LINE__);
  settle(file);
  OK(MPI_File_read_at(file, right(), &in, 1, MPI_INT, &status));
  moved(status, MPI_INT, 1, __FILE__, __LINE__);
  CHECK_EQUAL(in, 12345 + right());
  out = 1;
  OK(MPI_Allreduce(&out, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  CHECK_EQUAL(sum, check::size);
}

inline void same_type(MPI_Datatype found, MPI_Datatype expected) {
  MPI_Count size[2], lower[2], extent[2], begin[2], span[2];
  const MPI_Datatype both[] = {found, expected};
  for (const int i : {0, 1}) {
    OK(MPI_Type_size_c(both[i], &size[i]));
    OK(MPI_Type_get_extent_c(both[i], &lower[i], &extent[i]));
    OK(MPI_Type_get_true_extent_c(both[i], &begin[i], &span[i]));
  }
  CHECK_EQUAL(size[0], size[1]);
  CHECK_EQUAL(lower[0], lower[1]);
  CHECK_EQUAL(extent[0], extent[1]);
  CHECK_EQUAL(begin[0], begin[1]);
  CHECK_EQUAL(span[0], span[1]);
}

inline bool is_predefined(MPI_Datatype type) {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  OK(MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner));
  return combiner == MPI_COMBINER_NAMED;
}

inline void view_is(MPI_File file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
                    const char* datarep = "native") {
  MPI_Offset found = -1;
  MPI_Datatype types[2];
  char name[MPI_MAX_DATAREP_STRING] = "";
  OK(MPI_File_get_view(file, &found, &types[0], &types[1], name));
  CHECK_EQUAL(found, disp);
  CHECK_EQUAL(std::string(name), datarep);
  same_type(types[0], etype);
  same_type(types[1], filetype);
  for (MPI_Datatype& type : types)
    if (!is_predefined(type)) OK(MPI_Type_free(&type));
}

} // namespace io

#define SAME_BYTES(found, expected) io::same_bytes(found, expected, __FILE__, __LINE__)
#define FILE_HOLDS(path, expected) io::file_holds(path, expected, __FILE__, __LINE__)
// What a status says was read or written.
#define MOVED(status, type, count) io::moved(status, type, count, __FILE__, __LINE__)
