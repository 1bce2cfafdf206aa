// SPDX-License-Identifier: BSD-3-Clause
// Partitioned communication beside computation: both ranks compute with two threads, as long for
// each of 16 partitions; rank 0 fills the partition of 1 MiB behind each step and marks it, rank 1
// receives, and reads all of it at the end. Prints the time from a barrier until both sides have
// ended, over that of the computation alone (full overlap): with partitioned communication into the
// program's own memory (`partitioned_overlap`) and into memory of MPI_Alloc_mem
// (`allocated_overlap`), with one ordinary send behind all (`send_after_overlap`), and without MPI:
// the threads copy each partition into a window of shared memory, where the receiver reads it
// (`by_hand_overlap`), which is the least that there is to do. Then the same with a receiver that
// does not compute, but waits from the beginning (`partitioned_waited` and its like); there the
// computation alone is that of rank 0 while rank 1 sleeps, outside of MPI, and what rank 1 takes to
// read comes to it. The parameter is the computation of a step, in microseconds.
//
//   partitioned US ...
#include "bench.h"

#include <unistd.h>

#include <atomic>
#include <numeric>
#include <thread>

// Not every library has it.
extern "C" [[gnu::weak]] int MPI_Psend_init(const void*, int, MPI_Count, MPI_Datatype, int, int,
                                            MPI_Comm, MPI_Info, MPI_Request*);

