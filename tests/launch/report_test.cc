// SPDX-License-Identifier: BSD-3-Clause
// The two pages that mpiexec prints, from the texts of the ranks.
#include "boot/hang/hang_report.h"
#include "boot/hang/stacks.h"
#include "boot/job_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

using macadam::boot::give_report;
using macadam::boot::hang_report;
using macadam::boot::job_report;
using macadam::boot::RankStatus;
using Kind = RankStatus::Kind;

std::vector<RankStatus> look_at(std::vector<std::string> ranks) {
  std::vector<RankStatus> statuses;
  for (std::string& json : ranks)
    statuses.push_back({Kind::answered, std::move(json)});
  return statuses;
}

// Of ranks that stand in two looks.
std::string page_of(std::vector<std::string> ranks) {
  const std::vector<RankStatus> look = look_at(std::move(ranks));
  return hang_report("host a", look, look);
}

bool contains(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

TEST(HangReport, SaysWhatEachRankDoes) {
  EXPECT_EQ(hang_report("host a", {{Kind::answered, R"({"waiting_in": "MPI_Wait"})"},
                                   {Kind::silent, ""},
                                   {Kind::not_in_mpi, ""},
                                   {Kind::finalized, ""},
                                   {Kind::aborted, ""},
                                   {Kind::ended, ""}}),
            "mpiexec: what 6 ranks on host a are waiting for\n"
            "\n  rank 0 waits in MPI_Wait\n"
            "\n  rank 1 computes outside MPI (no answer within 1 s)\n"
            "\n  rank 2 has not called MPI_Init\n"
            "\n  rank 3 has called MPI_Finalize\n"
            "\n  rank 4 has called MPI_Abort\n"
            "\n  rank 5 has ended\n");
}

TEST(HangReport, ShowsEveryKindOfRow) {
  EXPECT_EQ(
      page_of({R"({"waiting_in": "MPI_Recv",
      "posted": [{"comm": "MPI_COMM_WORLD", "source": -1, "tag": -1, "bytes": 8},
                 {"comm": "halo", "source": 3, "tag": 5, "bytes": 16, "announced": true}],
      "unexpected": [{"comm": 12, "source": 3, "tag": 7, "bytes": 4}],
      "rendezvous": [{"peer": 2, "protocol": "SEND_RNDV", "stage": "waits for the receiver",
                      "bytes": 1048576, "comm": "halo", "tag": 9, "sending": true}],
      "connections": [{"peer": 1, "state": "connected"}, {"peer": 3, "state": "connected"},
                      {"peer": 2, "state": "connecting"}]})"}),
      "mpiexec: what 1 rank on host a is waiting for\n"
      "\n  who waits for whom\n"
      "    rank 0 waits for rank 3: a message with tag 5\n"
      "    rank 0 waits for rank 2: SEND_RNDV: waits for the receiver\n"
      "\n  near misses\n"
      "    rank 0 waits for a message from rank 3 with any tag in MPI_COMM_WORLD; one with tag 7 "
      "in communicator 12 has arrived and nobody receives it: is a communicator wrong?\n"
      "\n  rank 0 waits in MPI_Recv\n"
      "      receive       from any rank, any tag in MPI_COMM_WORLD, 8 bytes\n"
      "      receive       from rank 3, tag 5 in halo, 16 bytes, announced\n"
      "      unexpected    from rank 3, tag 7 in communicator 12, 4 bytes\n"
      "      rendezvous    to rank 2, tag 9 in halo, 1048576 bytes: SEND_RNDV, waits for the "
      "receiver\n"
      "      connections   2 connected (ranks 1, 3)\n"
      "      connections   1 connecting (rank 2)\n");
}

// A rank in a collective of MPI_COMM_WORLD, whose ranks are 0 to `last`.
std::string in_collective(const std::string& function, int number, int last) {
  std::string members = "0";
  for (int rank = 1; rank <= last; ++rank)
    members += ", " + std::to_string(rank);
  return R"({"waiting_in": ")" + function +
         R"(", "collectives": [{"id": 4, "comm": "w", "function": ")" + function +
         R"(", "number": )" + std::to_string(number) + R"(, "members": [)" + members +
         R"(]}], "called": [{"id": 4, "count": )" + std::to_string(number) + "}]}";
}

TEST(HangReport, SaysWhoIsMissingInACollective) {
  const std::string barrier = in_collective("MPI_Barrier", 7, 5);
  EXPECT_EQ(hang_report("host a", {{Kind::answered, barrier},
                                   {Kind::finalized, ""},
                                   {Kind::answered, barrier},
                                   {Kind::stopped, "", 1234},
                                   {Kind::finalized, ""},
                                   // Has left it already, and looks for a message.
                                   {Kind::answered, R"({"waiting_in": "MPI_Recv",
                                                   "called": [{"id": 4, "count": 7}]})"}}),
            "mpiexec: what 6 ranks on host a are waiting for\n"
            "\n  collectives\n"
            "    ranks 0, 2 are in MPI_Barrier on w, number 7 of its collectives; rank 3 has not "
            "been seen in it: it is stopped, by SIGSTOP or a debugger (kill -CONT 1234 lets it go "
            "on); ranks 1, 4 have not entered it: they have called MPI_Finalize\n"
            "\n  ranks 0, 2 wait in MPI_Barrier\n"
            "\n  ranks 1, 4 have called MPI_Finalize\n"
            "\n  rank 3 is stopped, by SIGSTOP or a debugger (kill -CONT 1234 lets it go on)\n"
            "\n  rank 5 waits in MPI_Recv\n");
}

TEST(HangReport, NamesCollectivesThatDiffer) {
  EXPECT_TRUE(
      contains(page_of({in_collective("MPI_Bcast", 3, 2), in_collective("MPI_Barrier", 3, 2),
                        in_collective("MPI_Bcast", 3, 2)}),
               "    rank 1 is in MPI_Barrier, ranks 0, 2 are in MPI_Bcast on w, number 3 of "
               "its collectives: different calls\n"));
  // One has left another call behind.
  const std::string left =
      R"({"waiting_in": "MPI_Recv", "called": [{"id": 4, "count": 3, "last": "MPI_Reduce"}]})";
  EXPECT_TRUE(
      contains(page_of({in_collective("MPI_Bcast", 3, 1), left}),
               "    rank 0 is in MPI_Bcast on w, number 3 of its collectives; rank 1 called "
               "MPI_Reduce as that one: different calls\n"));
  // They are not in it together.
  const std::string page =
      page_of({in_collective("MPI_Bcast", 3, 1), in_collective("MPI_Barrier", 4, 1)});
  EXPECT_TRUE(contains(page, "    rank 0 is in MPI_Bcast on w, number 3 of its collectives; all "
                             "have entered it and rank 1 has left it: if the others stay, root, "
                             "counts or types differ (MACADAM_CHECK=1 names them)\n"));
  EXPECT_TRUE(contains(page,
                       "    rank 1 is in MPI_Barrier on w, number 4 of its collectives; rank 0 "
                       "has not entered it: it waits in MPI_Bcast on w\n"));
}

TEST(HangReport, SaysOfPersistentCollectivesWhoIsSeenInThem) {
  const std::string started =
      R"({"waiting_in": "MPI_Wait", "collectives": [{"id": 4, "comm": "w", "number": 2,
          "function": "MPI_Reduce_init", "members": [0, 1], "persistent": true}],
          "called": [{"id": 4, "count": 2}]})";
  const std::string not_started =
      R"({"waiting_in": "MPI_Recv", "called": [{"id": 4, "count": 2}]})";
  EXPECT_TRUE(contains(page_of({started, not_started}),
                       "    rank 0 is in MPI_Reduce_init (started) on w, number 2 of its "
                       "collectives; rank 1 has not been seen in it: it waits in MPI_Recv\n"));
}

