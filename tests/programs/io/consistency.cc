// SPDX-License-Identifier: BSD-3-Clause
// What one rank sees of what others write: after syncs, after closing, and at once in atomic mode.
#include "io/file.h"

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

bool is_atomic(MPI_File file) {
  int flag = -1;
  OK(MPI_File_get_atomicity(file, &flag));
  CHECK(flag == 0 || flag == 1);
  return flag == 1;
}

void atomicity_is_of_a_handle() {
  Folder folder;
  const File first(MPI_COMM_WORLD, folder("file"), io::new_file);
  const File second(MPI_COMM_WORLD, folder("file"), io::new_file);
  CHECK(!is_atomic(first));
  OK(MPI_File_set_atomicity(first, 1));
  CHECK(is_atomic(first));
  CHECK(!is_atomic(second));
  io::set_view(first, 3, MPI_INT, MPI_INT);
  CHECK(is_atomic(first));
  OK(MPI_File_set_atomicity(first, 1));
  CHECK(is_atomic(first));
  OK(MPI_File_set_atomicity(first, 0));
  CHECK(!is_atomic(first));
}

constexpr int record = 5000;

std::uint64_t seed(int rank, int round) {
  return static_cast<std::uint64_t>(100 * round + rank);
}

void sync_barrier_sync() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  for (int round = 0; round < check::times(20, 5); ++round) {
    const Bytes out = check::message(record, seed(check::rank, round));
    OK(MPI_File_write_at(file, record * check::rank, out.data(), record, MPI_BYTE,
                         MPI_STATUS_IGNORE));
    io::settle(file);
    for (int rank = 0; rank < check::size; ++rank) {
      Bytes in(record);
      OK(MPI_File_read_at(file, record * rank, in.data(), record, MPI_BYTE, MPI_STATUS_IGNORE));
      HOLDS(in.data(), record, seed(rank, round));
    }
    io::settle(file);
  }
}

// Each rank writes by the handle of all, and reads by one of its own.
void two_handles() {
  Folder folder;
  const std::string path = folder("file");
  const File all(MPI_COMM_WORLD, path, io::new_file), own(MPI_COMM_SELF, path, MPI_MODE_RDWR);
  for (int round = 0; round < check::times(20, 5); ++round) {
    Bytes data = check::message(record, seed(check::rank, round)), in(record);
    OK(MPI_File_write_at_all(all, record * check::rank, data.data(), record, MPI_BYTE,
                             MPI_STATUS_IGNORE));
    OK(MPI_File_sync(all));
    io::barrier();
    OK(MPI_File_sync(own));
    OK(MPI_File_read_at(own, record * io::right(), in.data(), record, MPI_BYTE, MPI_STATUS_IGNORE));
    HOLDS(in.data(), record, seed(io::right(), round));
    // And the other way.
    check::fill(data.data(), record, seed(check::rank, round + 50));
    OK(MPI_File_sync(own));
    io::barrier();
    OK(MPI_File_write_at(own, record * check::rank, data.data(), record, MPI_BYTE,
                         MPI_STATUS_IGNORE));
    OK(MPI_File_sync(own));
    io::barrier();
    OK(MPI_File_sync(all));
    OK(MPI_File_read_at_all(all, record * io::left(), in.data(), record, MPI_BYTE,
                            MPI_STATUS_IGNORE));
    HOLDS(in.data(), record, seed(io::left(), round + 50));
    io::settle(all);
  }
}

void closed_and_opened() {
  Folder folder;
  const std::string path = folder("file");
  for (int round = 0; round < check::times(10, 3); ++round) {
    const Bytes out = check::message(record, seed(check::rank, round));
    {
      const File file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY);
      OK(MPI_File_write_at(file, record * check::rank, out.data(), record, MPI_BYTE,
                           MPI_STATUS_IGNORE));
    }
    io::barrier();
    Bytes in(record);
    {
      const File file(MPI_COMM_SELF, path, MPI_MODE_RDONLY);
      OK(MPI_File_read_at(file, record * io::right(), in.data(), record, MPI_BYTE,
                          MPI_STATUS_IGNORE));
    }
    HOLDS(in.data(), record, seed(io::right(), round));
    io::barrier();
  }
}

// What is written in atomic mode others may read as soon as they know of it.
void atomic_is_at_once() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  OK(MPI_File_set_atomicity(file, 1));
  for (int round = 0; round < check::times(50, 5); ++round) {
    const Bytes out = check::message(record, seed(check::rank, round));
    Bytes in(record);
    OK(MPI_File_write_at(file, record * check::rank, out.data(), record, MPI_BYTE,
                         MPI_STATUS_IGNORE));
    io::barrier();
    OK(MPI_File_read_at(file, record * io::right(), in.data(), record, MPI_BYTE,
                        MPI_STATUS_IGNORE));
    HOLDS(in.data(), record, seed(io::right(), round));
    io::barrier();
  }
}

void all_of_one_writer(const Bytes& found) {
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != found[0])
      check::fail(__FILE__, __LINE__,
                  "byte " + std::to_string(i) + " is of writer " + std::to_string(found[i]) +
                      ", the first of " + std::to_string(found[0]));
}

