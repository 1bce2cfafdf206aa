// SPDX-License-Identifier: BSD-3-Clause
// The file pointer that all ranks share. It is a number in a window, at rank 0; a rank that reads
// or writes adds to it what it takes, in one fetch-and-add for which nobody has to act.
#include "coll/operations.h"
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/file.h"
#include "mpi/process.h"
#include "mpi/window.h"

#include <numeric>

namespace macadam::mpi {

using datatype::Type;
using io::Data;

void make_shared_pointer(Process& self, File& file) {
  if (file.comm->size() == 1) return;
  const MPI_Aint bytes = file.comm->rank() == 0 ? sizeof(MPI_Offset) : 0;
  void* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  win_allocate(self, bytes, 1, nullptr, *file.comm, &memory, &window);
  file.shared_window = self.find<Window>(window, base::ObjectKind::window);
  win_lock_all(self, MPI_MODE_NOCHECK, *file.shared_window);
  set_shared_pointer(self, file, 0);
}

void free_shared_pointer(Process& self, File& file) {
  if (file.shared_window == nullptr) return;
  win_unlock_all(self, *file.shared_window);
  MPI_Win window = std::exchange(file.shared_window, nullptr)->handle();
  win_free(self, &window);
}

namespace {

// Adds to it, and returns what it was.
MPI_Offset advance(Process& self, File& file, MPI_Offset etypes) {
  if (file.shared_window == nullptr)
    return std::exchange(file.shared_alone, file.shared_alone + etypes);
  MPI_Offset before = 0;
  const datatype::Op& sum = *self.find<datatype::Op>(MPI_SUM, base::ObjectKind::op);
  fetch_and_op(self, &etypes, &before, self.types[MPI_OFFSET], 0, 0, sum, *file.shared_window);
  win_flush(self, 0, *file.shared_window);
  return before;
}

void barrier(Process& self, File& file) {
  run(self, *file.comm, {"barrier", &coll::barrier, {}, nullptr});
}

} // namespace

void set_shared_pointer(Process& self, File& file, MPI_Offset position) {
  barrier(self, file); // nobody uses it
  if (file.comm->rank() == 0) advance(self, file, position - advance(self, file, 0));
  barrier(self, file);
}

void file_seek_shared(Process& self, File& file, MPI_Offset offset, int whence) {
  check_random(file);
  check_no_split(file);
  set_shared_pointer(self, file, sought(file, offset, whence, advance(self, file, 0)));
}

void file_get_position_shared(Process& self, File& file, MPI_Offset* offset) {
  *offset = advance(self, file, 0);
}

namespace {

// At the pointer, which is this rank's place from now on.
FileMove at_pointer(Process& self, File& file, bool writes, const void* buf, MPI_Count count,
                    const Type& type) {
  const Data user{const_cast<void*>(buf), count, &type};
  check_move(self, file, writes, user);
  return {writes, advance(self, file, etypes_of(self, file, user)), user};
}

// Behind what lower ranks move, from the pointer on, which goes on behind all.
FileMove in_order(Process& self, File& file, bool writes, const void* buf, MPI_Count count,
                  const Type& type) {
  const Data user{const_cast<void*>(buf), count, &type};
  check_move(self, file, writes, user);
  const MPI_Offset own = etypes_of(self, file, user);
  std::vector<MPI_Offset> all(static_cast<std::size_t>(file.comm->size()));
  allgather_bytes(self, *file.comm, &own, sizeof own, all.data());
  MPI_Offset begin = 0;
  if (file.comm->rank() == 0)
    begin = advance(self, file, std::accumulate(all.begin(), all.end(), MPI_Offset{0}));
  bcast_bytes(self, *file.comm, &begin, sizeof begin, 0);
  return {writes, std::accumulate(all.begin(), all.begin() + file.comm->rank(), begin), user};
}

} // namespace

#define MACADAM_FILE_SHARED(verb, writes, buffer)                                                  \
  void file_##verb##_shared(Process& self, File& file, buffer buf, MPI_Count count,                \
                            const Type& type, MPI_Status* status) {                                \
    move_alone(self, file, at_pointer(self, file, writes, buf, count, type), status);              \
  }                                                                                                \
  void file_i##verb##_shared(Process& self, File& file, buffer buf, MPI_Count count,               \
                             const Type& type, MPI_Request* request) {                             \
    begin_alone(self, file, at_pointer(self, file, writes, buf, count, type), request);            \
  }                                                                                                \
  void file_##verb##_ordered(Process& self, File& file, buffer buf, MPI_Count count,               \
                             const Type& type, MPI_Status* status) {                               \
    check_no_split(file);                                                                          \
    move_together(self, file, in_order(self, file, writes, buf, count, type), status);             \
  }                                                                                                \
  void file_##verb##_ordered_begin(Process& self, File& file, buffer buf, MPI_Count count,         \
                                   const Type& type) {                                             \
    check_no_split(file);                                                                          \
    begin_split(self, file, "MPI_File_" #verb "_ordered",                                          \
                in_order(self, file, writes, buf, count, type));                                   \
  }                                                                                                \
  void file_##verb##_ordered_end(Process& self, File& file, buffer buf, MPI_Status* status) {      \
    end_split(self, file, "MPI_File_" #verb "_ordered", buf, status);                              \
  }                                                                                                \
  static_assert(true)

MACADAM_FILE_SHARED(read, false, void*);
MACADAM_FILE_SHARED(write, true, const void*);

#undef MACADAM_FILE_SHARED

} // namespace macadam::mpi
