// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations of rank 0 on memory of rank 1, which waits in a barrier: put and get of 8
// bytes with a flush, fetch-and-op of both ranks on one word, lock and unlock, an empty fence and
// an empty post-start-complete-wait, and the bandwidth of puts of each size given in bytes. Beside
// them what the processor needs for the same: its atomic on the same word, memcpy to the same
// memory.
#include "bench.h"

#include <atomic>
#include <cstdint>

namespace {

constexpr MPI_Aint room = 8 << 20;

struct Shared {
  explicit Shared(bool by_allocate_shared) {
    if (by_allocate_shared) {
      void* own = nullptr;
      int unit = 1;
      MPI_Aint bytes = 0;
      MPI_Win_allocate_shared(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
      MPI_Win_shared_query(win, 1, &bytes, &unit, &base);
    } else {
      MPI_Win_allocate(room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
      std::memset(base, 1, room);
    }
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Shared() {
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  MPI_Win win = MPI_WIN_NULL;
  void* base = nullptr;
};

template <class Call>
double by_rank_0(Call call) {
  return bench::seconds_per_iteration([&](int n) {
    for (int k = 0; bench::rank == 0 && k < n; ++k)
      call();
  });
}

void small(MPI_Win win) {
  std::uint64_t word = 1, old = 0;
  const auto us = [](const char* name, double seconds) { bench::figure(name, 8, seconds * 1e6); };
  us("put_flush_us", by_rank_0([&] {
       MPI_Put(&word, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
       MPI_Win_flush(1, win);
     }));
  us("get_flush_us", by_rank_0([&] {
       MPI_Get(&old, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
       MPI_Win_flush(1, win);
     }));
  us("fetch_and_op_us", bench::seconds_per_iteration([&](int n) {
       for (int k = 0; k < n; ++k) {
         MPI_Fetch_and_op(&word, &old, MPI_UINT64_T, 1, 64, MPI_SUM, win);
         MPI_Win_flush(1, win);
       }
     }));
}

void epochs() {
  void* base = nullptr;
  MPI_Win win;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  bench::figure("lock_unlock_us", 0, by_rank_0([&] {
                                       MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
                                       MPI_Win_unlock(1, win);
                                     }) * 1e6);
  bench::figure("fence_us", 0, bench::seconds_per_iteration([&](int n) {
                                 for (int k = 0; k < n; ++k)
                                   MPI_Win_fence(0, win);
                               }) * 1e6);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Group world, other;
  const int peer = 1 - bench::rank;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &peer, &other);
  bench::figure("post_wait_us", 0, bench::seconds_per_iteration([&](int n) {
                                     for (int k = 0; k < n; ++k) {
                                       MPI_Win_post(other, 0, win);
                                       MPI_Win_start(other, 0, win);
                                       MPI_Win_complete(win);
                                       MPI_Win_wait(win);
                                     }
                                   }) * 1e6);
  MPI_Group_free(&other);
  MPI_Group_free(&world);
  MPI_Win_free(&win);
}

double gigabytes(int bytes, double seconds) {
  return bytes / seconds * 1e-9;
}

} // namespace

int main(int argc, char** argv) {
  bench::start(argc, argv);
  if (bench::size != 2) {
    if (bench::rank == 0) std::fprintf(stderr, "onesided: found %d ranks, needed 2\n", bench::size);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  std::vector<char> data(room, 2);
  {
    const Shared allocated(false);
    small(allocated.win);
    for (int i = 1; i < argc; ++i) {
      const int bytes = std::atoi(argv[i]);
      bench::figure("put_gb", bytes, gigabytes(bytes, by_rank_0([&] {
                                                 MPI_Put(data.data(), bytes, MPI_BYTE, 1, 0, bytes,
                                                         MPI_BYTE, allocated.win);
                                                 MPI_Win_flush(1, allocated.win);
                                               })));
    }
  }
  epochs();
  {
    const Shared mapped(true);
    auto* const memory = static_cast<char*>(mapped.base);
    std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(memory + 64));
    bench::figure("atomic_us", 8, bench::seconds_per_iteration([&](int n) {
                                    for (int k = 0; k < n; ++k)
                                      word.fetch_add(1);
                                  }) * 1e6);
    for (int i = 1; i < argc; ++i) {
      const int bytes = std::atoi(argv[i]);
      bench::figure("memcpy_gb", bytes, gigabytes(bytes, by_rank_0([&] {
                                                    std::memcpy(memory, data.data(),
                                                                static_cast<std::size_t>(bytes));
                                                    asm volatile("" ::"r"(memory) : "memory");
                                                  })));
    }
  }
  MPI_Finalize();
}
