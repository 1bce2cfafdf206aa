// SPDX-License-Identifier: BSD-3-Clause
// Processes that meet by ports and names. Two halves of one job stand for two jobs, as
// the standard allows; spawned jobs meet each other as `ports child`.
#include "dynamic/talk.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using namespace dynamic;
using check::rank;
using check::size;

std::string self;

std::string open_port() {
  char port[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Open_port(MPI_INFO_NULL, port));
  CHECK(*port != '\0');
  return port;
}

// The text of rank 0, at all.
std::string spread(std::string text, MPI_Comm comm) {
  text.resize(MPI_MAX_PORT_NAME);
  OK(MPI_Bcast(text.data(), MPI_MAX_PORT_NAME, MPI_CHAR, 0, comm));
  return text.c_str();
}

// The lower half accepts, the upper connects.
void halves() {
  if (size < 2) return;
  MPI_Comm half;
  const bool lower = rank < size / 2;
  OK(MPI_Comm_split(MPI_COMM_WORLD, lower ? 0 : 1, 0, &half));
  const std::string port = spread(rank == 0 ? open_port() : "", MPI_COMM_WORLD);
  for (int round = 0; round < 20; ++round) {
    MPI_Comm inter = MPI_COMM_NULL;
    const char* const name = rank_of(half) == 0 ? port.c_str() : nullptr;
    OK(lower ? MPI_Comm_accept(name, MPI_INFO_NULL, 0, half, &inter)
             : MPI_Comm_connect(name, MPI_INFO_NULL, 0, half, &inter));
    CHECK_EQUAL(remote_size_of(inter), size - size_of(half));
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
  }
  if (rank == 0) OK(MPI_Close_port(port.c_str()));
  OK(MPI_Comm_free(&half));
}

// Two jobs that know of each other by a published name alone; disconnected and connected again.
void two_jobs() {
  char child[] = "child";
  char* argv[] = {child, nullptr};
  MPI_Comm down = MPI_COMM_NULL;
  const std::string port = spread(rank == 0 ? open_port() : "", MPI_COMM_WORLD);
  const std::string service = "macadam-test-" + std::to_string(getpid());
  if (rank == 0) OK(MPI_Publish_name(service.c_str(), MPI_INFO_NULL, port.c_str()));
  OK(MPI_Comm_spawn(self.c_str(), argv, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &down,
                    MPI_ERRCODES_IGNORE));
  std::string name = service;
  name.resize(MPI_MAX_PORT_NAME);
  OK(MPI_Bcast(name.data(), MPI_MAX_PORT_NAME, MPI_CHAR, rank == 0 ? MPI_ROOT : MPI_PROC_NULL,
               down));
  OK(MPI_Comm_disconnect(&down));
  const int rounds = check::times(100, 10);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Comm_accept(port.c_str(), MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
  }
  if (rank != 0) return;
  OK(MPI_Unpublish_name(service.c_str(), MPI_INFO_NULL, port.c_str()));
  OK(MPI_Close_port(port.c_str()));
}

// A socket between ranks 0 and 1, by a name that only they know.
int socket_to_other() {
  int name = getpid();
  OK(MPI_Bcast(&name, 1, MPI_INT, 0, MPI_COMM_WORLD));
  sockaddr_un address{};
  address.sun_family = AF_UNIX; // and no file: the name begins with a zero
  std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "join-test-%d", name);
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  int connected = rank < 2 ? socket(AF_UNIX, SOCK_STREAM, 0) : -1;
  const int listening = rank == 0 ? connected : -1;
  if (rank == 0) CHECK(bind(listening, any, sizeof address) == 0 && listen(listening, 1) == 0);
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) {
    connected = accept(listening, nullptr, nullptr);
    close(listening);
  } else if (rank == 1) {
    CHECK(connect(connected, any, sizeof address) == 0);
  }
  return connected;
}

// Two processes that have a socket in common, which is theirs again afterwards.
void joined() {
  if (size < 2) return;
  const int connected = socket_to_other();
  if (rank > 1) return;
  for (int round = 0; round < 5; ++round) {
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Comm_join(connected, &inter));
    CHECK_EQUAL(remote_size_of(inter), 1);
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
    char sent = 'a', received = '\0';
    CHECK(write(connected, &sent, 1) == 1 && read(connected, &received, 1) == 1);
    CHECK_EQUAL(received, sent);
  }
  close(connected);
}

int child(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check::part = "child";
  MPI_Comm up;
  OK(MPI_Comm_get_parent(&up));
  char name[MPI_MAX_PORT_NAME] = "";
  OK(MPI_Bcast(name, MPI_MAX_PORT_NAME, MPI_CHAR, 0, up));
  OK(MPI_Comm_disconnect(&up));
  char port[MPI_MAX_PORT_NAME] = "";
  if (rank == 0) OK(MPI_Lookup_name(name, MPI_INFO_NULL, port));
  const int rounds = check::times(100, 10);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm inter = MPI_COMM_NULL;
    OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter));
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
  }
  OK(MPI_Finalize());
  return 0;
}

void refusals() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  MPI_Comm inter = MPI_COMM_WORLD;
  char port[MPI_MAX_PORT_NAME] = "";
  const int root = size - 1;
  FAILS(MPI_ERR_PORT, MPI_Comm_connect("nothing", MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter));
  FAILS(MPI_ERR_PORT, MPI_Comm_accept("nothing", MPI_INFO_NULL, root, MPI_COMM_WORLD, &inter));
  FAILS(MPI_ERR_NAME, MPI_Lookup_name("macadam-test-nobody", MPI_INFO_NULL, port));
  FAILS(MPI_ERR_SERVICE,
        MPI_Unpublish_name("macadam-test-nobody", MPI_INFO_NULL, open_port().c_str()));
  FAILS(MPI_ERR_PORT, MPI_Close_port("nothing"));
  if (!check::is_macadam()) return;
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "timeout", "0.05"));
  const std::string mine = open_port();
  FAILS(MPI_ERR_OTHER, MPI_Comm_accept(mine.c_str(), info, root, MPI_COMM_WORLD, &inter));
  FAILS(MPI_ERR_PORT, MPI_Comm_connect(mine.c_str(), info, root, MPI_COMM_WORLD, &inter));
  OK(MPI_Close_port(mine.c_str()));
  FAILS(MPI_ERR_PORT, MPI_Comm_connect(mine.c_str(), info, root, MPI_COMM_WORLD, &inter));
  OK(MPI_Info_free(&info));
  OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return child(argc, argv);
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
  self = path;
  return check::run(
      argc, argv,
      {{"halves", halves}, {"joined", joined}, {"two_jobs", two_jobs}, {"refusals", refusals}});
}