TEST(HangReport, SaysWhatTheRootOfAnAcceptWaitsFor) {
  const std::string other = R"({"waiting_in": "MPI_Comm_accept", "collectives": [{"id": 4,
      "comm": "w", "function": "MPI_Comm_accept", "members": [0, 1]}]})";
  const std::string root =
      R"({"waiting_in": "MPI_Comm_accept", "waiting_for": "an MPI_Comm_connect to its port"})";
  EXPECT_TRUE(contains(page_of({root, other}),
                       "    rank 1 is in MPI_Comm_accept on w; rank 0 waits in MPI_Comm_accept "
                       "for an MPI_Comm_connect to its port\n"));
}

TEST(HangReport, ShortensListsOfRanks) {
  std::vector<RankStatus> ranks;
  for (int rank = 0; rank < 64; ++rank)
    ranks.push_back({rank % 2 == 0 ? Kind::finalized : Kind::not_in_mpi, ""});
  EXPECT_TRUE(contains(hang_report("host a", ranks), "  ranks 0, 2, ... 62 have called"));
  for (int rank = 0; rank < 64; ++rank)
    ranks[static_cast<std::size_t>(rank)].kind =
        rank * rank % 23 < 11 ? Kind::finalized : Kind::not_in_mpi;
  EXPECT_TRUE(contains(hang_report("host a", ranks), " more have called MPI_Finalize"));
}

