// SPDX-License-Identifier: BSD-3-Clause
// What may be asked at any time, and what is known about the machine and the library.
#include "check.h"

#include <unistd.h>

namespace {

void before_init() {
  int flag = 1, version = 0, subversion = 0, length = 0;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  OK(MPI_Initialized(&flag));
  CHECK(!flag);
  OK(MPI_Finalized(&flag));
  CHECK(!flag);
  OK(MPI_Get_version(&version, &subversion));
  CHECK_EQUAL(version, 5);
  OK(MPI_Get_library_version(text, &length));
  CHECK(length > 0);
  OK(MPI_Abi_get_version(&version, &subversion));
  CHECK_EQUAL(version, 1);
  MPI_Info info;
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "before", "init"));
  OK(MPI_Info_free(&info));
  int its_class = -1;
  OK(MPI_Error_class(MPI_ERR_TAG, &its_class));
  CHECK_EQUAL(its_class, MPI_ERR_TAG);
}

void after_init() {
  int flag = 0, level = -1;
  OK(MPI_Initialized(&flag));
  CHECK(flag);
  OK(MPI_Finalized(&flag));
  CHECK(!flag);
  OK(MPI_Query_thread(&level));
  CHECK(level >= MPI_THREAD_SINGLE && level <= MPI_THREAD_MULTIPLE);
  OK(MPI_Is_thread_main(&flag));
  CHECK(flag);
}

void clock_advances() {
  const double before = MPI_Wtime();
  check::sleep_ms(20);
  const double after = MPI_Wtime();
  CHECK(after - before > 0.015 && after - before < 10);
  CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
}

void processor_name() {
  char name[MPI_MAX_PROCESSOR_NAME], host[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  OK(MPI_Get_processor_name(name, &length));
  CHECK_EQUAL(length, static_cast<int>(std::strlen(name)));
  gethostname(host, sizeof host);
  CHECK_EQUAL(std::string(name), std::string(host));
}

void memory() {
  char* block = nullptr;
  OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &block));
  std::memset(block, 1, 100000);
  if (check::size > 1 && check::rank < 2)
    OK(MPI_Sendrecv_replace(block, 100000, MPI_BYTE, 1 - check::rank, 0, 1 - check::rank, 0,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  OK(MPI_Free_mem(block));
}

void profiling() {
  OK(MPI_Pcontrol(1));
  int rank = -1;
  OK(PMPI_Comm_rank(MPI_COMM_WORLD, &rank));
  CHECK_EQUAL(rank, check::rank);
}

// Keys are URIs of resource types, values whether the process is restricted to one of them.
void hardware() {
  MPI_Info info;
  OK(MPI_Get_hw_resource_info(&info));
  int keys = 0;
  OK(MPI_Info_get_nkeys(info, &keys));
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY], text[8];
    int length = sizeof text, flag = 0;
    OK(MPI_Info_get_nthkey(info, i, key));
    CHECK(std::strstr(key, "://") != nullptr);
    OK(MPI_Info_get_string(info, key, &length, text, &flag));
    const std::string value = text;
    CHECK(flag && (value == "true" || value == "false"));
  }
  OK(MPI_Info_free(&info));
}

} // namespace

int main(int argc, char** argv) {
  check::part = "before_init";
  before_init();
  return check::run(argc, argv,
                    {{"after_init", after_init},
                     {"clock_advances", clock_advances},
                     {"processor_name", processor_name},
                     {"memory", memory},
                     {"profiling", profiling},
                     {"hardware", hardware}});
}
