// SPDX-License-Identifier: BSD-3-Clause
// Jobs that ranks start: this program again, as `spawn child ROLE`.
#include "dynamic/talk.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>

namespace {

using namespace dynamic;
using check::rank;
using check::size;

std::string self;

MPI_Comm spawn(const char* role, int count, MPI_Comm comm, int root = 0,
               MPI_Info info = MPI_INFO_NULL) {
  char child[] = "child";
  std::string text = role;
  char* argv[] = {child, text.data(), nullptr};
  MPI_Comm inter = MPI_COMM_NULL;
  std::vector<int> codes(static_cast<std::size_t>(count), -1);
  const bool is_root = rank_of(comm) == root;
  MPI_Info gone = MPI_INFO_NULL; // elsewhere a handle that means nothing is given
  OK(MPI_Info_create(&gone));
  const MPI_Info elsewhere = gone;
  OK(MPI_Info_free(&gone));
  OK(MPI_Comm_spawn(is_root ? self.c_str() : nullptr, is_root ? argv : MPI_ARGV_NULL, count,
                    is_root ? info : elsewhere, root, comm, &inter, codes.data()));
  for (const int code : codes)
    CHECK_EQUAL(code, MPI_SUCCESS);
  CHECK_EQUAL(remote_size_of(inter), count);
  return inter;
}

MPI_Comm merge(MPI_Comm inter, int high) {
  MPI_Comm intra;
  OK(MPI_Intercomm_merge(inter, high, &intra));
  return intra;
}

void add(MPI_Comm all) {
  int one = 1, sum = 0;
  OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all));
  CHECK_EQUAL(sum, size_of(all));
}

void add_and_disconnect(MPI_Comm inter, MPI_Comm all) {
  add(all);
  OK(MPI_Comm_free(&inter));
  OK(MPI_Comm_disconnect(&all));
}

// --- The parents' parts --------------------------------------------------------------------------

void alone() {
  MPI_Comm parent;
  OK(MPI_Comm_get_parent(&parent));
  CHECK(parent == MPI_COMM_NULL);
}

void together() {
  for (int root = 0; root < size; ++root) {
    MPI_Comm inter = spawn("talk", 2, MPI_COMM_WORLD, root);
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
  }
}

void each_its_own() {
  MPI_Comm inter = spawn("talk", 1, MPI_COMM_SELF);
  talk(inter);
  OK(MPI_Comm_disconnect(&inter));
}

void several_programs() {
  std::string words[] = {self, self, "child", "app", "two words", ""};
  char* commands[] = {words[0].data(), words[1].data()};
  char* first[] = {words[2].data(), words[3].data(), nullptr};
  char* second[] = {words[2].data(), words[3].data(), words[4].data(), words[5].data(), nullptr};
  char** arguments[] = {first, second};
  const int counts[] = {1, 2};
  const MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  const int root = size - 1;
  const bool is_root = rank == root;
  MPI_Comm inter;
  OK(MPI_Comm_spawn_multiple(is_root ? 2 : 0, is_root ? commands : nullptr,
                             is_root ? arguments : MPI_ARGVS_NULL, is_root ? counts : nullptr,
                             is_root ? infos : nullptr, root, MPI_COMM_WORLD, &inter,
                             MPI_ERRCODES_IGNORE));
  CHECK_EQUAL(remote_size_of(inter), 3);
  talk(inter);
  OK(MPI_Comm_disconnect(&inter));
}

void merged() {
  MPI_Comm inter = spawn("merge", 2, MPI_COMM_WORLD);
  MPI_Comm intra = merge(inter, 0);
  talk_inside(intra, size + 2);
  put_inside(intra);
  OK(MPI_Comm_disconnect(&intra));
  OK(MPI_Comm_disconnect(&inter));
}

// With the last communicator of two jobs they forget each other, although some have not read yet
// what others have left in shared memory.
void disconnected_last() {
  MPI_Comm inter = spawn("disconnect last", 3, MPI_COMM_WORLD);
  add_and_disconnect(inter, merge(inter, 0));
}