namespace {

constexpr int partitions = 16, threads = 2, bytes = (1 << 20) / partitions;
constexpr int rounds = 61;

// Fills all partitions with two threads, and calls ready(partition) after each.
template <class Ready>
void compute(std::vector<char>& data, long iterations, Ready ready) {
  const auto part = [&](int thread) {
    for (int i = thread; i < partitions; i += threads) {
      bench::spin(iterations);
      std::memset(data.data() + static_cast<std::ptrdiff_t>(i) * bytes, i + 1, bytes);
      ready(i);
    }
  };
  std::thread other(part, 1);
  part(0);
  other.join();
}

volatile unsigned long seen;
void read(const char* data) {
  const auto* words = reinterpret_cast<const unsigned long*>(data);
  seen = std::accumulate(words, words + partitions * bytes / sizeof *words, 0ul);
}

// Memory of rank 1 that both have: all partitions, and the round in which each was written.
class Window {
 public:
  Window() {
    MPI_Aint all = rank_of_memory == bench::rank ? flags_at + partitions * sizeof(unsigned) : 0;
    int unit = 0;
    MPI_Win_allocate_shared(all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory_, &window_);
    MPI_Win_shared_query(window_, rank_of_memory, &all, &unit, &memory_);
    if (bench::rank == rank_of_memory) std::memset(memory_, 0, static_cast<std::size_t>(all));
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() { MPI_Win_free(&window_); }

  void write(int partition, const char* data, unsigned round) {
    std::memcpy(memory_ + partition * bytes, data, bytes);
    flag(partition).store(round, std::memory_order_release);
  }
  const char* wait_for_all(unsigned round) {
    for (int i = 0; i < partitions; ++i) {
      while (flag(i).load(std::memory_order_acquire) != round)
        sched_yield();
    }
    return memory_;
  }

 private:
  static constexpr int rank_of_memory = 1, flags_at = partitions * bytes;
  std::atomic_ref<unsigned> flag(int partition) {
    return std::atomic_ref(reinterpret_cast<unsigned*>(memory_ + flags_at)[partition]);
  }

  char* memory_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

// All partitions, in memory of the library's choice.
class Allocated {
 public:
  Allocated() {
    MPI_Alloc_mem(partitions * bytes, MPI_INFO_NULL, &memory_);
    std::memset(memory_, 0, partitions * bytes);
  }
  Allocated(const Allocated&) = delete;
  Allocated& operator=(const Allocated&) = delete;
  ~Allocated() { MPI_Free_mem(memory_); }

  [[nodiscard]] char* data() const { return memory_; }

 private:
  char* memory_ = nullptr;
};

// The same data as partitioned sends of rank 0, received into `to` by rank 1.
class Sending {
 public:
  Sending(std::vector<char>& data, char* to, int tag) {
    if (bench::rank == 0)
      MPI_Psend_init(data.data(), partitions, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &request_);
    else
      MPI_Precv_init(to, partitions, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_INFO_NULL,
                     &request_);
  }
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;
  ~Sending() { MPI_Request_free(&request_); }

  void start() { MPI_Start(&request_); }
  void ready(int partition) {
    if (bench::rank == 0) MPI_Pready(partition, request_);
  }
  void wait() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_;
};

// Seconds of a round: the slower side's, from a barrier on.
template <class Round>
double time(Round round) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  round();
  double took = MPI_Wtime() - begin, slower = 0;
  MPI_Allreduce(&took, &slower, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slower;
}

// Seconds of the computation of rank 0 while rank 1 sleeps, and of reading.
template <class Round>
double time_beside_a_sleeper(double us, const char* data, Round round) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (bench::rank == 1) usleep(static_cast<useconds_t>(2 * us * partitions / threads + 2000));
  const double begin = MPI_Wtime();
  bench::rank == 0 ? round() : read(data);
  double took = MPI_Wtime() - begin, both = 0;
  MPI_Allreduce(&took, &both, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return both;
}

void measure(double us, bool receiver_computes) {
  const bool computes = bench::rank == 0 || receiver_computes;
  const long iterations = bench::iterations_for(us * 1e-6);
  std::vector<char> data(std::size_t{partitions} * bytes, 0), other(data);
  std::vector<char>& mine = bench::rank == 0 ? data : other; // what is received is not computed on
  const Allocated allocated;
  Sending into_own(data, data.data(), 1), into_allocated(data, allocated.data(), 3);
  Window window;
  // All in turn, so that what disturbs one disturbs the others.
  std::vector<double> alone, partitioned, into_memory, after, by_hand;
  const auto time_and_read = [](const char* received, auto round) {
    return time([&] {
      round();
      if (bench::rank == 1) read(received);
    });
  };
  const auto time_sending = [&](Sending& sending, const char* received) {
    return time_and_read(received, [&] {
      sending.start();
      if (computes) compute(mine, iterations, [&](int i) { sending.ready(i); });
      sending.wait();
    });
  };
  for (int round = 0; round < rounds; ++round) {
    const auto computation = [&] {
      if (computes) compute(mine, iterations, [](int) {});
    };
    alone.push_back(receiver_computes ? time_and_read(data.data(), computation)
                                      : time_beside_a_sleeper(us, data.data(), computation));
    partitioned.push_back(time_sending(into_own, data.data()));
    into_memory.push_back(time_sending(into_allocated, allocated.data()));
    after.push_back(time_and_read(data.data(), [&] {
      MPI_Request ordinary = MPI_REQUEST_NULL;
      if (bench::rank == 1)
        MPI_Irecv(data.data(), partitions * bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &ordinary);
      computation();
      if (bench::rank == 0)
        MPI_Isend(data.data(), partitions * bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &ordinary);
      MPI_Wait(&ordinary, MPI_STATUS_IGNORE);
    }));
    const auto number = static_cast<unsigned>(round + 1);
    by_hand.push_back(time([&] {
      if (computes)
        compute(mine, iterations, [&](int i) {
          if (bench::rank == 0) window.write(i, data.data() + i * bytes, number);
        });
      if (bench::rank == 1) read(window.wait_for_all(number));
    }));
  }
  const double full = bench::median(alone);
  const auto figure = [&](const char* name, const char* waited, double value) {
    bench::figure(receiver_computes ? name : waited, static_cast<long>(us), value / full);
  };
  figure("partitioned_overlap", "partitioned_waited", bench::median(partitioned));
  figure("allocated_overlap", "allocated_waited", bench::median(into_memory));
  figure("send_after_overlap", "send_after_waited", bench::median(after));
  figure("by_hand_overlap", "by_hand_waited", bench::median(by_hand));
}

} // namespace

int main(int argc, char** argv) {
  if (bench::start_threads(argc, argv) && &MPI_Psend_init != nullptr) {
    for (const bool receiver_computes : {true, false})
      for (int i = 1; i < argc; ++i)
        measure(std::atof(argv[i]), receiver_computes);
  }
  MPI_Finalize();
}
