// SPDX-License-Identifier: BSD-3-Clause
// MPI_THREAD_MULTIPLE: threads of each rank use the same file, and files of their own, at once.
#include "threads.h"
#include "io/file.h"

namespace {

using check::in_threads;
using check::threads;
using io::Bytes;
using io::File;
using io::Folder;
using io::Type;

constexpr int record = 2000;

std::uint64_t seed(int rank, int thread, int round) {
  return static_cast<std::uint64_t>(10000 * rank + 100 * thread + round);
}

Bytes records(int rounds) {
  Bytes all;
  for (int rank = 0; rank < check::size; ++rank)
    for (int t = 0; t < threads; ++t)
      for (int i = 0; i < rounds; ++i) {
        const Bytes one = check::message(record, seed(rank, t, i));
        all.insert(all.end(), one.begin(), one.end());
      }
  return all;
}

// Explicit offsets, blocking and not.
void one_handle() {
  Folder folder;
  const std::string path = folder("file");
  const int rounds = check::times(50, 5);
  File file(MPI_COMM_WORLD, path, io::new_file);
  in_threads([&](int t) {
    for (int i = 0; i < rounds; ++i) {
      const Bytes out = check::message(record, seed(check::rank, t, i));
      const MPI_Offset place = MPI_Offset{record} * (rounds * (threads * check::rank + t) + i);
      Bytes in(record);
      MPI_Status status;
      if ((i + t) % 2 == 0) {
        OK(MPI_File_write_at(file, place, out.data(), record, MPI_BYTE, &status));
      } else {
        MPI_Request request;
        OK(MPI_File_iwrite_at(file, place, out.data(), record, MPI_BYTE, &request));
        OK(MPI_Wait(&request, &status));
      }
      MOVED(status, MPI_BYTE, record);
      OK(MPI_File_read_at(file, place, in.data(), record, MPI_BYTE, &status));
      MOVED(status, MPI_BYTE, record);
      CHECK(in == out);
    }
  });
  file.close();
  FILE_HOLDS(path, records(rounds));
}

// The pointers of one handle give every place once.
void one_pointer() {
  Folder folder;
  const std::string path = folder("file");
  const int rounds = check::times(50, 5);
  for (const bool shared : {false, true}) {
    MPI_Comm comm = shared ? MPI_COMM_WORLD : MPI_COMM_SELF;
    const std::string name = shared ? path : folder("own", check::rank);
    File file(comm, name, io::new_file);
    in_threads([&](int t) {
      for (int i = 0; i < rounds; ++i) {
        const std::vector<int> out(100, threads * i + t);
        OK(shared ? MPI_File_write_shared(file, out.data(), 100, MPI_INT, MPI_STATUS_IGNORE)
                  : MPI_File_write(file, out.data(), 100, MPI_INT, MPI_STATUS_IGNORE));
      }
    });
    const int writers = shared ? check::size : 1;
    file.close();
    OK(MPI_Barrier(comm));
    const Bytes data = io::contents(name);
    CHECK_EQUAL(data.size(), static_cast<std::size_t>(400 * threads * rounds * writers));
    std::vector<int> found(data.size() / 4), seen(static_cast<std::size_t>(threads * rounds));
    std::memcpy(found.data(), data.data(), data.size());
    for (std::size_t i = 0; i < found.size(); i += 100) {
      for (std::size_t k = 1; k < 100; ++k)
        CHECK_EQUAL(found[i + k], found[i]);
      ++seen.at(static_cast<std::size_t>(found[i]));
    }
    for (const int count : seen)
      CHECK_EQUAL(count, writers);
    OK(MPI_Barrier(comm));
  }
}

// Each thread opens, sets views and writes collectively with the same thread of other ranks.
void a_handle_each() {
  if (check::size > 1 && !check::is_macadam()) return; // MPICH 5.0 lets one thread in, which waits
  Folder folder;
  std::vector<MPI_Comm> comms(threads);
  std::vector<std::string> paths;
  for (int t = 0; t < threads; ++t) {
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[static_cast<std::size_t>(t)]));
    paths.push_back(folder("file", t));
  }
  in_threads([&](int t) {
    const auto own = static_cast<std::size_t>(t);
    for (int round = 0; round < check::times(10, 2); ++round) {
      const File file(comms[own], paths[own], io::new_file);
      const Type strided(io::every(check::size, MPI_INT));
      std::vector<int> out, in(300);
      for (int i = 0; i < 300; ++i)
        out.push_back(100000 * t + 1000 * round + i + 10 * check::rank);
      io::set_view(file, 4 * check::rank, MPI_INT, strided);
      OK(MPI_File_write_all(file, out.data(), 300, MPI_INT, MPI_STATUS_IGNORE));
      io::settle(file, comms[own]);
      io::set_view(file, 4 * io::right(), MPI_INT, strided);
      MPI_Status status;
      OK(MPI_File_read_all(file, in.data(), 300, MPI_INT, &status));
      MOVED(status, MPI_INT, 300);
      for (std::size_t i = 0; i < in.size(); ++i)
        CHECK_EQUAL(in[i], out[i] + 10 * (io::right() - check::rank));
    }
  });
  for (MPI_Comm& comm : comms)
    OK(MPI_Comm_free(&comm));
}