TEST(HangReport, LeavesOutReceivesOfMpiItself) {
  const std::string page = page_of({R"({"waiting_in": "MPI_Win_wait", "posted": [
      {"comm": "a window", "source": -1, "tag": -10, "bytes": 4024}]})"});
  EXPECT_FALSE(contains(page, "receive"));
}

TEST(HangReport, SaysWhoHoldsALock) {
  const std::string wants =
      R"({"waiting_in": "MPI_Win_lock", "windows": [{"id": 5, "name": "window w", "holds": [],
          "waits_for": 0, "members": [0, 1, 2, 3]}]})";
  const auto holds = [](const char* exclusively, int id) {
    return R"({"waiting_in": "MPI_Recv", "windows": [{"id": )" + std::to_string(id) +
           R"(, "name": "window w", "holds": [{"rank": 0, "exclusive": )" + exclusively + "}]}]}";
  };
  const std::string waits = "    ranks 0, 2 wait for the lock of rank 0 on window w; ";
  EXPECT_TRUE(contains(page_of({wants, holds("true", 5), wants, "{}"}),
                       waits + "rank 1 holds it exclusively and waits in MPI_Recv\n"));
  EXPECT_TRUE(contains(page_of({wants, holds("false", 5), wants, holds("false", 5)}),
                       waits + "ranks 1, 3 hold it, shared, and wait in MPI_Recv\n"));
  // Of another window; and one that does not answer.
  EXPECT_TRUE(contains(page_of({wants, holds("true", 4), wants, "{}"}),
                       waits + "none of the ranks holds it: it waits for its turn\n"));
  EXPECT_TRUE(contains(hang_report("host a", {{Kind::answered, wants},
                                              {Kind::silent, ""},
                                              {Kind::answered, wants},
                                              {Kind::answered, "{}"}}),
                       waits + "none of those that answer holds it, perhaps rank 1\n"));
}

TEST(HangReport, SaysWhoHasNotPostedOrCompleted) {
  const std::string page = page_of(
      {R"({"waiting_in": "MPI_Win_complete", "windows": [{"id": 5, "name": "window w", "holds": [],
           "post_of": 1}]})",
       R"({"waiting_in": "MPI_Win_wait", "windows": [{"id": 6, "name": "window v", "holds": [],
           "complete_of": [0, 2]}]})",
       "{}"});
  EXPECT_TRUE(contains(page, "    rank 0 waits for rank 1: its MPI_Win_post on window w\n"));
  EXPECT_TRUE(contains(page, "    rank 1 waits for rank 0: its MPI_Win_complete on window v\n"
                             "    rank 1 waits for rank 2: its MPI_Win_complete on window v\n"));
}

TEST(HangReport, SaysWhereRanksAreInTheirPrograms) {
  RankStatus rank{Kind::answered, R"({"waiting_in": "MPI_Recv"})"};
  rank.stack = "main (a.c:7)";
  EXPECT_TRUE(contains(hang_report("host a", {rank}), "  rank 0 waits in MPI_Recv\n"
                                                      "      at            main (a.c:7)\n"));
  RankStatus other = rank;
  other.stack.clear();
  EXPECT_TRUE(contains(hang_report("host a", {rank, other}), "      at (rank 0)   main (a.c:7)\n"));
  EXPECT_EQ(macadam::boot::ranks_to_show({rank, {Kind::ended, ""}, other, {Kind::silent, ""}}),
            (std::vector{0, 3}));
  EXPECT_EQ(macadam::boot::ranks_to_show({{Kind::stopped, "", 1234}}), std::vector{0});
  rank.process = 1234;
  EXPECT_TRUE(
      contains(hang_report("host a", {rank}), "  rank 0 waits in MPI_Recv (process 1234)\n"));
  EXPECT_TRUE(contains(hang_report("host a", {rank, rank}),
                       "  ranks 0, 1 wait in MPI_Recv (process 1234 is rank 0)\n"));
  rank.host = "b";
  EXPECT_TRUE(contains(hang_report("2 hosts", {rank}),
                       "  rank 0 waits in MPI_Recv (process 1234 on host b)\n"));
  EXPECT_TRUE(contains(hang_report("2 hosts", {{Kind::stopped, "", 1234, "", "b"}}),
                       "(kill -CONT 1234 on host b lets it go on)\n"));
}

