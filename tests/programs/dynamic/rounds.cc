// SPDX-License-Identifier: BSD-3-Clause
// Two jobs meet and part ten thousand times, and neither they nor mpiexec hold more of the system
// than after the first hundred. Each round at the same port, or at one that is opened for it.
#include "dynamic/talk.h"
#include "resources.h"

#include <unistd.h>

namespace {

using namespace dynamic;
using check::rank;

std::string self;

std::string open_port() {
  char port[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Open_port(MPI_INFO_NULL, port));
  return port;
}

void compare(const char* whose, const check::Resources& before, const check::Resources& after) {
  // What is kept for the case that two meet again, and what the allocator keeps. One that is left
  // behind in each round would make a hundred and more.
  constexpr int few_mappings = 4;
  // Mpiexec may be serving the other job at this moment: its sockets and the memory that it hands
  // out.
  constexpr int few_descriptors = 8;
#ifdef __SANITIZE_ADDRESS__
  constexpr long few_kib = 1 << 20;
#else
  constexpr long few_kib = 4096;
#endif
  std::ostringstream text;
  text << whose << ": descriptors " << before.descriptors << " to " << after.descriptors
       << ", mappings " << before.mappings << " to " << after.mappings << ", threads "
       << before.threads << " to " << after.threads << ", resident KiB " << before.resident_kib
       << " to " << after.resident_kib;
  if (rank == 0) std::printf("%s\n", text.str().c_str());
  if (after.descriptors > before.descriptors + few_descriptors || after.threads > before.threads ||
      after.mappings > before.mappings + few_mappings ||
      after.resident_kib > before.resident_kib + few_kib)
    check::fail(__FILE__, __LINE__, text.str());
}

// The accepting side, `accepts`, tells the other one of the next port if each round has its own.
void meet_and_part(bool accepts, std::string port, bool each_its_own) {
  const int rounds = check::times(10'000, 200), settled = rounds / 10;
  const std::string launcher = std::to_string(getppid());
  check::Resources own, its;
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm inter = MPI_COMM_NULL;
    OK(accepts ? MPI_Comm_accept(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter)
               : MPI_Comm_connect(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    if (round % 100 == 0) talk(inter);
    int sent = round, received = -1;
    OK(MPI_Allreduce(&sent, &received, 1, MPI_INT, MPI_MAX, inter));
    CHECK_EQUAL(received, round);
    if (each_its_own && rank == 0) {
      std::string next(MPI_MAX_PORT_NAME, '\0');
      if (accepts) {
        OK(MPI_Close_port(port.c_str()));
        next = open_port();
        next.resize(MPI_MAX_PORT_NAME);
        OK(MPI_Send(next.data(), MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, inter));
      } else {
        OK(MPI_Recv(next.data(), MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, inter, MPI_STATUS_IGNORE));
      }
      port = next.c_str();
    }
    OK(MPI_Comm_disconnect(&inter));
    if (round != settled) continue;
    own = check::resources();
    its = check::resources(launcher);
  }
  compare(accepts ? "who accepts" : "who connects", own, check::resources());
  compare("mpiexec", its, check::resources(launcher));
}

void rounds(bool each_its_own) {
  char child[] = "child", kind[] = {each_its_own ? 'o' : 's', '\0'};
  char* argv[] = {child, kind, nullptr};
  MPI_Comm down = MPI_COMM_NULL;
  OK(MPI_Comm_spawn(self.c_str(), argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &down,
                    MPI_ERRCODES_IGNORE));
  std::string port = rank == 0 ? open_port() : "";
  port.resize(MPI_MAX_PORT_NAME);
  if (rank == 0) OK(MPI_Send(port.data(), MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, down));
  OK(MPI_Comm_disconnect(&down));
  meet_and_part(true, port.c_str(), each_its_own);
}

void at_one_port() {
  rounds(false);
}
void each_at_its_own_port() {
  rounds(true);
}

int child(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  check::part = "child";
  MPI_Comm up = MPI_COMM_NULL;
  OK(MPI_Comm_get_parent(&up));
  char port[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 1, up, MPI_STATUS_IGNORE));
  OK(MPI_Comm_disconnect(&up));
  meet_and_part(false, port, *argv[2] == 'o');
  OK(MPI_Finalize());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "child") == 0) return child(argc, argv);
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
  self = path;
  return check::run(argc, argv,
                    {{"at_one_port", at_one_port}, {"each_at_its_own_port", each_at_its_own_port}});
}
