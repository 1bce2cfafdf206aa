// SPDX-License-Identifier: BSD-3-Clause
// What users measure first: every power of two from 1 byte to 4 MiB, from the smallest up, with a
// warm-up of a tenth of the iterations, ranks wherever the system and the library's defaults put
// them, and data that nobody touches. Mean times, as users print them.
//
//   users ITERATIONS LONGEST [touch] WHAT ...     LONGEST: of the sizes, in bytes
//
// After `touch` each rank writes what it gives before each repetition of a collective, and reads
// what it got after it, which the times include.
//
// WHAT: latency (half round trip), bandwidth, both_ways (windows of 64), pairs (message rate of
// half the ranks to the other half), barrier, bcast, reduce, allreduce, allgather, alltoall,
// reduce_scatter, gather, scatter (bytes of a rank's part, floats where they are added); put, get,
// accumulate, get_accumulate, fetch_and_op, compare_and_swap (each with a flush, memory of
// MPI_Win_allocate; 8 bytes of the last two); fence_put, fence_get, fence_accumulate,
// fence_get_accumulate (a fence behind each, memory of MPI_Win_create); bcast_and_barrier,
// scatter_and_barrier: with the barrier, which decides how long ranks that share cores wait for
// their root afterwards. Messages of more than 8 KiB are repeated as much less often as they are
// longer, but at least ten times.
#include "bench.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>