TEST(Stacks, AreReadFromGdb) {
  EXPECT_EQ(macadam::boot::read_stack(
                "[New LWP 4]\n0x0007 in poll () from /lib/libc.so.6\n"
                "#0  0x00007 in poll () from /lib/x86_64-linux-gnu/libc.so.6\n"
                "#1  0x00008 in macadam::engine::Engine::progress() (this=...) at src/engine.h:7\n"
                "#2  PMPI_Recv (buf=...) at src/generated.cc:12\n"
                "#3  0x00009 in exchange (x=...) at ../src/halo.c:40\n"
                "#4  0x0000a in main () at ../src/halo.c:71\n"),
            "exchange (halo.c:40), main (halo.c:71)");
  EXPECT_EQ(macadam::boot::read_stack("#0  0x1 in solve ()\n#1  0x2 in main ()\n"), "solve, main");
  // Of threads, those that are in MPI.
  const std::string two_threads = "Thread 1 (LWP 4):\n#0  0x1 in pause () from /lib/libc.so.6\n"
                                  "#1  0x2 in main () at a.c:9\n\nThread 2 (LWP 5):\n";
  EXPECT_EQ(macadam::boot::read_stack(two_threads + "#0  0x3 in PMPI_Recv ()\n"
                                                    "#1  0x4 in worker (x=...) at a.c:3\n"
                                                    "#2  0x5 in start_thread (x=...) at p.c:442\n"
                                                    "#3  0x6 in clone3 () at clone3.S:81\n"),
            "worker (a.c:3)");
  EXPECT_EQ(macadam::boot::read_stack(two_threads + "#0  0x3 in worker (x=...) at a.c:3\n"),
            "pause (libc.so.6), main (a.c:9)");
  EXPECT_EQ(macadam::boot::read_stack("ptrace: Operation not permitted.\n"), "");
}

TEST(HangReport, FitsOnAScreenFor32Ranks) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 32; ++rank)
    ranks.push_back(R"({"waiting_in": "MPI_Recv", "posted": [{"comm": "w", "source": )" +
                    std::to_string((rank + 1) % 32) + R"(, "tag": 1, "bytes": 8}]})");
  const std::string page = page_of(ranks);
  EXPECT_TRUE(contains(page, "\n  ranks 0 to 31 wait in MPI_Recv\n")) << page;
  EXPECT_TRUE(contains(page, "rank 7 -> ... (24 more) -> rank 0: a circle"));
  EXPECT_LE(std::ranges::count(page, '\n'), 24);

  // All differ, and every message misses many receives.
  std::vector<RankStatus> statuses;
  for (int rank = 0; rank < 32; ++rank) {
    std::string json =
        R"({"waiting_in": "MPI_Function_)" + std::to_string(rank) + R"(", "posted": [)";
    for (int tag = 0; tag < 40; ++tag)
      json += (tag == 0 ? "" : ",") + std::string(R"({"comm": "w", "source": )") +
              std::to_string((rank + 1) % 32) + R"(, "tag": )" + std::to_string(100 + tag) +
              R"(, "bytes": 8})";
    json += R"(], "unexpected": [{"comm": "w", "source": )" + std::to_string((rank + 1) % 32) +
            R"(, "tag": 5, "bytes": 8}]})";
    statuses.push_back(
        {Kind::answered, std::move(json), 1000 + rank, rank < 8 ? "main (a.c:7)" : ""});
  }
  const std::string worst = hang_report("host a", statuses);
  EXPECT_LE(std::ranges::count(worst, '\n'), 52) << worst;
  // Those that wait for the same share a line.
  const std::string stopped = hang_report("host a", {32, {Kind::stopped, "", 1234}});
  EXPECT_EQ(std::ranges::count(stopped, '\n'), 3) << stopped;
  const std::string waits =
      R"({"waiting_in": "MPI_Recv", "posted": [{"comm": "w", "source": 0, "tag": 1, "bytes": 8}]})";
  EXPECT_TRUE(contains(page_of({"{}", waits, waits}),
                       "    ranks 1, 2 wait for rank 0: a message with tag 1\n"));
}

TEST(HangReport, SaysWhichPartitionsNobodyMarked) {
  const std::string page = page_of({R"json({"waiting_in": "MPI_Wait", "rendezvous": [
           {"peer": 1, "tag": 3, "protocol": "partitioned", "sending": true, "unmarked": 3,
            "stage": "3 of 4 partitions are not marked (MPI_Pready)"}]})json",
                                    R"json({"waiting_in": "MPI_Wait", "rendezvous": [
           {"peer": 0, "tag": 3, "protocol": "partitioned", "sending": false, "unmarked": 0,
            "stage": "3 of 4 partitions are still to be received"}]})json"});
  EXPECT_TRUE(contains(page, "    rank 0 waits for itself: 3 of 4 partitions are not marked "
                             "(MPI_Pready), to rank 1\n"))
      << page;
  EXPECT_FALSE(contains(page, "a circle")) << page;
}

