// SPDX-License-Identifier: BSD-3-Clause
// Jobs that start others and meet, on one rank. This program is what is spawned, too.
//
//   dynamic spawn N...   MPI_Comm_spawn of N processes, from the call to its return, when all of
//                        them are in MPI_Init
//   dynamic connect      MPI_Comm_accept until it has met a job that connects, and
//                        MPI_Comm_disconnect, again and again
//   dynamic first        the same of two jobs that have not met before
#include "bench.h"

#include <chrono>
#include <string>
#include <thread>

namespace {

constexpr int spawns = 11, meetings = 101;
std::string self;

MPI_Comm spawn(int processes, std::string what, std::string port) {
  char* argv[] = {what.data(), port.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_spawn(self.c_str(), argv, processes, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter,
                 MPI_ERRCODES_IGNORE);
  return inter;
}

void time_spawns(int processes) {
  std::vector<double> seconds;
  for (int i = 0; i < spawns; ++i) {
    const double begin = MPI_Wtime();
    MPI_Comm inter = spawn(processes, "child", "none");
    seconds.push_back(MPI_Wtime() - begin);
    MPI_Barrier(inter);
    MPI_Comm_disconnect(&inter);
  }
  bench::figure("spawn_ms", processes, bench::median(seconds) * 1e3);
}

void time_meetings() {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Comm child = spawn(1, "connects", port);
  MPI_Comm_disconnect(&child);
  std::vector<double> seconds;
  for (int i = 0; i < meetings; ++i) {
    const double begin = MPI_Wtime();
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Comm_disconnect(&inter);
    seconds.push_back(MPI_Wtime() - begin);
  }
  MPI_Close_port(port);
  bench::figure("meet_us", 1, bench::median(seconds) * 1e6);
}

// Of two jobs that this one has started, each time others. The one that connects is there first.
void time_first_meetings() {
  std::vector<double> seconds(spawns);
  for (double& each : seconds) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm accepts = spawn(1, "accepts", "none");
    MPI_Recv(port, sizeof port, MPI_CHAR, 0, 0, accepts, MPI_STATUS_IGNORE);
    MPI_Comm connects = spawn(1, "connects_once", port);
    MPI_Comm_disconnect(&connects);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    MPI_Send(nullptr, 0, MPI_CHAR, 0, 0, accepts);
    MPI_Recv(&each, 1, MPI_DOUBLE, 0, 0, accepts, MPI_STATUS_IGNORE);
    MPI_Comm_disconnect(&accepts);
  }
  bench::figure("first_meet_us", 1, bench::median(seconds) * 1e6);
}

void accept_once(MPI_Comm parent) {
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Send(port, sizeof port, MPI_CHAR, 0, 0, parent);
  MPI_Recv(nullptr, 0, MPI_CHAR, 0, 0, parent, MPI_STATUS_IGNORE);
  const double begin = MPI_Wtime();
  MPI_Comm inter = MPI_COMM_NULL;
  MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
  MPI_Comm_disconnect(&inter);
  const double seconds = MPI_Wtime() - begin;
  MPI_Close_port(port);
  MPI_Send(&seconds, 1, MPI_DOUBLE, 0, 0, parent);
}

void be_spawned(const std::string& what, const char* port) {
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (what == "child") MPI_Barrier(parent);
  if (what == "accepts") accept_once(parent);
  MPI_Comm_disconnect(&parent);
  const int times = what == "connects" ? meetings : what == "connects_once" ? 1 : 0;
  for (int i = 0; i < times; ++i) {
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Comm_disconnect(&inter);
  }
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string what = argc > 1 ? argv[1] : "";
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
  self = path;
  if (what == "spawn") {
    for (int i = 2; i < argc; ++i)
      time_spawns(std::atoi(argv[i]));
  } else if (what == "connect") {
    time_meetings();
  } else if (what == "first") {
    time_first_meetings();
  } else if (argc == 3) {
    be_spawned(what, argv[2]);
  } else {
    return 2;
  }
  MPI_Finalize();
  return 0;
}
