// SPDX-License-Identifier: BSD-3-Clause
// Threads that spawn, and threads of the same two processes that meet by several ports at once.
#include "threads.h"

#include "dynamic/talk.h"

#include <unistd.h>

#include <array>

namespace {

std::string self;

using check::in_threads;
using check::rank;
using check::threads;

void ports() {
  if (rank > 1) return;
  std::array<std::array<char, MPI_MAX_PORT_NAME>, threads> names = {};
  std::array<MPI_Comm, threads> selves = {};
  for (int t = 0; t < threads; ++t) {
    const auto at = static_cast<std::size_t>(t);
    if (rank == 0) OK(MPI_Open_port(MPI_INFO_NULL, names[at].data()));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &selves[at])); // a thread each: these calls are collective
  }
  if (check::size > 1) {
    MPI_Status status;
    if (rank == 0)
      OK(MPI_Send(names.data(), sizeof names, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
    else
      OK(MPI_Recv(names.data(), sizeof names, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &status));
    in_threads([&](int t) {
      const auto at = static_cast<std::size_t>(t);
      for (int round = 0; round < check::times(20, 3); ++round) {
        MPI_Comm inter = MPI_COMM_NULL;
        OK(rank == 0 ? MPI_Comm_accept(names[at].data(), MPI_INFO_NULL, 0, selves[at], &inter)
                     : MPI_Comm_connect(names[at].data(), MPI_INFO_NULL, 0, selves[at], &inter));
        int theirs = -1;
        OK(MPI_Sendrecv(&t, 1, MPI_INT, 0, 1, &theirs, 1, MPI_INT, 0, 1, inter, MPI_STATUS_IGNORE));
        CHECK_EQUAL(theirs, t);
        OK(MPI_Comm_disconnect(&inter));
      }
    });
  }
  for (int t = 0; t < threads; ++t) {
    const auto at = static_cast<std::size_t>(t);
    if (rank == 0) OK(MPI_Close_port(names[at].data()));
    OK(MPI_Comm_free(&selves[at]));
  }
}

// Each thread gets its own children.
void spawns() {
  std::array<MPI_Comm, threads> selves = {};
  for (MPI_Comm& comm : selves)
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
  in_threads([&](int t) {
    for (int round = 0; round < check::times(5, 2); ++round) {
      std::string number = std::to_string(t);
      char child[] = "child";
      char* argv[] = {child, number.data(), nullptr};
      MPI_Comm inter = MPI_COMM_NULL;
      OK(MPI_Comm_spawn(self.c_str(), argv, 1 + t % 2, MPI_INFO_NULL, 0,
                        selves[static_cast<std::size_t>(t)], &inter, MPI_ERRCODES_IGNORE));
      CHECK_EQUAL(dynamic::remote_size_of(inter), 1 + t % 2);
      int theirs = -1;
      OK(MPI_Recv(&theirs, 1, MPI_INT, 0, 0, inter, MPI_STATUS_IGNORE));
      CHECK_EQUAL(theirs, t);
      OK(MPI_Comm_disconnect(&inter));
    }
  });
  for (MPI_Comm& comm : selves)
    OK(MPI_Comm_free(&comm));
}

// A child waits in MPI_Init for a parent that comes to the spawn when another thread of the child
// has called MPI. It says so by a file, as it has no other way.
void child_calls_within_init() {
  if (!check::is_macadam()) return; // others may start the child when all parents have come
  std::string path = "/tmp/macadam-within-init-" + std::to_string(getpid());
  path.resize(64); // that of rank 0
  OK(MPI_Bcast(path.data(), 64, MPI_CHAR, 0, MPI_COMM_WORLD));
  if (rank != 0)
    for (int ms = 0; access(path.c_str(), F_OK) != 0; ++ms) {
      CHECK(ms < 20'000);
      check::sleep_ms(1);
    }
  char child[] = "child", within_init[] = "within_init";
  char* argv[] = {child, within_init, path.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  OK(MPI_Comm_spawn(self.c_str(), argv, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                    MPI_ERRCODES_IGNORE));
  OK(MPI_Comm_disconnect(&inter));
  OK(MPI_Barrier(MPI_COMM_WORLD));
  if (rank == 0) unlink(path.c_str());
}

int child_within_init(int argc, char** argv) {
  std::thread other([&] {
    check::sleep_ms(200);
    int initialized = 1;
    OK(MPI_Initialized(&initialized));
    std::FILE* const file = std::fopen(argv[3], "w");
    CHECK(file != nullptr);
    std::fclose(file);
  });
  check::start_with_threads(argc, argv);
  other.join();
  MPI_Comm parent = MPI_COMM_NULL;
  OK(MPI_Comm_get_parent(&parent));
  OK(MPI_Comm_disconnect(&parent));
  OK(MPI_Finalize());
  return 0;
}

int child(int argc, char** argv) {
  if (std::strcmp(argv[2], "within_init") == 0) return child_within_init(argc, argv);
  OK(MPI_Init(&argc, &argv));
  MPI_Comm parent = MPI_COMM_NULL;
  OK(MPI_Comm_get_parent(&parent));
  const int number = std::atoi(argv[2]);
  if (dynamic::rank_of(parent) == 0) OK(MPI_Send(&number, 1, MPI_INT, 0, 0, parent));
  OK(MPI_Comm_disconnect(&parent));
  OK(MPI_Finalize());
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) return child(argc, argv);
  char path[4096] = "";
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return 1;
  self = path;
  check::start_with_threads(argc, argv);
  return check::run_parts(
      argc, argv,
      {{"ports", ports}, {"spawns", spawns}, {"child_calls_within_init", child_calls_within_init}});
}
