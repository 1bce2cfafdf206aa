// SPDX-License-Identifier: BSD-3-Clause
// The experiments of Jiang et al. (section "Experimental Results"): epochs of post, start, complete
// and wait, and two-sided calls where the paper compares with them.
//
// Usage: experiments NAME [ROUNDS [LARGEST]]: of each measurement, and the largest message. Prints
// lines `figure parameter value`; times are microseconds, bandwidths bytes per microsecond.
//
// To compute is to sleep: over a network that is a part of the operating system (soft-RoCE), the
// only processor must be free for what is to overlap. In the simulator to sleep is to compute
// anyway.
#include "../bench.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/prctl.h>

namespace {

constexpr int warm_up = 2; // rounds: connected, registered

struct Options {
  int rounds = 20;
  int largest = 1 << 18;
};

// A window of every rank, and the groups of the experiments.
class Windows {
 public:
  explicit Windows(std::int64_t bytes) : memory_(static_cast<std::size_t>(bytes)) {
    MPI_Win_create(memory_.data(), bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    const int target = 0;
    MPI_Group_incl(world, 1, &target, &rank_0_);
    MPI_Group_excl(world, 1, &target, &others_);
    peer = bench::rank == 0 ? others_ : rank_0_;
    MPI_Group_free(&world);
  }
  Windows(const Windows&) = delete;
  Windows& operator=(const Windows&) = delete;
  ~Windows() {
    MPI_Group_free(&rank_0_);
    MPI_Group_free(&others_);
    MPI_Win_free(&win);
  }
  MPI_Win win = MPI_WIN_NULL;
  MPI_Group peer = MPI_GROUP_NULL; // rank 0's are all others, theirs is rank 0

 private:
  MPI_Group rank_0_ = MPI_GROUP_NULL, others_ = MPI_GROUP_NULL;
  std::vector<char> memory_;
};

// Microseconds for one round at rank 0: the median over each few rounds in a row, as the operating
// system's own work falls into some, and as a rank may be a round ahead of the other.
template <class Round>
double us_per_round(int rounds, Round&& round) {
  std::vector<double> ends; // of each round, and of the warm-up
  for (int i = -warm_up; i < rounds; ++i) {
    if (i == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      ends.push_back(MPI_Wtime());
    }
    round();
    if (i >= 0) ends.push_back(MPI_Wtime());
  }
  const auto few = static_cast<std::size_t>(std::min(rounds, 4));
  std::vector<double> times;
  for (std::size_t i = few; i < ends.size(); ++i)
    times.push_back((ends[i] - ends[i - few]) / static_cast<double>(few));
  return bench::median(times) * 1e6;
}

// The same for what only this rank does.
template <class Round>
double us_alone(int rounds, Round&& round) {
  std::vector<double> times;
  for (int i = -warm_up; i < rounds; ++i) {
    const double start = MPI_Wtime();
    round();
    if (i >= 0) times.push_back(MPI_Wtime() - start);
  }
  return bench::median(times) * 1e6;
}

void put_epoch(const Windows& windows, int to, const char* data, int bytes) {
  MPI_Win_start(windows.peer, 0, windows.win);
  MPI_Put(data, bytes, MPI_BYTE, to, 0, bytes, MPI_BYTE, windows.win);
  MPI_Win_complete(windows.win);
}
void exposure(const Windows& windows) {
  MPI_Win_post(windows.peer, 0, windows.win);
  MPI_Win_wait(windows.win);
}
void compute(int us) {
  if (us > 0) usleep(static_cast<useconds_t>(us));
}

// Ping-pong, and bi-directional.
void latency(const Options& options) {
  const int peer = 1 - bench::rank;
  for (int bytes = 1; bytes <= options.largest; bytes *= 4) {
    const Windows windows(bytes);
    std::vector<char> data(static_cast<std::size_t>(bytes)), in(data);
    const auto measure = [&](const char* name, int parts, auto&& round) {
      bench::figure(name, bytes, us_per_round(options.rounds, round) / parts);
    };
    measure("pingpong_us", 2, [&] {
      if (bench::rank == 0) put_epoch(windows, peer, data.data(), bytes);
      exposure(windows);
      if (bench::rank != 0) put_epoch(windows, peer, data.data(), bytes);
    });
    measure("bidirectional_us", 1, [&] {
      MPI_Win_post(windows.peer, 0, windows.win);
      put_epoch(windows, peer, data.data(), bytes);
      MPI_Win_wait(windows.win);
    });
    measure("two_sided_pingpong_us", 2, [&] {
      if (bench::rank == 0) MPI_Send(data.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(in.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (bench::rank != 0) MPI_Send(data.data(), bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
    });
    measure("two_sided_bidirectional_us", 1, [&] {
      MPI_Sendrecv(data.data(), bytes, MPI_BYTE, peer, 0, in.data(), bytes, MPI_BYTE, peer, 0,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
  }
}

// What an accumulate takes, of one element and of four: integers of 8 bytes by the network's
// atomics, of 4 under the lock. The target is inside MPI only to wait.
template <class Integer>
void atomics_of(const Options& options, MPI_Datatype type, const char* width) {
  constexpr int most = 4;
  Integer ours[most] = {1, 1, 1, 1}, old[most] = {}, compare = 0;
  Integer* memory = nullptr;
  MPI_Win win;
  MPI_Win_allocate(sizeof ours, sizeof(Integer), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  std::fill_n(memory, most, Integer{0});
  MPI_Barrier(MPI_COMM_WORLD);
  const auto measure = [&](const char* name, int count, auto&& operation) {
    const double us = bench::rank != 0 ? 0 : us_alone(options.rounds, operation);
    bench::figure((std::string(name) + width + "_us").c_str(), count, us);
  };
  if (bench::rank == 0) MPI_Win_lock_all(0, win);
  measure("fetch_and_add_", 1, [&] { MPI_Fetch_and_op(ours, old, type, 1, 0, MPI_SUM, win); });
  measure("fetch_", 1, [&] { MPI_Fetch_and_op(ours, old, type, 1, 0, MPI_NO_OP, win); });
  measure("fetch_and_replace_", 1,
          [&] { MPI_Fetch_and_op(ours, old, type, 1, 0, MPI_REPLACE, win); });
  measure("compare_and_swap_", 1,
          [&] { MPI_Compare_and_swap(ours, &compare, old, type, 1, 0, win); });
  for (const int count : {1, most})
    measure("accumulate_", count,
            [&] { MPI_Accumulate(ours, count, type, 1, 0, count, type, MPI_SUM, win); });
  if (bench::rank == 0) MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
}
void atomics(const Options& options) {
  atomics_of<std::int64_t>(options, MPI_INT64_T, "8");
  atomics_of<std::int32_t>(options, MPI_INT32_T, "4");
}

// Elements, pieces of `bytes` bytes each, with a gap as long as a piece behind each or without.
class Pieces {
 public:
  Pieces(int count, int bytes, bool apart) {
    MPI_Type_vector(count, bytes, apart ? 2 * bytes : bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() { MPI_Type_free(&type); }
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

// Puts and gets of 64 pieces, apart at the origin, at the target or at both, and, for comparison,
// nowhere; each with a flush. The target is inside MPI only to wait.
void strided(const Options& options) {
  constexpr int count = 64;
  constexpr int most = 16 << 10;
  for (int bytes = 8; bytes <= std::min(most, options.largest); bytes *= 2) {
    const std::int64_t room = std::int64_t{2} * count * bytes;
    const Windows windows(room);
    std::vector<char> data(static_cast<std::size_t>(room));
    if (bench::rank == 0) MPI_Win_lock_all(0, windows.win);
    for (const bool origin : {false, true}) {
      for (const bool target : {false, true}) {
        const Pieces ours(count, bytes, origin), theirs(count, bytes, target);
        const auto measure = [&](const std::string& name, auto&& operation) {
          const double us = bench::rank != 0 ? 0 : us_alone(options.rounds, [&] {
            operation(data.data(), 1, ours.type, 1, 0, 1, theirs.type, windows.win);
            MPI_Win_flush(1, windows.win);
          });
          const char* const apart = origin && target ? "_apart_both_us"
                                    : origin         ? "_apart_here_us"
                                    : target         ? "_apart_there_us"
                                                     : "_whole_us";
          bench::figure((name + apart).c_str(), bytes, us);
        };
        measure("put", MPI_Put);
        measure("get", MPI_Get);
      }
    }
    if (bench::rank == 0) MPI_Win_unlock_all(windows.win);
  }
}

// Fences around a put or get of a column: pieces that are contiguous at the origin, and at the
// target as far apart as the rows of a matrix of 2 KiB and more.
void columns(const Options& options) {
  constexpr int row = 2400;
  for (const int bytes : {8, 64, 128, 256, 1024}) {
    for (int count = 4; count * bytes <= options.largest; count *= 4) {
      const Windows windows(std::int64_t{count} * row);
      std::vector<char> data(static_cast<std::size_t>(count) * static_cast<std::size_t>(bytes));
      MPI_Datatype column;
      MPI_Type_vector(count, bytes, row, MPI_BYTE, &column);
      MPI_Type_commit(&column);
      const auto measure = [&](const std::string& name, auto&& operation) {
        const double us = us_per_round(options.rounds, [&] {
          MPI_Win_fence(0, windows.win);
          if (bench::rank == 0)
            operation(data.data(), count * bytes, MPI_BYTE, 1, 0, 1, column, windows.win);
          MPI_Win_fence(0, windows.win);
        });
        bench::figure((name + "_column_" + std::to_string(bytes) + "_us").c_str(), count, us);
      };
      measure("put", MPI_Put);
      measure("get", MPI_Get);
      MPI_Type_free(&column);
    }
  }
}

// Fences around sums of doubles, one and 64 of them, and around those that also ask for what was
// there.
void accumulates(const Options& options) {
  constexpr int many = 64;
  for (int bytes = 8; bytes <= options.largest; bytes *= 4) {
    const Windows windows(bytes);
    const int count = bytes / 8;
    const std::vector<double> data(static_cast<std::size_t>(count), 1.0);
    std::vector<double> old(data);
    const auto measure = [&](const char* name, int times, auto&& operation) {
      const double us = us_per_round(options.rounds, [&] {
        MPI_Win_fence(0, windows.win);
        if (bench::rank == 0)
          for (int i = 0; i < times; ++i)
            operation();
        MPI_Win_fence(0, windows.win);
      });
      bench::figure(name, bytes, us);
    };
    const auto add = [&] {
      MPI_Accumulate(data.data(), count, MPI_DOUBLE, 1, 0, count, MPI_DOUBLE, MPI_SUM, windows.win);
    };
    const auto get_and_add = [&] {
      MPI_Get_accumulate(data.data(), count, MPI_DOUBLE, old.data(), count, MPI_DOUBLE, 1, 0, count,
                         MPI_DOUBLE, MPI_SUM, windows.win);
    };
    measure("accumulate_us", 1, add);
    measure("accumulate_64_us", many, add);
    measure("get_accumulate_us", 1, get_and_add);
    measure("get_accumulate_64_us", many, get_and_add);
  }
}

// Windows of 64 puts or gets in an epoch; two-sided, of sends into receives that are posted, with a
// short answer to each window.
void bandwidth(const Options& options) {
  constexpr int window = 64;
  constexpr std::int64_t enough = 16 << 20; // bytes
  for (int bytes = 64; bytes <= options.largest; bytes *= 4) {
    const std::int64_t total = std::int64_t{bytes} * window;
    const Windows windows(total);
    std::vector<char> data(static_cast<std::size_t>(total));
    const auto rounds =
        static_cast<int>(std::min<std::int64_t>(options.rounds, enough / total + 1));
    const auto measure = [&](const char* name, auto&& round) {
      bench::figure(name, bytes, static_cast<double>(total) / us_per_round(rounds, round));
    };
    const auto epoch = [&](auto&& operation) {
      if (bench::rank == 1) return exposure(windows);
      MPI_Win_start(windows.peer, 0, windows.win);
      for (std::int64_t at = 0; at < total; at += bytes)
        operation(data.data() + at, at);
      MPI_Win_complete(windows.win);
    };
    measure("put_mb_per_s", [&] {
      epoch([&](char* here, MPI_Aint there) {
        MPI_Put(here, bytes, MPI_BYTE, 1, there, bytes, MPI_BYTE, windows.win);
      });
    });
    measure("get_mb_per_s", [&] {
      epoch([&](char* here, MPI_Aint there) {
        MPI_Get(here, bytes, MPI_BYTE, 1, there, bytes, MPI_BYTE, windows.win);
      });
    });
    measure("two_sided_mb_per_s", [&] {
      std::vector<MPI_Request> requests;
      for (std::int64_t at = 0; at < total; at += bytes) {
        requests.push_back(MPI_REQUEST_NULL);
        if (bench::rank == 0)
          MPI_Isend(data.data() + at, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests.back());
        else
          MPI_Irecv(data.data() + at, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests.back());
      }
      MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
      if (bench::rank == 0)
        MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else
        MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    });
  }
}

// Post, start, complete, wait with nothing between.
void synchronization(const Options& options) {
  const Windows windows(64);
  const double us = us_per_round(options.rounds, [&] {
    MPI_Win_post(windows.peer, 0, windows.win);
    MPI_Win_start(windows.peer, 0, windows.win);
    MPI_Win_complete(windows.win);
    MPI_Win_wait(windows.win);
  });
  bench::figure("epoch_us", 0, us);
}

constexpr int computed_us[] = {0, 50, 100, 200, 400, 800};
constexpr int long_message = 1 << 16;

// The origin computes between its put and its complete: how long a round takes; and how much of it
// is inside MPI_Put, as a network that is a part of the operating system may send in the caller's
// time.
void overlap(const Options& options) {
  const int bytes = std::min(long_message, options.largest);
  const Windows windows(bytes);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  for (const int us : computed_us) {
    std::vector<double> in_put;
    const double round = us_per_round(options.rounds, [&] {
      if (bench::rank == 1) return exposure(windows);
      MPI_Win_start(windows.peer, 0, windows.win);
      const double before = MPI_Wtime();
      MPI_Put(data.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, windows.win);
      in_put.push_back(MPI_Wtime() - before);
      compute(us);
      MPI_Win_complete(windows.win);
    });
    bench::figure("overlap_us", us, round);
    if (bench::rank == 0) bench::figure("overlap_in_put_us", us, bench::median(in_put) * 1e6);
  }
}

// The target computes between its post and its wait: how long the origin's epoch takes.
void skew(const Options& options) {
  const int bytes = std::min(long_message, options.largest);
  const Windows windows(bytes);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  for (const int us : computed_us) {
    std::vector<double> in_epochs;
    for (int i = -warm_up; i < options.rounds; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      if (bench::rank == 1) {
        MPI_Win_post(windows.peer, 0, windows.win);
        compute(us);
        MPI_Win_wait(windows.win);
        continue;
      }
      const double start = MPI_Wtime();
      MPI_Win_start(windows.peer, 0, windows.win);
      MPI_Get(data.data(), bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, windows.win);
      MPI_Win_complete(windows.win);
      if (i >= 0) in_epochs.push_back(MPI_Wtime() - start);
    }
    if (bench::rank == 0) bench::figure("skew_us", us, bench::median(in_epochs) * 1e6);
  }
}

// All other ranks put to rank 0 at once.
void origins(const Options& options) {
  constexpr int window = 16;
  const int bytes = std::min(long_message, options.largest);
  const Windows windows(std::int64_t{bytes} * bench::size);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  const double us = us_per_round(options.rounds, [&] {
    if (bench::rank == 0) return exposure(windows);
    MPI_Win_start(windows.peer, 0, windows.win);
    for (int i = 0; i < window; ++i)
      MPI_Put(data.data(), bytes, MPI_BYTE, 0, MPI_Aint{bytes} * bench::rank, bytes, MPI_BYTE,
              windows.win);
    MPI_Win_complete(windows.win);
  });
  bench::figure("origins_mb_per_s", bench::size - 1,
                static_cast<double>(bytes) * window * (bench::size - 1) / us);
}

struct Experiment {
  std::string_view name;
  void (*run)(const Options&);
  int ranks; // that it needs; 0: two or more
};
constexpr Experiment experiments[] = {{"latency", latency, 2},
                                      {"bandwidth", bandwidth, 2},
                                      {"synchronization", synchronization, 2},
                                      {"overlap", overlap, 2},
                                      {"skew", skew, 2},
                                      {"origins", origins, 0},
                                      {"atomics", atomics, 2},
                                      {"strided", strided, 2},
                                      {"columns", columns, 2},
                                      {"accumulates", accumulates, 2}};

const Experiment* find(std::string_view name) {
  for (const Experiment& each : experiments)
    if (each.name == name) return &each;
  return nullptr;
}

} // namespace

int main(int argc, char** argv) {
  // Not bound to cores as by bench::start: all of the simulator's ranks are one thread.
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &bench::rank);
  MPI_Comm_size(MPI_COMM_WORLD, &bench::size);
  const Experiment* const experiment = find(argc > 1 ? argv[1] : "");
  Options options;
  if (argc > 2) options.rounds = std::atoi(argv[2]);
  if (argc > 3) options.largest = std::atoi(argv[3]);
  const bool ranks_fit =
      experiment != nullptr &&
      (experiment->ranks == 0 ? bench::size > 1 : bench::size == experiment->ranks);
  if (!ranks_fit || options.rounds < 1 || options.largest < 1) {
    if (bench::rank == 0)
      std::fprintf(
          stderr,
          "experiments: found '%s' on %d ranks, %d rounds, largest message %d; needed "
          "latency, bandwidth, synchronization, overlap, skew, atomics, strided, columns or "
          "accumulates on 2 ranks, or origins on 2 or more; then, if not 20 and 262144, positive "
          "numbers of rounds and bytes\n",
          argc > 1 ? argv[1] : "", bench::size, options.rounds, options.largest);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  prctl(PR_SET_TIMERSLACK, 1); // sleeps end when they should
  MPI_Barrier(MPI_COMM_WORLD);
  compute(100000); // what the operating system has to do for new processes is over
  experiment->run(options);
  MPI_Finalize();
}