TEST(HangReport, CountsRowsThatAreAlikeAndCutsLongLists) {
  std::string rows;
  for (int i = 0; i < 30; ++i)
    rows += R"({"source": 1, "tag": 5, "bytes": 8},)";
  for (int i = 0; i < 30; ++i)
    rows += R"({"source": 1, "tag": )" + std::to_string(100 + i) + R"(, "bytes": 8},)";
  rows.pop_back();
  const std::string page = page_of({R"({"unexpected": [)" + rows + "]}"});
  EXPECT_TRUE(contains(page, "from rank 1, tag 5, 8 bytes   (30 times)\n"));
  EXPECT_TRUE(contains(page, "tag 114, 8 bytes\n"));
  EXPECT_FALSE(contains(page, "tag 115, 8 bytes\n"));
  EXPECT_TRUE(contains(page, "and 15 more\n"));
  // Of a collective that the rank has not entered: how many there are.
  const std::string early =
      page_of({R"json({"unexpected": [{"comm": "w (collective)", "source": 1, "tag": 0},
                                      {"comm": "w (collective)", "source": 2, "tag": 0},
                                      {"comm": "w", "source": 1, "tag": 5, "bytes": 8}]})json"});
  EXPECT_TRUE(contains(early, "unexpected    from rank 1, tag 5 in w, 8 bytes\n"
                              "      unexpected    2 messages in w (collective)\n"))
      << early;
}

TEST(HangReport, FindsACircle) {
  const auto waits_for = [](const std::string& rank) {
    return R"({"posted": [{"comm": "w", "source": )" + rank + R"(, "tag": 1}]})";
  };
  // 0 -> 1 -> 2 -> 3 -> 1
  EXPECT_TRUE(contains(page_of({waits_for("1"), waits_for("2"), waits_for("3"), waits_for("1")}),
                       "rank 1 -> rank 2 -> rank 3 -> rank 1: a circle"));
  // A chain that ends, and a rank that waits for two, are none.
  EXPECT_FALSE(contains(page_of({waits_for("1"), waits_for("2"), "{}"}), "circle"));
  EXPECT_FALSE(contains(page_of({waits_for("1"), R"({"posted": [{"source": 0, "tag": 1},
                                                     {"source": 2, "tag": 1}]})",
                                 "{}"}),
                        "circle"));
}

// A job that runs, each rank seen at a moment when it waits for the next.
TEST(HangReport, ClaimsACircleOnlyOfRanksThatDidNotMove) {
  const auto waits_for = [](int rank, int moves) {
    return R"({"posted": [{"source": )" + std::to_string(rank) + R"(, "tag": 1}], "moves": )" +
           std::to_string(moves) + "}";
  };
  const auto look = look_at({waits_for(1, 10), waits_for(0, 20), waits_for(0, 30)});
  EXPECT_TRUE(macadam::boot::shows_circle(look));
  EXPECT_FALSE(macadam::boot::shows_circle(look_at({waits_for(1, 10), "{}"})));
  EXPECT_TRUE(contains(hang_report("host a", look, look), "circle"));
  EXPECT_FALSE(contains(hang_report("host a", look), "circle")) << "one look says nothing";
  const auto moved = look_at({waits_for(1, 10), waits_for(0, 21), waits_for(0, 30)});
  EXPECT_FALSE(contains(hang_report("host a", moved, look), "circle"));
  const auto other_moved = look_at({waits_for(1, 10), waits_for(0, 20), waits_for(0, 31)});
  EXPECT_TRUE(contains(hang_report("host a", other_moved, look), "circle"));
  const auto computed = look_at({waits_for(1, 10), "", waits_for(0, 30)});
  EXPECT_FALSE(contains(hang_report("host a", look, computed), "circle"));
}

TEST(HangReport, NamesThoseOfACircleThatMayDoSomethingElse) {
  const auto waits_for = [](int rank, const char* may_do_more) {
    return R"({"posted": [{"source": )" + std::to_string(rank) +
           R"(, "tag": 1}], "may_do_more": )" + may_do_more + "}";
  };
  EXPECT_TRUE(contains(page_of({waits_for(1, "true"), waits_for(0, "false")}),
                       "a circle, unless rank 0 does something else first\n"));
  EXPECT_TRUE(contains(page_of({waits_for(1, "true"), waits_for(0, "true")}),
                       "a circle, unless ranks 0, 1 do something else first\n"));
  EXPECT_TRUE(contains(page_of({waits_for(1, "false"), waits_for(0, "false")}),
                       "a circle, none of these can go on by itself\n"));
}