// All write the same places at once, and read them meanwhile.
void overlapping(bool with_holes, bool together) {
  Folder folder;
  const std::string path = folder("file");
  constexpr int bytes = 120000;
  File file(MPI_COMM_WORLD, path, io::new_file);
  const Type holes(io::vector(30, 100, 150, MPI_BYTE)), tile(io::resized(holes, 0, 30 * 150));
  if (with_holes) io::set_view(file, 7, MPI_BYTE, tile);
  OK(MPI_File_set_atomicity(file, 1));
  Bytes out(bytes, static_cast<unsigned char>(check::rank)), in(bytes);
  const auto write = [&] {
    MPI_Status status;
    OK(together ? MPI_File_write_at_all(file, 0, out.data(), bytes, MPI_BYTE, &status)
                : MPI_File_write_at(file, 0, out.data(), bytes, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, bytes);
  };
  const auto read = [&] {
    MPI_Status status;
    OK(MPI_File_read_at(file, 0, in.data(), bytes, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, bytes);
    all_of_one_writer(in);
  };
  write();
  for (int round = 0; round < check::times(10, 3); ++round) {
    if (together || (round + check::rank) % 3 != 0) write();
    read();
  }
  io::barrier();
  read();
  file.close();
}

void overlapping_writes() {
  overlapping(false, false);
}
void overlapping_writes_with_holes() {
  overlapping(true, false);
}

// Of a collective operation each rank's part counts for itself.
void overlapping_collectives() {
  overlapping(false, true);
  overlapping(true, true);
}

// Without atomic mode too a process finds what it has written itself by this handle.
void own_writes() {
  Folder folder;
  const File file(MPI_COMM_SELF, folder("file", check::rank), io::new_file);
  const Type every_third(io::every(3, MPI_INT));
  for (int round = 0; round < 20; ++round) {
    io::set_view(file, 4 * (round % 3), MPI_INT, every_third);
    std::vector<int> out(500, 1000 + round), in(500), whole(1500);
    OK(MPI_File_write_at(file, 0, out.data(), 500, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_read_at(file, 0, in.data(), 500, MPI_INT, MPI_STATUS_IGNORE));
    CHECK(in == out);
    if (round < 2) continue;
    io::set_view(file, 0, MPI_INT, MPI_INT);
    OK(MPI_File_read_at(file, 0, whole.data(), 1500, MPI_INT, MPI_STATUS_IGNORE));
    for (int i = 0; i < 1500; ++i)
      CHECK_EQUAL(whole[static_cast<std::size_t>(i)], 1000 + round - (round - i % 3) % 3);
  }
}

// What is written into the holes of another rank's write, at the same time, conflicts with nothing.
// (MPICH 5.0 reads and writes the holes back, and loses some.)
void holes_of_others() {
  if (check::size == 1 || !check::is_macadam()) return;
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  const int bytes = 64, blocks = 2000, rounds = check::times(20, 3);
  const Type with_holes(io::vector(blocks, bytes, 2 * bytes, MPI_BYTE));
  const auto hole = [](int k) { return MPI_Offset{2} * bytes * k + bytes; };
  const auto is_mine = [](int k) { return k % (check::size - 1) == check::rank - 1; };
  const auto content = [](int round, int k) {
    return Bytes(bytes, static_cast<unsigned char>(31 * round + k));
  };
  if (check::rank == 0)
    io::set_view(file, 0, MPI_BYTE, with_holes);
  else
    io::set_view(file, 0, MPI_BYTE, MPI_BYTE);
  const Bytes blank(static_cast<std::size_t>(bytes * blocks), 0xff);
  for (int round = 0; round < rounds; ++round) {
    if (check::rank == 0)
      OK(MPI_File_write_at(file, 0, blank.data(), bytes * blocks, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int k = 0; check::rank != 0 && k < blocks; ++k) {
      if (!is_mine(k)) continue;
      OK(MPI_File_write_at(file, hole(k), content(round, k).data(), bytes, MPI_BYTE,
                           MPI_STATUS_IGNORE));
    }
    io::settle(file);
    for (int k = 0; check::rank != 0 && k < blocks; ++k) {
      if (!is_mine(k)) continue;
      Bytes in(bytes);
      OK(MPI_File_read_at(file, hole(k), in.data(), bytes, MPI_BYTE, MPI_STATUS_IGNORE));
      CHECK(in == content(round, k));
    }
    io::settle(file);
  }
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"atomicity_is_of_a_handle", atomicity_is_of_a_handle},
                     {"sync_barrier_sync", sync_barrier_sync},
                     {"two_handles", two_handles},
                     {"closed_and_opened", closed_and_opened},
                     {"atomic_is_at_once", atomic_is_at_once},
                     {"overlapping_writes", overlapping_writes},
                     {"overlapping_writes_with_holes", overlapping_writes_with_holes},
                     {"overlapping_collectives", overlapping_collectives},
                     {"own_writes", own_writes},
                     {"holes_of_others", holes_of_others}});
}
