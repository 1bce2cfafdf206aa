// SPDX-License-Identifier: BSD-3-Clause
// Collective reading and writing of arrays that are cut into parts among the ranks, compared with
// the whole file as a plain loop makes it.
#include "io/file.h"

#include <array>
#include <numeric>

namespace {

using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

// How ranks help each other, for what is opened next.
MPI_Info hints = MPI_INFO_NULL;

// An array of ints, row by row, dealt out along each dimension in blocks of so many elements in
// turn to so many ranks.
struct Dealt {
  std::vector<int> sizes, blocks, ranks;

  [[nodiscard]] int elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
  }
  [[nodiscard]] int owner(int index) const {
    int rank = 0, scale = 1;
    for (std::size_t d = sizes.size(); d-- > 0; index /= sizes[d]) {
      rank += scale * (index % sizes[d] / blocks[d] % ranks[d]);
      scale *= ranks[d];
    }
    return rank;
  }
  [[nodiscard]] std::vector<int> part(int rank) const {
    std::vector<int> all;
    for (int i = 0; i < elements(); ++i)
      if (owner(i) == rank) all.push_back(i);
    return all;
  }
  [[nodiscard]] MPI_Datatype filetype(int rank) const {
    MPI_Datatype made;
    const std::vector<int> kinds(sizes.size(), MPI_DISTRIBUTE_CYCLIC);
    OK(MPI_Type_create_darray(check::size, rank, static_cast<int>(sizes.size()), sizes.data(),
                              kinds.data(), blocks.data(), ranks.data(), MPI_ORDER_C, MPI_INT,
                              &made));
    return made;
  }
};

std::vector<int> grid(int dimensions) {
  std::vector<int> ranks(static_cast<std::size_t>(dimensions));
  OK(MPI_Dims_create(check::size, dimensions, ranks.data()));
  return ranks;
}

int value_of(int index, int round) {
  return 7 * index + round;
}

Bytes file_of(int elements, int round) {
  std::vector<int> all;
  for (int i = 0; i < elements; ++i)
    all.push_back(value_of(i, round));
  const auto* const begin = reinterpret_cast<const unsigned char*>(all.data());
  return {begin, begin + 4 * all.size()};
}

void write_and_read(Folder& folder, const Dealt& dealt, MPI_Offset disp) {
  const std::string path = folder("array");
  MPI_Status status;
  const auto moved = [&](std::size_t count) {
    MOVED(status, MPI_INT, static_cast<MPI_Count>(count));
  };
  File file(MPI_COMM_WORLD, path, io::new_file, hints);
  for (int round = 0; round < 2; ++round) {
    // Writes the own part ...
    const std::vector<int> mine = dealt.part(check::rank);
    std::vector<int> out;
    for (const int index : mine)
      out.push_back(value_of(index, round));
    const Type own(dealt.filetype(check::rank));
    io::set_view(file, disp, MPI_INT, own);
    const int count = static_cast<int>(out.size());
    OK(round == 0 ? MPI_File_write_all(file, out.data(), count, MPI_INT, &status)
                  : MPI_File_write_at_all(file, 0, out.data(), count, MPI_INT, &status));
    moved(out.size());
    CHECK_EQUAL(io::position(file), round == 0 ? count : 0);
    io::settle(file);
    // ... and reads that of the next rank, together and alone.
    const std::vector<int> theirs = dealt.part(io::right());
    const Type other(dealt.filetype(io::right()));
    io::set_view(file, disp, MPI_INT, other);
    for (int way = 0; way < 3; ++way) {
      std::vector<int> in(theirs.size() + 1, -1);
      const int wanted = static_cast<int>(theirs.size());
      OK(way == 0   ? MPI_File_read_all(file, in.data(), wanted, MPI_INT, &status)
         : way == 1 ? MPI_File_read_at_all(file, 0, in.data(), wanted, MPI_INT, &status)
                    : MPI_File_read_at(file, 0, in.data(), wanted, MPI_INT, &status));
      moved(theirs.size());
      for (std::size_t i = 0; i < theirs.size(); ++i)
        CHECK_EQUAL(in[i], value_of(theirs[i], round));
      CHECK_EQUAL(in.back(), -1);
    }
    io::settle(file);
  }
  file.close();
  Bytes expected(static_cast<std::size_t>(disp)), found;
  io::barrier();
  if (check::rank == 0) {
    found = io::contents(path);
    std::fill_n(found.begin(), disp, static_cast<unsigned char>(0)); // nobody has written there
    const Bytes array = file_of(dealt.elements(), 1);
    expected.insert(expected.end(), array.begin(), array.end());
    SAME_BYTES(found, expected);
    OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
  }
  io::barrier();
}

