// SPDX-License-Identifier: BSD-3-Clause
// Halo exchange: MPI_Neighbor_alltoall on a periodic grid of two and of three dimensions, with 8
// bytes, 1 KiB and 64 KiB for each neighbour, in microseconds. As in a program, all data are
// written before an exchange and read after it, which the times include.
//
//   halo                                        blocking, and persistent (start and wait)
//   halo overlap DIMENSIONS BYTES US ...        for each three: start, US microseconds of
//                                               computation, wait; printed as time over that which
//                                               a core needs for its ranks' computation alone
//
// The driver chooses US, about as long as the exchange takes, and the same for all libraries: what
// each one's own exchange takes would favour the slow.
#include "bench.h"

#include <numeric>
#include <string>

// Not every library has it.
extern "C" [[gnu::weak]] int MPI_Neighbor_alltoall_init(const void*, int, MPI_Datatype, void*, int,
                                                        MPI_Datatype, MPI_Comm, MPI_Info,
                                                        MPI_Request*);

namespace {

class Halo {
 public:
  Halo(int dimensions, int bytes)
      : dimensions_(dimensions), bytes_(bytes), send_(volume(), 1), receive_(volume(), 0) {
    int sizes[3] = {0, 0, 0};
    const int periodic[3] = {1, 1, 1};
    MPI_Dims_create(bench::size, dimensions, sizes);
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, sizes, periodic, 0, &grid_);
  }
  Halo(const Halo&) = delete;
  Halo& operator=(const Halo&) = delete;
  ~Halo() { MPI_Comm_free(&grid_); }

  void blocking() {
    report("blocking_us", 1e6 * bench::seconds_per_iteration([this](int n) {
                            for (int k = 0; k < n; ++k) {
                              write();
                              MPI_Neighbor_alltoall(send_.data(), bytes_, MPI_BYTE, receive_.data(),
                                                    bytes_, MPI_BYTE, grid_);
                              read();
                            }
                          }));
  }

  void persistent() {
    if (&MPI_Neighbor_alltoall_init == nullptr) return;
    MPI_Request request;
    MPI_Neighbor_alltoall_init(send_.data(), bytes_, MPI_BYTE, receive_.data(), bytes_, MPI_BYTE,
                               grid_, MPI_INFO_NULL, &request);
    report("persistent_us", 1e6 * bench::seconds_per_iteration([&](int n) {
                              for (int k = 0; k < n; ++k) {
                                write();
                                MPI_Start(&request);
                                MPI_Wait(&request, MPI_STATUS_IGNORE);
                                read();
                              }
                            }));
    MPI_Request_free(&request);
  }

  void overlapped(double us) {
    const long iterations = bench::iterations_for(us * 1e-6);
    const double seconds = bench::seconds_per_iteration([&](int n) {
      for (int k = 0; k < n; ++k) {
        MPI_Request request;
        write();
        MPI_Ineighbor_alltoall(send_.data(), bytes_, MPI_BYTE, receive_.data(), bytes_, MPI_BYTE,
                               grid_, &request);
        bench::spin(iterations);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        read();
      }
    });
    report("overlapped", seconds * 1e6 / (us * bench::ranks_per_core()));
  }

 private:
  using Word = unsigned long;
  [[nodiscard]] std::size_t volume() const { // in words
    return static_cast<std::size_t>(2 * dimensions_) * static_cast<std::size_t>(bytes_) /
           sizeof(Word);
  }
  void write() { std::fill(send_.begin(), send_.end(), sum_); }
  void read() { sum_ = std::accumulate(receive_.begin(), receive_.end(), sum_); }
  void report(const char* manner, double value) const {
    const std::string name =
        "halo_" + std::to_string(dimensions_) + "d_" + std::to_string(bytes_) + "_" + manner;
    bench::figure(name.c_str(), bench::size, value);
  }

  int dimensions_;
  int bytes_; // for each neighbour
  std::vector<Word> send_, receive_;
  Word sum_ = 1;
  MPI_Comm grid_ = MPI_COMM_NULL;
};

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "overlap") == 0) {
    for (int i = 2; i + 2 < argc; i += 3)
      Halo(std::atoi(argv[i]), std::atoi(argv[i + 1])).overlapped(std::atof(argv[i + 2]));
  } else {
    for (const int dimensions : {2, 3}) {
      for (const int bytes : {8, 1024, 65536}) {
        Halo halo(dimensions, bytes);
        halo.blocking();
        halo.persistent();
      }
    }
  }
  MPI_Finalize();
}