// The children of the second spawn meet those of the first.
void three_jobs() {
  MPI_Comm first = spawn("first", 2, MPI_COMM_WORLD);
  MPI_Comm both = merge(first, 0);
  MPI_Comm second = spawn("second", 1, both);
  talk(second);
  MPI_Comm all = merge(second, 0);
  talk_inside(all, size + 3);
  for (MPI_Comm* comm : {&all, &second, &both, &first})
    OK(MPI_Comm_disconnect(comm));
}

void in_another_folder() {
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "wdir", "/"));
  MPI_Comm inter = spawn("folder", 1, MPI_COMM_WORLD, 0, info);
  OK(MPI_Info_free(&info));
  talk(inter);
  OK(MPI_Comm_disconnect(&inter));
}

// Fewer than maxprocs, and an error code for each of these, command by command.
void fewer() {
  std::string words[] = {self, "child", "talk"};
  char* commands[] = {words[0].data(), words[0].data()};
  char* argv[] = {words[1].data(), words[2].data(), nullptr};
  char** arguments[] = {argv, argv};
  const int counts[] = {5, 3};
  MPI_Info soft[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  OK(MPI_Info_create(&soft[0]));
  char file[] = "/tmp/macadam-spawn-XXXXXX"; // all keys may be in a file
  const int written = mkstemp(file);
  CHECK(written >= 0 && write(written, "soft = 1:2,9\n", 13) == 13 && close(written) == 0);
  OK(MPI_Info_set(soft[0], "file", file));
  MPI_Comm inter;
  std::vector<int> codes(9, -1);
  OK(MPI_Comm_spawn_multiple(2, commands, arguments, counts, soft, 0, MPI_COMM_WORLD, &inter,
                             codes.data()));
  OK(MPI_Info_free(&soft[0]));
  CHECK(unlink(file) == 0);
  CHECK_EQUAL(remote_size_of(inter), 5);
  const int error = MPI_ERR_SPAWN;
  CHECK(codes == std::vector<int>({0, 0, error, error, error, 0, 0, 0, -1}));
  talk(inter);
  OK(MPI_Comm_disconnect(&inter));
}

void not_startable() {
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  const int root = size - 1;
  MPI_Comm inter = MPI_COMM_WORLD;
  std::vector<int> codes(3, -1);
  FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, root,
                                      MPI_COMM_WORLD, &inter, codes.data()));
  CHECK(codes == std::vector<int>({MPI_ERR_SPAWN, MPI_ERR_SPAWN, -1}));
  if (check::is_macadam()) { // programs without MPI: one ends, the other would outlive this job
    codes.assign(3, -1);
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/bin/true", MPI_ARGV_NULL, 2, MPI_INFO_NULL, root,
                                        MPI_COMM_WORLD, &inter, codes.data()));
    CHECK(codes == std::vector<int>({MPI_ERR_SPAWN, MPI_ERR_SPAWN, -1}));
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "timeout", "0.05"));
    char seconds[] = "1000";
    char* argv[] = {seconds, nullptr};
    FAILS(MPI_ERR_SPAWN, MPI_Comm_spawn("/bin/sleep", argv, 2, info, root, MPI_COMM_WORLD, &inter,
                                        MPI_ERRCODES_IGNORE));
    OK(MPI_Info_free(&info));
  }
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  together();
}

int descriptors() {
  int count = 0;
  DIR* const open = opendir("/proc/self/fd");
  CHECK(open != nullptr);
  while (readdir(open) != nullptr)
    ++count;
  closedir(open);
  return count;
}

// More jobs, one after the other, than a process could know at a time.
void one_after_the_other() {
  int before = 0;
  const int rounds = check::times(100, 5);
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm inter = spawn("talk", 1, MPI_COMM_WORLD);
    talk(inter);
    OK(MPI_Comm_disconnect(&inter));
    if (round == 2) before = descriptors();
  }
  CHECK(descriptors() <= before + 2);
}

