// SPDX-License-Identifier: BSD-3-Clause
// The file pointer that all ranks share. It is a number in a window, at rank 0; a rank that reads
// or writes adds to it what it takes, in one fetch-and-add for which nobody has to act.
#include "mpi/calls.h"
#include "mpi/collectives.h"
#include "mpi/file.h"
#include "mpi/process.h"
#include "mpi/window.h"

#include <numeric>

namespace macadam::mpi {

using datatype::Type;
using datatype::Wide;
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
  MPI_Offset before = 0;
  if (file.shared_window == nullptr) {
    before = file.shared_alone;
    // May wrap round, as the window's sum may, until take() has put it back.
    static_cast<void>(__builtin_add_overflow(before, etypes, &file.shared_alone));
    return before;
  }
  const datatype::Op& sum = *self.find<datatype::Op>(MPI_SUM, base::ObjectKind::op);
  fetch_and_op(self, &etypes, &before, self.types[MPI_OFFSET], 0, 0, sum, *file.shared_window);
  win_flush(self, 0, *file.shared_window);
  return before;
}

} // namespace

MPI_Offset shared_position(Process& self, File& file) {
  barrier(self, *file.comm);
  MPI_Offset position = file.comm->rank() == 0 ? advance(self, file, 0) : 0;
  bcast_bytes(self, *file.comm, &position, sizeof position, 0);
  return position;
}

void set_shared_pointer(Process& self, File& file, MPI_Offset position) {
  if (file.comm->rank() == 0) advance(self, file, position - advance(self, file, 0));
  barrier(self, *file.comm);
}

void file_seek_shared(Process& self, File& file, MPI_Offset offset, int whence) {
  check_random(file);
  check_no_split(file);
  check_same(self, file, fmt::format("offset is {} and whence {}", offset, whence));
  const MPI_Offset current = shared_position(self, file);
  MPI_Offset position = 0;
  agree(self, *file.comm, attempt([&] { position = sought(file, offset, whence, current); }));
  set_shared_pointer(self, file, position);
}

void file_get_position_shared(Process& self, File& file, MPI_Offset* offset) {
  check_random(file);
  *offset = advance(self, file, 0);
}

namespace {

// The pointer goes on by so many etypes, from the place that is returned. If a file cannot be so
// long, it does not, and io::View::position_of refuses them at that place too. (Until it is back,
// others who take theirs there are refused as well.)
MPI_Offset take(Process& self, File& file, Wide etypes) {
  const auto fit = [&](MPI_Offset begin) {
    return !attempt(
        [&] { static_cast<void>(file.view->position_of(begin, etypes * file.view->unit())); });
  };
  if (!fit(0)) return 0;
  const auto all = static_cast<MPI_Offset>(etypes);
  const MPI_Offset begin = advance(self, file, all);
  if (!fit(begin)) advance(self, file, -all);
  return begin;
}

// At the pointer, which is this rank's place from now on.
FileMove at_pointer(Process& self, File& file, bool writes, const void* buf, MPI_Count count,
                    const Type& type) {
  const Data user{const_cast<void*>(buf), count, &type};
  const MPI_Count etypes = etypes_of(self, file, writes, user);
  return move_at(file, writes, take(self, file, etypes), etypes, user);
}

// Behind what lower ranks move, from the pointer on, which goes on behind all. Collective, also if
// this rank's arguments are refused.
FileMove in_order(Process& self, File& file, bool writes, const void* buf, MPI_Count count,
                  const Type& type) {
  const Data user{const_cast<void*>(buf), count, &type};
  MPI_Count own = 0;
  const std::optional<base::Error> refused =
      attempt([&] { own = etypes_of(self, file, writes, user); });
  std::vector<MPI_Count> all(static_cast<std::size_t>(file.comm->size()));
  allgather_bytes(self, *file.comm, &own, sizeof own, all.data());
  const Wide sum = std::accumulate(all.begin(), all.end(), Wide{0});
  MPI_Offset begin = 0;
  if (file.comm->rank() == 0) begin = take(self, file, sum);
  bcast_bytes(self, *file.comm, &begin, sizeof begin, 0);
  if (refused) throw *refused;
  static_cast<void>(
      file.view->position_of(begin, sum * file.view->unit())); // on all, as they have one view
  return move_at(file, writes, std::accumulate(all.begin(), all.begin() + file.comm->rank(), begin),
                 own, user);
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
    const auto make = [&] { return in_order(self, file, writes, buf, count, type); };              \
    move_together(self, file, writes, make, status);                                               \
  }                                                                                                \
  void file_##verb##_ordered_begin(Process& self, File& file, buffer buf, MPI_Count count,         \
                                   const Type& type) {                                             \
    check_no_split(file);                                                                          \
    const auto make = [&] { return in_order(self, file, writes, buf, count, type); };              \
    begin_split(self, file, "MPI_File_" #verb "_ordered", writes, make, buf);                      \
  }                                                                                                \
  void file_##verb##_ordered_end(Process& self, File& file, buffer buf, MPI_Status* status) {      \
    end_split(self, file, "MPI_File_" #verb "_ordered", buf, status);                              \
  }                                                                                                \
  static_assert(true)

MACADAM_FILE_SHARED(read, false, void*);
MACADAM_FILE_SHARED(write, true, const void*);

#undef MACADAM_FILE_SHARED

} // namespace macadam::mpi
