// SPDX-License-Identifier: BSD-3-Clause
// Spawns two processes of the program that is its first argument, with the other ones, and says
// what became of it. Without any: of itself, as `spawns child`, whose variables and folder are its
// own.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

namespace {

int touched = 0; // by each process once

bool is_in(const std::string& folder) {
  char found[4096] = "";
  return getcwd(found, sizeof found) != nullptr && found == folder;
}

int child(const char* role) {
  const bool moved = chdir("/") == 0;
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  int never = 0;
  if (std::strcmp(role, "waits") == 0)
    MPI_Recv(&never, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&parent);
  const bool is_there = moved && is_in("/");
  MPI_Finalize();
  return touched == 1 && is_there ? 0 : 3;
}

} // namespace

int main(int argc, char** argv) {
  ++touched;
  char folder[4096] = "";
  if (getcwd(folder, sizeof folder) == nullptr) return 3;
  MPI_Init(&argc, &argv);
  if (argc > 2 && std::strcmp(argv[1], "child") == 0) return child(argv[2]);
  char role[] = "child", ends[] = "ends";
  char* itself[] = {role, ends, nullptr};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm inter = MPI_COMM_NULL;
  int codes[] = {-1, -1};
  const int error = MPI_Comm_spawn(argc > 1 ? argv[1] : argv[0], argc > 1 ? argv + 2 : itself, 2,
                                   MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, codes);
  int rank = 0, found = 0, length = 0;
  int* universe = nullptr;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, static_cast<void*>(&universe), &found);
  char text[MPI_MAX_ERROR_STRING] = "nothing is wrong";
  if (error != MPI_SUCCESS) MPI_Error_string(error, text, &length);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(error, &error_class);
  if (rank == 0)
    std::printf("universe %d, class %s, codes %s: %s\n", found != 0 ? *universe : 0,
                error_class == MPI_ERR_SPAWN ? "spawn" : "none",
                codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS       ? "success"
                : codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN ? "spawn"
                                                                         : "others",
                text);
  if (inter != MPI_COMM_NULL) MPI_Comm_disconnect(&inter);
  const bool has_stayed = is_in(folder);
  MPI_Finalize();
  return touched == 1 && has_stayed ? 0 : 3;
}
