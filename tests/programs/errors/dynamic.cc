// SPDX-License-Identifier: BSD-3-Clause
// Bad arguments of the functions on dynamic processes, in the order of their parameters. What only
// the root looks at is an error at all ranks.
#include "errors/text.h"

namespace {

using text::Wrong;

const MPI_Comm world = MPI_COMM_WORLD, nobody = MPI_COMM_NULL;
const MPI_Info nothing = MPI_INFO_NULL;
const char* const null = "a null pointer";
const char* const no_comm = "MPI_COMM_NULL";
char program[] = "/bin/true", empty[] = "";
char* one[] = {program};
char* unnamed[] = {empty};
char* missing[] = {nullptr};
const int once[] = {1}, negative[] = {-1};
MPI_Comm made = MPI_COMM_NULL;
char port[MPI_MAX_PORT_NAME];
MPI_Info soft = MPI_INFO_NULL, soon = MPI_INFO_NULL;

int spawn(const char* command, int count, MPI_Info info, int root, MPI_Comm comm) {
  return MPI_Comm_spawn(command, MPI_ARGV_NULL, count, info, root, comm, &made,
                        MPI_ERRCODES_IGNORE);
}
int spawn_all(int count, char** commands, const int* counts) {
  return MPI_Comm_spawn_multiple(count, commands, MPI_ARGVS_NULL, counts, &nothing, 0, world, &made,
                                 MPI_ERRCODES_IGNORE);
}

void bad_arguments() {
  if (!check::is_macadam()) return; // others check less
  text::return_errors(world);
  OK(MPI_Info_create(&soft));
  OK(MPI_Info_set(soft, "soft", "1:b"));
  OK(MPI_Info_create(&soon));
  OK(MPI_Info_set(soon, "timeout", "soon"));
  const std::vector<Wrong> list = {
      {"MPI_Comm_spawn", "command", null, "give", MPI_ERR_ARG,
       [] { return spawn(nullptr, 1, nothing, 0, world); }},
      {"MPI_Comm_spawn", "command", "empty", "give", MPI_ERR_ARG,
       [] { return spawn("", 1, nothing, 0, world); }},
      {"MPI_Comm_spawn", "maxprocs", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return spawn(program, -1, nothing, 0, world); }},
      {"MPI_Comm_spawn", "key soft", "'1:b'", "first:last:stride", MPI_ERR_INFO_VALUE,
       [] { return spawn(program, 1, soft, 0, world); }},
      {"MPI_Comm_spawn", "key timeout", "'soon'", "seconds", MPI_ERR_INFO_VALUE,
       [] { return spawn(program, 1, soon, 0, world); }},
      {"MPI_Comm_spawn", "root", "-1", "has ranks 0 to", MPI_ERR_ROOT,
       [] { return spawn(program, 1, nothing, -1, world); }},
      {"MPI_Comm_spawn", "root", "64", "has ranks 0 to", MPI_ERR_ROOT,
       [] { return spawn(program, 1, nothing, 64, world); }},
      {"MPI_Comm_spawn", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return spawn(program, 1, nothing, 0, nobody); }},
      {"MPI_Comm_spawn_multiple", "count", "-1", "must not be negative", MPI_ERR_COUNT,
       [] { return spawn_all(-1, one, once); }},
      {"MPI_Comm_spawn_multiple", "array_of_commands", null, "the root gives", MPI_ERR_ARG,
       [] { return spawn_all(1, nullptr, once); }},
      {"MPI_Comm_spawn_multiple", "array_of_commands[0]", null, "give", MPI_ERR_ARG,
       [] { return spawn_all(1, missing, once); }},
      {"MPI_Comm_spawn_multiple", "array_of_commands[0]", "empty", "give", MPI_ERR_ARG,
       [] { return spawn_all(1, unnamed, once); }},
      {"MPI_Comm_spawn_multiple", "array_of_maxprocs", null, "the root gives", MPI_ERR_ARG,
       [] { return spawn_all(1, one, nullptr); }},
      {"MPI_Comm_spawn_multiple", "array_of_maxprocs[0]", "-1", "must not be negative", MPI_ERR_ARG,
       [] { return spawn_all(1, one, negative); }},
      {"MPI_Comm_accept", "port_name", null, "the root gives", MPI_ERR_ARG,
       [] { return MPI_Comm_accept(nullptr, nothing, 0, world, &made); }},
      {"MPI_Comm_accept", "port_name", "empty", "give", MPI_ERR_PORT,
       [] { return MPI_Comm_accept("", nothing, 0, world, &made); }},
      {"MPI_Comm_accept", "key timeout", "'soon'", "seconds", MPI_ERR_INFO_VALUE,
       [] { return MPI_Comm_accept("port", soon, 0, world, &made); }},
      {"MPI_Comm_accept", "root", "-1", "has ranks 0 to", MPI_ERR_ROOT,
       [] { return MPI_Comm_accept("port", nothing, -1, world, &made); }},
      {"MPI_Comm_accept", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Comm_accept("port", nothing, 0, nobody, &made); }},
      {"MPI_Comm_connect", "port_name", null, "the root gives", MPI_ERR_ARG,
       [] { return MPI_Comm_connect(nullptr, nothing, 0, world, &made); }},
      {"MPI_Comm_connect", "port_name", "empty", "give", MPI_ERR_PORT,
       [] { return MPI_Comm_connect("", nothing, 0, world, &made); }},
      {"MPI_Comm_connect", "root", "64", "has ranks 0 to", MPI_ERR_ROOT,
       [] { return MPI_Comm_connect("port", nothing, 64, world, &made); }},
      {"MPI_Comm_connect", "comm", no_comm, "give", MPI_ERR_COMM,
       [] { return MPI_Comm_connect("port", nothing, 0, nobody, &made); }},
      {"MPI_Comm_join", "fd", "-1", "give", MPI_ERR_ARG, [] { return MPI_Comm_join(-1, &made); }},
      {"MPI_Comm_join", "intercomm", null, "give", MPI_ERR_ARG,
       [] { return MPI_Comm_join(0, nullptr); }},
      {"MPI_Comm_get_parent", "parent", null, "give", MPI_ERR_ARG,
       [] { return MPI_Comm_get_parent(nullptr); }},
      {"MPI_Open_port", "port_name", null, "give", MPI_ERR_ARG,
       [] { return MPI_Open_port(nothing, nullptr); }},
      {"MPI_Close_port", "port_name", "empty", "give", MPI_ERR_PORT,
       [] { return MPI_Close_port(""); }},
      {"MPI_Publish_name", "service_name", "empty", "give", MPI_ERR_SERVICE,
       [] { return MPI_Publish_name("", nothing, "port"); }},
      {"MPI_Publish_name", "port_name", "empty", "give", MPI_ERR_PORT,
       [] { return MPI_Publish_name("service", nothing, ""); }},
      {"MPI_Unpublish_name", "service_name", "empty", "give", MPI_ERR_SERVICE,
       [] { return MPI_Unpublish_name("", nothing, "port"); }},
      {"MPI_Lookup_name", "service_name", "empty", "give", MPI_ERR_NAME,
       [] { return MPI_Lookup_name("", nothing, port); }},
      {"MPI_Lookup_name", "port_name", null, "give", MPI_ERR_ARG,
       [] { return MPI_Lookup_name("service", nothing, nullptr); }},
  };
  for (const Wrong& wrong : list) {
    text::refused(wrong);
    CHECK(made == MPI_COMM_NULL);
  }
  OK(MPI_Info_free(&soft));
  OK(MPI_Info_free(&soon));
  text::nothing_lost(world);
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"bad_arguments", bad_arguments}});
}
