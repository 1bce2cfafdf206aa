// SPDX-License-Identifier: BSD-3-Clause
// The shared file pointer: every record is written and read once, in the order of the ranks where
// the operation is ordered.
#include "io/file.h"

#include <map>

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

constexpr int record = 200; // ints

std::vector<int> record_of(int rank, int number) {
  std::vector<int> data;
  for (int i = 0; i < record; ++i)
    data.push_back((100 * rank + number) * 1000 + i);
  return data;
}
bool is_whole(const int* data) {
  for (int i = 0; i < record; ++i)
    if (data[i] != data[0] + i) return false;
  return data[0] % 1000 == 0;
}

// Every rank at its own pace.
void every_record_once() {
  Folder folder;
  const std::string path = folder("file");
  const int rounds = check::times(20, 5), total = rounds * check::size;
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file);
  io::set_view(file, 12, MPI_INT, MPI_INT);
  for (int i = 0; i < rounds; ++i) {
    const std::vector<int> out = record_of(check::rank, i);
    OK(i % 2 == 0 ? MPI_File_write_shared(file, out.data(), record, MPI_INT, &status)
                  : MPI_File_write_shared_c(file, out.data(), record, MPI_INT, &status));
    MOVED(status, MPI_INT, record);
  }
  io::settle(file);
  CHECK_EQUAL(io::shared_position(file), MPI_Offset{record} * total);
  CHECK_EQUAL(io::position(file), 0);
  io::barrier();
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  std::vector<int> in(record), mine;
  for (;;) {
    OK(mine.size() % 2 == 0 ? MPI_File_read_shared(file, in.data(), record, MPI_INT, &status)
                            : MPI_File_read_shared_c(file, in.data(), record, MPI_INT, &status));
    int count = -1;
    OK(MPI_Get_count(&status, MPI_INT, &count));
    if (count == 0) break;
    CHECK_EQUAL(count, record);
    CHECK(is_whole(in.data()));
    mine.push_back(in[0] / 1000);
  }
  std::vector<int> seen(static_cast<std::size_t>(100 * check::size));
  for (const int number : mine)
    ++seen.at(static_cast<std::size_t>(number));
  OK(MPI_Allreduce(MPI_IN_PLACE, seen.data(), static_cast<int>(seen.size()), MPI_INT, MPI_SUM,
                   MPI_COMM_WORLD));
  for (std::size_t i = 0; i < seen.size(); ++i)
    CHECK_EQUAL(seen[i], static_cast<int>(i % 100) < rounds ? 1 : 0);
  file.close();
  if (check::rank == 0) {
    const Bytes data = io::contents(path);
    CHECK_EQUAL(data.size(), static_cast<std::size_t>(12 + 4 * record * total));
    std::map<int, int> latest; // of a rank, whose records are in its order
    for (int i = 0; i < total; ++i) {
      std::memcpy(in.data(), &data[static_cast<std::size_t>(12 + 4 * record * i)], 4 * record);
      CHECK(is_whole(in.data()));
      const int number = in[0] / 1000;
      CHECK_EQUAL(latest[number / 100]++, number % 100);
    }
  }
}

// Records of different sizes, of some ranks none.
void in_the_order_of_ranks() {
  Folder folder;
  const std::string path = folder("file");
  const auto amount = [](int rank, int round) { return (7 * rank + 3 * round) % 5 * 400; };
  const int rounds = check::times(10, 3);
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file);
  MPI_Offset end = 0;
  Bytes expected;
  for (int round = 0; round < rounds; ++round) {
    for (int rank = 0; rank < check::size; ++rank) {
      const Bytes one = check::message(static_cast<std::size_t>(amount(rank, round)),
                                       static_cast<std::uint64_t>(10 * rank + round));
      expected.insert(expected.end(), one.begin(), one.end());
      end += amount(rank, round);
      if (rank != check::rank) continue;
      const int bytes = amount(rank, round);
      OK(round % 2 == 0 ? MPI_File_write_ordered(file, one.data(), bytes, MPI_BYTE, &status)
                        : MPI_File_write_ordered_c(file, one.data(), bytes, MPI_BYTE, &status));
      MOVED(status, MPI_BYTE, bytes);
    }
    // A collective operation begins when all have ended the one before.
    io::barrier();
    CHECK_EQUAL(io::shared_position(file), end);
    io::barrier();
  }
  io::settle(file);
  OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
  for (int round = 0; round < rounds; ++round) {
    const int bytes = amount(check::rank, round);
    Bytes in(static_cast<std::size_t>(bytes));
    OK(round % 2 != 0 ? MPI_File_read_ordered(file, in.data(), bytes, MPI_BYTE, &status)
                      : MPI_File_read_ordered_c(file, in.data(), bytes, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, bytes);
    HOLDS(in.data(), bytes, static_cast<std::uint64_t>(10 * check::rank + round));
  }
  file.close();
  FILE_HOLDS(path, expected);
}