// Rank R of one is -2 - R.
TEST(HangReport, TellsRanksOfOtherJobsApart) {
  const std::string page = page_of(
      {R"({"waiting_in": "MPI_Recv", "posted": [{"comm": "w", "source": -3, "tag": 1, "bytes": 4}],
           "unexpected": [{"comm": "w", "source": -3, "tag": 2, "bytes": 4}],
           "connections": [{"peer": 1, "state": "connected"}, {"peer": -3, "state": "connected"}]})",
       R"({"posted": [{"comm": "w", "source": 0, "tag": 1, "bytes": 4}]})"});
  EXPECT_TRUE(contains(page, "    rank 0 waits for rank 1 of another job: a message with tag 1\n"))
      << page;
  EXPECT_FALSE(contains(page, "has arrived")); // from the same job, or a third one
  EXPECT_TRUE(contains(page, "receive       from rank 1 of another job, tag 1 in w, 4 bytes\n"));
  EXPECT_TRUE(contains(page, "2 connected (ranks 1, 1 of another job)\n"));
  EXPECT_FALSE(contains(page, "circle"));
}

TEST(HangReport, ShowsWhatAProbeWaitsFor) {
  const std::string probes =
      R"({"waiting_in": "MPI_Probe", "posted": [{"comm": "w", "source": 1, "tag": 5, "bytes": 0,
          "probe": true}], "unexpected": [{"comm": "w", "source": 1, "tag": 6, "bytes": 4}]})";
  const std::string page = page_of({probes, "{}"});
  EXPECT_TRUE(contains(page, "    rank 0 waits for rank 1: a message with tag 5\n")) << page;
  EXPECT_TRUE(contains(page, "      probe         for rank 1, tag 5 in w\n"));
  EXPECT_TRUE(contains(page, "is a tag wrong?"));
  EXPECT_FALSE(contains(page, "      receive"));
}

TEST(HangReport, PointsOutNearMisses) {
  const std::string receiver = R"({"posted": [{"comm": "w", "source": 1, "tag": 5, "bytes": 8}],
                                   "unexpected": [)";
  const auto misses = [&](const std::string& message) {
    return contains(page_of({receiver + message + "]}", "{}"}), "near misses");
  };
  EXPECT_TRUE(misses(R"({"comm": "w", "source": 1, "tag": 6})"));
  EXPECT_TRUE(misses(R"({"comm": "x", "source": 1, "tag": 5})"));
  EXPECT_FALSE(misses(R"({"comm": "x", "source": 1, "tag": 6})"));
  EXPECT_FALSE(misses(R"({"comm": "w", "source": 2, "tag": 6})"));
  // Of MPI itself.
  EXPECT_FALSE(misses(R"json({"comm": "w (collective)", "source": 1, "tag": 5})json"));
  EXPECT_FALSE(misses(R"({"comm": "w", "source": 1, "tag": -10})"));

  const std::string page = page_of({receiver + R"({"comm": "x", "source": 1, "tag": 5}]})", "{}"});
  EXPECT_TRUE(contains(page,
                       "rank 0 waits for a message from rank 1 with tag 5 in w; one with tag 5 "
                       "in x has arrived and nobody receives it: is a communicator wrong?"));
}

TEST(HangReport, PointsOutNearMissesOfMessagesNotYetSent) {
  const std::string page = page_of(
      {R"({"posted": [{"comm": "w", "source": -1, "tag": 5}]})",
       R"({"rendezvous": [{"peer": 0, "comm": "w", "tag": 6, "sending": true, "bytes": 1}]})"});
  EXPECT_TRUE(contains(page,
                       "rank 0 waits for a message from rank 1 with tag 5 in w; one with tag 6 "
                       "is waiting to be sent: is a tag wrong?"));
}

TEST(HangReport, SurvivesDamage) {
  for (const char* json :
       {"", "{", "[]", "3", R"({"posted": [{"source": "x"}]})", R"({"posted": 7})",
        R"({"unexpected": [[]]})", R"({"error": "too long"})"}) {
    const std::string page = page_of({json});
    EXPECT_TRUE(contains(page, "its report could not be read")) << json << "\n" << page;
  }
  // Ranks that do not exist.
  page_of({R"({"posted": [{"source": 77, "tag": 1}], "rendezvous": [{"peer": 99, "tag": 1,
              "sending": true}], "connections": [{"peer": -5, "state": "connecting"}]})"});
}

