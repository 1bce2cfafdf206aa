// SPDX-License-Identifier: BSD-3-Clause
// Files, which all ranks have open: contiguous reads and writes at offsets, each rank in a part of
// its own (`file_write_gb`, `file_read_gb`, by bytes of an access); a view in which the ranks take
// turns with blocks, collectively (`file_write_all_gb`, `file_read_all_gb`, by bytes of a block)
// and alone (`file_write_strided_gb`, `file_read_strided_gb`); records of 1 KiB at the shared
// pointer
// (`file_shared_us`, by ranks); opening and closing (`file_open_us`); and 16 MiB written while the
// rank computes as long as that takes, over the computation alone (`file_overlap`). GB/s are of all
// ranks together. What is read and written stays in the system's cache.
//
//   files FOLDER
#include "bench.h"

#include <string>

namespace {

constexpr MPI_Offset part = 8 << 20; // of a rank
constexpr int times = 11;            // a file takes milliseconds
std::vector<char> data(part);

MPI_File open(const std::string& path, int mode = MPI_MODE_CREATE | MPI_MODE_RDWR) {
  MPI_File file = MPI_FILE_NULL;
  if (MPI_File_open(MPI_COMM_WORLD, path.c_str(), mode, MPI_INFO_NULL, &file) != MPI_SUCCESS) {
    std::fprintf(stderr, "files: %s cannot be opened\n", path.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return file;
}

double rate(double seconds) {
  return static_cast<double>(part) * bench::size / seconds * 1e-9;
}

template <class Body>
double seconds(Body body) {
  return bench::seconds_per_iteration(
      [&](int n) {
        for (int i = 0; i < n; ++i)
          body();
      },
      times, 100e-3);
}

void contiguous(MPI_File file, int bytes) {
  const MPI_Offset first = part * bench::rank;
  bench::figure("file_write_gb", bytes, rate(seconds([&] {
                  for (MPI_Offset at = 0; at < part; at += bytes)
                    MPI_File_write_at(file, first + at, &data[static_cast<std::size_t>(at)], bytes,
                                      MPI_BYTE, MPI_STATUS_IGNORE);
                })));
  bench::figure("file_read_gb", bytes, rate(seconds([&] {
                  for (MPI_Offset at = 0; at < part; at += bytes)
                    MPI_File_read_at(file, first + at, &data[static_cast<std::size_t>(at)], bytes,
                                     MPI_BYTE, MPI_STATUS_IGNORE);
                })));
}

void in_turns(MPI_File file, int bytes) {
  MPI_Datatype block, turns;
  MPI_Type_contiguous(bytes, MPI_BYTE, &block);
  MPI_Type_create_resized(block, 0, MPI_Aint{bytes} * bench::size, &turns);
  MPI_Type_commit(&turns);
  MPI_File_set_view(file, MPI_Offset{bytes} * bench::rank, MPI_BYTE, turns, "native",
                    MPI_INFO_NULL);
  bench::figure("file_write_all_gb", bytes, rate(seconds([&] {
                  MPI_File_write_at_all(file, 0, data.data(), part, MPI_BYTE, MPI_STATUS_IGNORE);
                })));
  bench::figure("file_read_all_gb", bytes, rate(seconds([&] {
                  MPI_File_read_at_all(file, 0, data.data(), part, MPI_BYTE, MPI_STATUS_IGNORE);
                })));
  bench::figure("file_write_strided_gb", bytes, rate(seconds([&] {
                  MPI_File_write_at(file, 0, data.data(), part, MPI_BYTE, MPI_STATUS_IGNORE);
                })));
  bench::figure("file_read_strided_gb", bytes, rate(seconds([&] {
                  MPI_File_read_at(file, 0, data.data(), part, MPI_BYTE, MPI_STATUS_IGNORE);
                })));
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_Type_free(&turns);
  MPI_Type_free(&block);
}

void shared(MPI_File file) {
  constexpr int records = 100;
  const double each = seconds([&] {
    for (int i = 0; i < records; ++i)
      MPI_File_write_shared(file, data.data(), 1024, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  });
  bench::figure("file_shared_us", bench::size, each / records * 1e6);
}

void overlap(MPI_File file) {
  std::vector<char> long_data(2 * part);
  const MPI_Offset first = 2 * part * bench::rank;
  const auto count = static_cast<int>(long_data.size());
  const double alone = seconds([&] {
    MPI_File_write_at(file, first, long_data.data(), count, MPI_BYTE, MPI_STATUS_IGNORE);
  });
  const long iterations = bench::iterations_for(alone);
  const double computed = seconds([&] { bench::spin(iterations); });
  const double both = seconds([&] {
    MPI_Request request;
    MPI_File_iwrite_at(file, first, long_data.data(), count, MPI_BYTE, &request);
    bench::spin(iterations);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  bench::figure("file_overlap", bench::size, both / computed);
}

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  const std::string path = std::string(argc > 1 ? argv[1] : "/tmp") + "/macadam_bench_file";
  std::memset(data.data(), bench::rank + 1, data.size());
  bench::figure("file_open_us", bench::size, seconds([&] {
                                               MPI_File file = open(path);
                                               MPI_File_close(&file);
                                             }) * 1e6);
  MPI_File file = open(path);
  for (const int bytes : {512, 8 << 10, 1 << 20})
    contiguous(file, bytes);
  for (const int bytes : {64, 4 << 10, 256 << 10})
    in_turns(file, bytes);
  shared(file);
  overlap(file);
  MPI_File_close(&file);
  if (bench::rank == 0) MPI_File_delete(path.c_str(), MPI_INFO_NULL);
  MPI_Finalize();
}
