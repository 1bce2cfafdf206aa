// SPDX-License-Identifier: BSD-3-Clause
// Jobs that start others, meet and part, over a simulated network.
#include "sim/world.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

using sim::Outcome;
using sim::World;
using sim::WorldOptions;
using Arguments = std::vector<std::string>;

WorldOptions smooth(int ranks, std::uint64_t seed = 1) {
  WorldOptions options;
  options.ranks = ranks;
  options.seed = seed;
  options.settings.emplace();
  return options;
}

WorldOptions rough(int ranks, std::uint64_t seed) {
  WorldOptions options = smooth(ranks, seed);
  options.faults.datagram_loss = 0.2;
  options.faults.datagram_duplication = 0.2;
  options.faults.datagram_reordering = 0.3;
  options.faults.jitter = 3;
  options.faults.progress_thread_jitter_ns = 20000;
  options.faults.split_writes = true;
  options.faults.shuffle = true;
  return options;
}

void expect_finished(const Outcome& outcome) {
  EXPECT_EQ(outcome.end, Outcome::End::finished) << outcome.text;
  EXPECT_EQ(outcome.exit_code, 0);
}

int class_of(int code) {
  int its = MPI_SUCCESS;
  MPI_Error_class(code, &its);
  return its;
}

int size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}
int rank_of(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}
int remote_size_of(MPI_Comm comm) {
  int size = 0;
  MPI_Comm_remote_size(comm, &size);
  return size;
}

// All of both groups hear from all: by messages, and by a collective.
void talk(MPI_Comm inter) {
  const int remote = remote_size_of(inter), mine = rank_of(inter);
  std::vector<int> from(static_cast<std::size_t>(remote), -1);
  std::vector<MPI_Request> requests;
  for (int other = 0; other < remote; ++other) {
    MPI_Irecv(&from[static_cast<std::size_t>(other)], 1, MPI_INT, other, 5, inter,
              &requests.emplace_back());
    MPI_Isend(&mine, 1, MPI_INT, other, 5, inter, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (int other = 0; other < remote; ++other)
    EXPECT_EQ(from[static_cast<std::size_t>(other)], other);
  int sum = 0, one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, inter);
  EXPECT_EQ(sum, remote);
}

MPI_Comm spawn(const char* program, int count, MPI_Comm comm, Arguments arguments = {}) {
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  MPI_Comm inter = MPI_COMM_NULL;
  std::vector<int> codes(static_cast<std::size_t>(count), -1);
  MPI_Comm_spawn(program, argv.data(), count, MPI_INFO_NULL, 0, comm, &inter, codes.data());
  EXPECT_EQ(codes, std::vector<int>(static_cast<std::size_t>(count), MPI_SUCCESS));
  return inter;
}

MPI_Comm parent() {
  MPI_Comm found = MPI_COMM_NULL;
  MPI_Comm_get_parent(&found);
  return found;
}

int child(int rank, const Arguments&) {
  MPI_Init(nullptr, nullptr);
  MPI_Comm up = parent();
  EXPECT_NE(up, MPI_COMM_NULL);
  EXPECT_EQ(rank_of(MPI_COMM_WORLD), rank);
  talk(up);
  MPI_Comm_disconnect(&up);
  EXPECT_EQ(parent(), MPI_COMM_NULL);
  MPI_Finalize();
  return 0;
}

TEST(Spawn, makes_an_intercommunicator_of_parents_and_children) {
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldOptions options = rough(3, seed);
    options.programs["child"] = child;
    expect_finished(World(options).run([](int) {
      MPI_Init(nullptr, nullptr);
      EXPECT_EQ(parent(), MPI_COMM_NULL);
      MPI_Comm down = spawn("child", 4, MPI_COMM_WORLD);
      EXPECT_EQ(remote_size_of(down), 4);
      talk(down);
      MPI_Comm_disconnect(&down);
      MPI_Finalize();
      return 0;
    }));
  }
}

// Without MPI_Comm_disconnect, MPI_Finalize waits for all that are connected.
TEST(Spawn, ends_by_finalize_of_all) {
  WorldOptions options = rough(2, 1);
  options.programs["child"] = [](int, const Arguments&) {
    MPI_Init(nullptr, nullptr);
    talk(parent());
    MPI_Finalize();
    return 0;
  };
  expect_finished(World(options).run([](int) {
    MPI_Init(nullptr, nullptr);
    talk(spawn("child", 3, MPI_COMM_WORLD));
    MPI_Finalize();
    return 0;
  }));
}

TEST(Spawn, refuses_at_all_ranks_what_cannot_be_started) {
  WorldOptions options = smooth(2);
  options.room = 5;
  options.programs["child"] = child;
  expect_finished(World(options).run([](int) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm inter = MPI_COMM_NULL;
    int* size = nullptr;
    int flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, static_cast<void*>(&size), &flag);
    EXPECT_TRUE(flag != 0 && *size == 5);
    for (const char* program : {"nothing", "child"})
      EXPECT_EQ(class_of(MPI_Comm_spawn(program, MPI_ARGV_NULL, 4, MPI_INFO_NULL, 1, MPI_COMM_WORLD,
                                        &inter, MPI_ERRCODES_IGNORE)),
                MPI_ERR_SPAWN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "soft", "1:9:2,8");
    std::vector<int> codes(8, -1);
    EXPECT_EQ(
        MPI_Comm_spawn("child", MPI_ARGV_NULL, 8, info, 1, MPI_COMM_WORLD, &inter, codes.data()),
        MPI_SUCCESS);
    EXPECT_EQ(remote_size_of(inter), 3);
    EXPECT_EQ(std::ranges::count(codes, MPI_ERR_SPAWN), 5);
    talk(inter);
    MPI_Comm_disconnect(&inter);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
  }));
}

TEST(Spawn, starts_several_programs_as_one_job) {
  WorldOptions options = smooth(2);
  const auto program = [](int app) {
    return [app](int rank, const Arguments& arguments) {
      int* number = nullptr;
      int flag = 0;
      MPI_Init(nullptr, nullptr);
      MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, static_cast<void*>(&number), &flag);
      EXPECT_TRUE(flag != 0 && *number == app);
      EXPECT_EQ(size_of(MPI_COMM_WORLD), 5);
      EXPECT_EQ(rank < 2, app == 0);
      EXPECT_EQ(arguments, app == 0 ? Arguments({"x", "y"}) : Arguments());
      talk(parent());
      MPI_Finalize();
      return 0;
    };
  };
  options.programs["one"] = program(0);
  options.programs["two"] = program(1);
  expect_finished(World(options).run([](int rank) {
    MPI_Init(nullptr, nullptr);
    std::string names[] = {"one", "two", "x", "y"};
    char* commands[] = {names[0].data(), names[1].data()};
    char* first[] = {names[2].data(), names[3].data(), nullptr};
    char** arguments[] = {first, MPI_ARGV_NULL};
    const int counts[] = {2, 3};
    const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    const bool root = rank == 1;
    MPI_Comm inter = MPI_COMM_NULL;
    std::vector<int> codes(5, -1);
    MPI_Comm_spawn_multiple(root ? 2 : -1, root ? commands : nullptr, root ? arguments : nullptr,
                            root ? counts : nullptr, root ? infos : nullptr, 1, MPI_COMM_WORLD,
                            &inter, codes.data());
    EXPECT_EQ(codes, std::vector<int>(5, MPI_SUCCESS));
    EXPECT_EQ(remote_size_of(inter), 5);
    talk(inter);
    MPI_Finalize();
    return 0;
  }));
}

} // namespace
} // namespace macadam::test
