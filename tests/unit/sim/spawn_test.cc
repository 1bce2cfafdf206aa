// SPDX-License-Identifier: BSD-3-Clause
// Jobs that start others, over a simulated network.
#include "jobs.h"

#include <algorithm>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

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

int child(int rank, const Arguments& arguments) {
  MPI_Init(nullptr, nullptr);
  MPI_Comm up = parent();
  EXPECT_NE(up, MPI_COMM_NULL);
  EXPECT_EQ(rank_of(MPI_COMM_WORLD), rank);
  for (int left = arguments.empty() ? 1 : std::stoi(arguments[0]); left > 0; --left)
    talk(up);
  MPI_Comm_disconnect(&up);
  EXPECT_EQ(parent(), MPI_COMM_NULL);
  MPI_Finalize();
  return 0;
}

void talk_to_new_children() {
  MPI_Comm down = spawn("child", 2, MPI_COMM_WORLD);
  talk(down);
  MPI_Comm_disconnect(&down);
}

TEST(Spawn, makes_an_intercommunicator_of_parents_and_children) {
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldOptions options = rough(3, seed);
    options.find_program = programs({{"child", child}});
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
  const auto leave = [](int, const Arguments&) {
    MPI_Init(nullptr, nullptr);
    talk(parent());
    MPI_Finalize();
    return 0;
  };
  options.find_program = programs({{"child", leave}});
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
  options.find_program = programs({{"child", child}});
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
    MPI_Info_set(info, "host", "node0"); // each job has nodes of its own
    EXPECT_EQ(class_of(MPI_Comm_spawn("child", MPI_ARGV_NULL, 1, info, 1, MPI_COMM_WORLD, &inter,
                                      MPI_ERRCODES_IGNORE)),
              MPI_ERR_SPAWN);
    MPI_Info_delete(info, "host");
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
  options.find_program = programs({{"one", program(0)}, {"two", program(1)}});
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

// The same of a spawn: children that were given up are ended, wherever they are.
TEST(Spawn, ends_children_that_have_not_come_in_time) {
  int given_up = 0, rounds = 0;
  for (double longest = 1e-6; longest < 1e-1; longest *= 1.3, ++rounds) {
    SCOPED_TRACE("time-out " + std::to_string(longest));
    WorldOptions options = smooth(2);
    options.find_program = programs({{"child", child}});
    expect_finished(World(options).run([&](int rank) {
      MPI_Init(nullptr, nullptr);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "timeout", std::to_string(longest).c_str());
      MPI_Comm inter = MPI_COMM_NULL;
      const int code = MPI_Comm_spawn("child", MPI_ARGV_NULL, 3, info, 0, MPI_COMM_WORLD, &inter,
                                      MPI_ERRCODES_IGNORE);
      MPI_Info_free(&info);
      if (code == MPI_SUCCESS) {
        talk(inter);
        MPI_Comm_disconnect(&inter);
      } else {
        EXPECT_EQ(class_of(code), MPI_ERR_SPAWN);
        if (rank == 0) ++given_up;
      }
      talk_to_new_children();
      MPI_Finalize();
      return 0;
    }));
    if (HasFailure()) return;
  }
  EXPECT_GT(given_up, 0);
  EXPECT_LT(given_up, rounds);
}

// A process could not know so many jobs at a time.
TEST(Spawn, forgets_jobs_that_end_without_coming) {
  for (const bool one_node : {false, true}) {
    WorldOptions options = smooth(2);
    options.one_node = one_node;
    const auto absent = [](int, const Arguments&) {
      return 3;
    }; // of nobody's concern but the spawn's
    options.find_program = programs({{"absent", absent}, {"child", child}});
    expect_finished(World(options).run([](int) {
      MPI_Init(nullptr, nullptr);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm inter = MPI_COMM_NULL;
      for (int round = 0; round < 600; ++round) {
        EXPECT_EQ(class_of(MPI_Comm_spawn("absent", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                          MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE)),
                  MPI_ERR_SPAWN);
        EXPECT_LE(sim::Rank::current()->processes().others().size(), 1u);
      }
      talk_to_new_children();
      MPI_Finalize();
      return 0;
    }));
  }
}

// Children end right after they have parted, and their memory goes.
TEST(Neighbors, forget_children_that_are_gone) {
  for (std::uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    WorldOptions options = crowded(2, seed);
    options.find_program = programs({{"child", child}});
    expect_finished(World(options).run([](int) {
      MPI_Init(nullptr, nullptr);
      for (int round = 0; round < 8; ++round) {
        const int talks = 1 + 4 * round;
        MPI_Comm down = spawn("child", 2 + round % 2, MPI_COMM_WORLD, {std::to_string(talks)});
        for (int i = 0; i < talks; ++i)
          talk(down);
        MPI_Comm_disconnect(&down);
        EXPECT_EQ(sim::Rank::current()->processes().others().size(), 0u);
      }
      MPI_Finalize();
      return 0;
    }));
  }
}