void dealt_out_arrays() {
  Folder folder;
  for (const int block : {1, 3, 64})
    write_and_read(folder, {{1000}, {block}, grid(1)}, 0);
  write_and_read(folder, {{40, 30}, {1, 30}, {check::size, 1}}, 8);
  write_and_read(folder, {{40, 30}, {40, 1}, {1, check::size}}, 0);
  write_and_read(folder, {{41, 37}, {3, 2}, grid(2)}, 3);
  write_and_read(folder, {{9, 10, 11}, {2, 1, 3}, grid(3)}, 0);
  write_and_read(folder, {{8, 8, 8}, {4, 4, 4}, grid(3)}, 100);
  write_and_read(folder, {{1}, {1}, grid(1)}, 0); // rank 0 has the only element
  write_and_read(folder, {{2, 2}, {2, 2}, grid(2)}, 5);
}

void some_megabytes() {
  Folder folder;
  const int n = check::times(1024, 128);
  write_and_read(folder, {{n, n}, {n / 8, 16}, grid(2)}, 0);
  write_and_read(folder, {{n * n}, {5000}, grid(1)}, 1);
  write_and_read(folder, {{n / 16, 64, 128}, {4, 8, 16}, grid(3)}, 0);
}

// Blocks of a matrix with a border in memory: holes on both sides.
void borders_in_memory() {
  Folder folder;
  const std::string path = folder("matrix");
  const std::vector<int> ranks = grid(2);
  const int rows = 13, columns = 9, wide = columns + 3;
  const auto place = [&](int rank) { return std::array{rank / ranks[1], rank % ranks[1]}; };
  const std::vector<int> sizes = {rows * ranks[0], columns * ranks[1]};
  const auto block = [&](int rank) {
    return io::subarray(sizes, {rows, columns}, {rows * place(rank)[0], columns * place(rank)[1]},
                        MPI_INT);
  };
  const auto value = [&](int rank, int i, int j) {
    return value_of((rows * place(rank)[0] + i) * sizes[1] + columns * place(rank)[1] + j, 3);
  };
  const Type inner(io::subarray({rows + 2, wide}, {rows, columns}, {1, 2}, MPI_INT));
  const auto local = [](int i, int j) { return static_cast<std::size_t>((i + 1) * wide + j + 2); };
  std::vector<int> out(static_cast<std::size_t>((rows + 2) * wide), -5), in = out, expected = out;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      out[local(i, j)] = value(check::rank, i, j);
      expected[local(i, j)] = value(io::right(), i, j);
    }
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file, hints);
  const Type own(block(check::rank)), other(block(io::right()));
  io::set_view(file, 0, MPI_INT, own);
  OK(MPI_File_write_all(file, out.data(), 1, inner, &status));
  MOVED(status, inner, 1);
  io::settle(file);
  io::set_view(file, 0, MPI_INT, other);
  OK(MPI_File_read_all(file, in.data(), 1, inner, &status));
  MOVED(status, inner, 1);
  CHECK(in == expected);
  file.close();
  FILE_HOLDS(path, file_of(sizes[0] * sizes[1], 3));
}