TEST(JobReport, AddsUpTheRanks) {
  EXPECT_EQ(job_report({R"({"rank": 0, "host": "a",
      "counters": [{"group": "protocol", "name": "eager", "text": "messages", "value": 3},
                   {"group": "shm", "name": "rings", "text": "given", "value": 0},
                   {"group": "protocol", "name": "hybrid", "text": "", "value": 1}],
      "memory": {"resident": 2097152}, "transports": ["shm: 1 peer"],
      "fallbacks": ["shm: no cma"], "settings": {"MACADAM_SHM_EAGER": "16K"}})",
                        R"({"rank": 1, "host": "a",
      "counters": [{"group": "protocol", "name": "eager", "text": "messages", "value": 5}],
      "memory": {"resident": 1048576}, "transports": ["shm: 1 peer"]})"}),
            "macadam: what the job did: 2 ranks on host a\n"
            "\n  protocol                           job    least rank     most rank\n"
            "    eager                              8             3             5   messages\n"
            "    hybrid                             1             1             1\n"
            "\n  memory                             job    least rank     most rank\n"
            "    resident                       3 MiB         1 MiB         2 MiB\n"
            "\n  transports\n    shm: 1 peer\n"
            "\n  fallbacks\n    shm: no cma (rank 0)\n"
            "\n  settings that differ from the defaults\n    MACADAM_SHM_EAGER=16K (rank 0)\n");
}

// Two ranks of 2 s: rank 0 computes for 1.8 s, and rank 1 waits for it in MPI_Recv.
const std::vector<std::string> late_sender = {
    R"({"rank": 0, "host": "a",
      "time": {"run": 2.0, "functions": [{"name": "MPI_Send", "calls": 500, "seconds": 0.2},
                                         {"name": "MPI_Comm_rank", "calls": 1, "seconds": 1e-7}]},
      "sent": [{"peer": 1, "messages": 500, "bytes": 4000, "successive": 499,
                "successive_bytes": 3992}]})",
    R"({"rank": 1, "host": "a",
      "time": {"run": 2.0, "functions": [{"name": "MPI_Recv", "calls": 500, "seconds": 1.6}]},
      "waits": [{"peer": 0, "cause": "late sender", "times": 3, "seconds": 1.5}]})"};

TEST(JobReport, BeginsWithTimeWaitsAndTraffic) {
  const std::string page = job_report(late_sender);
  EXPECT_TRUE(page.starts_with(
      "macadam: what the job did: 2 ranks on host a\n"
      "\n  run time 2.00 s, of which 45 % in MPI (least: 10 % in rank 0, most: 80 % in rank 1)\n"
      "\n  time in MPI                      calls   mean rank   share   most rank\n"
      "    MPI_Recv                         500      800 ms    40 %      1.60 s   rank 1\n"
      "    MPI_Send                         500      100 ms     5 %      200 ms   rank 0\n"
      "    1 other                                  0.05 us     0 %\n"
      "\n  waited longest\n"
      "    rank 1 for rank 0, which sent late: 1.50 s in 3 calls\n"
      "\n  messages / bytes sent, by the rank of the row to that of the column\n"
      "                             0                   1\n"
      "         0                   -     500 / 3.906 KiB\n"
      "         1                   -                   -\n"
      "\n  advice\n"
      "    Rank 1 waited 1.50 s for messages of rank 0 that were not sent yet: "))
      << page;
  EXPECT_TRUE(contains(page, "Rank 0 computes for 1.80 s, all ranks 1.10 s on average"));
  // 499 short messages in succession are less than a thousandth of this run.
  EXPECT_FALSE(contains(page, "right after another"));
}

TEST(JobReport, AdvisesOnlyWhatTheNumbersSay) {
  const std::string even = R"("time": {"run": 1.0, "functions": []}})";
  EXPECT_FALSE(
      contains(job_report({R"({"rank": 0, )" + even, R"({"rank": 1, )" + even}), "advice"));

  const std::string late = job_report({R"({"rank": 0, "time": {"run": 1.0},
      "waits": [{"peer": 1, "cause": "late receiver", "times": 9, "seconds": 0.3}],
      "counters": [{"group": "early party", "name": "sender_early", "value": 8},
                   {"group": "early party", "name": "receiver_early", "value": 2}]})"});
  EXPECT_TRUE(contains(late, "Rank 0 waited 300 ms until rank 1 received what it had sent"));
  EXPECT_TRUE(contains(late, "8 of 10 long messages were sent before their receive was posted"));

  const std::string many = job_report({R"({"rank": 0, "time": {"run": 0.01},
      "sent": [{"peer": 1, "messages": 9000, "bytes": 72000, "successive": 8000,
                "successive_bytes": 64000}]})"});
  EXPECT_TRUE(contains(many, "Rank 0 sent 8000 messages to rank 1, of 8 B on average, each right"));
}

