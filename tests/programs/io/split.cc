// SPDX-License-Identifier: BSD-3-Clause
// Split collective operations: every pair of begin and end, with other work in between.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

constexpr int record = 1000; // bytes

MPI_Offset place(int rank, int round) {
  return MPI_Offset{record} * (check::size * round + rank);
}
std::uint64_t seed(int rank, int round) {
  return static_cast<std::uint64_t>(100 * round + rank);
}

// What the program may do meanwhile: compute, send, and use other files.
void meanwhile(MPI_File other) {
  check::compute_ms(1);
  int got = -1;
  OK(MPI_Sendrecv(&check::rank, 1, MPI_INT, io::right(), 3, &got, 1, MPI_INT, io::left(), 3,
                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  CHECK_EQUAL(got, io::left());
  OK(MPI_File_write_at_all(other, check::rank * 4, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
}

enum class Way { at, pointer, ordered };

void begin_write(MPI_File file, Way way, MPI_Offset offset, const Bytes& out, bool large) {
  const void* const data = out.data();
  switch (way) {
  case Way::at:
    OK(large ? MPI_File_write_at_all_begin_c(file, offset, data, record, MPI_BYTE)
             : MPI_File_write_at_all_begin(file, offset, data, record, MPI_BYTE));
    break;
  case Way::pointer:
    OK(large ? MPI_File_write_all_begin_c(file, data, record, MPI_BYTE)
             : MPI_File_write_all_begin(file, data, record, MPI_BYTE));
    break;
  case Way::ordered:
    OK(large ? MPI_File_write_ordered_begin_c(file, data, record, MPI_BYTE)
             : MPI_File_write_ordered_begin(file, data, record, MPI_BYTE));
    break;
  }
}

void end_write(MPI_File file, Way way, const Bytes& out, MPI_Status* status) {
  OK(way == Way::at        ? MPI_File_write_at_all_end(file, out.data(), status)
     : way == Way::pointer ? MPI_File_write_all_end(file, out.data(), status)
                           : MPI_File_write_ordered_end(file, out.data(), status));
}

void begin_read(MPI_File file, Way way, MPI_Offset offset, Bytes& in, bool large) {
  void* const data = in.data();
  switch (way) {
  case Way::at:
    OK(large ? MPI_File_read_at_all_begin_c(file, offset, data, record, MPI_BYTE)
             : MPI_File_read_at_all_begin(file, offset, data, record, MPI_BYTE));
    break;
  case Way::pointer:
    OK(large ? MPI_File_read_all_begin_c(file, data, record, MPI_BYTE)
             : MPI_File_read_all_begin(file, data, record, MPI_BYTE));
    break;
  case Way::ordered:
    OK(large ? MPI_File_read_ordered_begin_c(file, data, record, MPI_BYTE)
             : MPI_File_read_ordered_begin(file, data, record, MPI_BYTE));
    break;
  }
}

void end_read(MPI_File file, Way way, Bytes& in, MPI_Status* status) {
  OK(way == Way::at        ? MPI_File_read_at_all_end(file, in.data(), status)
     : way == Way::pointer ? MPI_File_read_all_end(file, in.data(), status)
                           : MPI_File_read_ordered_end(file, in.data(), status));
}

void write_and_read(Way way) {
  Folder folder;
  const std::string path = folder("file");
  File file(MPI_COMM_WORLD, path, io::new_file);
  const File other(MPI_COMM_WORLD, folder("other"), io::new_file);
  const int rounds = check::times(8, 4);
  MPI_Status status;
  for (int round = 0; round < rounds; ++round) {
    const Bytes out = check::message(record, seed(check::rank, round));
    if (way == Way::pointer) OK(MPI_File_seek(file, place(check::rank, round), MPI_SEEK_SET));
    begin_write(file, way, place(check::rank, round), out, round % 2 != 0);
    meanwhile(other);
    end_write(file, way, out, &status);
    MOVED(status, MPI_BYTE, record);
  }
  if (way == Way::pointer) CHECK_EQUAL(io::position(file), place(check::rank + 1, rounds - 1));
  io::settle(file);
  if (way == Way::ordered) CHECK_EQUAL(io::shared_position(file), place(0, rounds));
  io::barrier();
  if (way == Way::ordered) OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  // Ordered reading is in the order of the ranks again.
  const int from = way == Way::ordered ? check::rank : io::right();
  for (int round = 0; round < rounds; ++round) {
    Bytes in(record);
    if (way == Way::pointer) OK(MPI_File_seek(file, place(from, round), MPI_SEEK_SET));
    begin_read(file, way, place(from, round), in, round % 2 == 0);
    meanwhile(other);
    end_read(file, way, in, &status);
    MOVED(status, MPI_BYTE, record);
    HOLDS(in.data(), record, seed(from, round));
  }
  file.close();
  Bytes expected;
  for (int round = 0; round < rounds; ++round)
    for (int rank = 0; rank < check::size; ++rank) {
      const Bytes one = check::message(record, seed(rank, round));
      expected.insert(expected.end(), one.begin(), one.end());
    }
  FILE_HOLDS(path, expected);
}

// By derived types on both sides, and over the end.
void noncontiguous() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  const Type strided(io::every(check::size, MPI_INT)), spread(io::vector(50, 1, 2, MPI_INT));
  std::vector<int> out(100, -1), in(200, -1);
  for (std::size_t i = 0; i < 50; ++i)
    out[2 * i] = 1000 * check::rank + static_cast<int>(i);
  MPI_Status status;
  io::set_view(file, 4 * check::rank, MPI_INT, strided);
  OK(MPI_File_write_all_begin(file, out.data(), 1, spread));
  OK(MPI_File_write_all_end(file, out.data(), &status));
  MOVED(status, spread, 1);
  io::settle(file);
  io::set_view(file, 4 * io::right(), MPI_INT, strided);
  OK(MPI_File_read_at_all_begin(file, 10, in.data(), 50, MPI_INT));
  OK(MPI_File_read_at_all_end(file, in.data(), &status));
  MOVED(status, MPI_INT, 40);
  for (std::size_t i = 0; i < in.size(); ++i)
    CHECK_EQUAL(in[i], i < 40 ? 1000 * io::right() + static_cast<int>(i) + 10 : -1);
}

// One operation of this kind may be active on each handle, and independent ones beside it.
void two_files() {
  Folder folder;
  const File first(MPI_COMM_WORLD, folder("first"), io::new_file);
  const File second(MPI_COMM_WORLD, folder("second"), io::new_file);
  const Bytes out = check::message(record, seed(check::rank, 1));
  Bytes in(record);
  MPI_Status status;
  OK(MPI_File_write_at_all_begin(first, place(check::rank, 0), out.data(), record, MPI_BYTE));
  OK(MPI_File_write_at_all_begin(second, place(check::rank, 0), out.data(), record, MPI_BYTE));
  OK(MPI_File_write_at(first, place(check::rank, 1), out.data(), record, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, record);
  OK(MPI_File_write_at_all_end(second, out.data(), &status));
  MOVED(status, MPI_BYTE, record);
  OK(MPI_File_write_at_all_end(first, out.data(), MPI_STATUS_IGNORE));
  for (const MPI_File file : {static_cast<MPI_File>(first), static_cast<MPI_File>(second)}) {
    io::settle(file);
    OK(MPI_File_read_at(file, place(io::left(), 0), in.data(), record, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, record);
    HOLDS(in.data(), record, seed(io::left(), 1));
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"at", [] { write_and_read(Way::at); }},
                     {"pointer", [] { write_and_read(Way::pointer); }},
                     {"ordered", [] { write_and_read(Way::ordered); }},
                     {"noncontiguous", noncontiguous},
                     {"two_files", two_files}});
}