void seeking() {
  Folder folder;
  const std::string path = folder("file");
  if (check::rank == 0) io::store(path, check::message(100, 1));
  io::barrier();
  const File file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
  const auto seek = [&](MPI_Offset offset, int whence, MPI_Offset expected) {
    OK(MPI_File_seek_shared(file, offset, whence));
    CHECK_EQUAL(io::shared_position(file), expected);
    CHECK_EQUAL(io::position(file), 0);
    io::barrier();
  };
  seek(30, MPI_SEEK_SET, 30);
  seek(15, MPI_SEEK_CUR, 45);
  seek(-40, MPI_SEEK_CUR, 5);
  seek(-10, MPI_SEEK_END, 90);
  seek(20, MPI_SEEK_END, 120);
  const Type every_second(io::vector(3, 1, 2, MPI_SHORT)); // 3 in each 10 bytes
  io::set_view(file, 10, MPI_SHORT, every_second);
  seek(0, MPI_SEEK_CUR, 0);
  seek(0, MPI_SEEK_END, 27);
  seek(-20, MPI_SEEK_CUR, 7);
  // All read there in the order of the ranks.
  short in = 0;
  MPI_Status status;
  OK(MPI_File_read_ordered(file, &in, 1, MPI_SHORT, &status));
  MOVED(status, MPI_SHORT, 1);
  const std::size_t k = 7 + static_cast<std::size_t>(check::rank), at = 10 + k / 3 * 10 + k % 3 * 4;
  const Bytes data = check::message(100, 1);
  CHECK(std::memcmp(&in, &data[at], 2) == 0);
  io::barrier();
  CHECK_EQUAL(io::shared_position(file), 7 + check::size);
}

void nothing_and_the_end() {
  Folder folder;
  const std::string path = folder("file");
  if (check::rank == 0) io::store(path, check::message(10, 1));
  io::barrier();
  const File file(MPI_COMM_WORLD, path, MPI_MODE_RDWR);
  MPI_Status status;
  OK(MPI_File_write_shared(file, nullptr, 0, MPI_INT, &status));
  MOVED(status, MPI_INT, 0);
  OK(MPI_File_read_ordered(file, nullptr, 0, MPI_INT, &status));
  MOVED(status, MPI_INT, 0);
  io::barrier();
  CHECK_EQUAL(io::shared_position(file), 0);
  io::barrier();
  // The first has 8 bytes, the next 2, the others none.
  Bytes in(8, 0xee);
  OK(MPI_File_read_ordered(file, in.data(), 8, MPI_BYTE, &status));
  const int count = check::rank == 0 ? 8 : check::rank == 1 ? 2 : 0;
  MOVED(status, MPI_BYTE, count);
  UNTOUCHED(in.data() + count, 8 - count, 0xee);
}

// Another communicator, where this file is opened too, has a pointer of its own.
void one_for_each_open() {
  if (!check::is_macadam()) return; // MPICH 5.0 has one for all opens by the same first process
  Folder folder;
  const std::string path = folder("file");
  MPI_Comm half;
  OK(MPI_Comm_split(MPI_COMM_WORLD, check::rank % 2, 0, &half));
  {
    const File all(MPI_COMM_WORLD, path, io::new_file), part(half, path, io::new_file);
    OK(MPI_File_seek_shared(all, 10, MPI_SEEK_SET));
    OK(MPI_File_seek_shared(part, 20 + check::rank % 2, MPI_SEEK_SET));
    CHECK_EQUAL(io::shared_position(all), 10);
    CHECK_EQUAL(io::shared_position(part), 20 + check::rank % 2);
  }
  OK(MPI_Comm_free(&half));
}

// Only these operations a sequential file has.
void sequential_files() {
  Folder folder;
  const std::string path = folder("file");
  const int sequential = MPI_MODE_SEQUENTIAL;
  const Bytes out = check::message(50, static_cast<unsigned>(check::rank));
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | sequential);
  OK(MPI_File_write_ordered(file, out.data(), 50, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 50);
  file.close();
  io::barrier();
  File again(MPI_COMM_WORLD, path, MPI_MODE_RDONLY | sequential);
  Bytes in(50);
  OK(MPI_File_read_ordered(again, in.data(), 50, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 50);
  HOLDS(in.data(), 50, static_cast<unsigned>(check::rank));
  OK(MPI_File_read_shared(again, in.data(), 50, MPI_BYTE, &status));
  MOVED(status, MPI_BYTE, 0);
}

// What a file cannot hold leaves the pointer where it was, also if it is all ranks' together.
void refused_amounts() {
  if (!check::is_macadam()) return; // others try it
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  const MPI_Count too_many = INT64_MAX - 50;
  char out[8] = "shared";
  MPI_Request request;
  MPI_Status status;
  OK(MPI_File_seek_shared(file, 100, MPI_SEEK_SET));
  if (check::rank == 0) {
    FAILS(MPI_ERR_ARG, MPI_File_write_shared_c(file, out, too_many, MPI_BYTE, &status));
    FAILS(MPI_ERR_ARG, MPI_File_iread_shared_c(file, out, too_many, MPI_BYTE, &request));
    CHECK_EQUAL(io::shared_position(file), 100);
  }
  const MPI_Count first = check::rank == 0 ? too_many : 1;
  FAILS(MPI_ERR_ARG, MPI_File_write_ordered_c(file, out, first, MPI_BYTE, &status));
  FAILS(MPI_ERR_ARG, MPI_File_write_ordered_begin_c(file, out, first, MPI_BYTE));
  if (check::size > 1)
    FAILS(MPI_ERR_ARG, MPI_File_write_ordered_c(file, out, INT64_MAX / 2 + 1, MPI_BYTE, &status));
  io::barrier();
  CHECK_EQUAL(io::shared_position(file), 100);
  io::barrier();
  OK(MPI_File_write_ordered(file, out, 2, MPI_BYTE, &status));
  io::barrier();
  CHECK_EQUAL(io::shared_position(file), 100 + 2 * check::size);
  CHECK_EQUAL(io::size_of(file), 100 + 2 * check::size);
  io::works(file);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"every_record_once", every_record_once},
                     {"in_the_order_of_ranks", in_the_order_of_ranks},
                     {"seeking", seeking},
                     {"nothing_and_the_end", nothing_and_the_end},
                     {"one_for_each_open", one_for_each_open},
                     {"sequential_files", sequential_files},
                     {"refused_amounts", refused_amounts}});
}