// Rank r writes so many bytes at the end of what those before it write; some of them none.
void unequal_amounts() {
  Folder folder;
  const std::string path = folder("file");
  for (int round = 0; round < 6; ++round) {
    const int unit = round < 5 ? 1 << (4 * round) : 12345;
    const auto amount = [&](int rank) { return (rank + round) % 3 * unit; };
    std::vector<int> begin = {0};
    for (int rank = 0; rank < check::size; ++rank)
      begin.push_back(begin.back() + amount(rank));
    const Bytes all = check::message(static_cast<std::size_t>(begin.back()), 20);
    const int first = begin[static_cast<std::size_t>(check::rank)], mine = amount(check::rank);
    MPI_Status status;
    File file(MPI_COMM_WORLD, path, io::new_file, hints);
    OK(MPI_File_write_at_all_c(file, first, all.data() + first, mine, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, mine);
    io::settle(file);
    // Everybody reads everything, and asks for more than there is.
    Bytes in(all.size() + 10, 0xee);
    OK(MPI_File_read_at_all_c(file, 0, in.data(), begin.back() + 10, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, begin.back());
    UNTOUCHED(in.data() + all.size(), 10, 0xee);
    in.resize(all.size());
    SAME_BYTES(in, all);
    // Each a part of its own, some behind the end.
    Bytes part(100, 0xee);
    const MPI_Offset from = std::max(0, begin.back() - 10 * check::rank);
    const MPI_Count there = std::min<MPI_Count>(begin.back() - from, 100);
    OK(MPI_File_seek(file, from + (check::rank == 0 ? 50 : 0), MPI_SEEK_SET));
    OK(MPI_File_read_all_c(file, part.data(), 100, MPI_BYTE, &status));
    MOVED(status, MPI_BYTE, check::rank == 0 ? 0 : there);
    file.close();
    FILE_HOLDS(path, all);
    if (check::rank == 0) OK(MPI_File_delete(path.c_str(), MPI_INFO_NULL));
    io::barrier();
  }
}

void nobody_has_anything() {
  Folder folder;
  MPI_Status status;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  OK(MPI_File_write_all(file, nullptr, 0, MPI_INT, &status));
  MOVED(status, MPI_INT, 0);
  OK(MPI_File_read_at_all(file, 7, nullptr, 0, MPI_INT, &status));
  MOVED(status, MPI_INT, 0);
  CHECK_EQUAL(io::size_of(file), 0);
}

// What lies between the parts that a collective write has is not touched.
void holes_stay() {
  Folder folder;
  const std::string path = folder("file");
  const int stride = 3 * check::size + 2, count = check::times(2000, 200);
  Bytes expected = check::message(static_cast<std::size_t>(stride * count + 50), 30);
  if (check::rank == 0) io::store(path, expected);
  io::barrier();
  File file(MPI_COMM_WORLD, path, MPI_MODE_RDWR, hints);
  const Type every(io::vector(count, 2, stride, MPI_BYTE));
  io::set_view(file, 10 + 3 * check::rank, MPI_BYTE, every);
  const auto value = [](int rank, int i) { return static_cast<unsigned char>(17 * rank + i); };
  Bytes out;
  for (int i = 0; i < 2 * count; ++i)
    out.push_back(value(check::rank, i));
  OK(MPI_File_write_all(file, out.data(), 2 * count, MPI_BYTE, MPI_STATUS_IGNORE));
  file.close();
  for (int rank = 0; rank < check::size; ++rank)
    for (int i = 0; i < 2 * count; ++i)
      expected[static_cast<std::size_t>(10 + 3 * rank + i / 2 * stride + i % 2)] = value(rank, i);
  FILE_HOLDS(path, expected);
}

// A filetype of a column, whose copies lie between each other: each rank moves one of them.
void copies_between_each_other() {
  Folder folder;
  const std::string path = folder("file");
  const int rows = check::times(60000, 30000); // more than aggregators share on a boundary
  const Type strided(io::vector(rows, 1, check::size, MPI_INT));
  const Type column(io::resized(strided, 0, 4));
  const auto value = [](int column_number, int i) {
    return value_of(i * check::size + column_number, 4);
  };
  std::vector<int> out, in(static_cast<std::size_t>(rows), -1), expected;
  for (int i = 0; i < rows; ++i) {
    out.push_back(value(check::rank, i));
    expected.push_back(value(io::right(), i));
  }
  MPI_Status status;
  File file(MPI_COMM_WORLD, path, io::new_file, hints);
  io::set_view(file, 0, MPI_INT, column);
  const auto place = [&](int rank) { return MPI_Offset{rows} * rank; };
  OK(MPI_File_write_at_all(file, place(check::rank), out.data(), rows, MPI_INT, &status));
  MOVED(status, MPI_INT, rows);
  io::settle(file);
  OK(MPI_File_read_at_all(file, place(io::right()), in.data(), rows, MPI_INT, &status));
  MOVED(status, MPI_INT, rows);
  CHECK(in == expected);
  file.close();
  FILE_HOLDS(path, file_of(rows * check::size, 4));
}

// All of it by so many aggregators in windows of the least size, or by nobody but the rank itself.
void with_hints(const char* buffering, int aggregators) {
  OK(MPI_Info_create(&hints));
  OK(MPI_Info_set(hints, "collective_buffering", buffering));
  OK(MPI_Info_set(hints, "cb_buffer_size", "65536"));
  OK(MPI_Info_set(hints, "cb_nodes", std::to_string(aggregators).c_str()));
  dealt_out_arrays();
  some_megabytes();
  borders_in_memory();
  unequal_amounts();
  nobody_has_anything();
  holes_stay();
  copies_between_each_other();
  OK(MPI_Info_free(&hints));
}
void all_help() {
  with_hints("true", check::size);
}
void one_helps() {
  with_hints("true", 1);
}
void nobody_helps() {
  with_hints("false", 1);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv,
                    {{"dealt_out_arrays", dealt_out_arrays},
                     {"some_megabytes", some_megabytes},
                     {"borders_in_memory", borders_in_memory},
                     {"unequal_amounts", unequal_amounts},
                     {"nobody_has_anything", nobody_has_anything},
                     {"holes_stay", holes_stay},
                     {"copies_between_each_other", copies_between_each_other},
                     {"all_help", all_help},
                     {"one_helps", one_helps},
                     {"nobody_helps", nobody_helps}});
}
