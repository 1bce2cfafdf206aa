// SPDX-License-Identifier: BSD-3-Clause
// From MPI_Session_init to MPI_Session_finalize, in programs that have no world. `bare`: nothing
// between; `world`: a communicator of mpi://WORLD and a barrier on it.
//
//   sessions first bare|world AT   the first session of the process, begun at AT, in seconds of
//                                  CLOCK_MONOTONIC, so that no rank waits for the launcher
//   sessions again                 one after the other, so that MPI ends and starts each time
//   sessions beside                the same while another session stays open
//
// Each rank prints its figures, as in many libraries a session to collect them would be one too
// many.
#include "bench.h"

#include <cmath>
#include <string>

namespace {

// MPI's clock need not run yet.
double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of_session(bool with_world) {
  const double begin = now();
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  if (with_world) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "bench", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
  }
  MPI_Session_finalize(&session);
  return now() - begin;
}

double median_of_sessions(bool with_world) {
  std::vector<double> seconds;
  for (int i = 0; i < 21; ++i)
    seconds.push_back(seconds_of_session(with_world));
  return bench::median(seconds);
}

// False if that is over.
bool sleep_until(double when) {
  if (now() > when) return false;
  const double whole = std::floor(when);
  const timespec time{static_cast<time_t>(whole), static_cast<long>((when - whole) * 1e9)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
  return true;
}

void tell(const char* between, const std::string& which, double seconds) {
  std::printf("session_%s_%s_us %.9g\n", between, which.c_str(), seconds * 1e6);
}

} // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "first" && argc == 4) {
    if (!sleep_until(std::atof(argv[3]))) {
      std::fprintf(stderr, "sessions: started too late\n");
      return 1;
    }
    tell(argv[2], which, seconds_of_session(std::strcmp(argv[2], "world") == 0));
  } else if (which == "again" || which == "beside") {
    MPI_Session open = MPI_SESSION_NULL;
    if (which == "beside") MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &open);
    tell("bare", which, median_of_sessions(false));
    tell("world", which, median_of_sessions(true));
    if (which == "beside") MPI_Session_finalize(&open);
  } else {
    return 2;
  }
  return 0;
}