// Children send, free what joins them with this job, and are gone before it receives, or has ended
// its part of a collective.
void freed_and_gone() {
  constexpr useconds_t later_us = 200'000;
  MPI_Comm inter = spawn("gone", 2, MPI_COMM_WORLD);
  if (rank == 0) {
    usleep(later_us);
    for (int from = 0; from < 2; ++from) {
      int got = -1;
      OK(MPI_Recv(&got, 1, MPI_INT, from, 0, inter, MPI_STATUS_IGNORE));
      CHECK_EQUAL(got, from);
    }
  }
  OK(MPI_Comm_free(&inter));
  for (int round = 0; round < 5; ++round) {
    inter = spawn("gone behind a sum", 2, MPI_COMM_WORLD);
    MPI_Comm all = merge(inter, 0);
    CHECK_EQUAL(size_of(all), size + 2);
    if (rank == 1) usleep(later_us / 10);
    add(all);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_free(&inter));
  }
}

// Left to MPI_Finalize.
void never_disconnected() {
  talk(spawn("leave", 2, MPI_COMM_WORLD));
}

// --- The children --------------------------------------------------------------------------------

int child(int argc, char** argv) {
  const std::string role = argv[2];
  OK(MPI_Init(&argc, &argv));
  OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
  check::part = argv[2];
  MPI_Comm parent;
  OK(MPI_Comm_get_parent(&parent));
  CHECK(parent != MPI_COMM_NULL);
  if (role == "app") {
    int* number = nullptr;
    int found = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found));
    CHECK(found != 0);
    CHECK_EQUAL(*number, rank == 0 ? 0 : 1);
    CHECK_EQUAL(argc, rank == 0 ? 3 : 5);
    CHECK(rank == 0 || (argv[3] == std::string("two words") && *argv[4] == '\0'));
  }
  if (role == "folder") {
    char folder[64] = "";
    CHECK(getcwd(folder, sizeof folder) != nullptr);
    CHECK_EQUAL(std::string(folder), "/");
  }
  if (role == "gone") {
    MPI_Request request;
    OK(MPI_Isend(&rank, 1, MPI_INT, 0, 0, parent, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Finalize());
    return 0;
  }
  if (role == "disconnect last") {
    add_and_disconnect(parent, merge(parent, 1));
    OK(MPI_Finalize());
    return 0;
  }
  if (role == "gone behind a sum") {
    MPI_Comm all = merge(parent, 1);
    add(all);
    OK(MPI_Comm_free(&all));
    OK(MPI_Comm_free(&parent));
    OK(MPI_Finalize());
    return 0;
  }
  if (role == "merge") {
    MPI_Comm intra = merge(parent, 1);
    talk_inside(intra, remote_size_of(parent) + size);
    put_inside(intra);
    OK(MPI_Comm_disconnect(&intra));
  } else if (role == "first") {
    MPI_Comm both = merge(parent, 1);
    MPI_Comm second = MPI_COMM_NULL;
    OK(MPI_Comm_spawn(nullptr, MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, both, &second,
                      MPI_ERRCODES_IGNORE));
    talk(second);
    MPI_Comm all = merge(second, 0);
    talk_inside(all, size_of(both) + 1);
    for (MPI_Comm* comm : {&all, &second, &both})
      OK(MPI_Comm_disconnect(comm));
  } else if (role == "second") {
    talk(parent);
    MPI_Comm all = merge(parent, 1);
    talk_inside(all, remote_size_of(parent) + 1);
    OK(MPI_Comm_disconnect(&all));
  } else {
    talk(parent);
  }
  if (role != "leave") {
    OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Comm_get_parent(&parent));
    CHECK(!check::is_macadam() || parent == MPI_COMM_NULL);
  }
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
                    {{"alone", alone},
                     {"together", together},
                     {"each_its_own", each_its_own},
                     {"several_programs", several_programs},
                     {"merged", merged},
                     {"disconnected_last", disconnected_last},
                     {"three_jobs", three_jobs},
                     {"in_another_folder", in_another_folder},
                     {"fewer", fewer},
                     {"not_startable", not_startable},
                     {"one_after_the_other", one_after_the_other},
                     {"freed_and_gone", freed_and_gone},
                     {"never_disconnected", never_disconnected}});
}
