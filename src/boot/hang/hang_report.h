// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "boot/job_memory.h"

#include <chrono>
#include <string>
#include <vector>

namespace macadam::boot {

// One rank's part: how it stands, and what it wrote (Job::write_report), or nothing.
struct RankStatus {
  enum class Kind {
    answered,
    silent,
    stopped,
    not_in_mpi,
    finalized,
    aborted,
    ended,
    elsewhere, // on a machine that has a page of its own
    unheard    // on a machine that has not answered
  } kind;
  std::string json;       // of one that has answered; of one elsewhere or unheard: its host
  int process = 0;        // of one that runs and is seen, stopped ones too
  std::string stack = {}; // where it is in its program (stacks.h), if that is known
  std::string host = {};  // where that is, of ranks on several machines
};

// The page about a job that does not go on. First why, as far as can be told: who is missing in a
// collective, who waits for whom, and messages that a waiting receive missed by a tag or a
// communicator only. Then what every rank waits for, ranks that are alike once; of a job whose page
// would not fit on a screen, without their receives and messages. A rank's text is a JSON object;
// every member may be missing:
//
//   {"waiting_in": "MPI_Recv",
//    "waiting_for": "rank 2 to call MPI_Init",      what no row below says
//    "may_do_more": false,                          it only looks for something, in MPI_Test for
//                                                   instance, or has other threads that may call
//                                                   MPI
//    "moves":       1234,                           grows whenever the rank goes on
//    "posted":      [{"comm": "MPI_COMM_WORLD", "source": 1, "tag": 5, "bytes": 8,
//                     "announced": false, "probe": false}, ...],
//                                                   a probe that waits is no receive
//    "unexpected":  [{"comm": "MPI_COMM_WORLD", "source": 1, "tag": 6, "bytes": 8}, ...],
//    "rendezvous":  [{"peer": 2, "protocol": "SEND_RNDV", "stage": "waits for the receiver",
//                     "bytes": 1048576, "comm": "MPI_COMM_WORLD", "tag": 7, "sending": true,
//                     "unmarked": 0}, ...],         partitions that it has not marked itself
//    "collectives": [{"id": 4, "comm": "MPI_COMM_WORLD", "function": "MPI_Barrier", "number": 7,
//                     "members": [0, 1, 2]}, ...],
//    "called":      [{"id": 4, "count": 7, "last": "MPI_Bcast"}, ...],
//                                                   collectives of each communicator
//    "windows":     [{"id": 5, "name": "window 2 of rank 0", "holds": [{"rank": 0,
//                     "exclusive": true}, ...], "waits_for": 1, "members": [0, 1, 2]},
//                                                   locks: whose; of those that have or want some
//                    {"id": 5, "name": "w", "holds": [], "post_of": 1, "complete_of": [0, 2]},
//                    ...],
//                                                   whose MPI_Win_post, MPI_Win_complete it waits
//                                                   for
//    "connections": [{"peer": 1, "state": "connected"}, ...]}
//
// Ranks are those of the job; rank R of another job is -2 - R. A source or tag of -1, or none,
// stands for any. `comm` is a name or a number that is the same on all ranks.
//
// Ranks are looked at at different moments, so that of a job that runs each may be seen waiting for
// the next: that a circle of ranks cannot go on is said only if those of the look before,
// `earlier`, had all answered before this one began, and none of the circle has moved since. Those
// of the circle that may do something else are named.
// `where`: "host a". `job`: " of job 2", for instance, where mpiexec has several. `speaker`: whose
// page it is.
std::string hang_report(const std::string& where, const std::vector<RankStatus>& ranks,
                        const std::vector<RankStatus>& earlier = {}, const std::string& job = "",
                        const char* speaker = "mpiexec");

// Whether the ranks wait in a circle as they were seen: a second look is needed.
bool shows_circle(const std::vector<RankStatus>& ranks);

// One rank of each group that the page shows as alike, of those that run.
std::vector<int> ranks_to_show(const std::vector<RankStatus>& ranks);

// Asks the ranks of this machine what they wait for. Those that wait in MPI answer, or come to it.
void ask_for_reports(const JobMemory& memory);
[[nodiscard]] bool have_all_answered(const JobMemory& memory);

// The ranks of a running job, as they stand now.
std::vector<RankStatus> look_at(const JobMemory& memory);

// Asks, waits a moment for answers, and looks. Of two looks at ranks that seem to stand the second
// comes so much later.
std::vector<RankStatus> ask_ranks(const JobMemory& memory);
inline constexpr std::chrono::milliseconds answer_time{1000};
inline constexpr std::chrono::milliseconds look_interval{200}; // longer than waits sleep

} // namespace macadam::boot