namespace {

using bench::rank;
using bench::size;

constexpr int window = 64;
constexpr int often_up_to = 8 << 10;

// One repetition, of messages of so many bytes.
using Body = std::function<void(int bytes)>;

struct What {
  Body body;
  std::size_t send_parts, receive_parts; // of the buffers, each as long as a message
  std::optional<int> only_size = {};     // bytes; else every power of two
  bool of_floats = false;
  bool waits = true;    // a barrier between the repetitions, which is not measured
  bool exposes = false; // a window
  bool fences = false;  // a window of MPI_Win_create; else one is allocated, and locked for all
  // What is printed: of the mean microseconds of a repetition and the bytes.
  std::function<double(double us, int bytes)> value = [](double us, int) { return us; };
};

std::vector<char> out, in;
bool touches = false;
MPI_Win exposed = MPI_WIN_NULL;

void turn(int bytes) {
  const int other = 1 - rank;
  if (rank == 0) MPI_Send(out.data(), bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  MPI_Recv(in.data(), bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out.data(), bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
}

// A window of messages to `to` and another from `from`, or MPI_PROC_NULL; an answer ends it.
void windows(int to, int from, int bytes) {
  MPI_Request requests[2 * window];
  for (int i = 0; i < window; ++i)
    MPI_Irecv(in.data(), bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < window; ++i)
    MPI_Isend(out.data(), bytes, MPI_BYTE, to, 1, MPI_COMM_WORLD, &requests[window + i]);
  MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
  MPI_Sendrecv(nullptr, 0, MPI_BYTE, from, 2, nullptr, 0, MPI_BYTE, to, 2, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

double megabytes_each_second(double us, int bytes) {
  return window * static_cast<double>(bytes) / us;
}

// Rank 0 calls, on the memory of rank 1, and flushes; or between fences of all.
void add_one_sided(std::map<std::string, What>& what) {
  const auto add = [&](const std::string& name, auto call, bool of_floats,
                       std::optional<int> only_size = {}) {
    const What made{.body =
                        [=](int n) {
                          if (rank != 0) return;
                          call(n);
                          MPI_Win_flush(1, exposed);
                        },
                    .send_parts = 1,
                    .receive_parts = 1,
                    .only_size = only_size,
                    .of_floats = of_floats,
                    .waits = false,
                    .exposes = true};
    what[name] = made;
    if (only_size) return;
    What& fenced = what["fence_" + name] = made;
    fenced.fences = true;
    fenced.body = [=](int n) {
      if (rank == 0) call(n);
      MPI_Win_fence(0, exposed);
    };
  };
  const auto put = [](int n) { MPI_Put(out.data(), n, MPI_BYTE, 1, 0, n, MPI_BYTE, exposed); };
  const auto get = [](int n) { MPI_Get(in.data(), n, MPI_BYTE, 1, 0, n, MPI_BYTE, exposed); };
  const auto accumulate = [](int n) {
    MPI_Accumulate(out.data(), n / 4, MPI_FLOAT, 1, 0, n / 4, MPI_FLOAT, MPI_SUM, exposed);
  };
  const auto get_accumulate = [](int n) {
    MPI_Get_accumulate(out.data(), n / 4, MPI_FLOAT, in.data(), n / 4, MPI_FLOAT, 1, 0, n / 4,
                       MPI_FLOAT, MPI_SUM, exposed);
  };
  const auto fetch_and_op = [](int) {
    MPI_Fetch_and_op(out.data(), in.data(), MPI_INT64_T, 1, 0, MPI_SUM, exposed);
  };
  const auto compare_and_swap = [](int) {
    MPI_Compare_and_swap(out.data(), out.data(), in.data(), MPI_INT64_T, 1, 0, exposed);
  };
  add("put", put, false);
  add("get", get, false);
  add("accumulate", accumulate, true);
  add("get_accumulate", get_accumulate, true);
  add("fetch_and_op", fetch_and_op, false, 8);
  add("compare_and_swap", compare_and_swap, false, 8);
}

std::map<std::string, What> table() {
  const auto all = static_cast<std::size_t>(size);
  const int half = size / 2;
  const int twin = size % 2 != 0 && rank == size - 1 ? MPI_PROC_NULL : (rank + half) % (2 * half);
  const bool gives = rank < half;
  std::map<std::string, What> what;
  what["latency"] = {.body = turn,
                     .send_parts = 1,
                     .receive_parts = 1,
                     .waits = false,
                     .value = [](double us, int) { return us / 2; }};
  what["bandwidth"] = {.body =
                           [](int bytes) {
                             windows(rank == 0 ? 1 : MPI_PROC_NULL, rank == 1 ? 0 : MPI_PROC_NULL,
                                     bytes);
                           },
                       .send_parts = 1,
                       .receive_parts = 1,
                       .waits = false,
                       .value = megabytes_each_second};
  what["both_ways"] = {
      .body = [](int bytes) { windows(1 - rank, 1 - rank, bytes); },
      .send_parts = 1,
      .receive_parts = 1,
      .waits = false,
      .value = [](double us, int bytes) { return 2 * megabytes_each_second(us, bytes); }};
  what["pairs"] = {.body =
                       [=](int bytes) {
                         windows(gives ? twin : MPI_PROC_NULL, gives ? MPI_PROC_NULL : twin, bytes);
                       },
                   .send_parts = 1,
                   .receive_parts = 1,
                   .waits = false,
                   .value = [=](double us, int) { return half * window / us; }};
  what["barrier"] = {.body = [](int) { MPI_Barrier(MPI_COMM_WORLD); },
                     .send_parts = 0,
                     .receive_parts = 0,
                     .only_size = 0};
  what["bcast"] = {.body = [](int n) { MPI_Bcast(out.data(), n, MPI_BYTE, 0, MPI_COMM_WORLD); },
                   .send_parts = 1,
                   .receive_parts = 0};
  what["reduce"] = {.body =
                        [](int n) {
                          MPI_Reduce(out.data(), in.data(), n / 4, MPI_FLOAT, MPI_SUM, 0,
                                     MPI_COMM_WORLD);
                        },
                    .send_parts = 1,
                    .receive_parts = 1,
                    .of_floats = true};
  what["allreduce"] = {.body =
                           [](int n) {
                             MPI_Allreduce(out.data(), in.data(), n / 4, MPI_FLOAT, MPI_SUM,
                                           MPI_COMM_WORLD);
                           },
                       .send_parts = 1,
                       .receive_parts = 1,
                       .of_floats = true};
  what["reduce_scatter"] = {.body =
                                [](int n) {
                                  MPI_Reduce_scatter_block(out.data(), in.data(), n / 4, MPI_FLOAT,
                                                           MPI_SUM, MPI_COMM_WORLD);
                                },
                            .send_parts = all,
                            .receive_parts = 1,
                            .of_floats = true};
  what["allgather"] = {.body =
                           [](int n) {
                             MPI_Allgather(out.data(), n, MPI_BYTE, in.data(), n, MPI_BYTE,
                                           MPI_COMM_WORLD);
                           },
                       .send_parts = 1,
                       .receive_parts = all};
  what["alltoall"] = {.body =
                          [](int n) {
                            MPI_Alltoall(out.data(), n, MPI_BYTE, in.data(), n, MPI_BYTE,
                                         MPI_COMM_WORLD);
                          },
                      .send_parts = all,
                      .receive_parts = all};
  what["gather"] = {.body =
                        [](int n) {
                          MPI_Gather(out.data(), n, MPI_BYTE, in.data(), n, MPI_BYTE, 0,
                                     MPI_COMM_WORLD);
                        },
                    .send_parts = 1,
                    .receive_parts = all};
  what["scatter"] = {.body =
                         [](int n) {
                           MPI_Scatter(out.data(), n, MPI_BYTE, in.data(), n, MPI_BYTE, 0,
                                       MPI_COMM_WORLD);
                         },
                     .send_parts = all,
                     .receive_parts = 1};
  for (const char* const rooted : {"bcast", "scatter"}) {
    What both = what[rooted];
    both.body = [body = both.body](int n) {
      body(n);
      MPI_Barrier(MPI_COMM_WORLD);
    };
    both.waits = false;
    what[std::string(rooted) + "_and_barrier"] = both;
  }
  add_one_sided(what);
  return what;
}

// What was read last is written next, so that no compiler leaves the reading out.
char seen = 0;

void write_all(std::size_t bytes) {
  std::fill_n(out.begin(), bytes, ++seen);
}
void read_all(const std::vector<char>& data, std::size_t bytes) {
  seen = std::accumulate(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes), char{0},
                         std::bit_xor<char>{});
}

// Microseconds of one repetition, on average over repetitions; and over ranks, where they wait for
// each other between two.
double mean_us(const What& what, int bytes, int repetitions) {
  double seconds = 0;
  const auto repeat = [&](int n) {
    seconds = 0;
    if (!what.waits) {
      const double begin = MPI_Wtime();
      for (int i = 0; i < n; ++i)
        what.body(bytes);
      seconds = MPI_Wtime() - begin;
      return;
    }
    for (int i = 0; i < n; ++i) {
      const double begin = MPI_Wtime();
      if (touches) write_all(what.send_parts * static_cast<std::size_t>(bytes));
      what.body(bytes);
      if (touches && what.receive_parts == 0)
        read_all(out, static_cast<std::size_t>(bytes));
      else if (touches)
        read_all(in, what.receive_parts * static_cast<std::size_t>(bytes));
      seconds += MPI_Wtime() - begin;
      MPI_Barrier(MPI_COMM_WORLD);
    }
  };
  repeat(repetitions / 10 + 1);
  MPI_Barrier(MPI_COMM_WORLD);
  repeat(repetitions);
  double all = 0;
  MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, what.waits ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
  // The slowest: a put's target does nothing, and of pairs that share cores one may go first.
  const double of_all = what.waits ? all / size : all;
  return of_all / repetitions * 1e6;
}

// For the one-sided ones, and what it exposes.
class Exposed {
 public:
  Exposed(bool fences, int bytes) : fences_(fences) {
    void* memory = nullptr;
    if (fences_) {
      memory_.assign(static_cast<std::size_t>(bytes), 0);
      MPI_Win_create(memory_.data(), bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed);
      MPI_Win_fence(0, exposed);
    } else {
      MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &exposed);
      MPI_Win_lock_all(0, exposed);
    }
  }
  Exposed(const Exposed&) = delete;
  Exposed& operator=(const Exposed&) = delete;
  ~Exposed() {
    if (!fences_) MPI_Win_unlock_all(exposed);
    MPI_Win_free(&exposed);
  }

 private:
  const bool fences_;
  std::vector<char> memory_;
};

void measure(const char* name, const What& what, int iterations, int longest) {
  const auto room = static_cast<std::size_t>(longest);
  out.assign(what.send_parts * room + 8, 1);
  in.assign(what.receive_parts * room + 8, 0);
  std::optional<Exposed> memory;
  if (what.exposes) memory.emplace(what.fences, std::max(longest, 8));
  for (int bytes = what.of_floats ? 4 : 1; bytes <= longest; bytes *= 2) {
    const int fewer = bytes > often_up_to ? bytes / often_up_to : 1;
    const double us = mean_us(what, bytes, std::max(10, iterations / fewer));
    const std::string figure = std::string("users_") + name;
    bench::figure(figure.c_str(), what.only_size.value_or(bytes), what.value(us, bytes));
    if (what.only_size) break;
  }
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 4 || size < 2) {
    if (rank == 0)
      std::fprintf(stderr,
                   "usage: users ITERATIONS LONGEST [touch] WHAT ..., on 2 ranks or more\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  const auto known = table();
  touches = std::strcmp(argv[3], "touch") == 0;
  for (int i = touches ? 4 : 3; i < argc; ++i) {
    const auto found = known.find(argv[i]);
    if (found == known.end() || (touches && !found->second.waits)) {
      if (rank == 0)
        std::fprintf(stderr, "users: found '%s', which is nothing that it measures%s\n", argv[i],
                     touches ? " with data that are touched" : "");
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    measure(argv[i], found->second, std::atoi(argv[1]), std::atoi(argv[2]));
  }
  MPI_Finalize();
}