// Types of the file are made for each access.
void conversions() {
  Folder folder;
  std::vector<std::string> paths;
  for (int t = 0; t < threads; ++t)
    paths.push_back(folder("file", threads * check::rank + t));
  in_threads([&](int t) {
    const File file(MPI_COMM_SELF, paths[static_cast<std::size_t>(t)], io::new_file);
    const Type four(io::contiguous(4, MPI_INT));
    io::set_view(file, 0, MPI_INT, MPI_INT, "external32");
    for (int i = 0; i < check::times(2000, 100); ++i) {
      const std::vector<int> out(4, threads * i + t);
      std::vector<int> in(4);
      OK(MPI_File_write_at(file, 4 * i, out.data(), 1, four, MPI_STATUS_IGNORE));
      OK(MPI_File_read_at(file, 4 * i, in.data(), 1, four, MPI_STATUS_IGNORE));
      CHECK(in == out);
    }
  });
}

// While a thread waits for a message that another sends after it has written.
void beside_messages() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  in_threads([&](int t) {
    for (int i = 0; i < check::times(50, 5); ++i) {
      const Bytes out = check::message(record, seed(check::rank, t, i));
      const MPI_Offset place = MPI_Offset{record} * (threads * check::rank + t);
      if (t % 2 == 0) {
        MPI_Request request;
        OK(MPI_File_iwrite_at(file, place, out.data(), record, MPI_BYTE, &request));
        OK(MPI_Send(&i, 1, MPI_INT, io::right(), t, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      } else {
        int got = -1;
        OK(MPI_Recv(&got, 1, MPI_INT, io::left(), t - 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_EQUAL(got, i);
        OK(MPI_File_write_at(file, place, out.data(), record, MPI_BYTE, MPI_STATUS_IGNORE));
      }
    }
  });
}

// In atomic mode each write of pieces is there as a whole, also beside those of other threads by
// the same handle.
void atomic_writes() {
  Folder folder;
  const File file(MPI_COMM_WORLD, folder("file"), io::new_file);
  const int pieces = 200;
  const Type with_holes(io::vector(pieces, 64, 128, MPI_BYTE));
  io::set_view(file, 0, MPI_BYTE, with_holes);
  OK(MPI_File_set_atomicity(file, 1));
  in_threads([&](int t) {
    for (int i = 0; i < check::times(50, 5); ++i) {
      const Bytes out(64 * pieces, static_cast<unsigned char>(threads * check::rank + t + 1));
      MPI_Request request;
      if ((i + t) % 2 == 0) {
        OK(MPI_File_write_at(file, 0, out.data(), 64 * pieces, MPI_BYTE, MPI_STATUS_IGNORE));
      } else {
        OK(MPI_File_iwrite_at(file, 0, out.data(), 64 * pieces, MPI_BYTE, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
      }
      Bytes in(64 * pieces);
      OK(MPI_File_read_at(file, 0, in.data(), 64 * pieces, MPI_BYTE, MPI_STATUS_IGNORE));
      CHECK(std::ranges::count(in, in.front()) == 64 * pieces);
    }
  });
}

} // namespace

int main(int argc, char** argv) {
  check::start_with_threads(argc, argv);
  return check::run_parts(argc, argv,
                          {{"one_handle", one_handle},
                           {"one_pointer", one_pointer},
                           {"a_handle_each", a_handle_each},
                           {"conversions", conversions},
                           {"beside_messages", beside_messages},
                           {"atomic_writes", atomic_writes}});
}
