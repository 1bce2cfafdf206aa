// SPDX-License-Identifier: BSD-3-Clause
// What a program may do to itself after MPI_Init: it limits its address space ("addresses"), or
// closes all descriptors that it did not open and opens others in their place ("closed").
#include "rma/window.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t mapped_bytes() {
  std::size_t pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%zu", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// With all others, by all protocols, and in windows.
void talk() {
  for (const std::size_t bytes : {std::size_t{1}, mib / 64, mib / 16, 4 * mib}) {
    const auto out = check::message(bytes, static_cast<std::uint64_t>(check::rank));
    std::vector<unsigned char> in(bytes);
    for (int step = 1; step < check::size; ++step) {
      const int to = (check::rank + step) % check::size;
      const int from = (check::rank + check::size - step) % check::size;
      for (int turn = 0; turn < 40; ++turn)
        OK(MPI_Sendrecv(out.data(), static_cast<int>(bytes), MPI_BYTE, to, 0, in.data(),
                        static_cast<int>(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
      check::holds_pattern(in.data(), bytes, static_cast<std::uint64_t>(from), __FILE__, __LINE__);
    }
  }
  for (const std::size_t bytes : {std::size_t{1000}, 3 * mib}) {
    char* own = nullptr;
    MPI_Win win;
    OK(MPI_Win_allocate(static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own,
                        &win));
    OK(MPI_Win_fence(0, win));
    const char value = static_cast<char>(check::rank + 1);
    for (int to = 0; to < check::size; ++to)
      OK(MPI_Put(&value, 1, MPI_CHAR, to, static_cast<MPI_Aint>(bytes) - 1 - check::rank, 1,
                 MPI_CHAR, win));
    OK(MPI_Win_fence(0, win));
    for (int from = 0; from < check::size; ++from)
      CHECK_EQUAL(own[bytes - 1 - static_cast<std::size_t>(from)], static_cast<char>(from + 1));
    OK(MPI_Win_free(&win));
  }
}

std::string said;

void listen(MPI_Comm*, int* code, ...) {
  said = check::error_text(*code);
}

void addresses() {
  if (!rma::one_node()) return;
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = mapped_bytes() + 128 * mib;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  talk();
  MPI_Errhandler listener;
  OK(MPI_Comm_create_errhandler(listen, &listener));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, listener));
  char* own = nullptr;
  MPI_Win win;
  FAILS(MPI_ERR_NO_MEM,
        MPI_Win_allocate(MPI_Aint{256} << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win));
  if (check::is_macadam())
    for (const std::string& what : {std::string("262144 KiB"), std::to_string(limit.rlim_cur >> 10),
                                    std::string("ulimit -v")})
      if (said.find(what) == std::string::npos) check::fail(__FILE__, __LINE__, said);
  OK(MPI_Errhandler_free(&listener));
  OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
  talk();
}

void closed() {
  if (!rma::one_node()) return; // adapters have descriptors too
  CHECK(syscall(SYS_close_range, 3, ~0U, 0) == 0);
  int last = 0;
  while (last < 100) {
    last = open("/dev/null", O_RDWR);
    CHECK(last >= 3);
  }
  talk();
  for (int each = 3; each <= last; ++each)
    CHECK(fcntl(each, F_GETFD) >= 0); // ours is still there
}

} // namespace

int main(int argc, char** argv) {
  return check::run(argc, argv, {{"addresses", addresses}, {"closed", closed}});
}
