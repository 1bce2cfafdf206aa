// SPDX-License-Identifier: BSD-3-Clause
// MPI programs in the simulator: whole jobs over the RDMA transport, in virtual time.
#include "devices.h"
#include "sim/world.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace macadam::test {
namespace {

using sim::Outcome;
using sim::Rank;
using sim::World;
using sim::WorldOptions;

WorldOptions options(int ranks, std::uint64_t seed = 1) {
  WorldOptions result;
  result.ranks = ranks;
  result.seed = seed;
  result.settings.emplace();
  return result;
}

// The same memory in every run: the registration cache works by pages, so where a buffer begins is
// a part of what a program does.
std::span<char> buffer_of(int rank, int which, int bytes) {
  constexpr std::size_t most = 256 << 10;
  alignas(4096) static std::array<char, 16 * most> memory;
  return {memory.data() + static_cast<std::size_t>(2 * rank + which) * most,
          static_cast<std::size_t>(bytes)};
}

// Everybody talks to everybody, in sizes of all protocols, and sums up. For up to 8 ranks.
int busy_program(int rank) {
  MPI_Init(nullptr, nullptr);
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (const int bytes : {8, 3000, 20000, 200000}) {
    for (int step = 1; step < size; ++step) {
      const int to = (rank + step) % size, from = (rank + size - step) % size;
      const auto out = buffer_of(rank, 0, bytes), in = buffer_of(rank, 1, bytes);
      std::fill(out.begin(), out.end(), static_cast<char>(rank + step));
      std::fill(in.begin(), in.end(), '\0');
      MPI_Sendrecv(out.data(), bytes, MPI_CHAR, to, 3, in.data(), bytes, MPI_CHAR, from, 3,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const char expected = static_cast<char>(from + step);
      EXPECT_TRUE(std::all_of(in.begin(), in.end(), [&](char c) { return c == expected; }));
    }
    long sum = 0, one = rank;
    MPI_Allreduce(&one, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT_EQ(sum, long{size} * (size - 1) / 2);
  }
  MPI_Finalize();
  return 0;
}

sim::Faults rough() {
  sim::Faults faults;
  faults.datagram_loss = 0.2;
  faults.datagram_duplication = 0.2;
  faults.datagram_reordering = 0.3;
  faults.jitter = 3;
  faults.progress_thread_jitter_ns = 20000;
  faults.split_writes = true;
  faults.shuffle = true;
  return faults;
}

Outcome run(WorldOptions of, const World::Program& program) {
  World world(std::move(of));
  return world.run(program);
}

TEST(World, runs_a_program_on_every_rank) {
  const Outcome outcome = run(options(5), busy_program);
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_GT(outcome.time, 0);
}

TEST(World, the_same_seed_gives_the_same_run_to_the_last_event) {
  const auto trace = [](std::uint64_t seed) {
    WorldOptions of = options(4, seed);
    of.faults = rough();
    const Outcome outcome = run(of, busy_program);
    EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
    return std::pair(outcome.trace, outcome.time);
  };
  for (const std::uint64_t seed : {1, 2, 3})
    EXPECT_EQ(trace(seed), trace(seed));
  EXPECT_NE(trace(1), trace(2));
}

class Modes : public testing::TestWithParam<std::pair<base::ReceiveMode, base::ConnectMode>> {};

TEST_P(Modes, work_under_faults) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    WorldOptions of = options(4, seed);
    of.faults = rough();
    of.settings->rdma_receive = GetParam().first;
    of.settings->rdma_connections = GetParam().second;
    const Outcome outcome = run(of, busy_program);
    EXPECT_EQ(outcome.end, Outcome::End::finished) << "seed " << seed << ": " << outcome.text;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Of_receiving_and_connecting, Modes,
    testing::Values(std::pair{base::ReceiveMode::shared, base::ConnectMode::on_demand},
                    std::pair{base::ReceiveMode::credit, base::ConnectMode::on_demand},
                    std::pair{base::ReceiveMode::ring, base::ConnectMode::on_demand},
                    std::pair{base::ReceiveMode::mixed, base::ConnectMode::on_demand},
                    std::pair{base::ReceiveMode::shared, base::ConnectMode::all},
                    std::pair{base::ReceiveMode::ring, base::ConnectMode::serial}));

TEST(World, ranks_share_no_mpi) {
  const Outcome outcome = run(options(2), [](int rank) {
    int flag = 1;
    MPI_Initialized(&flag);
    EXPECT_EQ(flag, 0);
    Rank::current()->compute(rank * 5'000 * sim::microsecond); // the other one is in MPI by then
    MPI_Initialized(&flag);
    EXPECT_EQ(flag, 0);
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, rank == 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ABORT);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Errhandler handler;
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &handler);
    EXPECT_EQ(handler, rank == 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ABORT);
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
}

TEST(World, time_is_virtual_and_computing_takes_it) {
  std::vector<double> times(2);
  run(options(2), [&](int rank) {
    MPI_Init(nullptr, nullptr);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (rank == 0) Rank::current()->compute(3600 * sim::Time{1'000'000} * sim::microsecond);
    MPI_Barrier(MPI_COMM_WORLD);
    times[static_cast<std::size_t>(rank)] = MPI_Wtime() - start;
    MPI_Finalize();
    return 0;
  });
  EXPECT_NEAR(times[0], 3600, 0.001); // no hang was reported either
  EXPECT_NEAR(times[1], 3600, 0.001);
}

TEST(World, a_slow_rank_computes_longer) {
  WorldOptions of = options(2);
  of.faults.slow_rank = 1;
  of.faults.slowness = 4;
  std::vector<sim::Time> times(2);
  run(of, [&](int rank) {
    const sim::Time start = Rank::current()->now();
    Rank::current()->compute(100);
    times[static_cast<std::size_t>(rank)] = Rank::current()->now() - start;
    return 0;
  });
  EXPECT_EQ(times, (std::vector<sim::Time>{100, 400}));
}

// Its progress thread answers who connects to it, though it looks nowhere but in its polls.
TEST(World, a_rank_with_neighbors_that_only_polls_can_be_connected_to) {
  WorldOptions of = options(4);
  of.ranks_per_node = 2;
  const Outcome outcome = run(std::move(of), [](int rank) {
    MPI_Init(nullptr, nullptr);
    int value = rank, flag = 0;
    if (rank == 3) MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Request request;
      MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request);
      for (int polls = 0; flag == 0 && polls < 100'000; ++polls)
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      EXPECT_EQ(flag, 1);
      if (flag == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_EQ(value, 3);
    }
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
}

TEST(World, a_deadlock_is_told_with_who_waits_for_whom) {
  const Outcome outcome = run(options(3), [](int rank) {
    MPI_Init(nullptr, nullptr);
    int value = 0;
    if (rank < 2) MPI_Recv(&value, 1, MPI_INT, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::hung);
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("rank 0 waits in MPI_Recv"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("rank 0 waits for rank 1: a message with tag 5"), std::string::npos)
      << outcome.text;
  EXPECT_NE(outcome.text.find("a circle"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("rank 2 waits in MPI_Finalize"), std::string::npos) << outcome.text;
}

TEST(World, abort_ends_the_job_with_its_code) {
  const Outcome outcome = run(options(3), [](int rank) {
    MPI_Init(nullptr, nullptr);
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::aborted);
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.text, "rank 1 called MPI_Abort(MPI_COMM_WORLD, 7)");
}

TEST(World, an_exit_code_is_the_jobs) {
  EXPECT_EQ(run(options(3), [](int rank) { return rank == 2 ? 3 : 0; }).exit_code, 3);
}

TEST(World, an_exception_out_of_a_program_ends_the_job) {
  const Outcome outcome = run(options(2), [](int rank) -> int {
    if (rank == 1) throw std::runtime_error("found nothing");
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::aborted);
  EXPECT_EQ(outcome.text, "rank 1 threw an exception: found nothing");
}

// Wu et al., section 3.5: a receive from any source opens no connection here, and all the same
// everybody gets in: a sender who must connect first while others already send is not put off until
// they end, and what each sends comes in order.
TEST(World, a_receive_from_any_source_is_open_to_all) {
  constexpr int senders = 7, each = 200;
  struct Message {
    int number;
  };
  World world(options(senders + 1));
  const Outcome outcome = world.run([&](int rank) {
    MPI_Init(nullptr, nullptr);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0) {
      Rank::current()->compute(rank * 100 * sim::microsecond);
      for (int i = 0; i < each; ++i) {
        const Message message{i};
        MPI_Send(&message, sizeof message, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        Rank::current()->compute(10 * sim::microsecond);
      }
    } else {
      const auto before = Rank::current()->transport()->connections();
      std::array<int, senders + 1> next{};
      for (int n = 0; n < senders * each; ++n) {
        Message message{};
        MPI_Status status;
        MPI_Request request;
        MPI_Irecv(&message, sizeof message, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
        if (n == 0) {
          EXPECT_EQ(Rank::current()->transport()->connections(), before);
        }
        MPI_Wait(&request, &status);
        EXPECT_EQ(message.number, next.at(static_cast<std::size_t>(status.MPI_SOURCE))++);
        if (message.number == each - 1) { // one has ended: all others have got in
          for (std::size_t from = 1; from <= senders; ++from)
            EXPECT_GT(next.at(from), 0) << from << ", when " << status.MPI_SOURCE << " has ended";
        }
      }
    }
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
}

// Wu et al., section 3: what is not talked to is not connected.
TEST(World, connections_are_those_that_were_used) {
  World world(options(8));
  std::vector<std::size_t> connections;
  world.run([&](int rank) {
    MPI_Init(nullptr, nullptr);
    char out = 0, in = 0;
    MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + 1) % 8, 0, &in, 1, MPI_CHAR, (rank + 7) % 8, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    connections.push_back(Rank::current()->transport()->connections());
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(connections, std::vector<std::size_t>(8, 2));
}

// A rank ends inside an epoch, without a word, while it holds a lock or owes a notification: who
// waits for it is told soon, though it has nothing to say to it. Without a launcher that ends the
// job.
TEST(World, who_waits_for_a_rank_that_has_ended_in_an_epoch_is_told) {
  enum class Wait { lock, lock_by_stranger, fence, start, wait };
  for (const Wait what :
       {Wait::lock, Wait::lock_by_stranger, Wait::fence, Wait::start, Wait::wait}) {
    int told = 0;
    double longest = 0;
    const Outcome outcome = run(options(3), [&](int rank) {
      MPI_Init(nullptr, nullptr);
      std::array<int, 4> memory{};
      const int value = rank;
      MPI_Win win = MPI_WIN_NULL;
      MPI_Win_create(memory.data(), sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
      MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
      MPI_Group world = MPI_GROUP_NULL, others = MPI_GROUP_NULL, gone = MPI_GROUP_NULL;
      const int last = 2;
      MPI_Comm_group(MPI_COMM_WORLD, &world);
      MPI_Group_excl(world, 1, &last, &others);
      MPI_Group_incl(world, 1, &last, &gone);
      if (what != Wait::lock_by_stranger) MPI_Win_fence(0, win); // else ranks 1 and 2 never met
      MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win);
      const bool ends = rank == last;
      if (ends && (what == Wait::lock || what == Wait::lock_by_stranger)) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Put(&value, 1, MPI_INT, 0, 2, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
      }
      if (ends) return 0; // no MPI_Finalize
      Rank::current()->compute(1000 * sim::microsecond);
      const double begin = MPI_Wtime();
      int code = MPI_SUCCESS;
      switch (what) {
      case Wait::lock:
      case Wait::lock_by_stranger:
        code = MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        break;
      case Wait::fence:
        code = MPI_Win_fence(0, win);
        if (code == MPI_SUCCESS) code = MPI_Win_fence(0, win);
        break;
      case Wait::start:
        MPI_Win_start(gone, 0, win);
        code = MPI_Win_complete(win);
        break;
      case Wait::wait:
        code = MPI_Win_post(gone, 0, win); // may have heard of it already
        if (code == MPI_SUCCESS) code = MPI_Win_wait(win);
        break;
      }
      int error_class = MPI_SUCCESS;
      if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
      EXPECT_EQ(error_class, MPI_ERR_PROC_ABORTED) << "rank " << rank;
      ++told;
      longest = std::max(longest, MPI_Wtime() - begin);
      return 0;
    });
    EXPECT_EQ(told, 2) << static_cast<int>(what) << ": " << outcome.text;
    EXPECT_LT(longest, 5) << static_cast<int>(what);
  }
}

// Pieces with gaps as long as they are, of a length for each way to move them: packed, in a gather
// list, each by itself.
class Strided {
 public:
  static constexpr int count = 40;
  static constexpr std::array<int, 4> lengths = {8, 100, 600, 20000};
  static constexpr std::size_t room = std::size_t{2} * count * lengths.back();

  Strided() {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      MPI_Type_vector(count, lengths[i], 2 * lengths[i], MPI_CHAR, &types[i]);
      MPI_Type_commit(&types[i]);
    }
    MPI_Win_create(memory.data(), room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  }
  // One of each at the other rank, which is to have all of ours. The first error.
  int access_all(std::size_t i, std::vector<char>& ours, std::vector<char>& back) {
    const int to = 1, bytes = count * lengths[i];
    int code = MPI_Put(ours.data(), 1, types[i], to, 0, bytes, MPI_CHAR, win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(to, win);
    if (code == MPI_SUCCESS) code = MPI_Get(back.data(), 1, types[i], to, 0, bytes, MPI_CHAR, win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(to, win);
    if (code == MPI_SUCCESS) code = MPI_Put(ours.data(), 1, types[i], to, 0, 1, types[i], win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(to, win);
    if (code == MPI_SUCCESS) code = MPI_Get(ours.data(), bytes, MPI_CHAR, to, 0, 1, types[i], win);
    if (code == MPI_SUCCESS) code = MPI_Win_flush(to, win);
    return code;
  }

  MPI_Win win = MPI_WIN_NULL;
  std::array<MPI_Datatype, lengths.size()> types{};
  std::vector<char> memory = std::vector<char>(room);
};

TEST(World, strided_puts_and_gets_leave_gaps_as_they_are) {
  WorldOptions rough_ones = options(2);
  rough_ones.faults = rough();
  const Outcome outcome = run(rough_ones, [&](int rank) {
    MPI_Init(nullptr, nullptr);
    Strided strided;
    if (rank == 0) {
      MPI_Win_lock_all(0, strided.win);
      for (std::size_t i = 0; i < Strided::lengths.size(); ++i) {
        const auto length = static_cast<std::size_t>(Strided::lengths[i]);
        const auto is_gap = [&](std::size_t at) { return at / length % 2 == 1; };
        std::vector<char> ours(Strided::room), back(Strided::room, 'b');
        for (std::size_t at = 0; at < ours.size(); ++at)
          ours[at] = static_cast<char>('A' + at % 59);
        EXPECT_EQ(strided.access_all(i, ours, back), MPI_SUCCESS);
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < 2 * Strided::count * length; ++at)
          wrong += back[at] != (is_gap(at) ? 'b' : static_cast<char>('A' + at % 59));
        for (std::size_t at = 0; at < Strided::count * length; ++at) // now those of every second
          wrong +=
              ours[at] != static_cast<char>('A' + (at / length * 2 * length + at % length) % 59);
        EXPECT_EQ(wrong, 0u) << length;
      }
      MPI_Win_unlock_all(strided.win);
    }
    MPI_Win_free(&strided.win);
    MPI_Finalize();
    return 0;
  });
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
}

// What is packed and under way when the target ends is given back, and the origin is told.
TEST(World, strided_puts_and_gets_end_with_their_target) {
  for (int step = 0; step < 30 && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    bool told = false;
    const Outcome outcome = run(options(2), [&](int rank) {
      MPI_Init(nullptr, nullptr);
      Strided strided;
      MPI_Win_fence(0, strided.win);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, strided.win);
      if (rank == 1) {
        Rank::current()->kill_at(Rank::current()->now() + step * 7 * sim::microsecond);
        MPI_Barrier(MPI_COMM_WORLD);
        return 0;
      }
      MPI_Win_lock_all(0, strided.win);
      std::vector<char> ours(Strided::room, 'o'), back(Strided::room);
      int code = MPI_SUCCESS;
      for (int round = 0; round < 1000 && code == MPI_SUCCESS; ++round)
        code = strided.access_all(static_cast<std::size_t>(round) % 3, ours, back);
      int error_class = MPI_SUCCESS;
      if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
      EXPECT_EQ(error_class, MPI_ERR_PROC_ABORTED);
      told = true;
      return 0;
    });
    EXPECT_TRUE(told) << outcome.text;
  }
}

} // namespace
} // namespace macadam::test
