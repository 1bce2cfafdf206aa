// SPDX-License-Identifier: BSD-3-Clause
// Jobs that meet and part, over a simulated network.
#include "jobs.h"

#include <algorithm>
#include <string>
#include <vector>

namespace macadam::test {
namespace {

TEST(Ports, bring_two_jobs_together) {
  for (std::uint64_t seed = 1; seed <= 6 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_finished(World(jobs(2, 3, rough(3, seed))).run([](int) {
      MPI_Init(nullptr, nullptr);
      const std::string port = port_of_first("here");
      for (int round = 0; round < 3; ++round) {
        MPI_Comm inter = meet_at(port);
        EXPECT_EQ(remote_size_of(inter), 3);
        talk(inter);
        MPI_Comm_disconnect(&inter);
      }
      MPI_Finalize();
      return 0;
    }));
  }
}

// Nothing of a job that was disconnected from stays: as often as one likes.
TEST(Ports, connect_and_disconnect_ten_thousand_times_without_growth) {
  std::size_t bytes[2] = {};
  expect_finished(World(jobs(2, 1, smooth(1))).run([&](int) {
    MPI_Init(nullptr, nullptr);
    const std::string port = port_of_first("here");
    sim::Rank& self = *sim::Rank::current();
    for (int round = 0; round < 10'000; ++round) {
      MPI_Comm inter = meet_at(port);
      int mine = round, theirs = -1;
      MPI_Sendrecv(&mine, 1, MPI_INT, 0, 0, &theirs, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE);
      EXPECT_EQ(theirs, round);
      MPI_Comm_disconnect(&inter);
      EXPECT_EQ(self.processes().others().size(), 0u);
      EXPECT_EQ(self.processes().size(), 2u);
      if (job() == 0 && (round == 99 || round == 9'999))
        bytes[round == 99 ? 0 : 1] =
            self.process()->instance->engine->memory_bytes() + self.transport()->memory_bytes();
    }
    MPI_Finalize();
    return 0;
  }));
  EXPECT_EQ(bytes[1], bytes[0]);
}

// What nobody has received is called off, by whichever protocol it went; or else it would be waited
// for.
TEST(Ports, part_from_messages_that_were_never_received) {
  for (const bool one_node : {false, true}) {
    WorldOptions options = jobs(2, 2, smooth(2));
    options.one_node = one_node;
    expect_finished(World(options).run([](int) {
      MPI_Init(nullptr, nullptr);
      const std::string port = port_of_first("here");
      std::vector<char> data(300'000);
      MPI_Comm inter = meet_at(port);
      for (const int bytes : {8, 20'000})
        MPI_Send(data.data(), bytes, MPI_CHAR, 0, 3, inter);
      MPI_Comm_disconnect(&inter);
      EXPECT_EQ(sim::Rank::current()->processes().others().size(), 0u);

      inter = meet_at(port);
      talk(inter);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(data.data(), 300'000, MPI_CHAR, 0, 3, inter, &request);
      MPI_Request_free(&request);
      MPI_Comm_disconnect(&inter);
      EXPECT_EQ(sim::Rank::current()->processes().others().size(), 0u);
      MPI_Finalize();
      return 0;
    }));
  }
}

// Each of two jobs accepts one and connects to the other at the same time.
TEST(Ports, are_for_two_jobs_that_connect_to_each_other_at_once) {
  for (std::uint64_t seed = 1; seed <= 4 && !HasFailure(); ++seed) {
    expect_finished(World(jobs(2, 2, rough(2, seed))).run([](int rank) {
      MPI_Init(nullptr, nullptr);
      char port[MPI_MAX_PORT_NAME];
      const char* const names[] = {"one", "two"};
      MPI_Comm inter = MPI_COMM_NULL;
      if (rank == 0) { // of either job: accepts
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name(names[job()], MPI_INFO_NULL, port);
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
      } else {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        while (MPI_Lookup_name(names[1 - job()], MPI_INFO_NULL, port) != MPI_SUCCESS)
          sim::Rank::current()->compute(100 * sim::microsecond);
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
      }
      talk(inter);
      MPI_Comm_disconnect(&inter);
      MPI_Finalize();
      return 0;
    }));
  }
}

// An error at all processes of the communicator.
TEST(Ports, fail_in_time_where_nobody_comes) {
  expect_finished(World(smooth(3)).run([](int rank) {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "timeout", "0.01");
    char port[MPI_MAX_PORT_NAME] = "";
    if (rank == 1) MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Comm inter = MPI_COMM_NULL;
    const char* const name = rank == 1 ? port : nullptr;
    EXPECT_EQ(class_of(MPI_Comm_accept(name, info, 1, MPI_COMM_WORLD, &inter)), MPI_ERR_OTHER);
    EXPECT_EQ(class_of(MPI_Comm_connect(name, info, 1, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    EXPECT_EQ(class_of(MPI_Comm_connect("none", info, 1, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    EXPECT_EQ(class_of(MPI_Comm_accept("none", info, 1, MPI_COMM_WORLD, &inter)), MPI_ERR_PORT);
    MPI_Info_set(info, "timeout", "soon");
    EXPECT_EQ(class_of(MPI_Comm_accept(name, info, 1, MPI_COMM_WORLD, &inter)), MPI_ERR_INFO_VALUE);
    MPI_Info_free(&info);
    MPI_Finalize();
    return 0;
  }));
}

// Whenever one side gives up, also after the two have been brought together: the other one, which
// would wait for ever, either hears of it or has not been met, and then they meet.
TEST(Ports, tell_the_other_side_of_a_time_out) {
  int told = 0;
  for (const bool one_node : {false, true})
    for (const int impatient : {0, 1})
      for (double longest = 1e-6; longest < 2e-2; longest *= 1.3) {
        SCOPED_TRACE("time-out " + std::to_string(longest));
        WorldOptions options = jobs(2, 2, smooth(1));
        options.one_node = one_node;
        expect_finished(World(options).run([&](int rank) {
          MPI_Init(nullptr, nullptr);
          MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
          const std::string port = port_of_first("here");
          // The one that is patient is there first.
          if (job() == impatient) sim::Rank::current()->compute(1000 * sim::microsecond);
          MPI_Info info = MPI_INFO_NULL;
          if (job() == impatient) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "timeout", std::to_string(longest).c_str());
          }
          MPI_Comm inter = MPI_COMM_NULL;
          for (;;) {
            const int code = job() == 0
                                 ? MPI_Comm_accept(port.c_str(), info, 0, MPI_COMM_WORLD, &inter)
                                 : MPI_Comm_connect(port.c_str(), info, 0, MPI_COMM_WORLD, &inter);
            if (info != MPI_INFO_NULL) MPI_Info_free(&info);
            if (code == MPI_SUCCESS) break;
            char text[MPI_MAX_ERROR_STRING];
            int length = 0;
            MPI_Error_string(code, text, &length);
            const bool may_be = class_of(code) == MPI_ERR_OTHER || class_of(code) == MPI_ERR_PORT;
            EXPECT_TRUE(may_be) << text;
            if (job() != impatient && rank == 0) ++told;
          }
          talk(inter);
          MPI_Comm_disconnect(&inter);
          EXPECT_EQ(sim::Rank::current()->processes().others().size(), 0u);
          MPI_Finalize();
          return 0;
        }));
        if (HasFailure()) return;
      }
  EXPECT_GT(told, 0);
}

TEST(Neighbors, meet_and_part_without_growth) {
  std::size_t bytes[2] = {};
  WorldOptions options = crowded(2, 1);
  options.jobs = 2;
  options.faults.core_loss = 0.0001;
  expect_finished(World(options).run([&](int rank) {
    MPI_Init(nullptr, nullptr);
    const std::string port = port_of_first("here");
    sim::Rank& self = *sim::Rank::current();
    for (int round = 0; round < 1000; ++round) {
      MPI_Comm inter = meet_at(port);
      talk(inter);
      MPI_Comm_disconnect(&inter);
      EXPECT_EQ(self.processes().others().size(), 0u);
      if (job() == 0 && rank == 0 && (round == 99 || round == 999))
        bytes[round == 99 ? 0 : 1] =
            self.process()->instance->engine->memory_bytes() + self.neighbors()->memory_bytes();
    }
    MPI_Finalize();
    return 0;
  }));
  EXPECT_LE(bytes[1], bytes[0] + (std::size_t{64} << 10));
}

TEST(Deaths, of_the_other_side_end_a_connect) {
  for (const bool before : {true, false}) {
    expect_finished(World(jobs(2, 1, smooth(1))).run([&](int) {
      MPI_Init(nullptr, nullptr);
      const std::string port = port_of_first("here");
      if (job() == 0) {
        if (before)
          sim::Rank::current()->compute(3000 * sim::microsecond);
        else
          meet_at(port);
        sim::Rank::current()->exit(0);
      }
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      MPI_Comm inter = MPI_COMM_NULL;
      const int code = MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
      if (before) {
        EXPECT_EQ(class_of(code), MPI_ERR_PORT);
      } else if (code == MPI_SUCCESS) {
        int got = 0;
        EXPECT_EQ(class_of(MPI_Recv(&got, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE)),
                  MPI_ERR_PROC_ABORTED);
        MPI_Comm_disconnect(&inter);
      }
      MPI_Finalize();
      return 0;
    }));
  }
}

} // namespace
} // namespace macadam::test