// A parent ends at some time while its children start: they are told, and nobody waits for ever.
TEST(Deaths, of_a_parent_end_the_wait_of_its_children) {
  for (int step = 0; step < 40 && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    WorldOptions options = smooth(2);
    const auto orphan = [](int, const Arguments&) {
      MPI_Init(nullptr, nullptr);
      MPI_Comm up = parent();
      int got = 0;
      MPI_Comm_set_errhandler(up, MPI_ERRORS_RETURN);
      EXPECT_EQ(class_of(MPI_Recv(&got, 1, MPI_INT, 0, 0, up, MPI_STATUS_IGNORE)),
                MPI_ERR_PROC_ABORTED);
      MPI_Comm_disconnect(&up);
      EXPECT_EQ(sim::Rank::current()->processes().others().size(), 0u);
      MPI_Finalize();
      return 0;
    };
    options.find_program = programs({{"child", orphan}});
    World world(options);
    const Outcome outcome = world.run([&](int rank) {
      MPI_Init(nullptr, nullptr);
      if (rank == 1) sim::Rank::current()->exit(0); // of no concern to the other
      MPI_Comm inter = MPI_COMM_NULL;
      sim::Rank& self = *sim::Rank::current();
      self.kill_at(self.now() + step * 50 * sim::microsecond);
      MPI_Comm_spawn("child", MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                     MPI_ERRCODES_IGNORE);
      int never = 0;
      MPI_Recv(&never, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
      return 0;
    });
    EXPECT_NE(outcome.end, Outcome::End::hung) << outcome.text;
  }
}

MPI_Comm merged(MPI_Comm inter, int high) {
  MPI_Comm intra = MPI_COMM_NULL;
  MPI_Intercomm_merge(inter, high, &intra);
  return intra;
}

void check_sum(MPI_Comm comm, int ranks) {
  int one = 1, sum = 0;
  EXPECT_EQ(size_of(comm), ranks);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
  EXPECT_EQ(sum, ranks);
}

// The children of the second spawn meet those of the first, of whom only the parents knew.
TEST(Jobs, of_which_two_have_never_met_get_a_communicator) {
  WorldOptions options = rough(2, 3);
  const auto first_program = [](int, const Arguments&) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm up = merged(parent(), 1);
    check_sum(up, 5);
    MPI_Comm second = MPI_COMM_NULL;
    MPI_Comm_spawn(nullptr, MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, up, &second, MPI_ERRCODES_IGNORE);
    MPI_Comm all = merged(second, 0);
    check_sum(all, 7);
    MPI_Comm part = MPI_COMM_NULL; // without the job that knows both
    MPI_Comm_split(all, 1, 0, &part);
    check_sum(part, 5);
    MPI_Finalize();
    return 0;
  };
  const auto second_program = [](int, const Arguments&) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm all = merged(parent(), 1);
    check_sum(all, 7);
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(all, 1, 0, &part);
    check_sum(part, 5);
    MPI_Finalize();
    return 0;
  };
  options.find_program = programs({{"first", first_program}, {"second", second_program}});
  expect_finished(World(options).run([](int) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm first = spawn("first", 3, MPI_COMM_WORLD);
    MPI_Comm both = merged(first, 0);
    check_sum(both, 5);
    MPI_Comm all = merged(spawn("second", 2, both), 0);
    check_sum(all, 7);
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(all, MPI_UNDEFINED, 0, &part);
    MPI_Finalize();
    return 0;
  }));
}

// Each process spawns four more, until there are a thousand.
TEST(Spawn, makes_a_tree_of_a_thousand_processes) {
  WorldOptions options = smooth(1);
  options.stack_bytes = 128 << 10;
  const auto grow = [](int depth) {
    if (depth == 0) return;
    MPI_Comm down = spawn("node", 4, MPI_COMM_SELF, {std::to_string(depth - 1)});
    int sum = 0;
    MPI_Reduce(nullptr, &sum, 1, MPI_INT, MPI_SUM, MPI_ROOT, down);
    EXPECT_EQ(sum, 4);
    MPI_Comm_disconnect(&down);
  };
  const auto node = [&](int, const Arguments& arguments) {
    MPI_Init(nullptr, nullptr);
    grow(std::stoi(arguments.at(0)));
    MPI_Comm up = parent();
    int one = 1;
    MPI_Reduce(&one, nullptr, 1, MPI_INT, MPI_SUM, 0, up);
    MPI_Comm_disconnect(&up);
    MPI_Finalize();
    return 0;
  };
  options.find_program = programs({{"node", node}});
  World world(options);
  expect_finished(world.run([&](int) {
    MPI_Init(nullptr, nullptr);
    grow(5);
    MPI_Finalize();
    return 0;
  }));
  EXPECT_EQ(world.size(), 1 + 4 + 16 + 64 + 256 + 1024);
}

// One parent, many children one after the other.
TEST(Spawn, leaves_nothing_of_jobs_that_are_gone) {
  WorldOptions options = smooth(1);
  options.find_program = programs({{"child", child}});
  std::size_t bytes[2] = {};
  expect_finished(World(options).run([&](int) {
    MPI_Init(nullptr, nullptr);
    sim::Rank& self = *sim::Rank::current();
    for (int round = 0; round < 2000; ++round) {
      MPI_Comm down = spawn("child", 2, MPI_COMM_WORLD);
      talk(down);
      MPI_Comm_disconnect(&down);
      EXPECT_EQ(self.processes().size(), 3u);
      if (round == 99 || round == 1999)
        bytes[round == 99 ? 0 : 1] =
            self.process()->instance->engine->memory_bytes() + self.transport()->memory_bytes();
    }
    MPI_Finalize();
    return 0;
  }));
  EXPECT_LE(bytes[1], bytes[0] + 64 * 2000); // what contexts are over
}

} // namespace
} // namespace macadam::test