TEST(JobReport, DoesNotTakeWorkersOfARankThatServesForSlowOnes) {
  std::vector<std::string> ranks = {R"({"rank": 0, "time": {"run": 1.0, "functions": [
      {"name": "MPI_Recv", "calls": 9, "seconds": 1.0}]}})"};
  for (int rank = 1; rank < 4; ++rank)
    ranks.push_back(R"({"time": {"run": 1.0}, "rank": )" + std::to_string(rank) + "}");
  EXPECT_FALSE(contains(job_report(ranks), "the others wait for it"));
}

TEST(JobReport, TellsWaitsForLateMessagesFromThoseForManyShortOnes) {
  const std::string page = job_report({R"({"rank": 0, "time": {"run": 1.0},
      "waits": [{"peer": 1, "cause": "late sender", "times": 100000, "seconds": 0.4}]})"});
  EXPECT_TRUE(contains(page, "Rank 0 waited 100000 times for messages of rank 1, 4 us each, which "
                             "is about as long as a message takes"));
  EXPECT_FALSE(contains(page, "not sent yet"));
}

TEST(JobReport, NamesTheBusiestPairsOfManyRanks) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 20; ++rank)
    ranks.push_back(R"({"time": {"run": 1.0}, "rank": )" + std::to_string(rank) +
                    R"(, "sent": [{"peer": )" + std::to_string((rank + 1) % 20) +
                    R"(, "messages": 1, "bytes": )" + std::to_string(rank) + "}]}");
  const std::string page = job_report(ranks);
  EXPECT_TRUE(contains(page, "the busiest of 20 pairs of ranks\n    rank 19 to rank 0: 1 / 19 B\n"))
      << page;
}

TEST(JobReport, AddsUpWhatRanksOfOtherJobsHaveToDoWithEach) {
  const std::string page = job_report({R"({"rank": 0, "time": {"run": 1.0},
      "sent": [{"peer": 0, "messages": 1, "bytes": 8}, {"peer": -1, "messages": 10, "bytes": 80}],
      "waits": [{"peer": -1, "cause": "late sender", "times": 2, "seconds": 0.5}]})"});
  EXPECT_TRUE(contains(page, "                             0          other jobs\n"
                             "         0             1 / 8 B           10 / 80 B\n"))
      << page;
  EXPECT_TRUE(contains(page, "    rank 0 for ranks of other jobs, which sent late: 500 ms"));
}

TEST(JobReport, IsWrittenToTheFileThatTheRanksName) {
  const std::string name = testing::TempDir() + "report_test.json";
  std::vector<std::string> ranks = late_sender;
  ranks[0].insert(1, R"("file": ")" + name + R"(", )");
  ranks.push_back("{");
  EXPECT_EQ(give_report(ranks, ""), "macadam: the report is in " + name + "; `macadam report " +
                                        name + "` makes a page of it\n");
  std::ifstream file(name);
  const auto read = nlohmann::json::parse(file);
  EXPECT_EQ(read["ranks"].size(), 3u);
  EXPECT_EQ(read["ranks"][1]["waits"][0]["cause"], "late sender");
  std::remove(name.c_str());

  const std::string part = testing::TempDir() + "report_test.node7.json";
  EXPECT_TRUE(contains(give_report(ranks, "node7"), part));
  EXPECT_EQ(std::remove(part.c_str()), 0);

  ranks[0] = R"({"rank": 0, "file": "/no such folder/a.json"})";
  const std::string page = give_report(ranks, "");
  EXPECT_TRUE(contains(page, "/no such folder/a.json: cannot be written: No such file")) << page;
  EXPECT_TRUE(contains(page, "what the job did"));
}

TEST(JobReport, NamesRanksInRuns) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < 9; ++rank) {
    const bool says = rank == 1 || rank == 2 || (rank >= 4 && rank <= 6) || rank == 8;
    ranks.push_back(R"({"rank": )" + std::to_string(rank) +
                    (says ? R"(, "fallbacks": ["slow"]})" : "}"));
  }
  EXPECT_TRUE(contains(job_report(ranks), "slow (ranks 1, 2, 4 to 6, 8)\n"));
}

TEST(JobReport, NamesWhatItCannotRead) {
  const std::string page =
      job_report({R"({"rank": 0, "counters": [{"group": "g", "name": "n", "value": 7}]})", "{",
                  R"({"counters": [{"group": "g", "name": "n", "value": 1}, {"name": 3}]})"});
  EXPECT_TRUE(contains(page, "1 rank")) << page;
  EXPECT_TRUE(contains(page, "report 1 could not be read"));
  EXPECT_TRUE(contains(page, "report 2 could not be read"));
  EXPECT_TRUE(contains(page, "n                                  7             7             7\n"));
}

} // namespace
